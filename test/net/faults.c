/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PTL_FAULT, over real sockets. Each kind of fault happens to the peer, the portal and the kind of
 * packet that its rule names and to no others; the counters of both sides say so. Damaged packets
 * arrive all the same. A rule that does not apply makes no fault, so the sender's count tells
 * exactly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/support/ptest.h"

enum { OTHER = 4, NAMED = 5, LONG = 100000, TIMES = 3, OVER = 1 };
#define DELAY_S 0.2

static char place[LONG], bytes[LONG];
static ptl_handle_eq_t eq;

static uint64_t faults(void)
{
	return pt_stat(getpid(), PT_FAULTS);
}

/* Until those lines of portals-stat about a rank say so many. Our own counters are brought up to
 * date as we look. */
static void wait_for(int rank, const char *const lines[], uint64_t least)
{
	double end = pt_lived() + pt_patience(20);
	uint64_t n = 0;

	while (n < least) {
		ptl_event_t ev;
		int which;

		pt_truef(pt_lived() < end, "%llu of %llu %s", (unsigned long long)n,
			 (unsigned long long)least, lines[0]);
		pt_code(PtlEQPoll(&eq, 1, 10, &ev, &which), PTL_EQ_EMPTY);
		n = 0;
		for (int i = 0; lines[i]; i++)
			n += pt_stat(pt_os_pid(rank), lines[i]);
	}
}
#define WAIT_FOR(rank, least, ...) wait_for(rank, (const char *[]){ __VA_ARGS__, NULL }, least)

/* ---- operations, until they are over --------------------------------------------------------- */

static void put(int to, ptl_pt_index_t portal, ptl_size_t length, ptl_ack_req_t ack)
{
	ptl_handle_md_t md = pt_bind(bytes, length, PTL_MD_EVENT_START_DISABLE, eq);

	pt_ok(PtlPut(md, ack, pt_id(to), portal, 0, 0, 0, 0));
	pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | (ack == PTL_ACK_REQ ? PT_BIT(PTL_EVENT_ACK) : 0),
		 NULL);
	pt_ok(PtlMDUnlink(md));
}

static void short_put(int to, ptl_pt_index_t portal)
{
	put(to, portal, 8, PTL_ACK_REQ);
}

static void unanswered_put(int to, ptl_pt_index_t portal)
{
	put(to, portal, 8, PTL_NO_ACK_REQ);
}

static void long_put(int to, ptl_pt_index_t portal)
{
	put(to, portal, LONG, PTL_ACK_REQ);
}

static void get(int to, ptl_pt_index_t portal)
{
	ptl_handle_md_t md = pt_bind(bytes, 8, PTL_MD_EVENT_START_DISABLE, eq);

	pt_ok(PtlGet(md, pt_id(to), portal, 0, 0, 0));
	pt_await(eq, PT_BIT(PTL_EVENT_REPLY_END), NULL);
	pt_ok(PtlMDUnlink(md));
}

static void swap(int to, ptl_pt_index_t portal)
{
	ptl_handle_md_t md = pt_bind(bytes, 8, PTL_MD_EVENT_START_DISABLE, eq);

	pt_ok(PtlGetPut(md, md, pt_id(to), portal, 0, 0, 0, 0));
	pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_REPLY_END), NULL);
	pt_ok(PtlMDUnlink(md));
}

