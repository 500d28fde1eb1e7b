! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Files: opening, views, all kinds of file pointers, non-blocking and split access, errors, and a data representation
! with procedures of the program. One text for the three interfaces: INTERFACE is 77 for mpif.h, 90 for module mpi and
! 2008 for mpi_f08.
#if INTERFACE == 2008
#define HANDLE(kind) type(kind)
#define STATUS type(MPI_Status)
#define USE_MPI use mpi_f08
#define CALLBACKS file_callbacks_2008
#define INCLUDE_MPI
#elif INTERFACE == 90
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define USE_MPI use mpi
#define CALLBACKS file_callbacks_90
#define INCLUDE_MPI
#else
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define USE_MPI
#define CALLBACKS file_callbacks_77
#define INCLUDE_MPI include 'mpif.h'
#endif

module CALLBACKS
  implicit none
  integer :: errors = 0, conversions = 0

contains

  subroutine on_error(file, code)
    USE_MPI
    INCLUDE_MPI
    HANDLE(MPI_File) :: file
    integer :: code
    if (code /= MPI_SUCCESS) errors = errors + 1
  end subroutine on_error

  ! An integer is negative in the file.
  subroutine negate(userbuf, datatype, count, filebuf, position, extra_state, writes, ierror)
    USE_MPI
    INCLUDE_MPI
    integer :: userbuf(*), filebuf(*), count, ierror, i
    HANDLE(MPI_Datatype) :: datatype
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: writes
    ierror = MPI_ERR_OTHER
    if (extra_state /= 77 .or. datatype /= MPI_INTEGER) return
    conversions = conversions + 1
    do i = 1, count
      if (writes) then
        filebuf(i) = -userbuf(position + i)
      else
        userbuf(position + i) = -filebuf(i)
      end if
    end do
    ierror = MPI_SUCCESS
  end subroutine negate

