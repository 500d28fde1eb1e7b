/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The lock that is biased to the thread that uses it (portals/engine/lock.h). A message that is
 * pushed at the very moment its target leaves the library for good is delivered although neither
 * side calls it again; and the lock passes from thread to thread, and to peers and back, without
 * losing an event.
 */
#include "ptest.h"

#include <pthread.h>
#include <stdio.h>

enum { PORTAL = 9, ROUNDS = 4000, READY = 0, TAKEN = 1, SLOW = 2, CALLS = 40, THREADS = 6 };

static void spin(uint64_t turns)
{
	for (volatile uint64_t n = turns; n; n--)
		;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void leave_again_and_again(void)
{
	_Atomic uint64_t word = 0;
	ptl_handle_eq_t eq = pt_eq(ROUNDS), none = pt_eq(8);
	uint64_t seed = 1;
	ptl_event_t ev;

	pt_post(PORTAL, 1, pt_md(&word, sizeof(word), PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq),
		PTL_RETAIN, NULL);
	pt_barrier();
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < CALLS; i++) /* enough to be given the lock */
			pt_code(PtlEQGet(none, &ev), PTL_EQ_EMPTY);
		*pt_word(READY) = round;
		for (uint64_t i = pt_random(&seed) % 64; i; i--)
			pt_code(PtlEQGet(none, &ev), PTL_EQ_EMPTY);
		/* outside from here on */
		pt_until(word == round, 2);
		*pt_word(TAKEN) = round;
	}
	pt_barrier();
}

static void push_at_random(void)
{
	uint64_t number = 0, seed = 2;
	ptl_handle_md_t md = pt_bind(&number, sizeof(number), 0, PTL_EQ_NONE);
	double start, took, worst = 0;
	unsigned int slow = 0;

	pt_barrier();
	while (number < ROUNDS) {
		number++;
		pt_until(*pt_word(READY) == number, 10);
		spin(pt_random(&seed) % 3000);
		start = pt_now();
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_id(1), PORTAL, 0, 1, 0, 0));
		/* outside from here on */
		pt_until(*pt_word(TAKEN) == number, 4);
		took = pt_now() - start;
		worst = took > worst ? took : worst;
		slow += took > 0.001;
	}
	fprintf(stderr, "# %d pushes: %u took more than 1 ms, the slowest %.1f ms\n", ROUNDS, slow,
		worst * 1e3);
	pt_barrier();
}

static void a_push_as_the_target_leaves_is_delivered(void)
{
	pt_open();
	if (pt_rank == 0)
		push_at_random();
	else
		leave_again_and_again();
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct {
	uint64_t bytes;
	ptl_handle_md_t md;
	ptl_handle_eq_t eq[THREADS];
	_Atomic uint64_t sent;
} t;

/* Messages to the other process and to ourselves, in bursts long and short: the lock changes
 * hands now and then. */
static void *work(void *arg)
{
	uint64_t which = (uint64_t)(uintptr_t)arg, seed = which + 1;
	ptl_event_t ev;

	for (int burst = 0; burst < 60; burst++) {
		uint64_t n = pt_random(&seed) % 2 ? 3 : 300;

		for (uint64_t i = 0; i < n; i++) {
			pt_ok(PtlPut(t.md, PTL_NO_ACK_REQ, pt_id(pt_rank), PORTAL, 0, which, 0, i));
			pt_ok(PtlEQWait(t.eq[which], &ev));
			pt_is(ev.type, PTL_EVENT_PUT_END);
			pt_is(ev.hdr_data, i);
			pt_ok(PtlPut(t.md, PTL_NO_ACK_REQ, pt_id(!pt_rank), PORTAL, 0, THREADS, 0,
				     0));
		}
		t.sent += 2 * n;
		spin(pt_random(&seed) % 20000);
	}
	return NULL;
}

static void the_lock_passes_between_threads_and_peers(void)
{
	unsigned int options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
	pthread_t thread[THREADS];
	ptl_sr_value_t taken, before;

	pt_open();
	t.md = pt_bind(&t.bytes, sizeof(t.bytes), 0, PTL_EQ_NONE);
	for (uint64_t i = 0; i <= THREADS; i++) {
		if (i < THREADS)
			t.eq[i] = pt_eq(64);
		pt_post(PORTAL, i,
			pt_md(&t.bytes, sizeof(t.bytes), options,
			      i < THREADS ? t.eq[i] : PTL_EQ_NONE),
			PTL_RETAIN, NULL);
	}
	pt_barrier();
	pt_ok(PtlNIStatus(pt_ni, PTL_SR_RECV_COUNT, &before));
	pt_barrier();
	for (uint64_t i = 0; i < THREADS; i++)
		pt_is(pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pt_barrier();
	/* The other process sends us as much as we do, its threads use the same seeds. A message
	 * that its ring had no room for is on its way for a while. */
	pt_until((pt_ok(PtlNIStatus(pt_ni, PTL_SR_RECV_COUNT, &taken)), taken - before >= t.sent),
		 20);
	pt_is(taken - before, t.sent);
	pt_barrier();
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_LONG(a_push_as_the_target_leaves_is_delivered, 2, 120),
		PT_LONG(the_lock_passes_between_threads_and_peers, 2, 120),
	};

	return PT_MAIN(argc, argv, tests);
}
