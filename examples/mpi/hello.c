/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The first MPI program: every rank says who it is, and rank 0 what the ranks add up to.
 * Compile and run it with: mpicc -o hello hello.c && mpiexec -n 4 ./hello
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char name[MPI_MAX_PROCESSOR_NAME];
	int rank, size, length, sum = -1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(name, &length);
	printf("hello from rank %d of %d on %s\n", rank, size, name);
	MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("the ranks add up to %d\n", sum);
	MPI_Finalize();
	return !rank && sum != size * (size - 1) / 2;
}
