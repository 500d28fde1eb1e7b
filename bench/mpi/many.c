/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Any number of ranks, more than there are cores above all: the time of a token once round the
 * ring, of a barrier, and of the sum of one double and of 64 KiB of them; all of these, or those
 * that are named. Usage: many LINE-FILE MIN-MS REPEAT [ring|barrier|allreduce...]
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../ptlperf/clock.h"
#include "measure.h"

enum { TAG = 1, MOST_DOUBLES = 8192 };

static double in[MOST_DOUBLES], out[MOST_DOUBLES];

/* Each rank adds one to the token. */
static void lap(void)
{
	int left = (bench_rank + bench_ranks - 1) % bench_ranks;
	int right = (bench_rank + 1) % bench_ranks;
	long token = 1;

	if (!bench_rank)
		MPI_Send(&token, 1, MPI_LONG, right, TAG, MPI_COMM_WORLD);
	MPI_Recv(&token, 1, MPI_LONG, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (token++ != (bench_rank ? bench_rank : bench_ranks))
		bench_fail("a wrong token came from rank %d: %ld", left, token - 1);
	if (bench_rank)
		MPI_Send(&token, 1, MPI_LONG, right, TAG, MPI_COMM_WORLD);
}

static void laps(void *arg, int count, uint64_t *ticks)
{
	uint64_t last = perf_now(), now;

	(void)arg;
	for (int i = 0; i < count; i++) {
		lap();
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

static void barriers(void *arg, int count, uint64_t *ticks)
{
	uint64_t last = perf_now(), now;

	(void)arg;
	for (int i = 0; i < count; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

static void allreduces(void *arg, int count, uint64_t *ticks)
{
	int doubles = *(int *)arg;
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		MPI_Allreduce(in, out, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

static void verify_sum(int doubles)
{
	double ranks = (double)bench_ranks * (bench_ranks - 1) / 2;

	for (int i = 0; i < doubles; i++) {
		in[i] = bench_rank + i;
		out[i] = -1;
	}
	MPI_Allreduce(in, out, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < doubles; i++)
		if (out[i] != ranks + (double)bench_ranks * i)
			bench_fail("wrong sum at %d of %d: %g", i, doubles, out[i]);
}

static void point(const char *test, bench_run_fn *run, int doubles)
{
	struct perf_stats s;

	if (doubles)
		verify_sum(doubles);
	s = bench_measure(run, &doubles, BENCH_MEAN);
	bench_print(test, "", doubles * (long)sizeof(double), "ns", s.median, s.p99, s.min);
}

static bool wanted(char **names, const char *test)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, test))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	char **names = bench_start(&argc, &argv, "[ring|barrier|allreduce...]");

	if (bench_ranks < 2)
		bench_fail("needs 2 ranks at least");
	if (wanted(names, "ring"))
		point("ring", laps, 0);
	if (wanted(names, "barrier"))
		point("barrier", barriers, 0);
	if (wanted(names, "allreduce")) {
		point("allreduce", allreduces, 1);
		point("allreduce", allreduces, MOST_DOUBLES);
	}
	bench_end();
	return 0;
}
