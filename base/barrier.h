/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Barriers that one thread makes for others, with membarrier(2), so that a fast path needs
 * none of its own. Take a thread that stores to one word and loads another without a barrier
 * in between. A second thread stores to the second word, makes all threads pass a barrier, and
 * loads the first word. They cannot both miss the other's store.
 */
#ifndef BASE_BARRIER_H
#define BASE_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

/* Join: from now on the barriers of others reach this process, and it may make some itself.
 * False: the system cannot. */
bool base_barrier_join(void);

/* Make every thread of this process, which has joined, pass a full barrier. If the system
 * refuses, wait `ns` nanoseconds instead. The caller's stores before must be visible to all
 * already: use an atomic exchange, or put a fence behind them. */
void base_barrier_own(uint64_t ns);

/*
 * The same for every process that has joined, and always wait `ns` nanoseconds, too.
 *
 * The wait is needed because the kernel may leave a processor out. For each processor the
 * kernel keeps whether the process that runs there takes part, and it forgets that when a
 * thread ends there. If another thread of the same process runs next, the kernel does not
 * record it again. No barrier then reaches that processor until some other process has run on
 * it. This was seen with Linux 6.18, in exit_mm() and membarrier_switch_mm(); see
 * test/unit/portals/engine/test_lock.c.
 *
 * Waiting works because a store is visible to all soon after a younger load was executed,
 * whatever the processor does meanwhile. With at least sixty stores to lines of another core
 * before it, three of 400,000 took more than 2 us, and none of 350,000 more than 5 (Intel
 * Xeon, two virtual cores).
 */
void base_barrier_all(uint64_t ns);

#endif
