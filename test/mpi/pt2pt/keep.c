/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages that wait for their receive, and what they do to those that come after them: within
 * the limit on their memory nothing; beyond it senders go the long way, and no longer when there
 * is room again. Three ranks; 0 receives. Arguments: SEED KEEP_KIB POOL_KIB, the two as they are
 * set.
 */
#include "test/mpi/pt2pt/check.h"

#define MANY  60000 /* more than the pool has room for */
#define MOST  64    /* bytes of one; up to 16 are kept elsewhere than more */
#define TRIPS 200

enum { LAST = MANY + 1, PING };

static long keep_kib = 32768, pool_kib = 6144;
static unsigned char pattern[MANY + MOST], got[MOST + 1];
static MPI_Request request[MANY];

static void send_many(void)
{
	for (int i = 0; i < MANY; i++)
		MPI_Isend(pattern + i, i % (MOST + 1), MPI_BYTE, 0, i, MPI_COMM_WORLD, &request[i]);
	MPI_Send(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD);
}

/* All that this rank sends are here then. */
static void await_many(int source)
{
	MPI_Recv(NULL, 0, MPI_BYTE, source, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const char *receive_many(int source)
{
	MPI_Status s;

	for (int i = MANY - 1; i >= 0; i--) {
		got[i % (MOST + 1)] = 0xee;
		MPI_Recv(got, MOST, MPI_BYTE, i % 100 ? source : MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
			 &s);
		CHECK_INT(s.MPI_SOURCE, source);
		CHECK_INT(count_of(&s), i % (MOST + 1));
		CHECK(!memcmp(got, pattern + i, (size_t)(i % (MOST + 1))));
		CHECK(got[i % (MOST + 1)] == 0xee);
	}
	return NULL;
}

static void ping_pong(int other, int trips)
{
	long word = 0;

	for (int i = 0; i < trips; i++) {
		if (tap_rank)
			MPI_Send(&word, 1, MPI_LONG, other, PING, MPI_COMM_WORLD);
		MPI_Recv(&word, 1, MPI_LONG, other, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (!tap_rank)
			MPI_Send(&word, 1, MPI_LONG, other, PING, MPI_COMM_WORLD);
	}
}

/* Of a rank that sends: none of so many messages goes the long way. */
static const char *all_short(void)
{
	long long before = counter("mpi_sent_long");

	ping_pong(0, TRIPS);
	CHECK_INT(counter("mpi_sent_long"), before);
	return NULL;
}

static const char *within(int round)
{
	(void)round;
	if (tap_rank == 0) {
		await_many(1);
		ping_pong(1, TRIPS);
		return receive_many(1);
	}
	if (tap_rank == 1) {
		const char *wrong;

		send_many();
		wrong = all_short();
		MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE);
		CHECK(counter("mpi_sent_long_no_credit") <= 0);
		return wrong;
	}
	return NULL;
}

static const char *memory_bounded(void)
{
	long long most = counter("mpi_unexpected_memory_most");

	printf("# %lld bytes of waiting messages at most\n", most);
	if (most > (keep_kib + pool_kib * 2 / 3) * 1024)
		return tap_wrong("%lld bytes of waiting messages were held", most);
	return NULL;
}

/* Rank 1's messages are received while rank 2's go on waiting, which were the last to find no
 * room. */
static const char *beyond(int round)
{
	const char *wrong;
	long long left;

	(void)round;
	if (tap_rank == 0) {
		await_many(1);
		MPI_Send(NULL, 0, MPI_BYTE, 2, LAST, MPI_COMM_WORLD);
		await_many(2);
		wrong = memory_bounded();
		for (int rank = 1; rank <= 2 && !wrong; rank++) {
			wrong = receive_many(rank);
			for (int of = 1; of <= 2; of++)
				ping_pong(of, 2 * TRIPS);
		}
		left = counter("mpi_unexpected_memory");
		MPI_Barrier(MPI_COMM_WORLD); /* before the next round's come */
		if (left > 4096)             /* some may be of the barrier */
			return tap_wrong("%lld bytes are left", left);
		return wrong;
	}
	if (tap_rank == 2)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	send_many();
	wrong = NULL;
	for (int times = 0; times < 2; times++) {
		ping_pong(0, TRIPS);
		if (!wrong)
			wrong = all_short();
		else
			ping_pong(0, TRIPS);
	}
	MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(counter("mpi_sent_long_no_credit") != 0);
	return wrong;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	if (tap_size != 3)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (argc > 3) {
		keep_kib = atol(argv[2]);
		pool_kib = atol(argv[3]);
	}
	for (int i = 0; i < MANY + MOST; i++)
		pattern[i] = (unsigned char)mix((uint64_t)i);
	tap_rounds_set(argc > 3 ? 3 : 1);
	if (argc > 3)
		tap_case("keep: beyond the limit memory is bounded, and with room again messages "
			 "go short again",
			 beyond);
	else
		tap_case("keep: messages that wait make none slow that come after them", within);
	return tap_end();
}
