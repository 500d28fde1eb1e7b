/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The time of the copies of long collectives, and of puts and gets, alone. Bare processes copy what
 * each has to get, once, with nothing else to do, and wait for nobody. For reductions of two ranks
 * they add it. Of what one of two gives the other both copy or add a part. The kernel copies data
 * in another's own memory (process_vm_readv, process_vm_writev), or with `common` memcpy does, as
 * if all memory were in common; nothing is faster than that; a window that MPI allocates is memory
 * in common, a window of the program's own memory is that of another. Prints figures as the
 * programs of bench/mpi do, under the names of what they are the floor of. Usage: copies
 * collectives|common RANKS MIN-MS REPEAT BYTES...
 *        copies latency|bandwidth MIN-MS REPEAT BYTES...
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "../ptlperf/clock.h"
#include "../ptlperf/stats.h"

enum { MOST_RANKS = 256, MOST_REPEAT = 100, MOST_BYTES = 4 << 20, MOST_TIMES = 1 << 24 };

static double min_ns;
static int repeat, ranks = 1;

static int usage(void)
{
	fprintf(stderr,
		"usage: copies collectives|common RANKS(2 to %d) MIN-MS REPEAT(1 to %d) BYTES...\n"
		"       copies latency|bandwidth MIN-MS REPEAT BYTES...   (BYTES: up to %d)\n",
		MOST_RANKS, MOST_REPEAT, MOST_BYTES);
	return 2;
}

static char *map(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("copies: mmap");
		kill(0, SIGTERM);
		exit(1);
	}
	return at;
}

static void print(const char *test, const char *variant, long size, const char *unit, double median,
		  double p99, double best)
{
	printf("{\"test\": \"%s\", \"variant\": \"%s\", \"size\": %ld, \"ranks\": %d, \"unit\": "
	       "\"%s\", \"median\": %.3f, \"p99\": %.3f, \"best\": %.3f}\n",
	       test, variant, size, ranks > 1 ? ranks : 2, unit, median, p99, best);
	fflush(stdout);
}

/* `timed(count)` gives the ns of so many: of one, by repetitions that take min_ns each. */
static struct perf_stats measure(double (*timed)(int count))
{
	double value[MOST_REPEAT], took;
	struct perf_stats s;
	int count = 1;

	timed(1);
	while ((took = timed(count)) < 0.8 * min_ns && count < MOST_TIMES) {
		double more = count * (took > 0.1 * min_ns ? 1.1 * min_ns / took : 10);

		count = more > count ? (int)more : count + 1;
	}
	for (int i = 0; i < repeat; i++)
		value[i] = timed(count) / count;
	perf_stats_of(value, (size_t)repeat, &s);
	return s;
}

/* ---- collectives: each process does its part as often as all others, and all are awaited ----- */

enum kind { BCAST, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE };
static const char *const names[] = { "bcast", "allgather", "alltoall", "reduce", "allreduce" };

/* The bytes added before more is copied. */
#define SEGMENT ((size_t)64 << 10)

static struct shared {
	_Alignas(128) _Atomic uint32_t begun;
	_Alignas(128) _Atomic uint32_t over;
	_Atomic int count; /* 0: it was the last */
	pid_t pid[MOST_RANKS];
} * shared;
static char *given, *got; /* of all, one behind the other, at the same place in each process */
static size_t block;
static enum kind kind;
static bool common;
static uint32_t turn;

/* Of the memory of another; by memcpy where the kernel does not permit it. */
static void take(int rank, char *to, char *from, size_t bytes)
{
	struct iovec here = { to, bytes }, there = { from, bytes };

	if (common || process_vm_readv(shared->pid[rank], &here, 1, &there, 1, 0) != (ssize_t)bytes)
		memcpy(to, from, bytes);
}

/* Into the memory of another. */
static void give(int rank, char *to, char *from, size_t bytes)
{
	struct iovec here = { from, bytes }, there = { to, bytes };

	if (common ||
	    process_vm_writev(shared->pid[rank], &here, 1, &there, 1, 0) != (ssize_t)bytes)
		memcpy(to, from, bytes);
}

