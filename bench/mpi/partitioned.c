/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two ranks: the bandwidth of a persistent send, and of a partitioned one of the same bytes, whose
 * 64 partitions are made ready by one thread or by four. The receiver answers each with an empty
 * message. An MPI before MPI-4 has no partitioned sends: it shows the first figure alone.
 * Usage: partitioned LINE-FILE MIN-MS REPEAT SIZE...
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../ptlperf/clock.h"
#include "measure.h"

enum { PARTITIONS = 64, THREADS = 4, TAG = 1, ACK_TAG = 2 };
#define MOST_SIZE ((size_t)16 << 20)

static char *buffer;
static MPI_Request request;

/* How the sender makes its bytes ready; NULL: they are, once it has started. */
typedef void make_ready_fn(void);

static void starts(void *arg, int count, uint64_t *ticks)
{
	make_ready_fn *const *ready = arg;
	uint64_t last = perf_now(), now;

	for (int i = 0; i < count; i++) {
		MPI_Start(&request);
		if (!bench_rank && *ready)
			(*ready)();
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (bench_rank)
			MPI_Send(NULL, 0, MPI_BYTE, 0, ACK_TAG, MPI_COMM_WORLD);
		else
			MPI_Recv(NULL, 0, MPI_BYTE, 1, ACK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		now = perf_now();
		if (ticks)
			ticks[i] = now - last;
		last = now;
	}
}

static void bandwidth(const char *variant, int size, make_ready_fn *ready)
{
	struct perf_stats s;

	memset(buffer, bench_rank ? 0 : 0x5a, (size_t)size);
	s = bench_measure(starts, &ready, BENCH_EACH);
	if (!bench_rank)
		bench_print("partitioned", variant, size, "GB/s", size / s.median, size / s.p99,
			    size / s.min);
	for (int i = 0; i < size; i++)
		if (buffer[i] != 0x5a)
			bench_fail("wrong data at byte %d of %d", i, size);
	MPI_Request_free(&request);
}

static void one_send(int size)
{
	if (bench_rank)
		MPI_Recv_init(buffer, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
	else
		MPI_Send_init(buffer, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
	bandwidth("one send", size, NULL);
}

#if MPI_VERSION >= 4

static pthread_barrier_t all; /* the workers and the thread that starts them */
static pthread_t worker[THREADS];
static int over;

static void by_one(void)
{
	for (int i = 0; i < PARTITIONS; i++)
		MPI_Pready(i, request);
}

static void by_workers(void)
{
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
}

static void *work(void *arg)
{
	const int share = PARTITIONS / THREADS, first = share * *(int *)arg;

	for (;;) {
		pthread_barrier_wait(&all);
		if (over)
			return NULL;
		for (int i = first; i < first + share; i++)
			MPI_Pready(i, request);
		pthread_barrier_wait(&all);
	}
}

static void begin_partitioned(int size)
{
	if (bench_rank)
		MPI_Precv_init(buffer, PARTITIONS, size / PARTITIONS, MPI_BYTE, 0, TAG,
			       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
	else
		MPI_Psend_init(buffer, PARTITIONS, size / PARTITIONS, MPI_BYTE, 1, TAG,
			       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
}

static void partitioned(int size)
{
	begin_partitioned(size);
	bandwidth("64 partitions, 1 thread", size, by_one);
	begin_partitioned(size);
	bandwidth("64 partitions, 4 threads", size, by_workers);
}

static void begin_workers(void)
{
	static int number[THREADS];

	pthread_barrier_init(&all, NULL, THREADS + 1);
	for (int i = 0; !bench_rank && i < THREADS; i++) {
		number[i] = i;
		if (pthread_create(&worker[i], NULL, work, &number[i]))
			bench_fail("cannot create a thread");
	}
}

static void end_workers(void)
{
	if (bench_rank)
		return;
	over = 1;
	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		pthread_join(worker[i], NULL);
}

#else

static void partitioned(int size)
{
	(void)size;
}

static void begin_workers(void)
{
}

static void end_workers(void)
{
}

#endif

int main(int argc, char **argv)
{
	int level;
	char **arg;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	arg = bench_start(&argc, &argv, "SIZE...");
	buffer = aligned_alloc(4096, MOST_SIZE);
	if (!buffer || bench_ranks != 2 || level < MPI_THREAD_MULTIPLE)
		bench_fail("needs 2 ranks, MPI_THREAD_MULTIPLE, and %zu bytes", MOST_SIZE);
	begin_workers();
	for (; *arg; arg++) {
		int size = atoi(*arg);

		if (size < PARTITIONS || size % PARTITIONS || (size_t)size > MOST_SIZE)
			bench_fail("sizes are multiples of %d up to %zu, not %s", PARTITIONS,
				   MOST_SIZE, *arg);
		one_send(size);
		partitioned(size);
	}
	end_workers();
	free(buffer);
	bench_end();
	return 0;
}
