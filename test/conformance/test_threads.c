/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Several threads of one process in the library at once, without any of them having said so:
 * traffic, object churn, and objects used by more than one thread.
 */
#include "ptest.h"

#include <pthread.h>
#include <string.h>

enum { PORTAL = 28, THREADS = 4 };

struct lane {
	pthread_t thread;
	int number;
	ptl_process_id_t to;
};

static void run_lanes(void *(*body)(void *), ptl_process_id_t to)
{
	struct lane lanes[THREADS];

	for (int i = 0; i < THREADS; i++) {
		lanes[i] = (struct lane){ .number = i, .to = to };
		pt_is(pthread_create(&lanes[i].thread, NULL, body, &lanes[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(lanes[i].thread, NULL);
}

/* ---- traffic --------------------------------------------------------------------------------- */

enum { PLACE = 100000 };

static unsigned char places[THREADS][PLACE];

/* Puts, reads back, and compares, in a place of its own at the peer. */
static void *put_and_get_back(void *arg)
{
	static const size_t sizes[] = { 0, 8, 100, 2048, 5000, PLACE };
	static unsigned char bytes[THREADS][2][PLACE];
	struct lane *l = arg;
	ptl_handle_eq_t eq = pt_eq(16);
	unsigned char *out = bytes[l->number][0], *in = bytes[l->number][1];
	ptl_handle_md_t out_md = pt_bind(out, PLACE, PTL_MD_EVENT_START_DISABLE, eq);
	ptl_handle_md_t in_md = pt_bind(in, PLACE, PTL_MD_EVENT_START_DISABLE, eq);
	ptl_match_bits_t bits = (ptl_match_bits_t)l->number;

	for (uint64_t i = 0; i < 600; i++) {
		size_t n = sizes[i % 6];

		pt_fill(out, n, i, 0);
		pt_ok(PtlPutRegion(out_md, 0, n, PTL_ACK_REQ, l->to, PORTAL, 0, bits, 0, i));
		pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
		pt_ok(PtlGetRegion(in_md, 0, n, l->to, PORTAL, 0, bits, 0));
		pt_await(eq, PT_BIT(PTL_EVENT_REPLY_END), NULL);
		pt_holds(in, n, i, 0);
	}
	return NULL;
}

static void threads_exchange_data_independently(void)
{
	pt_open();
	for (int i = 0; i < THREADS; i++)
		pt_post(PORTAL, (ptl_match_bits_t)i,
			pt_md(places[i], PLACE,
			      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator())
		run_lanes(put_and_get_back, pt_target());
	pt_finish();
}

static void threads_of_two_processes_exchange_data(void)
{
	pt_open();
	for (int i = 0; i < THREADS; i++)
		pt_post(PORTAL, (ptl_match_bits_t)i,
			pt_md(places[i], PLACE,
			      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	pt_barrier();
	run_lanes(put_and_get_back, pt_id(!pt_rank));
	pt_barrier();
}

/* ---- churn ----------------------------------------------------------------------------------- */

static void *make_and_unmake(void *arg)
{
	struct lane *l = arg;
	ptl_handle_me_t me[8], last;
	ptl_handle_md_t md, bound;
	ptl_handle_eq_t eq;
	ptl_pt_index_t index;
	ptl_md_t new;
	char c[16];

	for (int i = 0; i < 1500; i++) {
		eq = pt_eq((ptl_size_t)(i % 40 + 1));
		for (int k = 0; k < 8; k++) {
			pt_ok(PtlMEAttach(pt_ni, PORTAL + 1, pt_any, (ptl_match_bits_t)k, 0,
					  PTL_RETAIN, (ptl_ins_pos_t)(k & 1), &me[k]));
			pt_ok(PtlMDAttach(me[k], pt_md(c, 16, 0, eq), PTL_RETAIN, &md));
		}
		pt_ok(PtlMEInsert(me[3], pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, &last));
		pt_ok(PtlMDAttach(last, pt_md(c, 16, 0, eq), PTL_RETAIN, &md));
		bound = pt_bind(c, 16, 0, eq);
		new = pt_md(c, 8, 0, eq);
		pt_ok(PtlMDUpdate(bound, NULL, &new, eq));
		pt_is(pt_query(bound).length, 8);
		pt_ok(PtlMDUnlink(md));
		pt_ok(PtlMDUnlink(bound));
		for (int k = 0; k < 8; k++)
			pt_ok(PtlMEUnlink(me[(k * 3) % 8]));
		pt_quiet(eq);
		pt_ok(PtlEQFree(eq));
		pt_ok(PtlMEAttachAny(pt_ni, &index, pt_any, 0, 0, PTL_RETAIN, &last));
		pt_ok(PtlMEUnlink(last));
		pt_ok(PtlACEntry(pt_ni, (ptl_ac_index_t)l->number + 2, pt_any, PTL_UID_ANY,
				 PTL_JID_ANY, PTL_PT_INDEX_ANY));
	}
	return NULL;
}

static void objects_come_and_go_under_traffic(void)
{
	pthread_t traffic;
	struct lane l = { .number = 0 };

	pt_open();
	l.to = pt_id(0);
	pt_post(PORTAL, 0,
		pt_md(places[0], PLACE, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		      PTL_EQ_NONE),
		PTL_RETAIN, NULL);
	pt_is(pthread_create(&traffic, NULL, put_and_get_back, &l), 0);
	run_lanes(make_and_unmake, pt_id(0));
	pthread_join(traffic, NULL);
	pt_is(pt_status(PTL_SR_MES_CUR), 1);
	pt_is(pt_status(PTL_SR_MDS_CUR), 3);
	pt_is(pt_status(PTL_SR_EQS_CUR), 1);
}

/* ---- shared objects -------------------------------------------------------------------------- */

static ptl_handle_md_t shared_md;
static ptl_handle_eq_t shared_eq;
static _Atomic int wins;

static void *put_until_refused(void *arg)
{
	struct lane *l = arg;
	int rc;

	while ((rc = PtlPut(shared_md, PTL_NO_ACK_REQ, l->to, PORTAL, 0, 0, 0, 0)) == PTL_OK)
		atomic_fetch_add(&wins, 1);
	pt_is(rc, PTL_MD_INVALID);
	return NULL;
}

static void a_threshold_is_shared_exactly(void)
{
	enum { N = 5000 };
	ptl_md_t md;

	pt_open();
	md = pt_md(NULL, 0, 0, PTL_EQ_NONE);
	md.threshold = N;
	pt_ok(PtlMDBind(pt_ni, md, PTL_RETAIN, &shared_md));
	run_lanes(put_until_refused, pt_id(0));
	pt_is(wins, N);
	pt_wait_drops(N);
}

static void *unlink_shared(void *arg)
{
	int rc = PtlMDUnlink(shared_md);

	(void)arg;
	pt_true(rc == PTL_OK || rc == PTL_MD_INVALID);
	atomic_fetch_add(&wins, rc == PTL_OK);
	return NULL;
}

static void an_md_is_unlinked_by_one_thread_only(void)
{
	pt_open();
	for (int i = 0; i < 300; i++) {
		shared_md = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
		wins = 0;
		run_lanes(unlink_shared, pt_id(0));
		pt_is(wins, 1);
	}
}

enum { EVENTS = 20000 };
static _Atomic int taken[EVENTS];
static _Atomic int total;

static void *take_events(void *arg)
{
	ptl_event_t ev;
	int rc, which;

	(void)arg;
	while (total < EVENTS) {
		rc = PtlEQPoll(&shared_eq, 1, 1, &ev, &which);
		if (rc == PTL_EQ_EMPTY)
			continue;
		pt_is(rc, PTL_OK);
		atomic_fetch_add(&taken[ev.hdr_data], 1);
		atomic_fetch_add(&total, 1);
	}
	return NULL;
}

static void each_event_is_taken_by_one_thread(void)
{
	ptl_handle_md_t from;

	pt_open();
	shared_eq = pt_eq(EVENTS);
	from = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, shared_eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t i = 0; i < EVENTS && pt_is_initiator(); i++)
		pt_ok(PtlPut(from, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, i));
	if (pt_is_target()) {
		run_lanes(take_events, pt_id(0));
		for (int i = 0; i < EVENTS; i++)
			pt_is(taken[i], 1);
	}
	pt_barrier();
}

/* Threads that send through one MD: the numbers of each arrive in that thread's order. */
static void *send_own_sequence(void *arg)
{
	struct lane *l = arg;

	for (uint64_t i = 0; i < EVENTS / THREADS; i++)
		pt_ok(PtlPut(shared_md, PTL_NO_ACK_REQ, l->to, PORTAL, 0, 0, 0,
			     i << 8 | (uint64_t)l->number));
	return NULL;
}

static void each_thread_keeps_its_order(void)
{
	uint64_t next[THREADS] = { 0 };
	ptl_handle_eq_t eq;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(EVENTS);
	shared_md = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	if (pt_is_target())
		pt_post(PORTAL, 0, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator())
		run_lanes(send_own_sequence, pt_target());
	for (int i = 0; i < EVENTS && pt_is_target(); i++) {
		ev = pt_next(eq, PTL_EVENT_PUT_END);
		pt_is(ev.hdr_data >> 8, next[ev.hdr_data & 0xff]);
		next[ev.hdr_data & 0xff]++;
	}
	pt_barrier();
}

static const struct pt_test tests[] = {
	PT_MODES(threads_exchange_data_independently),
	PT_CASE(threads_of_two_processes_exchange_data, 2),
	PT_CASE(objects_come_and_go_under_traffic, 1),
	PT_CASE(a_threshold_is_shared_exactly, 1),
	PT_CASE(an_md_is_unlinked_by_one_thread_only, 1),
	PT_CASE(each_event_is_taken_by_one_thread, 1),
	{ "each_remote_event_is_taken_by_one_thread", each_event_is_taken_by_one_thread, 2, 0 },
	PT_CASE(each_thread_keeps_its_order, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
