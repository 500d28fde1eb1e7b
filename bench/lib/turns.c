/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The least time of many processes on few cores that yield: bare flags in shared memory and
 * sched_yield, no messages. A token once round the ring, and a barrier of one counter. Prints
 * figures as the programs of bench/mpi do. Usage: turns RANKS MIN-MS REPEAT
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ptlperf/clock.h"
#include "../ptlperf/stats.h"

enum { MOST_RANKS = 256, MOST_REPEAT = 100, MOST_TURNS = 1 << 20 };

/* Two lines each: processors fetch lines in pairs. */
struct flag {
	_Alignas(128) _Atomic uint32_t turn;
};

static struct shared {
	struct flag at[MOST_RANKS], arrived, passed;
	_Alignas(128) _Atomic int count; /* turns of this repetition; 0: it was the last */
} * shared;
static uint32_t rank, ranks, turn;

static void await(struct flag *f, uint32_t value)
{
	while (atomic_load_explicit(&f->turn, memory_order_acquire) != value)
		sched_yield();
}

static void lap(void)
{
	struct flag *next = &shared->at[(rank + 1) % ranks];

	turn++;
	if (!rank)
		atomic_store_explicit(&next->turn, turn, memory_order_release);
	await(&shared->at[rank], turn);
	if (rank)
		atomic_store_explicit(&next->turn, turn, memory_order_release);
}

static void barrier(void)
{
	turn++;
	if (atomic_fetch_add(&shared->arrived.turn, 1) + 1 == turn * ranks)
		atomic_store_explicit(&shared->passed.turn, turn, memory_order_release);
	else
		await(&shared->passed, turn);
}

/* As often as rank 0 has written down; how often that was. */
static int repetition(void (*once)(void))
{
	int count;

	once(); /* the number is there */
	count = shared->count;
	once(); /* all have read it: there may be another */
	for (int i = 0; i < count; i++)
		once();
	return count;
}

/* The ns of one. */
static double timed(void (*once)(void), int count)
{
	uint64_t start = perf_now();

	shared->count = count;
	repetition(once);
	return perf_ns(perf_now() - start) / (count + 2);
}

static void measure(const char *name, void (*once)(void), double min_ns, int repeat)
{
	double value[MOST_REPEAT], wanted;
	struct perf_stats s;
	int count = 16;

	/* each its own numbers: all flags start from nothing */
	*shared = (struct shared){ 0 };
	turn = 0;
	for (rank = 1; rank < ranks; rank++) {
		pid_t child = fork();

		if (child < 0) {
			perror("turns: fork");
			kill(0, SIGTERM);
			exit(1);
		}
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (repetition(once))
				;
			_exit(0);
		}
	}
	rank = 0;
	wanted = min_ns / timed(once, count);
	count = wanted < 1 ? 1 : wanted < MOST_TURNS ? (int)wanted : MOST_TURNS;
	for (int i = 0; i < repeat; i++)
		value[i] = timed(once, count);
	timed(once, 0);
	while (wait(NULL) > 0)
		;
	perf_stats_of(value, (size_t)repeat, &s);
	printf("{\"test\": \"%s\", \"variant\": \"\", \"size\": 0, \"ranks\": %u, \"unit\": "
	       "\"ns\", "
	       "\"median\": %.3f, \"p99\": %.3f, \"best\": %.3f}\n",
	       name, ranks, s.median, s.p99, s.min);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	double min_ns = argc == 4 ? atof(argv[2]) * 1e6 : 0;
	int repeat = argc == 4 ? atoi(argv[3]) : 0;

	ranks = argc == 4 ? (uint32_t)atoi(argv[1]) : 0;
	if (ranks < 2 || ranks > MOST_RANKS || min_ns <= 0 || repeat < 1 || repeat > MOST_REPEAT) {
		fprintf(stderr, "usage: turns RANKS(2 to %d) MIN-MS REPEAT(1 to %d)\n", MOST_RANKS,
			MOST_REPEAT);
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("turns: mmap");
		return 1;
	}
	perf_clock_init();
	measure("ring", lap, min_ns, repeat);
	measure("barrier", barrier, min_ns, repeat);
	return 0;
}
