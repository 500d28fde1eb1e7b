/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How requests end and are found: test, wait, any of them, peek, cancel, forget, timeouts, wakeup,
 * threads, context ids, the unexpected handler.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mx_check.h"

static unsigned char out[1 << 20], in[1 << 20];

/* ---- one process acts, the other waits ------------------------------------------------------- */

static void status_is_untouched_until_the_end(void)
{
	mx_request_t r, copy;
	mx_status_t st;

	memset(&st, 0x55, sizeof(st));
	if (mxc_rank) {
		r = mxc_irecv(in, 4, 1, MX_MATCH_MASK_NONE);
		mxc_true(!mxc_test(&r, &st));
		mxc_is(st.msg_length, 0x55555555);
		mxc_true(r != NULL);
		mxc_barrier();
		copy = r;
		mxc_until(mxc_ep, mxc_test(&r, &st));
		mxc_true(r == NULL);
		mxc_is(st.msg_length, 4);
		mxc_is((uintptr_t)st.context, 1);
		mxc_is(mx_test(mxc_ep, &copy, &st, &(uint32_t){ 0 }), MX_BAD_REQUEST);
	} else {
		mxc_barrier();
		mxc_wait(mxc_isend(out, 4, mxc_peer, 1));
	}
}

static void any_finds_the_oldest_that_fits(void)
{
	mx_status_t st;
	uint32_t result = 0;

	if (!mxc_rank) {
		for (unsigned int i = 0; i < 6; i++)
			mxc_ok(mx_isend(mxc_ep, NULL, 0, mxc_peer, i, NULL, NULL));
		mxc_ok(mx_test_any(mxc_ep, 0, 0, &st, &result)); /* they were forgotten */
		mxc_is(result, 0);
		return;
	}
	for (unsigned int i = 0; i < 6; i++) {
		mx_request_t r;

		mxc_ok(mx_irecv(mxc_ep, NULL, 0, i, MX_MATCH_MASK_NONE, (void *)(uintptr_t)(i + 10),
				&r));
	}
	mxc_ok(mx_wait_any(mxc_ep, 20000, 3, MX_MATCH_MASK_NONE, &st, &result));
	mxc_is(result, 1);
	mxc_is((uintptr_t)st.context, 13);
	for (unsigned int i = 0; i < 5; i++) {
		static const unsigned int order[] = { 0, 1, 2, 4, 5 };

		mxc_ok(mx_wait_any(mxc_ep, 20000, 0, 0, &st, &result));
		mxc_is(result, 1);
		mxc_is(st.match_info, order[i]);
	}
	mxc_ok(mx_test_any(mxc_ep, 0, 0, &st, &result));
	mxc_is(result, 0);
}

static void peek_shows_what_a_test_then_gets(void)
{
	mx_request_t r, shown = NULL;
	mx_status_t st;
	uint32_t result = 0;
	void *context;

	if (!mxc_rank) {
		mxc_barrier();
		mxc_wait(mxc_isend(out, 8, mxc_peer, 2));
		return;
	}
	r = mxc_irecv(in, 8, 2, MX_MATCH_MASK_NONE);
	mxc_ok(mx_ipeek(mxc_ep, &shown, &result));
	mxc_is(result, 0);
	mxc_barrier();
	mxc_ok(mx_peek(mxc_ep, 20000, &shown, &result));
	mxc_is(result, 1);
	mxc_true(shown == r);
	mxc_ok(mx_context(&shown, &context));
	mxc_is((uintptr_t)context, 2);
	mxc_true(mxc_test(&shown, &st));
	mxc_is(mx_test(mxc_ep, &r, &st, &result), MX_BAD_REQUEST);
}

