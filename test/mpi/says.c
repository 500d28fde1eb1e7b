/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Prints a line without a flush, and waits in MPI for the end that the last rank brings: by
 * MPI_Abort, a crash, an exit without MPI_Finalize, or by nothing but the line on standard error
 * at which the test ends the job.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	printf("said by rank %d\n", rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1 && argc > 1) {
		if (!strcmp(argv[1], "abort"))
			MPI_Abort(MPI_COMM_WORLD, 3);
		if (!strcmp(argv[1], "crash"))
			raise(SIGKILL);
		if (!strcmp(argv[1], "exit"))
			_exit(4);
		fprintf(stderr, "all said\n");
		pause();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
