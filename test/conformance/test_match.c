/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which entry takes a request: list order, match and ignore bits, source filters, and the walk past
 * entries whose MD cannot take it (report section 2.2 and figure 2.5).
 */
#include "ptest.h"

#include <string.h>

static ptl_handle_me_t entry_from(ptl_process_id_t from, ptl_match_bits_t bits,
				  ptl_match_bits_t ignore)
{
	ptl_handle_me_t me;

	pt_ok(PtlMEAttach(pt_ni, 7, from, bits, ignore, PTL_UNLINK, PTL_INS_AFTER, &me));
	return me;
}

static void entry(char tag, ptl_match_bits_t bits, ptl_match_bits_t ignore)
{
	pt_entry(entry_from(pt_any, bits, ignore), tag);
}

static ptl_handle_md_t entry_md(char tag, ptl_md_t md, ptl_unlink_t unlink)
{
	ptl_handle_md_t h;

	md.user_ptr = (void *)(uintptr_t)tag;
	pt_ok(PtlMDAttach(entry_from(pt_any, 1, 0), md, unlink, &h));
	return h;
}

static void shoot_all(const ptl_match_bits_t *bits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pt_shoot(7, bits[i], 1);
}

static void the_first_in_list_order_wins(void)
{
	static const ptl_match_bits_t bits[] = { 1, 2, 1, 3, 2 };

	pt_open();
	if (pt_is_target()) {
		entry('A', 1, 0);
		entry('B', 1, 0);
		entry('C', 2, 0);
		entry('D', 2, 0);
	}
	pt_barrier();
	if (pt_is_initiator())
		shoot_all(bits, 5);
	pt_finish();
	if (pt_is_target())
		pt_taken("ACA-C");
}

static void bits_are_compared_where_not_ignored(void)
{
	static const ptl_match_bits_t bits[] = {
		0x1234567890abcdef, 0x1234567890abcdee, 0x9234567890abcdef, 0x0000000100000000,
		0x00000001000000ff, 0xff00000100000000, 0x0100000000000000, 0,
	};

	pt_open();
	if (pt_is_target()) {
		entry('A', 0x1234567890abcdef, 0);
		entry('B', 0x0000000100000055, 0x00000000000000ff);
		entry('C', 0x0100000100000000, 0xff00000000000000);
		entry('D', 0x1234567890abcdef, 0x8000000000000000);
		entry('E', 0, 0);
	}
	pt_barrier();
	if (pt_is_initiator())
		shoot_all(bits, 8);
	pt_finish();
	if (pt_is_target())
		pt_taken("A-DBBC-E");
}

static void an_exact_entry_behind_a_wildcard_does_not_jump_the_queue(void)
{
	static const ptl_match_bits_t bits[] = { 1, 2, 3, 100 };

	pt_open();
	if (pt_is_target()) {
		entry('A', 1, 0);
		entry('B', 2, ~(ptl_match_bits_t)0 ^ 0xf0); /* all but 0x10 ... 0x80 */
		entry('C', 2, 0);
		entry('D', 3, 0);
		entry('W', 0, ~(ptl_match_bits_t)0);
	}
	pt_barrier();
	if (pt_is_initiator())
		shoot_all(bits, 4);
	pt_finish();
	if (pt_is_target())
		pt_taken("ABBW");
}

static void sources_are_filtered(void)
{
	static const ptl_match_bits_t bits[] = { 1, 2, 3, 4, 5, 6 };
	ptl_process_id_t from, other;

	pt_open();
	from = pt_initiator();
	if (pt_is_target()) {
		pt_entry(entry_from(from, 1, 0), 'A');
		other = from;
		other.pid ^= 1;
		pt_entry(entry_from(other, 2, 0), 'x');
		other = from;
		other.nid ^= 1;
		pt_entry(entry_from(other, 3, 0), 'x');
		other = from;
		other.pid = PTL_PID_ANY;
		pt_entry(entry_from(other, 4, 0), 'B');
		other = from;
		other.nid = PTL_NID_ANY;
		pt_entry(entry_from(other, 5, 0), 'C');
		other = from;
		other.nid ^= 1;
		other.pid = PTL_PID_ANY;
		pt_entry(entry_from(other, 6, 0), 'x');
	}
	pt_barrier();
	if (pt_is_initiator())
		shoot_all(bits, 6);
	pt_finish();
	if (pt_is_target())
		pt_taken("A--BC-");
}

static void exact_and_wildcard_sources_keep_list_order(void)
{
	static const ptl_match_bits_t bits[] = { 1, 2 };

	pt_open();
	if (pt_is_target()) {
		pt_entry(entry_from(pt_any, 1, 0), 'A');
		pt_entry(entry_from(pt_initiator(), 1, 0), 'B');
		pt_entry(entry_from(pt_initiator(), 2, 0), 'C');
		pt_entry(entry_from(pt_any, 2, 0), 'D');
	}
	pt_barrier();
	if (pt_is_initiator())
		shoot_all(bits, 2);
	pt_finish();
	if (pt_is_target())
		pt_taken("AC");
}

