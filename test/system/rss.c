/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory is paid when used: an interface with the default limits costs less than 1 MiB of resident
 * memory, and objects that were freed do not add up.
 */
#include "ptest.h"

#include <stdio.h>
#include <string.h>

/* Anonymous and shared resident memory of this process, KiB. */
static long resident(void)
{
	char line[256];
	long sum = 0, kib;
	FILE *f = fopen("/proc/self/status", "r");

	pt_true(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1 ||
		    sscanf(line, "RssShmem: %ld", &kib) == 1)
			sum += kib;
	fclose(f);
	return sum;
}

static void an_interface_costs_less_than_a_mebibyte(void)
{
	long before = resident(), after;
	ptl_ni_limits_t limits;

	pt_open_with(NULL, &limits);
	after = resident();
	fprintf(stderr, "# an interface with %d entries, %d MDs, %d queues: %ld KiB resident\n",
		limits.max_mes, limits.max_mds, limits.max_eqs, after - before);
	pt_truef(after - before < 1024, "%ld KiB", after - before);
}

/* Talking to others costs something for each, but no copy of their interface. */
static void a_peer_costs_less_than_a_quarter_mebibyte(void)
{
	long before, after;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	char c = 0;

	pt_open();
	eq = pt_eq(16);
	pt_post(9, 0, pt_md(&c, 1, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE), PTL_RETAIN,
		NULL);
	md = pt_bind(&c, 1, 0, eq);
	pt_barrier();
	before = resident();
	for (int i = 0; i < pt_size && pt_rank == 0; i++) {
		pt_ok(PtlPut(md, PTL_ACK_REQ, pt_id(i), 9, 0, 0, 0, 0));
		pt_await(eq, PT_ACKED, NULL);
	}
	after = resident();
	if (pt_rank == 0) {
		fprintf(stderr, "# %d peers: %ld KiB resident\n", pt_size, after - before);
		pt_truef(after - before < 256 * pt_size, "%ld KiB for %d peers", after - before,
			 pt_size);
	}
	pt_barrier();
}

static void freed_objects_do_not_add_up(void)
{
	ptl_handle_me_t me;
	ptl_handle_eq_t eq;
	char bytes[64];
	long before = 0;

	pt_open();
	for (int i = 0; i < 200000; i++) {
		if (i == 1000)
			before = resident();
		eq = pt_eq((ptl_size_t)(i % 100) + 1);
		me = pt_post(9, (ptl_match_bits_t)i, pt_md(bytes, 64, 0, eq), PTL_RETAIN, NULL);
		pt_ok(PtlMEUnlink(me));
		pt_ok(PtlEQFree(eq));
	}
	if (pt_slow() > 1)
		return; /* sanitizers keep what was freed */
	pt_truef(resident() - before < 512, "%ld KiB more after 200,000 objects",
		 resident() - before);
}

static const struct pt_test tests[] = {
	PT_CASE(an_interface_costs_less_than_a_mebibyte, 1),
	PT_CASE(a_peer_costs_less_than_a_quarter_mebibyte, 8),
	PT_CASE(freed_objects_do_not_add_up, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
