/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The output: tables as they grow, and the same figures as JSON. Unless said otherwise, the calls
 * are rank 0's and do nothing on rank 1.
 */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "measure.h"
#include "perf.h"

void perf_report_start(struct perf *p);
/* Writes the JSON file; 0, or -1 having said why not. */
int perf_report_finish(struct perf *p);

/* A line of text, flushed. */
void perf_say(struct perf *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "== name: what it is", with an empty line before. */
void perf_title(struct perf *p, const char *name, const char *what);
/* "64", "4 KiB", "1 MiB", in a buffer of the caller. */
#define PERF_SIZE_TEXT 24
const char *perf_size_text(char *buf, size_t size);

/* One figure of the JSON file. `scale` makes the unit of ns per sample: value = sample * scale for
 * times; for rates value = scale / sample, and then p99 is what 99 % of the samples reach. */
struct perf_point {
	const char *test, *variant; /* variant may be NULL */
	size_t size;                /* bytes of a message */
	const char *unit;
	bool is_rate;
	double scale;
	const char *floor; /* what ratio refers to, or NULL */
	double ratio;
};

/* The mark behind a figure: for some of it, the cores were farther apart or closer than when the
 * floor was measured; perf_report_busy explains it. */
const char *perf_mark(struct perf *p, const struct perf_result *r);
/* The same for two that are compared with each other. */
const char *perf_mark_both(struct perf *p, const struct perf_result *a,
			   const struct perf_result *b);

/* The point's values in its unit. */
struct perf_values {
	double median, p99, best;
};

struct perf_values perf_values_of(const struct perf_point *pt, const struct perf_result *r);
void perf_record(struct perf *p, const struct perf_point *pt, const struct perf_result *r);
/* A figure without samples. */
void perf_record_plain(struct perf *p, const char *test, const char *variant, size_t size,
		       const char *unit, double value);

/* Counts how often other work took the cores from both processes; before the next two. */
void perf_report_preempted(struct perf *p);

/* Prints and records the project's aims, as far as they can be judged by what was measured. None is
 * called missed while other work took the cores. */
void perf_report_aims(struct perf *p);
/* Both ranks: says so when figures were marked, or when other work took the cores away so often
 * that it shows in the figures. */
void perf_report_busy(struct perf *p);

#endif
