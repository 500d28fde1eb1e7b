/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PtlPut: the data of every size arrives, from and into contiguous and scattered memory, and what
 * the initiator learns about it (report section 3.13.2).
 */
#include "ptest.h"

#include <stdlib.h>
#include <string.h>

enum { PORTAL = 12 };

struct shape {
	size_t from, to; /* pieces: 0 is contiguous */
};

static const struct shape shapes[] = { { 0, 0 }, { 0, 7 }, { 5, 0 }, { 5, 7 } };
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void put_and_see_the_ack(size_t size, const struct shape *s, uint64_t seed)
{
	struct pt_buf buf = pt_buf_new(size, s->from);
	ptl_handle_eq_t eq = pt_eq(8);
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_handle_md_t md;

	pt_buf_fill(&buf, seed);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&buf, 0, eq), PTL_RETAIN, &md));
	pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, seed, 0, 0x1122334455667788 + seed));
	pt_await(eq, PT_ACKED, ev);
	pt_is(ev[PTL_EVENT_ACK].rlength, size);
	pt_is(ev[PTL_EVENT_ACK].mlength, size);
	pt_buf_holds(&buf, 0, size, seed, 0);
	pt_quiet(eq);
	pt_ok(PtlMDUnlink(md));
	pt_ok(PtlEQFree(eq));
	pt_buf_free(&buf);
}

static void expect_put(ptl_handle_eq_t eq, struct pt_buf *buf, uint64_t seed)
{
	ptl_event_t ev[PTL_EVENT_MAX];

	pt_await(eq, PT_PUT, ev);
	pt_is(ev[PTL_EVENT_PUT_END].mlength, buf->length);
	pt_is(ev[PTL_EVENT_PUT_END].rlength, buf->length);
	pt_is(ev[PTL_EVENT_PUT_END].hdr_data, 0x1122334455667788 + seed);
	pt_buf_holds(buf, 0, buf->length, seed, 0);
	pt_buf_guarded(buf);
	pt_quiet(eq);
	pt_buf_free(buf);
}

static void every_size_arrives_in_every_shape(void)
{
	size_t count = pt_size_count * SHAPES;
	struct pt_buf *to = calloc(count, sizeof(*to));
	ptl_handle_eq_t *eq = calloc(count, sizeof(*eq));

	pt_open();
	for (size_t i = 0; i < count && pt_is_target(); i++) {
		to[i] = pt_buf_new(pt_sizes[i / SHAPES], shapes[i % SHAPES].to);
		eq[i] = pt_eq(4);
		pt_post(PORTAL, i, pt_buf_md(&to[i], PTL_MD_OP_PUT, eq[i]), PTL_RETAIN, NULL);
	}
	pt_barrier();
	for (size_t i = 0; i < count && pt_is_initiator(); i++)
		put_and_see_the_ack(pt_sizes[i / SHAPES], &shapes[i % SHAPES], i);
	pt_finish();
	for (size_t i = 0; i < count && pt_is_target(); i++)
		expect_put(eq[i], &to[i], i);
	free(to);
	free(eq);
}

static void an_iovec_may_have_as_many_entries_as_the_limit_says(void)
{
	struct pt_buf from, to;
	ptl_ni_limits_t limits;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	size_t most;

	pt_open_with(NULL, &limits);
	eq = pt_eq(8);
	most = (size_t)limits.max_md_iovecs < 65536 ? (size_t)limits.max_md_iovecs : 65536;
	from = pt_buf_new(most * 5, most);
	to = pt_buf_new(most * 5, most - 1);
	pt_buf_fill(&from, 3);
	if (pt_is_target())
		pt_post(PORTAL, 0, pt_buf_md(&to, PTL_MD_OP_PUT, eq), PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		ptl_handle_eq_t here = pt_eq(8);

		pt_ok(PtlMDBind(pt_ni, pt_buf_md(&from, 0, here), PTL_RETAIN, &md));
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_await(here, PT_ACKED, NULL);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(eq, PT_PUT, NULL);
		pt_buf_holds(&to, 0, to.length, 3, 0);
		pt_buf_guarded(&to);
	}
}

/* The initiating side has no running offset: each put sends the whole MD from its start. */
static void every_put_sends_the_whole_md(void)
{
	ptl_handle_eq_t eq, here;
	ptl_handle_md_t md;
	static char to[30], from[10];

	pt_open();
	eq = pt_eq(16);
	memset(to, 0, sizeof(to));
	if (pt_is_target())
		pt_post(PORTAL, 0, pt_md(to, 30, PTL_MD_OP_PUT, eq), PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		here = pt_eq(16);
		md = pt_bind(from, sizeof(from), 0, here);
		pt_fill(from, sizeof(from), 5, 0);
		for (int i = 0; i < 3; i++) {
			pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 1000, 0));
			pt_await(here, PT_ACKED, NULL);
		}
	}
	pt_finish();
	for (size_t i = 0; i < 3 && pt_is_target(); i++) {
		pt_await(eq, PT_PUT, NULL);
		pt_holds(to + 10 * i, 10, 5, 0);
	}
}

