/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two ranks: what it takes rank 0 to put, get, or fetch and add, and to flush that, and the
 * bandwidth of windows of puts with one flush at the end; what it takes to add doubles, and to
 * synchronize by fences, by post and start, and by locks, with a put of 8 bytes each time. Rank
 * 1 waits in a barrier meanwhile, or takes part. In two kinds of windows: memory that MPI
 * allocates, and the program's own. Usage: rma LINE-FILE MIN-MS REPEAT latency|bandwidth|sync
 * SIZE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ptlperf/clock.h"
#include "measure.h"

enum { MOST_WINDOW = 64, TRIPS = 16 };
#define MOST_SIZE ((size_t)4 << 20)

static MPI_Win win;
static char *memory, *data;

struct point {
	int size, trips, window;
};

/* ---- operations ------------------------------------------------------------------------------ */

static void put(int size)
{
	MPI_Put(data, size, MPI_BYTE, 1, 0, size, MPI_BYTE, win);
	MPI_Win_flush(1, win);
}

static void get(int size)
{
	MPI_Get(data, size, MPI_BYTE, 1, 0, size, MPI_BYTE, win);
	MPI_Win_flush(1, win);
}

static void fetch_op(int size)
{
	static long one = 1, old;

	(void)size;
	MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, win);
	MPI_Win_flush(1, win);
}

static void accumulate(int size)
{
	int n = size / (int)sizeof(double);

	MPI_Accumulate(data, n, MPI_DOUBLE, 1, 0, n, MPI_DOUBLE, MPI_SUM, win);
	MPI_Win_flush(1, win);
}

