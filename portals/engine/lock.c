/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The slow paths of lock.h.
 */
#define _GNU_SOURCE
#include "portals/engine/lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/config.h"
#include "base/cpu.h"
#include "base/yield.h"
#include "nal/nal.h"
#include "portals/engine/ni.h"

#define SPIN       200 /* polls of a thread that is to hand over */
#define SPIN_NS    5000
#define POLLS      16      /* polls between two loads of the clock */
#define YIELDS     8       /* yields before a sleep */
#define SLEEP_NS   1000000 /* between checks that the holder lives */
#define SEEN_NS    20000   /* far longer than a store takes to be visible */
#define YIELD_NS   100000  /* for a peer to end its revocation, which takes SEEN_NS */
#define NEED_LEAST 16      /* times in a row before the lock is biased, ... */
#define NEED_MOST  4096
/* ... twice as many if the bias lasted for fewer rounds of progress than this */
#define SHORT 1000

void ptl_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	syscall(SYS_futex, word, FUTEX_WAIT, value, ns == UINT64_MAX ? NULL : &t, NULL, 0);
}

void ptl_futex_wake(_Atomic uint32_t *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

void ptl_ring_doorbell(struct ptl_region *r)
{
	if (!atomic_load_explicit(&r->stat.waiters, memory_order_seq_cst))
		return;
	atomic_fetch_add_explicit(&r->doorbell, 1, memory_order_seq_cst);
	ptl_futex_wake(&r->doorbell, INT_MAX);
}

/* Change the word from `from` to `to`, if it still is `from`. A full barrier either way. */
static bool move_word(struct ptl_region *r, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong(&r->lock, &from, to);
}

/* ---- biased mode ----------------------------------------------------------------------------- */

static bool can_bias(void)
{
#if defined(__x86_64__)
	return base_barrier_join();
#else
	return false;
#endif
}

void ptl_lock_allow_bias(struct ptl_ni *ni)
{
	ni->streak_need = NEED_LEAST;
	ni->may_bias = can_bias();
}

void ptl_lock_never_bias(struct ptl_ni *ni)
{
	uintptr_t free;

	for (int i = 0; i <= PTL_NETS; i++) {
		free = 0;
		if (atomic_compare_exchange_strong(&ni->never_bias[i], &free, base_thread()))
			return;
	}
}

static bool never_biased(struct ptl_ni *ni, uintptr_t thread)
{
	for (int i = 0; i <= PTL_NETS; i++)
		if (atomic_load_explicit(&ni->never_bias[i], memory_order_relaxed) == thread)
			return true;
	return false;
}

bool ptl_lock_revoke(struct ptl_region *r, uint32_t biased, uint32_t token)
{
	if (!move_word(r, biased, biased | token))
		return false;
	base_barrier_all(SEEN_NS);
	/* acquire: partner of the release in ptl_unlock */
	if (!atomic_load_explicit(ptl_lock_inside(r, biased), memory_order_acquire))
		return move_word(r, biased | token, token);
	move_word(r, biased | token, biased);
	return false;
}

/* The slot of the calling thread, -1: none is left. Locked. */
static int place_of(struct ptl_ni *ni, uintptr_t self)
{
	for (int i = 0; i < PTL_BIAS_THREADS; i++) {
		if (!ni->bias_thread[i])
			ni->bias_thread[i] = self;
		if (ni->bias_thread[i] == self)
			return i;
	}
	return -1;
}

/* Has the calling thread had the lock to itself for long enough? Locked, plain. */
static bool bias_due(struct ptl_ni *ni)
{
	uint64_t helped = ni->view.r->stat.counts[PTL_COUNT_RUN_BY_PEER];
	uintptr_t self = base_thread();

	if (ni->streak_thread != self || ni->streak_helped != helped) {
		ni->streak_thread = self;
		ni->streak_helped = helped;
		ni->streak = 0;
	}
	if (ni->streak++ < ni->streak_need)
		return false;
	/* a peer that pushes for a sleeping thread relies on a plain lock */
	if (atomic_load_explicit(&ni->view.r->stat.waiters, memory_order_relaxed))
		return false;
	return !never_biased(ni, self) && ni->spin_ns;
}

bool ptl_unlock_unbiased(struct ptl_ni *ni)
{
	struct ptl_region *r = ni->view.r;
	int place;

	if (!ni->may_bias || !bias_due(ni) || (place = place_of(ni, base_thread())) < 0) {
		ptl_unlock_plain(r);
		return false;
	}
	ni->streak = 0;
	ni->bias_round = atomic_load_explicit(&ni->rounds, memory_order_relaxed);
	atomic_store_explicit(&r->bias[place].inside, 1, memory_order_relaxed);
	atomic_store_explicit(&ni->bias, base_thread() | (uintptr_t)place, memory_order_relaxed);
	if (!move_word(r, PTL_LOCK_OWNER, PTL_LOCK_TO(place))) { /* somebody waits */
		atomic_store_explicit(&ni->bias, 0, memory_order_relaxed);
		atomic_store_explicit(&r->bias[place].inside, 0, memory_order_relaxed);
		ptl_unlock_plain(r);
		return false;
	}
	r->stat.counts[PTL_COUNT_BIASED]++;
	return ptl_unlock(ni);
}

/* Our slot's `inside` is 0 and a thread of ours waits for the lock: hand it over. */
static void hand_lock_over(struct ptl_region *r, uint32_t biased)
{
	if (move_word(r, biased | PTL_LOCK_OWNER | PTL_LOCK_WAIT, PTL_LOCK_OWNER | PTL_LOCK_WAIT))
		ptl_futex_wake(&r->lock, INT_MAX);
}

/* Remove a peer's token from a biased word. False: the bias is gone, or a thread of ours takes
 * it. */
static bool keep_bias(struct ptl_region *r, uint32_t biased)
{
	for (;;) {
		uint32_t word = atomic_load_explicit(&r->lock, memory_order_acquire);

		if (word == biased)
			return true;
		if ((word & ~PTL_LOCK_TOKEN) != biased) /* a thread of ours waits, too: WAIT */
			return false;
		if (move_word(r, word, biased))
			return true;
	}
}

void ptl_unlock_revoked(struct ptl_region *r, uint32_t biased)
{
	if (!keep_bias(r, biased))
		hand_lock_over(r, biased);
}

void ptl_lock_unbiased(struct ptl_ni *ni, uint32_t biased)
{
	struct ptl_region *r = ni->view.r;
	uintptr_t bias;
	uint32_t word;

	if (keep_bias(r, biased))
		return;
	atomic_store_explicit(ptl_lock_inside(r, biased), 0, memory_order_release);
	hand_lock_over(r, biased);
	if (!ptl_lock_try(r, PTL_LOCK_OWNER, &word))
		ptl_lock_wait(ni);
	bias = atomic_load_explicit(&ni->bias, memory_order_relaxed);
	if ((bias & ~(uintptr_t)(PTL_BIAS_THREADS - 1)) != base_thread())
		return; /* another thread has it by now */
	atomic_store_explicit(&ni->bias, 0, memory_order_relaxed);
	r->stat.counts[PTL_COUNT_REVOKED]++;
	if (atomic_load_explicit(&ni->rounds, memory_order_relaxed) - ni->bias_round > SHORT)
		ni->streak_need = NEED_LEAST;
	else if (ni->streak_need < NEED_MOST)
		ni->streak_need *= 2;
}

bool ptl_lock_unbias(struct ptl_ni *ni)
{
	struct ptl_region *r = ni->view.r;
	uint32_t word = atomic_load_explicit(&r->lock, memory_order_relaxed);
	uint32_t biased = word & ~(PTL_LOCK_TOKEN | PTL_LOCK_WAIT);

	if (!(word & PTL_LOCK_BIASED))
		return false;
	/* a peer's token may come and go; a thread that waits gets the lock when we leave */
	while (keep_bias(r, biased))
		if (move_word(r, biased, PTL_LOCK_OWNER)) {
			atomic_store_explicit(&ni->bias, 0, memory_order_relaxed);
			atomic_store_explicit(ptl_lock_inside(r, biased), 0, memory_order_release);
			break;
		}
	return true;
}

void ptl_lock_end_bias(struct ptl_ni *ni)
{
	atomic_store_explicit(&ni->bias, 0, memory_order_relaxed);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The mapping of the region by the peer that held the lock (undo.h). */
static const int64_t *shift_of(const struct ptl_region *r, uint32_t token)
{
	return r->shift[(token - PTL_LOCK_PEER(0)) & (PTL_FLOWS - 1)];
}

static bool holder_gone(struct ptl_ni *ni, uint32_t token)
{
	return token != PTL_LOCK_OWNER && ni->nal->holder_dead(ni, token);
}

/* Take the lock away from another thread of ours that it is biased to. */
static void wait_bias(struct ptl_ni *ni, uint32_t biased)
{
	struct ptl_region *r = ni->view.r;
	uint32_t word = biased | PTL_LOCK_OWNER | PTL_LOCK_WAIT;
	uint32_t mine = PTL_LOCK_OWNER | PTL_LOCK_WAIT;

	base_barrier_own(SEEN_NS);
	for (int i = 0;; i++) {
		/* acquire: partner of the release in ptl_unlock */
		if (!atomic_load_explicit(ptl_lock_inside(r, biased), memory_order_acquire) &&
		    move_word(r, word, mine))
			return;
		/* acquire: partner of the hand-over; nobody else may take it */
		if (atomic_load_explicit(&r->lock, memory_order_acquire) != word)
			return;
		if (i < SPIN && ni->spin_ns)
			base_cpu_relax();
		else
			ptl_futex_wait(&r->lock, word, SLEEP_NS);
	}
}

/* The word is biased: try to take the lock. True: it is ours, in plain mode. */
static bool take_biased(struct ptl_ni *ni, uint32_t word)
{
	struct ptl_region *r = ni->view.r;
	uint32_t token = word & PTL_LOCK_TOKEN;
	uint32_t biased = word & ~(PTL_LOCK_TOKEN | PTL_LOCK_WAIT);

	if (token == PTL_LOCK_OWNER) { /* another thread of ours is revoking it */
		ptl_futex_wait(&r->lock, word, SLEEP_NS);
		return false;
	}
	if (token) {
		ptl_futex_wait(&r->lock, word, YIELD_NS);
		if (atomic_load_explicit(&r->lock, memory_order_relaxed) != word ||
		    !holder_gone(ni, token))
			return false;
	}
	if (!move_word(r, word, biased | PTL_LOCK_OWNER | PTL_LOCK_WAIT))
		return false;
	wait_bias(ni, biased);
	return true;
}

static bool take_free_lock(struct ptl_region *r, uint32_t token)
{
	return move_word(r, 0, token);
}

/* Poll for as long as a call that copies some ten kilobytes takes. Then yield, because the
 * holder may be waiting for our processor. If we slept, the holder would need a system call to
 * wake us. False: sleep, or the lock is biased. */
static bool take_soon(struct ptl_region *r)
{
	const uint64_t since = base_now_ns();
	uint32_t held;

	for (int yields = 0; yields < YIELDS;) {
		for (int i = 0; i < POLLS; i++) {
			held = atomic_load_explicit(&r->lock, memory_order_relaxed);
			if (held & PTL_LOCK_BIASED)
				return false;
			if (!held && take_free_lock(r, PTL_LOCK_OWNER))
				return true;
			base_cpu_relax();
		}
		if (base_now_ns() - since >= SPIN_NS) {
			if (!base_yield())
				return false;
			yields++;
		}
	}
	return false;
}

/* A waiter keeps the WAIT bit set when it takes the lock, because others may be asleep behind
 * it. */
void ptl_lock_wait(struct ptl_ni *ni)
{
	struct ptl_region *r = ni->view.r;
	uint32_t held;

	if (base_config()->ptl_spin_us != 0 && take_soon(r))
		return;
	for (;;) {
		held = atomic_load_explicit(&r->lock, memory_order_relaxed);
		if (held & PTL_LOCK_BIASED) {
			if (take_biased(ni, held))
				return;
			continue;
		}
		if (!(held & PTL_LOCK_TOKEN)) {
			if (take_free_lock(r, PTL_LOCK_OWNER | PTL_LOCK_WAIT))
				return;
			continue;
		}
		if (!(held & PTL_LOCK_WAIT) && !move_word(r, held, held | PTL_LOCK_WAIT))
			continue;
		held |= PTL_LOCK_WAIT;
		ptl_futex_wait(&r->lock, held, SLEEP_NS);
		if (atomic_load_explicit(&r->lock, memory_order_relaxed) != held ||
		    !holder_gone(ni, held & PTL_LOCK_TOKEN))
			continue;
		if (move_word(r, held, PTL_LOCK_OWNER | PTL_LOCK_WAIT)) {
			ptl_rollback(&ni->view, shift_of(r, held & PTL_LOCK_TOKEN));
			r->stat.counts[PTL_COUNT_RECOVERIES]++;
			return;
		}
	}
}
