/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Waiting: spin, then sleep on the region's bell. How long to spin is learnt: a wait that ended
 * while it spun, or could have, doubles the budget, one that had to sleep long halves it. With
 * more processes than cores the budget is zero (shm_peer.c knows of our peers and our job), and
 * so it is for a while when the kernel gives much of the core to others although we want it:
 * somebody needs it, whoever that is. Then turns are given away for a while before the sleep.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>

#include "base/config.h"
#include "base/cpu.h"
#include "nal/shm/shm.h"

#define SLEEP_MOST_NS 250000000ull
#define SPIN_LEAST_NS 4000 /* what a sleep and a wake-up cost */
#define DRAIN_NS      5000 /* after which a store has been seen by all (base/barrier.h) */
#define LOOKS         16   /* of a round */
/* how long to give turns away before a sleep: see SPIN_US in shm_peer.c */
#define TURNS_NS      1000000
#define NO_TURNS_MOST 63
#define OUTSIDE                                                                                    \
	64 /* turns given away without the lock, after one that another thread wanted it in */
#define LATE_NS    (2 * SPIN_LEAST_NS) /* a message waits for half a turn on average */
#define LATE_TURNS 4                   /* that came back after more than LATE_NS, before a sleep */
#define LOOK_EVERY                                                                                 \
	8192 /* waits between looks at our share of the core: no system call on the fast path */
#define WINDOW_NS      100000000ull  /* shortest time to judge it by */
#define CROWD_LEAST_NS 200000000ull  /* how long not to spin when too much of it was taken, ... */
#define CROWD_MOST_NS  1600000000ull /* ... twice as long each time it is found again */

/* How long this thread has been ready to run while others ran; what a hypervisor takes is not in
 * it. 0: not to be known. */
static uint64_t kept_waiting_ns(void)
{
	unsigned long long ran, waited;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	int n;

	if (!f)
		return 0;
	n = fscanf(f, "%llu %llu", &ran, &waited);
	fclose(f);
	return n == 2 ? waited : 0;
}

/* What comes after is judged from here. Returns for how long others have run in this thread's
 * stead since the last time, if that was this thread's. */
static uint64_t judge_anew(struct shm_wait *w, uint64_t now)
{
	uint64_t before = w->waited_ns;
	bool same = w->thread == base_thread();

	w->thread = base_thread();
	w->waited_ns = kept_waiting_ns();
	w->seen_at = now;
	return same ? w->waited_ns - before : 0;
}

/* Do others run where this thread wants to? A process that needs the core takes half of the
 * time, and goes on. */
static void look_for_crowd(struct shm_wait *w, uint64_t now)
{
	uint64_t wall = now - w->seen_at;

	w->waits = LOOK_EVERY;
	if (wall < WINDOW_NS)
		return;
	if (judge_anew(w, now) < wall / 3 || wall > 100 * WINDOW_NS) {
		w->oversubscribed_ns /= 2;
		return;
	}
	w->oversubscribed_ns = w->oversubscribed_ns ? 2 * w->oversubscribed_ns : CROWD_LEAST_NS;
	if (w->oversubscribed_ns > CROWD_MOST_NS)
		w->oversubscribed_ns = CROWD_MOST_NS;
	w->oversubscribed_until = now + w->oversubscribed_ns;
}

void shm_wait_over(struct shm *s)
{
	struct shm_wait *w = &s->wait;
	uint64_t most = s->ni->spin_ns;

	if (w->turns) {
		w->turns = 0;
		w->no_turns_next /= 2;
	}
	w->since = 0;
	w->spin_ns = 2 * w->spin_ns > most ? most : 2 * w->spin_ns;
}

/* Who pushed when it saw the lock biased relies on a look some time after it no longer is
 * (portals/engine/lock.h): the last one here. */
static bool pushed_before(const struct shm *s, uint64_t drained)
{
	uint64_t now;

	do {
		now = base_now_ns();
		if (shm_rings_pending(s))
			return true;
	} while (now < drained);
	return false;
}

/* False: nothing ended it but its time. */
static bool sleep_until(struct ptl_ni *ni, uint64_t deadline)
{
	struct ptl_region *r = ni->view.r;
	uint64_t now = base_now_ns(), ns = SLEEP_MOST_NS, drained;
	uint32_t doorbell;
	bool biased, rung;

	if (deadline <= now)
		return false;
	if (deadline - now < ns)
		ns = deadline - now;
	r->stat.counts[PTL_COUNT_SLEEPS]++;
	/* seq_cst: counted as a sleeper before the lock is free; partner in shm_wake */
	atomic_fetch_add_explicit(&r->stat.waiters, 1, memory_order_seq_cst);
	doorbell = atomic_load_explicit(&r->doorbell, memory_order_seq_cst);
	/* a slot filled or emptied before we were counted; partner: the fence in shm_long.c */
	atomic_thread_fence(memory_order_seq_cst);
	shm_of(ni)->wait.last_look = true;
	if (shm_long_any(shm_of(ni)) && shm_long_step(shm_of(ni)))
		ns = 0;
	shm_of(ni)->wait.last_look = false;
	if (ni->nnets && ns) {
		uint64_t until = ptl_nets_arm(ni);

		now = base_now_ns();
		if (until < now + ns)
			ns = until > now ? until - now : 0;
	}
	biased = ptl_lock_unbias(ni);
	drained = base_now_ns() + DRAIN_NS;
	ptl_leave(ni);
	if (biased && pushed_before(shm_of(ni), drained))
		ns = 0;
	if (ns)
		ptl_futex_wait(&r->doorbell, doorbell, ns);
	rung = !ns || atomic_load_explicit(&r->doorbell, memory_order_relaxed) != doorbell;
	atomic_fetch_sub_explicit(&r->stat.waiters, 1, memory_order_seq_cst);
	ptl_lock(ni);
	return rung;
}

