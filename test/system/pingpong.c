/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two processes, a number of round trips of a size, and nothing else: what test_syscalls.sh
 * looks at from outside. Usage: pingpong get|wait BYTES ROUND_TRIPS
 */
#include "ptest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static bool waits;
static size_t bytes;
static long trips;

static void next_arrival(ptl_handle_eq_t eq)
{
	ptl_event_t ev;

	if (waits)
		pt_ok(PtlEQWait(eq, &ev));
	else
		while (PtlEQGet(eq, &ev) == PTL_EQ_EMPTY)
			;
}

/* How often this process lost its core. */
static long preemptions(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_nivcsw;
}

static void ball(void)
{
	static char in[65536], out[65536];
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	pt_open();
	eq = pt_eq(64);
	pt_post(1, 0,
		pt_md(in, sizeof(in),
		      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	md = pt_bind(out, bytes, 0, PTL_EQ_NONE);
	pt_barrier();
	for (long i = 0; i < trips; i++) {
		if (pt_rank == 0)
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(1), 1, 0, 0, 0, 0));
		next_arrival(eq);
		if (pt_rank == 1)
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(0), 1, 0, 0, 0, 0));
	}
	*pt_word(pt_rank) = (uint64_t)preemptions();
	pt_barrier();
	if (pt_rank == 0)
		printf("# preempted %llu times\n", (unsigned long long)(*pt_word(0) + *pt_word(1)));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct pt_test test = PT_CASE(ball, 2);

	if (argc != 4) {
		fprintf(stderr, "usage: pingpong get|wait BYTES ROUND_TRIPS\n");
		return 2;
	}
	waits = strcmp(argv[1], "wait") == 0;
	bytes = strtoul(argv[2], NULL, 0);
	trips = strtol(argv[3], NULL, 0);
	return pt_main(1, argv, &test, 1);
}
