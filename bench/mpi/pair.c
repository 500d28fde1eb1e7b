/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two ranks: latency of a ping-pong, bandwidth of windows of messages in one direction, and the
 * rate of short ones (windows of 64, receives posted in advance, an answer to each window).
 * Usage: pair LINE-FILE MIN-MS REPEAT latency|bandwidth|rate SIZE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ptlperf/clock.h"
#include "measure.h"

enum { MOST_WINDOW = 64, TAG = 1, ACK_TAG = 2 };
#define MOST_SIZE ((size_t)4 << 20)

static char *tx, *rx;

struct point {
	int size, trips, window;
};

static void round_trip(int size)
{
	if (bench_rank) {
		MPI_Recv(rx, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(tx, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
	} else {
		MPI_Send(tx, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
		MPI_Recv(rx, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void ping_pong(void *arg, int count, uint64_t *ticks)
{
	struct point *p = arg;
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		for (int t = p->trips; t; t--)
			round_trip(p->size);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

/* The messages of one window; rank 1 answers when it has all. */
static void window(struct point *p)
{
	MPI_Request request[MOST_WINDOW];
	MPI_Status status[MOST_WINDOW];
	char ack = 0;

	for (int w = 0; w < p->window; w++) {
		if (bench_rank)
			MPI_Irecv(rx, p->size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[w]);
		else
			MPI_Isend(tx, p->size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[w]);
	}
	MPI_Waitall(p->window, request, status);
	if (bench_rank)
		MPI_Send(&ack, 1, MPI_BYTE, 0, ACK_TAG, MPI_COMM_WORLD);
	else
		MPI_Recv(&ack, 1, MPI_BYTE, 1, ACK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void windows(void *arg, int count, uint64_t *ticks)
{
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		window(arg);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

/* As ptlperf: several round trips of short messages in a sample; 4 MiB in flight, 4 to 64
 * messages. */
static struct point point_of(int size)
{
	int fit = (4 << 20) / (size ? size : 1);

	return (struct point){ .size = size,
			       .trips = size <= 4096 ? 16 : 1,
			       .window = fit < 4             ? 4
					 : fit > MOST_WINDOW ? MOST_WINDOW
							     : fit };
}

static void latency(int size)
{
	struct point p = point_of(size);
	struct perf_stats s = bench_measure(ping_pong, &p, BENCH_EACH);
	double half = 0.5 / p.trips;

	bench_print("latency", "", size, "ns", s.median * half, s.p99 * half, s.min * half);
}

static void bandwidth(int size)
{
	struct point p = point_of(size);
	struct perf_stats s = bench_measure(windows, &p, BENCH_EACH);
	double bytes = (double)size * p.window;

	if (!bench_rank)
		bench_print("bandwidth", "", size, "GB/s", bytes / s.median, bytes / s.p99,
			    bytes / s.min);
}

static void rate(int size)
{
	struct point p = { .size = size, .window = MOST_WINDOW };
	struct perf_stats s = bench_measure(windows, &p, BENCH_EACH);

	if (!bench_rank)
		bench_print("rate", "", size, "M/s", p.window * 1e3 / s.median,
			    p.window * 1e3 / s.p99, p.window * 1e3 / s.min);
}

/* The data arrive unchanged. */
static void verify(int size)
{
	memset(rx, 0, MOST_SIZE);
	for (int i = 0; i < size; i++)
		tx[i] = (char)(i * 31 + bench_rank);
	round_trip(size);
	for (int i = 0; i < size; i++)
		if (rx[i] != (char)(i * 31 + !bench_rank))
			bench_fail("wrong data at byte %d of %d", i, size);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(int size);
	} tests[] = { { "latency", latency }, { "bandwidth", bandwidth }, { "rate", rate } };
	const char *usage = "latency|bandwidth|rate SIZE...";
	char **arg = bench_start(&argc, &argv, usage);
	size_t test = 0;

	tx = aligned_alloc(4096, MOST_SIZE);
	rx = aligned_alloc(4096, MOST_SIZE);
	if (!tx || !rx)
		bench_fail("out of memory for two buffers of %zu bytes", MOST_SIZE);
	while (*arg && test < 3 && strcmp(*arg, tests[test].name) != 0)
		test++;
	if (bench_ranks != 2 || !*arg || test == 3)
		bench_fail("needs 2 ranks and %s", usage);
	while (*++arg) {
		int size = atoi(*arg);

		if (size < 0 || (size_t)size > MOST_SIZE)
			bench_fail("sizes are 0 to %zu, not %s", MOST_SIZE, *arg);
		verify(size);
		tests[test].run(size);
	}
	free(tx);
	free(rx);
	bench_end();
	return 0;
}
