/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * One measured point: repetitions of a pattern of messages until the figure stands still.
 */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "perf.h"

#define PERF_MOST_SAMPLES 200000 /* of one repetition */

/*
 * A pattern of messages between the ranks. A sample is the smallest unit that is timed: some
 * round trips, a window. `run` of both ranks is called with the same number of samples; rank 0
 * stores the ticks of each. Before each call `prepare` makes new source data and spoils the
 * destination: of its own rank, since the other may not have come to its end yet; after it
 * `verify` fails the run when data is not where it belongs.
 */
struct perf_pattern {
	const char *name;
	void (*prepare)(struct perf *p, void *arg, uint64_t seed); /* or NULL */
	void (*run0)(struct perf *p, void *arg, size_t samples, uint64_t *ticks);
	void (*run1)(struct perf *p, void *arg, size_t samples);
	void (*verify)(struct perf *p, void *arg, uint64_t seed); /* or NULL */
};

struct perf_result {
	struct perf_stats sample; /* ns per sample, over all repetitions */
	unsigned repetitions;
	double spread;     /* of the repetitions' medians, relative, last three */
	double line_ns;    /* a cache line's half round trip beside it, 0: not known */
	double line_worst; /* of the repetitions */
};

/* Both ranks call this; only rank 0's result is filled in. */
void perf_measure(struct perf *p, const struct perf_pattern *pattern, void *arg,
		  struct perf_result *result);

#endif
