/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The command line of ptlperf.
 */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#define PERF_MAX_LIST 64

struct perf_list {
	size_t item[PERF_MAX_LIST];
	int count;
};

struct perf_options {
	unsigned tests;         /* bit set, in the order of main.c's table */
	struct perf_list sizes; /* message sizes, bytes, ascending */
	bool sizes_given;
	struct perf_list entries; /* match: posted entries */
	size_t packet;            /* model: bytes of the largest packet */
	unsigned window;          /* messages in flight, 0: by size */
	double min_time_ms;       /* of one repetition */
	unsigned repeat;          /* least repetitions of a point */
	unsigned deadline_s;      /* no progress for this long is a failure */
	bool poll;                /* spin on PtlEQGet instead of PtlEQWait */
	bool pin;
	bool quick;
	int core[2];      /* -1: choose */
	const char *json; /* file, "-" standard output, NULL none */
};

struct perf_test_name {
	const char *name, *alias, *help;
};

/* Exits with 2 and a message on a usage error; with 0 after --help and --version. */
void perf_options_parse(struct perf_options *o, int argc, char **argv,
			const struct perf_test_name *names, int count);

#endif
