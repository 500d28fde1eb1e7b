/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Long messages both ways at once: what arrives is right, also where one side leaves the library in
 * between, where pipes differ in size, and where memory is missing.
 */
#include "ptest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PORTAL = 7, PUT_BITS = 1, GET_BITS = 2, HOLE_BITS = 3 };

static const size_t sizes[] = { 40001, 65536, 300000, 1 << 20, (4 << 20) + 13 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void compute(double seconds)
{
	double end = pt_now() + seconds;

	while (pt_now() < end)
		;
}

static unsigned int other(void)
{
	return (unsigned int)!pt_rank;
}

/* Each rank puts to the other and gets from it, at the same time, and is outside in between for
 * so long. */
static void exchange(size_t length, size_t pieces, uint64_t seed, double away)
{
	struct pt_buf out = pt_buf_new(length, pieces), in = pt_buf_new(length, pieces);
	struct pt_buf got = pt_buf_new(length, pieces);
	ptl_handle_eq_t eq = pt_eq(32);
	ptl_handle_me_t put_me, get_me;
	ptl_handle_md_t put, get;

	pt_buf_fill(&out, seed + (uint64_t)pt_rank);
	pt_buf_fill(&in, 98);
	pt_buf_fill(&got, 99);
	put_me = pt_post(PORTAL, PUT_BITS, pt_buf_md(&in, PTL_MD_OP_PUT, eq), PTL_RETAIN, NULL);
	get_me = pt_post(PORTAL, GET_BITS, pt_buf_md(&out, PTL_MD_OP_GET, eq), PTL_RETAIN, NULL);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&out, 0, eq), PTL_RETAIN, &put));
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&got, 0, eq), PTL_RETAIN, &get));
	pt_barrier();
	pt_ok(PtlPut(put, PTL_ACK_REQ, pt_id((int)other()), PORTAL, 0, PUT_BITS, 0, 0));
	compute(away);
	pt_ok(PtlGet(get, pt_id((int)other()), PORTAL, 0, GET_BITS, 0));
	compute(away);
	pt_await(eq, PT_ACKED | PT_REPLIED | PT_PUT | PT_GOT, NULL);
	pt_buf_holds(&in, 0, length, seed + other(), 0);
	pt_buf_holds(&got, 0, length, seed + other(), 0);
	pt_buf_guarded(&in);
	pt_buf_guarded(&got);
	pt_barrier();
	pt_ok(PtlMEUnlink(put_me));
	pt_ok(PtlMEUnlink(get_me));
	pt_ok(PtlMDUnlink(put));
	pt_ok(PtlMDUnlink(get));
	pt_ok(PtlEQFree(eq));
	pt_buf_free(&out);
	pt_buf_free(&in);
	pt_buf_free(&got);
}

static void exchange_all(uint64_t seed)
{
	for (size_t i = 0; i < SIZES; i++) {
		exchange(sizes[i], 0, seed + 2 * i, 0);
		exchange(sizes[i], 9, seed + 2 * i + 20, 0);
	}
}

static void are_moved_by_who_is_left(void)
{
	uint64_t state = 77 + (uint64_t)pt_rank;

	pt_open();
	for (uint64_t i = 0; i < 60; i++)
		exchange(400000, i % 4 ? 0 : 5, i, (double)(pt_random(&state) % 200) * 1e-6);
}

/* Each region has a pipe as long as its owner says: what goes to it is in chunks that fit. */
static void regions_have_pipes_of_their_own(void)
{
	setenv("PTL_SHM_PIPE_KIB", pt_rank ? "512" : "16", 1);
	pt_open();
	for (uint64_t i = 0; i < 5; i++)
		exchange_all(i);
}

/* The failure in the end of a message whose memory is not all there. */
static ptl_ni_fail_t end_of(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev;

	do
		pt_ok(PtlEQWait(eq, &ev));
	while (ev.type != kind);
	return ev.ni_fail_type;
}

/* The middle of what a put is for, or comes from, has gone. */
static void hole(bool source)
{
	const size_t length = 1 << 20;
	unsigned char *at =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ptl_handle_eq_t eq = pt_eq(16);
	ptl_handle_me_t me;
	ptl_handle_md_t md;

	pt_true(at != MAP_FAILED);
	memset(at, 3, length);
	me = pt_post(PORTAL, HOLE_BITS, pt_md(at, length, PTL_MD_OP_PUT, eq), PTL_RETAIN, NULL);
	md = pt_bind(at, length, 0, eq);
	if (source == !pt_rank)
		pt_is(munmap(at + length / 2, 8192), 0);
	pt_barrier();
	if (!pt_rank)
		pt_ok(PtlPut(md, PTL_NOACK_REQ, pt_id(1), PORTAL, 0, HOLE_BITS, 0, 0));
	pt_true(end_of(eq, pt_rank ? PTL_EVENT_PUT_END : PTL_EVENT_SEND_END) != PTL_NI_OK);
	pt_barrier();
	pt_ok(PtlMEUnlink(me));
	pt_ok(PtlMDUnlink(md));
	pt_ok(PtlEQFree(eq));
	munmap(at, length);
}

static void fail_alone_where_memory_is_missing(void)
{
	pt_open();
	for (uint64_t i = 0; i < 6; i++) {
		exchange(1 << 20, 0, i, 0);
		hole(i % 2);
	}
	exchange_all(5);
}

static const struct pt_test tests[] = {
	PT_CASE(are_moved_by_who_is_left, 2),
	PT_CASE(regions_have_pipes_of_their_own, 2),
	PT_CASE(fail_alone_where_memory_is_missing, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
