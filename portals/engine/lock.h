/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The lock of a region. It guards every object of the interface. The owner holds it whenever
 * it is inside the library; it is "attending" then. A peer that finds the owner attending
 * leaves its message in the ring and goes on. A peer that finds the lock free takes it and
 * runs the engine on the owner's behalf.
 *
 * Rank: a process holds at most one region lock at a time. Inside it only the NAL's connection
 * mutex may be taken.
 *
 * The word names its holder, so the lock survives the holder's death. A waiter asks the NAL
 * whether the holder is dead. If so, it takes the lock over and rolls back uncommitted writes
 * (undo.h).
 *
 * The lock has two modes.
 *
 * Plain. The word is 0 when free, else the holder's token. A compare-and-exchange takes it and
 * an exchange releases it; both are full barriers. A process that pushes a message puts a full
 * barrier between the push and its load of the word. So one of two things holds. Either it
 * finds the lock free, or the holder finds the message when it polls its rings after the
 * release.
 *
 * Biased. The lock becomes biased to a thread of the owner that takes it many times in a row,
 * if nobody else takes it meanwhile and no thread sleeps. The word then says BIASED and the
 * slot number of that thread, one of a few in the region. Nobody writes the word any more. The
 * thread enters and leaves without a locked instruction or a fence:
 *
 *   enter:  inside = 1;  does the word still say biased to me?  If not: inside = 0, and plain mode.
 *   leave:  inside = 0;  the same check, and if it fails a waiter is served, see below;  then poll
 *           the rings, as always.
 *
 * To take a biased lock away, a revoker does three things:
 *
 *   (1) move the word from BIASED to BIASED + its token;
 *   (2) make the thread pass a full barrier with membarrier(2), and, if the revoker is a peer, wait
 *       for some microseconds, too (base/barrier.h says why);
 *   (3) load `inside`.
 *
 * The thread has no barrier between its store and its load; (2) stands in for it. A thread
 * that entered without seeing the token had stored `inside` before the barrier, so (3) sees
 * the store.
 *
 * inside = 0: the thread is out, and will see the token when it enters. The revoker moves the
 * word to its token alone. It holds the lock, and the mode is plain.
 *
 * inside = 1, and the revoker is a peer: the owner attends. The barrier came after the push,
 * so the owner's next poll of its rings finds the message. The revoker puts BIASED back.
 *
 * inside = 1, and the revoker is a thread of the owner: it waits. The biased thread sees the
 * token when it leaves, at the latest. It hands the lock over by moving the word to OWNER.
 *
 * A biased thread that meets a peer's token puts BIASED back by itself. That tells the peer
 * that the owner attends, because the exchange is a full barrier before the thread's next poll
 * of the rings. So a peer's revocation never makes that thread wait.
 *
 * If the revoker dies or is stopped halfway, only others that want the lock are delayed. They
 * ask whether the token's process lives, as they do for a holder. The word leaves a token only
 * by compare-and-exchange, so if two processes move it, one fails and loads it again. Each
 * thread has a slot of its own, because a thread may still write there before it notices that
 * its bias is gone.
 *
 * Biased mode lacks one guarantee of plain mode. Neither side has a barrier between its store
 * and its load. So the owner's final poll of its rings may miss a push whose sender then still
 * reads inside = 1. Time closes this gap, not instructions. A processor's store is visible to
 * all a few microseconds after it was executed, whatever the processor does meanwhile. And
 * biased mode exists only on x86, where a load is never older than the stores before it by
 * more than that. So a poll of the rings some time after the leave finds every push whose
 * sender saw inside = 1.
 *
 * A NAL that allows biasing (ptl_ni.may_bias) owes that poll after every biased leave. In the
 * shared-memory NAL the helper thread polls within milliseconds (shm_helper.c). An initiator
 * that waits polls itself much sooner. A thread about to sleep gives the bias up and polls
 * (shm_wait.c).
 */
#ifndef PTL_LOCK_H
#define PTL_LOCK_H

#include "portals/engine/region.h"

