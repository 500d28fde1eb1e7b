/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * All ranks talk to all others for the first time at about the same moment, each after up to so
 * many microseconds (the first argument), so that calls cross in every way there is. With a
 * helper thread each (MPI_THREAD_MULTIPLE), since that answers calls while its rank makes some.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST 64

int main(int argc, char **argv)
{
	MPI_Request request[2 * MOST];
	int rank, size, provided, out[MOST], in[MOST], failed = 0, all, n = 0;
	long within = argc > 1 ? atol(argv[1]) : 20000;
	struct timespec t;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (size > MOST)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &t);
	srand((unsigned int)(t.tv_nsec ^ getpid()));
	usleep((unsigned int)(rand() % (within + 1)));
	for (int i = 1; i < size; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, (rank + i) % size, 1, MPI_COMM_WORLD, &request[n++]);
	for (int i = 1; i < size; i++) {
		out[i] = rank;
		MPI_Isend(&out[i], 1, MPI_INT, (rank + i) % size, 1, MPI_COMM_WORLD, &request[n++]);
	}
	for (int i = 0; i < n; i++) {
		int error = MPI_Wait(&request[i], MPI_STATUS_IGNORE), length;
		char text[MPI_MAX_ERROR_STRING];

		if (!error)
			continue;
		MPI_Error_string(error, text, &length);
		printf("# rank %d, %s rank %d: %s\n", rank, i < size - 1 ? "from" : "to",
		       (rank + i % (size - 1) + 1) % size, text);
		failed++;
	}
	for (int i = 1; i < size && !failed; i++)
		failed += in[i] != (rank + i) % size;
	if (MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) || failed)
		all = 1;
	if (rank == 0)
		printf("%sok 1 - all meet\n1..1\n", all ? "not " : "");
	MPI_Finalize();
	return all != 0;
}
