/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The additions of portals3_ext.h: injected puts, puts offered before they are stored, events taken
 * together, and UNLINK as the only event of an operation.
 */
#include <assert.h>
#include <portals3_ext.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ptest.h"

/* the last release's names */
static_assert(PTL_MD_OFFER == PTL_MD_INLINE && PTL_TAKEN == PTL_HANDLED &&
		      PTL_TAKEN_ENOUGH == PTL_HANDLED_ENOUGH &&
		      sizeof(ptl_taker_t) == sizeof(ptl_inline_handler_t),
	      "old names are good for a release more");

enum { PORTAL = 12, MANY = 3000, LENGTH = 700 };

static int inject(const void *data, size_t length, uint64_t bits)
{
	return PtlPutInject(pt_ni, data, length, PTL_INJECT_NOW, pt_target(), PORTAL, 0, bits, 0,
			    ~bits);
}

/* More than any ring holds: what finds no room is refused, not lost, and never waits for the
 * target. */
static void injected_bytes_are_taken_at_once(void)
{
	static unsigned char to[MANY * LENGTH], from[LENGTH];
	ptl_handle_eq_t eq;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(MANY);
	if (pt_is_target())
		pt_post(PORTAL, 7,
			pt_md(to, sizeof(to), PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t i = 0; i < MANY && pt_is_initiator(); i++) {
		int err;

		pt_fill(from, LENGTH, i, 0);
		while ((err = inject(from, LENGTH, 7)) == PTL_NO_SPACE)
			pt_ok(PtlProgress(pt_ni, 1));
		pt_code(err, PTL_OK);
		memset(from, 0xee, LENGTH);
	}
	pt_finish();
	for (uint64_t i = 0; i < MANY && pt_is_target(); i++) {
		ev = pt_next(eq, PTL_EVENT_PUT_END);
		pt_is(ev.mlength, LENGTH);
		pt_is(ev.hdr_data, ~7ull);
		pt_holds(to + i * LENGTH, LENGTH, i, 0);
	}
}

static void a_wrong_injection_is_an_error(void)
{
	static char big[1 << 20];
	ptl_process_id_t any = { PTL_NID_ANY, 1 }, nobody;

	pt_open();
	nobody = pt_target();
	nobody.pid = 4000000;
	pt_code(inject(NULL, 1, 0), PTL_SEGV);
	pt_code(PtlPutInject(PTL_INVALID_HANDLE, big, 1, PTL_INJECT_NOW, pt_target(), 0, 0, 0, 0,
			     0),
		PTL_NI_INVALID);
	pt_code(PtlPutInject(pt_ni, big, 1, PTL_INJECT_NOW, any, 0, 0, 0, 0, 0),
		PTL_PROCESS_INVALID);
	/* before that is known a few may be taken */
	pt_until(PtlPutInject(pt_ni, big, 1, PTL_INJECT_NOW, nobody, 0, 0, 0, 0, 0) ==
			 PTL_PROCESS_INVALID,
		 10);
	pt_code(inject(big, sizeof(big), 0), PTL_NO_SPACE);
	pt_ok(inject(NULL, 0, 0));
}

/* The target goes in and out all the time: some answers are pieces where there are any, some are
 * not. */
static void long_data_arrive_in_the_pieces_that_are_advised(void)
{
	enum { LONG = 300000, ROUNDS = 20, SEGMENT_LEAST = 4096 };
	static unsigned char from[LONG], to[LONG];
	ptl_process_id_t nobody = { PTL_NID_ANY, 1 };
	ptl_handle_eq_t eq, here;
	ptl_handle_md_t md;
	ptl_size_t n;
	ptl_event_t ev;

	pt_open();
	pt_ok(PtlPieceLength(pt_ni, nobody, &n));
	pt_is(n, 0);
	eq = pt_eq(64);
	if (pt_is_target())
		pt_post(PORTAL, 1,
			pt_md(to, LONG,
			      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			      eq),
			PTL_RETAIN, NULL);
	here = pt_eq(LONG / SEGMENT_LEAST + 8);
	md = pt_bind(from, LONG, PTL_MD_EVENT_START_DISABLE, here);
	pt_barrier();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		unsigned int puts = 0;

		pt_fill(from, LONG, i, 0);
		for (uint64_t at = 0; at < LONG && pt_is_initiator(); at += n) {
			pt_ok(PtlPieceLength(pt_ni, pt_target(), &n));
			pt_is(n > 0 && n < SEGMENT_LEAST, 0);
			if (!n || n > LONG - at)
				n = LONG - at;
			pt_ok(PtlPutRegion(md, at, n, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, 1, at,
					   i));
			puts++;
		}
		for (uint64_t got = 0; got < LONG && pt_is_target(); got += ev.mlength) {
			ev = pt_next(eq, PTL_EVENT_PUT_END);
			pt_is(ev.hdr_data, i);
		}
		if (pt_is_target())
			pt_holds(to, LONG, i, 0);
		while (puts--)
			pt_next(here, PTL_EVENT_SEND_END);
		pt_barrier();
	}
}

