/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory that is unmapped when an operation is over, and mapped anew at the same address: what
 * is sent from it, and what lands in it, is what it is then. A registration that outlives its
 * message would reach the old pages.
 */
#include "ptest.h"

#include <sys/mman.h>

enum { PORTAL = 21, BYTES = 1 << 20, ROUNDS = 40 };

/* The same addresses with new pages. */
static void *renew(void *at)
{
	void *p;

	if (at)
		pt_is(munmap(at, BYTES), 0);
	p = mmap(at, BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	pt_true(p != MAP_FAILED);
	return p;
}

static void puts_are_sent_from_what_is_mapped(void)
{
	static unsigned char delivery[BYTES];
	ptl_handle_eq_t eq;
	void *from = NULL;

	pt_open();
	eq = pt_eq(16);
	if (pt_is_target())
		pt_post(PORTAL, 1, pt_md(delivery, BYTES, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		ptl_handle_md_t md;

		if (pt_is_initiator()) {
			from = renew(from);
			pt_fill(from, BYTES, i, 0);
			md = pt_bind(from, BYTES, 0, eq);
			pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 1, 0, i));
			pt_await(eq, PT_ACKED, NULL);
			pt_ok(PtlMDUnlink(md));
		} else {
			pt_await(eq, PT_PUT, NULL);
			pt_holds(delivery, BYTES, i, 0);
		}
		pt_barrier();
	}
	pt_finish();
}

static void gets_land_in_what_is_mapped(void)
{
	static unsigned char source[BYTES];
	ptl_handle_eq_t eq;
	void *to = NULL;

	pt_open();
	eq = pt_eq(16);
	if (pt_is_target())
		pt_post(PORTAL, 1, pt_md(source, BYTES, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, eq),
			PTL_RETAIN, NULL);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		ptl_handle_md_t md;

		if (pt_is_target())
			pt_fill(source, BYTES, i, 0);
		pt_barrier();
		if (pt_is_initiator()) {
			to = renew(to);
			md = pt_bind(to, BYTES, 0, eq);
			pt_ok(PtlGet(md, pt_target(), PORTAL, 0, 1, 0));
			pt_await(eq, PT_REPLIED, NULL);
			pt_holds(to, BYTES, i, 0);
			pt_ok(PtlMDUnlink(md));
		} else {
			pt_await(eq, PT_GOT, NULL);
		}
		pt_barrier();
	}
	pt_finish();
}

/* A descriptor through which much goes may be registered as a whole, for as long as it is there
 * and names this memory. */
static void descriptors_that_are_used_often(void)
{
	static unsigned char delivery[BYTES];
	ptl_handle_eq_t eq;
	void *from = NULL, *other = NULL;

	pt_open();
	eq = pt_eq(16);
	if (pt_is_target())
		pt_post(PORTAL, 1, pt_md(delivery, BYTES, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		static ptl_handle_md_t md;
		ptl_md_t now;

		if (pt_is_initiator()) {
			switch (i % 5) {
			case 0: /* new memory, and a new descriptor in the old one's place */
				from = renew(from);
				md = pt_bind(from, BYTES, 0, eq);
				break;
			case 2: /* the descriptor names other memory */
				other = renew(other);
				now = pt_md(other, BYTES, 0, eq);
				pt_ok(PtlMDUpdate(md, NULL, &now, PTL_EQ_NONE));
				break;
			case 4: /* and what it named before, which is not that any more */
				from = renew(from);
				now = pt_md(from, BYTES, 0, eq);
				pt_ok(PtlMDUpdate(md, NULL, &now, PTL_EQ_NONE));
				break;
			}
			pt_fill(i % 5 == 2 || i % 5 == 3 ? other : from, BYTES, i, 0);
			pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 1, 0, i));
			pt_await(eq, PT_ACKED, NULL);
			if (i % 5 == 4)
				pt_ok(PtlMDUnlink(md));
		} else {
			pt_await(eq, PT_PUT, NULL);
			pt_holds(delivery, BYTES, i, 0);
		}
		pt_barrier();
	}
	pt_finish();
}

static const struct pt_test tests[] = {
	PT_CASE(puts_are_sent_from_what_is_mapped, 2),
	PT_CASE(gets_land_in_what_is_mapped, 2),
	PT_CASE(descriptors_that_are_used_often, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
