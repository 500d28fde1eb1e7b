/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The memory that a connected peer costs over verbs: one process talks to others, one after the
 * other, and reads its own memory use.
 */
#include "ptest.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

enum { PORTAL = 8, OTHERS = 12, FIRST = 4, LIMIT = 16384 };

/* The memory allocated, and that mapped beside the heap: queues that are shared with the device
 * among it. */
static uint64_t memory(void)
{
	struct mallinfo2 heap = mallinfo2();
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	pt_true(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE) - heap.arena + heap.uordblks;
}

static void talk_to(int rank, ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	pt_ok(PtlPut(md, PTL_ACK_REQ, pt_id(rank), PORTAL, 0, 1, 0, 0));
	pt_await(eq, PT_ACKED, NULL);
}

/* Tables grow in steps, and something is made at the first one of all; what each costs is the
 * mean over those that follow. */
static void a_connection_takes_what_is_said(void)
{
	static char bytes[8];
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	uint64_t before = 0, each, said;

	pt_open();
	eq = pt_eq(64);
	if (pt_rank)
		pt_post(PORTAL, 1, pt_md(bytes, sizeof(bytes), PTL_MD_OP_PUT, eq), PTL_RETAIN,
			NULL);
	pt_barrier();
	if (!pt_rank) {
		md = pt_bind(bytes, sizeof(bytes), 0, eq);
		for (int rank = 1; rank <= OTHERS; rank++) {
			if (rank == FIRST)
				before = memory();
			talk_to(rank, md, eq);
		}
		each = (memory() - before) / (OTHERS - FIRST + 1);
		said = pt_stat(getpid(), "bytes that each verbs connection takes");
		printf("# %lu bytes each, %lu are said\n", (unsigned long)each,
		       (unsigned long)said);
		pt_true(said > 0 && said <= LIMIT);
		pt_truef(each <= said, "a connection takes %lu bytes, and %lu are said",
			 (unsigned long)each, (unsigned long)said);
		/* it is no guess that is always large enough */
		pt_true(each * 2 > said);
	}
	pt_barrier();
	pt_close();
}

static const struct pt_test tests[] = {
	PT_LONG(a_connection_takes_what_is_said, OTHERS + 1, 300),
};

int main(int argc, char **argv)
{
	/* the helper would have an arena of its own from its first allocation on, which may be
	 * after FIRST: 64 MiB of addresses */
	mallopt(M_ARENA_MAX, 1);
	return PT_MAIN(argc, argv, tests);
}
