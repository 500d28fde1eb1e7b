! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Attributes, error handlers, info objects, memory, kinds, generalized requests and strings with module mpi.
module object_callbacks
  use mpi
  implicit none
  integer :: copies = 0, deleted = 0, errors = 0, last_error = 0
  integer :: queried = 0, freed = 0, cancelled = 0
contains
  subroutine copy_it(comm, keyval, extra, val_in, val_out, flag, ierr)
    integer :: comm, keyval, ierr
    integer(MPI_ADDRESS_KIND) :: extra, val_in, val_out
    logical :: flag
    copies = copies + 1
    val_out = val_in + extra
    flag = .true.
    ierr = MPI_SUCCESS
    if (comm == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID) ierr = MPI_ERR_OTHER
  end subroutine copy_it

  subroutine delete_it(comm, keyval, val, extra, ierr)
    integer :: comm, keyval, ierr
    integer(MPI_ADDRESS_KIND) :: val, extra
    deleted = deleted + 1
    ierr = merge(MPI_SUCCESS, MPI_ERR_OTHER, extra == 2_MPI_ADDRESS_KIND**40 .and. val /= 13 .and. &
      comm /= MPI_COMM_NULL .and. keyval /= MPI_KEYVAL_INVALID)
  end subroutine delete_it

  subroutine on_error(comm, code)
    integer :: comm, code
    errors = errors + 1
    last_error = code
    if (comm == MPI_COMM_NULL) errors = -1000
  end subroutine on_error

  subroutine query_it(extra, status, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierr
    queried = queried + 1
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra), ierr)
    call MPI_Status_set_cancelled(status, cancelled > 0, ierr)
    status(MPI_SOURCE) = 3
    status(MPI_TAG) = 4
  end subroutine query_it

  subroutine free_it(extra, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierr
    freed = freed + int(extra)
    ierr = MPI_SUCCESS
  end subroutine free_it

  subroutine cancel_it(extra, complete, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierr
    if (.not. complete) cancelled = cancelled + int(extra)
    ierr = MPI_SUCCESS
  end subroutine cancel_it
end module object_callbacks

program objects
  use mpi
  use object_callbacks
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, ierr
  external :: check, checked

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call attributes()
  call attributes_of_types()
  call handlers()
  call codes()
  call infos()
  call memory()
  call kinds()
  call generalized()
  call strings()
  call twins()
  call MPI_Finalize(ierr)
  call checked(rank)

contains

  subroutine attributes()
    integer :: key, other, dup, old
    integer(MPI_ADDRESS_KIND) :: v
    integer(MPI_ADDRESS_KIND), parameter :: far = 2_MPI_ADDRESS_KIND**40
    logical :: flag
    call MPI_Comm_create_keyval(copy_it, delete_it, key, far, ierr)
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, -3_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_get_attr(MPI_COMM_SELF, key, v, flag, ierr)
    call check(flag .and. v == -3, 'an attribute of MPI_ADDRESS_KIND')
    call MPI_Comm_dup(MPI_COMM_SELF, dup, ierr)
    call MPI_Comm_get_attr(dup, key, v, flag, ierr)
    call check(flag .and. v == far - 3 .and. copies == 1, 'it is copied with all its bits')
    call MPI_Attr_get(dup, key, old, flag, ierr)
    call check(flag .and. old == -3, 'MPI_Attr_get gives its lower half')
    call MPI_Comm_free(dup, ierr)
    call check(deleted == 1, 'its delete function is called')
    call MPI_Attr_put(MPI_COMM_SELF, key, -9, ierr)
    call MPI_Comm_get_attr(MPI_COMM_SELF, key, v, flag, ierr)
    call check(flag .and. v == -9, 'what MPI_Attr_put puts has its sign')
    call MPI_Comm_delete_attr(MPI_COMM_SELF, key, ierr)
    call MPI_Comm_free_keyval(key, ierr)
    call check(key == MPI_KEYVAL_INVALID .and. deleted == 3, 'MPI_Comm_free_keyval')
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, other, &
      0_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, far, ierr)
    call MPI_Comm_set_attr(MPI_COMM_SELF, other, far, ierr)
    call MPI_Comm_dup(MPI_COMM_SELF, dup, ierr)
    call MPI_Comm_get_attr(dup, key, v, flag, ierr)
    call check(flag .and. v == far, 'MPI_COMM_DUP_FN')
    call MPI_Comm_get_attr(dup, other, v, flag, ierr)
    call check(.not. flag, 'MPI_COMM_NULL_COPY_FN')
    call MPI_Comm_free(dup, ierr)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, v, flag, ierr)
    call check(.not. flag .or. v == 0 .or. v == 1, 'MPI_WTIME_IS_GLOBAL is a value')
  end subroutine attributes

  subroutine attributes_of_types()
    integer :: key, t, u
    integer(MPI_ADDRESS_KIND) :: v
    logical :: flag
    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_contiguous(2, MPI_REAL, t, ierr)
    call MPI_Type_set_attr(t, key, 77_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_dup(t, u, ierr)
    call MPI_Type_get_attr(u, key, v, flag, ierr)
    call check(flag .and. v == 77, 'attributes of datatypes')
    call MPI_Type_delete_attr(u, key, ierr)
    call MPI_Type_get_attr(u, key, v, flag, ierr)
    call check(.not. flag, 'MPI_Type_delete_attr')
    call MPI_Type_free(t, ierr)
    call MPI_Type_free(u, ierr)
    call MPI_Type_free_keyval(key, ierr)
  end subroutine attributes_of_types

  subroutine handlers()
    integer :: handler, now, class, n
    call MPI_Comm_create_errhandler(on_error, handler, ierr)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler, ierr)
    call MPI_Comm_get_errhandler(MPI_COMM_SELF, now, ierr)
    call check(now == handler, 'MPI_Comm_get_errhandler')
    call MPI_Send(rank, 1, MPI_INTEGER, 5, 0, MPI_COMM_SELF, ierr)
    call MPI_Error_class(ierr, class, n)
    call check(errors == 1 .and. last_error == ierr .and. class == MPI_ERR_RANK, &
      'an error handler is called with the code that is returned')
    call MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TAG, ierr)
    call check(errors == 2 .and. last_error == MPI_ERR_TAG, 'MPI_Comm_call_errhandler')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
    call MPI_Errhandler_free(handler, ierr)
    call check(handler == MPI_ERRHANDLER_NULL, 'MPI_Errhandler_free')
    call MPI_Recv(rank, 1, MPI_INTEGER, 0, -8, MPI_COMM_SELF, MPI_STATUS_IGNORE, ierr)
    call MPI_Error_class(ierr, class, n)
    call check(class == MPI_ERR_TAG .and. errors == 2, 'MPI_ERRORS_RETURN')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, ierr)
  end subroutine handlers

  subroutine codes()
    integer :: class, code, n
    character(len=MPI_MAX_ERROR_STRING) :: text
    call MPI_Add_error_class(class, ierr)
    call MPI_Add_error_code(class, code, ierr)
    call MPI_Add_error_string(code, 'out of luck  ', ierr)
    call MPI_Error_string(code, text, n, ierr)
    call check(text == 'out of luck' .and. n == 11, 'MPI_Add_error_string')
    call MPI_Error_class(code, n, ierr)
    call check(n == class, 'MPI_Add_error_class and MPI_Add_error_code')
  end subroutine codes

  subroutine infos()
    integer :: info, n
    logical :: flag
    character(len=12) :: value
    character(len=MPI_MAX_INFO_KEY) :: key
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, '  key ', ' some value  ', ierr)
    value = 'xxxxxxxxxxxx'
    call MPI_Info_get(info, 'key', 12, value, flag, ierr)
    call check(flag .and. value == 'some value', 'blanks around keys and values do not count')
    value = 'untouched'
    call MPI_Info_get(info, 'nothing', 12, value, flag, ierr)
    call check(.not. flag .and. value == 'untouched', 'a key that is not there')
    call MPI_Info_get_valuelen(info, 'key ', n, flag, ierr)
    call check(flag .and. n == 10, 'MPI_Info_get_valuelen')
    call MPI_Info_get(info, 'key', 4, value, flag, ierr)
    call check(flag .and. value == 'some', 'as much of a value as was asked for')
    call MPI_Info_get_nthkey(info, 0, key, ierr)
    call check(key == 'key', 'MPI_Info_get_nthkey')
    n = 5
    value = 'xxxxxxxxxxxx'
    call MPI_Info_get_string(info, 'key', n, value, flag, ierr)
    call check(flag .and. n == 10 .and. value == 'some', 'MPI_Info_get_string counts no closing zero')
    n = 0
    value = 'untouched'
    call MPI_Info_get_string(info, 'key', n, value, flag, ierr)
    call check(flag .and. n == 10 .and. value == 'untouched', 'or only asks for the length')
    call MPI_Info_get_nkeys(info, n, ierr)
    call MPI_Info_delete(info, 'key  ', ierr)
    call MPI_Info_free(info, ierr)
    call check(n == 1 .and. info == MPI_INFO_NULL, 'MPI_Info_delete and MPI_Info_free')
    call MPI_Info_create_env(info, ierr)
    call check(ierr == MPI_SUCCESS .and. info /= MPI_INFO_NULL, 'MPI_Info_create_env')
    call MPI_Info_free(info, ierr)
  end subroutine infos

  subroutine memory()
    integer(MPI_ADDRESS_KIND) :: where, again
    type(c_ptr) :: at
    real(8), pointer :: x(:)
    call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, at, ierr)
    call c_f_pointer(at, x, [10])
    x = 1
    x(10) = 2
    call check(sum(x) == 11, 'MPI_Alloc_mem gives a C_PTR')
    call MPI_Get_address(x, again, ierr)
    call check(again == transfer(at, again), 'MPI_Get_address')
    call MPI_Free_mem(x, ierr)
    call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, where, ierr)
    call check(ierr == MPI_SUCCESS .and. where /= 0, 'or an INTEGER')
    at = transfer(where, at)
    call c_f_pointer(at, x, [10])
    call MPI_Free_mem(x, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Free_mem')
  end subroutine memory

  subroutine kinds()
    integer, parameter :: quad = selected_real_kind(30), long = selected_int_kind(18)
    integer :: n, t, u
    real(quad) :: x
    integer(long) :: k
    character(len=7) :: word
    complex(kind(1d0)) :: z(2)
    logical :: l
    call MPI_Sizeof(x, n, ierr)
    call check(n == 16, 'MPI_Sizeof of a REAL of 30 digits')
    call MPI_Sizeof(z, n, ierr)
    call check(n == 16, 'MPI_Sizeof of an array of COMPLEX')
    call MPI_Sizeof(l, n, ierr)
    call check(n == 4, 'MPI_Sizeof of a LOGICAL')
    call MPI_Sizeof(word(1:1), n, ierr)
    call check(n == 1, 'MPI_Sizeof of a CHARACTER')
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, t, ierr)
    call check(t == MPI_REAL8 .or. t == MPI_DOUBLE_PRECISION, 'MPI_Type_match_size')
    call MPI_Type_create_f90_integer(18, t, ierr)
    k = 3_long**30
    call MPI_Allreduce(MPI_IN_PLACE, k, 1, t, MPI_MAX, MPI_COMM_WORLD, ierr)
    call check(k == 3_long**30, 'MPI_Type_create_f90_integer')
    call MPI_Type_create_f90_real(15, 300, t, ierr)
    call MPI_Type_size(t, n, ierr)
    call MPI_Type_create_f90_real(15, 300, u, ierr)
    call check(n == 8 .and. t == u, 'MPI_Type_create_f90_real')
    call MPI_Type_create_f90_complex(6, 30, t, ierr)
    call MPI_Type_size(t, n, ierr)
    call check(n == 8, 'MPI_Type_create_f90_complex')
    x = 1.25_quad
    call MPI_Type_create_f90_real(30, MPI_UNDEFINED, t, ierr)
    call MPI_Allreduce(MPI_IN_PLACE, x, 1, t, MPI_MAX, MPI_COMM_WORLD, ierr)
    call check(x == 1.25_quad, 'a REAL of 30 digits in a reduction')
  end subroutine kinds

  subroutine generalized()
    integer :: request, status(MPI_STATUS_SIZE), n
    logical :: flag
    call MPI_Grequest_start(query_it, free_it, cancel_it, 21_MPI_ADDRESS_KIND, request, ierr)
    call MPI_Test(request, flag, status, ierr)
    call check(.not. flag, 'a generalized request waits')
    call MPI_Cancel(request, ierr)
    call check(cancelled == 21, 'its cancel function is called with .FALSE.')
    call MPI_Grequest_complete(request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Get_elements(status, MPI_INTEGER, n, ierr)
    call MPI_Test_cancelled(status, flag, ierr)
    call check(queried == 1 .and. n == 21 .and. flag .and. status(MPI_TAG) == 4, &
      'its query function fills the status')
    call check(freed == 21 .and. request == MPI_REQUEST_NULL, 'its free function is called')
  end subroutine generalized

  subroutine strings()
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    character(len=10) :: short
    integer :: n
    call MPI_Get_library_version(version, n, ierr)
    call check(n > 0 .and. version(n:n) /= ' ' .and. version(n+1:) == '', 'MPI_Get_library_version')
    call MPI_Type_get_name(MPI_REAL, short, n, ierr)
    call check(short == 'MPI_REAL', 'a predefined datatype has its name')
  end subroutine strings

  ! every procedure has its other name
  subroutine twins()
    integer :: n, comm, status(MPI_STATUS_SIZE)
    double precision :: t
    t = PMPI_Wtime()
    call PMPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
    call PMPI_Sendrecv(7, 1, MPI_INTEGER, 0, 0, n, 1, MPI_INTEGER, 0, 0, comm, status, ierr)
    call check(n == 7 .and. PMPI_Wtime() >= t, 'PMPI_ procedures')
    call PMPI_Comm_free(comm, ierr)
  end subroutine twins

end program objects