#if INTERFACE == 2008
  subroutine from_file(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    use mpi_f08
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: users(:), files(:)
    call c_f_pointer(userbuf, users, [1000])
    call c_f_pointer(filebuf, files, [1000])
    call negate(users, datatype, count, files, position, extra_state, .false., ierror)
  end subroutine from_file

  subroutine to_file(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    use mpi_f08
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: users(:), files(:)
    call c_f_pointer(userbuf, users, [1000])
    call c_f_pointer(filebuf, files, [1000])
    call negate(users, datatype, count, files, position, extra_state, .true., ierror)
  end subroutine to_file
#else
  subroutine from_file(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    integer :: userbuf(*), filebuf(*), datatype, count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    call negate(userbuf, datatype, count, filebuf, position, extra_state, .false., ierror)
  end subroutine from_file

  subroutine to_file(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    integer :: userbuf(*), filebuf(*), datatype, count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    call negate(userbuf, datatype, count, filebuf, position, extra_state, .true., ierror)
  end subroutine to_file
#endif

  subroutine extent_in_file(datatype, extent, extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    HANDLE(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    extent = 1
    if (datatype == MPI_INTEGER .and. extra_state == 77) extent = 4
    ierror = MPI_SUCCESS
  end subroutine extent_in_file
end module CALLBACKS

program files
  USE_MPI
  use CALLBACKS
  implicit none
  INCLUDE_MPI
  HANDLE(MPI_File) :: fh
  HANDLE(MPI_Datatype) :: every, etype, filetype
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Errhandler) :: handler
  HANDLE(MPI_Info) :: info
  STATUS :: stat
  integer :: rank, ranks, ierr, i, n, got, mode
  integer :: mine(6), back(6)
  integer(MPI_OFFSET_KIND) :: disp, place
  integer(MPI_ADDRESS_KIND) :: extra
  character(len=200) :: name
  character(len=MPI_MAX_DATAREP_STRING) :: datarep
  character(len=20) :: value
  logical :: flag, ok

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  name = '/tmp/postern fortran'
  if (rank == 0) call system_clock(i)
  call MPI_Bcast(i, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  write (name(21:), '(I0)') i
  mode = MPI_MODE_RDWR + MPI_MODE_CREATE + MPI_MODE_EXCL + MPI_MODE_DELETE_ON_CLOSE

  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'cb_buffer_size', '1048576', ierr)
  call MPI_File_open(MPI_COMM_WORLD, name, mode, info, fh, ierr)
  call check(ierr == MPI_SUCCESS, 'a name with blanks, which do not count at its end')
  call MPI_Info_free(info, ierr)
  call MPI_File_get_info(fh, info, ierr)
  call MPI_Info_get(info, 'cb_buffer_size', 20, value, flag, ierr)
  call check(flag .and. value == '1048576', 'hints')
  call MPI_Info_free(info, ierr)

  ! each rank has every so many-th pair of integers
  call MPI_Type_vector(3, 2, 2 * ranks, MPI_INTEGER, every, ierr)
  call MPI_Type_commit(every, ierr)
  disp = 8 * rank
  call MPI_File_set_view(fh, disp, MPI_INTEGER, every, 'native', MPI_INFO_NULL, ierr)
  mine = [(100 * rank + i, i = 1, 6)]
  place = 0
  call MPI_File_write_at_all(fh, place, mine, 6, MPI_INTEGER, stat, ierr)
  call MPI_Get_count(stat, MPI_INTEGER, n, ierr)
  call check(ierr == MPI_SUCCESS .and. n == 6, 'writing through a view')
  place = 3
  call MPI_File_get_byte_offset(fh, place, disp, ierr)
  call check(disp == 8 * rank + 8 * ranks + 4, 'where a position is')
  call MPI_File_get_view(fh, disp, etype, filetype, datarep, ierr)
  call check(disp == 8 * rank .and. etype == MPI_INTEGER .and. datarep == 'native', 'the view')
  call MPI_Type_free(filetype, ierr)
  call MPI_Type_free(every, ierr)
  call MPI_File_sync(fh, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)

  disp = 0
  call MPI_File_set_view(fh, disp, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  ok = .true.
  do i = 0, ranks - 1
    place = 2 * ranks + 2 * i
    call MPI_File_seek(fh, place, MPI_SEEK_SET, ierr)
    call MPI_File_read(fh, back, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    ok = ok .and. back(1) == 100 * i + 3 .and. back(2) == 100 * i + 4
  end do
  call MPI_File_get_position(fh, place, ierr)
  call check(ok .and. place == 4 * ranks, 'what all ranks have written')

  place = 0
  call MPI_File_iread_at(fh, place, back, 6, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, stat, ierr)
  call MPI_Get_count(stat, MPI_INTEGER, n, ierr)
  call check(n == 6 .and. back(1) == 1 .and. back(2) == 2, 'a request')

  call MPI_File_read_at_all_begin(fh, place, back, 2, MPI_INTEGER, ierr)
  call MPI_File_read_at_all_end(fh, back, stat, ierr)
  call check(ierr == MPI_SUCCESS .and. back(2) == 2, 'a split collective')

  place = 0
  call MPI_File_seek_shared(fh, place, MPI_SEEK_END, ierr)
  call MPI_File_write_ordered(fh, [rank], 1, MPI_INTEGER, stat, ierr)
  call MPI_File_get_position_shared(fh, place, ierr)
  call check(place == 7 * ranks, 'the shared file pointer')
  place = 6 * ranks
  call MPI_File_read_at(fh, place + rank, back, 1, MPI_INTEGER, stat, ierr)
  call check(back(1) == rank, 'in the order of ranks')

  call MPI_File_create_errhandler(on_error, handler, ierr)
  call MPI_File_set_errhandler(fh, handler, ierr)
  call MPI_Errhandler_free(handler, ierr)
  place = -1
  call MPI_File_seek(fh, place, MPI_SEEK_SET, ierr)
  call MPI_Error_class(ierr, got, ierr)
  call check(errors == 1 .and. got == MPI_ERR_ARG, 'an error handler')

  extra = 77
  call MPI_Register_datarep('negative', from_file, to_file, extent_in_file, extra, ierr)
  call check(ierr == MPI_SUCCESS, 'a data representation')
  disp = 4000 + 100 * rank
  call MPI_File_set_view(fh, disp, MPI_INTEGER, MPI_INTEGER, 'negative', MPI_INFO_NULL, ierr)
  call MPI_File_write_all(fh, mine, 6, MPI_INTEGER, stat, ierr)
  call MPI_Get_count(stat, MPI_INTEGER, n, ierr)
  place = 1
  call MPI_File_read_at(fh, place, back, 5, MPI_INTEGER, stat, ierr)
  call check(n == 6 .and. conversions == 2 .and. all(back(1:5) == mine(2:6)), 'conversion both ways')
  call MPI_File_set_view(fh, disp, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  call MPI_File_read_all(fh, back, 6, MPI_INTEGER, stat, ierr)
  call check(all(back == -mine), 'what is in the file')

  call MPI_File_close(fh, ierr)
  call check(ierr == MPI_SUCCESS .and. fh == MPI_FILE_NULL, 'closing')
  inquire (file=name, exist=flag)
  call check(.not. flag, 'deleted when closed')
  call MPI_Finalize(ierr)
  call checked(rank)
end program files
