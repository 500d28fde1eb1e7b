/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two ranks: what a message costs while many others are waited for, or wait. Each rank has N
 * receives posted that nothing matches yet, or N messages that nobody has received, and all of
 * them are older than those of the ping-pong that is timed. In the end they are matched after
 * all, in order. Usage: queues LINE-FILE MIN-MS REPEAT ENTRIES...
 */
#include <stdio.h>
#include <stdlib.h>

#include "../ptlperf/clock.h"
#include "measure.h"

enum { PING = 0, TRIPS = 4, MOST_ENTRIES = 1 << 20 }; /* tags from 1 on are those of the entries */

static MPI_Request *request;
static long *value;

static int other(void)
{
	return !bench_rank;
}

static void round_trip(void)
{
	long word = 0;

	if (bench_rank) {
		MPI_Recv(&word, 1, MPI_LONG, 0, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&word, 1, MPI_LONG, 0, PING, MPI_COMM_WORLD);
	} else {
		MPI_Send(&word, 1, MPI_LONG, 1, PING, MPI_COMM_WORLD);
		MPI_Recv(&word, 1, MPI_LONG, 1, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void ping_pong(void *arg, int count, uint64_t *ticks)
{
	uint64_t last = perf_now(), now;

	(void)arg;
	for (int i = 0; i < count; i++) {
		for (int t = TRIPS; t; t--)
			round_trip();
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

static void measure(const char *test, int entries)
{
	struct perf_stats s = bench_measure(ping_pong, NULL, BENCH_EACH);
	double half = 0.5 / TRIPS;

	bench_print(test, "", entries, "ns", s.median * half, s.p99 * half, s.min * half);
}

static void check_values(int entries)
{
	for (int i = 0; i < entries; i++)
		if (value[i] != i)
			bench_fail("entry %d of %d got what was sent to %ld", i, entries, value[i]);
}

static void posted(int entries)
{
	for (int i = 0; i < entries; i++)
		MPI_Irecv(&value[i], 1, MPI_LONG, other(), i + 1, MPI_COMM_WORLD, &request[i]);
	measure("posted", entries);
	for (long i = 0; i < entries; i++)
		MPI_Send(&i, 1, MPI_LONG, other(), (int)i + 1, MPI_COMM_WORLD);
	MPI_Waitall(entries, request, MPI_STATUSES_IGNORE);
	check_values(entries);
}

/* Messages arrive in order: those of the first ping-pong come after all of these. */
static void unexpected(int entries)
{
	long *sent = malloc((size_t)entries * sizeof(*sent));

	if (!sent)
		bench_fail("out of memory for %d messages", entries);
	for (int i = 0; i < entries; i++) {
		sent[i] = i;
		MPI_Isend(&sent[i], 1, MPI_LONG, other(), i + 1, MPI_COMM_WORLD, &request[i]);
	}
	measure("unexpected", entries);
	for (int i = 0; i < entries; i++)
		MPI_Recv(&value[i], 1, MPI_LONG, other(), i + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Waitall(entries, request, MPI_STATUSES_IGNORE);
	check_values(entries);
	free(sent);
}

int main(int argc, char **argv)
{
	char **arg = bench_start(&argc, &argv, "ENTRIES...");

	request = malloc(MOST_ENTRIES * sizeof(MPI_Request));
	value = malloc(MOST_ENTRIES * sizeof(*value));
	if (bench_ranks != 2 || !request || !value)
		bench_fail("needs 2 ranks, and memory for %d requests", MOST_ENTRIES);
	for (; *arg; arg++) {
		int entries = atoi(*arg);

		if (entries < 1 || entries > MOST_ENTRIES)
			bench_fail("ENTRIES is 1 to %d, not %s", MOST_ENTRIES, *arg);
		posted(entries);
		unexpected(entries);
	}
	free(request);
	free(value);
	bench_end();
	return 0;
}
