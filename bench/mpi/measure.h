/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The common part of the MPI benchmarks: the command line, finding out how often to repeat a
 * thing, statistics and output. They measure as ptlperf does (same timer, same statistics), and use
 * MPI-1 to MPI-3 calls only, but for partitioned.c. So they compile with any MPI. mpi_compare
 * starts them:
 *   PROGRAM LINE-FILE MIN-MS REPEAT ARGUMENT...
 * LINE-FILE: 256 bytes of zeroes at least, by which ranks 0 and 1 of two see beside each figure
 * how far apart their cores are; - for none. Each figure is one line of standard output, a JSON
 * object.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <mpi.h>
#include <stdint.h>

#include "../ptlperf/stats.h"

extern int bench_rank, bench_ranks;

/* Runs an operation `count` times, on all ranks; rank 0 writes to ticks[] what each took. */
typedef void bench_run_fn(void *arg, int count, uint64_t *ticks);

/* The meaning of a value. It is one operation, as rank 0 sees it. Or it is the mean of a
 * repetition, from when the first rank begins to when the last is through (a barrier), all on one
 * machine. That is right where single operations overlap. */
enum bench_value { BENCH_EACH, BENCH_MEAN };

/* MPI_Init, if that was not called, and the command line: returns the arguments that are the
 * program's own, ended by NULL. */
char **bench_start(int *argc, char ***argv, const char *usage);
void bench_end(void);

/* On all ranks; the result, in ns per operation, is rank 0's. */
struct perf_stats bench_measure(bench_run_fn *run, void *arg, enum bench_value what);

/* Rank 0 prints one figure of what was measured last. */
void bench_print(const char *test, const char *variant, long size, const char *unit, double median,
		 double p99, double best);

/* Says what is wrong and ends the job. */
void __attribute__((noreturn, format(printf, 1, 2))) bench_fail(const char *format, ...);

#endif
