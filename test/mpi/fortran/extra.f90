! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! The extra state of callbacks is passed by reference: what one of them changes the next one finds. That of a generalized
! request is the variable of the program, that of a keyval its own. One text for the three interfaces: INTERFACE is 77
! for mpif.h, 90 for module mpi and 2008 for mpi_f08.
#if INTERFACE == 2008
#define HANDLE(kind) type(kind)
#define STATUS type(MPI_Status)
#define USE_MPI use mpi_f08
#define CALLBACKS extra_callbacks_2008
#define INCLUDE_MPI
#elif INTERFACE == 90
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define USE_MPI use mpi
#define CALLBACKS extra_callbacks_90
#define INCLUDE_MPI
#else
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define USE_MPI
#define CALLBACKS extra_callbacks_77
#define INCLUDE_MPI include 'mpif.h'
#endif
! The modules tell the compiler that a later call may change the variable. With mpif.h it has to be told by the program.
#if INTERFACE == 77
#define KEPT , volatile
#else
#define KEPT
#endif

module CALLBACKS
  implicit none
  integer :: queries, frees, cancels, copies, deletes, seen

contains

  subroutine reset()
    queries = 0
    frees = 0
    cancels = 0
    copies = 0
    deletes = 0
    seen = -1
  end subroutine reset

  subroutine query(extra_state, stat, ierror)
    USE_MPI
    INCLUDE_MPI
    integer(MPI_ADDRESS_KIND) :: extra_state
    STATUS :: stat
    integer :: ierror
    seen = int(extra_state)
    extra_state = extra_state + 1
    queries = queries + 1
    call MPI_Status_set_elements(stat, MPI_INTEGER, 0, ierror)
    call MPI_Status_set_cancelled(stat, .false., ierror)
  end subroutine query

  subroutine free_it(extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    seen = int(extra_state)
    extra_state = extra_state + 100
    frees = frees + 1
    ierror = MPI_SUCCESS
  end subroutine free_it

  subroutine cancel(extra_state, complete, ierror)
    USE_MPI
    INCLUDE_MPI
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    seen = int(extra_state)
    extra_state = extra_state + 10000
    if (.not. complete) cancels = cancels + 1
    ierror = MPI_SUCCESS
  end subroutine cancel

  subroutine copy_comm(object, keyval, extra_state, val_in, val_out, flag, ierror)
    USE_MPI
    INCLUDE_MPI
    HANDLE(MPI_Comm) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, val_in, val_out
    logical :: flag
    seen = int(extra_state)
    extra_state = extra_state + 1
    copies = copies + 1
    val_out = val_in
    val_in = val_in + 1000
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy_comm

  subroutine delete_comm(object, keyval, val, extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    HANDLE(MPI_Comm) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: val, extra_state
    seen = int(extra_state)
    extra_state = extra_state + 100
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine delete_comm

  subroutine copy_type(object, keyval, extra_state, val_in, val_out, flag, ierror)
    USE_MPI
    INCLUDE_MPI
    HANDLE(MPI_Datatype) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, val_in, val_out
    logical :: flag
    seen = int(extra_state)
    extra_state = extra_state + 1
    copies = copies + 1
    val_out = val_in
    val_in = val_in + 1000
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy_type

  subroutine delete_type(object, keyval, val, extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    HANDLE(MPI_Datatype) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: val, extra_state
    seen = int(extra_state)
    extra_state = extra_state + 100
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine delete_type

  subroutine copy_win(object, keyval, extra_state, val_in, val_out, flag, ierror)
    USE_MPI
    INCLUDE_MPI
    HANDLE(MPI_Win) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, val_in, val_out
    logical :: flag
    seen = int(extra_state)
    extra_state = extra_state + 1
    copies = copies + 1
    val_out = val_in
    val_in = val_in + 1000
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy_win

  subroutine delete_win(object, keyval, val, extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    HANDLE(MPI_Win) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: val, extra_state
    seen = int(extra_state)
    extra_state = extra_state + 100
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine delete_win

#if INTERFACE != 2008
  subroutine old_copy(comm, keyval, extra_state, val_in, val_out, flag, ierror)
    integer :: comm, keyval, extra_state, val_in, val_out, ierror
    logical :: flag
    seen = extra_state
    extra_state = extra_state + 1
    copies = copies + 1
    val_out = val_in
    flag = .true.
    ierror = 0
  end subroutine old_copy

  subroutine old_delete(comm, keyval, val, extra_state, ierror)
    integer :: comm, keyval, val, extra_state, ierror
    seen = extra_state
    extra_state = extra_state + 100
    deletes = deletes + 1
    ierror = 0
  end subroutine old_delete
#endif
end module CALLBACKS

program extra
  use CALLBACKS
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: rank, ierr
  external :: check, checked

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call request()
  call request_freed_early()
  call keyval_of_communicators()
  call keyval_of_types()
  call keyval_of_windows()
#if INTERFACE != 2008
  call keyval_before_mpi2()
#endif
  call MPI_Finalize(ierr)
  call checked(rank)

contains

  subroutine request()
    HANDLE(MPI_Request) :: r
    STATUS :: stat
    integer(MPI_ADDRESS_KIND) KEPT :: state
    logical :: flag
    call reset()
    state = 5
    call MPI_Grequest_start(query, free_it, cancel, state, r, ierr)
    state = 7
    call MPI_Cancel(r, ierr)
    call check(seen == 7 .and. cancels == 1, 'a cancel function gets what the variable is now')
    call check(state == 10007, 'and changes the variable')
    call MPI_Grequest_complete(r, ierr)
    call MPI_Request_get_status(r, flag, stat, ierr)
    call check(flag .and. queries > 0 .and. state == 10007 + queries, 'a query function does, too')
    call MPI_Wait(r, stat, ierr)
    call check(frees == 1 .and. seen == 10007 + queries .and. state == 10107 + queries, &
      'and a free function')
  end subroutine request

  subroutine request_freed_early()
    HANDLE(MPI_Request) :: r, again
    integer(MPI_ADDRESS_KIND) KEPT :: state
    call reset()
    state = 5
    call MPI_Grequest_start(query, free_it, cancel, state, r, ierr)
    again = r
    call MPI_Request_free(r, ierr)
    state = 8
    call MPI_Grequest_complete(again, ierr)
    call check(frees == 1 .and. state == 108 .and. r == MPI_REQUEST_NULL, &
      'so does the free function of a request that was freed before it was complete')
  end subroutine request_freed_early

  subroutine keyval_of_communicators()
    HANDLE(MPI_Comm) :: first, second, third
    integer(MPI_ADDRESS_KIND) :: state, val
    integer :: key
    logical :: flag
    call reset()
    state = 5
    call MPI_Comm_create_keyval(copy_comm, delete_comm, key, state, ierr)
    state = 7
    first = MPI_COMM_SELF
    call MPI_Comm_set_attr(first, key, 42_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(first, second, ierr)
    call check(copies == 1 .and. seen == 5, 'a copy function of communicators gets the state the keyval was made with')
    call MPI_Comm_dup(second, third, ierr)
    call check(copies == 2 .and. seen == 6, 'the next one what that made of it')
    call MPI_Comm_get_attr(first, key, val, flag, ierr)
    call check(flag .and. val == 42, 'an attribute that was copied stays as it was')
    call MPI_Comm_free(third, ierr)
    call check(deletes == 1 .and. seen == 7, 'a delete function of communicators what copy functions made of it')
    call MPI_Comm_free(second, ierr)
    call check(deletes == 2 .and. seen == 107, 'and what another made of it')
    call MPI_Comm_delete_attr(first, key, ierr)
    call check(deletes == 3 .and. seen == 207 .and. state == 7, &
      'and the variable of the program stays as it is')
    call MPI_Comm_free_keyval(key, ierr)
  end subroutine keyval_of_communicators

  subroutine keyval_of_types()
    HANDLE(MPI_Datatype) :: first, second, third
    integer(MPI_ADDRESS_KIND) :: state, val
    integer :: key
    logical :: flag
    call reset()
    state = 5
    call MPI_Type_create_keyval(copy_type, delete_type, key, state, ierr)
    state = 7
    call MPI_Type_contiguous(2, MPI_INTEGER, first, ierr)
    call MPI_Type_set_attr(first, key, 42_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_dup(first, second, ierr)
    call check(copies == 1 .and. seen == 5, 'a copy function of datatypes gets the state the keyval was made with')
    call MPI_Type_dup(second, third, ierr)
    call check(copies == 2 .and. seen == 6, 'the next one what that made of it')
    call MPI_Type_get_attr(first, key, val, flag, ierr)
    call check(flag .and. val == 42, 'an attribute that was copied stays as it was')
    call MPI_Type_free(third, ierr)
    call check(deletes == 1 .and. seen == 7, 'a delete function of datatypes what copy functions made of it')
    call MPI_Type_free(second, ierr)
    call check(deletes == 2 .and. seen == 107, 'and what another made of it')
    call MPI_Type_delete_attr(first, key, ierr)
    call check(deletes == 3 .and. seen == 207 .and. state == 7, &
      'and the variable of the program stays as it is')
    call MPI_Type_free(first, ierr)
    call MPI_Type_free_keyval(key, ierr)
  end subroutine keyval_of_types

  subroutine keyval_of_windows()
    HANDLE(MPI_Win) :: win
    integer, target, save :: memory(4)
    integer(MPI_ADDRESS_KIND) :: state
    integer :: key
    call reset()
    state = 5
    call MPI_Win_create_keyval(copy_win, delete_win, key, state, ierr)
    state = 7
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_set_attr(win, key, 42_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_set_attr(win, key, 43_MPI_ADDRESS_KIND, ierr)
    call check(deletes == 1 .and. seen == 5, 'a delete function of windows gets the state of the keyval')
    call MPI_Win_free(win, ierr)
    call check(deletes == 2 .and. seen == 105 .and. state == 7, 'the next one what that made of it')
    call MPI_Win_free_keyval(key, ierr)
  end subroutine keyval_of_windows
#if INTERFACE != 2008

  subroutine keyval_before_mpi2()
    integer :: dup, key, state
    call reset()
    state = 5
    call MPI_Keyval_create(old_copy, old_delete, key, state, ierr)
    state = 7
    call MPI_Attr_put(MPI_COMM_SELF, key, 42, ierr)
    call MPI_Comm_dup(MPI_COMM_SELF, dup, ierr)
    call check(copies == 1 .and. seen == 5, 'a copy function of MPI-1 gets the state of the keyval')
    call MPI_Comm_free(dup, ierr)
    call check(deletes == 1 .and. seen == 6, 'a delete function what that made of it')
    call MPI_Attr_delete(MPI_COMM_SELF, key, ierr)
    call check(deletes == 2 .and. seen == 106 .and. state == 7, 'and what another made of it')
    call MPI_Keyval_free(key, ierr)
  end subroutine keyval_before_mpi2
#endif
end program extra
