! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Addresses as displacements at MPI_BOTTOM, with predefined datatypes: all-to-alls whose displacements are of
! MPI_ADDRESS_KIND. One text for the three interfaces: INTERFACE is 77 for mpif.h, 90 for module mpi and 2008 for mpi_f08.
#if INTERFACE == 2008
#define HANDLE(kind) type(kind)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#elif INTERFACE == 90
#define HANDLE(kind) integer
#define USE_MPI use mpi
#define INCLUDE_MPI
#else
#define HANDLE(kind) integer
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#endif
! The modules tell the compiler that later calls may look at what MPI_Get_address was given. With mpif.h the program does.
#if INTERFACE == 77
#define KEPT , volatile
#else
#define KEPT
#endif

program bottom
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: rank, ranks, left, right, ierr
  integer, target KEPT :: sent(2), got(2)
  integer(MPI_ADDRESS_KIND) :: from(2), to(2)
  integer :: ones(2)
  HANDLE(MPI_Comm) :: ring
  HANDLE(MPI_Datatype) :: types(2)
  HANDLE(MPI_Request) :: r
  external :: check, checked

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring, ierr)
  call MPI_Cart_shift(ring, 0, 1, left, right, ierr)
  call MPI_Get_address(sent(1), from(1), ierr)
  call MPI_Get_address(sent(2), from(2), ierr)
  call MPI_Get_address(got(1), to(1), ierr)
  call MPI_Get_address(got(2), to(2), ierr)
  sent = [10 * rank + 1, 10 * rank + 2]
  types = MPI_INTEGER
  ones = 1

  got = -1
  call MPI_Neighbor_alltoallw(MPI_BOTTOM, ones, from, types, MPI_BOTTOM, ones, to, types, ring, ierr)
  call compare('MPI_Neighbor_alltoallw')
  call MPI_Ineighbor_alltoallw(MPI_BOTTOM, ones, from, types, MPI_BOTTOM, ones, to, types, ring, r, ierr)
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
  call compare('MPI_Ineighbor_alltoallw')
  call MPI_Neighbor_alltoallw_init(MPI_BOTTOM, ones, from, types, MPI_BOTTOM, ones, to, types, ring, MPI_INFO_NULL, r, &
    ierr)
  call MPI_Start(r, ierr)
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
  call MPI_Request_free(r, ierr)
  call compare('MPI_Neighbor_alltoallw_init')
#if INTERFACE == 2008
  call large()
#endif
  call MPI_Finalize(ierr)
  call checked(rank)

contains

  subroutine compare(name)
    character(*), intent(in) :: name
    call check(ierr == MPI_SUCCESS .and. got(1) == 10 * left + 2 .and. got(2) == 10 * right + 1, name // ' at MPI_BOTTOM')
    got = -1
  end subroutine compare
#if INTERFACE == 2008

  ! the forms with large counts, whose displacements are addresses, too
  subroutine large()
    integer(MPI_COUNT_KIND) :: counts(ranks)
    integer(MPI_ADDRESS_KIND) :: from_all(ranks), to_all(ranks)
    type(MPI_Datatype) :: all_types(ranks)
    integer, target :: out(ranks), in(ranks)
    integer :: i
    out = [(100 * rank + i, i = 1, ranks)]
    do i = 1, ranks
      call MPI_Get_address(out(i), from_all(i))
      call MPI_Get_address(in(i), to_all(i))
    end do
    all_types = MPI_INTEGER
    in = -1
    counts = 1
    call MPI_Alltoallw(MPI_BOTTOM, counts, from_all, all_types, MPI_BOTTOM, counts, to_all, all_types, MPI_COMM_WORLD, ierr)
    call check(ierr == MPI_SUCCESS .and. all(in == [(100 * i + rank + 1, i = 0, ranks - 1)]), 'MPI_Alltoallw_c at MPI_BOTTOM')
    in = -1
    counts = 4
    call MPI_Alltoallv(MPI_BOTTOM, counts, from_all, MPI_BYTE, MPI_BOTTOM, counts, to_all, MPI_BYTE, MPI_COMM_WORLD, ierr)
    call check(ierr == MPI_SUCCESS .and. all(in == [(100 * i + rank + 1, i = 0, ranks - 1)]), 'MPI_Alltoallv_c at MPI_BOTTOM')
    in = -1
    counts = 1
    call MPI_Ialltoallw(MPI_BOTTOM, counts, from_all, all_types, MPI_BOTTOM, counts, to_all, all_types, MPI_COMM_WORLD, r, &
      ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(ierr == MPI_SUCCESS .and. all(in == [(100 * i + rank + 1, i = 0, ranks - 1)]), 'MPI_Ialltoallw_c at MPI_BOTTOM')
  end subroutine large
#endif
end program bottom
