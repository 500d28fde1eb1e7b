/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A cache line sent there and back between two processes: the floor of every latency. It is
 * looked at again beside each figure, because it is not a constant: on virtual machines the
 * cores of a process are moved while it runs, and two of them may be neighbours now and far
 * apart a second later.
 */
#ifndef PERF_LINE_H
#define PERF_LINE_H

#include <stdatomic.h>

#include "clock.h"
#include "stats.h"

/* In memory both processes share, zero at first. Processors fetch lines in pairs. */
struct perf_line {
	_Alignas(128) _Atomic uint32_t ping;
	_Alignas(128) _Atomic uint32_t pong;
};

enum { PERF_LINE_TRIPS = 16, PERF_LINE_LOOK = 24 };

/* Each side counts the turns for itself, from zero, and both take part in the same number. */
static inline void perf_line_lead(struct perf_line *l, uint32_t *turn, unsigned trips)
{
	for (; trips; trips--) {
		atomic_store_explicit(&l->ping, ++*turn, memory_order_release);
		while (atomic_load_explicit(&l->pong, memory_order_acquire) != *turn)
			perf_relax();
	}
}

static inline void perf_line_follow(struct perf_line *l, uint32_t *turn, unsigned trips)
{
	for (; trips; trips--) {
		++*turn;
		while (atomic_load_explicit(&l->ping, memory_order_acquire) != *turn)
			perf_relax();
		atomic_store_explicit(&l->pong, *turn, memory_order_release);
	}
}

/* A short look, well under a millisecond: half a round trip in ns; 0 at the following side. */
static inline double perf_line_look(struct perf_line *l, uint32_t *turn, int leads)
{
	double half[PERF_LINE_LOOK];
	struct perf_stats stats;

	if (!leads) {
		perf_line_follow(l, turn, PERF_LINE_LOOK * PERF_LINE_TRIPS);
		return 0;
	}
	for (int i = 0; i < PERF_LINE_LOOK; i++) {
		uint64_t start = perf_now();

		perf_line_lead(l, turn, PERF_LINE_TRIPS);
		half[i] = perf_ns(perf_now() - start) / (2 * PERF_LINE_TRIPS);
	}
	perf_stats_of(half, PERF_LINE_LOOK, &stats);
	return stats.median;
}

#endif
