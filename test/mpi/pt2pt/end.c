/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The end of a job with things undone: messages nobody received, sends whose requests were freed
 * and that are taken late, receives nobody will match, an attached buffer with messages in it.
 * "end abort CODE": the job ends by MPI_Abort while all others wait.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG (2 << 20)

static int rank, size;

static void leave_undone(char *data, char *buffer)
{
	MPI_Request r;

	/* never received */
	for (int i = 0; i < 100; i++)
		MPI_Send(data, i * 10, MPI_CHAR, (rank + 1) % size, 900, MPI_COMM_WORLD);
	/* never sent */
	for (int i = 0; i < 3; i++)
		MPI_Irecv(buffer, 1000 * i, MPI_CHAR, MPI_ANY_SOURCE, 901, MPI_COMM_WORLD, &r);
	MPI_Request_free(&r);
	/* received after the sender is in MPI_Finalize */
	MPI_Isend(data, LONG, MPI_CHAR, (rank + 1) % size, 902, MPI_COMM_WORLD, &r);
	MPI_Request_free(&r);
	MPI_Issend(data, 1, MPI_CHAR, (rank + 1) % size, 903, MPI_COMM_WORLD, &r);
	MPI_Request_free(&r);
	MPI_Bsend(data, LONG, MPI_CHAR, (rank + 1) % size, 904, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	char *data = malloc(LONG), *buffer = malloc(LONG + 4096), *in = malloc(LONG);
	int left, ok;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	left = (rank + size - 1) % size;
	if (argc > 2 && strcmp(argv[1], "abort") == 0) {
		if (rank == size - 1)
			MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
		MPI_Recv(in, 1, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return 0;
	}
	memset(data, 'a' + rank % 26, LONG);
	MPI_Buffer_attach(buffer, LONG + 4096);
	leave_undone(data, in);
	ok = 1;
	for (int tag = 904; tag >= 902; tag--) {
		in[0] = 0;
		MPI_Recv(in, LONG, MPI_CHAR, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		ok = ok && in[0] == 'a' + left % 26 && (tag == 903 || in[LONG - 1] == in[0]);
	}
	MPI_Finalize();
	free(data);
	free(buffer);
	free(in);
	if (rank == 0 || !ok)
		printf("%sok 1 - end: MPI_Finalize with things undone\n1..1\n", ok ? "" : "not ");
	return !ok;
}
