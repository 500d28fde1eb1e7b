/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How many messages are in flight, and how many make a sample.
 */
#ifndef PERF_WINDOW_H
#define PERF_WINDOW_H

#include "perf.h"

#define PERF_WINDOW    64
#define PERF_IN_FLIGHT ((size_t)4 << 20) /* bytes */

/* 64 messages in flight, fewer when they are long, never under 4; or what --window says. */
static inline size_t perf_window(const struct perf *p, size_t size)
{
	size_t window = size ? PERF_IN_FLIGHT / size : PERF_WINDOW;

	if (p->opt.window)
		return p->opt.window;
	return window < 4 ? 4 : window > PERF_WINDOW ? PERF_WINDOW : window;
}

/* Messages in one sample: acknowledgements come in bursts, so a sample spans
 * several windows; the median of shorter samples would be that of the bursts. */
static inline size_t perf_batch(const struct perf *p, size_t size)
{
	return perf_window(p, size) * (size <= 16384 ? 8 : 4);
}

/* Round trips in one sample: several of short messages, because the timer's steps (10 ns on some
 * machines) and its cost would show in one. */
static inline size_t perf_trips(size_t size)
{
	return size <= 4096 ? 16 : 1;
}

#endif