/* Nor are short ones advised where all but the shortest messages go as long ones. */
static void pieces_are_not_short(void)
{
	setenv("PTL_SHM_EAGER", "100", 1);
	long_data_arrive_in_the_pieces_that_are_advised();
}

static void unlink_alone_tells_how_a_put_ended(void)
{
	static const size_t sizes[] = { 0, 8, 5000, 300000 };
	static unsigned char from[300000], to[4][200000];
	ptl_handle_eq_t eq;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(8);
	for (uint64_t i = 0; i < 4 && pt_is_target(); i++) {
		ptl_md_t md = pt_md(to[i], sizeof(to[i]),
				    PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE |
					    PTL_MD_EVENT_END_DISABLE,
				    eq);
		ptl_handle_me_t me;
		ptl_handle_md_t h;

		md.threshold = 1;
		pt_ok(PtlMEMDAttach(pt_ni, PORTAL, pt_any, i, 0, PTL_UNLINK, PTL_INS_AFTER, md,
				    PTL_UNLINK, &me, &h));
	}
	pt_barrier();
	for (uint64_t i = 0; i < 4 && pt_is_initiator(); i++) {
		ptl_handle_eq_t here = pt_eq(8);

		pt_fill(from, sizes[i], i, 0);
		pt_ok(PtlPut(pt_bind(from, sizes[i], 0, here), PTL_ACK_REQ, pt_target(), PORTAL, 0,
			     i, 0, i));
		pt_await(here, PT_ACKED, NULL);
	}
	pt_finish();
	for (uint64_t i = 0; i < 4 && pt_is_target(); i++) {
		size_t kept = sizes[i] < sizeof(to[i]) ? sizes[i] : sizeof(to[i]);

		ev = pt_next(eq, PTL_EVENT_UNLINK);
		pt_is(ev.hdr_data, i);
		pt_is(ev.rlength, sizes[i]);
		pt_is(ev.mlength, kept);
		pt_is(ev.ni_fail_type, PTL_NI_OK);
		pt_holds(to[i], kept, i, 0);
	}
	pt_quiet(eq);
}

/* Over a network what was sent before a barrier may arrive after it. */
static void until_received(ptl_sr_value_t count)
{
	double deadline = pt_lived() + pt_patience(10);
	ptl_handle_eq_t none = pt_eq(4);

	while (pt_status(PTL_SR_RECV_COUNT) < count) {
		ptl_event_t ev;

		pt_truef(pt_lived() < deadline, "not all puts arrived");
		pt_code(PtlEQGet(none, &ev), PTL_EQ_EMPTY);
		pt_pause();
	}
}