static void all_kinds(int to, ptl_pt_index_t portal)
{
	short_put(to, portal);
	get(to, portal);
	swap(to, portal);
	long_put(to, portal);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* The address of a rank: 1 and 2 are on one node, the others each on one of their own. */
static const char *node(int rank)
{
	static const char *const nodes[] = { "127.0.3.1", "127.0.3.2", "127.0.3.2", "127.0.3.3" };

	return nodes[rank];
}

/* Each on its node; a rank whose `rules` are not NULL makes these faults. */
static void begin(const char *rules)
{
	setenv("PTL_IFACE", node(pt_rank), 1);
	if (rules)
		setenv("PTL_FAULT", rules, 1);
	pt_open();
	eq = pt_eq(64);
	for (int i = 0; pt_rank > 0 && i < 2; i++)
		pt_post(i ? NAMED : OTHER, 0,
			pt_md(place, sizeof(place),
			      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
}

/* A target's part: it is in the library, where its counters are brought up to date, until all is
 * over. */
static void attend(void)
{
	ptl_event_t ev;
	int which;

	while (!*pt_word(OVER))
		pt_code(PtlEQPoll(&eq, 1, 10, &ev, &which), PTL_EQ_EMPTY);
	pt_barrier();
}

static void over(void)
{
	*pt_word(OVER) = 1;
	pt_barrier();
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Nothing happens to gets and swaps, nor at another portal; and then it does to puts, so often. */
static void happens_to_puts(const char *kind)
{
	char rules[128];

	snprintf(rules, sizeof(rules), "seed=3;%s,type=put,portal=%d,times=%d", kind, NAMED, TIMES);
	begin(pt_rank == 0 ? rules : NULL);
	if (pt_rank > 0)
		return;
	all_kinds(1, OTHER);
	get(1, NAMED);
	swap(1, NAMED);
	pt_is(faults(), 0);
	for (int i = 0; i < TIMES; i++)
		short_put(1, NAMED);
	pt_is(faults(), TIMES);
}

static void what_is_dropped_is_sent_again(void)
{
	happens_to_puts("drop=1");
	if (pt_rank > 0) {
		attend();
		return;
	}
	WAIT_FOR(0, TIMES, "packets taken for lost");
	over();
}

static void what_is_sent_twice_is_taken_once(void)
{
	happens_to_puts("dup=1");
	if (pt_rank > 0) {
		attend();
		pt_is(pt_status(PTL_SR_RECV_COUNT), 4 + 2 + TIMES);
		return;
	}
	WAIT_FOR(1, TIMES, "packets dropped: had arrived before");
	over();
}

static void what_is_damaged_is_not_taken(void)
{
	happens_to_puts("corrupt=1");
	if (pt_rank > 0) {
		attend();
		return;
	}
	WAIT_FOR(1, TIMES, "packets dropped: none of ours", "packets dropped: forged",
		 "packets dropped: of a connection");
	over();
}

/* Packets that are sent again meanwhile are delayed as well. */
static void what_is_delayed_comes_later(void)
{
	double start;

	begin(pt_rank == 0 ? "delay=1:200000,type=put,portal=5" : NULL);
	if (pt_rank > 0) {
		attend();
		return;
	}
	all_kinds(1, OTHER);
	get(1, NAMED);
	pt_is(faults(), 0);
	start = pt_now();
	short_put(1, NAMED);
	pt_truef(pt_now() >= start + DELAY_S, "it took %.3f s only", pt_now() - start);
	pt_true(faults() > 0);
	over();
}

/* ---- whom it happens to ---------------------------------------------------------------------- */

static void who_is_named_by_node_and_who_is_not(void)
{
	uint64_t before;

	begin(pt_rank == 0 ? "dup=1,peer=127.0.3.2" : NULL);
	if (pt_rank > 0) {
		attend();
		return;
	}
	all_kinds(3, OTHER);
	pt_is(faults(), 0);
	all_kinds(1, OTHER);
	before = faults();
	pt_true(before > 0);
	all_kinds(2, OTHER);
	pt_true(faults() > before);
	over();
}

/* Only who makes the faults has to know of pids, so it begins last. */
static const char *rules_for(int rank, const char *what)
{
	static char rules[128];

	for (int i = 1; i < pt_size; i++)
		pt_until(pt_id(i).pid, 20);
	snprintf(rules, sizeof(rules), "%s,peer=%s:%u", what, node(rank), pt_id(rank).pid);
	return rules;
}

static void who_is_named_by_process_is_cut_off_alone(void)
{
	ptl_handle_md_t md;
	ptl_event_t ev;

	setenv("PTL_NET_DEAD_MS", "1500", 1);
	begin(pt_rank == 0 ? rules_for(1, "drop=1") : NULL);
	if (pt_rank > 0) {
		attend();
		return;
	}
	all_kinds(2, OTHER);
	all_kinds(3, NAMED);
	pt_is(faults(), 0);
	md = pt_bind(bytes, 8, PTL_MD_EVENT_START_DISABLE, eq);
	pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(1), OTHER, 0, 0, 0, 0));
	do {
		pt_ok(PtlEQWait(eq, &ev));
	} while (ev.type != PTL_EVENT_SEND_END);
	pt_true(ev.ni_fail_type != PTL_NI_OK);
	pt_true(faults() > 0);
	/* and the others are where they were */
	all_kinds(2, OTHER);
	all_kinds(3, NAMED);
	over();
}

/* Every request to the portal, and none to the other one. */
static void requests_to_a_portal(void)
{
	static void (*const kinds[])(int, ptl_pt_index_t) = { short_put, get, swap, long_put };
	uint64_t before;

	begin(pt_rank == 0 ? "dup=1,portal=5" : NULL);
	if (pt_rank > 0) {
		attend();
		return;
	}
	all_kinds(1, OTHER);
	pt_is(faults(), 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		before = faults();
		kinds[i](1, NAMED);
		pt_truef(faults() > before, "nothing happened to request %zu", i);
		before = faults();
		all_kinds(1, OTHER);
		pt_is(faults(), before);
	}
	over();
}

/* The packets of `rank`: nothing happens during `others`, and so often in `named`. */
static void carried(const char *type, int rank, void (*others[])(int, ptl_pt_index_t),
		    void (*named)(int, ptl_pt_index_t))
{
	char rules[128];

	snprintf(rules, sizeof(rules), "drop=1,type=%s,times=%d", type, TIMES);
	begin(pt_rank == rank ? rules : NULL);
	if (pt_rank > 0) {
		attend();
		return;
	}
	for (int i = 0; others[i]; i++)
		others[i](1, OTHER);
	pt_is(pt_stat(pt_os_pid(rank), PT_FAULTS), 0);
	for (int i = 0; i < TIMES; i++)
		named(1, OTHER);
	pt_is(pt_stat(pt_os_pid(rank), PT_FAULTS), TIMES);
	over();
}

#define CARRIED(type, rank, named, ...)                                                            \
	carried(type, rank, (void (*[])(int, ptl_pt_index_t)){ __VA_ARGS__ }, named)

static void packets_with_puts(void)
{
	CARRIED("put", 0, short_put, get, swap, NULL);
}

static void packets_with_gets(void)
{
	CARRIED("get", 0, get, short_put, swap, long_put, NULL);
}

static void packets_with_swaps(void)
{
	CARRIED("getput", 0, swap, short_put, get, long_put, NULL);
}

static void packets_with_data(void)
{
	CARRIED("data", 0, long_put, short_put, get, swap, NULL);
}

static void packets_with_answers(void)
{
	CARRIED("answer", 1, short_put, unanswered_put, get, swap, NULL);
}

static void packets_with_replies(void)
{
	CARRIED("reply", 1, get, short_put, unanswered_put, long_put, NULL);
}

/* Those of the target go with all that it says. */
static void packets_with_acknowledgements(void)
{
	CARRIED("ack", 1, short_put, NULL);
}

/* The first thing there is; afterwards nothing happens to anything else. */
static void greetings(void)
{
	begin(pt_rank == 0 ? "drop=1,type=hello,times=2" : NULL);
	if (pt_rank > 0) {
		attend();
		return;
	}
	pt_is(faults(), 0);
	short_put(1, OTHER);
	pt_is(faults(), 2);
	all_kinds(1, NAMED);
	pt_is(faults(), 2);
	over();
}

/* Not the rule before it either. */
static void what_is_not_understood_makes_no_faults(void)
{
	static const char *const wrong[] = { "drop=1;drop=1.5",         "drop=1;corrupt=x",
					     "drop=1;drop=-0.1",        "drop=1;drop=nan",
					     "drop=1;drop=1:5",         "drop=1;delay=1:5x",
					     "drop=1;lose=1",           "drop=1,type=nothing",
					     "drop=1,peer=nobody",      "drop=1,peer=127.0.0.1:",
					     "drop=1,peer=127.0.0.1:x", "drop=1,portal=",
					     "drop=1,times=many",       "drop=1,seed",
					     "drop=1;seed=1x" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		*pt_word(OVER) = 0;
		begin(wrong[i]);
		if (pt_rank > 0) {
			attend();
		} else {
			short_put(1, OTHER);
			pt_truef(!faults(), "\"%s\" made faults", wrong[i]);
			over();
		}
		pt_close();
	}
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_CASE(what_is_dropped_is_sent_again, 2),
		PT_CASE(what_is_sent_twice_is_taken_once, 2),
		PT_CASE(what_is_damaged_is_not_taken, 2),
		PT_CASE(what_is_delayed_comes_later, 2),
		PT_CASE(who_is_named_by_node_and_who_is_not, 4),
		PT_CASE(who_is_named_by_process_is_cut_off_alone, 4),
		PT_CASE(requests_to_a_portal, 2),
		PT_CASE(packets_with_puts, 2),
		PT_CASE(packets_with_gets, 2),
		PT_CASE(packets_with_swaps, 2),
		PT_CASE(packets_with_data, 2),
		PT_CASE(packets_with_answers, 2),
		PT_CASE(packets_with_replies, 2),
		PT_CASE(packets_with_acknowledgements, 2),
		PT_CASE(greetings, 2),
		PT_CASE(what_is_not_understood_makes_no_faults, 2),
	};

	return PT_MAIN(argc, argv, tests);
}