__attribute__((optimize("O3"))) static void add(double *restrict to, const double *restrict from,
						size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

/* Of the sum of two. */
static void sum_part(int rank, char *to, size_t begin, size_t end)
{
	const size_t all = block * (size_t)ranks;
	char *mine = given + (size_t)rank * all, *other = given + (size_t)!rank * all;

	for (size_t at = begin, n; at < end; at += n) {
		n = end - at < SEGMENT ? end - at : SEGMENT;
		take(!rank, to + at, other + at, n);
		add((void *)(to + at), (void *)(mine + at), n / sizeof(double));
	}
}

/* The data that rank 0 of two gives the other. */
static void bcast_half(int rank)
{
	const size_t half = block / 2 & ~(size_t)63, all = block * (size_t)ranks;

	if (rank)
		take(0, got + all, given, half);
	else
		give(1, got + all + half, given + half, block - half);
}

/* Of a sum for rank 0 of two, most of it by that. */
static void reduce_part(int rank)
{
	const size_t share = block / 4 * 3 & ~(size_t)63, all = block * (size_t)ranks;

	sum_part(rank, got + (size_t)rank * all, rank ? share : 0, rank ? block : share);
	if (rank)
		give(0, got + share, got + all + share, block - share);
}

static void copy_part(int rank)
{
	const size_t all = block * (size_t)ranks, at = kind == ALLTOALL ? (size_t)rank * block : 0;
	char *to = got + (size_t)rank * all;

	if (kind == BCAST) {
		if (ranks == 2)
			bcast_half(rank);
		else if (rank)
			take(0, to, given, block);
		return;
	}
	if (kind == REDUCE) {
		reduce_part(rank);
		return;
	}
	if (kind == ALLREDUCE) {
		const size_t half = block / 2 & ~(size_t)63;

		sum_part(rank, to, rank ? half : 0, rank ? block : half);
		if (rank)
			take(0, to, got, half);
		else
			take(1, to + half, got + all + half, block - half);
		return;
	}
	memcpy(to + (size_t)rank * block, given + (size_t)rank * all + at, block);
	for (int i = 1; i < ranks; i++) {
		const int from = (rank + i) % ranks;

		take(from, to + (size_t)from * block, given + (size_t)from * all + at, block);
	}
}

static void await(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value)
		sched_yield();
}

static void follow(int rank)
{
	const size_t all = block * (size_t)ranks;

	/* pages of its own, as ranks have */
	memset(given + (size_t)rank * all, rank, all);
	memset(got + (size_t)rank * all, 0, all);
	shared->pid[rank] = getpid();
	atomic_fetch_add(&shared->over, 1);
	for (;;) {
		await(&shared->begun, ++turn);
		if (!shared->count)
			_exit(0);
		for (int i = shared->count; i; i--)
			copy_part(rank);
		atomic_fetch_add(&shared->over, 1);
	}
}

static double timed_all(int count)
{
	uint64_t start = perf_now();

	shared->count = count;
	shared->over = 0;
	atomic_store(&shared->begun, ++turn);
	if (!count)
		return 0;
	for (int i = count; i; i--)
		copy_part(0);
	await(&shared->over, (uint32_t)ranks - 1);
	return perf_ns(perf_now() - start);
}

static void collective(void)
{
	struct perf_stats s;
	size_t bytes = block * (size_t)ranks * (size_t)ranks;

	shared = (void *)map(sizeof(*shared));
	given = map(bytes);
	got = map(bytes);
	turn = 0;
	for (int rank = 1; rank < ranks; rank++) {
		pid_t child = fork();

		if (child < 0) {
			perror("copies: fork");
			kill(0, SIGTERM);
			exit(1);
		}
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			follow(rank);
		}
	}
	memset(given, 0, block * (size_t)ranks);
	memset(got, 0, block * (size_t)ranks);
	shared->pid[0] = getpid();
	await(&shared->over, (uint32_t)ranks - 1);
	s = measure(timed_all);
	timed_all(0);
	while (wait(NULL) > 0)
		;
	print("collective", names[kind], (long)block, "ns", s.median, s.p99, s.min);
	munmap(got, bytes);
	munmap(given, bytes);
	munmap(shared, sizeof(*shared));
}

/* ---- puts and gets: into memory in common, or another's, and out of it ----------------------- */

static char *mine, *window;
static pid_t other; /* of whose memory the window is a part as well */
static size_t size,
	span; /* of one; of those that follow each other before they come back to the first place */
static bool past_caches; /* by stores that go there */

/* Both aligned as pages are. */
static void copy_past(char *to, const char *from, size_t n)
{
#ifdef __SSE2__
	for (size_t at = 0; at + 64 <= n; at += 64)
		for (size_t i = at; i < at + 64; i += 16)
			_mm_stream_si128((__m128i *)(void *)(to + i),
					 _mm_load_si128((const __m128i *)(const void *)(from + i)));
	memcpy(to + (n & ~(size_t)63), from + (n & ~(size_t)63), n & 63);
	_mm_sfence();
#else
	memcpy(to, from, n);
#endif
}

