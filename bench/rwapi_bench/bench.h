/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * rwapi_bench: what its files share. It uses RWAPI alone.
 */
#ifndef RWAPI_BENCH_H
#define RWAPI_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rwapi.h>

enum { BENCH_SIZES = 64, BENCH_RUNS = 100, SHORT_BYTES = 16 };

/* ---- options.c ------------------------------------------------------------------------------- */

enum bench_test {
	TEST_PING_PONG,
	TEST_BIDIRECTIONAL,
	TEST_BURST,
	TEST_STREAM,
	TEST_LOOK,
	TEST_MANY,
	TEST_BLOCKS,
	TESTS
};

struct bench_options {
	bool test[TESTS];
	size_t size[BENCH_SIZES];
	int sizes;
	int runs;
	double seconds; /* of a run */
	const char *json;
};

extern const char *const bench_test_name[TESTS];

/* Ends the process after --help, and with status 2 after a mistake. */
void bench_options(int argc, char **argv, struct bench_options *o);

/* ---- statistics.c ---------------------------------------------------------------------------- */

struct bench_mean {
	double mean, half; /* the mean of the runs, and half of its 90 % confidence interval */
};

struct bench_mean bench_mean_of(const double *value, int count);

/* ---- report.c -------------------------------------------------------------------------------- */

/* Rank 0 prints and records. */
void bench_report_begin(const struct bench_options *o);
void bench_title(const char *name, const char *what);
/* ns[i]: the time of a message in run i. `bytes` of a message; `kind`: how it went. */
void bench_point(const char *test, const char *kind, size_t bytes, const double *ns, int runs);
int bench_report_end(void);

/* ---- pair.c ---------------------------------------------------------------------------------- */

extern int bench_rank, bench_size;

__attribute__((noreturn, format(printf, 1, 2))) void bench_fail(const char *fmt, ...);
uint64_t bench_now(void);
/* Send a short message, and wait for one from a rank. */
void bench_send(int node, uint64_t first, uint64_t second);
rwapi_small_t bench_receive(int node);
/* Make the areas of all tests; ranks 0 and 1 tell each other where theirs are. */
void bench_areas(size_t longest);
/* Run a test with a size, or with short messages if `small`. */
void bench_pair(enum bench_test test, size_t bytes, bool small, const struct bench_options *o);

/* ---- others.c -------------------------------------------------------------------------------- */

/* Ranks 1 to k send short messages to rank 0, for k = 1, 2, 4 ... */
void bench_many(const struct bench_options *o);
/* The cost of blocks, and of writes into the first and the last of many. */
void bench_blocks(const struct bench_options *o);

#endif