static void receives_and_connects_can_be_cancelled(void)
{
	mx_request_t r, s;
	mx_segment_t seg = { in, 100000 };
	uint32_t result = 9;

	if (!mxc_rank)
		return;
	for (unsigned int i = 0; i < 3; i++) {
		seg.segment_length = i == 1 ? 100000 : 10; /* in the library, in Portals */
		mxc_ok(mx_irecv(mxc_ep, &seg, 1, 3, MX_MATCH_MASK_NONE, NULL, &r));
		mxc_ok(mx_cancel(mxc_ep, &r, &result));
		mxc_is(result, 1);
		mxc_true(r == NULL);
	}
	s = mxc_isend(out, 10, mxc_self, 3);
	mxc_is(mx_cancel(mxc_ep, &s, &result), MX_CANCEL_NOT_SUPPORTED);
	mxc_wait(s);
	mxc_is(mxc_wait(mxc_irecv(in, 10, 3, MX_MATCH_MASK_NONE)).xfer_length, 10);
	/* a receive that is matched goes on */
	r = mxc_irecv(in, 100000, 4, MX_MATCH_MASK_NONE);
	s = mxc_isend(out, 100000, mxc_self, 4);
	mxc_wait(s);
	mxc_ok(mx_cancel(mxc_ep, &r, &result));
	mxc_is(result, 0);
	mxc_is(mxc_wait(r).xfer_length, 100000);
	/* nobody answers there */
	mxc_ok(mx_iconnect(mxc_ep, (mxc_nic & ~UINT64_C(0xff)) | 0xfe, 3, 1, 7, NULL, &r));
	mxc_ok(mx_cancel(mxc_ep, &r, &result));
	if (!result)
		mxc_wait(r);
}

static void cancel_races_with_arrival(void)
{
	for (unsigned int i = 0; i < 300; i++) {
		uint32_t length = i % 2 ? 100 : 40000, result = 0;

		if (!mxc_rank) {
			mxc_barrier();
			mxc_wait(mxc_isend(out, length, mxc_peer, i));
		} else {
			mx_request_t r = mxc_irecv(in, length, i, MX_MATCH_MASK_NONE);

			mxc_barrier();
			mxc_ok(mx_cancel(mxc_ep, &r, &result));
			if (result)
				r = mxc_irecv(in, length, i, MX_MATCH_MASK_NONE);
			mxc_is(mxc_wait(r).xfer_length, length);
		}
	}
}

static void forgotten_requests_end_silently(void)
{
	mx_request_t r, before;
	mx_status_t st;
	uint32_t result;

	if (!mxc_rank) {
		r = mxc_isend(out, 100000, mxc_peer, 8);
		mxc_ok(mx_forget(mxc_ep, &r));
		mxc_true(r == NULL);
		r = mxc_isend(out, 10, mxc_peer, 9); /* complete already */
		mxc_ok(mx_forget(mxc_ep, &r));
		mxc_ok(mx_test_any(mxc_ep, 0, 0, &st, &result));
		mxc_is(result, 0);
		mxc_barrier();
	} else {
		r = before = mxc_irecv(in, 100000, 8, MX_MATCH_MASK_NONE);
		mxc_ok(mx_forget(mxc_ep, &r));
		mxc_is(mx_test(mxc_ep, &before, &st, &result), MX_BAD_REQUEST);
		mxc_is(mxc_wait(mxc_irecv(in, 10, 9, MX_MATCH_MASK_NONE)).xfer_length, 10);
		mxc_ok(mx_test_any(mxc_ep, 0, 0, &st, &result));
		mxc_is(result, 0);
		mxc_barrier();
	}
}

