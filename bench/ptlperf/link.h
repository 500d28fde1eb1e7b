/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Portals between the two ranks: the control channel (64-bit values, a barrier), the data portal
 * with its entries and descriptors, waiting for events, and test patterns.
 */
#ifndef PERF_LINK_H
#define PERF_LINK_H

#include <sched.h>

#include "perf.h"

enum { PERF_PT_CTL = 3, PERF_PT_DATA = 4 };
#define PERF_BITS        ((ptl_match_bits_t)0x706572660000) /* of the entry most tests use */
#define PERF_CREDIT_BITS ((ptl_match_bits_t)0x637265646974)

void perf_link_open(struct perf *p);
void perf_link_close(struct perf *p);

/* ---- control ---- */

void perf_ctl_send(struct perf *p, uint64_t value);
uint64_t perf_ctl_recv(struct perf *p); /* waits as long as the watchdog allows */
void perf_ctl_barrier(struct perf *p);

/* ---- data ---- */

/* `len` bytes of tx and rx, zeroed and touched; frees what was there. */
void perf_buffers(struct perf *p, size_t len);

/* An entry for the other rank's requests with `bits`, and its descriptor over `len` bytes at
 * `start`: never used up, remote offsets, END events only, or no events with PTL_EQ_NONE. */
ptl_handle_me_t perf_expose(struct perf *p, ptl_match_bits_t bits, void *start, size_t len,
			    ptl_handle_eq_t eq, void *user_ptr);
/* The same for the requests of any process. */
ptl_handle_me_t perf_expose_to(struct perf *p, ptl_process_id_t who, ptl_match_bits_t bits,
			       void *start, size_t len, ptl_handle_eq_t eq, void *user_ptr);
void perf_withdraw(struct perf *p, ptl_handle_me_t me);

/* A free descriptor to initiate from, never used up, and the events it asks for. */
enum perf_events {
	PERF_QUIET,   /* none */
	PERF_ACKS,    /* ACK only: START and END events are disabled */
	PERF_REPLIES, /* REPLY_END */
};
ptl_handle_md_t perf_bind(struct perf *p, void *start, size_t len, enum perf_events events);
void perf_release(struct perf *p, ptl_handle_md_t md);

void perf_wrong_event(const ptl_event_t *ev, ptl_event_kind_t want) __attribute__((noreturn));

/* The next event of the data queue, waiting as the options say. */
static inline void perf_event(struct perf *p, ptl_event_t *ev)
{
	int rc;

	if (p->opt.poll) {
		do
			rc = PtlEQGet(p->eq, ev);
		while (rc == PTL_EQ_EMPTY);
	} else {
		rc = PtlEQWait(p->eq, ev);
	}
	perf_ok(rc, "waiting for an event");
}

/* The next event, which is to be a good one of this kind. */
static inline void perf_expect(struct perf *p, ptl_event_kind_t want)
{
	ptl_event_t ev;

	do /* a get announces that it was sent only if PTL_CRAY asks for that */
		perf_event(p, &ev);
	while (ev.type == PTL_EVENT_SEND_END);
	if (__builtin_expect(ev.type != want || ev.ni_fail_type != PTL_NI_OK, 0))
		perf_wrong_event(&ev, want);
}

/*
 * Flow control. An acknowledgement says that a message is in place, not that its target has
 * taken the event: with application bypass the initiator can run ahead of the target by any
 * amount, until the queue overflows. So the target sends a credit for every PERF_CREDIT events
 * it has taken, a put of no bytes whose event says so, and the initiator stays PERF_AHEAD events
 * ahead at most.
 */
#define PERF_CREDIT 1024
#define PERF_AHEAD  (8 * PERF_CREDIT)

void perf_credit(struct perf *p);

static inline bool perf_is_credit(const ptl_event_t *ev)
{
	return ev->match_bits == PERF_CREDIT_BITS && ev->type == PTL_EVENT_PUT_END;
}

/* ---- patterns ---- */

void perf_fill(void *buf, size_t len, uint64_t seed);
/* Fails the run when `buf` is not what perf_fill made of the same seed. */
void perf_verify(const void *buf, size_t len, uint64_t seed, const char *what);

#endif
