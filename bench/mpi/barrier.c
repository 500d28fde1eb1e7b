/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Barrier beside barriers of messages, in one job and in turn. The messages have the shapes
 * that barriers of node leaders have by one-sided puts (pairwise exchange with recursive doubling;
 * what is over a power of two folded in before and out after), so that what differs is how a step
 * is told; and, for ranks that share processors, that with the fewest waits: all tell all others,
 * or if they are many rank 0, who tells them in turn. Usage: barrier LINE-FILE MIN-MS REPEAT
 */
#include "../ptlperf/clock.h"
#include "measure.h"

enum { TAG = 4, AT_ONCE = 8 };

static void send(int to)
{
	MPI_Send(NULL, 0, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

static void recv(int from)
{
	MPI_Recv(NULL, 0, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void by_messages(void)
{
	int power = 1;

	while (power <= bench_ranks / 2)
		power *= 2;
	if (bench_rank >= power) {
		send(bench_rank - power);
		recv(bench_rank - power);
		return;
	}
	if (bench_rank + power < bench_ranks)
		recv(bench_rank + power);
	for (int bit = 1; bit < power; bit *= 2)
		MPI_Sendrecv(NULL, 0, MPI_BYTE, bench_rank ^ bit, TAG, NULL, 0, MPI_BYTE,
			     bench_rank ^ bit, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (bench_rank + power < bench_ranks)
		send(bench_rank + power);
}

static void with_few_waits(void)
{
	MPI_Request sent[AT_ONCE];
	MPI_Status status[AT_ONCE];
	int n = 0;

	if (bench_ranks <= AT_ONCE) {
		for (int i = 1; i < bench_ranks; i++)
			MPI_Isend(NULL, 0, MPI_BYTE, (bench_rank + i) % bench_ranks, TAG,
				  MPI_COMM_WORLD, &sent[n++]);
		for (int i = 1; i < bench_ranks; i++)
			recv((bench_rank + i) % bench_ranks);
		MPI_Waitall(n, sent, status);
		return;
	}
	for (int i = 1; !bench_rank && i < bench_ranks; i++)
		recv(i);
	for (int i = 1; !bench_rank && i < bench_ranks; i++)
		send(i);
	if (bench_rank) {
		send(0);
		recv(0);
	}
}

static void call(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
	const char *name;
	void (*barrier)(void);
} kinds[] = {
	{ "MPI_Barrier", call },
	{ "messages", by_messages },
	{ "messages, few waits", with_few_waits },
};

static void run(void *arg, int count, uint64_t *ticks)
{
	void (*const *barrier)(void) = arg;
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		(*barrier)();
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "");
	if (bench_ranks < 2)
		bench_fail("needs 2 ranks at least");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		void (*barrier)(void) = kinds[i].barrier;
		struct perf_stats s = bench_measure(run, (void *)&barrier, BENCH_MEAN);

		bench_print("barriers", kinds[i].name, 0, "ns", s.median, s.p99, s.min);
	}
	bench_end();
	return 0;
}
