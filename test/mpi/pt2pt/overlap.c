/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Long messages move while one side computes and calls no MPI function: into a posted receive,
 * and out of a send that was under way. Memory or a signal, not MPI, notifies the computing side of
 * the end.
 */
#include <signal.h>
#include <unistd.h>

#include "test/mpi/pt2pt/check.h"

#define BYTES   (16 << 20)
#define LIMIT_S 30.0

static unsigned char *data;
static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
	(void)number;
	signalled = 1;
}

/* Rank 1 computes until the last byte is there; rank 0 just sends. */
static const char *into_posted(int round)
{
	volatile unsigned char *last = data + BYTES - 1;
	double until;
	bool over;
	MPI_Request r;

	if (tap_rank == 0) {
		fill_bytes(data, BYTES, round + 1);
		data[BYTES - 1] = 0xaa;
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		return NULL;
	}
	memset(data, 0, BYTES);
	MPI_Irecv(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &r);
	MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	for (until = time_now() + LIMIT_S; *last != 0xaa && time_now() < until;)
		continue;
	over = *last == 0xaa;
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(over);
	CHECK_INT(wrong_byte(data, BYTES - 1, round + 1), -1);
	return NULL;
}

/* Rank 0 has started to send, and computes until rank 1, which has received all, sends a signal. */
static const char *out_of_started(int round)
{
	bool over;
	double until;
	int pid = getpid();
	MPI_Request r;

	if (tap_rank == 1) {
		memset(data, 0, BYTES);
		MPI_Recv(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		kill(pid, SIGUSR1);
		CHECK_INT(wrong_byte(data, BYTES, round + 1), -1);
		return NULL;
	}
	signalled = 0;
	fill_bytes(data, BYTES, round + 1);
	MPI_Isend(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &r);
	MPI_Send(&pid, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
	for (until = time_now() + LIMIT_S; !signalled && time_now() < until;)
		continue;
	over = signalled;
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(over);
	return NULL;
}

int main(int argc, char **argv)
{
	signal(SIGUSR1, on_signal);
	tap_start(argc, argv, 1);
	data = malloc(BYTES);
	if (!data || tap_size != 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	tap_rounds_set(3);
	tap_case("overlap: 16 MiB into a posted receive while its process computes", into_posted);
	tap_case("overlap: 16 MiB out of a send while its process computes", out_of_started);
	free(data);
	return tap_end();
}