static double timed_copies(char *to, const char *from, int count)
{
	uint64_t start = perf_now();
	size_t at = 0;

	for (int i = count; i; i--) {
		if (past_caches)
			copy_past(to + at, from + at, size);
		else
			memcpy(to + at, from + at, size);
		/* not one of several into the same place is left out */
		__asm__ volatile("" ::: "memory");
		at = at + 2 * size <= span ? at + size : 0;
	}
	return perf_ns(perf_now() - start);
}

static double timed_puts(int count)
{
	return timed_copies(window, mine, count);
}

static double timed_gets(int count)
{
	return timed_copies(mine, window, count);
}

/* Below 0: the kernel does not permit it. */
static double timed_calls(bool put, int count)
{
	uint64_t start = perf_now();
	struct iovec here = { mine, size }, there = { window, size };

	for (int i = count; i; i--)
		if ((put ? process_vm_writev(other, &here, 1, &there, 1, 0)
			 : process_vm_readv(other, &here, 1, &there, 1, 0)) != (ssize_t)size)
			return -1;
	return perf_ns(perf_now() - start);
}

static double timed_writes(int count)
{
	return timed_calls(true, count);
}

static double timed_reads(int count)
{
	return timed_calls(false, count);
}

static void latency_of_others(void)
{
	struct perf_stats s;

	/* few bytes may be faster as a message, and of many both sides can copy a part */
	if (size < 1024 || size > 16384 || timed_writes(1) < 0 || timed_reads(1) < 0)
		return;
	s = measure(timed_writes);
	print("rma_put", "created", (long)size, "ns", s.median, s.p99, s.min);
	s = measure(timed_reads);
	print("rma_get", "created", (long)size, "ns", s.median, s.p99, s.min);
}

/* A process that has a window, and does nothing. */
static void start_other(void)
{
	other = fork();
	if (other < 0) {
		perror("copies: fork");
		exit(1);
	}
	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void latency(void)
{
	struct perf_stats s;

	span = size;
	s = measure(timed_puts);
	print("rma_put", "allocated", (long)size, "ns", s.median, s.p99, s.min);
	s = measure(timed_gets);
	print("rma_get", "allocated", (long)size, "ns", s.median, s.p99, s.min);
	latency_of_others();
}

/* By what moves more. */
static void bandwidth(void)
{
	struct perf_stats s, past;
	double bytes = (double)size;

	/* as bench/mpi/rma.c: four of the longest into the same place, of others so many as
	 * there are places */
	span = MOST_BYTES;
	s = measure(timed_puts);
	past_caches = true;
	past = measure(timed_puts);
	past_caches = false;
	if (past.median < s.median)
		s = past;
	print("rma_put_bandwidth", "allocated", (long)size, "GB/s", bytes / s.median, bytes / s.p99,
	      bytes / s.min);
}

int main(int argc, char **argv)
{
	const bool all =
		argc > 1 && (!strcmp(argv[1], "collectives") || !strcmp(argv[1], "common"));
	const bool wide = argc > 1 && !strcmp(argv[1], "bandwidth");
	int at = all ? 3 : 2;

	if (argc < at + 3 || (!all && !wide && strcmp(argv[1], "latency")))
		return usage();
	ranks = all ? atoi(argv[2]) : 1;
	common = !strcmp(argv[1], "common");
	min_ns = atof(argv[at]) * 1e6;
	repeat = atoi(argv[at + 1]);
	for (int i = at + 2; i < argc; i++)
		if (atol(argv[i]) < 1 || atol(argv[i]) > MOST_BYTES)
			return usage();
	if (ranks < (all ? 2 : 1) || ranks > MOST_RANKS || min_ns <= 0 || repeat < 1 ||
	    repeat > MOST_REPEAT)
		return usage();
	perf_clock_init();
	if (!all) {
		mine = map(MOST_BYTES);
		window = map(MOST_BYTES);
		memset(mine, 1, MOST_BYTES);
		memset(window, 2, MOST_BYTES);
		if (!wide)
			start_other();
	}
	for (int i = at + 2; i < argc; i++) {
		block = size = (size_t)atol(argv[i]);
		for (kind = BCAST; all && kind <= (ranks == 2 ? ALLREDUCE : ALLTOALL); kind++)
			collective();
		if (!all && wide)
			bandwidth();
		else if (!all)
			latency();
	}
	if (other) {
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	return 0;
}
