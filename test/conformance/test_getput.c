/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PtlGetPut: a swap, whole and atomic against other swaps (report section 3.13.6).
 */
#include "ptest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL = 15 };

static const size_t sizes[] = {
	0, 1, 4, 8, 12, 13, 63, 64, 65, 1000, 2047, 2048, 2049, 4095, 4096
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void swap_and_check(size_t i, size_t pieces)
{
	struct pt_buf put = pt_buf_new(sizes[i], pieces), get = pt_buf_new(sizes[i], pieces / 2);
	ptl_handle_eq_t put_eq = pt_eq(8), get_eq = pt_eq(8);
	ptl_handle_md_t put_md, get_md;
	ptl_event_t ev[PTL_EVENT_MAX];

	pt_buf_fill(&put, i);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&put, 0, put_eq), PTL_RETAIN, &put_md));
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&get, 0, get_eq), PTL_RETAIN, &get_md));
	pt_ok(PtlGetPut(get_md, put_md, pt_target(), PORTAL, 0, i, 0, 1000 + i));
	pt_await(put_eq, PT_SENT, NULL);
	pt_await(get_eq, PT_REPLIED, ev);
	pt_is(ev[PTL_EVENT_REPLY_END].mlength, sizes[i]);
	pt_buf_holds(&get, 0, sizes[i], 100 + i, 0);
	pt_buf_holds(&put, 0, sizes[i], i, 0);
	pt_buf_guarded(&get);
	pt_quiet(put_eq);
	pt_quiet(get_eq);
}

