/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bursts: hundreds of long puts to and gets from each of several ranks are under way at the same
 * time. Every message has a place and contents of its own, and every event is counted, so that
 * none can be lost, delivered twice or mixed up with another. Each rank has its own queues for
 * each other one, so that what one rank owes can be waited for while another stands still or is
 * dead.
 */
#include "ptest.h"

#include <stdlib.h>
#include <string.h>

enum { PORTAL = 60, PLACE = 20000, LEAST = 16500, STEP = 3, STRAY_EVERY = 10, EVENTS = 32 };

#define NOBODYS ((ptl_match_bits_t)1 << 40) /* bits that no entry has */

static struct burst {
	ptl_handle_eq_t ours, theirs;
	ptl_handle_md_t out, in,
		stray; /* what we put, where we get; of messages that nobody takes */
	unsigned char *got, *was_put;
	int seen[EVENTS];
} burst[PT_MAX_PROCS];

static size_t size_of(int message)
{
	return LEAST + (size_t)message * 997 % (PLACE - LEAST);
}

static uint64_t put_seed(int from, int to)
{
	return 1 + (uint64_t)from * PT_MAX_PROCS + (uint64_t)to;
}

static uint64_t get_seed(int from)
{
	return 100000 + (uint64_t)from;
}

static unsigned char *patterned(size_t len, uint64_t seed)
{
	unsigned char *p = malloc(len);

	pt_true(p);
	pt_fill(p, len, seed, 0);
	return p;
}

void pt_burst_open(int most)
{
	size_t places = (size_t)most * PLACE, source = PLACE + (size_t)most * STEP;
	unsigned char *offer = patterned(source, get_seed(pt_rank));

	for (int i = 0; i < pt_size; i++) {
		struct burst *b = &burst[i];
		ptl_match_bits_t bits = (ptl_match_bits_t)i * 2;
		const unsigned int how = PTL_MD_MANAGE_REMOTE;

		b->ours = pt_eq((ptl_size_t)most * 5 + 8);
		b->theirs = pt_eq((ptl_size_t)most * 4 + 8);
		b->got = calloc(1, places);
		b->was_put = calloc(1, places);
		pt_true(b->got && b->was_put);
		b->out = pt_bind(patterned(source, put_seed(pt_rank, i)), source,
				 PTL_MD_EVENT_START_DISABLE, b->ours);
		b->in = pt_bind(b->got, places, PTL_MD_EVENT_START_DISABLE, b->ours);
		b->stray = pt_bind(calloc(1, PLACE), PLACE, 0, PTL_EQ_NONE);
		pt_post(PORTAL, bits, pt_md(b->was_put, places, how | PTL_MD_OP_PUT, b->theirs),
			PTL_RETAIN, NULL);
		pt_post(PORTAL, bits + 1, pt_md(offer, source, how | PTL_MD_OP_GET, b->theirs),
			PTL_RETAIN, NULL);
	}
}

void pt_burst_start(int rank, int count)
{
	struct burst *b = &burst[rank];
	ptl_match_bits_t bits = (ptl_match_bits_t)pt_rank * 2;
	ptl_process_id_t to = pt_id(rank);

	for (int i = 0; i < count; i++) {
		ptl_size_t place = (ptl_size_t)i * PLACE, from = (ptl_size_t)i * STEP;

		pt_ok(PtlPutRegion(b->out, from, size_of(i), PTL_ACK_REQ, to, PORTAL, 0, bits,
				   place, 0));
		if (i % STRAY_EVERY == 0) /* over before those that were started before it */
			pt_ok(PtlPut(b->stray, PTL_NO_ACK_REQ, to, PORTAL, 0, NOBODYS, 0, 0));
		pt_ok(PtlGetRegion(b->in, place, size_of(i), to, PORTAL, 0, bits + 1, from));
		if (i % STRAY_EVERY == 5)
			pt_ok(PtlGet(b->stray, to, PORTAL, 0, NOBODYS, 0));
	}
}

/* Returns whether it tells of a failure. */
static bool count_event(struct burst *b, const ptl_event_t *ev, bool may_fail)
{
	pt_true((unsigned int)ev->type < (unsigned int)EVENTS);
	b->seen[ev->type]++;
	pt_truef(ev->ni_fail_type == PTL_NI_OK || may_fail, "%s failed with ni_fail_type %u",
		 pt_kind_name(ev->type), ev->ni_fail_type);
	return ev->ni_fail_type != PTL_NI_OK;
}

static bool next_event(struct burst *b, ptl_handle_eq_t eq, bool may_fail)
{
	ptl_event_t ev;

	pt_ok(PtlEQWait(eq, &ev));
	return count_event(b, &ev, may_fail);
}

static void forget(struct burst *b, ptl_event_kind_t kind)
{
	b->seen[kind] = 0;
}

/* Of a rank that is alive: each place holds its message and nothing behind it, and is empty from
 * now on. */
static void check_places(unsigned char *places, int count, uint64_t seed)
{
	static const unsigned char nothing[PLACE - LEAST];

	for (int i = 0; i < count; i++) {
		unsigned char *p = places + (size_t)i * PLACE;

		pt_holds(p, size_of(i), seed, (size_t)i * STEP);
		pt_memory(p + size_of(i), nothing, PLACE - size_of(i));
		memset(p, 0, PLACE);
	}
}

int pt_burst_ended(int rank, int count, bool may_fail)
{
	struct burst *b = &burst[rank];
	int failed = 0;

	while (b->seen[PTL_EVENT_SEND_END] < count || b->seen[PTL_EVENT_REPLY_END] < count ||
	       (!may_fail && b->seen[PTL_EVENT_ACK] < count))
		failed += next_event(b, b->ours, may_fail);
	pt_is(b->seen[PTL_EVENT_SEND_END], count);
	pt_is(b->seen[PTL_EVENT_REPLY_END], count);
	if (!may_fail)
		check_places(b->got, count, get_seed(rank));
	forget(b, PTL_EVENT_SEND_END);
	forget(b, PTL_EVENT_REPLY_END);
	forget(b, PTL_EVENT_ACK);
	return failed;
}

void pt_burst_served(int rank, int count)
{
	struct burst *b = &burst[rank];

	while (b->seen[PTL_EVENT_PUT_END] < count || b->seen[PTL_EVENT_GET_END] < count)
		next_event(b, b->theirs, false);
	pt_is(b->seen[PTL_EVENT_PUT_END], count);
	pt_is(b->seen[PTL_EVENT_GET_END], count);
	pt_is(b->seen[PTL_EVENT_PUT_START], count);
	pt_is(b->seen[PTL_EVENT_GET_START], count);
	check_places(b->was_put, count, put_seed(rank, pt_rank));
	forget(b, PTL_EVENT_PUT_START);
	forget(b, PTL_EVENT_PUT_END);
	forget(b, PTL_EVENT_GET_START);
	forget(b, PTL_EVENT_GET_END);
}

int pt_burst_cut_off(int rank)
{
	struct burst *b = &burst[rank];
	int failed = 0;
	ptl_event_t ev;

	pt_at(__FILE__, __LINE__, "waiting for the ends of what a dead rank started");
	for (;;) {
		while (PtlEQGet(b->theirs, &ev) == PTL_OK)
			failed += count_event(b, &ev, true);
		if (b->seen[PTL_EVENT_PUT_START] == b->seen[PTL_EVENT_PUT_END] &&
		    b->seen[PTL_EVENT_GET_START] == b->seen[PTL_EVENT_GET_END])
			return failed;
		pt_pause();
	}
}
