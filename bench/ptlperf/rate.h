/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The stream of short puts that the message rate and the match test are measured with.
 */
#ifndef PERF_RATE_H
#define PERF_RATE_H

#include "link.h"
#include "measure.h"

/* An entry that a put is for: its user_ptr is the number. */
struct perf_target {
	ptl_match_bits_t bits;
	uint64_t number;
};

struct perf_stream {
	size_t window; /* puts per acknowledgement; each has 8 bytes of the buffers */
	ptl_handle_md_t md;
	const struct perf_target *order; /* in turn; NULL: always PERF_BITS and 0 */
	size_t order_mask, next;
	size_t astray; /* rank 1: events of an entry that was not meant */
};

/* Of a perf_pattern. */
void perf_stream_prepare(struct perf *p, void *arg, uint64_t seed);
void perf_stream_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks);
void perf_stream_run1(struct perf *p, void *arg, size_t samples);
void perf_stream_verify(struct perf *p, void *arg, uint64_t seed);

/* Puts in a window, as the options say. */
size_t perf_stream_window(struct perf *p);
/* Puts in a sample. */
double perf_stream_puts(const struct perf_stream *s);

#endif