static void swap_every_size(size_t initiator_pieces, size_t target_pieces)
{
	ptl_event_t ev[PTL_EVENT_MAX];
	struct pt_buf at[SIZES];
	ptl_handle_eq_t eq[SIZES];

	pt_open();
	for (size_t i = 0; i < SIZES && pt_is_target(); i++) {
		at[i] = pt_buf_new(sizes[i], target_pieces);
		pt_buf_fill(&at[i], 100 + i);
		eq[i] = pt_eq(4);
		pt_post(PORTAL, i, pt_buf_md(&at[i], PTL_MD_OP_PUT | PTL_MD_OP_GET, eq[i]),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	for (size_t i = 0; i < SIZES && pt_is_initiator(); i++)
		swap_and_check(i, initiator_pieces);
	pt_finish();
	for (size_t i = 0; i < SIZES && pt_is_target(); i++) {
		pt_await(eq[i], PT_SWAPPED, ev);
		pt_is(ev[PTL_EVENT_GETPUT_END].mlength, sizes[i]);
		pt_is(ev[PTL_EVENT_GETPUT_END].hdr_data, 1000 + i);
		pt_buf_holds(&at[i], 0, sizes[i], i, 0);
		pt_buf_guarded(&at[i]);
		pt_quiet(eq[i]);
	}
}

static void swaps_of_every_size(void)
{
	swap_every_size(0, 0);
}

static void swaps_of_scattered_memory(void)
{
	swap_every_size(6, 5);
}

static void one_md_may_be_both(void)
{
	ptl_handle_eq_t here;
	uint64_t word = 5, mine = 7;
	ptl_handle_md_t md;

	pt_open();
	here = pt_eq(16);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(&word, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(&mine, 8, 0, here);
		pt_ok(PtlGetPut(md, md, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_await(here, PT_SENT | PT_REPLIED, NULL);
		pt_is(mine, 5);
		pt_ok(PtlGetPut(md, md, pt_target(), PORTAL, 0, 0, 0, 0));
		pt_await(here, PT_SENT | PT_REPLIED, NULL);
		pt_is(mine, 7);
	}
	pt_finish();
	if (pt_is_target())
		pt_is(word, 5);
}

static void swaps_at_remote_offsets(void)
{
	static unsigned char words[80], mine[8];
	ptl_handle_eq_t here;
	ptl_handle_md_t md;

	pt_open();
	here = pt_eq(16);
	pt_fill(words, sizeof(words), 3, 0);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(words, 80, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		pt_fill(mine, 8, 4, 0);
		md = pt_bind(mine, 8, 0, here);
		pt_ok(PtlGetPut(md, md, pt_target(), PORTAL, 0, 0, 37, 0));
		pt_await(here, PT_SENT | PT_REPLIED, NULL);
		pt_holds(mine, 8, 3, 37);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_holds(words, 37, 3, 0);
		pt_holds(words + 37, 8, 4, 0);
		pt_holds(words + 45, 35, 3, 45);
	}
}

static void a_truncated_swap_swaps_what_there_is(void)
{
	static unsigned char there[10], put[16], get[16];
	ptl_handle_eq_t eq, here;
	ptl_handle_md_t get_md;
	ptl_event_t ev[PTL_EVENT_MAX];

	pt_open();
	here = pt_eq(16);
	eq = pt_eq(16);
	pt_fill(there, sizeof(there), 1, 0);
	pt_fill(put, sizeof(put), 2, 0);
	pt_fill(get, sizeof(get), 3, 0);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(there, 10, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE, eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		get_md = pt_bind(get, 16, 0, here);
		pt_ok(PtlGetPut(get_md, pt_bind(put, 16, 0, PTL_EQ_NONE), pt_target(), PORTAL, 0, 0,
				0, 0));
		pt_await(here, PT_REPLIED, ev);
		pt_is(ev[PTL_EVENT_REPLY_END].mlength, 10);
		pt_holds(get, 10, 1, 0);
		pt_holds(get + 10, 6, 3, 10);
	}
	pt_finish();
	if (pt_is_target()) {
		pt_await(eq, PT_SWAPPED, ev);
		pt_is(ev[PTL_EVENT_GETPUT_END].rlength, 16);
		pt_is(ev[PTL_EVENT_GETPUT_END].mlength, 10);
		pt_holds(there, 10, 2, 0);
	}
}

static void longer_swaps_than_the_limit_are_illegal(void)
{
	ptl_ni_limits_t limits;
	ptl_handle_md_t md, ok;
	char *bytes;

	pt_open_with(NULL, &limits);
	bytes = calloc(1, (size_t)limits.max_getput_md + 1);
	md = pt_bind(bytes, (ptl_size_t)limits.max_getput_md + 1, 0, PTL_EQ_NONE);
	ok = pt_bind(bytes, (ptl_size_t)limits.max_getput_md, 0, PTL_EQ_NONE);
	pt_code(PtlGetPut(ok, md, pt_id(0), PORTAL, 0, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_ok(PtlGetPut(ok, ok, pt_id(0), PORTAL, 0, 0, 0, 0));
}

static void a_reply_never_writes_beyond_the_get_md(void)
{
	static unsigned char there[64], put[64], get[64];
	ptl_handle_md_t get_md, put_md;

	pt_open();
	memset(get, 0x5a, sizeof(get));
	pt_post(PORTAL, 0, pt_md(there, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET, PTL_EQ_NONE), PTL_RETAIN,
		NULL);
	get_md = pt_bind(get + 16, 16, 0, PTL_EQ_NONE);
	put_md = pt_bind(put, 64, 0, PTL_EQ_NONE);
	if (PtlGetPut(get_md, put_md, pt_id(0), PORTAL, 0, 0, 0, 0) == PTL_OK)
		PtlProgress(pt_ni, 0);
	for (int i = 0; i < 64; i++)
		pt_true((i >= 16 && i < 32) || get[i] == 0x5a);
}

static void mds_of_different_interfaces_do_not_swap(void)
{
	ptl_handle_md_t a, b;
	ptl_handle_ni_t other;
	uint64_t word = 0;
	int n;

	pt_open();
	pt_ok(PtlInit(&n));
	if (n < 2)
		pt_skip("one interface only");
	pt_ok(PtlNIInit(1, PTL_PID_ANY, NULL, NULL, &other));
	a = pt_bind(&word, 8, 0, PTL_EQ_NONE);
	pt_ok(PtlMDBind(other, pt_md(&word, 8, 0, PTL_EQ_NONE), PTL_RETAIN, &b));
	pt_code(PtlGetPut(a, b, pt_id(0), PORTAL, 0, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_code(PtlGetPut(b, a, pt_id(0), PORTAL, 0, 0, 0, 0), PTL_MD_ILLEGAL);
	pt_ok(PtlNIFini(other));
}

/* ---- atomicity ------------------------------------------------------------------------------- */

enum { WORDS = 64, ROUNDS = 2000, LANES = 2 };

/* The final value and the values that came back, added up, must be the sum of all that was put
 * there. */
struct tally {
	uint64_t put, got;
};

static void *swap_lane(void *arg)
{
	struct tally *t = arg;
	uint64_t block[WORDS], seed = (uint64_t)(uintptr_t)t ^ (uint64_t)pt_rank << 40;
	ptl_handle_eq_t eq = pt_eq(16);
	ptl_handle_md_t md = pt_bind(block, sizeof(block), PTL_MD_EVENT_START_DISABLE, eq);

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t value = pt_random(&seed);

		for (int k = 0; k < WORDS; k++)
			block[k] = value;
		t->put += value;
		pt_ok(PtlGetPut(md, md, pt_id(pt_size - 1), PORTAL, 0, 0, 0, 0));
		pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_REPLY_END), NULL);
		for (int k = 1; k < WORDS; k++)
			pt_truef(block[k] == block[0], "a torn swap: word %d is another", k);
		t->got += block[0];
	}
	return NULL;
}

static void swaps_of_several_initiators_are_atomic(void)
{
	struct tally t[LANES] = { { 0, 0 } };
	uint64_t place[WORDS] = { 0 };
	pthread_t threads[LANES];

	pt_open();
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(place, sizeof(place),
			      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (int i = 0; i < LANES; i++)
		pt_is(pthread_create(&threads[i], NULL, swap_lane, &t[i]), 0);
	for (int i = 0; i < LANES; i++) {
		pthread_join(threads[i], NULL);
		atomic_fetch_add(pt_word(0), t[i].put);
		atomic_fetch_add(pt_word(1), t[i].got);
	}
	pt_barrier();
	PtlProgress(pt_ni, 0); /* whatever thread of ours wrote last, it did so before this */
	if (pt_is_target())
		pt_is(*pt_word(0), *pt_word(1) + place[0]);
}

static const struct pt_test tests[] = {
	PT_MODES(swaps_of_every_size),
	PT_MODES(swaps_of_scattered_memory),
	PT_MODES(one_md_may_be_both),
	PT_MODES(swaps_at_remote_offsets),
	PT_MODES(a_truncated_swap_swaps_what_there_is),
	PT_CASE(longer_swaps_than_the_limit_are_illegal, 1),
	PT_CASE(a_reply_never_writes_beyond_the_get_md, 1),
	PT_CASE(mds_of_different_interfaces_do_not_swap, 1),
	PT_CASE(swaps_of_several_initiators_are_atomic, 1),
	{ "swaps_of_several_processes_are_atomic", swaps_of_several_initiators_are_atomic, 4, 0 },
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
