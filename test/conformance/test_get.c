/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PtlGet: the reply of every size lands, from and into contiguous and scattered memory, and what
 * both sides learn about it (report section 3.13.4).
 */
#include "ptest.h"

#include <stdlib.h>
#include <string.h>

enum { PORTAL = 13 };

struct shape {
	size_t from, to; /* pieces: 0 is contiguous */
};

static const struct shape shapes[] = { { 0, 0 }, { 0, 7 }, { 5, 0 }, { 5, 7 } };
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void get_and_check(size_t size, const struct shape *s, uint64_t seed)
{
	struct pt_buf buf = pt_buf_new(size, s->to);
	ptl_handle_eq_t eq = pt_eq(8);
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_handle_md_t md;

	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&buf, 0, eq), PTL_RETAIN, &md));
	pt_ok(PtlGet(md, pt_target(), PORTAL, 0, seed, 0));
	pt_await(eq, PT_REPLIED, ev);
	pt_is(ev[PTL_EVENT_REPLY_END].mlength, size);
	pt_is(ev[PTL_EVENT_REPLY_END].rlength, size);
	pt_buf_holds(&buf, 0, size, seed, 0);
	pt_buf_guarded(&buf);
	pt_quiet(eq);
	pt_ok(PtlMDUnlink(md));
	pt_ok(PtlEQFree(eq));
	pt_buf_free(&buf);
}

static void every_size_is_fetched_in_every_shape(void)
{
	size_t count = pt_size_count * SHAPES;
	struct pt_buf *from = calloc(count, sizeof(*from));
	ptl_handle_eq_t *eq = calloc(count, sizeof(*eq));
	ptl_event_t ev[PTL_EVENT_MAX];

	pt_open();
	for (size_t i = 0; i < count && pt_is_target(); i++) {
		from[i] = pt_buf_new(pt_sizes[i / SHAPES], shapes[i % SHAPES].from);
		pt_buf_fill(&from[i], i);
		eq[i] = pt_eq(4);
		pt_post(PORTAL, i, pt_buf_md(&from[i], PTL_MD_OP_GET, eq[i]), PTL_RETAIN, NULL);
	}
	pt_barrier();
	for (size_t i = 0; i < count && pt_is_initiator(); i++)
		get_and_check(pt_sizes[i / SHAPES], &shapes[i % SHAPES], i);
	pt_finish();
	for (size_t i = 0; i < count && pt_is_target(); i++) {
		pt_await(eq[i], PT_GOT, ev);
		pt_is(ev[PTL_EVENT_GET_END].mlength, from[i].length);
		pt_is(ev[PTL_EVENT_GET_END].hdr_data, 0);
		pt_buf_holds(&from[i], 0, from[i].length, i, 0);
		pt_quiet(eq[i]);
	}
}

/* A get that asks for more than there is: what is there comes, at the start of the buffer. */
static void truncated_gets_bring_what_there_is(void)
{
	static const size_t sizes[] = { 100, 5000, 300000, 2000000 };
	ptl_event_t ev[PTL_EVENT_MAX];
	ptl_handle_eq_t eq[4], here;
	struct pt_buf from[4], to;
	ptl_handle_md_t md;

	pt_open();
	here = pt_eq(8);
	/* what the target still hears of a reply may come after the next get */
	for (size_t i = 0; i < 4 && pt_is_target(); i++) {
		eq[i] = pt_eq(4);
		from[i] = pt_buf_new(sizes[i] / 3, i & 1 ? 4 : 0);
		pt_buf_fill(&from[i], i);
		pt_post(PORTAL, i, pt_buf_md(&from[i], PTL_MD_OP_GET | PTL_MD_TRUNCATE, eq[i]),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	for (size_t i = 0; i < 4 && pt_is_initiator(); i++) {
		to = pt_buf_new(sizes[i], i & 2 ? 3 : 0);
		pt_buf_fill(&to, 77);
		pt_ok(PtlMDBind(pt_ni, pt_buf_md(&to, 0, here), PTL_RETAIN, &md));
		pt_ok(PtlGet(md, pt_target(), PORTAL, 0, i, 0));
		pt_await(here, PT_REPLIED, ev);
		pt_is(ev[PTL_EVENT_REPLY_END].mlength, sizes[i] / 3);
		pt_buf_holds(&to, 0, sizes[i] / 3, i, 0);
		pt_buf_holds(&to, sizes[i] / 3, sizes[i] - sizes[i] / 3, 77, sizes[i] / 3);
		pt_buf_guarded(&to);
		pt_buf_free(&to);
	}
	pt_finish();
	for (size_t i = 0; i < 4 && pt_is_target(); i++) {
		pt_await(eq[i], PT_GOT, ev);
		pt_is(ev[PTL_EVENT_GET_END].rlength, sizes[i]);
		pt_is(ev[PTL_EVENT_GET_END].mlength, sizes[i] / 3);
	}
}

/* ... also to who has a small inbox, of which the reply would be half, wherever in it the next
 * one would begin. */
static void truncated_gets_fit_the_inbox_of_who_asks(void)
{
	enum { HAS = 16384, ASKS = 4 * HAS, TIMES = 1000 };
	static char from[HAS], to[ASKS];
	ptl_handle_eq_t here;
	ptl_handle_md_t md;
	ptl_event_t ev[PTL_EVENT_MAX];

	if (pt_is_initiator()) {
		setenv("PTL_SHM_EAGER", "0", 1);
		setenv("PTL_SHM_RING_KIB", "4", 1);
	}
	pt_open();
	here = pt_eq(8);
	if (pt_is_target()) {
		pt_fill(from, HAS, 5, 0);
		pt_post(PORTAL, 0,
			pt_md(from, HAS, PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(to, ASKS, PTL_MD_EVENT_START_DISABLE, here);
		for (int i = 0; i < TIMES; i++) {
			ptl_size_t offset = i % 2 ? (ptl_size_t)(i % 8) * 64 : 0;

			pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, offset));
			pt_await(here, PT_BIT(PTL_EVENT_REPLY_END), ev);
			pt_is(ev[PTL_EVENT_REPLY_END].mlength, HAS - offset);
		}
		pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, 0));
		pt_await(here, PT_BIT(PTL_EVENT_REPLY_END), ev);
		pt_holds(to, HAS, 5, 0);
	}
	pt_finish();
}

