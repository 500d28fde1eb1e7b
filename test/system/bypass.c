/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Application bypass. The target computes without one call into the library, for as long as it
 * takes and ten seconds at most. Meanwhile puts of 8 bytes, 64 KiB and 16 MiB, a get and a swap
 * complete, and their acks and replies reach the initiator. When the target stops computing the
 * data is there before it calls anything.
 */
#include "ptest.h"

#include <stdio.h>
#include <string.h>

enum { PORTAL = 7, LONG = 16 << 20, SECONDS = 10, COMPUTING = 0, DONE = 1, ANSWERED = 3 };

static const size_t sizes[] = { 8, 65536, LONG };
enum { PUTS = 3 };

static struct {
	struct pt_buf put[PUTS];
	unsigned char get[100000];
	uint64_t word;
	ptl_handle_eq_t eq;
} t;

/* Real work, and nothing else, until the other has its answers; tells when it begins and when it
 * is over. */
static uint64_t compute(void)
{
	double end = pt_lived() + pt_patience(SECONDS);
	uint64_t x = 1;

	*pt_word(COMPUTING) = 1;
	while (!*pt_word(ANSWERED) && pt_lived() < end)
		for (int i = 0; i < 10000; i++)
			x = x * 6364136223846793005u + 1;
	*pt_word(DONE) = 1;
	return x;
}

static void be_the_target(size_t pieces, bool used_before)
{
	const unsigned int both = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	ptl_event_t ev;

	t.eq = pt_eq(64);
	for (size_t i = 0; i < PUTS; i++) {
		t.put[i] = pt_buf_new(sizes[i], pieces);
		pt_buf_fill(&t.put[i], 99); /* touched, so that no page comes in during the test */
		pt_post(PORTAL, i, pt_buf_md(&t.put[i], PTL_MD_OP_PUT, t.eq), PTL_RETAIN, NULL);
	}
	pt_fill(t.get, sizeof(t.get), 5, 0);
	pt_post(PORTAL, 10, pt_md(t.get, sizeof(t.get), PTL_MD_OP_GET, t.eq), PTL_RETAIN, NULL);
	t.word = 1234;
	pt_post(PORTAL, 11, pt_md(&t.word, 8, both, t.eq), PTL_RETAIN, NULL);
	pt_post(PORTAL, 12, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, t.eq),
		PTL_RETAIN, NULL);
	pt_barrier();
	if (used_before)
		pt_next(t.eq, PTL_EVENT_PUT_END); /* has been waiting inside the library */
	*pt_word(2) = compute();
	for (size_t i = 0; i < PUTS; i++) {
		pt_buf_holds(&t.put[i], 0, sizes[i], i, 0);
		pt_buf_guarded(&t.put[i]);
	}
	pt_is(t.word, 77);
	pt_barrier();
	for (int i = 0; i < PUTS; i++)
		pt_await(t.eq, PT_PUT, NULL);
	pt_await(t.eq, PT_GOT, NULL);
	while (PtlEQGet(t.eq, &ev) != PTL_EQ_EMPTY)
		pt_true(ev.type == PTL_EVENT_GETPUT_START || ev.type == PTL_EVENT_GETPUT_END);
}

static double put(size_t i, size_t pieces, ptl_handle_eq_t eq)
{
	struct pt_buf from = pt_buf_new(sizes[i], pieces);
	double start;
	ptl_handle_md_t md;

	pt_buf_fill(&from, i);
	pt_ok(PtlMDBind(pt_ni, pt_buf_md(&from, 0, eq), PTL_RETAIN, &md));
	start = pt_now();
	pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, i, 0, 0));
	pt_await(eq, PT_ACKED, NULL);
	pt_truef(!*pt_word(DONE), "the put of %zu bytes was done after the target's computing",
		 sizes[i]);
	start = pt_now() - start;
	pt_ok(PtlMDUnlink(md));
	pt_buf_free(&from);
	return start;
}

static void be_the_initiator(size_t pieces, bool used_before)
{
	static unsigned char got[100000];
	ptl_handle_eq_t eq = pt_eq(16);
	double took[PUTS];
	uint64_t mine = 77;
	ptl_handle_md_t md;

	pt_barrier();
	if (used_before)
		pt_ok(PtlPut(pt_bind(NULL, 0, 0, PTL_EQ_NONE), PTL_NO_ACK_REQ, pt_target(), PORTAL,
			     0, 12, 0, 0));
	pt_until(*pt_word(COMPUTING), 10);
	for (size_t i = 0; i < PUTS; i++)
		took[i] = put(i, pieces, eq);
	pt_ok(PtlGet(pt_bind(got, sizeof(got), 0, eq), pt_target(), PORTAL, 0, 10, 0));
	pt_await(eq, PT_REPLIED, NULL);
	pt_holds(got, sizeof(got), 5, 0);
	md = pt_bind(&mine, 8, 0, eq);
	pt_ok(PtlGetPut(md, md, pt_target(), PORTAL, 0, 11, 0, 0));
	pt_await(eq, PT_SENT | PT_REPLIED, NULL);
	pt_is(mine, 1234);
	pt_true(*pt_word(COMPUTING) && !*pt_word(DONE));
	*pt_word(ANSWERED) = 1;
	fprintf(stderr,
		"# done while the target computed: 8 B in %.1f us, 64 KiB in %.1f us, "
		"16 MiB in %.1f ms\n",
		took[0] * 1e6, took[1] * 1e6, took[2] * 1e3);
	pt_barrier();
}

static void run(size_t pieces, bool used_before)
{
	pt_open();
	if (pt_is_target())
		be_the_target(pieces, used_before);
	else
		be_the_initiator(pieces, used_before);
}

static void a_target_that_never_was_inside(void)
{
	run(0, false);
}

static void a_target_that_waited_inside_before(void)
{
	run(0, true);
}

static void scattered_memory_on_both_sides(void)
{
	run(9, false);
}

static const struct pt_test tests[] = {
	PT_CASE(a_target_that_never_was_inside, 2),
	PT_CASE(a_target_that_waited_inside_before, 2),
	PT_CASE(scattered_memory_on_both_sides, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
