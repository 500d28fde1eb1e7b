/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The single costs that models of communication are made of: what a call takes at the sender,
 * what a message takes at the receiver, what lies between messages that follow each other. Each
 * is measured alone, in an exchange in which nothing else is timed.
 *
 * A rank "computes" here by looking at the clock, outside of the library.
 */
#ifndef PERF_PROBE_H
#define PERF_PROBE_H

#include "measure.h"
#include "perf.h"

enum { PERF_MOST_BURST = 64 };

struct perf_probe {
	size_t size;
	unsigned burst;    /* messages that follow each other */
	uint64_t away;     /* ticks that a rank computes: longer than a message is under way */
	uint64_t pause;    /* ticks between messages of a train */
	unsigned outsider; /* the rank that computes, or takes the burst */
	ptl_handle_me_t me;
	ptl_handle_md_t md, empty;
};

/* p->tx and p->rx hold `size` bytes at least. `one_way_ns` is what a message of this size takes. */
void perf_probe_open(struct perf *p, struct perf_probe *b, size_t size, double one_way_ns);
void perf_probe_close(struct perf *p, struct perf_probe *b);

/* Each of these measures one sample; ns. All are called by both ranks. */

/* PtlPut to a target that waits inside the library. */
void perf_probe_put(struct perf *p, struct perf_probe *b, struct perf_result *r);
/* PtlPut to oneself, delivered when it returns, and the event taken: rank 0 alone, and the time
 * of the former only. */
void perf_probe_put_self(struct perf *p, struct perf_probe *b, struct perf_result *r);
/* PtlPut to a target that computes. */
void perf_probe_put_away(struct perf *p, struct perf_probe *b, struct perf_result *r);
/* Taking the event of a message that arrived while one was computing. */
void perf_probe_take(struct perf *p, struct perf_probe *b, struct perf_result *r);
/* PtlPut of `burst` messages, one straight after the other: from the first call to the end of
 * the last. */
void perf_probe_send_burst(struct perf *p, struct perf_probe *b, struct perf_result *r);
/* From the first to the last event of such a burst, at its target. */
void perf_probe_take_burst(struct perf *p, struct perf_probe *b, struct perf_result *r);
/* The parametrized round trip: `count` messages with `pause` after each but the last, and one back;
 * the pauses are not part of the sample. */
void perf_probe_train(struct perf *p, struct perf_probe *b, unsigned count, double pause_ns,
		      struct perf_result *r);

#endif
