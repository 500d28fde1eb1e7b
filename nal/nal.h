/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The contract between Portals and a network abstraction layer. A NAL brings requests to the target's
 * engine, moves the bytes a landing asks for, and brings answers back; it knows no Portals objects
 * beyond what portals/engine.h takes and gives. Adding one: a folder nal/NAME with `nal_NAME_ops`, and
 * its word in meson_options.txt.
 *
 * The owner's lock (portals/lock.h) is held where a comment says "locked". Unless said otherwise an
 * operation does not block and keeps no pointer it was given.
 */
#ifndef NAL_H
#define NAL_H

#include <stddef.h>

#include "portals/engine.h"

struct ptl_ni;

struct nal_ops {
	const char *name;
	bool atomics; /* send() and the target's side of it know ptl_start.atomic (portals/atomic.h) */

	/* Can it be used here? NULL, or a sentence that says why not. No interface need exist. May take
	 * a millisecond. */
	const char *(*unusable)(void);

	/* Bytes it wants in every region. */
	size_t (*region_bytes)(void);

	/* Makes ni reachable as ni->id.nid and pid `want` (PTL_PID_ANY: one that is free on this host),
	 * which it stores in ni->id.pid. From now on peers may connect. PTL_OK, PTL_PID_INVALID (taken),
	 * PTL_NO_SPACE, PTL_FAIL (said why). */
	int (*open)(struct ptl_ni *ni, ptl_pid_t want);

	/* The interface goes; nothing of it is used by the NAL afterwards. Not locked. May wait for the
	 * NAL's own thread. */
	void (*close)(struct ptl_ni *ni);

	/* Static distance to a process, 0 itself, ULONG_MAX unreachable. PTL_OK or PTL_PROCESS_INVALID. */
	int (*distance)(struct ptl_ni *ni, ptl_process_id_t id, unsigned long *distance);

	/* Gets ready to send to `target`; an address that cannot be reached is no error yet. Locked; may
	 * let go of the lock for a bounded time (a first connection): look handles up afterwards. */
	void (*connect)(struct ptl_ni *ni, ptl_process_id_t target);

	/* Starts a put, get or getput whose arguments are checked. Locked. Calls ptl_engine_send; an
	 * unreachable target is a failure event, not an error. PTL_OK, or PTL_NO_SPACE with nothing
	 * started. With s->inject: a put of these bytes, which are copied before it returns, or
	 * PTL_NO_SPACE (never for 0 bytes), or PTL_PROCESS_INVALID; no events. */
	int (*send)(struct ptl_ni *ni, const struct ptl_start *s);

	/* One round: take in what has arrived, move a bounded amount of long data. Locked. True if
	 * anything was done. */
	bool (*progress)(struct ptl_ni *ni);

	/* Locked on entry, not on return: releases the lock, wakes who waits for events posted, and
	 * sees to it that whatever arrived or was started meanwhile is in somebody's hands. */
	void (*leave)(struct ptl_ni *ni);

	/* Called in every round of a wait; `idle` is how many in a row found nothing to do. Locked, before
	 * and after; may release the lock in between, for others who want it or to wake them, and sleep
	 * until something arrives or `deadline_ns` (CLOCK_MONOTONIC) has passed. */
	void (*idle)(struct ptl_ni *ni, unsigned int idle, uint64_t deadline_ns);

	/* The lock's holder `token` is not us and has not let go for a while. True: it is dead, its lock
	 * may be taken over. May let a stopped holder run to the end of its critical section. */
	bool (*holder_dead)(struct ptl_ni *ni, uint32_t token);

	/* Events of this interface have handlers, or have none any more: while they do, only the owner may
	 * run the engine. Locked. */
	void (*own_events)(struct ptl_ni *ni, bool handlers);

	/* In the child of a fork: lets go of what would keep the parent's interface alive. Calls nothing
	 * but close(). */
	void (*forked)(struct ptl_ni *ni);

	/* One line for portals-info: what was measured and chosen. */
	void (*describe)(char *text, size_t len);
};

extern const struct nal_ops
	*const nal_registry[]; /* ends with NULL; generated from the build options */

#endif
