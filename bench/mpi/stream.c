/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two ranks, one stream: rank 0 sends messages without a pause, some of them under way at any
 * time, and rank 1 says what arrived in how long. That is a mean over all of the time, so that
 * what a link's losses cost is in it. Usage: stream SECONDS BYTES
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { UNDER_WAY = 8, TAG = 1 };

static char *buffer[UNDER_WAY];
static int bytes;
static double seconds;

static _Noreturn void fail(const char *why)
{
	fprintf(stderr, "stream: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

/* The last message is empty; so are the others of its window, so that no receive is left. */
static void send_all(void)
{
	MPI_Request request[UNDER_WAY];
	double end = MPI_Wtime() + seconds;
	int left = UNDER_WAY;

	for (int i = 0; i < UNDER_WAY; i++)
		request[i] = MPI_REQUEST_NULL;
	for (int i = 0; left; i = (i + 1) % UNDER_WAY) {
		int more = MPI_Wtime() < end;

		MPI_Wait(&request[i], MPI_STATUS_IGNORE);
		MPI_Isend(buffer[i], more ? bytes : 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
			  &request[i]);
		left -= !more;
	}
	MPI_Waitall(UNDER_WAY, request, MPI_STATUSES_IGNORE);
}

/* From when as many were under way as there can be until they were for the last time; where only
 * few arrived, from the first to the last. */
static void print_rate(const double *at, int got)
{
	int cut = got > 4 * UNDER_WAY ? UNDER_WAY : 1;
	double took = got > cut ? at[got - cut] - at[cut - 1] : 0;
	int messages = got - 2 * cut + 1;

	if (!(took > 0) || messages < 1)
		fail("too few messages arrived in that time");
	printf("{\"test\": \"stream\", \"size\": %d, \"messages\": %d, \"seconds\": %.6f, "
	       "\"Mbit/s\": %.3f}\n",
	       bytes, messages, took, 8e-6 * bytes * messages / took);
}

static void receive_all(void)
{
	MPI_Request request[UNDER_WAY];
	int left = UNDER_WAY, got = 0, room = 0;
	double *at = NULL;

	for (int i = 0; i < UNDER_WAY; i++)
		MPI_Irecv(buffer[i], bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[i]);
	for (int i = 0; left; i = (i + 1) % UNDER_WAY) {
		MPI_Status status;
		int count;

		MPI_Wait(&request[i], &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		if (!count) {
			left--;
			continue;
		}
		if (count != bytes || buffer[i][0] != 'P' || buffer[i][bytes - 1] != 'P')
			fail("what arrived is not what was sent");
		if (got == room) {
			room = 2 * room + 1024;
			at = realloc(at, (size_t)room * sizeof(*at));
			if (!at)
				fail("out of memory");
		}
		at[got++] = MPI_Wtime();
		buffer[i][0] = buffer[i][bytes - 1] = 0;
		MPI_Irecv(buffer[i], bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[i]);
	}
	print_rate(at, got);
	free(at);
}

int main(int argc, char **argv)
{
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	seconds = argc == 3 ? atof(argv[1]) : 0;
	bytes = argc == 3 ? atoi(argv[2]) : 0;
	if (ranks != 2 || !(seconds > 0) || bytes < 1)
		fail("usage: stream SECONDS BYTES, with two ranks");
	for (int i = 0; i < UNDER_WAY; i++) {
		buffer[i] = malloc((size_t)bytes);
		if (!buffer[i])
			fail("out of memory");
		memset(buffer[i], rank ? 0 : 'P', (size_t)bytes);
	}
	if (rank)
		receive_all();
	else
		send_all();
	for (int i = 0; i < UNDER_WAY; i++)
		free(buffer[i]);
	MPI_Finalize();
	return 0;
}
