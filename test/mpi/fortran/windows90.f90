! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Windows of all flavours with module mpi and with module mpi_f08: memory that MPI allocates as a Fortran pointer,
! requests, atomic operations, attributes and error handlers. Every rank works on the window of the next one.
module window_callbacks
  use mpi
  implicit none
  integer :: deleted = 0, errors = 0
contains
  subroutine delete_it(win, keyval, val, extra, ierr)
    integer :: win, keyval, ierr
    integer(MPI_ADDRESS_KIND) :: val, extra
    ierr = MPI_SUCCESS
    if (win /= MPI_WIN_NULL .and. keyval /= MPI_KEYVAL_INVALID .and. extra == 5) deleted = int(val)
  end subroutine delete_it

  subroutine on_error(win, code)
    integer :: win, code
    if (win /= MPI_WIN_NULL .and. code /= MPI_SUCCESS) errors = errors + 1
  end subroutine on_error
end module window_callbacks

module windows08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: errors08 = 0
contains
  subroutine on_error08(win, code)
    type(MPI_Win) :: win
    integer :: code
    if (win /= MPI_WIN_NULL .and. code /= MPI_SUCCESS) errors08 = errors08 + 1
  end subroutine on_error08

  subroutine shared08(rank, ranks)
    integer, intent(in) :: rank, ranks
    integer, pointer :: mine(:), theirs(:)
    integer(MPI_ADDRESS_KIND) :: bytes
    integer :: unit, left
    type(c_ptr) :: at
    type(MPI_Win) :: win
    left = mod(rank + ranks - 1, ranks)
    call MPI_Win_allocate_shared(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, at, win)
    call c_f_pointer(at, mine, [10])
    call MPI_Win_lock_all(MPI_MODE_NOCHECK, win)
    mine = rank
    call MPI_Win_sync(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_sync(win)
    call MPI_Win_shared_query(win, left, bytes, unit, at)
    call c_f_pointer(at, theirs, [10])
    call check(bytes == 40 .and. unit == 4 .and. all(theirs == left), &
      'mpi_f08: memory of a shared window is seen by loads')
    call MPI_Win_unlock_all(win)
    call MPI_Win_free(win)
  end subroutine shared08

  subroutine atomics08(rank, ranks)
    integer, intent(in) :: rank, ranks
    integer(c_int64_t), pointer :: mine(:)
    integer(c_int64_t) :: one, none, own, pair(2), old, had(2)
    type(c_ptr) :: at
    type(MPI_Win) :: win
    type(MPI_Request) :: request(2)
    type(MPI_Errhandler) :: handler
    integer(MPI_ADDRESS_KIND) :: value
    integer :: next, keyval, ierr, i
    logical :: flag
    next = mod(rank + 1, ranks)
    call MPI_Win_allocate(64_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, at, win)
    call c_f_pointer(at, mine, [8])
    mine = 0
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock_all(0, win)
    one = 1
    none = 0
    own = rank + 1
    pair = [rank, rank + 1]
    do i = 1, 10
      call MPI_Fetch_and_op(one, old, MPI_INTEGER8, 0, 0_MPI_ADDRESS_KIND, MPI_SUM, win)
      call MPI_Win_flush(0, win)
    end do
    call MPI_Compare_and_swap(own, none, old, MPI_INTEGER8, next, 1_MPI_ADDRESS_KIND, win)
    call MPI_Win_flush(next, win)
    call MPI_Rput(pair, 2, MPI_INTEGER8, next, 2_MPI_ADDRESS_KIND, 2, MPI_INTEGER8, win, request(1))
    call MPI_Raccumulate(one, 1, MPI_INTEGER8, next, 4_MPI_ADDRESS_KIND, 1, MPI_INTEGER8, MPI_MAX, win, request(2))
    call MPI_Waitall(2, request, MPI_STATUSES_IGNORE)
    call MPI_Win_flush(next, win)
    call MPI_Rget(had, 2, MPI_INTEGER8, next, 2_MPI_ADDRESS_KIND, 2, MPI_INTEGER8, win, request(1))
    call MPI_Wait(request(1), MPI_STATUS_IGNORE)
    call MPI_Win_unlock_all(win)
    call check(old == 0 .and. all(had == [rank, rank + 1]), 'mpi_f08: compare and swap, requests')
    call MPI_Barrier(MPI_COMM_WORLD)
    call check(mine(2) == mod(rank + ranks - 1, ranks) + 1 .and. mine(5) == 1 .and. &
      (rank /= 0 .or. mine(1) == 10 * ranks), 'mpi_f08: what others did is there')
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag)
    call check(flag .and. value == transfer(at, value), 'mpi_f08: the base is where the pointer points')
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag)
    call check(flag .and. value == MPI_WIN_FLAVOR_ALLOCATE, 'mpi_f08: the flavour')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
    call MPI_Win_set_attr(win, keyval, 2_MPI_ADDRESS_KIND**40)
    call MPI_Win_get_attr(win, keyval, value, flag)
    call check(flag .and. value == 2_MPI_ADDRESS_KIND**40, 'mpi_f08: an attribute of its own')
    call MPI_Win_free_keyval(keyval)
    call MPI_Win_create_errhandler(on_error08, handler)
    call MPI_Win_set_errhandler(win, handler)
    call MPI_Put(one, 1, MPI_INTEGER8, next, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER8, win, ierr)
    call check(errors08 == 1 .and. ierr /= MPI_SUCCESS, 'mpi_f08: an operation outside of epochs is told to the handler')
    call MPI_Errhandler_free(handler)
    call MPI_Win_free(win)
    call check(win == MPI_WIN_NULL, 'mpi_f08: the window is gone')
  end subroutine atomics08
