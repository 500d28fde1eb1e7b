// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the Postern authors
//
// As says.c, in C++, with an end that another program brings.
#include <iostream>
#include <mpi.h>

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	std::cout << "said by rank " << rank << '\n';
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
}