static void lock_put(int type)
{
	MPI_Win_lock(type, 1, 0, win);
	MPI_Put(data, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
	MPI_Win_unlock(1, win);
}

static void (*operation)(int size);

static void operations(void *arg, int count, uint64_t *ticks)
{
	struct point *p = arg;
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count && !bench_rank; i++) {
		for (int t = p->trips; t; t--)
			operation(p->size);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 puts, and both take part in what ends that. */
static void fences(void *arg, int count, uint64_t *ticks)
{
	(void)arg;
	(void)ticks;
	MPI_Win_fence(0, win);
	for (int i = 0; i < count; i++) {
		if (!bench_rank)
			MPI_Put(data, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
		MPI_Win_fence(0, win);
	}
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static void posts(void *arg, int count, uint64_t *ticks)
{
	MPI_Group all, other;
	int peer = !bench_rank;

	(void)arg;
	(void)ticks;
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &peer, &other);
	for (int i = 0; i < count; i++) {
		if (bench_rank) {
			MPI_Win_post(other, 0, win);
			MPI_Win_wait(win);
			continue;
		}
		MPI_Win_start(other, 0, win);
		MPI_Put(data, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
		MPI_Win_complete(win);
	}
	MPI_Group_free(&other);
	MPI_Group_free(&all);
}

/* The puts go to places of their own, so that none waits for another. */
static void windows(void *arg, int count, uint64_t *ticks)
{
	struct point *p = arg;
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count && !bench_rank; i++) {
		for (int w = 0; w < p->window; w++) {
			size_t at = (size_t)w * (size_t)p->size % MOST_SIZE;

			MPI_Put(data + at, p->size, MPI_BYTE, 1, (MPI_Aint)at, p->size, MPI_BYTE,
				win);
		}
		MPI_Win_flush(1, win);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- what is measured ------------------------------------------------------------------------ */

static void latency(const char *test, const char *variant, void (*what)(int), int size)
{
	struct point p = { .size = size, .trips = size <= 4096 ? TRIPS : 1 };
	struct perf_stats s;

	operation = what;
	s = bench_measure(operations, &p, BENCH_EACH);
	bench_print(test, variant, size, "ns", s.median / p.trips, s.p99 / p.trips,
		    s.min / p.trips);
}

static void latencies(const char *variant, int size)
{
	latency("rma_put", variant, put, size);
	latency("rma_get", variant, get, size);
	if (size == (int)sizeof(long))
		latency("rma_fetch_op", variant, fetch_op, size);
}

static void additions(const char *variant, int size)
{
	for (int i = 0; i < size / (int)sizeof(double); i++)
		((double *)(void *)data)[i] = 1;
	if (!bench_rank)
		put(size);
	latency("rma_accumulate", variant, accumulate, size);
}

static void locking(const char *test, const char *variant, int type)
{
	struct point p = { .size = type, .trips = TRIPS };
	struct perf_stats s;

	operation = lock_put;
	s = bench_measure(operations, &p, BENCH_EACH);
	bench_print(test, variant, 8, "ns", s.median / TRIPS, s.p99 / TRIPS, s.min / TRIPS);
}

static void epochs(const char *test, const char *variant, bench_run_fn *run)
{
	struct perf_stats s = bench_measure(run, NULL, BENCH_MEAN);

	bench_print(test, variant, 8, "ns", s.median, s.p99, s.min);
}

/* No epoch is open. */
static void synchronization(const char *variant)
{
	epochs("rma_fence", variant, fences);
	epochs("rma_post", variant, posts);
	locking("rma_lock_shared", variant, MPI_LOCK_SHARED);
	locking("rma_lock_exclusive", variant, MPI_LOCK_EXCLUSIVE);
}

static void bandwidth(const char *variant, int size)
{
	int fit = (int)MOST_SIZE / size;
	struct point p = { .size = size,
			   .window = fit < 4             ? 4
				     : fit > MOST_WINDOW ? MOST_WINDOW
							 : fit };
	struct perf_stats s = bench_measure(windows, &p, BENCH_EACH);
	double bytes = (double)size * p.window;

	if (!bench_rank)
		bench_print("rma_put_bandwidth", variant, size, "GB/s", bytes / s.median,
			    bytes / s.p99, bytes / s.min);
}

/* The data put are there, and come back. */
static void verify(void)
{
	memset(data, 0, MOST_SIZE);
	if (!bench_rank) {
		for (size_t i = 0; i < MOST_SIZE; i++)
			data[i] = (char)(i * 31 + 7);
		put((int)MOST_SIZE);
		memset(data, 0, MOST_SIZE);
		get((int)MOST_SIZE);
		for (size_t i = 0; i < MOST_SIZE; i++)
			if (data[i] != (char)(i * 31 + 7))
				bench_fail("wrong data at byte %zu", i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void (*measure)(const char *variant, int size);

static void in_window(const char *variant, int allocated, char **arg)
{
	char *own = NULL;

	if (allocated) {
		MPI_Win_allocate(MOST_SIZE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	} else {
		own = memory = aligned_alloc(4096, MOST_SIZE);
		if (!memory)
			bench_fail("out of memory for a window of %zu bytes", MOST_SIZE);
		MPI_Win_create(memory, MOST_SIZE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	}
	memset(memory, 1, MOST_SIZE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	verify();
	for (char **size = arg + 1; *size; size++)
		measure(variant, atoi(*size));
	MPI_Win_unlock_all(win);
	if (measure == additions)
		synchronization(variant);
	MPI_Win_free(&win);
	free(own);
}

int main(int argc, char **argv)
{
	const char *usage = "latency|bandwidth|sync SIZE...";
	char **arg = bench_start(&argc, &argv, usage);

	if (*arg)
		measure = strcmp(*arg, "latency") == 0     ? latencies
			  : strcmp(*arg, "bandwidth") == 0 ? bandwidth
			  : strcmp(*arg, "sync") == 0      ? additions
							   : NULL;
	if (bench_ranks != 2 || !measure)
		bench_fail("two ranks, and %s", usage);
	for (char **size = arg + 1; *size; size++)
		if (atoi(*size) < 1 || (size_t)atoi(*size) > MOST_SIZE)
			bench_fail("%s is not a size from 1 to %zu", *size, MOST_SIZE);
	data = aligned_alloc(4096, MOST_SIZE);
	if (!data)
		bench_fail("out of memory for a buffer of %zu bytes", MOST_SIZE);
	in_window("allocated", 1, arg);
	in_window("created", 0, arg);
	free(data);
	bench_end();
	return 0;
}
