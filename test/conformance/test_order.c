/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ordering between a pair of processes: requests are matched in the order in which they were
 * started, short or long, puts and gets alike (report section 2.1 and the text on ordering).
 */
#include "ptest.h"

#include <stdlib.h>
#include <string.h>

enum { PORTAL = 26, LONGEST = 300000 };

static size_t size_of(uint64_t i)
{
	static const size_t some[] = { 0, 8, 100, 2048, 2049, 9000, 70000, LONGEST };
	uint64_t seed = i;
	uint64_t r = pt_random(&seed);

	return r % 64 < 56 ? r % 300 : some[r % 8];
}

/* Sends `count` numbered puts from a place each of their own in a ring of buffers. */
static void send_numbered(ptl_process_id_t to, uint64_t count, ptl_match_bits_t bits)
{
	enum { WINDOW = 16 };
	static unsigned char ring[WINDOW][LONGEST];
	ptl_handle_eq_t eq[WINDOW];
	ptl_handle_md_t md[WINDOW];

	for (uint64_t i = 0; i < WINDOW; i++) {
		eq[i] = pt_eq(8);
		md[i] = pt_bind(ring[i], LONGEST, PTL_MD_EVENT_START_DISABLE, eq[i]);
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t slot = i % WINDOW;

		if (i >= WINDOW)
			pt_next(eq[slot], PTL_EVENT_SEND_END);
		pt_fill(ring[slot], size_of(i), i, 0);
		pt_ok(PtlPutRegion(md[slot], 0, size_of(i), PTL_NO_ACK_REQ, to, PORTAL, 0, bits, 0,
				   i));
	}
	for (uint64_t i = 0; i < WINDOW && i < count; i++)
		pt_next(eq[(count + i) % WINDOW], PTL_EVENT_SEND_END);
}

/* Puts of all sizes into one locally managed MD: their places follow from the order alone. */
static void expect_numbered(ptl_handle_eq_t eq, const unsigned char *place, uint64_t count)
{
	uint64_t starts = 0, ends = 0;
	size_t offset = 0;
	ptl_event_t ev;

	while (ends < count) {
		pt_at(__FILE__, __LINE__, "waiting for numbered puts");
		pt_ok(PtlEQWait(eq, &ev));
		if (ev.type == PTL_EVENT_PUT_END) {
			pt_holds(place + ev.offset, ev.mlength, ev.hdr_data, 0);
			ends++;
			continue;
		}
		pt_is(ev.type, PTL_EVENT_PUT_START);
		pt_is(ev.hdr_data, starts);
		pt_is(ev.offset, offset);
		pt_is(ev.mlength, size_of(starts));
		offset += ev.mlength;
		starts++;
	}
}

static size_t total_size(uint64_t count)
{
	size_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum += size_of(i);
	return sum;
}

static void puts_start_in_the_order_of_their_calls(void)
{
	const uint64_t count = pt_rounds(20000);
	unsigned char *place = NULL;
	ptl_handle_eq_t eq = PTL_EQ_NONE;

	pt_open();
	if (pt_is_target()) {
		place = malloc(total_size(count));
		pt_true(place != NULL);
		eq = pt_eq(2 * count);
		pt_post(PORTAL, 0, pt_md(place, total_size(count), PTL_MD_OP_PUT, eq), PTL_RETAIN,
			NULL);
	}
	pt_barrier();
	if (pt_is_initiator())
		send_numbered(pt_target(), count, 0);
	if (pt_target_is_away())
		pt_barrier(); /* the target stays outside until all is sent */
	if (pt_is_target())
		expect_numbered(eq, place, count);
	free(place);
}

static void every_pair_is_ordered_in_both_directions(void)
{
	enum { PROCS = 4 };
	const uint64_t count = pt_rounds(3000);
	unsigned char *place[PROCS];
	ptl_handle_eq_t eq[PROCS];

	pt_open();
	for (int i = 0; i < pt_size; i++) {
		place[i] = malloc(total_size(count));
		pt_true(place[i] != NULL);
		eq[i] = pt_eq(2 * count);
		pt_post(PORTAL, (ptl_match_bits_t)i,
			pt_md(place[i], total_size(count), PTL_MD_OP_PUT, eq[i]), PTL_RETAIN, NULL);
	}
	pt_barrier();
	send_numbered(pt_id((pt_rank + 1) % pt_size), count, (ptl_match_bits_t)pt_rank);
	send_numbered(pt_id((pt_rank + pt_size - 1) % pt_size), count, (ptl_match_bits_t)pt_rank);
	for (int i = 0; i < pt_size; i++)
		if (i == (pt_rank + 1) % pt_size || i == (pt_rank + pt_size - 1) % pt_size)
			expect_numbered(eq[i], place[i], count);
	pt_barrier();
}

