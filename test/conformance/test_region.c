/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PtlPutRegion and PtlGetRegion: any part of an MD, scattered or not, to and from any part of
 * another, and the refusal of what lies outside (report sections 3.13.3 and 3.13.5).
 */
#include "ptest.h"

#include <string.h>

enum { PORTAL = 14, BITS = 4 };

/* One move: [local, +len) of the initiator's region and [remote, +len) of the target's. */
struct move {
	size_t local, remote, len;
};

static struct move random_move(uint64_t *seed, size_t size)
{
	struct move m;

	m.len = pt_random(seed) % (pt_random(seed) % 4 ? 200 : size / 2);
	m.local = pt_random(seed) % (size - m.len + 1);
	m.remote = pt_random(seed) % (size - m.len + 1);
	return m;
}

struct setting {
	size_t size, local_pieces, remote_pieces;
	int moves;
};

static const struct setting settings[] = {
	{ 10000, 0, 0, 60 },    { 10000, 9, 0, 60 },      { 10000, 0, 9, 60 },
	{ 10000, 40, 33, 60 },  { 1000000, 0, 0, 20 },    { 1000000, 50, 0, 20 },
	{ 1000000, 0, 50, 20 }, { 1000000, 200, 77, 20 },
};
enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

/* Both sides follow the same random moves; each region starts with a pattern of its own. */
static void put_regions_of(const struct setting *s, uint64_t which)
{
	struct pt_buf local = pt_buf_new(s->size, s->local_pieces);
	struct pt_buf remote = pt_buf_new(s->size, s->remote_pieces);
	ptl_handle_eq_t eq = pt_eq(8), here = pt_eq(8);
	ptl_event_t ev[PTL_EVENT_MAX];
	uint64_t seed = which;
	ptl_handle_md_t md;

	pt_buf_fill(&local, 1);
	if (pt_is_target())
		pt_post(PORTAL, which, pt_buf_md(&remote, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq),
			PTL_RETAIN, NULL);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&local, 0, here), PTL_RETAIN, &md));
	for (int i = 0; i < s->moves; i++) {
		struct move m = random_move(&seed, s->size);

		pt_buf_fill(&remote, 2);
		pt_barrier();
		if (pt_is_initiator()) {
			pt_ok(PtlPutRegion(md, m.local, m.len, PTL_ACK_REQ, pt_target(), PORTAL, 0,
					   which, m.remote, 5));
			pt_await(here, PT_ACKED, ev);
			pt_is(ev[PTL_EVENT_ACK].mlength, m.len);
			pt_is(ev[PTL_EVENT_SEND_END].rlength, m.len);
		}
		pt_finish();
		if (!pt_is_target())
			continue;
		pt_await(eq, PT_PUT, ev);
		pt_is(ev[PTL_EVENT_PUT_END].offset, m.remote);
		pt_is(ev[PTL_EVENT_PUT_END].mlength, m.len);
		pt_buf_holds(&remote, 0, m.remote, 2, 0);
		pt_buf_holds(&remote, m.remote, m.len, 1, m.local);
		pt_buf_holds(&remote, m.remote + m.len, s->size - m.remote - m.len, 2,
			     m.remote + m.len);
		pt_buf_guarded(&remote);
	}
	pt_barrier();
}

static void put_regions_move_what_they_name(void)
{
	pt_open();
	for (uint64_t i = 0; i < SETTINGS; i++)
		put_regions_of(&settings[i], i);
}

static void get_regions_of(const struct setting *s, uint64_t which)
{
	struct pt_buf local = pt_buf_new(s->size, s->local_pieces);
	struct pt_buf remote = pt_buf_new(s->size, s->remote_pieces);
	ptl_handle_eq_t here = pt_eq(8);
	ptl_event_t ev[PTL_EVENT_MAX];
	uint64_t seed = which + 100;
	ptl_handle_md_t md;

	pt_buf_fill(&remote, 1);
	if (pt_is_target())
		pt_post(PORTAL, which,
			pt_buf_md(&remote, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&local, 0, here), PTL_RETAIN, &md));
	pt_barrier();
	for (int i = 0; i < s->moves && pt_is_initiator(); i++) {
		struct move m = random_move(&seed, s->size);

		pt_buf_fill(&local, 2);
		pt_ok(PtlGetRegion(md, m.local, m.len, pt_target(), PORTAL, 0, which, m.remote));
		pt_await(here, PT_REPLIED, ev);
		pt_is(ev[PTL_EVENT_REPLY_END].mlength, m.len);
		pt_is(ev[PTL_EVENT_REPLY_END].offset, m.local);
		pt_buf_holds(&local, 0, m.local, 2, 0);
		pt_buf_holds(&local, m.local, m.len, 1, m.remote);
		pt_buf_holds(&local, m.local + m.len, s->size - m.local - m.len, 2,
			     m.local + m.len);
		pt_buf_guarded(&local);
	}
	pt_finish();
}

