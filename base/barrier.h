/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Barriers that one thread makes for others, membarrier(2): what has to be fast then needs none
 * of its own. A thread that stores to one word and loads another, without a barrier in between,
 * and one that stores to the second word, makes them all pass a barrier and loads the first,
 * cannot both have missed the other's store.
 */
#ifndef BASE_BARRIER_H
#define BASE_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

/* From now on the barriers of others reach this process, and it may make some. False: the system
 * cannot. */
bool base_barrier_join(void);

/* Every thread of this process, which has joined, has passed a full barrier since this was
 * called; or, if the system will not, `ns` nanoseconds have passed. What the caller has stored
 * before is to be seen by all: by an atomic exchange, or with a fence behind it. */
void base_barrier_own(uint64_t ns);

/*
 * The same of every process that has joined, and the time has passed, too.
 *
 * The kernel may leave a processor out, so the time is not for nothing. It keeps for each
 * processor whether the process that runs there takes part, and forgets it when a thread ends
 * there; if another thread of the same process is next, it is not told again, and no barrier
 * reaches that processor until some other process has run on it (seen with Linux 6.18; exit_mm()
 * and membarrier_switch_mm() there; test/unit/test_lock.c). What passes instead is time: a store
 * is seen by all soon after a younger load was executed, whatever the processor does meanwhile.
 * With sixty stores or more to lines of another core before it, three of 400,000 took more than
 * 2 us, and none of 350,000 more than 5 (Intel Xeon, two virtual cores).
 */
void base_barrier_all(uint64_t ns);

#endif
