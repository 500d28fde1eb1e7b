! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Conway's game of life on a torus, divided among the ranks in both directions. Before each generation they exchange
! the cells along their common borders: columns first, then rows with the corners that have come; the rows are
! sections of an array, handed to MPI as they are. A glider moves by one cell in four generations, so after four
! times the width of the torus it has to be back where it began.
! Compile and run it with: mpifort -O2 -o life life.f90 && mpiexec -n 4 ./life 64
program life
  use mpi_f08
  implicit none
  integer, parameter :: from_left = 1, from_right = 2, from_above = 3, from_below = 4
  integer :: width, rank, ranks, generation, dims(2), place(2)
  integer :: rows, columns, first_row, first_column
  integer :: above, below, left, right
  logical, allocatable :: cell(:, :), start(:, :) ! with a frame of the neighbours' cells
  logical :: back
  type(MPI_Comm) :: torus

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  width = argument(64)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims)
  if (width < 5 .or. width < maxval(dims)) then
    print '(a, i0, a)', 'life: a torus of ', width, ' is too small for a glider or for so many ranks'
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end if
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .true.], .true., torus)
  call MPI_Comm_rank(torus, rank)
  call MPI_Cart_coords(torus, rank, 2, place)
  call MPI_Cart_shift(torus, 0, 1, above, below)
  call MPI_Cart_shift(torus, 1, 1, left, right)
  call divide(place(1), dims(1), first_row, rows)
  call divide(place(2), dims(2), first_column, columns)

  allocate(cell(0:rows+1, 0:columns+1), start(rows, columns))
  cell = .false.
  call set([2, 3, 4, 4, 4], [3, 4, 2, 3, 4])
  start = cell(1:rows, 1:columns)
  do generation = 1, 4 * width
    call exchange()
    call step()
  end do

  back = all(cell(1:rows, 1:columns) .eqv. start)
  call MPI_Allreduce(MPI_IN_PLACE, back, 1, MPI_LOGICAL, MPI_LAND, torus)
  if (rank == 0) print '(a, i0, a, i0, a, l1)', 'after ', 4 * width, ' generations on ', ranks, &
    ' ranks the glider is back: ', back
  call MPI_Comm_free(torus)
  call MPI_Finalize()
  if (.not. back) error stop 1

contains

  integer function argument(otherwise)
    integer, intent(in) :: otherwise
    character(len=20) :: text
    integer :: status
    argument = otherwise
    call get_command_argument(1, text)
    if (text == '') return
    read (text, *, iostat=status) argument
    if (status /= 0) argument = 0
  end function argument

  ! How many of the lines are those of the process at `at` of `of`, and which comes before the first.
  subroutine divide(at, of, before, mine)
    integer, intent(in) :: at, of
    integer, intent(out) :: before, mine
    before = width * at / of
    mine = width * (at + 1) / of - before
  end subroutine divide

  ! These cells live.
  subroutine set(at_row, at_column)
    integer, intent(in) :: at_row(:), at_column(:)
    integer :: i, row, column
    do i = 1, size(at_row)
      row = at_row(i) - first_row
      column = at_column(i) - first_column
      if (row >= 1 .and. row <= rows .and. column >= 1 .and. column <= columns) cell(row, column) = .true.
    end do
  end subroutine set

  subroutine exchange()
    type(MPI_Request) :: request(4)
    integer :: n
    call MPI_Irecv(cell(1:rows, 0), rows, MPI_LOGICAL, left, from_left, torus, request(1))
    call MPI_Irecv(cell(1:rows, columns + 1), rows, MPI_LOGICAL, right, from_right, torus, request(2))
    call MPI_Isend(cell(1:rows, columns), rows, MPI_LOGICAL, right, from_left, torus, request(3))
    call MPI_Isend(cell(1:rows, 1), rows, MPI_LOGICAL, left, from_right, torus, request(4))
    call MPI_Waitall(4, request, MPI_STATUSES_IGNORE)
    n = columns + 2
    call MPI_Irecv(cell(0, :), n, MPI_LOGICAL, above, from_above, torus, request(1))
    call MPI_Irecv(cell(rows + 1, :), n, MPI_LOGICAL, below, from_below, torus, request(2))
    call MPI_Isend(cell(rows, :), n, MPI_LOGICAL, below, from_above, torus, request(3))
    call MPI_Isend(cell(1, :), n, MPI_LOGICAL, above, from_below, torus, request(4))
    call MPI_Waitall(4, request, MPI_STATUSES_IGNORE)
  end subroutine exchange

  ! One generation: a cell lives on with two or three neighbours, and is born with three.
  subroutine step()
    integer :: around(rows, columns), i, j
    around = 0
    do j = -1, 1
      do i = -1, 1
        if (i /= 0 .or. j /= 0) around = around + merge(1, 0, cell(1+i:rows+i, 1+j:columns+j))
      end do
    end do
    cell(1:rows, 1:columns) = around == 3 .or. (cell(1:rows, 1:columns) .and. around == 2)
  end subroutine step

end program life