static void remote_offsets_place_data(void)
{
	static const size_t offsets[] = { 50000, 0, 4096, 99990, 100000, 17 };
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_handle_eq_t eq, here;
	struct pt_buf to;
	ptl_handle_md_t md;
	static char from[10];

	pt_open();
	to = pt_buf_new(100000, 11);
	eq = pt_eq(64);
	here = pt_eq(64);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_buf_md(&to, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE, eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (size_t i = 0; i < 6 && pt_is_initiator(); i++) {
		pt_fill(from, sizeof(from), i, 0);
		md = pt_bind(from, sizeof(from), 0, here);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, offsets[i], i));
		pt_await(here, PT_ACKED, NULL);
		pt_ok(PtlMDUnlink(md));
	}
	pt_finish();
	for (size_t i = 0; i < 6 && pt_is_target(); i++) {
		pt_await(eq, PT_PUT, ev);
		pt_is(ev[PTL_EVENT_PUT_END].offset, offsets[i]);
		pt_is(ev[PTL_EVENT_PUT_END].mlength, offsets[i] == 100000 ? 0 : 10);
		pt_buf_holds(&to, offsets[i], offsets[i] == 100000 ? 0 : 10, i, 0);
	}
	if (pt_is_target())
		pt_buf_guarded(&to);
}

static void truncation_cuts_the_tail(void)
{
	static const size_t sizes[] = { 100, 5000, 300000, 2000000 };
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_handle_eq_t eq[4], here;
	struct pt_buf to[4], from;
	ptl_handle_md_t md;

	pt_open();
	here = pt_eq(8);
	for (size_t i = 0; i < 4 && pt_is_target(); i++) {
		to[i] = pt_buf_new(sizes[i] * 2 / 3, i & 1 ? 4 : 0);
		eq[i] = pt_eq(4);
		pt_post(PORTAL, i, pt_buf_md(&to[i], PTL_MD_OP_PUT | PTL_MD_TRUNCATE, eq[i]),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	for (size_t i = 0; i < 4 && pt_is_initiator(); i++) {
		from = pt_buf_new(sizes[i], i & 2 ? 3 : 0);
		pt_buf_fill(&from, i);
		pt_ok(PtlMDBind(pt_ni, pt_buf_md(&from, 0, here), PTL_RETAIN, &md));
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, i, 0, 0));
		pt_await(here, PT_ACKED, ev);
		pt_is(ev[PTL_EVENT_ACK].rlength, sizes[i]);
		pt_is(ev[PTL_EVENT_ACK].mlength, sizes[i] * 2 / 3);
		pt_is(ev[PTL_EVENT_SEND_END].mlength, sizes[i]);
		pt_buf_free(&from);
	}
	pt_finish();
	for (size_t i = 0; i < 4 && pt_is_target(); i++) {
		pt_await(eq[i], PT_PUT, ev);
		pt_is(ev[PTL_EVENT_PUT_END].rlength, sizes[i]);
		pt_is(ev[PTL_EVENT_PUT_END].mlength, sizes[i] * 2 / 3);
		pt_buf_holds(&to[i], 0, to[i].length, i, 0);
		pt_buf_guarded(&to[i]);
	}
}

/* Some go together, some in parts that both sides see to. */
static void long_puts_arrive_that_are_under_way_at_the_same_time(void)
{
	enum { COUNT = 36 };
	struct pt_buf from[COUNT], to[COUNT];
	ptl_handle_eq_t out[COUNT], in[COUNT];
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_handle_md_t md;

	pt_open();
	for (size_t i = 0; i < COUNT; i++) {
		const struct shape *s = &shapes[i % 9 ? 0 : i / 9];
		size_t size = 16385 + i % 12 * 7919 + (i % 12 == 11 ? 700000 : 0);

		from[i] = pt_buf_new(size, s->from);
		pt_buf_fill(&from[i], i);
		out[i] = pt_eq(4);
		to[i] = pt_buf_new(size, s->to);
		in[i] = pt_eq(4);
		pt_post(PORTAL, i, pt_buf_md(&to[i], PTL_MD_OP_PUT, in[i]), PTL_RETAIN, NULL);
	}
	pt_barrier();
	for (size_t i = 0; i < COUNT && pt_is_initiator(); i++) {
		pt_ok(PtlMDBind(pt_ni, pt_buf_md(&from[i], 0, out[i]), PTL_RETAIN, &md));
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, i, 0,
			     0x1122334455667788 + i));
	}
	for (size_t i = 0; i < COUNT && pt_is_initiator(); i++)
		pt_await(out[i], PT_ACKED, ev);
	pt_finish();
	for (size_t i = 0; i < COUNT && pt_is_target(); i++)
		expect_put(in[i], &to[i], i);
}

