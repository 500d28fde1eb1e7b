/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Event queues and progress. Events of unexpected messages have a queue of their own, which is
 * the condition of PtlMEMDPost. Those of posted receives and of sends share a small queue,
 * which stays in the cache. Larger queues follow it, for programs that have thousands of
 * operations in progress.
 *
 * With MPI_THREAD_MULTIPLE, a thread takes events only while it holds the global lock. So no
 * thread posts a receive while another one has taken an unexpected message but not handled it.
 * One thread waits in Portals without the lock; the others wait for that one.
 */
#include "mpi_shim/core/progress.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/hooks.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/core/world.h"

#define EQ_FIRST     64u  /* events; each further queue is four times as large */
#define CHECK_MS     250u /* how long a wait lasts before it checks the peers */
#define BATCH        16   /* events taken at a time */
#define CHECK_ROUNDS 32 /* rounds between readings of the clock, in case no wait lasts that long */

#define OTHERS_MOST 2
#define MOST_QUEUES (OTHERS_MOST + sizeof(mpi_queues.eq) / sizeof(mpi_queues.eq[0]))

struct mpi_queues mpi_queues;
uint32_t mpi_exposed;
uint32_t mpi_polled;

static struct mpi_progress_hooks hook;
static struct {
	ptl_handle_eq_t eq;
	void (*event)(const ptl_event_t *ev);
} other[OTHERS_MOST];
static int others;

static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static bool polling;         /* a thread waits in Portals */
static unsigned int idle;    /* threads that wait for the polling thread */
static bool kicked;          /* an event that is to wake it is on its way */
static ptl_handle_eq_t wake; /* queue of that event; only the thread to be woken takes from it */
static unsigned int rounds;
/* A timeout that does not wait. With threads it does not yield either, since the lock is held. */
static ptl_time_t glance;
/* The request that the thread in Portals waits for; NULL: more than one thing. */
static const struct mpi_request *awaited;

/* ---- queues ---------------------------------------------------------------------------------- */

static int add_eq(uint32_t room)
{
	struct mpi_queues *p = &mpi_queues;
	struct mpi_eq *q = &p->eq[p->neqs];
	const int most = sizeof(p->eq) / sizeof(p->eq[0]);
	int err;

	if (p->neqs == most)
		return mpi_fail(MPI_ERR_OTHER, "too many operations in progress");
	err = PtlEQAlloc(mpi_world.ni, room, PTL_EQ_HANDLER_NONE, &q->handle);
	if (err != PTL_OK)
		return mpi_fail(MPI_ERR_NO_MEM,
				"no event queue for %u more operations in progress: %s", room,
				PtlErrorStr((unsigned int)err));
	q->room = room;
	q->reserved = 0;
	p->neqs++;
	return MPI_SUCCESS;
}

/* Match bits of the put to our own CREDIT portal that wakes a thread. */
#define WAKE_BITS UINT64_MAX

static int make_wake(void)
{
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_ACK_DISABLE,
	};
	ptl_handle_me_t me;
	int err = PtlEQAlloc(mpi_world.ni, 8, PTL_EQ_HANDLER_NONE, &wake);

	md.eq_handle = wake;
	if (err == PTL_OK)
		err = PtlMEMDAttach(mpi_world.ni, MPI_PT_CREDIT, mpi_world.id[mpi_world.rank],
				    WAKE_BITS, 0, PTL_RETAIN, PTL_INS_BEFORE, md, PTL_RETAIN, &me,
				    NULL);
	return err == PTL_OK ? MPI_SUCCESS
			     : mpi_fail(MPI_ERR_NO_MEM, "cannot set up what wakes threads: %s",
					PtlErrorStr((unsigned int)err));
}

void mpi_progress_rehook(const struct mpi_progress_hooks *hooks)
{
	hook = *hooks;
}

int mpi_progress_init(const struct mpi_progress_hooks *hooks)
{
	int err;

	hook = *hooks;
	mpi_queues.neqs = 0;
	err = add_eq(EQ_FIRST);
	return err || !mpi_world.threaded ? err : mpi_progress_use_threads();
}

int mpi_progress_use_threads(void)
{
	glance = PTL_TIME_LOOK;
	mpi_progress_mode_changed();
	return make_wake();
}

void mpi_progress_add_queue(ptl_handle_eq_t eq, void (*event)(const ptl_event_t *ev))
{
	assert(others < OTHERS_MOST);
	other[others].eq = eq;
	other[others].event = event;
	others++;
	mpi_progress_kick();
}

int mpi_events_reserve(struct mpi_request *r, uint32_t n)
{
	struct mpi_queues *p = &mpi_queues;
	int err;

	for (int i = 0;; i++) {
		if (i == p->neqs) {
			err = add_eq(p->eq[i - 1].room * 4);
			if (err)
				return err;
		}
		if (p->eq[i].reserved + n <= p->eq[i].room) {
			if (i > 0 && !p->eq[i].reserved)
				mpi_progress_kick();
			p->eq[i].reserved += n;
			r->eq = (uint8_t)i;
			return MPI_SUCCESS;
		}
	}
}

