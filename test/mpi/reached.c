/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ranks that exchange a little of all that goes its own way: long and short messages, and
 * collectives. With an argument rank 1 ends first, in the midst of the job.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONG 300000

static char out[LONG], in[LONG];

static void exchange(int rank, int size, int bytes)
{
	const int right = (rank + 1) % size, left = (rank + size - 1) % size;

	MPI_Sendrecv(out, bytes, MPI_CHAR, right, 1, in, bytes, MPI_CHAR, left, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	if (in[bytes - 1] != left + 1) {
		fprintf(stderr, "rank %d: wrong bytes\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
}

int main(int argc, char **argv)
{
	int rank, size, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	memset(out, rank + 1, sizeof(out));
	exchange(rank, size, LONG);
	if (argc > 1 && rank == 1)
		_exit(0);
	exchange(rank, size, 10);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Bcast(out, LONG, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (sum != size * (size - 1) / 2 || out[LONG - 1] != 1)
		MPI_Abort(MPI_COMM_WORLD, 4);
	if (!rank)
		puts("all well");
	MPI_Finalize();
	return 0;
}
