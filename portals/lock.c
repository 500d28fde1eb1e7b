/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The slow paths of lock.h.
 */
#define _GNU_SOURCE
#include "portals/lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "nal/nal.h"
#include "portals/ni.h"

#define SPIN     200
#define SLEEP_NS 1000000 /* between looks at whether the holder lives */

void ptl_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	syscall(SYS_futex, word, FUTEX_WAIT, value, ns == UINT64_MAX ? NULL : &t, NULL, 0);
}

void ptl_futex_wake(_Atomic uint32_t *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

static bool take_free(struct ptl_region *r, uint32_t token)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(&r->lock, &free, token, memory_order_seq_cst,
						       memory_order_relaxed);
}

/* A waiter keeps the WAIT bit set when it takes the lock: others may be asleep behind it. */
void ptl_lock_wait(struct ptl_ni *ni)
{
	struct ptl_region *r = ni->view.r;
	uint32_t held;

	for (int i = 0; i < SPIN && ni->spin_ns; i++) {
		if (!atomic_load_explicit(&r->lock, memory_order_relaxed) &&
		    take_free(r, PTL_LOCK_OWNER))
			return;
		base_cpu_relax();
	}
	for (;;) {
		held = atomic_load_explicit(&r->lock, memory_order_relaxed);
		if (!(held & ~PTL_LOCK_WAIT)) {
			if (take_free(r, PTL_LOCK_OWNER | PTL_LOCK_WAIT))
				return;
			continue;
		}
		if (!(held & PTL_LOCK_WAIT) &&
		    !atomic_compare_exchange_strong(&r->lock, &held, held | PTL_LOCK_WAIT))
			continue;
		held |= PTL_LOCK_WAIT;
		ptl_futex_wait(&r->lock, held, SLEEP_NS);
		if (atomic_load_explicit(&r->lock, memory_order_relaxed) != held ||
		    (held & ~PTL_LOCK_WAIT) == PTL_LOCK_OWNER ||
		    !ni->nal->holder_dead(ni, held & ~PTL_LOCK_WAIT))
			continue;
		if (atomic_compare_exchange_strong(&r->lock, &held,
						   PTL_LOCK_OWNER | PTL_LOCK_WAIT)) {
			ptl_rollback(&ni->view);
			r->stat.counts[PTL_COUNT_RECOVERIES]++;
			return;
		}
	}
}