void mpi_events_release(struct mpi_request *r, uint32_t n)
{
	mpi_queues.eq[r->eq].reserved -= n;
}

/* Fills in the queues in which events may come, and returns how many there are. */
static int in_use(ptl_handle_eq_t *h)
{
	const struct mpi_queues *p = &mpi_queues;
	int n = 0;

	h[n++] = p->eq[0].handle;
	for (int i = 0; i < others; i++)
		h[n++] = other[i].eq;
	for (int i = 1; i < p->neqs; i++)
		if (p->eq[i].reserved)
			h[n++] = p->eq[i].handle;
	return n;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void handle_event(const ptl_event_t *ev)
{
	struct mpi_request *r = ev->md.user_ptr;

	for (int i = 0; i < others; i++) {
		if (ev->md.eq_handle == other[i].eq) {
			other[i].event(ev);
			return;
		}
	}
	mpi_request_ops[r->kind].event(r, ev);
}

/* Long sends that are over, but whose events may still come. */
static struct mpi_request *limbo;

void mpi_request_done_later(struct mpi_request *r)
{
	r->next = limbo;
	limbo = r;
}

static void progress_broken(int err)
{
	char text[128];

	snprintf(text, sizeof(text), "MPI: an event queue failed: %s",
		 PtlErrorStr((unsigned int)err));
	mpi_abort_job(MPI_ERR_INTERN, text);
}

static bool in_hand; /* events taken and not yet handled */

/* Handles the events that Portals has returned. False: nothing has come. */
static bool handle_all(const ptl_event_t *ev, int count, int err)
{
	if (err != PTL_OK && err != PTL_EQ_EMPTY)
		progress_broken(err);
	assert(!in_hand); /* an event in hand may refer to bytes in a block */
	in_hand = count > 0;
	for (int i = 0; i < count; i++)
		handle_event(&ev[i]);
	in_hand = false;
	if (count)
		mpi_world.yield_due = count < 0;
	hook.handled(count > 0);
	return err == PTL_OK;
}

/* Handles a bounded number of events of these queues. Waits up to `ms` milliseconds for the
 * first. */
static bool take_events(ptl_handle_eq_t *eq, int n, ptl_time_t ms)
{
	ptl_event_t ev[BATCH];
	int count, err = PtlEQPollMany(eq, n, ms ? ms : glance, hook.inline_handler, ev, BATCH,
				       &count);

	return handle_all(ev, count, err);
}

bool mpi_event_get(ptl_handle_eq_t eq, ptl_event_t *ev)
{
	int count, err = PtlEQPollMany(&eq, 1, glance, NULL, ev, 1, &count);

	if (count < 0)
		mpi_world.yield_due = true;
	return err == PTL_OK;
}

bool mpi_progress_drain(ptl_handle_eq_t *eq)
{
	bool any = take_events(eq, 1, 0);

	if (any && mpi_hooks_active)
		mpi_hooks_due = true;
	if (any && mpi_world.threaded)
		mpi_progress_wake();
	return any;
}

/* Completes the sends in limbo that are settled. A settled send makes no more events, and those
 * it made are handled before the request is reused. True: an event was handled, or a send has
 * ended. */
static bool settle_limbo(void)
{
	ptl_handle_eq_t h[MOST_QUEUES];
	struct mpi_request *r = limbo, *next, *settled = NULL;
	int n = in_use(h);
	bool any = false;

	limbo = NULL;
	for (; r; r = next) {
		next = r->next;
		if (!mpi_request_ops[r->kind].settled(r)) {
			mpi_request_done_later(r);
			continue;
		}
		r->next = settled;
		settled = r;
	}
	while (take_events(h, n, 0))
		any = true;
	for (r = settled; r; r = next) {
		next = r->next;
		mpi_request_done(r);
		any = true;
	}
	return any;
}

int64_t mpi_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t checked_ms;

void mpi_check_peers(void)
{
	checked_ms = mpi_now_ms();
	if (atomic_load_explicit(&mpi_world.connected, memory_order_relaxed))
		hook.check();
	mpi_waiting_write(mpi_queues.awaited);
}

void mpi_check_peers_now_and_then(void)
{
	if (mpi_now_ms() - checked_ms >= CHECK_MS)
		mpi_check_peers();
}

static ptl_time_t longest_wait(void)
{
	return mpi_polled ? 1 : CHECK_MS;
}

/* A wait has ended without an event. */
static void check_after_wait(void)
{
	if (mpi_polled)
		mpi_check_peers_now_and_then();
	else
		mpi_check_peers();
}

/* Runs one round: events, waiting up to `ms` milliseconds for the first, and the work that
 * follows from them. */
static bool sweep(ptl_handle_eq_t *h, int n, ptl_time_t ms)
{
	bool any;

	if (mpi_hooks_due)
		ms = 0;
	any = take_events(h, n, ms);
	if (ms && !any)
		check_after_wait();
	if (limbo)
		any |= settle_limbo();
	any |= mpi_hooks_progress();
	if (any && mpi_world.threaded)
		mpi_progress_wake();
	return any;
}

/* Waits while another thread is in Portals: its events, or its leaving, wake this one. */
static void wait_for_the_other(void)
{
	idle++;
	mpi_world.yield_due = false; /* the wait yields anyway */
	pthread_cond_wait(&woken, &mpi_world.lock);
	idle--;
	mpi_waits_seen();
}

/* In a session that has not communicated yet, only other threads and hooks can end something. */
static bool progress_alone(bool block)
{
	const struct timespec a_moment = { .tv_nsec = 100000 };
	bool any = mpi_hooks_progress();

	if (any || !block)
		return any;
	mpi_unlock();
	nanosleep(&a_moment, NULL);
	mpi_lock();
	return false;
}

static bool progress_threaded(bool block, const struct mpi_request *until)
{
	ptl_handle_eq_t h[MOST_QUEUES + 1];
	ptl_event_t ev;
	int n, which = -1;

	if (__builtin_expect(!atomic_load_explicit(&mpi_world.connected, memory_order_acquire), 0))
		return progress_alone(block);
	n = in_use(h);
	if (sweep(h, n, 0))
		return true;
	if (!block)
		return false;
	if (polling) {
		wait_for_the_other();
		return false;
	}
	polling = true;
	awaited = until;
	mpi_unlock();
	h[n] = wake;
	if (PtlEQAwait(h, n + 1, longest_wait(), &which) == PTL_EQ_EMPTY) {
		mpi_lock();
		check_after_wait();
	} else {
		mpi_lock();
	}
	while ((kicked || which == n) && mpi_event_get(wake, &ev))
		continue;
	polling = kicked = false;
	sweep(h, n, 0);
	if (idle)
		pthread_cond_broadcast(&woken);
	return false;
}

void mpi_progress_kick(void)
{
	if (polling && !kicked &&
	    PtlPutInject(mpi_world.ni, NULL, 0, PTL_INJECT_NOW, mpi_world.id[mpi_world.rank],
			 MPI_PT_CREDIT, 0, WAKE_BITS, 0, 0) == PTL_OK)
		kicked = true;
}

void mpi_progress_wake(void)
{
	if (idle)
		pthread_cond_broadcast(&woken);
	if (polling && (!awaited || awaited->done || mpi_hooks_due))
		mpi_progress_kick();
}

bool mpi_progress(bool block)
{
	ptl_handle_eq_t h[MOST_QUEUES];

	if (++rounds % CHECK_ROUNDS == 0)
		mpi_check_peers_now_and_then();
	if (mpi_world.threaded)
		return progress_threaded(block, NULL);
	return sweep(h, in_use(h), block ? longest_wait() : 0);
}

void mpi_progress_watch(const _Atomic uint64_t *word, uint64_t least)
{
	ptl_handle_eq_t h[MOST_QUEUES];
	ptl_event_t ev[BATCH];
	int count, err;

	if (mpi_hooks_active || limbo) {
		mpi_progress(false);
		return;
	}
	if (++rounds % CHECK_ROUNDS == 0)
		mpi_check_peers_now_and_then();
	err = PtlEQPollWatch(h, in_use(h), (const uint64_t *)word, least, hook.inline_handler, ev,
			     BATCH, &count);
	if (handle_all(ev, count, err))
		mpi_progress(false); /* work that the events have made due */
}

void mpi_yield(void)
{
	if (!mpi_world.yield_due)
		return;
	mpi_unlock();
	mpi_lock();
}

bool mpi_progress_queue(ptl_handle_eq_t *eq)
{
	if (++rounds % CHECK_ROUNDS == 0)
		mpi_check_peers_now_and_then();
	if (mpi_world.threaded)
		return progress_threaded(true, NULL);
	return sweep(eq, 1, CHECK_MS);
}

/* A wait takes another path than the shortest: there are threads, or a tool watches. */
static bool special_waits;

void mpi_progress_mode_changed(void)
{
	special_waits = mpi_world.threaded || mpi_events_watched;
}

static void wait_alone(const struct mpi_request *r)
{
	mpi_queues.awaited = r;
	mpi_progress(true);
	mpi_queues.awaited = NULL;
}

static void wait_threaded(const struct mpi_request *r)
{
	struct mpi_wait wait;

	mpi_wait_begin(&wait, BASE_WAIT_REQUEST, r->comm, BASE_WAITS_ANY, BASE_WAITS_ANY,
		       r->obj.handle);
	wait.request = r;
	while (!r->done) {
		if (++rounds % CHECK_ROUNDS == 0)
			mpi_check_peers_now_and_then();
		progress_threaded(true, r);
	}
	mpi_wait_end(&wait);
}

static void wait_special(const struct mpi_request *r)
{
	const bool watched = mpi_events_watched;

	if (watched)
		mpi_event_wait(MPI_EVENT_WAIT_BEGIN, r, 1);
	if (mpi_world.threaded)
		wait_threaded(r);
	while (!r->done)
		wait_alone(r);
	if (watched)
		mpi_event_wait(MPI_EVENT_WAIT_END, r, 1);
}

void mpi_progress_until(const struct mpi_request *r)
{
	if (special_waits && !r->done)
		wait_special(r);
	while (!r->done)
		wait_alone(r);
}
