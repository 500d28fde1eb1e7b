/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Portals between the two ranks. Control messages are puts of zero bytes whose value travels in
 * hdr_data. A put that comes before its target posted the entry is dropped without a word, so the
 * channel opens with a greeting that is repeated until it is acknowledged.
 */
#define _GNU_SOURCE
#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CTL_BITS   ((ptl_match_bits_t)0x6374726c)
#define CTL_EVENTS 64
#define EVENTS     16384 /* PERF_AHEAD, the largest --window of acks, and some */
#define GREETING   UINT64_C(0xfeedfacecafe0001)
#define GREET_MS   20   /* until a greeting is repeated */
#define SLICE_MS   1000 /* of a wait; the watchdog ends waiting */

/* ---- control ---- */

static void ctl_put(struct perf *p, ptl_ack_req_t ack, uint64_t value)
{
	perf_ok(PtlPut(p->ctl_md, ack, p->other, PERF_PT_CTL, 0, CTL_BITS, 0, value),
		"PtlPut of a control message");
}

/* The next event of the control queue, or false after `ms`. */
static bool ctl_event(struct perf *p, ptl_event_t *ev, ptl_time_t ms)
{
	int which, rc = PtlEQPoll(&p->ctl_eq, 1, ms, ev, &which);

	if (rc == PTL_EQ_EMPTY)
		return false;
	perf_ok(rc, "PtlEQPoll of the control queue");
	return true;
}

void perf_ctl_send(struct perf *p, uint64_t value)
{
	ctl_put(p, PTL_NO_ACK_REQ, value);
}

/* The other rank may be through with its greeting and go on while ours is not acknowledged yet. */
static uint64_t early;
static bool have_early;

uint64_t perf_ctl_recv(struct perf *p)
{
	ptl_event_t ev;

	if (have_early) {
		have_early = false;
		return early;
	}
	for (;;) {
		while (!ctl_event(p, &ev, SLICE_MS))
			;
		if (ev.ni_fail_type != PTL_NI_OK)
			perf_fail("control message: %s", PtlNIFailStr(p->ni, ev.ni_fail_type));
		if (ev.type == PTL_EVENT_PUT_END && ev.hdr_data != GREETING)
			return ev.hdr_data;
	}
}

void perf_ctl_barrier(struct perf *p)
{
	uint64_t token = 0xba221e2;

	if (p->rank)
		(void)perf_ctl_recv(p);
	perf_ctl_send(p, token);
	if (!p->rank)
		(void)perf_ctl_recv(p);
}

static void greet(struct perf *p)
{
	ptl_event_t ev;

	perf_watch("waiting for the other rank to answer");
	for (;;) {
		ctl_put(p, PTL_ACK_REQ, GREETING);
		while (ctl_event(p, &ev, GREET_MS)) {
			if (ev.ni_fail_type != PTL_NI_OK)
				perf_fail("greeting nid %u pid %u: %s", p->other.nid, p->other.pid,
					  PtlNIFailStr(p->ni, ev.ni_fail_type));
			if (ev.type == PTL_EVENT_PUT_END && ev.hdr_data != GREETING) {
				early = ev.hdr_data;
				have_early = true;
			}
			if (ev.type == PTL_EVENT_ACK)
				return;
		}
	}
}

static void open_control(struct perf *p)
{
	static char nothing;
	ptl_md_t md = {
		.start = &nothing,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
	};
	ptl_handle_me_t me;

	perf_ok(PtlEQAlloc(p->ni, CTL_EVENTS, PTL_EQ_HANDLER_NONE, &p->ctl_eq), "PtlEQAlloc");
	md.eq_handle = p->ctl_eq;
	perf_ok(PtlMEAttach(p->ni, PERF_PT_CTL, p->other, CTL_BITS, 0, PTL_RETAIN, PTL_INS_AFTER,
			    &me),
		"PtlMEAttach");
	perf_ok(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
	/* Of what it sends, only the acknowledgement of a greeting is of interest. */
	md.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
	perf_ok(PtlMDBind(p->ni, md, PTL_RETAIN, &p->ctl_md), "PtlMDBind");
}

void perf_link_open(struct perf *p)
{
	perf_watch("opening the control channel");
	open_control(p);
	perf_ok(PtlEQAlloc(p->ni, EVENTS, PTL_EQ_HANDLER_NONE, &p->eq), "PtlEQAlloc");
	p->credit_me = perf_expose(p, PERF_CREDIT_BITS, NULL, 0, p->eq, NULL);
	greet(p);
	perf_ctl_barrier(p);
}

void perf_link_close(struct perf *p)
{
	perf_buffers(p, 0);
	perf_withdraw(p, p->credit_me);
	perf_ok(PtlEQFree(p->eq), "PtlEQFree");
	/* The control objects go with the interface. */
}

void perf_credit(struct perf *p)
{
	perf_ok(PtlPut(p->ctl_md, PTL_NO_ACK_REQ, p->other, PERF_PT_DATA, 0, PERF_CREDIT_BITS, 0,
		       0),
		"PtlPut of a credit");
}

/* ---- data ---- */

static void *pages(size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED)
		perf_fail("cannot get a buffer of %zu bytes: %m", len);
	return at;
}

