/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Waiting: spin, then sleep on the region's doorbell. The spin budget is learnt. A wait that
 * ended while it spun, or could have, doubles the budget; one that slept long halves it. With
 * more processes than cores the budget is zero (shm_peer.c counts our peers and our job). It
 * is zero for a while, too, when the kernel gives much of the core to others although we want
 * it: some process needs the core. The wait then yields for a while before it sleeps.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/yield.h"
#include "nal/shm/shm.h"

#define SLEEP_MOST_NS 250000000ull
#define SPIN_LEAST_NS 4000 /* the cost of a sleep and a wake-up */
#define DRAIN_NS      5000 /* by then a store has been seen by all (base/barrier.h) */
#define POLLS         16   /* polls in a round */
/* how long to yield before a sleep: see SPIN_US in shm_peer.c */
#define YIELDS_NS      1000000
#define NO_YIELDS_MOST 63
#define OUTSIDE        64 /* yields without the lock after one in which another thread wanted it */
#define LATE_NS        (2 * SPIN_LEAST_NS) /* a message waits for half a turn on average */
#define LATE_YIELDS    4 /* yields that came back after more than LATE_NS, before a sleep */
#define SHARE_CHECK_EVERY                                                                          \
	8192 /* waits between checks of our share of the core: no system call on the fast path */
#define WINDOW_NS 100000000ull /* shortest time to judge the share by */
#define OVERSUBSCRIBED_LEAST_NS                                                                    \
	200000000ull /* how long not to spin when others took too much, ... */
#define OVERSUBSCRIBED_MOST_NS                                                                     \
	1600000000ull /* ... doubled each time it happens again, up to this */

/* Return how long this thread has been ready to run while others ran, without the time that a
 * hypervisor took. 0: unknown. */
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

/* Start a new period of judgement. Returns how long others have run in this thread's place
 * since the last period began, if that was this thread's, else 0. */
static uint64_t judge_anew(struct shm_wait *w, uint64_t now)
{
	uint64_t before = w->waited_ns;
	bool same = w->thread == base_thread();

	w->thread = base_thread();
	w->waited_ns = kept_waiting_ns();
	w->seen_at = now;
	return same ? w->waited_ns - before : 0;
}

/* Check whether others run where this thread wants to. A process that needs the core takes
 * half of the time, continuously. */
static void check_share_of_core(struct shm_wait *w, uint64_t now)
{
	uint64_t wall = now - w->seen_at;

	w->waits = SHARE_CHECK_EVERY;
	if (wall < WINDOW_NS)
		return;
	if (judge_anew(w, now) < wall / 3 || wall > 100 * WINDOW_NS) {
		w->oversubscribed_ns /= 2;
		return;
	}
	w->oversubscribed_ns =
		w->oversubscribed_ns ? 2 * w->oversubscribed_ns : OVERSUBSCRIBED_LEAST_NS;
	if (w->oversubscribed_ns > OVERSUBSCRIBED_MOST_NS)
		w->oversubscribed_ns = OVERSUBSCRIBED_MOST_NS;
	w->oversubscribed_until = now + w->oversubscribed_ns;
}

void shm_wait_over(struct shm *s)
{
	struct shm_wait *w = &s->wait;
	uint64_t most = s->ni->spin_ns;

	if (w->yields) {
		w->yields = 0;
		w->no_yields_next /= 2;
	}
	w->since = 0;
	w->spin_ns = 2 * w->spin_ns > most ? most : 2 * w->spin_ns;
}

/* A peer that pushed when it saw the lock biased relies on a poll some time after the bias is
 * gone (portals/engine/lock.h). The last poll here is that one. */
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

/* False: only the deadline or the longest sleep ended it. */
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
	/* seq_cst: counted as a sleeper before the lock is free; pairs with ptl_ring_doorbell */
	atomic_fetch_add_explicit(&r->stat.waiters, 1, memory_order_seq_cst);
	doorbell = atomic_load_explicit(&r->doorbell, memory_order_seq_cst);
	/* A slot may have been filled or emptied before we were counted. Pairs with the fence
	 * in shm_long.c. */
	atomic_thread_fence(memory_order_seq_cst);
	shm_of(ni)->wait.final_poll = true;
	if (shm_long_any(shm_of(ni)) && shm_long_step(shm_of(ni)))
		ns = 0;
	shm_of(ni)->wait.final_poll = false;
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

/* Return how long, in ns, the wait in progress may spin. */
static uint64_t budget(const struct shm *s, uint64_t now)
{
	uint64_t most = s->ni->spin_ns;

	if (base_config()->ptl_spin_us >= 0) /* as the user chose */
		return most;
	if (now < s->wait.oversubscribed_until)
		return 0;
	return s->wait.spin_ns < most ? s->wait.spin_ns : most;
}

