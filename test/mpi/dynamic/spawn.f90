! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! A program that spawns itself with arguments, by the interface of the time INTERFACE. The child
! sends back what it was called with.
program spawn
#if INTERFACE == 2008
  use mpi_f08
#else
#if INTERFACE == 90
  use mpi
#endif
#endif
  implicit none
#if INTERFACE == 77
  include 'mpif.h'
#endif
#if INTERFACE == 2008
  type(MPI_Comm) :: parent, children
  type(MPI_Status) :: status
#else
  integer :: parent, children, status(MPI_STATUS_SIZE)
#endif
  character(len=20) :: words(3), got
  character(len=512) :: self
  character(len=MPI_MAX_PORT_NAME) :: port
  integer :: codes(2), ierror

  call MPI_Init(ierror)
  call MPI_Comm_get_parent(parent, ierror)
  if (parent /= MPI_COMM_NULL) then
    call get_command_argument(2, got)
    call MPI_Send(got, 20, MPI_CHARACTER, 0, 5, parent, ierror)
    call MPI_Comm_disconnect(parent, ierror)
    call MPI_Finalize(ierror)
    stop
  end if
  call get_command_argument(0, self)
  words(1) = 'child'
  words(2) = 'two words'
  words(3) = ' '
  codes = -1
  call MPI_Comm_spawn(self, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes, ierror)
  if (any(codes /= MPI_SUCCESS)) call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  call MPI_Recv(got, 20, MPI_CHARACTER, 1, 5, children, status, ierror)
  if (got /= 'two words') call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  call MPI_Recv(got, 20, MPI_CHARACTER, 0, 5, children, status, ierror)
  call MPI_Comm_disconnect(children, ierror)
  port = ' '
  call MPI_Open_port(MPI_INFO_NULL, port, ierror)
  if (port(1:13) /= 'postern-port:') call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  call MPI_Close_port(port, ierror)
  print '(a)', '1..1', 'ok 1 - a job that spawns itself with arguments'
  call MPI_Finalize(ierror)
end program
