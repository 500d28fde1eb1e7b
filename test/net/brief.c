/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A process computes, and is in the library for moments in between. The helper thread helps it with
 * much shorter work than the milliseconds after which the thread checks an application that does
 * nothing but poll.
 */
#include <sched.h>

#include "test/support/ptest.h"

enum { PORTAL = 7, ROUNDS = 200, COMPUTES = 1 };
#define COMPUTE 1.0   /* s, at most */
#define SOON    0.001 /* s */

/* Without a call to the library; until the round's put is here. */
static double compute(const volatile unsigned char *bytes, int round)
{
	double start = pt_now();

	while (pt_now() < start + COMPUTE && *bytes != (unsigned char)round)
		pt_pause();
	return pt_now() - start;
}

/* How many rounds were soon over. */
static int computes_and_looks(void)
{
	static unsigned char bytes[8];
	ptl_handle_eq_t eq = pt_eq(64);
	ptl_event_t ev;
	int soon = 0;

	pt_post(PORTAL, 0,
		pt_md(bytes, sizeof(bytes),
		      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	pt_barrier();
	for (int i = 1; i <= ROUNDS; i++) {
		atomic_store(pt_word(COMPUTES), (uint64_t)i);
		soon += compute(bytes, i) < SOON;
		pt_next(eq, PTL_EVENT_PUT_END);
		pt_code(PtlEQGet(eq, &ev), PTL_EQ_EMPTY); /* which looks at the network */
	}
	return soon;
}

static void puts_to_it(void)
{
	static unsigned char bytes[ROUNDS + 1][8];
	ptl_handle_md_t md = pt_bind(bytes, sizeof(bytes), PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE);

	for (int i = 1; i <= ROUNDS; i++)
		bytes[i][0] = (unsigned char)i;
	pt_barrier();
	for (int i = 1; i <= ROUNDS; i++) {
		while (atomic_load(pt_word(COMPUTES)) < (uint64_t)i)
			pt_pause();
		pt_ok(PtlPutRegion(md, (ptl_size_t)i * 8, 8, PTL_NO_ACK_REQ, pt_id(1), PORTAL, 0, 0,
				   0, 0));
	}
}

static void short_work_is_helped_as_well(void)
{
	cpu_set_t cores;
	int soon;

	/* a thread that has but the one core of its application is in no hurry */
	if (sched_getaffinity(0, sizeof(cores), &cores) == 0 && CPU_COUNT(&cores) < 2)
		pt_skip("there is one core only");
	pt_open();
	if (pt_rank == 0) {
		puts_to_it();
	} else {
		soon = computes_and_looks();
		/* others on this machine are in the way often, but not that often */
		pt_truef(soon >= ROUNDS / 4, "%d of %d rounds were over within %g s", soon, ROUNDS,
			 SOON);
	}
	pt_barrier();
	pt_close();
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_CASE(short_work_is_helped_as_well, 2),
	};

	return PT_MAIN(argc, argv, tests);
}
