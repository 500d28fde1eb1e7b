! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! As says.c, in Fortran, with an end that another program brings.
program says
	use mpi
	implicit none
	integer :: rank, err

	call MPI_Init(err)
	call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
	print '(a,i0)', 'said by rank ', rank
	call MPI_Barrier(MPI_COMM_WORLD, err)
	call MPI_Barrier(MPI_COMM_WORLD, err)
	call MPI_Finalize(err)
end program