static void get_regions_fetch_what_they_name(void)
{
	pt_open();
	for (uint64_t i = 0; i < SETTINGS; i++)
		get_regions_of(&settings[i], i);
}

struct bounds {
	ptl_size_t offset, length;
	int code;
};

/* Of an MD of 100 bytes. */
static const struct bounds bounds[] = {
	{ 0, 100, PTL_OK },
	{ 100, 0, PTL_OK },
	{ 99, 1, PTL_OK },
	{ 0, 101, PTL_MD_ILLEGAL },
	{ 1, 100, PTL_MD_ILLEGAL },
	{ 100, 1, PTL_MD_ILLEGAL },
	{ 101, 0, PTL_MD_ILLEGAL },
	{ ~(ptl_size_t)0, 1, PTL_MD_ILLEGAL },
	{ ~(ptl_size_t)0, 0, PTL_MD_ILLEGAL },
	{ 1, ~(ptl_size_t)0, PTL_MD_ILLEGAL },
	{ 50, ~(ptl_size_t)0 - 20, PTL_MD_ILLEGAL },
	{ ~(ptl_size_t)0 - 20, 50, PTL_MD_ILLEGAL },
	{ (ptl_size_t)1 << 63, (ptl_size_t)1 << 63, PTL_MD_ILLEGAL },
	{ (ptl_size_t)1 << 32, 0, PTL_MD_ILLEGAL },
	{ 0, (ptl_size_t)1 << 32, PTL_MD_ILLEGAL },
};

static void check_bounds(ptl_handle_md_t md)
{
	ptl_process_id_t self = pt_id(0);

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		const struct bounds *b = &bounds[i];

		pt_at(__FILE__, __LINE__, "PtlPutRegion and PtlGetRegion at the bounds");
		pt_is(PtlPutRegion(md, b->offset, b->length, PTL_NO_ACK_REQ, self, PORTAL, 0, BITS,
				   0, 0),
		      b->code);
		pt_is(PtlGetRegion(md, b->offset, b->length, self, PORTAL, 0, BITS, 0), b->code);
	}
}

static void regions_outside_the_md_are_illegal(void)
{
	struct pt_buf scattered, plain;
	ptl_handle_md_t md;

	pt_open();
	plain = pt_buf_new(100, 0);
	scattered = pt_buf_new(100, 6);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&plain, 0, PTL_EQ_NONE), PTL_RETAIN, &md));
	check_bounds(md);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&scattered, 0, PTL_EQ_NONE), PTL_RETAIN, &md));
	check_bounds(md);
}

/* A refused region uses nothing up. */
static void a_refused_region_costs_no_threshold(void)
{
	ptl_md_t md;
	ptl_handle_md_t h;
	static char bytes[10];

	pt_open();
	md = pt_md(bytes, sizeof(bytes), 0, PTL_EQ_NONE);
	md.threshold = 1;
	pt_ok(PtlMDBind(pt_ni, md, PTL_RETAIN, &h));
	pt_code(PtlPutRegion(h, 5, 6, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0),
		PTL_MD_ILLEGAL);
	pt_code(PtlGetRegion(h, 5, 6, pt_id(0), PORTAL, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_is(pt_query(h).threshold, 1);
	pt_ok(PtlPutRegion(h, 5, 5, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, 0, 0, 0));
	pt_is(pt_query(h).threshold, 0);
}

static const struct pt_test tests[] = {
	PT_MODES(put_regions_move_what_they_name),
	PT_MODES(get_regions_fetch_what_they_name),
	PT_CASE(regions_outside_the_md_are_illegal, 1),
	PT_CASE(a_refused_region_costs_no_threshold, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