/* Both queues' events come out, each queue's in order; a look leaves them. */
static void many_events_are_taken_at_once(void)
{
	ptl_handle_eq_t eq[2];
	ptl_event_t ev[16];
	uint64_t next[2] = { 0, 0 };
	int which = -1, count = -1, calls = 0;

	pt_open();
	for (int i = 0; i < 2; i++) {
		eq[i] = pt_eq(64);
		if (pt_is_target())
			pt_post(PORTAL, (ptl_match_bits_t)i,
				pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq[i]),
				PTL_RETAIN, NULL);
	}
	pt_code(PtlEQPollMany(eq, 2, 0, NULL, ev, 16, &count), PTL_EQ_EMPTY);
	pt_is(count, 0);
	pt_code(PtlEQPollMany(eq, 2, PTL_TIME_LOOK, NULL, ev, 16, &count), PTL_EQ_EMPTY);
	pt_true(count == 0 || count == -1);
	pt_code(PtlEQAwait(eq, 2, 0, &which), PTL_EQ_EMPTY);
	pt_code(PtlEQPollMany(eq, 2, 0, NULL, ev, 0, &count), PTL_SEGV);
	pt_code(PtlEQPollMany(eq, 2, 0, NULL, NULL, 1, &count), PTL_SEGV);
	pt_code(PtlEQAwait(NULL, 2, 0, &which), PTL_SEGV);
	pt_code(PtlEQAwait(eq, 0, 0, &which), PTL_EQ_INVALID);
	pt_barrier();
	for (uint64_t i = 0; i < 40 && pt_is_initiator(); i++)
		pt_ok(PtlPutInject(pt_ni, NULL, 0, PTL_INJECT_NOW, pt_target(), PORTAL, 0, i % 2, 0,
				   i / 2));
	pt_finish();
	if (pt_is_target() && pt_target_is_away())
		until_received(40);
	while (pt_is_target() && next[0] + next[1] < 40) {
		pt_ok(PtlEQAwait(eq, 2, calls % 2 ? PTL_TIME_ASLEEP : 5000, &which));
		pt_ok(PtlEQPollMany(eq, 2, 5000, NULL, ev, 16, &count));
		pt_true(count > 0);
		for (int k = 0; k < count; k++) {
			int i = ev[k].md.eq_handle == eq[1];

			pt_is(ev[k].match_bits, i);
			pt_is(ev[k].hdr_data, next[i]++);
		}
		calls++;
	}
	if (pt_is_target() && pt_target_is_away()) /* all were there */
		pt_is(calls, 3);
	pt_quiet(eq[0]);
	pt_quiet(eq[1]);
}

/* ---- puts offered ---------------------------------------------------------------------------- */

static uint64_t arrived, offers_taken;
static bool has_enough; /* now and then */

static void check_next(uint64_t number, const void *data, size_t length)
{
	pt_is(number, arrived);
	pt_is(length, number % LENGTH);
	pt_holds(data, length, number, 0);
	arrived++;
}

static int some(const ptl_arrival_t *put)
{
	if (put->hdr_data % 7 == 3)
		return 0;
	pt_is(put->match_bits, 5);
	pt_is(put->initiator.pid, pt_id(0).pid);
	pt_true(put->user_ptr == &arrived);
	check_next(put->hdr_data, put->data, put->length);
	offers_taken++;
	return has_enough && put->hdr_data % 5 == 2 ? PTL_HANDLED_ENOUGH : PTL_HANDLED;
}

static void inject_many(uint64_t from, uint64_t to)
{
	static unsigned char data[LENGTH];

	for (uint64_t i = from; i < to; i++) {
		ptl_inject_t when = i % 3 == 2 ? PTL_INJECT_HERE
				    : i % 2    ? PTL_INJECT_LAZY
					       : PTL_INJECT_NOW;
		int err;

		pt_fill(data, i % LENGTH, i, 0);
		while ((err = PtlPutInject(pt_ni, data, i % LENGTH, when, pt_id(1), PORTAL, 0, 5, 0,
					   i)) == PTL_NO_SPACE) {
			when = when == PTL_INJECT_HERE ? PTL_INJECT_LAZY : when;
			pt_ok(PtlProgress(pt_ni, 1));
		}
		pt_ok(err);
	}
}

/* Whether it is taken before it is stored or told of by an event: each comes once, in order. */
static void offered_puts_stay_in_order(void)
{
	enum { BATCH = 500, BATCHES = 40 };
	static unsigned char to[BATCH * BATCHES * LENGTH / 2];
	ptl_handle_eq_t eq;
	ptl_event_t ev[16];
	int count;

	pt_open();
	eq = pt_eq(BATCH);
	if (pt_rank == 1) {
		ptl_md_t md = pt_md(to, sizeof(to),
				    PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | PTL_MD_INLINE, eq);

		md.user_ptr = &arrived;
		pt_post(PORTAL, 5, md, PTL_RETAIN, NULL);
	}
	for (uint64_t b = 0; b < BATCHES; b++) {
		pt_barrier();
		if (pt_rank == 0)
			inject_many(b * BATCH, (b + 1) * BATCH);
		while (pt_rank == 1 && arrived < (b + 1) * BATCH) {
			pt_ok(PtlEQPollMany(&eq, 1, 5000, some, ev, 16, &count));
			for (int k = 0; k < count; k++)
				check_next(ev[k].hdr_data, to + ev[k].offset, ev[k].mlength);
		}
	}
	if (pt_rank == 1) {
		pt_true(offers_taken > 0);
		pt_quiet(eq);
	}
}

