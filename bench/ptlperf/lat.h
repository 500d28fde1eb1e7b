/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The ping-pong, for the tests that set other figures beside it.
 */
#ifndef PERF_LAT_H
#define PERF_LAT_H

#include "report.h"

/* Half a round trip of puts of `size` bytes, into *r; how to read it. p->tx and p->rx hold more
 * than `size`. */
struct perf_point perf_one_way(struct perf *p, size_t size, struct perf_result *r);

/* The same for a stream of acknowledged puts one way (bw.c). */
struct perf_point perf_stream(struct perf *p, size_t size, struct perf_result *r);

#endif