static void two_sources_find_their_own_entries(void)
{
	pt_open();
	if (pt_rank == 2) {
		pt_entry(entry_from(pt_id(1), 1, 0), 'B');
		pt_entry(entry_from(pt_id(0), 1, 0), 'A');
	}
	pt_barrier();
	if (pt_rank == 0)
		pt_shoot_at(pt_id(2), 7, 0, 1, 0, 1);
	pt_barrier();
	if (pt_rank == 2)
		pt_is((uintptr_t)pt_next(pt_shots_eq(), PTL_EVENT_PUT_END).md.user_ptr, 'A');
	pt_barrier();
	if (pt_rank == 1)
		pt_shoot_at(pt_id(2), 7, 0, 1, 0, 1);
	pt_barrier();
	if (pt_rank == 2)
		pt_is((uintptr_t)pt_next(pt_shots_eq(), PTL_EVENT_PUT_END).md.user_ptr, 'B');
}

static void the_walk_passes_entries_that_cannot_take_the_request(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_me_t none;
	ptl_md_t md;

	pt_open();
	if (pt_is_target()) {
		eq = pt_shots_eq();
		none = entry_from(pt_any, 1, 0);
		(void)none; /* has no MD */
		md = pt_tagged('x', 100, PTL_MD_OP_GET);
		entry_md('g', md, PTL_RETAIN); /* takes no put */
		md = pt_tagged('x', 100, PTL_MD_OP_PUT);
		md.threshold = 0;
		entry_md('i', md, PTL_RETAIN); /* inactive */
		entry_md('S', pt_tagged('x', 10, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE), PTL_RETAIN);
		md = pt_tagged('x', 20, PTL_MD_OP_PUT);
		md.threshold = 1;
		entry_md('O', md, PTL_RETAIN); /* once, up to 20 bytes */
		entry_md('T', pt_tagged('x', 5, PTL_MD_OP_PUT | PTL_MD_TRUNCATE), PTL_RETAIN);
		pt_quiet(eq);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(7, 1, 10); /* fits S */
		pt_shoot(7, 1, 11); /* too long for S: O, used up then */
		pt_shoot(7, 1, 11); /* T, truncated */
		pt_shoot(7, 1, 0);
		pt_shoot(7, 1, 4);
		pt_shoot(7, 1, 21);
		pt_shoot(7, 2, 1);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("SOTSST-");
}

static void gets_and_puts_find_different_entries(void)
{
	ptl_handle_eq_t eq, here;
	ptl_handle_md_t md;
	char in[4] = "in", out[4] = "out", mine[4] = "";

	pt_open();
	eq = pt_eq(16);
	if (pt_is_target()) {
		pt_post(7, 1, pt_md(in, 4, PTL_MD_OP_PUT, eq), PTL_RETAIN, NULL);
		pt_post(7, 1, pt_md(out, 4, PTL_MD_OP_GET, eq), PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		here = pt_eq(16);
		md = pt_bind(mine, 4, 0, here);
		pt_ok(PtlGet(md, pt_target(), 7, 0, 1, 0));
		pt_next(here, PTL_EVENT_REPLY_START);
		pt_next(here, PTL_EVENT_REPLY_END);
		pt_is(strcmp(mine, "out"), 0);
		strcpy(mine, "new");
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), 7, 0, 1, 0, 0));
		pt_next(here, PTL_EVENT_SEND_START);
		pt_next(here, PTL_EVENT_SEND_END);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(eq, PT_GOT | PT_PUT, NULL);
		pt_is(strcmp(in, "new"), 0);
		pt_is(strcmp(out, "out"), 0);
	}
}

