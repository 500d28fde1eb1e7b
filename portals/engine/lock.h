/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The lock of a region. It guards every object of the interface. The owner holds it whenever it
 * is inside the library, which is what makes it "attending": a peer that finds it so leaves its
 * message in the ring and goes on; a peer that finds the lock free takes it and runs the engine
 * on the owner's behalf.
 *
 * Rank: a process holds at most one region lock at a time, and no other lock of ours is taken
 * inside it but the NAL's connection mutex.
 *
 * The word names its holder, so the lock survives it: a waiter that the NAL tells "dead" takes
 * the lock over and rolls back what was not committed (undo.h).
 *
 * The lock has two modes.
 *
 * Plain. The word is 0 when free, else the holder's token. Taken by compare-and-exchange, let go
 * by an exchange, both full barriers. Who pushes a message puts a full barrier between the push
 * and its look at the word; so either it finds the lock free, or the holder's look at its rings
 * after letting go finds the message.
 *
 * Biased. A thread of the owner that takes the lock many times in a row without anybody else,
 * while none sleeps, is given it for good: the word says BIASED and which of a few places of the
 * region is that thread's, and nobody writes it any more. From then on the thread enters and
 * leaves without a locked instruction or a fence:
 *
 *   enter:  inside = 1;  the word still says biased to me?  (else: inside = 0, and the plain
 *           way)
 *   leave:  inside = 0;  the same look (else somebody waits: see below);  then the rings, as
 *           always
 *
 * To take a biased lock away, a revoker (1) moves the word from BIASED to BIASED + its token,
 * (2) makes the thread pass a full barrier, with membarrier(2), and a peer waits for some
 * microseconds, too (base/barrier.h says why), (3) looks at `inside`. The barrier stands in for
 * the one the thread does not have between its store and its look: a thread that entered without
 * seeing the token had `inside` stored before the barrier, so (3) sees it.
 *
 *   inside = 0: the thread is out and will see the token when it comes. The revoker moves the
 *   word to its
 *       token alone: it holds the lock, and the mode is plain.
 *   inside = 1, and the revoker is a peer: the owner attends, and as the barrier came after the
 *   push, the owner's
 *       next look at its rings finds what was pushed. The revoker puts BIASED back.
 *   inside = 1, and the revoker is a thread of the owner: it waits. The biased thread sees the
 *   token at the
 *       latest when it leaves, and hands the lock over by moving the word to OWNER.
 *
 * A biased thread that meets a peer's token puts BIASED back by itself, which tells the peer
 * that it is attended to: that exchange is a full barrier before its next look at the rings. So
 * a peer's revocation never makes that thread wait, and one cut short by the revoker's death or
 * stop holds up nobody but who also wants the lock, and these ask about the token's life as they
 * do of a holder's. The word leaves a token only by compare-and-exchange, so of two who would
 * move it one fails and looks again. Each thread has a place of its own because one that has not
 * noticed yet that its bias is gone still writes there.
 *
 * What the biased mode does not give is the guarantee of the plain one to who pushes: neither
 * side has a barrier between its store and its load, so the owner's last look at its rings may
 * miss a push whose sender then still reads inside = 1. Time closes this gap, not instructions:
 * a processor's store is visible to all a few microseconds after it was executed, whatever it
 * does meanwhile, and this mode exists only on x86, where a load is never older than the stores
 * before it by more than that. So a look at the rings some time after leaving finds all that was
 * pushed by someone who saw inside = 1. The NAL that lets a lock be biased (ptl_ni.may_bias)
 * owes that look after every biased leave: the shared-memory NAL's helper thread gives it within
 * milliseconds (shm_helper.c), an initiator that waits looks itself much sooner, and a thread
 * about to sleep gives the bias up and looks (shm_wait.c).
 */
#ifndef PTL_LOCK_H
#define PTL_LOCK_H

#include "portals/engine/region.h"

