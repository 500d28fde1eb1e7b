/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Event queues: get, wait, poll, overflow, limits, and events of several queues and waiters (report
 * section 3.11). Event handlers have a file of their own.
 */
#include "ptest.h"
#include <portals3_ext.h>

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PORTAL = 23 };

/* Each bang() makes exactly one event, PUT_END with that hdr_data, in the queue of those bits. */
static ptl_handle_md_t gun;

static void aim(ptl_match_bits_t bits, ptl_handle_eq_t eq)
{
	pt_post(PORTAL, bits, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
		PTL_RETAIN, NULL);
}

static void bang(ptl_match_bits_t bits, uint64_t number)
{
	pt_ok(PtlPut(gun, PTL_NO_ACK_REQ, pt_target(), PORTAL, 0, bits, 0, number));
}

static ptl_handle_eq_t open_with_queue(ptl_size_t count)
{
	ptl_handle_eq_t eq = PTL_EQ_NONE;

	pt_open();
	gun = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	if (pt_is_target()) {
		eq = pt_eq(count);
		aim(0, eq);
	}
	pt_barrier();
	return eq;
}

static void an_empty_queue_gives_nothing(void)
{
	ptl_handle_eq_t eq;
	ptl_event_t ev, before;

	eq = open_with_queue(4);
	memset(&ev, 0x3c, sizeof(ev));
	before = ev;
	pt_code(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	pt_is(memcmp(&ev, &before, sizeof(ev)), 0);
	bang(0, 1);
	pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, 1);
	pt_code(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	pt_code(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
}

static void a_queue_holds_as_many_events_as_asked_for(void)
{
	static const ptl_size_t counts[] = { 1, 2, 3, 7, 8, 9, 100, 1000, 1025 };
	ptl_handle_eq_t eq;
	ptl_event_t ev;

	pt_open();
	gun = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		eq = pt_eq(counts[i]);
		aim(i, eq);
		for (uint64_t k = 0; k < counts[i]; k++)
			bang(i, k);
		for (uint64_t k = 0; k < counts[i]; k++) {
			ev = pt_next(eq, PTL_EVENT_PUT_END);
			pt_is(ev.hdr_data, k);
		}
		pt_quiet(eq);
	}
}

static void events_come_in_order_with_rising_sequence(void)
{
	ptl_handle_eq_t eq = open_with_queue(64);
	ptl_seq_t last = 0;
	ptl_event_t ev;

	for (uint64_t round = 0; round < 50; round++) {
		for (uint64_t i = 0; i < 60 && pt_is_initiator(); i++)
			bang(0, round * 60 + i);
		for (uint64_t i = 0; i < 60 && pt_is_target(); i++) {
			ev = pt_next(eq, PTL_EVENT_PUT_END);
			pt_is(ev.hdr_data, round * 60 + i);
			pt_true((round == 0 && i == 0) || (int32_t)(ev.sequence - last) > 0);
			last = ev.sequence;
		}
		pt_barrier();
	}
}

/* An overflow leaves one DROPPED with the first survivor, then the rest, newest last. */
static uint64_t drain_after_overflow(ptl_handle_eq_t eq, uint64_t newest)
{
	uint64_t got = 1, number;
	ptl_event_t ev;

	pt_code(PtlEQGet(eq, &ev), PTL_EQ_DROPPED);
	pt_is(ev.type, PTL_EVENT_PUT_END);
	for (number = ev.hdr_data; PtlEQGet(eq, &ev) == PTL_OK; got++) {
		pt_is(ev.hdr_data, number + 1);
		number = ev.hdr_data;
	}
	pt_is(number, newest);
	pt_code(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	return got;
}

static void overflow_is_told_once_per_gap(void)
{
	ptl_handle_eq_t eq, fence;
	uint64_t n = 0;

	pt_open();
	gun = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	eq = pt_eq(8);
	fence = pt_eq(8);
	aim(0, eq);
	aim(1, fence);
	for (int gap = 0; gap < 20; gap++) {
		for (int i = 0; i < 100 + gap * 7; i++)
			bang(0, n++);
		bang(1, 0);
		pt_next(fence, PTL_EVENT_PUT_END);
		pt_true(drain_after_overflow(eq, n - 1) >= 1);
		bang(0, n++);
		pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, n - 1);
	}
	pt_is(pt_status(PTL_SR_DROP_COUNT), 0);
}

static void overflow_is_told_by_wait_and_poll_too(void)
{
	ptl_handle_eq_t eq, fence;
	ptl_event_t ev;
	int which = -1;

	pt_open();
	gun = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	eq = pt_eq(4);
	fence = pt_eq(4);
	aim(0, eq);
	aim(1, fence);
	for (int how = 0; how < 2; how++) {
		for (uint64_t i = 0; i < 1000; i++)
			bang(0, i);
		bang(1, 0);
		pt_next(fence, PTL_EVENT_PUT_END);
		if (how == 0)
			pt_code(PtlEQWait(eq, &ev), PTL_EQ_DROPPED);
		else
			pt_code(PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &ev, &which), PTL_EQ_DROPPED);
		pt_is(ev.type, PTL_EVENT_PUT_END);
		while (ev.hdr_data != 999)
			pt_ok(PtlEQGet(eq, &ev));
		pt_quiet(eq);
	}
	pt_is(which, 0);
}