void perf_buffers(struct perf *p, size_t len)
{
	if (p->buf_len) {
		munmap(p->tx, p->buf_len);
		munmap(p->rx, p->buf_len);
	}
	p->buf_len = len;
	p->tx = len ? pages(len) : NULL;
	p->rx = len ? pages(len) : NULL;
}

ptl_handle_me_t perf_expose_to(struct perf *p, ptl_process_id_t who, ptl_match_bits_t bits,
			       void *start, size_t len, ptl_handle_eq_t eq, void *user_ptr)
{
	ptl_md_t md = {
		.start = start,
		.length = len,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
			   PTL_MD_EVENT_START_DISABLE,
		.user_ptr = user_ptr,
		.eq_handle = eq,
	};
	ptl_handle_me_t me;

	perf_ok(PtlMEAttach(p->ni, PERF_PT_DATA, who, bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		"PtlMEAttach");
	perf_ok(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
	return me;
}

ptl_handle_me_t perf_expose(struct perf *p, ptl_match_bits_t bits, void *start, size_t len,
			    ptl_handle_eq_t eq, void *user_ptr)
{
	return perf_expose_to(p, p->other, bits, start, len, eq, user_ptr);
}

/* An operation may still be leaving its descriptor when the other side knows it done. */
static void until_idle(struct perf *p, ptl_handle_any_t handle, int (*unlink)(ptl_handle_any_t),
		       int busy, const char *what)
{
	ptl_event_t ev;
	int rc;

	while ((rc = unlink(handle)) == busy) {
		if (PtlEQGet(p->eq, &ev) == PTL_OK)
			perf_fail("%s: an event (%s) that nobody waits for", what,
				  PtlEventKindStr(ev.type));
		sched_yield();
	}
	perf_ok(rc, what);
}

void perf_withdraw(struct perf *p, ptl_handle_me_t me)
{
	until_idle(p, me, PtlMEUnlink, PTL_ME_IN_USE, "PtlMEUnlink");
}

ptl_handle_md_t perf_bind(struct perf *p, void *start, size_t len, enum perf_events events)
{
	ptl_md_t md = {
		.start = start,
		.length = len,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = events == PERF_QUIET ? PTL_EQ_NONE : p->eq,
	};
	ptl_handle_md_t handle;

	if (events != PERF_REPLIES)
		md.options |= PTL_MD_EVENT_END_DISABLE;
	perf_ok(PtlMDBind(p->ni, md, PTL_RETAIN, &handle), "PtlMDBind");
	return handle;
}

void perf_release(struct perf *p, ptl_handle_md_t md)
{
	until_idle(p, md, PtlMDUnlink, PTL_MD_IN_USE, "PtlMDUnlink");
}

void perf_wrong_event(const ptl_event_t *ev, ptl_event_kind_t want)
{
	perf_fail("expected %s, got %s (failure code %u)", PtlEventKindStr(want),
		  PtlEventKindStr(ev->type), ev->ni_fail_type);
}

/* ---- patterns ---- */

/* The pattern's word `i`: every word of every seed differs. */
static inline uint64_t pattern(uint64_t seed, size_t i)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + i;

	x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
	return x ^ (x >> 29);
}

void perf_fill(void *buf, size_t len, uint64_t seed)
{
	unsigned char *to = buf;
	size_t i = 0;

	for (uint64_t word; len; to += 8, len -= len < 8 ? len : 8) {
		word = pattern(seed, i++);
		memcpy(to, &word, len < 8 ? len : 8);
	}
}

void perf_verify(const void *buf, size_t len, uint64_t seed, const char *what)
{
	const unsigned char *from = buf;

	for (size_t at = 0; at < len; at += 8) {
		uint64_t word = pattern(seed, at / 8);
		size_t part = len - at < 8 ? len - at : 8;

		if (memcmp(from + at, &word, part) != 0)
			perf_fail("%s: wrong data at byte %zu of %zu", what, at, len);
	}
}
