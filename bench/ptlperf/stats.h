/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Samples and what is said about them. No sample is thrown away: what a preempted iteration costs
 * shows in the 99th percentile, and does not move the median.
 */
#ifndef PERF_STATS_H
#define PERF_STATS_H

#include <stddef.h>

struct perf_samples {
	double *value;
	size_t count, room;
};

struct perf_stats {
	double median, p99, min, mean;
	double middle; /* mean of the middle 80 %: finer than the timer's steps, and calm */
	size_t count;
};

/* Appends; 0, or -1 when out of memory. */
int perf_samples_add(struct perf_samples *s, double value);
void perf_samples_fini(struct perf_samples *s);

/* Sorts `value` in place. All zero when count is 0. */
void perf_stats_of(double *value, size_t count, struct perf_stats *out);

/* (largest - smallest) / smallest of the last `n` values; a huge number when there are fewer. */
double perf_spread(const double *value, size_t count, size_t n);

#endif