static void buffered_tells_short_from_long(void)
{
	mx_request_t s, r;
	uint32_t result = 9;

	if (mxc_rank) {
		mxc_barrier();
		mxc_wait(mxc_irecv(in, 100000, 1, MX_MATCH_MASK_NONE));
		mxc_wait(mxc_irecv(in, 100000, 2, MX_MATCH_MASK_NONE));
		return;
	}
	s = mxc_isend(out, 10, mxc_peer, 1);
	r = mxc_isend(out, 100000, mxc_peer, 2);
	mxc_ok(mx_ibuffered(mxc_ep, &s, &result));
	mxc_is(result, 1);
	mxc_ok(mx_ibuffered(mxc_ep, &r, &result));
	mxc_is(result, 0);
	mxc_barrier();
	mxc_wait(s);
	mxc_wait(r);
	r = mxc_irecv(in, 1, 3, MX_MATCH_MASK_NONE);
	mxc_is(mx_ibuffered(mxc_ep, &r, &result), MX_BAD_REQUEST);
	mxc_ok(mx_cancel(mxc_ep, &r, &result));
}

static void timeouts_come_in_time(void)
{
	mx_request_t r = mxc_irecv(in, 1, 99, MX_MATCH_MASK_NONE);
	mx_status_t st;
	uint32_t result = 9;
	double start = mxc_now(), took;

	mxc_ok(mx_wait(mxc_ep, &r, 200, &st, &result));
	took = mxc_now() - start;
	mxc_is(result, 0);
	mxc_true(took >= 0.198 && took < 10);
	mxc_ok(mx_set_request_timeout(mxc_ep, r, 100));
	st = mxc_wait(r);
	mxc_is(st.code, MX_STATUS_TIMEOUT);
	mxc_true(mxc_now() - start >= 0.29);
	mxc_ok(mx_set_request_timeout(mxc_ep, NULL, 50));
	mxc_is(mxc_wait(mxc_irecv(in, 100000, 98, MX_MATCH_MASK_NONE)).code, MX_STATUS_TIMEOUT);
	mxc_is(mxc_wait(mxc_isend(out, 200000, mxc_self, 97)).code, MX_STATUS_TIMEOUT);
	mxc_ok(mx_set_request_timeout(mxc_ep, NULL, 0));
	/* its header came, its bytes cannot be read any more */
	mxc_is(mxc_wait(mxc_irecv(in, 200000, 97, MX_MATCH_MASK_NONE)).code, MX_STATUS_BAD_RDMAWIN);
	mxc_barrier();
}

