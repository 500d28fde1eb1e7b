/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A lock of one word that costs two atomic instructions while no other thread wants it. A short
 * message takes some hundred nanoseconds, and every call takes the lock once.
 */
#ifndef RWAPI_LOCK_H
#define RWAPI_LOCK_H

#include <stdatomic.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/cpu.h"

/* 0: free. 1: held. 2: held, and threads may sleep on the word. */
struct rw_lock {
	atomic_int word;
};

enum { RW_LOCK_SPINS = 100 };

static inline void rw_lock_slowly(struct rw_lock *l)
{
	int free;

	for (int i = 0; i < RW_LOCK_SPINS; i++) {
		free = 0;
		/* acquire: pairs with the release of the thread that unlocked */
		if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_weak_explicit(&l->word, &free, 1, memory_order_acquire,
							  memory_order_relaxed))
			return;
		base_cpu_relax();
	}
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline void rw_lock(struct rw_lock *l)
{
	int free = 0;

	if (!atomic_compare_exchange_strong_explicit(&l->word, &free, 1, memory_order_acquire,
						     memory_order_relaxed))
		rw_lock_slowly(l);
}

static inline void rw_unlock(struct rw_lock *l)
{
	/* release: pairs with the acquire of the thread that locks next */
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