static void so_does_what_comes_behind_enough(void)
{
	has_enough = true;
	offered_puts_stay_in_order();
}

static int all(const ptl_arrival_t *put)
{
	offers_taken += put->length;
	return 1;
}

static void only_what_asks_for_no_answer_is_offered(void)
{
	static unsigned char from[100], to[100];
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	int count = 0;

	pt_open();
	eq = pt_eq(8);
	if (pt_rank == 1) {
		pt_post(PORTAL, 1,
			pt_md(to, sizeof(to),
			      PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | PTL_MD_INLINE, eq),
			PTL_RETAIN, NULL);
		pt_post(PORTAL, 2,
			pt_md(NULL, 0,
			      PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE |
				      PTL_MD_INLINE,
			      eq),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_rank == 0) {
		ptl_handle_eq_t here = pt_eq(8);

		pt_ok(PtlPut(pt_bind(from, 60, 0, here), PTL_ACK_REQ, pt_id(1), PORTAL, 0, 1, 0,
			     0));
		pt_await(here, PT_ACKED, NULL);
		/* one that would be cut off is not offered, either */
		pt_ok(PtlPutInject(pt_ni, from, 7, PTL_INJECT_NOW, pt_id(1), PORTAL, 0, 2, 0, 0));
	} else {
		pt_ok(PtlEQPollMany(&eq, 1, 5000, all, &ev, 1, &count));
		pt_is(count, 1);
		pt_is(ev.mlength, 60);
		pt_ok(PtlEQPollMany(&eq, 1, 5000, all, &ev, 1, &count));
		pt_is(count, 1);
		pt_is(ev.rlength, 7);
		pt_is(ev.mlength, 0);
		pt_is(offers_taken, 0);
	}
}

/* ---- ends of operations offered -------------------------------------------------------------- */

static unsigned int ends[3]; /* taken, by match bits */
static bool refuse;

static int one_end(const ptl_arrival_t *end)
{
	static const ptl_event_kind_t types[] = { PTL_EVENT_ACK, PTL_EVENT_REPLY_END,
						  PTL_EVENT_REPLY_END };

	pt_true(end->match_bits < 3);
	pt_is(end->type, types[end->match_bits]);
	pt_is(end->initiator.pid, pt_id(1).pid);
	pt_is(end->length, 8);
	pt_true(end->user_ptr == ends && !end->data);
	if (refuse)
		return 0;
	ends[end->match_bits]++;
	return 1;
}

static ptl_handle_md_t ends_out, ends_in;

/* A put, a get and an atomic. */
static void three_operations(void)
{
	pt_ok(PtlPutRegion(ends_out, 0, 8, PTL_ACK_REQ, pt_id(1), PORTAL, 0, 0, 0, 0));
	pt_ok(PtlGetRegion(ends_in, 8, 8, pt_id(1), PORTAL, 0, 1, 8));
	pt_ok(PtlFetchAtomic(ends_in, 16, ends_out, 24, 8, pt_id(1), PORTAL, 0, 2, 16, 0,
			     PTL_ATOMIC_SUM, PTL_ATOMIC_INT64));
}

/* Each has one end: it is taken, or, where it came in another call than this, an event. */
static void await_ends(ptl_handle_eq_t eq, unsigned int each)
{
	static unsigned int events[3];
	ptl_event_t ev[4];
	int count;

	for (int k = 0; k < 3; k++)
		while (ends[k] + events[k] < each) {
			pt_ok(PtlEQPollMany(&eq, 1, 5000, one_end, ev, 4, &count));
			for (int i = 0; i < count; i++) {
				pt_true(ev[i].match_bits < 3);
				pt_is(ev[i].type,
				      ev[i].match_bits ? PTL_EVENT_REPLY_END : PTL_EVENT_ACK);
				events[ev[i].match_bits]++;
			}
		}
	for (int k = 0; k < 3; k++)
		pt_is(ends[k] + events[k], each);
}

static void ends_that_are_taken_have_no_event(void)
{
	static int64_t at_target[3] = { 0, 11, 100 }, mine[4];
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	enum { TIMES = 20 };
	unsigned int taken = 0, times = 0;
	double patience = pt_lived() + pt_patience(20);
	int count;

	pt_open();
	eq = pt_eq(8);
	if (pt_rank == 1) {
		for (unsigned int k = 0; k < 3; k++)
			pt_post(PORTAL, k,
				pt_md(at_target, k == 1 ? 16 : 24,
				      PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
					      PTL_MD_TRUNCATE,
				      PTL_EQ_NONE),
				PTL_RETAIN, NULL);
		pt_post(PORTAL, 3, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	if (pt_rank == 0) {
		ptl_md_t md =
			pt_md(mine, sizeof(mine), PTL_MD_EVENT_START_DISABLE | PTL_MD_INLINE, eq);

		md.user_ptr = ends;
		pt_ok(PtlMDBind(pt_ni, md, PTL_RETAIN, &ends_in));
		md.options |= PTL_MD_EVENT_END_DISABLE; /* sending, that is */
		pt_ok(PtlMDBind(pt_ni, md, PTL_RETAIN, &ends_out));
		mine[3] = 1;
		/* on a busy machine the target may be away each time */
		while (times < TIMES || (!(ends[0] + ends[1] + ends[2]) && pt_lived() < patience)) {
			mine[0] = ++times;
			three_operations();
			await_ends(eq, times);
			pt_is(mine[1], 11);
			pt_is(mine[2], 99 + times);
		}
		/* what is not taken has its event, ... */
		for (int k = 0; k < 3; k++)
			taken += ends[k];
		pt_true(taken > 0);
		refuse = true;
		three_operations();
		await_ends(eq, times + 1);
		for (int k = 0; k < 3; k++)
			taken -= ends[k];
		pt_is(taken, 0);
		/* ... and so has what was cut off */
		refuse = false;
		taken = ends[1];
		pt_ok(PtlGetRegion(ends_in, 8, 16, pt_id(1), PORTAL, 0, 1, 8));
		pt_ok(PtlEQPollMany(&eq, 1, 5000, one_end, &ev, 1, &count));
		pt_is(count, 1);
		pt_is(ev.rlength, 16);
		pt_is(ev.mlength, 8);
		pt_is(ends[1], taken);
		pt_quiet(eq);
		pt_ok(PtlPutInject(pt_ni, NULL, 0, PTL_INJECT_NOW, pt_id(1), PORTAL, 0, 3, 0,
				   times));
	} else {
		/* inside meanwhile: who computes has rank 0 work for it, whose calls then have
		 * the answers at once */
		times = (unsigned int)pt_next(eq, PTL_EVENT_PUT_END).hdr_data;
		pt_is(at_target[0], times);
		pt_is(at_target[2], 100 + times + 1);
	}
}

/* ---- puts that can wait for the target's own calls ------------------------------------------- */

static void a_lazy_put_wakes_who_waits(void)
{
	ptl_handle_eq_t eq;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(8);
	if (pt_rank == 1) {
		pt_post(PORTAL, 1, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN, NULL);
		pt_barrier();
		pt_ok(PtlEQWait(eq, &ev));
		pt_is(ev.hdr_data, 77);
	} else {
		pt_barrier();
		for (int i = 0; i < 1000; i++) /* until the other sleeps, most likely */
			pt_pause();
		pt_ok(PtlPutInject(pt_ni, NULL, 0, PTL_INJECT_LAZY, pt_id(1), PORTAL, 0, 1, 0, 77));
	}
}

static void lazy_puts_go_before_what_comes_after_them(void)
{
	static unsigned char from[100], to[1000];
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(16);
	if (pt_is_target())
		pt_post(PORTAL, 1,
			pt_md(to, sizeof(to), PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	if (pt_is_initiator()) {
		ptl_handle_eq_t here = pt_eq(8);

		for (uint64_t i = 0; i < 9; i++) {
			pt_fill(from, 100, i, 0);
			pt_ok(PtlPutInject(pt_ni, from, 100, PTL_INJECT_LAZY, pt_target(), PORTAL,
					   0, 1, 0, i));
		}
		pt_fill(from, 100, 9, 0);
		pt_ok(PtlPut(pt_bind(from, 100, 0, here), PTL_ACK_REQ, pt_target(), PORTAL, 0, 1, 0,
			     9));
		pt_await(here, PT_ACKED, NULL);
	}
	pt_finish();
	for (uint64_t i = 0; i < 10 && pt_is_target(); i++) {
		pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, i);
		pt_holds(to + i * 100, 100, i, 0);
	}
	pt_code(PtlPutInject(pt_ni, NULL, 0, (ptl_inject_t)7, pt_target(), PORTAL, 0, 1, 0, 0),
		PTL_FAIL);
}

/* A call that sends lazily may leave lazy puts where they are, but not what comes after them. */
static void who_sends_lazily_gets_what_is_not_lazy(void)
{
	enum { ROUNDS = 300, BEFORE = 3 };
	static _Atomic uint64_t to[BEFORE + 1];
	_Atomic uint64_t *seen = pt_word(0);

	setenv("PTL_SHM_BIAS", "off", 1); /* nobody looks again after who leaves */
	pt_open();
	pt_post(PORTAL, 1,
		pt_md(to, sizeof(to), PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE,
		      PTL_EQ_NONE),
		PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		double end = pt_lived() + pt_patience(20);

		if (pt_rank == 1) {
			for (uint64_t k = BEFORE + 1; k-- > 0;)
				pt_ok(PtlPutInject(pt_ni, &i, sizeof(i),
						   k ? PTL_INJECT_LAZY : PTL_INJECT_NOW, pt_id(0),
						   PORTAL, 0, 1, k * sizeof(i), 0));
			while (*seen != i) {
				pt_ok(PtlProgress(pt_ni, 1)); /* so that there is always room */
				pt_truef(pt_lived() < end, "round %d: not seen", (int)i);
			}
			continue;
		}
		for (int k = 0; k < 500 && to[0] != i; k++)
			pt_ok(PtlPutInject(pt_ni, NULL, 0, PTL_INJECT_LAZY, pt_id(1), PORTAL, 0, 1,
					   0, 0));
		pt_until(to[0] == i, 20);
		for (int k = 1; k <= BEFORE; k++)
			pt_is(to[k], i);
		*seen = i;
	}
}

/* Nor does it leave what its sender needs room for. */
static void who_sends_lazily_makes_room(void)
{
	static unsigned char to[MANY * LENGTH], from[LENGTH];
	double end;
	ptl_handle_eq_t eq;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(MANY);
	pt_post(PORTAL, 7, pt_md(to, sizeof(to), PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	pt_barrier();
	end = pt_lived() + pt_patience(30);
	for (uint64_t i = 0; i < MANY; i++) {
		int err;

		pt_fill(from, LENGTH, i, 0);
		while ((err = PtlPutInject(pt_ni, from, LENGTH, PTL_INJECT_LAZY, pt_id(!pt_rank),
					   PORTAL, 0, 7, 0, i)) == PTL_NO_SPACE)
			pt_truef(pt_lived() < end, "no room for number %d", (int)i);
		pt_code(err, PTL_OK);
	}
	for (uint64_t i = 0; i < MANY; i++) {
		ev = pt_next(eq, PTL_EVENT_PUT_END);
		pt_is(ev.hdr_data, i);
		pt_holds(to + i * LENGTH, LENGTH, i, 0);
	}
}

enum { WAKES = 300 };

static _Atomic uint64_t slept; /* waits that are over */

static void *sleeper(void *arg)
{
	ptl_event_t ev;

	for (uint64_t i = 0; i < WAKES; i++) {
		pt_ok(PtlEQWait(*(ptl_handle_eq_t *)arg, &ev));
		pt_is(ev.hdr_data, i);
		slept = i + 1;
	}
	return NULL;
}

/* Nor what another thread sleeps for: were it left, that one would sleep for as long as a sleep
 * lasts at most. */
static void who_sends_lazily_wakes_sleepers(void)
{
	_Atomic uint64_t *ready = pt_word(0);
	pthread_t thread;
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(8);
	pt_post(PORTAL, 1, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
	pt_post(PORTAL, 2, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_ACK_DISABLE, PTL_EQ_NONE),
		PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t i = 0; i < WAKES && pt_rank == 0; i++) {
		pt_until(*ready > i, 60);
		pt_ok(PtlPutInject(pt_ni, NULL, 0, PTL_INJECT_LAZY, pt_id(1), PORTAL, 0, 1, 0, i));
	}
	if (pt_rank == 1) {
		double end = pt_lived() + pt_patience(20);
		uint64_t from = 0;

		pt_is(pthread_create(&thread, NULL, sleeper, &eq), 0);
		for (uint64_t i = 0; slept < WAKES; i++) {
			int err = PtlPutInject(pt_ni, NULL, 0, PTL_INJECT_LAZY, pt_id(0), PORTAL, 0,
					       2, 0, 0);

			pt_true(err == PTL_OK || err == PTL_NO_SPACE);
			if (slept == *ready && *ready < WAKES && i - from > 1000) {
				++*ready; /* the other one sleeps again, most likely */
				from = i;
			}
			pt_truef(pt_lived() < end, "%d wakes in all that time", (int)slept);
		}
		pthread_join(thread, NULL);
	}
	pt_barrier();
}

/* Rank 1 answers gets while it watches a word that rank 0 changes behind them; what comes with
 * an event ends a watch. */
static void who_watches_a_word_is_a_target(void)
{
	enum { GETS = 200 };
	_Atomic uint64_t *word = pt_word(0);
	uint64_t cell = 5, got = 0, never = 0, there = 7;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev = { 0 };
	int count, err;

	pt_open();
	eq = pt_eq(64);
	pt_code(PtlEQPollWatch(&eq, 1, &never, 1, NULL, &ev, 1, &count), PTL_EQ_EMPTY);
	pt_is(count, 0);
	pt_code(PtlEQPollWatch(&eq, 1, &there, 7, NULL, &ev, 1, &count), PTL_EQ_EMPTY);
	if (pt_rank == 1) {
		pt_post(PORTAL, 1,
			pt_md(&cell, sizeof(cell), PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			      PTL_EQ_NONE),
			PTL_RETAIN, NULL);
		pt_post(PORTAL, 2, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN, NULL);
	} else {
		pt_ok(PtlMDBind(pt_ni, pt_md(&got, sizeof(got), PTL_MD_EVENT_START_DISABLE, eq),
				PTL_UNLINK, &md));
	}
	pt_barrier();
	for (int i = 0; i < GETS && pt_rank == 0; i++) {
		got = 0;
		pt_ok(PtlGet(md, pt_id(1), PORTAL, 0, 1, 0));
		pt_ok(PtlEQPoll(&eq, 1, 5000, &ev, &count));
		pt_is(ev.type, PTL_EVENT_REPLY_END);
		pt_is(got, 5);
	}
	if (pt_rank == 0) {
		*word = 1;
		pt_ok(PtlPutInject(pt_ni, NULL, 0, PTL_INJECT_NOW, pt_id(1), PORTAL, 0, 2, 0, 9));
	} else {
		double end = pt_lived() + pt_patience(20);

		while (*word == 0) {
			err = PtlEQPollWatch(&eq, 1, (const uint64_t *)word, 1, NULL, &ev, 1,
					     &count);
			pt_true(err == PTL_EQ_EMPTY || (err == PTL_OK && *word));
			pt_truef(pt_lived() < end, "the word never came");
			if (err == PTL_OK)
				break;
		}
		while (*word == 0 || ev.hdr_data != 9) {
			err = PtlEQPollWatch(&eq, 1, &never, 1, NULL, &ev, 1, &count);
			pt_true(err == PTL_EQ_EMPTY || err == PTL_OK);
			pt_truef(pt_lived() < end, "the put never came");
		}
		pt_is(count, 1);
	}
	pt_barrier();
}

static const struct pt_test tests[] = {
	PT_CASE(offered_puts_stay_in_order, 2),
	PT_CASE(so_does_what_comes_behind_enough, 2),
	PT_CASE(only_what_asks_for_no_answer_is_offered, 2),
	PT_CASE(ends_that_are_taken_have_no_event, 2),
	PT_CASE(a_lazy_put_wakes_who_waits, 2),
	PT_MODES(lazy_puts_go_before_what_comes_after_them),
	PT_CASE(who_sends_lazily_gets_what_is_not_lazy, 2),
	PT_CASE(who_sends_lazily_makes_room, 2),
	PT_CASE(who_sends_lazily_wakes_sleepers, 2),
	PT_CASE(who_watches_a_word_is_a_target, 2),
	PT_MODES(many_events_are_taken_at_once),
	PT_MODES(injected_bytes_are_taken_at_once),
	PT_MODES(a_wrong_injection_is_an_error),
	PT_MODES(long_data_arrive_in_the_pieces_that_are_advised),
	PT_MODES(pieces_are_not_short),
	PT_MODES(unlink_alone_tells_how_a_put_ended),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