/* The partner has the header of a send, which then takes its memory back. */
static void memory_that_is_taken_back_is_not_read(void)
{
	static const uint32_t lengths[] = { 50000, 200000 };

	for (int i = 0; i < 2; i++) {
		mx_request_t r = NULL;
		mx_status_t st;
		uint32_t result = 0;

		mxc_barrier();
		if (!mxc_rank)
			r = mxc_isend(out, lengths[i], mxc_peer, 95);
		else
			mxc_until(mxc_ep, mx_iprobe(mxc_ep, 95, MX_MATCH_MASK_NONE, &st, &result) ==
							  MX_SUCCESS &&
						  result);
		mxc_barrier();
		if (!mxc_rank) {
			mxc_ok(mx_set_request_timeout(mxc_ep, r, 1));
			mxc_is(mxc_wait(r).code, MX_STATUS_TIMEOUT);
		}
		mxc_barrier();
		if (mxc_rank) {
			st = mxc_wait(mxc_irecv(in, lengths[i], 95, MX_MATCH_MASK_NONE));
			mxc_is(st.code, MX_STATUS_BAD_RDMAWIN);
			mxc_is(st.xfer_length, 0);
		}
		mxc_barrier();
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic int asleep, woken;

enum wait_kind { WAIT, WAIT_ANY, PEEK, PROBE, CONNECT };

static void *sleep_in(void *arg)
{
	enum wait_kind kind = (enum wait_kind)(uintptr_t)arg;
	mx_endpoint_addr_t addr;
	mx_request_t r = NULL;
	mx_status_t st;
	uint32_t result = 9;
	mx_return_t ret;

	if (kind == WAIT)
		r = mxc_irecv(in, 1, 12345, MX_MATCH_MASK_NONE);
	atomic_fetch_add(&asleep, 1);
	if (kind == WAIT)
		ret = mx_wait(mxc_ep, &r, 0, &st, &result);
	else if (kind == WAIT_ANY)
		ret = mx_wait_any(mxc_ep, 0, 5, MX_MATCH_MASK_NONE, &st, &result);
	else if (kind == PEEK)
		ret = mx_peek(mxc_ep, 0, &r, &result);
	else if (kind == PROBE)
		ret = mx_probe(mxc_ep, 0, 5, MX_MATCH_MASK_NONE, &st, &result);
	else
		ret = mx_connect(mxc_ep, (mxc_nic & ~UINT64_C(0xff)) | 0xfe, 3, 1, 0, &addr);
	if (kind == CONNECT) {
		mxc_true(ret == MX_TIMEOUT || ret == MX_CONNECTION_FAILED);
	} else {
		mxc_ok(ret);
		mxc_is(result, 0);
	}
	if (kind == WAIT)
		mxc_ok(mx_cancel(mxc_ep, &r, &result));
	atomic_fetch_add(&woken, 1);
	return NULL;
}

static void wakeup_ends_every_kind_of_wait(void)
{
	for (unsigned int kind = WAIT; kind <= CONNECT; kind++) {
		pthread_t t[2];
		double end = mxc_now() + MXC_SECONDS;

		asleep = woken = 0;
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, sleep_in, (void *)(uintptr_t)kind);
		while (asleep < 2)
			usleep(100);
		while (woken < 2) {
			usleep(5000);
			mxc_ok(mx_wakeup(mxc_ep));
			mxc_true(mxc_now() < end);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
	}
	mxc_barrier();
}

enum { THREADS = 16, PER_THREAD = 40 };

static void *receive_own(void *arg)
{
	uint64_t me = (uintptr_t)arg;
	unsigned int number = 0;

	for (unsigned int i = 0; i < PER_THREAD; i++) {
		mx_request_t r = mxc_irecv(&number, sizeof(number), me, MX_MATCH_MASK_NONE);

		mxc_is(mxc_wait(r).code, MX_STATUS_SUCCESS);
		mxc_is(number, i);
		mxc_wait(mxc_isend(&number, sizeof(number), mxc_peer, me));
	}
	return NULL;
}

static void each_of_many_threads_gets_its_own(void)
{
	pthread_t t[THREADS];

	if (mxc_rank) {
		for (unsigned int i = 0; i < THREADS; i++)
			pthread_create(&t[i], NULL, receive_own, (void *)(uintptr_t)(100 + i));
		for (unsigned int i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
		return;
	}
	for (unsigned int i = 0; i < PER_THREAD; i++)
		for (unsigned int k = 0; k < THREADS; k++) {
			unsigned int thread = (i * 7 + k * 5) % THREADS, got = 0;

			mxc_wait(mxc_isend(&i, sizeof(i), mxc_peer, 100 + thread));
			mxc_wait(mxc_irecv(&got, sizeof(got), 100 + thread, MX_MATCH_MASK_NONE));
			mxc_is(got, i);
		}
}

static void *take_any(void *arg)
{
	_Atomic unsigned int *taken = arg;

	for (;;) {
		mx_status_t st;
		uint32_t result = 0;

		mxc_ok(mx_wait_any(mxc_ep, 50, 0, 0, &st, &result));
		if (result)
			atomic_fetch_add(&taken[st.match_info & 1023], 1);
		else if (taken[1023])
			return NULL;
	}
}

static void no_request_is_taken_twice(void)
{
	enum { COUNT = 1000 };
	static _Atomic unsigned int taken[1024];
	pthread_t t[4];

	if (!mxc_rank) {
		for (unsigned int i = 0; i < COUNT; i++)
			mxc_wait(mxc_isend(out, 4, mxc_peer, i));
		return;
	}
	for (unsigned int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, take_any, taken);
	for (unsigned int i = 0; i < COUNT; i++)
		mxc_irecv(in, 4, i, MX_MATCH_MASK_NONE);
	for (unsigned int i = 0; i < COUNT; i++)
		mxc_until(mxc_ep, taken[i]);
	taken[1023] = 1;
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (unsigned int i = 0; i < COUNT; i++)
		mxc_is(taken[i], 1);
}

/* ---- context ids ----------------------------------------------------------------------------- */

static void context_ids_are_worlds_of_their_own(void)
{
	mx_param_t param = { .key = MX_PARAM_CONTEXT_ID };
	mx_endpoint_addr_t addr;
	mx_endpoint_t ep;
	mx_segment_t s = { in, 4 };
	mx_request_t r[2], q;
	mx_status_t st;
	uint32_t result = 0;

	param.val.context_id.bits = 4;
	param.val.context_id.shift = 60;
	mxc_ok(mx_open_endpoint(0, MX_ANY_ENDPOINT, 1, &param, 1, &ep));
	mxc_ok(mx_get_endpoint_addr(ep, &addr));
	mxc_is(mx_irecv(ep, &s, 1, 0, 0, NULL, &q), MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
	mxc_is(mx_irecv(ep, &s, 1, 0, UINT64_C(7) << 60, NULL, &q),
	       MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
	mxc_is(mx_test_any(ep, 0, UINT64_C(7) << 60, &st, &result),
	       MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
	mxc_is(mx_iprobe(ep, 0, UINT64_C(7) << 60, &st, &result),
	       MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
	for (uint64_t i = 0; i < 2; i++)
		mxc_ok(mx_irecv(ep, &s, 1, i << 60, UINT64_C(15) << 60, (void *)(uintptr_t)i,
				&r[i]));
	mxc_ok(mx_isend(ep, &s, 1, addr, UINT64_C(1) << 60 | 5, NULL, NULL));
	mxc_ok(mx_wait_any(ep, 20000, 0, 0, &st, &result));
	mxc_is(result, 1);
	mxc_is(st.match_info, UINT64_C(1) << 60 | 5);
	mxc_is((uintptr_t)st.context, 1);
	mxc_ok(mx_isend(ep, &s, 1, addr, 5, NULL, NULL));
	mxc_ok(mx_wait(ep, &r[0], 20000, &st, &result));
	mxc_is(result, 1);
	mxc_ok(mx_close_endpoint(ep));
	mxc_barrier();
}

/* ---- the unexpected handler ------------------------------------------------------------------ */

static struct {
	mx_unexp_handler_action_t action;
	uint32_t calls, length;
	bool has_data, same_source, posts;
	uint64_t match;
	mx_request_t posted;
	_Atomic int inside, overlaps;
} shown;

static mx_unexp_handler_action_t handler(void *context, mx_endpoint_addr_t source, uint64_t match,
					 uint32_t length, void *data)
{
	if (atomic_fetch_add(&shown.inside, 1))
		atomic_fetch_add(&shown.overlaps, 1);
	mxc_true(context == &shown);
	shown.calls++;
	shown.length = length;
	shown.match = match;
	shown.has_data = data != NULL;
	shown.same_source = !memcmp(&source, &mxc_peer, sizeof(source));
	if (data)
		mxc_holds(data, length, 21);
	mxc_is(mx_close_endpoint(mxc_ep), MX_CLOSE_IN_HANDLER);
	if (shown.posts)
		shown.posted = mxc_irecv(in, length, match, MX_MATCH_MASK_NONE);
	atomic_fetch_sub(&shown.inside, 1);
	return shown.action;
}

static const uint32_t shown_lengths[] = { 0, 1, 4096, 4097, 32768, 32769, 65537, 300000 };

static void the_handler_sees_each_kind(void)
{
	mxc_fill(out, sizeof(out), 21);
	for (unsigned int how = 0; how < 6; how++)
		for (unsigned int i = 0; i < 8; i++) {
			uint32_t n = shown_lengths[i];
			bool sync = how & 1;
			mx_status_t st;

			if (!mxc_rank) {
				mxc_barrier();
				st = mxc_wait(sync ? mxc_issend(out, n, mxc_peer, how * 16 + i)
						   : mxc_isend(out, n, mxc_peer, how * 16 + i));
				if (how < 2 && n && (sync || n > 32768)) {
					mxc_is(st.code, MX_STATUS_TRUNCATED);
					mxc_is(st.xfer_length, 0);
				} else {
					mxc_is(st.code, MX_STATUS_SUCCESS);
				}
				mxc_barrier();
				continue;
			}
			/* 0, 1: discard; 2, 3: post and go on; 4, 5: go on, receive later */
			shown.action = how < 2 ? MX_RECV_FINISHED : MX_RECV_CONTINUE;
			shown.posts = how == 2 || how == 3;
			shown.calls = 0;
			mxc_ok(mx_register_unexp_handler(mxc_ep, handler, &shown));
			mxc_barrier();
			mxc_until(mxc_ep, shown.calls && !shown.inside);
			mxc_is(shown.length, n);
			mxc_is(shown.match, how * 16 + i);
			mxc_true(shown.same_source);
			mxc_is(shown.has_data, !sync && n <= 4096);
			memset(in, 0, n);
			if (how >= 4)
				shown.posted = mxc_irecv(in, n, how * 16 + i, MX_MATCH_MASK_NONE);
			if (how >= 2) {
				mxc_is(mxc_wait(shown.posted).xfer_length, n);
				if (how >= 4)
					mxc_holds(in, n, 21);
			}
			mxc_is(shown.calls, 1);
			mxc_ok(mx_register_unexp_handler(mxc_ep, NULL, NULL));
			mxc_barrier();
		}
}

static void the_handler_is_not_shown_what_was_there(void)
{
	mx_status_t st;
	uint32_t result = 0;

	if (!mxc_rank) {
		mxc_wait(mxc_isend(out, 5, mxc_peer, 1));
		mxc_barrier();
		return;
	}
	mxc_until(mxc_ep,
		  mx_iprobe(mxc_ep, 1, MX_MATCH_MASK_NONE, &st, &result) == MX_SUCCESS && result);
	mxc_barrier();
	shown.calls = 0;
	mxc_ok(mx_register_unexp_handler(mxc_ep, handler, &shown));
	mx_progress(mxc_ep);
	mxc_is(mxc_wait(mxc_irecv(in, 5, 1, MX_MATCH_MASK_NONE)).xfer_length, 5);
	mxc_is(shown.calls, 0);
	mxc_ok(mx_register_unexp_handler(mxc_ep, NULL, NULL));
}

static void disabled_progression_holds_the_handler_back(void)
{
	mx_status_t st;
	uint32_t result = 9;

	mxc_fill(out, 64, 21);
	if (!mxc_rank) {
		mxc_barrier();
		mxc_wait(mxc_isend(out, 64, mxc_peer, 1));
		mxc_barrier();
		return;
	}
	shown.calls = 0;
	shown.posts = false;
	shown.action = MX_RECV_FINISHED;
	mxc_ok(mx_register_unexp_handler(mxc_ep, handler, &shown));
	mxc_ok(mx_disable_progression(mxc_ep));
	mxc_ok(mx_disable_progression(mxc_ep));
	mxc_barrier();
	mxc_barrier();
	for (int i = 0; i < 100; i++)
		mxc_ok(mx_test_any(mxc_ep, 0, 0, &st, &result));
	mxc_is(result, 0);
	mxc_is(shown.calls, 0);
	mxc_ok(mx_reenable_progression(mxc_ep));
	mxc_until(mxc_ep, shown.calls == 1);
	mxc_ok(mx_register_unexp_handler(mxc_ep, NULL, NULL));
}

static uint32_t callbacks;

static void callback(void *context, uint64_t match, int length)
{
	mxc_true(context == in);
	mxc_is(match, 77);
	mxc_is(length, 12);
	callbacks++;
}

static void the_old_callback_is_told_once(void)
{
	if (!mxc_rank) {
		mxc_barrier();
		mxc_wait(mxc_isend(out, 12, mxc_peer, 77));
		return;
	}
	mxc_ok(mx_register_unexp_callback(mxc_ep, callback, in));
	mxc_barrier();
	mxc_until(mxc_ep, callbacks);
	mxc_is(mxc_wait(mxc_irecv(in, 12, 77, MX_MATCH_MASK_NONE)).xfer_length, 12);
	mxc_is(callbacks, 1);
	mxc_ok(mx_register_unexp_handler(mxc_ep, NULL, NULL));
}

static _Atomic bool handler_stop;

static void *progress_until_stopped(void *arg)
{
	while (!handler_stop)
		mxc_ok(mx_progress(mxc_ep));
	return arg;
}

static mx_unexp_handler_action_t answer(void *context, mx_endpoint_addr_t source, uint64_t match,
					uint32_t length, void *data)
{
	mx_segment_t s = { data, length };

	(void)context;
	if (atomic_fetch_add(&shown.inside, 1))
		atomic_fetch_add(&shown.overlaps, 1);
	shown.calls++;
	/* the sender was never connected to */
	mxc_ok(mx_isend(mxc_ep, &s, 1, source, match + 1000, NULL, NULL));
	atomic_fetch_sub(&shown.inside, 1);
	return MX_RECV_FINISHED;
}

static void a_handler_that_sends_serves_requests(void)
{
	enum { COUNT = 500 };
	pthread_t t[3];

	if (mxc_rank) {
		shown.calls = 0;
		mxc_ok(mx_register_unexp_handler(mxc_ep, answer, NULL));
		handler_stop = false;
		for (int i = 0; i < 3; i++)
			pthread_create(&t[i], NULL, progress_until_stopped, NULL);
		mxc_barrier();
		mxc_barrier();
		handler_stop = true;
		for (int i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
		mxc_is(shown.calls, COUNT);
		mxc_is(shown.overlaps, 0);
		mxc_ok(mx_register_unexp_handler(mxc_ep, NULL, NULL));
		return;
	}
	mxc_barrier();
	for (unsigned int i = 0; i < COUNT; i++) {
		mx_request_t r = mxc_irecv(in, 100, 1000 + i, MX_MATCH_MASK_NONE);

		mxc_fill(out, 100, i);
		mxc_wait(mxc_isend(out, 100, mxc_peer, i));
		mxc_is(mxc_wait(r).xfer_length, 100);
		mxc_holds(in, 100, i);
	}
	mxc_barrier();
}

static const struct mxc_case cases[] = {
	MXC_CASE(status_is_untouched_until_the_end),
	MXC_CASE(any_finds_the_oldest_that_fits),
	MXC_CASE(peek_shows_what_a_test_then_gets),
	MXC_CASE(receives_and_connects_can_be_cancelled),
	MXC_CASE(cancel_races_with_arrival),
	MXC_CASE(forgotten_requests_end_silently),
	MXC_CASE(buffered_tells_short_from_long),
	MXC_CASE(timeouts_come_in_time),
	MXC_CASE(memory_that_is_taken_back_is_not_read),
	MXC_CASE(wakeup_ends_every_kind_of_wait),
	MXC_CASE(each_of_many_threads_gets_its_own),
	MXC_CASE(no_request_is_taken_twice),
	MXC_CASE(context_ids_are_worlds_of_their_own),
	MXC_CASE(the_handler_sees_each_kind),
	MXC_CASE(the_handler_is_not_shown_what_was_there),
	MXC_CASE(disabled_progression_holds_the_handler_back),
	MXC_CASE(the_old_callback_is_told_once),
	MXC_CASE(a_handler_that_sends_serves_requests),
};

int main(int argc, char **argv)
{
	mxc_start(argc, argv);
	MXC_RUN(cases);
	return mxc_end();
}