/* Overwritten while being read by the other side: still numbers rise and gaps are told. */
static void overflow_under_fire(void)
{
	enum { SHOTS = 200000 };
	ptl_handle_eq_t eq = open_with_queue(16);
	uint64_t last = 0, got = 0, gaps = 0;
	ptl_event_t ev;
	int rc;

	if (pt_is_initiator()) {
		for (uint64_t i = 1; i <= SHOTS; i++)
			bang(0, i);
	} else {
		while (last < SHOTS) {
			rc = PtlEQWait(eq, &ev);
			pt_true(rc == PTL_OK || rc == PTL_EQ_DROPPED);
			pt_is(ev.type, PTL_EVENT_PUT_END);
			pt_true(ev.hdr_data > last);
			pt_truef((rc == PTL_EQ_DROPPED) == (ev.hdr_data != last + 1),
				 "%s, but event %llu follows %llu", pt_code_name(rc),
				 (unsigned long long)ev.hdr_data, (unsigned long long)last);
			got++;
			gaps += rc == PTL_EQ_DROPPED;
			last = ev.hdr_data;
		}
		pt_true(got <= SHOTS);
		pt_true(gaps <= got);
		pt_is(pt_status(PTL_SR_DROP_COUNT), 0);
	}
}

/* ---- allocation ------------------------------------------------------------------------------ */

static void queues_of_odd_sizes(void)
{
	ptl_handle_eq_t eq;
	int rc;

	pt_open();
	rc = PtlEQAlloc(pt_ni, 0, PTL_EQ_HANDLER_NONE, &eq);
	pt_true(rc != PTL_OK || eq == PTL_EQ_NONE || PtlEQFree(eq) == PTL_OK);
	pt_code(PtlEQAlloc(pt_ni, ~(ptl_size_t)0, PTL_EQ_HANDLER_NONE, &eq), PTL_NO_SPACE);
	pt_code(PtlEQAlloc(pt_ni, ((ptl_size_t)1 << 63) + 1, PTL_EQ_HANDLER_NONE, &eq),
		PTL_NO_SPACE);
	pt_code(PtlEQAlloc(pt_ni, (ptl_size_t)1 << 56, PTL_EQ_HANDLER_NONE, &eq), PTL_NO_SPACE);
	eq = pt_eq(1);
	pt_ok(PtlEQFree(eq));
}

static void a_queue_in_use_is_not_freed(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t ev;

	pt_open();
	eq = pt_eq(4);
	md = pt_bind(NULL, 0, 0, eq);
	pt_code(PtlEQFree(eq), PTL_EQ_IN_USE);
	pt_quiet(eq);
	pt_ok(PtlMDUnlink(md));
	pt_ok(PtlEQFree(eq));
	pt_code(PtlEQFree(eq), PTL_EQ_INVALID);
	pt_code(PtlEQGet(eq, &ev), PTL_EQ_INVALID);
}

static void freed_queues_leave_room_for_new_ones(void)
{
	enum { LIVE = 4000, ROUNDS = 20000 };
	static ptl_handle_eq_t eq[LIVE];

	pt_open();
	for (int i = 0; i < LIVE; i++)
		eq[i] = pt_eq(2);
	for (int i = 0; i < ROUNDS; i++) {
		pt_ok(PtlEQFree(eq[i % LIVE]));
		eq[i % LIVE] = pt_eq((ptl_size_t)(i % 70 + 1));
	}
	for (int i = 0; i < LIVE; i++)
		pt_ok(PtlEQFree(eq[i]));
	pt_is(pt_status(PTL_SR_EQS_CUR), 0);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void wait_blocks_until_an_event_comes(void)
{
	ptl_handle_eq_t eq = open_with_queue(8);
	double t;

	if (pt_is_initiator()) {
		t = pt_now();
		pt_until(*pt_word(0) == 1, 20);
		while (pt_now() < t + 0.3)
			pt_pause();
		*pt_word(1) = 1;
		bang(0, 7);
		return;
	}
	*pt_word(0) = 1;
	pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, 7);
	pt_is(*pt_word(1), 1);
}

