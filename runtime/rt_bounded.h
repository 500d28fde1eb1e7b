/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A bound on calls of a library that may wait for ever.
 */
#ifndef RUNTIME_RT_BOUNDED_H
#define RUNTIME_RT_BOUNDED_H

/*
 * Make the call in a thread of its own, and wait for its end. Time during which this process is
 * stopped does not count. Returns 0; -ETIMEDOUT if the call has not ended in time: arg is then the
 * thread's, which calls undo after a later end; or another -errno if the call could not be made.
 */
int rt_bounded(void (*call)(void *arg), void (*undo)(void *arg), void *arg, int timeout_ms);

#endif