/* What the wait in progress may spin. */
static uint64_t budget(const struct shm *s, uint64_t now)
{
	uint64_t most = s->ni->spin_ns;

	if (base_config()->ptl_spin_us >= 0) /* as told */
		return most;
	if (now < s->wait.oversubscribed_until)
		return 0;
	return s->wait.spin_ns < most ? s->wait.spin_ns : most;
}

/* Is there something to do, or may there be? */
static bool something(const struct shm *s)
{
	return shm_rings_pending(s) || shm_long_any(s) || s->unsure ||
	       ptl_lock_contended(s->ni->view.r) ||
	       atomic_load_explicit(&s->ni->polled, memory_order_relaxed);
}

/*
 * Without cores to spin on: give this one to the next process, still inside and attending, and
 * look again when our turn comes, for a while before sleeping. Where processes wait for each
 * other in turn that saves the sleep and the call that ends it. Where it was in vain it is tried
 * less and less often. False: to sleep.
 *
 * Where many share a core, turns come late and in an order that has nothing to do with who waits
 * for whom: with sixteen on each, all look some sixteen times while a token goes round once. Who
 * sleeps looks not at all, runs soon after it was woken, and so has its turns after its waker's
 * from then on. So some late turns are enough.
 *
 * Where another thread of the process wants the lock it would have to wait for our turn, with
 * all that it holds itself. So once that has happened we are outside during turns for a while.
 * What comes then is put in its queue without a bell: *left, queues are to be looked at before
 * any sleep.
 */
static bool yield_some(struct shm *s, uint64_t now, uint64_t deadline, bool *left)
{
	struct shm_wait *w = &s->wait;

	if (base_config()->ptl_spin_us == 0) /* to sleep at once is what was asked for */
		return false;
	if (w->turns == 0) {
		w->late = 0;
		if (w->no_turns) {
			w->no_turns--;
			return false;
		}
	}
	while (w->late < LATE_TURNS && now - w->since < TURNS_NS && now < deadline) {
		uint64_t before = now;

		w->turns++;
		*left = w->outside > 0;
		if (*left) {
			w->outside--;
			ptl_leave(s->ni);
			sched_yield();
			ptl_lock(s->ni);
			w->late += base_now_ns() - before > LATE_NS;
			return true;
		}
		sched_yield();
		if (ptl_lock_contended(s->ni->view.r))
			w->outside = OUTSIDE;
		if (something(s))
			return true;
		now = base_now_ns();
		w->late += now - before > LATE_NS;
	}
	w->turns = 0;
	if (w->late >= LATE_TURNS)
		return false;
	w->no_turns = w->no_turns_next;
	if (w->no_turns_next < NO_TURNS_MOST)
		w->no_turns_next = 2 * w->no_turns_next + 1;
	return false;
}

/* Looks for something to do some more times, without the ado of a round. */
static void look_out(struct shm *s)
{
	/* a look at a network takes as long as some at the rings */
	if (shm_long_any(s) || atomic_load_explicit(&s->ni->polled, memory_order_relaxed))
		return;
	for (int i = 0; i < LOOKS && !ptl_lock_contended(s->ni->view.r); i++) {
		if (shm_rings_pending(s))
			return;
		/* each look takes the line away from who is about to write it; and the core's
		 * other thread may need it */
		base_cpu_relax();
	}
}

bool shm_idle(struct ptl_ni *ni, unsigned int idle, uint64_t deadline)
{
	struct shm *s = shm_of(ni);
	struct shm_wait *w = &s->wait;
	uint64_t now, spin;
	bool rung, left = false;

	/* others of this process wait for the lock, peers for what was started, threads and
	 * handlers for events that are not ours */
	if (ptl_lock_contended(ni->view.r) || s->run ||
	    (ni->engine.posted &&
	     (atomic_load_explicit(&ni->handlers, memory_order_relaxed) ||
	      atomic_load_explicit(&ni->view.r->stat.waiters, memory_order_relaxed)))) {
		ptl_leave(ni);
		ptl_lock(ni);
		return true;
	}
	if (!idle)
		return false;
	if (ni->spin_ns && w->waits && w->oversubscribed_until == 0 && idle % 16) {
		if (idle == 1)
			w->waits--;
		look_out(s);
		return false;
	}
	now = base_now_ns();
	if (!w->since || idle < 16)
		w->since = now;
	if (w->oversubscribed_until && now >= w->oversubscribed_until) {
		w->oversubscribed_until = 0;
		judge_anew(w, now);
	}
	if (!w->waits)
		look_for_crowd(w, now);
	if (shm_of(ni)->unsure && now - w->since >= DRAIN_NS)
		shm_settle_unsure(shm_of(ni));
	spin = budget(s, now);
	if (now - w->since < spin || (!spin && yield_some(s, now, deadline, &left)))
		return left;
	rung = sleep_until(ni, deadline);
	if (!rung && base_now_ns() - w->since < ni->spin_ns)
		return true; /* for a look in between: the wait goes on */
	/* would a little more patience have done? */
	if (rung && base_now_ns() - now < ni->spin_ns)
		shm_wait_over(s);
	else
		w->spin_ns = w->spin_ns / 2 < SPIN_LEAST_NS ? SPIN_LEAST_NS : w->spin_ns / 2;
	w->since = 0;
	return true;
}
