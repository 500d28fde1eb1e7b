! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! What came with MPI-4 and MPI-5: counts of MPI_COUNT_KIND, buffers that the library finds itself.
module large_callbacks
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine add_many(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    if (datatype == MPI_INTEGER) b = a + b
  end subroutine add_many
end module large_callbacks

program large
  use mpi_f08
  use large_callbacks
  implicit none
  integer :: rank, ranks, next, prev
  external :: check, checked

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = modulo(rank + 1, ranks)
  prev = modulo(rank - 1, ranks)
  call large_counts()
  call large_arrays()
  call automatic_buffers()
  call MPI_Finalize()
  call checked(rank)

contains

  subroutine large_counts()
    integer(MPI_COUNT_KIND) :: n, m, lb, extent
    integer(MPI_COUNT_KIND), parameter :: three = 3, lots = 2_MPI_COUNT_KIND**33
    integer :: a(3), b(3), at, ierr
    type(MPI_Datatype) :: t
    type(MPI_Status) :: s
    type(MPI_Op) :: op
    a = [1, 2, 3] + rank
    call MPI_Sendrecv(a, three, MPI_INTEGER, next, 0, b, three, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, s)
    call MPI_Get_count(s, MPI_INTEGER, n)
    call check(all(b == [1, 2, 3] + prev) .and. n == 3, 'counts of MPI_COUNT_KIND')
    call MPI_Type_contiguous(lots, MPI_BYTE, t)
    call MPI_Type_size(t, n)
    call MPI_Type_get_extent(t, lb, extent)
    call check(n == lots .and. extent == lots, 'a datatype of 8 GiB')
    call MPI_Type_size(t, at)
    call check(at == MPI_UNDEFINED, 'whose size is no INTEGER')
    call MPI_Status_set_elements_x(s, MPI_BYTE, lots)
    call MPI_Get_elements(s, MPI_BYTE, m)
    call check(m == lots, 'a status of 8 GiB')
    call MPI_Op_create_c(add_many, .true., op, ierr)
    call MPI_Allreduce(a, b, three, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(all(b == [1, 2, 3] * ranks + ranks * (ranks - 1) / 2), 'MPI_Op_create_c')
    call MPI_Op_free(op)
    call MPI_Type_free(t)
  end subroutine large_counts

  subroutine large_arrays()
    integer(MPI_COUNT_KIND) :: counts(0:ranks-1), n
    integer(MPI_ADDRESS_KIND) :: at(0:ranks-1)
    integer :: list(0:ranks-1), i, combiner
    type(MPI_Datatype) :: t
    integer(MPI_COUNT_KIND) :: ni, na, nl, nd
    counts = 1
    at = [(int(ranks - 1 - i, MPI_ADDRESS_KIND), i = 0, ranks - 1)]
    n = 1
    call MPI_Allgatherv(rank, n, MPI_INTEGER, list, counts, at, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(list == [(ranks - 1 - i, i = 0, ranks - 1)]), 'MPI_Allgatherv with arrays of them')
    call MPI_Type_indexed(2_MPI_COUNT_KIND, [1_MPI_COUNT_KIND, 2_MPI_COUNT_KIND], &
      [0_MPI_COUNT_KIND, 2_MPI_COUNT_KIND**34], MPI_BYTE, t)
    call MPI_Type_get_envelope(t, ni, na, nl, nd, combiner)
    call check(nl == 5 .and. nd == 1 .and. combiner == MPI_COMBINER_INDEXED, 'MPI_Type_get_envelope')
    call MPI_Type_free(t)
  end subroutine large_arrays

  subroutine automatic_buffers()
    type(c_ptr) :: back
    type(MPI_Comm) :: comm
    integer :: n, got
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0)
    call MPI_Bsend(rank, 1, MPI_INTEGER, next, 0, comm)
    call MPI_Recv(got, 1, MPI_INTEGER, prev, 0, comm, MPI_STATUS_IGNORE)
    call MPI_Comm_flush_buffer(comm)
    call MPI_Comm_detach_buffer(comm, back, n)
    call check(got == prev .and. c_associated(back, c_loc(MPI_BUFFER_AUTOMATIC)), 'MPI_BUFFER_AUTOMATIC')
    call MPI_Comm_free(comm)
  end subroutine automatic_buffers

end program large
