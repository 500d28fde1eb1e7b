/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives, from a few bytes to a megabyte for each, one call after the other: the mean of a
 * repetition, because a rank may be in the next call while others are in this one. The result is
 * verified once. All of the first line below, or those that are named, with all lengths, or with
 * those that are named. Usage: collectives LINE-FILE MIN-MS REPEAT
 * [barrier|bcast|reduce|allreduce|allgather|alltoall|
 *                                             allgatherv|alltoallv|reduce_scatter|scan|BYTES...]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ptlperf/clock.h"
#include "measure.h"

enum { MOST = 1 << 20 };

static double *in, *out;
static int *counts, *displs; /* equal ones */

enum kind {
	BARRIER,
	BCAST,
	REDUCE,
	ALLREDUCE,
	ALLGATHER,
	ALLTOALL,
	ALLGATHERV, /* from here on only if they are named */
	ALLTOALLV,
	REDUCE_SCATTER,
	SCAN
};
static const char *const names[] = { "barrier",        "bcast",    "reduce",     "allreduce",
				     "allgather",      "alltoall", "allgatherv", "alltoallv",
				     "reduce_scatter", "scan" };

struct call {
	enum kind kind;
	int bytes; /* of each rank; of alltoalls and reduce_scatter: for each rank */
};

static void once(const struct call *c)
{
	int n = c->bytes / (int)sizeof(double);

	switch (c->kind) {
	case BARRIER:
		MPI_Barrier(MPI_COMM_WORLD);
		break;
	case BCAST:
		MPI_Bcast(out, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		break;
	case REDUCE:
		MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		break;
	case ALLREDUCE:
		MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		break;
	case ALLGATHER:
		MPI_Allgather(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, MPI_COMM_WORLD);
		break;
	case ALLTOALL:
		MPI_Alltoall(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, MPI_COMM_WORLD);
		break;
	case ALLGATHERV:
		MPI_Allgatherv(in, n, MPI_DOUBLE, out, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD);
		break;
	case ALLTOALLV:
		MPI_Alltoallv(in, counts, displs, MPI_DOUBLE, out, counts, displs, MPI_DOUBLE,
			      MPI_COMM_WORLD);
		break;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		break;
	case SCAN:
		MPI_Scan(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		break;
	}
}

static void run(void *arg, int count, uint64_t *ticks)
{
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		once(arg);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

/* The sum of the ranks 0 to `last` at place i; rank r has r + i there. */
static double sum(int last, int i)
{
	return (double)last * (last + 1) / 2 + (last + 1.0) * i;
}

/* The value at place i after the call. */
static double expected(const struct call *c, int i)
{
	int n = c->bytes / (int)sizeof(double);

	switch (c->kind) {
	case BCAST:
		return i;
	case ALLGATHER:
	case ALLGATHERV:
		return i / n + i % n;
	case ALLTOALL:
	case ALLTOALLV:
		return i / n + bench_rank * n + i % n;
	case REDUCE_SCATTER:
		return sum(bench_ranks - 1, bench_rank * n + i);
	case SCAN:
		return sum(bench_rank, i);
	default:
		return sum(bench_ranks - 1, i);
	}
}

static void verify(const struct call *c)
{
	const int each = c->bytes / (int)sizeof(double), all = bench_ranks * each;
	const bool of_all = c->kind == ALLGATHER || c->kind == ALLGATHERV || c->kind == ALLTOALL ||
			    c->kind == ALLTOALLV;
	const int n = of_all ? all : each;

	for (int i = 0; i < all; i++) {
		in[i] = bench_rank + i;
		out[i] = c->kind == BCAST && bench_rank == 0 ? i : -1;
	}
	for (int i = 0; i < bench_ranks; i++) {
		counts[i] = each;
		displs[i] = i * each;
	}
	once(c);
	if (c->kind == REDUCE && bench_rank != 0)
		return;
	for (int i = 0; i < n; i++)
		if (out[i] != expected(c, i))
			bench_fail("%s of %d bytes: %g at %d, not %g", names[c->kind], c->bytes,
				   out[i], i, expected(c, i));
}

static void point(enum kind kind, int bytes)
{
	struct call c = { kind, bytes };
	struct perf_stats s;

	verify(&c);
	s = bench_measure(run, &c, BENCH_MEAN);
	bench_print("collective", names[kind], bytes, "ns", s.median, s.p99, s.min);
}

static char **arguments;

/* It is among the arguments, or they have no word, or number, at all. */
static bool wanted_word(const char *word, bool number)
{
	bool any = false;

	for (char **a = arguments; *a; a++) {
		if ((**a >= '0' && **a <= '9') != number)
			continue;
		if (!strcmp(*a, word))
			return true;
		any = true;
	}
	return !any;
}

static bool wanted(enum kind kind, int bytes)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", bytes);
	/* who names none means the first ones */
	if (kind > ALLTOALL && wanted_word("", false))
		return false;
	return wanted_word(names[kind], false) && (kind == BARRIER || wanted_word(text, true));
}

int main(int argc, char **argv)
{
	arguments = bench_start(&argc, &argv, "[NAME|BYTES...]");
	in = malloc((size_t)bench_ranks * MOST);
	out = malloc((size_t)bench_ranks * MOST);
	counts = malloc((size_t)bench_ranks * sizeof(*counts));
	displs = malloc((size_t)bench_ranks * sizeof(*displs));
	if (!in || !out || !counts || !displs)
		bench_fail("no memory for %d buffers of %d bytes", 2 * bench_ranks, MOST);
	if (wanted(BARRIER, 0))
		point(BARRIER, 0);
	for (enum kind k = BCAST; k <= SCAN; k++)
		for (int bytes = 8; bytes <= MOST; bytes = bytes == 8 ? 4096 : bytes * 16)
			if (wanted(k, bytes))
				point(k, bytes);
	free(displs);
	free(counts);
	free(in);
	free(out);
	bench_end();
	return 0;
}