#define PTL_LOCK_OWNER   1u
#define PTL_LOCK_PEER(i) ((i) + 2u)  /* the NAL's index of the peer in this region */
#define PTL_LOCK_TOKEN   0xffffu     /* of the holder */
#define PTL_LOCK_BIASED  0x40000000u /* with the thread's slot: PTL_LOCK_TO */
#define PTL_LOCK_TO(i)   (PTL_LOCK_BIASED | (uint32_t)(i) << 24)
#define PTL_LOCK_WAIT    0x80000000u /* somebody sleeps on the word */

struct ptl_ni;

/* Sleep in the kernel on a word of a region while it is `value`, at most `ns`. */
void ptl_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void ptl_futex_wake(_Atomic uint32_t *word, int n);

/* Ring the doorbell: wake the owner's threads that sleep in a wait, if there are any. */
void ptl_ring_doorbell(struct ptl_region *r);

/* The `inside` of the thread that a biased word names. */
static inline _Atomic uint32_t *ptl_lock_inside(struct ptl_region *r, uint32_t word)
{
	return &r->bias[word >> 24 & (PTL_BIAS_THREADS - 1)].inside;
}

/* Is the owner inside the library? A hint: the state of the word and `inside` at this moment. */
static inline bool ptl_lock_attended(struct ptl_region *r)
{
	uint32_t word = atomic_load_explicit(&r->lock, memory_order_relaxed);

	if (word & PTL_LOCK_BIASED)
		return atomic_load_explicit(ptl_lock_inside(r, word), memory_order_relaxed);
	return (word & PTL_LOCK_TOKEN) == PTL_LOCK_OWNER;
}

/* Take a free lock in plain mode. False: *word names the holder. */
static inline bool ptl_lock_try(struct ptl_region *r, uint32_t token, uint32_t *word)
{
	*word = 0;
	return atomic_compare_exchange_strong_explicit(&r->lock, word, token, memory_order_seq_cst,
						       memory_order_relaxed);
}

/* Take the lock of a peer's region, whose word is `biased` and holds no token. False: the lock
 * is not free, or it changed hands. */
bool ptl_lock_revoke(struct ptl_region *r, uint32_t biased, uint32_t token);

/* Release in plain mode. The exchange is a full barrier: the caller's next loads (rings,
 * sleepers) see memory as it is after the lock was free. Its partner is a peer's barrier
 * between its push and its load of the lock. */
static inline void ptl_unlock_plain(struct ptl_region *r)
{
	uint32_t was = atomic_exchange_explicit(&r->lock, 0, memory_order_seq_cst);

#if !defined(__x86_64__)
	atomic_thread_fence(memory_order_seq_cst); /* elsewhere later loads may pass an exchange */
#endif
	if (was & PTL_LOCK_WAIT)
		ptl_futex_wake(&r->lock, 1);
}

/* The slow paths of ptl_lock and ptl_unlock (ni.h): */

/* The lock is taken: wait for it without limit. A dead holder's lock is taken over. */
void ptl_lock_wait(struct ptl_ni *ni);
/* The lock was biased to us and no longer is, or a revoker is at work. Returns with the lock
 * held. */
void ptl_lock_unbiased(struct ptl_ni *ni, uint32_t biased);
/* We released our biased lock and found a token on it. */
void ptl_unlock_revoked(struct ptl_region *r, uint32_t biased);
/* Release in plain mode, or bias the lock to the caller; true in that case. */
bool ptl_unlock_unbiased(struct ptl_ni *ni);

/* Allow biasing, where the system supports it. The caller owes the poll after each leave. */
void ptl_lock_allow_bias(struct ptl_ni *ni);
/* Never bias any interface's lock to the calling thread. */
void ptl_lock_never_bias(struct ptl_ni *ni);
/* Return to plain mode if the lock, which we hold, is biased. False: it was not. */
bool ptl_lock_unbias(struct ptl_ni *ni);

/* Forget which thread the lock is biased to. Locked, in plain mode, which holds if another
 * thread than that one has the lock. */
void ptl_lock_end_bias(struct ptl_ni *ni);

/* Does another thread of the owner wait for the lock that we hold? */
static inline bool ptl_lock_contended(const struct ptl_region *r)
{
	return atomic_load_explicit(&r->lock, memory_order_relaxed) & PTL_LOCK_WAIT;
}

#endif