struct waiter {
	ptl_handle_eq_t eq;
	pthread_t thread;
	_Atomic uint64_t *hits; /* by hdr_data */
	_Atomic int *returned;
	uint64_t stop;
};

/* Takes events until the one that says stop; each waiter gets a stop of its own. */
static void *wait_for_events(void *arg)
{
	struct waiter *w = arg;
	ptl_event_t ev;

	for (;;) {
		pt_ok(PtlEQWait(w->eq, &ev));
		pt_is(ev.type, PTL_EVENT_PUT_END);
		atomic_fetch_add(&w->hits[ev.hdr_data], 1);
		atomic_fetch_add(w->returned, 1);
		if (ev.hdr_data >= w->stop)
			return NULL;
	}
}

static void *put_later(void *arg)
{
	ptl_process_id_t me;

	usleep(20000);
	pt_ok(PtlGetId(pt_ni, &me));
	pt_ok(PtlPutInject(pt_ni, NULL, 0, PTL_INJECT_NOW, me, 4, 0, 7, 0, (uintptr_t)arg));
	return NULL;
}

/* Of the reference implementation: a wait in seconds. */
static void a_wait_can_have_an_end(void)
{
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_event_t ev;
	pthread_t thread;

	pt_open();
	eq = pt_eq(8);
	pt_code(PtlEQWait_timeout(eq, &ev, 1), PTL_EQ_EMPTY);
	pt_ok(PtlMEAttach(pt_ni, 4, pt_any, 7, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	pt_ok(PtlMDAttach(me, pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq),
			  PTL_RETAIN, &(ptl_handle_md_t){ 0 }));
	for (int timeout = -1; timeout < 3; timeout++) {
		int seconds = timeout == 2 ? INT_MAX : timeout * 20;

		pthread_create(&thread, NULL, put_later, (void *)(uintptr_t)(timeout + 5));
		pt_ok(PtlEQWait_timeout(eq, &ev, seconds));
		pt_is(ev.hdr_data, timeout + 5);
		pthread_join(thread, NULL);
	}
}

static void each_event_wakes_exactly_one_waiter(void)
{
	enum { WAITERS = 6, EVENTS = 3000 };
	static _Atomic uint64_t hits[EVENTS + WAITERS];
	static _Atomic int returned;
	struct waiter w[WAITERS];
	ptl_handle_eq_t eq = open_with_queue(EVENTS * 2);

	for (int i = 0; i < WAITERS && pt_is_target(); i++) {
		w[i] = (struct waiter){ eq, 0, hits, &returned, EVENTS };
		pt_is(pthread_create(&w[i].thread, NULL, wait_for_events, &w[i]), 0);
	}
	for (int i = 0; i < EVENTS && pt_is_initiator(); i++)
		bang(0, (uint64_t)i);
	for (int i = 0; i < WAITERS && pt_is_initiator(); i++)
		bang(0, (uint64_t)(EVENTS + i));
	for (int i = 0; i < WAITERS && pt_is_target(); i++)
		pthread_join(w[i].thread, NULL);
	for (int i = 0; i < EVENTS + WAITERS && pt_is_target(); i++)
		pt_is(hits[i], 1);
	if (pt_is_target())
		pt_quiet(eq);
}

/* The others stay asleep: after k events exactly k calls have returned. */
static void one_event_ends_one_wait(void)
{
	enum { WAITERS = 4 };
	static _Atomic uint64_t hits[WAITERS];
	static _Atomic int returned;
	struct waiter w[WAITERS];
	ptl_handle_eq_t eq = open_with_queue(64);

	for (int i = 0; i < WAITERS && pt_is_target(); i++) {
		w[i] = (struct waiter){ eq, 0, hits, &returned, 0 };
		pt_is(pthread_create(&w[i].thread, NULL, wait_for_events, &w[i]), 0);
	}
	for (int i = 0; i < WAITERS; i++) {
		if (pt_is_initiator())
			bang(0, (uint64_t)i);
		if (pt_is_target()) {
			pt_until(returned == i + 1, 20);
			pt_is(hits[i], 1);
		}
		pt_barrier();
	}
	for (int i = 0; i < WAITERS && pt_is_target(); i++)
		pthread_join(w[i].thread, NULL);
}

/* ---- poll ------------------------------------------------------------------------------------ */

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void poll_times_out_after_the_time_given(void)
{
	static const ptl_time_t ms[] = { 0, 1, 20, 300 };
	ptl_handle_eq_t eq[3];
	ptl_event_t ev;
	int which;

	pt_open();
	for (int i = 0; i < 3; i++)
		eq[i] = pt_eq(4);
	for (int i = 0; i < 4; i++) {
		double t = pt_now(), lived = pt_lived(), cpu = cpu_seconds();

		pt_code(PtlEQPoll(eq, 3, ms[i], &ev, &which), PTL_EQ_EMPTY);
		lived = pt_lived() - lived;
		t = pt_now() - t;
		pt_truef(t >= ms[i] * 0.001 - 0.0005, "%u ms were %g s", ms[i], t);
		pt_truef(lived < ms[i] * 0.001 + pt_patience(1), "%u ms were %g s", ms[i], lived);
		cpu = cpu_seconds() - cpu;
		pt_truef(ms[i] < 300 || cpu < 0.15 * pt_slow(), "300 ms of waiting used %g s", cpu);
	}
}

static void poll_tells_which_queue_had_the_event(void)
{
	enum { QUEUES = 50 };
	ptl_handle_eq_t eq[QUEUES];
	ptl_event_t ev;
	int which;

	pt_open();
	gun = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	for (int i = 0; i < QUEUES; i++) {
		eq[i] = pt_eq(4);
		aim((ptl_match_bits_t)i, eq[i]);
	}
	for (int k = 0; k < 4 * QUEUES; k++) {
		int i = (k * 37) % QUEUES;

		bang((ptl_match_bits_t)i, (uint64_t)k);
		which = -1;
		pt_ok(PtlEQPoll(eq, QUEUES, k & 1 ? PTL_TIME_FOREVER : 10000, &ev, &which));
		pt_is(which, i);
		pt_is(ev.hdr_data, k);
	}
	pt_code(PtlEQPoll(eq, QUEUES, 0, &ev, &which), PTL_EQ_EMPTY);
}

static void poll_starves_no_queue(void)
{
	enum { QUEUES = 5, TURNS = 500 };
	ptl_handle_eq_t eq[QUEUES];
	int served[QUEUES] = { 0 };
	ptl_event_t ev;
	int which;

	pt_open();
	gun = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	for (int i = 0; i < QUEUES; i++) {
		eq[i] = pt_eq(16);
		aim((ptl_match_bits_t)i, eq[i]);
		for (int k = 0; k < 3; k++)
			bang((ptl_match_bits_t)i, 0);
	}
	for (int k = 0; k < TURNS; k++) { /* what was taken is put back: no queue runs dry */
		pt_ok(PtlEQPoll(eq, QUEUES, PTL_TIME_FOREVER, &ev, &which));
		served[which]++;
		bang((ptl_match_bits_t)which, 0);
	}
	for (int i = 0; i < QUEUES; i++)
		pt_truef(served[i] >= TURNS / QUEUES / 4, "queue %d was served %d times of %d", i,
			 served[i], TURNS);
}

static void poll_is_woken_by_any_of_its_queues(void)
{
	enum { QUEUES = 8 };
	ptl_handle_eq_t eq[QUEUES];
	ptl_event_t ev;
	int which;

	pt_open();
	gun = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	for (int i = 0; i < QUEUES; i++) {
		eq[i] = pt_eq(4);
		aim((ptl_match_bits_t)i, eq[i]);
	}
	pt_barrier();
	for (int k = 0; k < 200; k++) {
		int i = (k * 5) % QUEUES;

		if (pt_is_initiator())
			bang((ptl_match_bits_t)i, (uint64_t)k);
		if (pt_is_target()) {
			pt_ok(PtlEQPoll(eq, QUEUES, PTL_TIME_FOREVER, &ev, &which));
			pt_is(which, i);
			pt_is(ev.hdr_data, k);
		}
		pt_barrier();
	}
}

/* A wait on one queue is not ended, nor its event taken, by what another thread does elsewhere. */
static void waiters_of_different_queues_do_not_mix(void)
{
	enum { WAITERS = 4, EVENTS = 2000 };
	static _Atomic uint64_t hits[WAITERS][EVENTS + 1];
	static _Atomic int returned;
	struct waiter w[WAITERS];

	pt_open();
	gun = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
	for (int i = 0; i < WAITERS && pt_is_target(); i++) {
		w[i] = (struct waiter){ pt_eq(EVENTS * 2), 0, hits[i], &returned, EVENTS };
		aim((ptl_match_bits_t)i, w[i].eq);
		pt_is(pthread_create(&w[i].thread, NULL, wait_for_events, &w[i]), 0);
	}
	pt_barrier();
	for (int k = 0; k <= EVENTS && pt_is_initiator(); k++)
		for (int i = 0; i < WAITERS; i++)
			bang((ptl_match_bits_t)i, (uint64_t)k);
	for (int i = 0; i < WAITERS && pt_is_target(); i++)
		pthread_join(w[i].thread, NULL);
	for (int i = 0; i < WAITERS && pt_is_target(); i++)
		for (int k = 0; k <= EVENTS; k++)
			pt_is(hits[i][k], 1);
}

static void wrong_poll_arguments_are_refused(void)
{
	ptl_handle_eq_t eq[3], foreign;
	ptl_handle_ni_t other;
	ptl_event_t ev;
	int which, n;

	pt_open();
	eq[0] = pt_eq(4);
	eq[1] = pt_eq(4);
	eq[2] = pt_eq(4);
	pt_code(PtlEQPoll(eq, 0, 0, &ev, &which), PTL_EQ_INVALID);
	pt_code(PtlEQPoll(eq, -1, 0, &ev, &which), PTL_EQ_INVALID);
	pt_code(PtlEQPoll(eq, INT_MIN, 0, &ev, &which), PTL_EQ_INVALID);
	pt_code(PtlEQPoll(NULL, 1, 0, &ev, &which), PTL_SEGV);
	pt_code(PtlEQPoll(eq, 3, 0, NULL, &which), PTL_SEGV);
	pt_code(PtlEQPoll(eq, 3, 0, &ev, NULL), PTL_SEGV);
	pt_ok(PtlEQFree(eq[1]));
	pt_code(PtlEQPoll(eq, 3, 0, &ev, &which), PTL_EQ_INVALID);
	eq[1] = PTL_EQ_NONE;
	pt_code(PtlEQPoll(eq, 3, 0, &ev, &which), PTL_EQ_INVALID);
	pt_ok(PtlInit(&n));
	if (n < 2)
		return;
	pt_ok(PtlNIInit(1, PTL_PID_ANY, NULL, NULL, &other));
	pt_ok(PtlEQAlloc(other, 4, PTL_EQ_HANDLER_NONE, &foreign));
	eq[1] = foreign;
	pt_code(PtlEQPoll(eq, 3, 0, &ev, &which), PTL_EQ_INVALID);
	pt_code(PtlEQPoll(&foreign, 1, 0, &ev, &which), PTL_EQ_EMPTY);
	pt_ok(PtlNIFini(other));
}

static const struct pt_test tests[] = {
	PT_CASE(an_empty_queue_gives_nothing, 1),
	PT_CASE(a_queue_holds_as_many_events_as_asked_for, 1),
	PT_MODES(events_come_in_order_with_rising_sequence),
	PT_CASE(overflow_is_told_once_per_gap, 1),
	PT_CASE(overflow_is_told_by_wait_and_poll_too, 1),
	PT_CASE(overflow_under_fire, 2),
	PT_CASE(queues_of_odd_sizes, 1),
	PT_CASE(a_queue_in_use_is_not_freed, 1),
	PT_CASE(freed_queues_leave_room_for_new_ones, 1),
	PT_CASE(wait_blocks_until_an_event_comes, 2),
	PT_CASE(each_event_wakes_exactly_one_waiter, 1),
	{ "each_event_wakes_exactly_one_remote_waiter", each_event_wakes_exactly_one_waiter, 2, 0 },
	PT_CASE(one_event_ends_one_wait, 2),
	PT_CASE(poll_times_out_after_the_time_given, 1),
	PT_CASE(poll_tells_which_queue_had_the_event, 1),
	PT_CASE(poll_starves_no_queue, 1),
	PT_CASE(a_wait_can_have_an_end, 1),
	PT_CASE(poll_is_woken_by_any_of_its_queues, 2),
	PT_CASE(waiters_of_different_queues_do_not_mix, 2),
	PT_CASE(wrong_poll_arguments_are_refused, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
