! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Buffers of mpi_f08 that are sections of arrays, with gaps between their elements, in calls of all kinds. What
! lies between the elements must stay.
program sections
  use mpi_f08
  implicit none
  integer :: rank, ranks, next, prev
  external :: check, checked

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = modulo(rank + 1, ranks)
  prev = modulo(rank - 1, ranks)
  call check(MPI_SUBARRAYS_SUPPORTED, 'MPI_SUBARRAYS_SUPPORTED is .TRUE.')
  call blocking()
  call shapes()
  call non_blocking()
  call parts()
  call other_types()
  call persistent()
  call collectives()
  call reductions()
  call later()
  call later_any()
  call later_seen()
  call later_types()
  call collectives_again()
  call windows()
  call packing()
  call components()
  call nothing()
  call refused()
  call MPI_Finalize()
  call checked(rank)

contains

  ! Both ways by a copy.
  subroutine blocking()
    integer :: a(10), b(10), i
    type(MPI_Status) :: s
    a = [(100 * rank + i, i = 1, 10)]
    b = -1
    call MPI_Sendrecv(a(1:9:2), 5, MPI_INTEGER, next, 0, b(2:10:2), 5, MPI_INTEGER, prev, 0, &
      MPI_COMM_WORLD, s)
    call check(all(b(2:10:2) == [(100 * prev + i, i = 1, 9, 2)]) .and. all(b(1:9:2) == -1), &
      'every second element, to every second')
    b = -1
    call MPI_Sendrecv(a(10:1:-1), 10, MPI_INTEGER, next, 0, b, 10, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, s)
    call check(all(b == [(100 * prev + i, i = 10, 1, -1)]), 'backwards')
    b = -1
    call MPI_Sendrecv(a, 3, MPI_INTEGER, next, 0, b(1:10:3), 4, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, s)
    call check(all(b(1:7:3) == [(100 * prev + i, i = 1, 3)]) .and. b(10) == -1 .and. b(2) == -1, &
      'a message that is shorter than the section')
  end subroutine blocking

  ! Rows, blocks and planes.
  subroutine shapes()
    integer :: a(4, 5, 3), b(4, 5, 3), i
    type(MPI_Request) :: r
    a = reshape([(i, i = 1, 60)], [4, 5, 3])
    b = -1
    call MPI_Irecv(b(2, :, :), 15, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(a(3, :, :), 15, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b(2, :, :) == a(3, :, :)) .and. count(b == -1) == 45, 'a plane across the first dimension')
    b = -1
    call MPI_Irecv(b(2:3, 1:5:2, 3:1:-2), 12, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(a(2:3, 1:5:2, 3:1:-2), 12, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b(2:3, 1:5:2, 3:1:-2) == a(2:3, 1:5:2, 3:1:-2)) .and. count(b == -1) == 48, &
      'a block with gaps in all dimensions')
    b = -1
    call MPI_Irecv(b(:, :, 1:3:2), 40, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(a(:, :, 2:3), 40, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b(:, :, 1:3:2) == a(:, :, 2:3)) .and. count(b == -1) == 20, 'two planes')
    b = -1
    call MPI_Irecv(b(1:0, :, :), 0, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(a(1:0, :, :), 0, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b == -1), 'an empty section')
  end subroutine shapes

  ! By a derived datatype.
  subroutine non_blocking()
    real(8) :: a(20), b(20)
    type(MPI_Request) :: r(2)
    type(MPI_Status) :: s(2)
    integer :: i, n
    a = [(real(100 * rank + i, 8), i = 1, 20)]
    b = -1
    call MPI_Irecv(b(20:1:-2), 10, MPI_DOUBLE_PRECISION, prev, 1, MPI_COMM_WORLD, r(1))
    call MPI_Isend(a(1:20:2), 10, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, r(2))
    call MPI_Waitall(2, r, s)
    call MPI_Get_elements(s(1), MPI_DOUBLE_PRECISION, n)
    call check(all(b(20:1:-2) == [(real(100 * prev + i, 8), i = 1, 20, 2)]) .and. all(b(1:19:2) == -1) .and. &
      n == 10, 'MPI_Irecv and MPI_Isend')
    b = -1
    call MPI_Isendrecv(a(1:20:4), 5, MPI_DOUBLE_PRECISION, next, 1, b(1:20:4), 5, MPI_DOUBLE_PRECISION, &
      prev, 1, MPI_COMM_WORLD, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(all(b(1:20:4) == [(real(100 * prev + i, 8), i = 1, 20, 4)]), 'MPI_Isendrecv')
  end subroutine non_blocking

  ! Fewer elements than the section has, whole lines and a piece of one.
  subroutine parts()
    integer :: a(4, 4, 4), b(4, 4, 4), n, i, wanted(27)
    type(MPI_Request) :: r
    logical :: right
    a = reshape([(i, i = 1, 64)], [4, 4, 4])
    wanted = reshape(a(1:3, 1:3, 1:3), [27])
    right = .true.
    do n = 1, 27
      b = -1
      call MPI_Irecv(b(2:4, 2:4, 2:4), n, MPI_INTEGER, prev, n, MPI_COMM_WORLD, r)
      call MPI_Send(a(1:3, 1:3, 1:3), n, MPI_INTEGER, next, n, MPI_COMM_WORLD)
      call MPI_Wait(r, MPI_STATUS_IGNORE)
      right = right .and. all(pack_of(b(2:4, 2:4, 2:4), n) == wanted(:n)) .and. count(b == -1) == 64 - n
    end do
    call check(right, '1 to 27 elements of a cube')
  end subroutine parts

  function pack_of(c, n) result(list)
    integer, intent(in) :: c(3, 3, 3), n
    integer :: list(n), all_of(27)
    all_of = reshape(c, [27])
    list = all_of(:n)
  end function pack_of

  ! Datatypes that are not those of the elements.
  subroutine other_types()
    integer :: a(12), b(12), i
    complex :: z(6), w(6)
    type(MPI_Datatype) :: two
    type(MPI_Request) :: r
    a = [(i, i = 1, 12)]
    b = -1
    call MPI_Irecv(b(1:12:2), 3, MPI_2INTEGER, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(a(1:12:2), 6, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b(1:12:2) == a(1:12:2)) .and. all(b(2:12:2) == -1), 'a pair in two elements')
    z = [(cmplx(i, -i), i = 1, 6)]
    w = 0
    call MPI_Irecv(w(2:6:2), 6, MPI_REAL, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(z(1:5:2), 3, MPI_COMPLEX, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(w(2:6:2) == z(1:5:2)) .and. w(1) == 0, 'two reals in an element')
    call MPI_Type_contiguous(2, MPI_INTEGER, two)
    call MPI_Type_commit(two)
    b = -1
    call MPI_Irecv(b(12:1:-3), 2, two, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(a, 4, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b(12:1:-3) == [1, 2, 3, 4]) .and. count(b == -1) == 8, 'a contiguous datatype')
    call MPI_Type_free(two)
  end subroutine other_types

  subroutine persistent()
    integer :: a(8), b(8), i
    type(MPI_Request) :: r(2)
    logical :: right
    call MPI_Recv_init(b(1:8:2), 4, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, r(1))
    call MPI_Send_init(a(2:8:2), 4, MPI_INTEGER, next, 0, MPI_COMM_WORLD, r(2))
    right = .true.
    do i = 1, 3
      a = 10 * rank + i
      b = -1
      call MPI_Startall(2, r)
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      right = right .and. all(b(1:8:2) == 10 * prev + i) .and. all(b(2:8:2) == -1)
    end do
    call check(right, 'persistent requests')
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
  end subroutine persistent

  subroutine collectives()
    integer :: a(2 * ranks), b(2 * ranks), m(3, 4), i
    a = rank
    b = -1
    call MPI_Allgather(a(1), 1, MPI_INTEGER, b(1:2*ranks:2), 1, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(b(1:2*ranks:2) == [(i, i = 0, ranks - 1)]) .and. all(b(2:2*ranks:2) == -1), 'MPI_Allgather')
    m = -1
    if (rank == ranks - 1) m(2, :) = [1, 2, 3, 4]
    call MPI_Bcast(m(2, :), 4, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD)
    call check(all(m(2, :) == [1, 2, 3, 4]) .and. count(m == -1) == 8, 'MPI_Bcast of a row')
    a(1:2*ranks:2) = [(100 * rank + i, i = 0, ranks - 1)]
    b = -1
    call MPI_Alltoall(a(1:2*ranks:2), 1, MPI_INTEGER, b(2*ranks:1:-2), 1, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(b(2*ranks:1:-2) == [(100 * i + rank, i = 0, ranks - 1)]), 'MPI_Alltoall')
  end subroutine collectives

  subroutine reductions()
    integer :: a(9), b(9)
    a = rank
    b = -1
    call MPI_Allreduce(a(1:9:2), b(1:9:2), 5, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(b(1:9:2) == ranks * (ranks - 1) / 2) .and. all(b(2:8:2) == -1), 'MPI_Allreduce')
    call MPI_Allreduce(MPI_IN_PLACE, a(9:1:-4), 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    call check(all(a(9:1:-4) == ranks - 1) .and. a(2) == rank, 'MPI_Allreduce in place')
  end subroutine reductions

  ! Copies that are given back when the request is complete.
  subroutine later()
    integer :: a(9), b(9), c(2 * ranks), i
    type(MPI_Request) :: r(3)
    logical :: flag
    a = rank
    b = -1
    c = -1
    call MPI_Iallreduce(a(1:9:2), b(1:9:2), 5, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(1))
    call MPI_Iallgather(a(2), 1, MPI_INTEGER, c(2:2*ranks:2), 1, MPI_INTEGER, MPI_COMM_WORLD, r(2))
    call MPI_Ibarrier(MPI_COMM_WORLD, r(3))
    call MPI_Waitall(3, r, MPI_STATUSES_IGNORE)
    call check(all(b(1:9:2) == ranks * (ranks - 1) / 2) .and. all(b(2:8:2) == -1), 'MPI_Iallreduce')
    call check(all(c(2:2*ranks:2) == [(i, i = 0, ranks - 1)]) .and. all(c(1:2*ranks:2) == -1), &
      'MPI_Iallgather')
    b = rank
    call MPI_Iallreduce(MPI_IN_PLACE, b(9:1:-4), 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, r(1))
    flag = .false.
    do while (.not. flag)
      call MPI_Test(r(1), flag, MPI_STATUS_IGNORE)
    end do
    call check(all(b(1:9:4) == ranks - 1) .and. b(2) == rank, 'in place, found complete by MPI_Test')
    b = -1
    if (rank == 0) b = [(i, i = 1, 9)]
    call MPI_Ibcast(b(1:9:2), 5, MPI_INTEGER, 0, MPI_COMM_WORLD, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(all(b(1:9:2) == [1, 3, 5, 7, 9]) .and. (rank == 0 .or. all(b(2:8:2) == -1)), 'MPI_Ibcast')
  end subroutine later

  ! Many at once, complete in any order.
  subroutine later_any()
    integer, parameter :: n = 20
    integer :: a(3, n), b(3, n), i, k, outcount, at(n)
    type(MPI_Request) :: r(n)
    logical :: right
    a = 1
    b = -1
    do i = 1, n
      a(2, i) = i
      call MPI_Iallreduce(a(1:3:2, i), b(1:3:2, i), 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(i))
    end do
    right = .true.
    do i = 1, 5
      call MPI_Waitany(n, r, k, MPI_STATUS_IGNORE)
      right = right .and. all(b(1:3:2, k) == ranks)
    end do
    call MPI_Waitsome(n, r, outcount, at, MPI_STATUSES_IGNORE)
    do i = 1, outcount
      right = right .and. all(b(1:3:2, at(i)) == ranks)
    end do
    call MPI_Waitall(n, r, MPI_STATUSES_IGNORE)
    call check(right .and. all(b(1:3:2, :) == ranks) .and. all(b(2, :) == -1), &
      'MPI_Waitany, MPI_Waitsome and MPI_Waitall give copies back')
  end subroutine later_any

  ! A request that is found complete and stays: what was received is in place, and its place the program's again.
  subroutine later_seen()
    integer :: a(3, 2), b(3, 2), k, outcount, at(2)
    type(MPI_Request) :: r(2)
    logical :: flag
    a = 1
    b = -1
    call MPI_Iallreduce(a(1:3:2, 1), b(1:3:2, 1), 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(1))
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(r(1), flag, MPI_STATUS_IGNORE)
    end do
    call check(all(b(1:3:2, 1) == ranks), 'MPI_Request_get_status gives copies back')
    b(:, 1) = -2
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(all(b(:, 1) == -2), '... once')
    call MPI_Iallreduce(a(1:3:2, 1), b(1:3:2, 1), 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(1))
    call MPI_Iallreduce(a(1:3:2, 2), b(1:3:2, 2), 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, r(2))
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status_any(2, r, k, flag, MPI_STATUS_IGNORE)
    end do
    call check(all(b(1:3:2, k) == merge(ranks, 1, k == 1)), '..._any')
    outcount = 0
    do while (outcount == 0)
      call MPI_Request_get_status_some(2, r, outcount, at, MPI_STATUSES_IGNORE)
    end do
    call check(all(b(1:3:2, at(1)) == merge(ranks, 1, at(1) == 1)), '..._some')
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status_all(2, r, flag, MPI_STATUSES_IGNORE)
    end do
    call check(all(b(1:3:2, 1) == ranks) .and. all(b(1:3:2, 2) == 1) .and. b(2, 1) == -2 .and. b(2, 2) == -1, '..._all')
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  end subroutine later_seen

  ! Arrays of datatypes, which C has to find until the end.
  subroutine later_types()
    integer :: a(0:ranks-1), b(0:2*ranks-1), ones(0:ranks-1), to(0:ranks-1), from(0:ranks-1), i
    type(MPI_Datatype) :: types(0:ranks-1)
    type(MPI_Request) :: r
    logical :: flag
    types = MPI_INTEGER
    ones = 1
    from = [(4 * i, i = 0, ranks - 1)]
    to = from
    a = [(100 * rank + i, i = 0, ranks - 1)]
    b = -1
    call MPI_Ialltoallw(a, ones, from, types, b(0:2*ranks-1:2), ones, to, types, MPI_COMM_WORLD, r)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b(0:2*ranks-1:2) == [(100 * i + rank, i = 0, ranks - 1)]) .and. all(b(1:2*ranks-1:2) == -1), &
      'MPI_Ialltoallw')
    b = -1
    call MPI_Alltoallw_init(a, ones, from, types, b(0:ranks-1), ones, to, types, MPI_COMM_WORLD, &
      MPI_INFO_NULL, r)
    do i = 1, 2
      call MPI_Start(r)
      call MPI_Request_get_status(r, flag, MPI_STATUS_IGNORE)
      call MPI_Wait(r, MPI_STATUS_IGNORE)
      call MPI_Request_get_status(r, flag, MPI_STATUS_IGNORE)
    end do
    call MPI_Request_free(r)
    call check(all(b(0:ranks-1) == [(100 * i + rank, i = 0, ranks - 1)]), 'MPI_Alltoallw_init')
  end subroutine later_types

  subroutine collectives_again()
    integer :: m(3, 4), i, ierr, class
    type(MPI_Request) :: r
    logical :: right
    call MPI_Bcast_init(m(2, :), 4, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, r)
    right = .true.
    do i = 1, 3
      m = -1
      if (rank == 0) m(2, :) = i
      call MPI_Start(r)
      call MPI_Wait(r, MPI_STATUS_IGNORE)
      right = right .and. all(m(2, :) == i) .and. count(m == -1) == 8
    end do
    call MPI_Request_free(r)
    call check(right, 'MPI_Bcast_init of a row')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Allreduce_init(MPI_IN_PLACE, m(2, :), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL, &
      r, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_BUFFER, 'a persistent reduction of a row is refused')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
  end subroutine collectives_again

  subroutine windows()
    use, intrinsic :: iso_c_binding
    integer, pointer :: mine(:)
    integer :: a(6), b(6), i
    type(MPI_Win) :: win
    type(c_ptr) :: base
    integer(MPI_ADDRESS_KIND) :: v
    logical :: flag
    call MPI_Win_allocate(24_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, mine, [6])
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, v, flag)
    call check(flag .and. v == 24, 'MPI_WIN_SIZE is a value')
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, v, flag)
    call check(flag .and. v == 4, 'MPI_WIN_DISP_UNIT too')
    call MPI_Win_get_attr(win, MPI_WIN_BASE, v, flag)
    call check(flag .and. v == transfer(base, v), 'MPI_WIN_BASE is the address')
    mine = -1
    a = [(100 * rank + i, i = 1, 6)]
    b = -1
    call MPI_Win_fence(0, win)
    call MPI_Put(a(1:5:2), 3, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(mine(1:3) == [1, 3, 5] + 100 * prev) .and. all(mine(4:) == -1), 'MPI_Put')
    call MPI_Get(b(2:6:2), 3, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(b(2:6:2) == [1, 3, 5] + 100 * rank) .and. all(b(1:5:2) == -1), 'MPI_Get')
    call MPI_Accumulate(a(1:5:2), 3, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    call check(all(mine(1:3) == 2 * ([1, 3, 5] + 100 * prev)), 'MPI_Accumulate')
    call MPI_Win_free(win)
    call check(win == MPI_WIN_NULL, 'MPI_Win_free')
  end subroutine windows

  subroutine packing()
    integer :: a(6), b(6), at
    character :: box(100)
    a = [1, 2, 3, 4, 5, 6]
    b = -1
    at = 0
    call MPI_Pack(a(1:5:2), 3, MPI_INTEGER, box(1:99:2), 50, at, MPI_COMM_WORLD)
    at = 0
    call MPI_Unpack(box(1:99:2), 50, at, b(2:6:2), 3, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(b(2:6:2) == [1, 3, 5]) .and. all(b(1:5:2) == -1), 'MPI_Pack and MPI_Unpack')
  end subroutine packing

  ! One component of an array of a type of the program.
  subroutine components()
    type :: point
      real(8) :: x, y
      integer :: k
    end type point
    type(point) :: p(5), q(5)
    integer :: i
    type(MPI_Request) :: r
    p = [(point(i, -i, 7), i = 1, 5)]
    q = point(0, 0, 0)
    call MPI_Irecv(q%y, 5, MPI_DOUBLE_PRECISION, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(p%y, 5, MPI_DOUBLE_PRECISION, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(q%y == p%y) .and. all(q%x == 0), 'a component of all elements')
  end subroutine components

  ! What cannot be expressed is an error, and nothing moves.
  ! No elements at all: what dimensions there are say nothing, and no buffer is looked at.
  subroutine nothing()
    integer, allocatable :: none(:)
    integer, pointer :: gone(:)
    integer, target :: a(20)
    integer, save :: b(20000, 4)
    integer :: first
    type(MPI_Request) :: r
    a = 1
    b = -1
    allocate(none(3))
    deallocate(none)
    call MPI_Bcast(none, 0, MPI_INTEGER, 0, MPI_COMM_WORLD)
    gone => a(1:20:2)
    nullify(gone)
    call MPI_Bcast(gone, 0, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call MPI_Ibcast(gone, 0, MPI_INTEGER, 0, MPI_COMM_WORLD, r)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call MPI_Irecv(gone, 0, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(none, 0, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(.not. allocated(none) .and. .not. associated(gone), 'arrays that are not there')
    first = 5
    call MPI_Bcast(b(1:20000:2, first:4), 0, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call MPI_Bcast(b(1:20000:2, first:2), 0, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call MPI_Irecv(b(1:20000:2, first:3), 0, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, r)
    call MPI_Send(b(1:20000:2, first:4), 0, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b == -1), 'no columns of lines with gaps')
  end subroutine nothing

  subroutine refused()
    integer :: a(8), ierr, class
    type(MPI_Datatype) :: gaps
    type(MPI_Request) :: r
    a = 1
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, gaps)
    call MPI_Type_commit(gaps)
    call MPI_Isend(a(1:8:2), 1, gaps, MPI_PROC_NULL, 0, MPI_COMM_SELF, r, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_BUFFER, 'gaps of a datatype in a section with gaps are refused')
    call MPI_Isend(a(1:8:2), 5, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_SELF, r, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_COUNT, 'and more elements than there are')
    call MPI_Type_free(gaps)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
  end subroutine refused

end program sections
