/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Match entries: attach, attach on any portal, insert, unlink, and the limits of lists (report
 * section 3.9).
 */
#include "ptest.h"

#include <string.h>

static ptl_handle_me_t attach(ptl_pt_index_t portal, ptl_ins_pos_t where)
{
	ptl_handle_me_t me;

	pt_ok(PtlMEAttach(pt_ni, portal, pt_any, 0, 0, PTL_UNLINK, where, &me));
	return me;
}

static ptl_handle_me_t insert(ptl_handle_me_t base, ptl_ins_pos_t where)
{
	ptl_handle_me_t me;

	pt_ok(PtlMEInsert(base, pt_any, 0, 0, PTL_UNLINK, where, &me));
	return me;
}

/* One shot for each entry of a list whose MDs are used once: the takers are the list in order. */
static void expect_list(ptl_pt_index_t portal, const char *tags)
{
	for (size_t i = 0; tags[i]; i++)
		pt_shoot(portal, 0, 0);
	pt_taken(tags);
}

static ptl_handle_md_t once(ptl_handle_me_t me, char tag)
{
	ptl_md_t md = pt_tagged(tag, 0, PTL_MD_OP_PUT);
	ptl_handle_md_t h;

	md.threshold = 1;
	pt_ok(PtlMDAttach(me, md, PTL_UNLINK, &h));
	return h;
}

static void attach_puts_entries_at_head_or_tail(void)
{
	pt_open();
	once(attach(5, PTL_INS_AFTER), 'C');
	once(attach(5, PTL_INS_BEFORE), 'B');
	once(attach(5, PTL_INS_AFTER), 'D');
	once(attach(5, PTL_INS_BEFORE), 'A');
	once(attach(6, PTL_INS_BEFORE), 'X');
	expect_list(5, "ABCD-");
	expect_list(6, "X-");
}

static void insert_puts_entries_beside_the_base(void)
{
	ptl_handle_me_t b, d;

	pt_open();
	b = attach(0, PTL_INS_AFTER);
	once(b, 'B');
	d = insert(b, PTL_INS_AFTER);
	once(d, 'E');
	once(insert(b, PTL_INS_BEFORE), 'A');
	once(insert(b, PTL_INS_AFTER), 'C');
	once(insert(d, PTL_INS_BEFORE), 'D');
	once(insert(d, PTL_INS_AFTER), 'F');
	expect_list(0, "ABCDEF-");
}

/* Always into the same gap: whatever labels order the list must not run out. */
static void many_inserts_into_one_gap_keep_their_order(void)
{
	enum { N = 2000 };
	ptl_handle_me_t first, last;
	char tags[N + 3];

	pt_open();
	first = attach(0, PTL_INS_AFTER);
	last = attach(0, PTL_INS_AFTER);
	once(first, 'f');
	once(last, 'l');
	for (int i = 0; i < N; i++)
		once(insert(i % 2 ? first : last, i % 2 ? PTL_INS_AFTER : PTL_INS_BEFORE),
		     (char)('A' + i % 26));
	/* after first: N-1, N-3, ... 1; before last: 0, 2, ... N-2, in that order */
	tags[0] = 'f';
	for (int i = 0; i < N / 2; i++) {
		tags[1 + i] = (char)('A' + (N - 1 - 2 * i) % 26);
		tags[1 + N / 2 + i] = (char)('A' + (2 * i) % 26);
	}
	tags[N + 1] = 'l';
	tags[N + 2] = 0;
	expect_list(0, tags);
}

static void unlink_takes_an_entry_out(void)
{
	ptl_handle_me_t a, b, c;

	pt_open();
	a = attach(9, PTL_INS_AFTER);
	b = attach(9, PTL_INS_AFTER);
	c = attach(9, PTL_INS_AFTER);
	pt_entry(a, 'A');
	pt_entry(b, 'B');
	pt_entry(c, 'C');
	pt_ok(PtlMEUnlink(a));
	expect_list(9, "B");
	pt_ok(PtlMEUnlink(c));
	expect_list(9, "B");
	pt_ok(PtlMEUnlink(b));
	expect_list(9, "-");
	pt_code(PtlMEUnlink(b), PTL_ME_INVALID);
}

