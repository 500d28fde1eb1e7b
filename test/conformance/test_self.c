/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A process that talks to itself: every operation, in one thread, with one MD being both sides,
 * overlapping memory, and many operations under way before the first event is looked at.
 */
#include "ptest.h"

#include <string.h>

enum { PORTAL = 29 };

/* One attached MD initiates towards itself. */
static void one_md_can_be_initiator_and_target(void)
{
	ptl_event_t ev[PTL_EVENT_MAX];
	unsigned char bytes[64];
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(32);
	pt_post(PORTAL, 0,
		pt_md(bytes, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, eq),
		PTL_RETAIN, &md);
	pt_fill(bytes, 64, 1, 0);
	pt_ok(PtlPutRegion(md, 0, 16, PTL_ACK_REQ, pt_id(0), PORTAL, 0, 0, 32, 9));
	pt_await(eq, PT_ACKED | PT_PUT, ev);
	pt_is(ev[PTL_EVENT_PUT_END].offset, 32);
	pt_is(ev[PTL_EVENT_SEND_END].offset, 0);
	pt_holds(bytes, 32, 1, 0);
	pt_holds(bytes + 32, 16, 1, 0);
	pt_holds(bytes + 48, 16, 1, 48);
	pt_ok(PtlGetRegion(md, 48, 16, pt_id(0), PORTAL, 0, 0, 8));
	pt_await(eq, PT_REPLIED | PT_GOT, ev);
	pt_holds(bytes + 48, 16, 1, 8);
	pt_fill(bytes, 64, 2, 0);
	pt_ok(PtlGetPutRegion(md, 16, md, 0, 8, pt_id(0), PORTAL, 0, 0, 40, 9));
	pt_await(eq, PT_SENT | PT_REPLIED | PT_SWAPPED, ev);
	pt_holds(bytes + 40, 8, 2, 0);
	pt_holds(bytes + 16, 8, 2, 40);
	pt_quiet(eq);
}

static void put_and_get_of_the_same_memory(void)
{
	static unsigned char bytes[1 << 20];
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(32);
	pt_fill(bytes, sizeof(bytes), 4, 0);
	pt_post(PORTAL, 0,
		pt_md(bytes, sizeof(bytes), PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		      PTL_EQ_NONE),
		PTL_RETAIN, NULL);
	md = pt_bind(bytes, sizeof(bytes), 0, eq);
	pt_ok(PtlPut(md, PTL_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
	pt_await(eq, PT_ACKED, NULL);
	pt_ok(PtlGet(md, pt_id(0), PORTAL, 0, 0, 0));
	pt_await(eq, PT_REPLIED, NULL);
	pt_holds(bytes, sizeof(bytes), 4, 0);
}

static void many_operations_before_the_first_look(void)
{
	enum { N = 30000 };
	static uint64_t words[3];
	int starts[PTL_EVENT_MAX] = { 0 };
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(N * 5 + 16);
	pt_post(PORTAL, 0,
		pt_md(words, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, eq),
		PTL_RETAIN, NULL);
	md = pt_bind(words + 1, 16, 0, eq);
	for (uint64_t i = 0; i < N; i++) {
		switch (i % 3) {
		case 0:
			pt_ok(PtlPutRegion(md, 0, 8, PTL_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, i));
			break;
		case 1:
			pt_ok(PtlGetRegion(md, 8, 8, pt_id(0), PORTAL, 0, 0, 0));
			break;
		default:
			pt_ok(PtlGetPutRegion(md, 8, md, 0, 8, pt_id(0), PORTAL, 0, 0, 0, i));
		}
	}
	/* per three operations: put 2+2+1, get 2+2, swap 2+2+2 */
	for (int i = 0; i < N / 3 * 15; i++) {
		pt_ok(PtlEQWait(eq, &ev));
		starts[ev.type]++;
	}
	pt_quiet(eq);
	pt_is(starts[PTL_EVENT_ACK], N / 3);
	pt_is(starts[PTL_EVENT_PUT_END], N / 3);
	pt_is(starts[PTL_EVENT_GET_START], N / 3);
	pt_is(starts[PTL_EVENT_GETPUT_END], N / 3);
	pt_is(starts[PTL_EVENT_SEND_END], N / 3 * 2);
	pt_is(starts[PTL_EVENT_REPLY_END], N / 3 * 2);
}

/* A ping-pong with oneself: each arrival sends the next, as event loops do. */
static void a_chain_of_messages_to_oneself(void)
{
	enum { HOPS = 50000 };
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(4);
	pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	md = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
	for (uint64_t i = 0; i < HOPS; i++) {
		ev = pt_next(eq, PTL_EVENT_PUT_END);
		pt_is(ev.hdr_data, i);
		pt_is(ev.initiator.pid, pt_id(0).pid);
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, ev.initiator, PORTAL, 0, 0, 0, i + 1));
	}
}

static const struct pt_test tests[] = {
	PT_CASE(one_md_can_be_initiator_and_target, 1),
	PT_CASE(put_and_get_of_the_same_memory, 1),
	PT_CASE(many_operations_before_the_first_look, 1),
	PT_CASE(a_chain_of_messages_to_oneself, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
