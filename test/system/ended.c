/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Peers that are gone: portals-stat counts those that died, not those that closed their
 * interface, and PtlPeerReason tells which they are.
 */
#include "ptest.h"

#include <portals3_ext.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { PORTAL = 7 };

/* Over a network who is killed is only silent, or nobody at all. */
static void says_why(ptl_process_id_t other, uint64_t deaths)
{
	ptl_ni_fail_t fail;
	char text[200], cut[8];

	pt_ok(PtlPeerReason(pt_ni, other, &fail, text, sizeof(text)));
	pt_true(fail == PTL_NI_PEER_DEAD || (deaths && fail == PTL_NI_UNREACHABLE));
	pt_true(strstr(text, !deaths                    ? "closed its interface"
			     : fail == PTL_NI_PEER_DEAD ? "its process has ended"
							: "it has ended"));
	pt_ok(PtlPeerReason(pt_ni, other, &fail, cut, sizeof(cut)));
	pt_is(strlen(cut), sizeof(cut) - 1);
	other.pid++;
	pt_ok(PtlPeerReason(pt_ni, other, &fail, text, sizeof(text)));
	pt_is(fail, PTL_NI_OK);
	pt_is(*text, 0);
}

/* Rank 1 puts to rank 0 and goes; what rank 0 sends it then fails. */
static void put_and_go(void (*go)(void), uint64_t deaths)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	int n;

	pt_ok(PtlInit(&n));
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &pt_ni));
	eq = pt_eq(16);
	md = pt_bind(NULL, 0, PTL_MD_EVENT_START_DISABLE, eq);
	if (pt_rank == 0) {
		ptl_process_id_t id, other;
		ptl_event_t ev;

		pt_post(PORTAL, 1, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN, NULL);
		pt_ok(PtlGetId(pt_ni, &id));
		*pt_word(0) = id.nid;
		*pt_word(1) = id.pid;
		pt_barrier();
		pt_ok(PtlEQWait(eq, &ev));
		pt_is(ev.type, PTL_EVENT_PUT_END);
		other = ev.initiator;
		*pt_word(2) = 1;
		pt_until(*pt_word(3), 20);
		do {
			pt_pause();
			pt_ok(PtlPut(md, PTL_NO_ACK_REQ, other, PORTAL, 0, 1, 0, 0));
			pt_ok(PtlEQWait(eq, &ev));
		} while (ev.ni_fail_type == PTL_NI_OK);
		pt_is(pt_stat(getpid(), "peers that died while connected"), deaths);
		says_why(other, deaths);
		pt_ok(PtlNIFini(pt_ni));
	} else {
		pt_barrier();
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ,
			     (ptl_process_id_t){ (ptl_nid_t)*pt_word(0), (ptl_pid_t)*pt_word(1) },
			     PORTAL, 0, 1, 0, 0));
		pt_next(eq, PTL_EVENT_SEND_END);
		pt_until(*pt_word(2), 20);
		go();
	}
	PtlFini();
}

static void close_it(void)
{
	pt_ok(PtlNIFini(pt_ni));
	*pt_word(3) = 1;
}

static void die(void)
{
	*pt_word(3) = 1;
	kill(getpid(), SIGKILL);
}

static void who_closed_has_not_died(void)
{
	put_and_go(close_it, 0);
}

static void who_was_killed_has(void)
{
	pt_expect_killed(1);
	put_and_go(die, 1);
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_CASE(who_closed_has_not_died, 2),
		PT_CASE(who_was_killed_has, 2),
	};

	return PT_MAIN(argc, argv, tests);
}
