! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Fortran and C in one program (mixed.c): handles, statuses and attributes that go from one to the other, and
! profiling functions in C and in Fortran.
program mixed
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function c_set_attribute(comm, keyval, value) bind(C)
      import
      integer(c_int), value :: comm, keyval, value
    end function c_set_attribute
    integer(c_intptr_t) function c_attribute(comm, keyval, wide) bind(C)
      import
      integer(c_int), value :: comm, keyval, wide
    end function c_attribute
    integer(c_int) function c_keyval() bind(C)
      import
    end function c_keyval
    integer(c_int) function c_status(status, tag) bind(C)
      import
      integer(c_int) :: status(*)
      integer(c_int), value :: tag
    end function c_status
    integer(c_int) function c_is_ignored(status) bind(C)
      import
      integer(c_int) :: status(*)
    end function c_is_ignored
    integer(c_int) function c_sends() bind(C)
      import
    end function c_sends
    subroutine c_properties(sizes, yes, no) bind(C)
      import
      integer(c_int) :: sizes(4), yes, no
    end subroutine c_properties
  end interface
  integer :: rank, ierr, key, dup, n, status(MPI_STATUS_SIZE), yes, no, sizes(4), before
  integer(MPI_ADDRESS_KIND) :: v
  logical :: flag
  external :: check, checked
  integer :: fortran_barriers
  common /profile/ fortran_barriers

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, dup, ierr)

  key = c_keyval()
  call MPI_Comm_set_attr(dup, key, 2_MPI_ADDRESS_KIND**35 + 1, ierr)
  call check(c_attribute(dup, key, 1) == 2_8**35 + 1, 'C finds a pointer to what Fortran set')
  call MPI_Attr_put(dup, key, 17, ierr)
  call check(c_attribute(dup, key, 0) == 17, 'to an int, if that was an INTEGER')
  ierr = c_set_attribute(dup, key, 23)
  call MPI_Comm_get_attr(dup, key, v, flag, ierr)
  call check(flag .and. v == 23, 'Fortran finds what C set, as an integer')

  call MPI_Sendrecv(1, 1, MPI_INTEGER, 0, 9, n, 1, MPI_INTEGER, 0, 9, dup, status, ierr)
  call check(c_status(status, 9) == 1, 'a status of Fortran is one in C')
  call check(c_is_ignored(MPI_STATUS_IGNORE) == 1 .and. c_is_ignored(status) == 0, &
    'C knows Fortran''s MPI_STATUS_IGNORE')

  call c_properties(sizes, yes, no)
  call check(all(sizes == [4, 4, 4, 8]), 'the C library knows the sizes of this compiler')
  call check(yes == transfer(.true., yes) .and. no == transfer(.false., no), &
    'and its .TRUE. and .FALSE.')

  before = c_sends()
  call MPI_Send(1, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierr)
  call check(c_sends() == before + 1, 'MPI_Send of a C library is called by Fortran''s')
  call PMPI_Send(1, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierr)
  call check(c_sends() == before + 1, 'and PMPI_Send is not')
  fortran_barriers = 0
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call check(fortran_barriers == 1 .and. ierr == MPI_SUCCESS, 'MPI_Barrier can be replaced in Fortran')
  call MPI_Comm_free(dup, ierr)
  call MPI_Finalize(ierr)
  call checked(rank)
end program mixed

! Takes the place of the library's.
subroutine mpi_barrier(comm, ierr)
  implicit none
  integer :: comm, ierr, fortran_barriers
  common /profile/ fortran_barriers
  external :: pmpi_barrier
  fortran_barriers = fortran_barriers + 1
  call pmpi_barrier(comm, ierr)
end subroutine mpi_barrier
