/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The simulated network takes as long as PTL_SIM says, at least: that this machine takes time as
 * well is no fault.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/support/ptest.h"

enum { PORTAL = 4, LONG = 250000, LAST = 3, DONE = 1, CAME = 2, ROUNDS = 20, COUNTED = 9 };

#define SOON 0.05 /* s */

static char place[LAST][LONG], bytes[LONG];
static ptl_handle_eq_t eq;

/* Rank 0 is the target, with a place for each other rank. */
static void begin(const char *network)
{
	setenv("PTL_SIM", network, 1);
	pt_open();
	eq = pt_eq(64);
	for (int i = 0; pt_rank == 0 && i < LAST; i++)
		pt_post(PORTAL, (ptl_match_bits_t)i,
			pt_md(place[i], LONG, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	if (pt_rank == 0)
		pt_post(PORTAL, COUNTED,
			pt_md(place[0], LONG,
			      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			      eq),
			PTL_RETAIN, NULL);
	memset(bytes, pt_rank, sizeof(bytes));
	pt_barrier();
}

/* Until all others have come here; the target is in the library meanwhile. */
static void end(unsigned int others)
{
	ptl_event_t ev;
	int which;

	if (pt_rank > 0)
		atomic_fetch_add(pt_word(DONE), 1);
	while (pt_rank == 0 && atomic_load(pt_word(DONE)) < others)
		pt_code(PtlEQPoll(&eq, 1, 10, &ev, &which), PTL_EQ_EMPTY);
	pt_barrier();
	pt_close();
}

static void is_all_there(void)
{
	for (int i = 0; i < LONG; i++)
		if (place[0][i] != 1)
			pt_fail(__FILE__, __LINE__, "byte %d is %d", i, place[0][i]);
}

/* A put until it is acknowledged, in seconds. */
static double put(ptl_size_t length)
{
	ptl_handle_md_t md = pt_bind(bytes, length, PTL_MD_EVENT_START_DISABLE, eq);
	double start = pt_now();

	pt_ok(PtlPut(md, PTL_ACK_REQ, pt_id(0), PORTAL, 0, (ptl_match_bits_t)(pt_rank - 1), 0, 0));
	pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
	start = pt_now() - start;
	pt_ok(PtlMDUnlink(md));
	return start;
}

static void latency_is_kept_each_way(void)
{
	double took;

	begin("latency=30000,rate=0");
	if (pt_rank == 1) {
		/* the first one says hello, too: a trip to and fro more */
		took = put(8);
		pt_truef(took >= 0.12, "%g s", took);
		took = put(8);
		pt_truef(took >= 0.06, "%g s", took);
	}
	end(1);
}

static void a_link_has_its_rate(void)
{
	double took;

	begin("latency=0,rate=20");
	if (pt_rank == 1) {
		put(8);
		took = put(LONG);
		pt_truef(took >= LONG * 8 / 20e6, "%g s", took);
	}
	end(1);
	if (pt_rank == 0)
		is_all_there();
}

/* The links of senders are fast, and what they send meets at the receiver's. */
static void senders_share_the_receivers_link(void)
{
	double start;

	begin("latency=0,rate=1000,last=40");
	start = pt_now();
	if (pt_rank > 0)
		put(LONG);
	end(LAST);
	pt_truef(pt_now() - start >= LAST * LONG * 8 / 40e6, "%g s", pt_now() - start);
}

static void a_path_that_takes_less_is_found_out(void)
{
	begin("mtu=9000,path=1400");
	if (pt_rank == 1) {
		put(LONG);
		/* it was tried what the path takes */
		pt_true(pt_stat(getpid(), PT_FAULTS) > 0);
	}
	end(1);
	if (pt_rank == 0)
		is_all_there();
}

/* How many puts arrive soon though their sender computes before and after. */
static int soon(ptl_handle_md_t md)
{
	int n = 0;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		double start = pt_now();

		while (pt_now() < start + 0.01)
			pt_pause();
		start = pt_now();
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(0), PORTAL, 0, COUNTED, 0, 0));
		while (atomic_load(pt_word(CAME)) < i)
			pt_pause();
		n += pt_now() - start < SOON;
	}
	return n;
}

/* A packet leaves its sender's host when it is time for it, not when the sender next calls or
 * its helper thread, which may sleep for a second, next looks. */
static void packets_travel_while_their_sender_computes(void)
{
	const ptl_size_t length = 8;
	int n;

	begin("latency=2000");
	if (pt_rank == 1) {
		put(length); /* they are connected */
		n = soon(pt_bind(bytes, length, PTL_MD_EVENT_START_DISABLE, PTL_EQ_NONE));
		/* others on this machine are in the way often, but not that often */
		pt_truef(n >= ROUNDS / 2, "%d of %d arrived within %g s", n, ROUNDS, SOON);
	} else {
		for (int i = 0; i < ROUNDS; i++) {
			pt_next(eq, PTL_EVENT_PUT_END);
			atomic_fetch_add(pt_word(CAME), 1);
		}
	}
	end(1);
}

static void what_is_wrong_in_the_rules_is_said(void)
{
	ptl_handle_ni_t ni;
	int interfaces;

	setenv("PTL_SIM", "latency=soon", 1);
	setenv("PTL_QUIET", "1", 1);
	pt_ok(PtlInit(&interfaces));
	pt_code(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), PTL_IFACE_INVALID);
	PtlFini();
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_CASE(latency_is_kept_each_way, 2),
		PT_CASE(a_link_has_its_rate, 2),
		PT_CASE(senders_share_the_receivers_link, LAST + 1),
		PT_CASE(a_path_that_takes_less_is_found_out, 2),
		PT_CASE(packets_travel_while_their_sender_computes, 2),
		PT_CASE(what_is_wrong_in_the_rules_is_said, 1),
	};

	return PT_MAIN(argc, argv, tests);
}
