/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The lock of a region: a word in it, 0 when free, else who holds it. It guards every object of the
 * interface. The owner holds it whenever it is inside the library, which is what makes it "attending": a
 * peer that finds the owner's token there leaves its message in the ring and goes on; a peer that
 * finds 0 takes the lock with its own token and runs the engine on the owner's behalf.
 *
 * Rank: a process holds at most one region lock at a time, and no other lock of ours is taken inside
 * it but the NAL's connection mutex.
 *
 * The lock survives its holder: the word names the holder, and a waiter that the NAL tells "dead"
 * takes it over and rolls back what was not committed (undo.h).
 */
#ifndef PTL_LOCK_H
#define PTL_LOCK_H

#include "portals/region.h"

#define PTL_LOCK_OWNER   1u
#define PTL_LOCK_PEER(i) ((i) + 2u)  /* the NAL's index of the peer in this region */
#define PTL_LOCK_WAIT    0x80000000u /* somebody sleeps on the word */

struct ptl_ni;

/* Kernel sleep on a word of a region while it is `value`, at most `ns`. */
void ptl_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void ptl_futex_wake(_Atomic uint32_t *word, int n);

/* Takes the lock of a peer's region. False: somebody else holds it; *holder says who. */
static inline bool ptl_lock_try(struct ptl_region *r, uint32_t token, uint32_t *holder)
{
	*holder = 0;
	if (atomic_compare_exchange_strong_explicit(&r->lock, holder, token, memory_order_seq_cst,
						    memory_order_relaxed))
		return true;
	*holder &= ~PTL_LOCK_WAIT;
	return false;
}

/* Lets go. The exchange is a full barrier: what the caller looks at next (rings, sleepers) it sees as
 * it is after the lock was free; partner: a peer's barrier between its push and its look at the lock. */
static inline void ptl_unlock(struct ptl_region *r)
{
	uint32_t was = atomic_exchange_explicit(&r->lock, 0, memory_order_seq_cst);

#if !defined(__x86_64__)
	atomic_thread_fence(
		memory_order_seq_cst); /* elsewhere an exchange alone lets later loads pass */
#endif
	if (was & PTL_LOCK_WAIT)
		ptl_futex_wake(&r->lock, 1);
}

/* The rest of ptl_lock (ni.h) when the lock is taken: waits, however long; a dead holder's is taken over. */
void ptl_lock_wait(struct ptl_ni *ni);

static inline bool ptl_lock_contended(const struct ptl_region *r)
{
	return atomic_load_explicit(&r->lock, memory_order_relaxed) & PTL_LOCK_WAIT;
}

#endif
