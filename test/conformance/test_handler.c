/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Event handlers: called once for every event, in order, however small the queue, also while the
 * process is outside the library (report section 3.11.6; clients such as Lustre's LND live from
 * it).
 */
#include "ptest.h"

#include <string.h>

enum { PORTAL = 24, MOST = 20000 };

static struct {
	_Atomic int count;
	ptl_event_t first, last;
	_Atomic int disorder;
} seen;

static void handler(ptl_event_t *ev)
{
	int n = atomic_load(&seen.count);

	if (n == 0)
		seen.first = *ev;
	else if (ev->type == PTL_EVENT_PUT_END && ev->hdr_data != seen.last.hdr_data + 1)
		atomic_store(&seen.disorder, 1);
	seen.last = *ev;
	atomic_store(&seen.count, n + 1);
}

static ptl_handle_eq_t handled_queue(ptl_size_t count)
{
	ptl_handle_eq_t eq;

	pt_ok(PtlEQAlloc(pt_ni, count, handler, &eq));
	return eq;
}

static void post(ptl_handle_eq_t eq, char *place)
{
	pt_post(PORTAL, 0,
		pt_md(place, 4, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | PTL_MD_MANAGE_REMOTE,
		      eq),
		PTL_RETAIN, NULL);
}

static void fire(int n)
{
	ptl_handle_md_t md = pt_bind("abc", 4, 0, PTL_EQ_NONE);

	for (int i = 0; i < n; i++)
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, (uint64_t)i));
}

/* Lets the library run until the handler was called n times. */
static void wait_seen(int n)
{
	double end = pt_lived() + pt_patience(20);

	while (seen.count < n && pt_lived() < end) {
		PtlProgress(pt_ni, 0);
		pt_pause();
	}
	pt_truef(seen.count == n,
		 "the handler was called %d times for %d events, last for number "
		 "%llu",
		 seen.count, n, (unsigned long long)seen.last.hdr_data);
}

/* Nothing is ever retrieved: the queue's size is irrelevant. */
static void a_handler_sees_every_event_of_a_tiny_queue(void)
{
	char place[4] = "";

	pt_open();
	if (pt_is_target())
		post(handled_queue(1), place);
	pt_barrier();
	if (pt_is_initiator())
		fire(MOST);
	pt_finish();
	if (pt_is_target()) {
		wait_seen(MOST);
		pt_is(seen.disorder, 0);
		pt_is(seen.last.hdr_data, MOST - 1);
		pt_is(strcmp(place, "abc"), 0);
	}
}

/* The target makes no call at all; what the client learns, it learns from the handler. */
static void a_handler_runs_while_the_process_is_outside(void)
{
	char place[4] = "";

	pt_open();
	if (pt_is_target())
		post(handled_queue(4), place);
	pt_barrier();
	if (pt_is_initiator())
		fire(10);
	if (pt_is_target())
		pt_until(seen.count == 10, 10);
	pt_barrier();
}

static void a_handler_sees_the_whole_event(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t h;
	static char place[100];
	ptl_md_t md;

	pt_open();
	if (pt_is_target()) {
		eq = handled_queue(64);
		md = pt_md(place, sizeof(place), PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
		md.user_ptr = place;
		pt_post(PORTAL, 77, md, PTL_RETAIN, &h);
	}
	pt_barrier();
	if (pt_is_initiator())
		pt_ok(PtlPut(pt_bind("xyz", 4, 0, PTL_EQ_NONE), PTL_NO_ACK_REQ, pt_target(), PORTAL,
			     0, 77, 50, 4711));
	pt_finish();
	if (!pt_is_target())
		return;
	wait_seen(2);
	pt_is(seen.first.type, PTL_EVENT_PUT_START);
	pt_is(seen.last.type, PTL_EVENT_PUT_END);
	pt_is(seen.last.hdr_data, 4711);
	pt_is(seen.last.offset, 50);
	pt_is(seen.last.mlength, 4);
	pt_is(seen.last.md_handle, h);
	pt_is(seen.last.match_bits, 77);
	pt_true(seen.last.md.user_ptr == place);
	pt_is(seen.last.initiator.pid, pt_initiator().pid);
	pt_is(strcmp(place + 50, "xyz"), 0);
}

static void events_stay_in_the_queue_beside_the_handler(void)
{
	ptl_handle_eq_t eq;
	static char place[4];

	pt_open();
	eq = handled_queue(64);
	post(eq, place);
	fire(20);
	for (uint64_t i = 0; i < 20; i++)
		pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, i);
	wait_seen(20);
}

/* The handler of one queue may use the library: it answers each put with one of its own. */
static ptl_handle_md_t answer;

static void answering_handler(ptl_event_t *ev)
{
	if (ev->type == PTL_EVENT_PUT_END)
		pt_ok(PtlPut(answer, PTL_NO_ACK_REQ, ev->initiator, PORTAL + 1, 0, 0, 0,
			     ev->hdr_data));
	atomic_fetch_add(&seen.count, 1);
}

static void a_handler_may_call_the_library(void)
{
	ptl_handle_eq_t eq, here;
	static char place[4];

	pt_open();
	here = pt_eq(256);
	if (pt_is_target()) {
		answer = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
		pt_ok(PtlEQAlloc(pt_ni, 16, answering_handler, &eq));
		post(eq, place);
	}
	if (pt_is_initiator())
		pt_post(PORTAL + 1, 0,
			pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, here),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		fire(100);
		for (uint64_t i = 0; i < 100; i++)
			pt_is(pt_next(here, PTL_EVENT_PUT_END).hdr_data, i);
	}
	pt_finish();
}

static const struct pt_test tests[] = {
	PT_MODES(a_handler_sees_every_event_of_a_tiny_queue),
	PT_CASE(a_handler_runs_while_the_process_is_outside, 2),
	PT_MODES(a_handler_sees_the_whole_event),
	PT_CASE(events_stay_in_the_queue_beside_the_handler, 1),
	PT_MODES(a_handler_may_call_the_library),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