end module windows08

program windows90
  use window_callbacks
  use windows08, only: shared08, atomics08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: ierr, rank, ranks, next
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  call allocated()
  call dynamic()
  call shared08(rank, ranks)
  call atomics08(rank, ranks)
  call MPI_Finalize(ierr)
  call checked(rank)
contains
  subroutine allocated()
    integer(MPI_ADDRESS_KIND) :: value
    integer :: win, keyval, handler, more(2), old(2), request
    integer, pointer :: mine(:)
    type(c_ptr) :: at
    logical :: flag
    call MPI_Win_allocate(400_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, at, win, ierr)
    call c_f_pointer(at, mine, [100])
    mine = rank
    more = [1, 2]
    call MPI_Win_fence(0, win, ierr)
    call MPI_Get_accumulate(more, 2, MPI_INTEGER, old, 2, MPI_INTEGER, next, 3_MPI_ADDRESS_KIND, 2, MPI_INTEGER, &
      MPI_SUM, win, ierr)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
    call check(all(old == next) .and. mine(4) == rank + 1 .and. mine(5) == rank + 2 .and. mine(6) == rank, &
      'mpi: get and accumulate in memory that MPI allocated')
    call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win, ierr)
    call MPI_Rget_accumulate(MPI_BOTTOM, 0, MPI_INTEGER, old, 2, MPI_INTEGER, next, 3_MPI_ADDRESS_KIND, 2, MPI_INTEGER, &
      MPI_NO_OP, win, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Win_unlock(next, win, ierr)
    call check(all(old == next + [1, 2]), 'mpi: MPI_NO_OP needs no origin')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_it, keyval, 5_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_set_attr(win, keyval, 31_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_get_attr(win, keyval, value, flag, ierr)
    call check(flag .and. value == 31, 'mpi: an attribute')
    call MPI_Win_create_errhandler(on_error, handler, ierr)
    call MPI_Win_set_errhandler(win, handler, ierr)
    call MPI_Win_unlock(next, win, ierr)
    call check(errors == 1 .and. ierr /= MPI_SUCCESS, 'mpi: what is wrong is told to the handler')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Win_free(win, ierr)
    call check(deleted == 31, 'mpi: the attribute ends with the window')
    call MPI_Win_free_keyval(keyval, ierr)
  end subroutine allocated

  subroutine dynamic()
    integer, asynchronous, save, target :: place(10)
    integer(MPI_ADDRESS_KIND) :: here, there
    integer :: win
    place = -1
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_attach(win, place, 40_MPI_ADDRESS_KIND, ierr)
    call MPI_Get_address(place, here, ierr)
    call MPI_Sendrecv(here, 1, MPI_AINT, mod(rank + ranks - 1, ranks), 0, there, 1, MPI_AINT, next, 0, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Win_fence(0, win, ierr)
    call MPI_Put(rank, 1, MPI_INTEGER, next, MPI_Aint_add(there, 8_MPI_ADDRESS_KIND), 1, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call MPI_F_sync_reg(place)
    call check(place(3) == mod(rank + ranks - 1, ranks) .and. place(2) == -1, 'mpi: memory attached to a dynamic window')
    call MPI_Win_detach(win, place, ierr)
    call MPI_Win_free(win, ierr)
  end subroutine dynamic
end program windows90
