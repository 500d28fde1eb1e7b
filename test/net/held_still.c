/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * All processes of a job are held still for longer than silence means death, as when a machine
 * is suspended, and go on one after the other: who goes on first has heard nothing from its peer
 * for all that time, and does not take it for dead.
 */
#include "ptest.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { FIRST, SECOND, CONDUCTOR, PORTAL = 6, LENGTH = 100000, STOPS = 2, APART_MS = 50 };

#define DEAD_MS 4000 /* as main sets it */

static struct stage {
	_Atomic bool over;
	_Atomic uint64_t turns;
} * stage;

static void exchange(void)
{
	unsigned char *out = calloc(3, LENGTH), *in = out + LENGTH, *place = in + LENGTH;
	ptl_process_id_t peer;
	ptl_handle_eq_t eq;
	ptl_handle_md_t out_md, in_md;

	pt_open();
	peer = pt_id(!pt_rank);
	eq = pt_eq(64);
	out_md = pt_bind(out, LENGTH, PTL_MD_EVENT_START_DISABLE, eq);
	in_md = pt_bind(in, LENGTH, PTL_MD_EVENT_START_DISABLE, eq);
	pt_post(PORTAL, 0,
		pt_md(place, LENGTH, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		      PTL_EQ_NONE),
		PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t i = 0; !stage->over; i++) {
		pt_fill(out, LENGTH, i, 0);
		pt_ok(PtlPut(out_md, PTL_ACK_REQ, peer, PORTAL, 0, 0, 0, 0));
		pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
		pt_ok(PtlGet(in_md, peer, PORTAL, 0, 0, 0));
		pt_await(eq, PT_BIT(PTL_EVENT_REPLY_END), NULL);
		pt_holds(in, LENGTH, i, 0);
		stage->turns++;
	}
	pt_barrier();
	pt_close();
	free(out);
}

static void pass_ms(long ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static void hold_both(int i)
{
	/* each of the two has its turn to go on first */
	pid_t first = pt_os_pid(i % 2 ? SECOND : FIRST), last = pt_os_pid(i % 2 ? FIRST : SECOND);
	uint64_t before = stage->turns;

	kill(last, SIGSTOP);
	pass_ms(APART_MS); /* the other sends something and waits */
	kill(first, SIGSTOP);
	pass_ms(DEAD_MS + DEAD_MS / 2);
	kill(first, SIGCONT);
	pass_ms(APART_MS);
	kill(last, SIGCONT);
	pt_until(stage->turns > before + 10, 20);
}

static void processes_that_were_held_still_do_not_take_each_other_for_dead(void)
{
	if (pt_rank != CONDUCTOR) {
		exchange();
		return;
	}
	pt_barrier(); /* pt_open */
	pt_barrier();
	for (int i = 0; i < STOPS; i++) {
		pt_until(stage->turns > 10, 20);
		hold_both(i);
	}
	stage->over = true;
	pt_barrier();
	pt_barrier(); /* pt_close */
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = { PT_LONG(
		processes_that_were_held_still_do_not_take_each_other_for_dead, CONDUCTOR + 1,
		100) };

	setenv("PTL_NET_DEAD_MS", "4000", 1);
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stage == MAP_FAILED)
		return 1;
	return PT_MAIN(argc, argv, tests);
}
