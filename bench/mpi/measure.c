/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Repetition, statistics and output of the MPI benchmarks. Rank 0 decides how often an operation is
 * run, by doubling and by what the last try took, and tells the others.
 */
#include "measure.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../ptlperf/clock.h"
#include "../ptlperf/line.h"

enum { MOST_SAMPLES = 200000, MOST_REPEAT = 20, WARM_UP = 8 };

int bench_rank, bench_ranks;
static double min_ns;
static int repeat;
static struct perf_line *line;
static uint32_t turn;
static double line_ns[MOST_REPEAT];
static uint64_t *ticks;
static double *values;

void bench_fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "rank %d: ", bench_rank);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort(); /* MPI_Abort does not return, but is not declared so */
}

static struct perf_line *map_line(const char *path)
{
	int fd = open(path, O_RDWR);
	void *at = mmap(NULL, sizeof(struct perf_line), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		bench_fail("cannot map %s: %m", path);
	close(fd);
	return at;
}

char **bench_start(int *argc, char ***argv, const char *usage)
{
	char **arg;
	int begun;

	MPI_Initialized(&begun);
	if (!begun)
		MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &bench_ranks);
	arg = *argv;
	if (*argc < 4)
		bench_fail("usage: %s LINE-FILE MIN-MS REPEAT %s", arg[0], usage);
	perf_clock_init();
	min_ns = atof(arg[2]) * 1e6;
	repeat = atoi(arg[3]);
	if (repeat < 1 || repeat > MOST_REPEAT)
		bench_fail("REPEAT is 1 to %d, not %s", MOST_REPEAT, arg[3]);
	if (strcmp(arg[1], "-") != 0 && bench_ranks == 2)
		line = map_line(arg[1]);
	if (!bench_rank) {
		ticks = malloc(MOST_SAMPLES * sizeof(*ticks));
		values = malloc((size_t)repeat * MOST_SAMPLES * sizeof(*values));
		if (!ticks || !values)
			bench_fail("out of memory for %d samples", repeat * MOST_SAMPLES);
	}
	return arg + 4;
}

void bench_end(void)
{
	free(ticks);
	free(values);
	MPI_Finalize();
}

/* Waits for the other rank of two inside MPI: what it still needs of us, the end of a long
 * message above all, some MPIs send in calls only. A rank that polled the line at once would keep
 * it waiting for ever. */
static void meet(void)
{
	_Atomic uint32_t *mine = bench_rank ? &line->pong : &line->ping;
	_Atomic uint32_t *theirs = bench_rank ? &line->ping : &line->pong;
	int found;

	atomic_store_explicit(mine, ++turn, memory_order_release);
	while (atomic_load_explicit(theirs, memory_order_acquire) - turn > UINT32_MAX / 2)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

/* Both ranks of two, after each run. */
static double look_at_line(void)
{
	if (!line)
		return 0;
	meet();
	return perf_line_look(line, &turn, !bench_rank);
}

/* The work of all ranks between two readings of the clock; ticks, on rank 0. A mean is over when
 * the last rank is through, and begins with the first: when oversubscribed the others may have done
 * much of it before rank 0 runs. */
static uint64_t repetition(bench_run_fn *run, void *arg, int count, enum bench_value what)
{
	uint64_t start = perf_now(), first = start, end;

	run(arg, count, bench_rank || what == BENCH_MEAN ? NULL : ticks);
	if (what == BENCH_MEAN)
		MPI_Barrier(MPI_COMM_WORLD);
	end = perf_now();
	if (what == BENCH_MEAN)
		MPI_Reduce(&start, &first, 1, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
	return end - first;
}

/* All ranks begin together; ns. */
static double run_once(bench_run_fn *run, void *arg, int count, enum bench_value what,
		       double *line_at)
{
	double took;

	MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!count)
		return 0;
	took = perf_ns(repetition(run, arg, count, what));
	*line_at = look_at_line();
	return took;
}

/* The others run what rank 0 decides until that is nothing. */
static void follow(bench_run_fn *run, void *arg, enum bench_value what)
{
	int count;

	do {
		MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
		if (count) {
			repetition(run, arg, count, what);
			look_at_line();
		}
	} while (count);
}

static int find_count(bench_run_fn *run, void *arg, enum bench_value what)
{
	int count = 1;

	/* the first ones also make connections, and whatever else an MPI makes when it is first
	 * wanted */
	for (int i = 0; i < WARM_UP; i++)
		run_once(run, arg, 1, what, &line_ns[0]);
	for (;;) {
		double took = run_once(run, arg, count, what, &line_ns[0]), more;

		if (took >= 0.8 * min_ns || count == MOST_SAMPLES)
			return count;
		more = count * (took > 0.1 * min_ns ? 1.1 * min_ns / took : 10);
		count = more > count ? (int)more : count + 1;
		count = count < MOST_SAMPLES ? count : MOST_SAMPLES;
	}
}

/* One repetition becomes values: its mean, or rank 0's ticks; how many. */
static size_t take(double *to, int count, double took, enum bench_value what)
{
	if (what == BENCH_MEAN) {
		to[0] = took / count;
		return 1;
	}
	for (int i = 0; i < count; i++)
		to[i] = perf_ns(ticks[i]);
	return (size_t)count;
}

struct perf_stats bench_measure(bench_run_fn *run, void *arg, enum bench_value what)
{
	struct perf_stats stats = { 0 };
	size_t total = 0;
	double unused;
	int count;

	if (bench_rank) {
		follow(run, arg, what);
		return stats;
	}
	count = find_count(run, arg, what);
	for (int r = 0; r < repeat; r++) {
		double took = run_once(run, arg, count, what, &line_ns[r]);

		total += take(values + total, count, took, what);
	}
	run_once(run, arg, 0, what, &unused);
	perf_stats_of(values, total, &stats);
	return stats;
}

void bench_print(const char *test, const char *variant, long size, const char *unit, double median,
		 double p99, double best)
{
	struct perf_stats lines;

	if (bench_rank)
		return;
	printf("{\"test\": \"%s\", \"variant\": \"%s\", \"size\": %ld, \"ranks\": %d, \"unit\": "
	       "\"%s\", \"median\": %.3f, \"p99\": %.3f, \"best\": %.3f",
	       test, variant, size, bench_ranks, unit, median, p99, best);
	if (line) {
		perf_stats_of(line_ns, (size_t)repeat, &lines);
		printf(", \"cacheline\": %.1f, \"cacheline_worst\": %.1f", lines.median,
		       line_ns[repeat - 1]);
	}
	printf("}\n");
	fflush(stdout);
}
