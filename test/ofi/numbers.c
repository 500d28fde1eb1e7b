/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * More packets on a connection than there are numbers for them (doc/wire-rdma.md): they begin anew.
 */
#include "ptest.h"

enum { PORTAL = 21, PUTS = 70000, WINDOW = 32 };

static void numbers_begin_anew(void)
{
	uint64_t delivery = 0, value = 0, acked = 0;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(4 * WINDOW);
	if (pt_is_target())
		pt_post(PORTAL, 1,
			pt_md(&delivery, sizeof(delivery), PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		md = pt_bind(&value, sizeof(value), PTL_MD_EVENT_START_DISABLE, eq);
		while (acked < PUTS) {
			for (; value < PUTS && value - acked < WINDOW; value++)
				pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 1, 0, 0));
			pt_ok(PtlEQWait(eq, &ev));
			pt_is(ev.ni_fail_type, PTL_NI_OK);
			acked += ev.type == PTL_EVENT_ACK;
		}
	}
	pt_barrier();
	if (pt_is_target())
		pt_is(delivery, PUTS - 1);
	pt_finish();
}

static const struct pt_test tests[] = {
	PT_CASE(numbers_begin_anew, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