/* Mixed operations on one portal use up single-use entries in the order of the calls. */
static void puts_gets_and_swaps_share_one_order(void)
{
	enum { COUNT = 3000 };
	static char out[64], in[64];
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;
	ptl_md_t entry;

	pt_open();
	eq = pt_eq(COUNT * 2);
	for (uintptr_t i = 0; i < COUNT && pt_is_target(); i++) {
		entry = pt_md(in, sizeof(in),
			      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE |
				      PTL_MD_EVENT_START_DISABLE,
			      eq);
		entry.threshold = 1;
		entry.user_ptr = (void *)i;
		pt_post(PORTAL, 0, entry, PTL_UNLINK, NULL);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(out, sizeof(out), 0, PTL_EQ_NONE);
		for (uint64_t i = 0; i < COUNT; i++) {
			if (i % 3 == 0)
				pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, i));
			else if (i % 3 == 1)
				pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, 0));
			else
				pt_ok(PtlGetPut(md, md, pt_target(), PORTAL, 0, 0, 0, i));
		}
	}
	pt_finish();
	for (int i = 0; i < COUNT && pt_is_target();) {
		static const ptl_event_kind_t kinds[] = { PTL_EVENT_PUT_END, PTL_EVENT_GET_END,
							  PTL_EVENT_GETPUT_END };

		pt_ok(PtlEQWait(eq, &ev));
		if (ev.type == PTL_EVENT_UNLINK)
			continue;
		pt_is(ev.type, kinds[(uintptr_t)ev.md.user_ptr % 3]);
		pt_true(ev.type == PTL_EVENT_GET_END || ev.hdr_data == (uintptr_t)ev.md.user_ptr);
		i++;
	}
}

/* A long message whose data takes a while does not hold back the matching of short ones. */
static void long_messages_keep_their_place(void)
{
	enum { LONG = 8 << 20, ROUNDS = 10 };
	static char from[LONG], to[LONG];
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;
	ptl_md_t entry;

	pt_open();
	eq = pt_eq(64);
	md = pt_bind(from, LONG, 0, PTL_EQ_NONE);
	for (int r = 0; r < ROUNDS; r++) {
		for (uintptr_t i = 0; i < 3 && pt_is_target(); i++) {
			entry = pt_md(to, LONG, PTL_MD_OP_PUT, eq);
			entry.threshold = 1;
			entry.user_ptr = (void *)i;
			pt_post(PORTAL, 0, entry, PTL_UNLINK, NULL);
		}
		pt_barrier();
		if (pt_is_initiator()) {
			pt_ok(PtlPutRegion(md, 0, 8, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0,
					   0));
			pt_ok(PtlPutRegion(md, 0, LONG, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0,
					   0, 1));
			pt_ok(PtlPutRegion(md, 0, 8, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0,
					   2));
		}
		for (int ends = 0; ends < 3 && pt_is_target();) {
			pt_ok(PtlEQWait(eq, &ev));
			if (ev.type != PTL_EVENT_UNLINK)
				pt_is((uintptr_t)ev.md.user_ptr, ev.hdr_data);
			ends += ev.type == PTL_EVENT_UNLINK;
		}
		pt_barrier();
	}
}

/* An operation that was started ends without another call of its initiator. */
static void a_burst_arrives_though_its_sender_left(uint64_t count, size_t length)
{
	static char from[1 << 20], to[1 << 20];
	ptl_handle_eq_t eq = PTL_EQ_NONE;
	ptl_handle_md_t md;

	pt_open();
	if (pt_is_target()) {
		eq = pt_eq(count);
		pt_post(PORTAL, 0,
			pt_md(to, sizeof(to),
			      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			      eq),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(from, length, 0, PTL_EQ_NONE);
		for (uint64_t i = 0; i < count; i++)
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, i));
	}
	if (pt_target_is_away())
		pt_barrier();
	for (uint64_t i = 0; i < count && pt_is_target(); i++)
		pt_next(eq, PTL_EVENT_PUT_END);
	pt_barrier();
}

static void short_messages_arrive_though_their_sender_left(void)
{
	a_burst_arrives_though_its_sender_left(pt_rounds(20000), 8);
}

static void long_messages_arrive_though_their_sender_left(void)
{
	a_burst_arrives_though_its_sender_left(20, 1 << 20);
}

static const struct pt_test tests[] = {
	PT_MODES(puts_start_in_the_order_of_their_calls),
	PT_CASE(every_pair_is_ordered_in_both_directions, 4),
	PT_MODES(puts_gets_and_swaps_share_one_order),
	PT_MODES(long_messages_keep_their_place),
	PT_MODES(short_messages_arrive_though_their_sender_left),
	PT_MODES(long_messages_arrive_though_their_sender_left),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