/* Return whether there is, or may be, something to do. */
static bool something(const struct shm *s)
{
	return shm_rings_pending(s) || shm_long_any(s) || s->unsure ||
	       ptl_lock_contended(s->ni->view.r) ||
	       atomic_load_explicit(&s->ni->polled, memory_order_relaxed);
}

/*
 * Without cores to spin on: yield this one, still inside the library, and poll again when our
 * turn comes, for a while before a sleep. If processes wait for each other in turn, this saves
 * the sleep and the wake-up call. If it was in vain, it is tried less and less often. False:
 * sleep.
 *
 * If many processes share a core, turns come late and in an order unrelated to who waits for
 * whom. With sixteen on each core, every process polls some sixteen times while a token goes
 * round once. A sleeper does not poll and runs soon after its wake-up, so its turns follow its
 * waker's from then on. So a few late turns end the yielding.
 *
 * Another thread of the process that wants the lock would have to wait for our turn, with all
 * that it holds itself. So once that has happened, we yield outside the library for a while.
 * Messages that arrive then are queued without a doorbell. *left: poll the queues before any
 * sleep.
 */
static bool yield_some(struct shm *s, uint64_t now, uint64_t deadline, bool *left)
{
	struct shm_wait *w = &s->wait;

	if (base_config()->ptl_spin_us == 0) /* the user chose to sleep at once */
		return false;
	if (w->yields == 0) {
		w->late = 0;
		if (w->no_yields) {
			w->no_yields--;
			return false;
		}
	}
	while (w->late < LATE_YIELDS && now - w->since < YIELDS_NS && now < deadline &&
	       base_yield_helps()) {
		uint64_t before = now;

		w->yields++;
		*left = w->outside > 0;
		if (*left) {
			w->outside--;
			ptl_leave(s->ni);
			base_yield();
			ptl_lock(s->ni);
			w->late += base_now_ns() - before > LATE_NS;
			return true;
		}
		base_yield();
		if (ptl_lock_contended(s->ni->view.r))
			w->outside = OUTSIDE;
		if (something(s))
			return true;
		now = base_now_ns();
		w->late += now - before > LATE_NS;
	}
	w->yields = 0;
	if (w->late >= LATE_YIELDS)
		return false;
	w->no_yields = w->no_yields_next;
	if (w->no_yields_next < NO_YIELDS_MOST)
		w->no_yields_next = 2 * w->no_yields_next + 1;
	return false;
}

/* Poll some more times, without the overhead of a round. */
static void poll_rings(struct shm *s)
{
	/* a poll of a network takes as long as several of the rings */
	if (shm_long_any(s) || atomic_load_explicit(&s->ni->polled, memory_order_relaxed))
		return;
	for (int i = 0; i < POLLS && !ptl_lock_contended(s->ni->view.r); i++) {
		if (shm_rings_pending(s))
			return;
		/* Each poll takes the line away from its next writer, and the core's other
		 * thread may need the core. */
		base_cpu_relax();
	}
}

bool shm_idle(struct ptl_ni *ni, unsigned int idle, uint64_t deadline)
{
	struct shm *s = shm_of(ni);
	struct shm_wait *w = &s->wait;
	uint64_t now, spin;
	bool rung, left = false;

	/* Other threads of this process wait for the lock, peers wait for what was started, or
	 * threads and handlers wait for events that are not ours. */
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
	if (idle == NAL_IDLE_ASLEEP) {
		shm_settle_unsure(s);
		sleep_until(ni, deadline);
		return true;
	}
	if (ni->spin_ns && w->waits && w->oversubscribed_until == 0 && idle % 16) {
		if (idle == 1)
			w->waits--;
		poll_rings(s);
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
		check_share_of_core(w, now);
	if (shm_of(ni)->unsure && now - w->since >= DRAIN_NS)
		shm_settle_unsure(shm_of(ni));
	spin = budget(s, now);
	if (now - w->since < spin || (!spin && yield_some(s, now, deadline, &left)))
		return left;
	rung = sleep_until(ni, deadline);
	if (!rung && base_now_ns() - w->since < ni->spin_ns)
		return true; /* poll in between; the wait goes on */
	/* would a slightly longer spin have sufficed? */
	if (rung && base_now_ns() - now < ni->spin_ns)
		shm_wait_over(s);
	else
		w->spin_ns = w->spin_ns / 2 < SPIN_LEAST_NS ? SPIN_LEAST_NS : w->spin_ns / 2;
	w->since = 0;
	return true;
}
