/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Barrier beside a barrier of messages, in one job and in turn. The messages have the shape that barriers of
 * masters have by one-sided puts (pairwise exchange with recursive doubling; what is over a power of two
 * folded in before and out after), so that what differs is how a step is told.
 * Usage: barrier LINE-FILE MIN-MS REPEAT
 */
#include "../ptlperf/clock.h"
#include "measure.h"

enum { TAG = 4 };

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

static void run(void *arg, int count, uint64_t *ticks)
{
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		if (arg)
			by_messages();
		else
			MPI_Barrier(MPI_COMM_WORLD);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

int main(int argc, char **argv)
{
	static int messages;

	bench_start(&argc, &argv, "");
	if (bench_ranks < 2)
		bench_fail("needs 2 ranks at least");
	for (int i = 0; i < 2; i++) {
		struct perf_stats s = bench_measure(run, i ? &messages : NULL, BENCH_MEAN);

		bench_print("barriers", i ? "messages" : "MPI_Barrier", 0, "ns", s.median, s.p99,
			    s.min);
	}
	bench_end();
	return 0;
}
