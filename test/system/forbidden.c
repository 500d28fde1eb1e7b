/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Where the system forbids cross-memory attach, as containers do, to both processes or to one of
 * them: puts of all lengths, scattered or not, a get and a swap complete all the same while the
 * target computes, the data is right, and portals-stat says what is forbidden.
 */
#include "no_attach.h"
#include "ptest.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PORTAL = 7,
	GET_BITS = 10,
	SWAP_BITS = 11,
	SECONDS = 10,
	COMPUTING = 0,
	DONE = 1,
	ANSWERED = 2
};

static const size_t sizes[] = { 0, 8, 2000, 16384, 65536, 4 << 20 };
enum { PUTS = sizeof(sizes) / sizeof(sizes[0]) };

/* From now on process_vm_readv and process_vm_writev fail with EPERM, as under a container's
 * filter. */
static void forbid(void)
{
	char byte = 0;
	struct iovec v = { &byte, 1 };

	if (!no_attach())
		pt_skip("system call filters are not permitted here");
	pt_is(process_vm_readv(getpid(), &v, 1, &v, 1, 0), -1);
	pt_is(errno, EPERM);
}

static void says_so(void)
{
	pt_truef(pt_stat_lines(getpid(), "no attach: Operation not permitted", NULL),
		 "portals-stat does not say that cross-memory attach is forbidden");
}

/* Until the other has its answers. */
static void compute(void)
{
	double end = pt_lived() + pt_patience(SECONDS);

	*pt_word(COMPUTING) = 1;
	while (!*pt_word(ANSWERED) && pt_lived() < end)
		;
	*pt_word(DONE) = 1;
}

static void be_the_target(size_t pieces)
{
	static unsigned char get[300000];
	struct pt_buf to[PUTS];
	ptl_handle_eq_t eq = pt_eq(64);
	uint64_t word = 1234;

	for (size_t i = 0; i < PUTS; i++) {
		to[i] = pt_buf_new(sizes[i], pieces);
		pt_buf_fill(&to[i], 99);
		pt_post(PORTAL, i, pt_buf_md(&to[i], PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN, NULL);
	}
	pt_fill(get, sizeof(get), 5, 0);
	pt_post(PORTAL, GET_BITS, pt_md(get, sizeof(get), PTL_MD_OP_GET, PTL_EQ_NONE), PTL_RETAIN,
		NULL);
	pt_post(PORTAL, SWAP_BITS, pt_md(&word, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET, eq), PTL_RETAIN,
		NULL);
	pt_barrier();
	compute();
	pt_barrier(); /* the initiator has all its answers */
	pt_await(eq, PT_BIT(PTL_EVENT_GETPUT_START) | PT_BIT(PTL_EVENT_GETPUT_END), NULL);
	pt_is(word, 77);
	for (size_t i = 0; i < PUTS; i++) {
		pt_buf_holds(&to[i], 0, sizes[i], i, 0);
		pt_buf_guarded(&to[i]);
	}
}

static void be_the_initiator(size_t pieces)
{
	static unsigned char got[300000];
	ptl_handle_eq_t eq = pt_eq(16);
	uint64_t mine = 77;
	ptl_handle_md_t md;

	pt_barrier();
	pt_until(*pt_word(COMPUTING), 10);
	for (size_t i = 0; i < PUTS; i++) {
		struct pt_buf from = pt_buf_new(sizes[i], pieces);

		pt_buf_fill(&from, i);
		pt_ok(PtlMDBind(pt_ni, pt_buf_md(&from, 0, eq), PTL_RETAIN, &md));
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, i, 0, 0));
		pt_await(eq, PT_ACKED, NULL);
		pt_ok(PtlMDUnlink(md));
		pt_buf_free(&from);
	}
	pt_ok(PtlGet(pt_bind(got, sizeof(got), 0, eq), pt_target(), PORTAL, 0, GET_BITS, 0));
	pt_await(eq, PT_REPLIED, NULL);
	pt_holds(got, sizeof(got), 5, 0);
	md = pt_bind(&mine, 8, 0, eq);
	pt_ok(PtlGetPut(md, md, pt_target(), PORTAL, 0, SWAP_BITS, 0, 0));
	pt_await(eq, PT_SENT | PT_REPLIED, NULL);
	pt_is(mine, 1234);
	pt_true(!*pt_word(DONE)); /* nobody waited for the target to come back */
	*pt_word(ANSWERED) = 1;
	pt_barrier();
}

static void run(bool forbidden, size_t pieces)
{
	if (forbidden)
		forbid();
	pt_open();
	if (pt_is_target())
		be_the_target(pieces);
	else
		be_the_initiator(pieces);
	if (forbidden)
		says_so();
	pt_barrier();
}

static void forbidden_to_both(void)
{
	run(true, 0);
}

static void forbidden_to_both_with_scattered_memory(void)
{
	run(true, 9);
}

static void forbidden_to_the_initiator(void)
{
	run(pt_is_initiator(), 0);
}

static void forbidden_to_the_target(void)
{
	run(pt_is_target(), 0);
}

static const struct pt_test tests[] = {
	PT_CASE(forbidden_to_both, 2),
	PT_CASE(forbidden_to_both_with_scattered_memory, 2),
	PT_CASE(forbidden_to_the_initiator, 2),
	PT_CASE(forbidden_to_the_target, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