static void me_unlink_frees_its_md_without_event(void)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	ptl_md_t old;
	char c;

	pt_open();
	eq = pt_eq(4);
	for (int unlink = PTL_RETAIN; unlink <= PTL_UNLINK; unlink++) {
		me = pt_post(9, 0, pt_md(&c, 1, PTL_MD_OP_PUT, eq), (ptl_unlink_t)unlink, &md);
		pt_ok(PtlMEUnlink(me));
		pt_code(PtlMDUpdate(md, &old, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
		pt_code(PtlMDUnlink(md), PTL_MD_INVALID);
		pt_quiet(eq);
	}
	pt_ok(PtlEQFree(eq));
}

static void an_entry_without_md_never_matches(void)
{
	ptl_handle_me_t a, b;

	pt_open();
	a = attach(2, PTL_INS_AFTER);
	b = attach(2, PTL_INS_AFTER);
	pt_entry(b, 'B');
	expect_list(2, "B");
	pt_ok(PtlMEUnlink(b));
	expect_list(2, "-");
	pt_entry(a, 'A');
	expect_list(2, "A");
}

static void stale_entry_handles_stay_invalid(void)
{
	ptl_handle_me_t old[64], me;

	pt_open();
	for (int i = 0; i < 64; i++) {
		old[i] = attach(1, PTL_INS_AFTER);
		pt_ok(PtlMEUnlink(old[i]));
	}
	me = attach(1, PTL_INS_AFTER);
	for (int i = 0; i < 64; i++) {
		ptl_handle_me_t x;
		ptl_handle_md_t md;

		pt_true(old[i] != me);
		pt_code(PtlMEUnlink(old[i]), PTL_ME_INVALID);
		pt_code(PtlMEInsert(old[i], pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &x),
			PTL_ME_INVALID);
		pt_code(PtlMDAttach(old[i], pt_tagged('x', 0, 0), PTL_RETAIN, &md), PTL_ME_INVALID);
	}
}

static void attach_any_finds_an_empty_portal(void)
{
	ptl_ni_limits_t limits;
	ptl_pt_index_t index;
	ptl_handle_me_t me, of[1024];
	bool used[1024] = { false };
	int free_now;

	pt_open_with(NULL, &limits);
	pt_true(limits.max_pt_index < 1024);
	attach(3, PTL_INS_AFTER);
	attach((ptl_pt_index_t)limits.max_pt_index, PTL_INS_AFTER);
	used[3] = used[limits.max_pt_index] = true;
	for (free_now = limits.max_pt_index + 1 - 2; free_now; free_now--) {
		index = 0xffff;
		pt_ok(PtlMEAttachAny(pt_ni, &index, pt_any, 0, 0, PTL_RETAIN, &me));
		pt_true(index <= (ptl_pt_index_t)limits.max_pt_index);
		pt_truef(!used[index], "portal %u was in use", index);
		used[index] = true;
		of[index] = me;
	}
	pt_code(PtlMEAttachAny(pt_ni, &index, pt_any, 0, 0, PTL_RETAIN, &me), PTL_PT_FULL);
	pt_ok(PtlMEUnlink(of[17]));
	pt_ok(PtlMEAttachAny(pt_ni, &index, pt_any, 0, 0, PTL_RETAIN, &me));
	pt_is(index, 17);
	pt_entry(me, 'A');
	expect_list(17, "A");
}

static void lists_have_the_reported_length(void)
{
	ptl_ni_limits_t want = { 100, 100, 10, 3, 7, 4, 3, 16 }, got;
	ptl_handle_me_t me, base;

	pt_open_with(&want, &got);
	base = attach(1, PTL_INS_AFTER);
	for (int i = 1; i < got.max_me_list; i++)
		attach(1, PTL_INS_AFTER);
	pt_code(PtlMEAttach(pt_ni, 1, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_ME_LIST_TOO_LONG);
	pt_code(PtlMEAttach(pt_ni, 1, pt_any, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &me),
		PTL_ME_LIST_TOO_LONG);
	pt_code(PtlMEInsert(base, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_ME_LIST_TOO_LONG);
	attach(2, PTL_INS_AFTER);
	pt_ok(PtlMEUnlink(base));
	attach(1, PTL_INS_BEFORE);
	pt_code(PtlMEAttach(pt_ni, 1, pt_any, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &me),
		PTL_ME_LIST_TOO_LONG);
}

static void portal_indexes_are_checked(void)
{
	ptl_ni_limits_t got;
	ptl_handle_me_t me = 4711;
	ptl_pt_index_t over;

	pt_open_with(NULL, &got);
	over = (ptl_pt_index_t)got.max_pt_index + 1;
	attach(over - 1, PTL_INS_AFTER);
	pt_code(PtlMEAttach(pt_ni, over, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_PT_INDEX_INVALID);
	pt_code(PtlMEAttach(pt_ni, 0x80000000u, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_PT_INDEX_INVALID);
	pt_code(PtlMEAttach(pt_ni, PTL_PT_INDEX_ANY, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_PT_INDEX_INVALID);
	pt_is(me, 4711);
}

/* P3.3 3.9: the entry's own unlink flag counts only when its MD is unlinked. */
static void the_unlink_flag_of_the_entry_counts_when_its_md_goes(void)
{
	ptl_handle_me_t keep, go, x;
	ptl_md_t md;
	ptl_handle_md_t h;

	pt_open();
	pt_ok(PtlMEAttach(pt_ni, 0, pt_any, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &keep));
	pt_ok(PtlMEAttach(pt_ni, 0, pt_any, 2, 0, PTL_UNLINK, PTL_INS_AFTER, &go));
	md = pt_tagged('K', 0, PTL_MD_OP_PUT);
	md.threshold = 1;
	pt_ok(PtlMDAttach(keep, md, PTL_UNLINK, &h));
	md.user_ptr = (void *)(uintptr_t)'G';
	pt_ok(PtlMDAttach(go, md, PTL_UNLINK, &h));
	pt_code(PtlMDAttach(go, md, PTL_UNLINK, &h), PTL_ME_IN_USE);
	pt_shoot(0, 1, 0);
	pt_shoot(0, 2, 0);
	pt_shoot(0, 1, 0);
	pt_shoot(0, 2, 0);
	pt_taken("KG--");
	pt_code(PtlMEInsert(go, pt_any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &x), PTL_ME_INVALID);
	pt_code(PtlMEUnlink(go), PTL_ME_INVALID);
	pt_entry(keep, 'N');
	pt_shoot(0, 1, 0);
	pt_taken("N");
	pt_ok(PtlMEUnlink(keep));
}

static void explicit_md_unlink_takes_an_unlinking_entry_along(void)
{
	ptl_handle_me_t keep, go;
	ptl_handle_md_t h;

	pt_open();
	pt_ok(PtlMEAttach(pt_ni, 0, pt_any, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &keep));
	pt_ok(PtlMEAttach(pt_ni, 0, pt_any, 2, 0, PTL_UNLINK, PTL_INS_AFTER, &go));
	h = pt_entry(keep, 'K');
	pt_ok(PtlMDUnlink(h));
	h = pt_entry(go, 'G');
	pt_ok(PtlMDUnlink(h));
	pt_code(PtlMEUnlink(go), PTL_ME_INVALID);
	pt_entry(keep, 'N');
	pt_shoot(0, 1, 0);
	pt_taken("N");
}

static void a_long_list_can_be_built_and_torn_down(void)
{
	enum { N = 100000 };
	static ptl_handle_me_t me[N];

	pt_open();
	for (int i = 0; i < N; i++)
		pt_ok(PtlMEAttach(pt_ni, 0, pt_any, (ptl_match_bits_t)i, 0, PTL_RETAIN,
				  i % 3 ? PTL_INS_AFTER : PTL_INS_BEFORE, &me[i]));
	pt_entry(me[N / 2], 'm');
	pt_shoot(0, N / 2, 0);
	pt_shoot(0, N / 3, 0);
	pt_taken("m-");
	for (int i = 0; i < N; i++)
		pt_ok(PtlMEUnlink(me[(i * 7919) % N]));
	pt_is(pt_status(PTL_SR_MES_CUR), 0);
}

static const struct pt_test tests[] = {
	PT_CASE(attach_puts_entries_at_head_or_tail, 1),
	PT_CASE(insert_puts_entries_beside_the_base, 1),
	PT_CASE(many_inserts_into_one_gap_keep_their_order, 1),
	PT_CASE(unlink_takes_an_entry_out, 1),
	PT_CASE(me_unlink_frees_its_md_without_event, 1),
	PT_CASE(an_entry_without_md_never_matches, 1),
	PT_CASE(stale_entry_handles_stay_invalid, 1),
	PT_CASE(attach_any_finds_an_empty_portal, 1),
	PT_CASE(lists_have_the_reported_length, 1),
	PT_CASE(portal_indexes_are_checked, 1),
	PT_CASE(the_unlink_flag_of_the_entry_counts_when_its_md_goes, 1),
	PT_CASE(explicit_md_unlink_takes_an_unlinking_entry_along, 1),
	PT_CASE(a_long_list_can_be_built_and_torn_down, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