#define PTL_LOCK_OWNER   1u
#define PTL_LOCK_PEER(i) ((i) + 2u)  /* the NAL's index of the peer in this region */
#define PTL_LOCK_TOKEN   0xffffu     /* whose */
#define PTL_LOCK_BIASED  0x40000000u /* with the place of the thread: PTL_LOCK_TO */
#define PTL_LOCK_TO(i)   (PTL_LOCK_BIASED | (uint32_t)(i) << 24)
#define PTL_LOCK_WAIT    0x80000000u /* somebody sleeps on the word */

struct ptl_ni;

/* Kernel sleep on a word of a region while it is `value`, at most `ns`. */
void ptl_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void ptl_futex_wake(_Atomic uint32_t *word, int n);

/* Wakes the owner's threads that sleep in a wait, if there are any. */
void ptl_ring(struct ptl_region *r);

/* The `inside` of the thread a biased word means. */
static inline _Atomic uint32_t *ptl_lock_inside(struct ptl_region *r, uint32_t word)
{
	return &r->bias[word >> 24 & (PTL_BIAS_THREADS - 1)].inside;
}

/* Is the owner inside the library? As far as the word and `inside` show just now. */
static inline bool ptl_lock_attended(struct ptl_region *r)
{
	uint32_t word = atomic_load_explicit(&r->lock, memory_order_relaxed);

	if (word & PTL_LOCK_BIASED)
		return atomic_load_explicit(ptl_lock_inside(r, word), memory_order_relaxed);
	return (word & PTL_LOCK_TOKEN) == PTL_LOCK_OWNER;
}

/* Takes a free lock in plain mode. False: *word says who holds it. */
static inline bool ptl_lock_try(struct ptl_region *r, uint32_t token, uint32_t *word)
{
	*word = 0;
	return atomic_compare_exchange_strong_explicit(&r->lock, word, token, memory_order_seq_cst,
						       memory_order_relaxed);
}

/* Takes the lock of a peer's region, whose word is `biased`, with nobody's token. False: it is
 * not free, or changed hands. */
bool ptl_lock_revoke(struct ptl_region *r, uint32_t biased, uint32_t token);

/* Lets go in plain mode. The exchange is a full barrier: what the caller looks at next (rings,
 * sleepers) it sees as it is after the lock was free; partner: a peer's barrier between its push
 * and its look at the lock. */
static inline void ptl_unlock_plain(struct ptl_region *r)
{
	uint32_t was = atomic_exchange_explicit(&r->lock, 0, memory_order_seq_cst);

#if !defined(__x86_64__)
	atomic_thread_fence(
		memory_order_seq_cst); /* elsewhere an exchange alone lets later loads pass */
#endif
	if (was & PTL_LOCK_WAIT)
		ptl_futex_wake(&r->lock, 1);
}

/* The rest of ptl_lock and ptl_unlock (ni.h): */

/* The lock is taken: waits, however long; a dead holder's is taken over. */
void ptl_lock_wait(struct ptl_ni *ni);
/* The lock was biased to us, and is no longer, or is being taken away. Returns with the lock. */
void ptl_lock_unbiased(struct ptl_ni *ni, uint32_t biased);
/* We let go of our biased lock, and there is a token on it. */
void ptl_unlock_revoked(struct ptl_region *r, uint32_t biased);
/* Lets go in plain mode, or makes the lock the caller's for good; true in that case. */
bool ptl_unlock_unbiased(struct ptl_ni *ni);

/* The lock may be biased where the system can; the caller owes the look after leaving. */
void ptl_lock_allow_bias(struct ptl_ni *ni);
/* The calling thread is to take no interface's lock for good. */
void ptl_lock_never_bias(struct ptl_ni *ni);
/* Back to plain mode, if the lock, which we hold, is biased. False: it was not. */
bool ptl_lock_unbias(struct ptl_ni *ni);

/* Nobody's any more. Locked, in plain mode, which it is when another thread than that one has
 * it. */
void ptl_lock_end_bias(struct ptl_ni *ni);

/* Does another thread of the owner want the lock that we hold? */
static inline bool ptl_lock_contended(const struct ptl_region *r)
{
	return atomic_load_explicit(&r->lock, memory_order_relaxed) & PTL_LOCK_WAIT;
}

#endif