static void a_getput_needs_both_options(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	uint32_t word[3] = { 1, 2, 3 }, mine = 77;

	pt_open();
	eq = pt_eq(16);
	pt_post(7, 1, pt_md(&word[0], 4, PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN, NULL);
	pt_post(7, 1, pt_md(&word[1], 4, PTL_MD_OP_GET, PTL_EQ_NONE), PTL_RETAIN, NULL);
	pt_post(7, 1, pt_md(&word[2], 4, PTL_MD_OP_GET | PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN,
		NULL);
	md = pt_bind(&mine, 4, PTL_MD_EVENT_START_DISABLE, eq);
	pt_ok(PtlGetPut(md, md, pt_id(0), 7, 0, 1, 0, 0));
	pt_next(eq, PTL_EVENT_SEND_END);
	pt_next(eq, PTL_EVENT_REPLY_END);
	pt_is(mine, 3);
	pt_is(word[0], 1);
	pt_is(word[1], 2);
	pt_is(word[2], 77);
}

static void offsets_beyond_the_region_are_passed_by(void)
{
	const unsigned int put = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE;

	pt_open();
	if (pt_is_target()) {
		entry_md('A', pt_tagged('x', 10, put), PTL_RETAIN);
		entry_md('B', pt_tagged('x', 20, put | PTL_MD_TRUNCATE), PTL_RETAIN);
		entry_md('C', pt_tagged('x', 40, put), PTL_RETAIN);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		ptl_process_id_t t = pt_target();

		pt_shoot_at(t, 7, 0, 1, 5, 5);
		pt_shoot_at(t, 7, 0, 1, 10, 0);
		pt_shoot_at(t, 7, 0, 1, 10, 1);
		pt_shoot_at(t, 7, 0, 1, 20, 5); /* B truncates to nothing */
		pt_shoot_at(t, 7, 0, 1, 21, 0);
		pt_shoot_at(t, 7, 0, 1, 21, 19);
		pt_shoot_at(t, 7, 0, 1, 21, 20);
		pt_shoot_at(t, 7, 0, 1, ~(ptl_size_t)0, 2); /* sums past 2^64 */
		pt_shoot_at(t, 7, 0, 1, ~(ptl_size_t)0 - 4, 10);
		pt_shoot_at(t, 7, 0, 1, (ptl_size_t)1 << 63, 10);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("AABBCC----");
}

static void local_offsets_fill_an_md_up(void)
{
	pt_open();
	if (pt_is_target()) {
		entry_md('A', pt_tagged('x', 100, PTL_MD_OP_PUT), PTL_RETAIN);
		entry_md('B', pt_tagged('x', 50, PTL_MD_OP_PUT | PTL_MD_TRUNCATE), PTL_RETAIN);
	}
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(7, 1, 60);  /* A 60 */
		pt_shoot(7, 1, 41);  /* B 41 */
		pt_shoot(7, 1, 40);  /* A 100 */
		pt_shoot(7, 1, 100); /* B 50 */
		pt_shoot(7, 1, 0);   /* A: nothing fits into no room */
		pt_shoot(7, 1, 7);   /* B, truncated to nothing */
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("ABABAB");
}

static void portals_are_separate(void)
{
	ptl_ni_limits_t limits;
	ptl_handle_me_t me;
	ptl_pt_index_t last;

	pt_open_with(NULL, &limits);
	last = (ptl_pt_index_t)limits.max_pt_index;
	if (pt_is_target()) {
		pt_ok(PtlMEAttach(pt_ni, 0, pt_any, 1, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
		pt_entry(me, 'A');
		pt_ok(PtlMEAttach(pt_ni, last, pt_any, 1, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
		pt_entry(me, 'Z');
	}
	pt_barrier();
	if (pt_is_initiator()) {
		pt_shoot(last, 1, 1);
		pt_shoot(0, 1, 1);
		pt_shoot(1, 1, 1);
		pt_shoot(last - 1, 1, 1);
		pt_shoot(last + 1, 1, 1);
		pt_shoot(0x80000000u, 1, 1);
		pt_shoot(PTL_PT_INDEX_ANY, 1, 1);
		pt_shoot(0, 1, 1);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("ZA-----A");
}

/* Many entries of both sorts: the winner is the first in list order wherever it stands. */
static void a_long_mixed_list_is_searched_in_order(void)
{
	enum { N = 5000 };
	static ptl_match_bits_t b[N], g[N];
	ptl_match_bits_t bits;
	uint64_t seed = 42;

	pt_open();
	for (int i = 0; i < N; i++) {
		g[i] = i % 50 == 49 ? 0xff : 0;
		b[i] = 1000 + pt_random(&seed) % 3000;
		pt_entry(entry_from(pt_any, b[i], g[i]), (char)('A' + i % 26));
	}
	for (int shot = 0; shot < 2000; shot++) {
		char expect[2] = "-";

		bits = 900 + pt_random(&seed) % 3200;
		for (int i = 0; i < N && *expect == '-'; i++)
			if (((bits ^ b[i]) & ~g[i]) == 0)
				*expect = (char)('A' + i % 26);
		pt_shoot(7, bits, 1);
		pt_taken(expect);
	}
}

static const struct pt_test tests[] = {
	PT_MODES(the_first_in_list_order_wins),
	PT_MODES(bits_are_compared_where_not_ignored),
	PT_MODES(an_exact_entry_behind_a_wildcard_does_not_jump_the_queue),
	PT_MODES(sources_are_filtered),
	PT_MODES(exact_and_wildcard_sources_keep_list_order),
	PT_CASE(two_sources_find_their_own_entries, 3),
	PT_MODES(the_walk_passes_entries_that_cannot_take_the_request),
	PT_MODES(gets_and_puts_find_different_entries),
	PT_CASE(a_getput_needs_both_options, 1),
	PT_MODES(offsets_beyond_the_region_are_passed_by),
	PT_MODES(local_offsets_fill_an_md_up),
	PT_MODES(portals_are_separate),
	PT_CASE(a_long_mixed_list_is_searched_in_order, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