static void gets_walk_through_a_locally_managed_md(void)
{
	ptl_handle_eq_t eq, here;
	static char from[30], to[10];
	ptl_handle_md_t md;

	pt_open();
	eq = pt_eq(16);
	here = pt_eq(16);
	pt_fill(from, sizeof(from), 9, 0);
	if (pt_is_target())
		pt_post(PORTAL, 0, pt_md(from, 30, PTL_MD_OP_GET, eq), PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(to, sizeof(to), 0, here);
		for (size_t i = 0; i < 3; i++) {
			pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, 555));
			pt_await(here, PT_REPLIED, NULL);
			pt_holds(to, 10, 9, 10 * i);
		}
	}
	pt_finish();
	for (size_t i = 0; i < 3 && pt_is_target(); i++) {
		ptl_event_t ev[PTL_EVENT_MAX];

		pt_await(eq, PT_GOT, ev);
		pt_is(ev[PTL_EVENT_GET_END].offset, 10 * i);
	}
}

static void gets_at_remote_offsets(void)
{
	static const size_t offsets[] = { 50000, 0, 4097, 99990 };
	struct pt_buf from;
	ptl_handle_eq_t here;
	ptl_handle_md_t md;
	static char to[10];

	pt_open();
	from = pt_buf_new(100000, 13);
	pt_buf_fill(&from, 6);
	here = pt_eq(16);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_buf_md(&from, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(to, sizeof(to), 0, here);
		for (size_t i = 0; i < 4; i++) {
			pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, offsets[i]));
			pt_await(here, PT_REPLIED, NULL);
			pt_holds(to, 10, 6, offsets[i]);
		}
	}
	pt_finish();
}

static void a_dropped_get_has_no_reply(void)
{
	ptl_handle_eq_t here;
	ptl_handle_md_t md;
	char in[8], out[8] = "abcdefg";

	pt_open();
	here = pt_eq(16);
	if (pt_is_target())
		pt_post(PORTAL, 1, pt_md(out, 8, PTL_MD_OP_GET, PTL_EQ_NONE), PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(in, 8, 0, here);
		pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, 0));
		pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 1, 0));
		pt_await(here, PT_REPLIED, NULL);
		pt_is(memcmp(in, out, 8), 0);
	}
	pt_finish();
	if (pt_is_target())
		pt_wait_drops(1);
	if (pt_is_initiator())
		pt_quiet(here);
}

/* Replies are large and many: nothing is mixed up. */
static void many_gets_may_be_under_way_at_once(void)
{
	enum { N = 64, SIZE = 200000 };
	static unsigned char out[N * 64 + SIZE], in[N][SIZE];
	ptl_handle_eq_t here;
	ptl_handle_md_t md;
	ptl_event_t ev;

	pt_open();
	here = pt_eq(N * 2);
	pt_fill(out, sizeof(out), 8, 0);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(out, sizeof(out), PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (size_t i = 0; i < N && pt_is_initiator(); i++) {
		md = pt_bind(in[i], SIZE, PTL_MD_EVENT_START_DISABLE, here);
		pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 0, i * 64));
	}
	for (size_t i = 0; i < N && pt_is_initiator(); i++) {
		ev = pt_next(here, PTL_EVENT_REPLY_END);
		pt_is(ev.mlength, SIZE);
	}
	for (size_t i = 0; i < N && pt_is_initiator(); i++)
		pt_holds(in[i], SIZE, 8, i * 64);
	pt_finish();
}

static const struct pt_test tests[] = {
	PT_MODES(every_size_is_fetched_in_every_shape),
	PT_MODES(truncated_gets_bring_what_there_is),
	PT_MODES(truncated_gets_fit_the_inbox_of_who_asks),
	PT_MODES(gets_walk_through_a_locally_managed_md),
	PT_MODES(gets_at_remote_offsets),
	PT_MODES(a_dropped_get_has_no_reply),
	PT_MODES(many_gets_may_be_under_way_at_once),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