/* P3.3 3.13.2: used as the header of an unexpected message by every MPI. */
static void a_truncated_put_of_nothing_is_logged_and_acked(void)
{
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_handle_eq_t eq, here;
	ptl_handle_md_t md;
	static char from[1 << 20];

	pt_open();
	eq = pt_eq(8);
	here = pt_eq(8);
	if (pt_is_target())
		pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, eq), PTL_RETAIN,
			NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(from, sizeof(from), 0, here);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 99));
		pt_await(here, PT_ACKED, ev);
		pt_is(ev[PTL_EVENT_ACK].rlength, sizeof(from));
		pt_is(ev[PTL_EVENT_ACK].mlength, 0);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(eq, PT_PUT, ev);
		pt_is(ev[PTL_EVENT_PUT_END].rlength, sizeof(from));
		pt_is(ev[PTL_EVENT_PUT_END].mlength, 0);
		pt_is(ev[PTL_EVENT_PUT_END].hdr_data, 99);
		pt_is(pt_status(PTL_SR_DROP_COUNT), 0);
	}
}

static void no_ack_without_request_or_with_ack_disabled(void)
{
	ptl_handle_eq_t here;
	ptl_handle_md_t md;
	char byte = 1, to[4];

	pt_open();
	here = pt_eq(32);
	if (pt_is_target()) {
		pt_post(PORTAL, 0,
			pt_md(to, 1, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
		pt_post(PORTAL, 1, pt_md(to, 1, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(&byte, 1, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, here);
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 1, 0, 0));
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 2, 0,
			     0)); /* nobody takes it */
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 1, 0, 0));
		pt_is(pt_next(here, PTL_EVENT_ACK).match_bits, 1);
		pt_quiet(here);
	}
	pt_finish();
	if (pt_is_initiator())
		pt_quiet(here);
}

/* The buffer belongs to the initiator again with SEND_END, whatever the target does. */
static void the_buffer_may_be_reused_after_send_end(void)
{
	static const size_t sizes[] = { 16, 2048, 2049, 65536, 1 << 20 };
	enum { ROUNDS = 8 };
	static unsigned char from[1 << 20];
	unsigned char *to[5] = { NULL };
	ptl_handle_eq_t eq, here;
	ptl_handle_md_t md;

	pt_open();
	eq = pt_eq(256);
	here = pt_eq(64);
	for (size_t i = 0; i < 5 && pt_is_target(); i++) {
		to[i] = malloc(sizes[i] * ROUNDS);
		pt_post(PORTAL, i,
			pt_md(to[i], sizes[i] * ROUNDS, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE,
			      eq),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	for (size_t i = 0; i < 5 && pt_is_initiator(); i++) {
		md = pt_bind(from, sizes[i], 0, here);
		for (int r = 0; r < ROUNDS; r++) {
			pt_fill(from, sizes[i], (uint64_t)r, 0);
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, i, 0, 0));
			pt_await(here, PT_SENT, NULL);
			memset(from, 0xee, sizes[i]);
		}
	}
	pt_finish();
	for (size_t i = 0; i < 5 * ROUNDS && pt_is_target(); i++)
		pt_next(eq, PTL_EVENT_PUT_END);
	for (size_t i = 0; i < 5 && pt_is_target(); i++)
		for (size_t r = 0; r < ROUNDS; r++)
			pt_holds(to[i] + r * sizes[i], sizes[i], r, 0);
}

static const struct pt_test tests[] = {
	PT_MODES(every_size_arrives_in_every_shape),
	PT_MODES(an_iovec_may_have_as_many_entries_as_the_limit_says),
	PT_MODES(every_put_sends_the_whole_md),
	PT_MODES(remote_offsets_place_data),
	PT_MODES(long_puts_arrive_that_are_under_way_at_the_same_time),
	PT_MODES(truncation_cuts_the_tail),
	PT_MODES(a_truncated_put_of_nothing_is_logged_and_acked),
	PT_MODES(no_ack_without_request_or_with_ack_disabled),
	PT_MODES(the_buffer_may_be_reused_after_send_end),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
