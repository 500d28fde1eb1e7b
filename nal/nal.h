/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The contract between Portals and a network abstraction layer. A NAL brings requests to the
 * target's engine, moves the bytes a landing asks for, and brings answers back; it knows no
 * Portals objects beyond what portals/engine/engine.h takes and gives. Adding one: a folder
 * nal/NAME with `nal_NAME_ops`, and its word in meson_options.txt.
 *
 * The owner's lock (portals/engine/lock.h) is held where a comment says "locked". Unless said
 * otherwise an operation does not block and keeps no pointer it was given.
 */
#ifndef NAL_H
#define NAL_H

#include <stddef.h>

#include "portals/engine/engine.h"

struct ptl_ni;

/* What `send` returns for a target that is no peer of this NAL: nothing was started. */
#define NAL_ELSEWHERE (-1)

/* What a network NAL learns of the job of its interface. */
struct nal_job {
	unsigned int size, own;      /* ranks; 0: the ids of a job are not known */
	const ptl_process_id_t *ids; /* of all ranks */
	const char *const *card;     /* what each rank published, see ptl_net_card; NULL: nothing */
	unsigned char secret[256];   /* that the job's processes share, from which keys are made */
	size_t secret_len;           /* 0: there is none */
};

/*
 * An interface has a host, which is the shared-memory NAL: it has the lock, the bell, the
 * waiting and the messages to ourselves; and network NALs beside it. A peer belongs to the NAL
 * that reached it first, in the order of PTL_NAL. Operations of the host only and of network
 * NALs only are NULL in the others.
 */
struct nal_ops {
	const char *name;
	bool needs_secret; /* network: does not work without that of nal_job */
	bool by_name;      /* network: used only if PTL_NAL names it */

	/* Can it be used here? NULL, or a sentence that says why not. No interface need exist.
	 * May take a millisecond. */
	const char *(*unusable)(void);

	/* Bytes it wants in every region. The host's are the first of the NALs' part. */
	size_t (*region_bytes)(void);

	/* Host. Bytes of the region that it maps by itself, piece by piece (ptl_region_segment): as
	 * many as it wants, but no more than `most`. 0: that is too little. */
	uint64_t (*far_bytes)(uint64_t most);

	/* Makes ni reachable as ni->id.nid and pid `want` (PTL_PID_ANY: one that is free on this
	 * host), which it stores in ni->id.pid. PTL_OK, PTL_PID_INVALID (taken), PTL_NO_SPACE,
	 * PTL_FAIL (said why, or, where nobody asked for this NAL, set ni->unopened, which stays
	 * as it is). Of the host: from now on peers may connect. A network NAL comes before the
	 * host, takes an address, and with PTL_PID_ANY may choose the pid or leave it as it is
	 * for the host to choose. */
	int (*open)(struct ptl_ni *ni, ptl_pid_t want);

	/* Network. What the other ranks must know to reach us, as text without blanks. */
	void (*card)(struct ptl_ni *ni, char *text, size_t len);

	/* Network. The job is known, the host is open: begins to work. NULL, or why it will not;
	 * it is closed then. Not locked. */
	const char *(*join)(struct ptl_ni *ni, const struct nal_job *job);

	/* The interface goes; nothing of it is used by the NAL afterwards. Not locked. May wait
	 * for the NAL's own thread, and a bounded time for what is still on its way. The host
	 * comes last. */
	void (*close)(struct ptl_ni *ni);

	/* Distance to a peer of this NAL, 0 itself, ULONG_MAX if it is not there any more.
	 * Locked. */
	unsigned long (*distance)(struct ptl_ni *ni, ptl_process_id_t id);

	/* Is `target` a peer of this NAL? Locked. */
	bool (*knows)(struct ptl_ni *ni, ptl_process_id_t target);

	/* Gets ready to send to `target`, which is nobody's peer. True: it is this NAL's from
	 * now on; an address that may yet turn out to be unreachable counts. Locked; may let go
	 * of the lock for a bounded time (a first connection): look handles up afterwards. */
	bool (*connect)(struct ptl_ni *ni, ptl_process_id_t target);

	/* Starts a put, get or getput whose arguments are checked. Locked. Calls
	 * ptl_engine_send; a target that is no longer reachable is a failure event, not an
	 * error. PTL_OK, or PTL_NO_SPACE with nothing started, or NAL_ELSEWHERE. With s->inject:
	 * a put of these bytes, which are copied before it returns, or PTL_NO_SPACE (never for 0
	 * bytes), or PTL_PROCESS_INVALID, or NAL_ELSEWHERE; no events. */
	int (*send)(struct ptl_ni *ni, const struct ptl_start *s);

	/* Host, see PtlPieceLength: bytes of the pieces in which long data had better go to or
	 * from `target` at this moment, 0 as a whole; 0 also if it is no peer of this NAL.
	 * Locked. */
	uint64_t (*segment)(struct ptl_ni *ni, ptl_process_id_t target);

	/* One round: take in what has arrived, move a bounded amount of long data. Locked. True if
	 * anything was done. */
	bool (*progress)(struct ptl_ni *ni);

	/* Network. The application is about to sleep on the bell: from now on, once, whatever
	 * arrives rings it. Returns when the NAL wants progress at the latest (CLOCK_MONOTONIC),
	 * 0: at once. Locked. */
	uint64_t (*arm)(struct ptl_ni *ni);

	/* Host. Another NAL took something in while the application waited. Locked. */
	void (*found)(struct ptl_ni *ni);

	/* Host. Locked on entry, not on return: releases the lock, wakes who waits for events
	 * posted, and sees to it that whatever arrived or was started meanwhile is in somebody's
	 * hands. Lazily: but for what was sent to be taken in calls that look for it
	 * (ptl_start.lazy), if nobody waits. */
	void (*leave)(struct ptl_ni *ni, bool lazily);

	/* Host. Called in every round of a wait; `idle` is how many in a row found nothing to
	 * do. Looks out for something to do for a moment. Locked, before and after; may release
	 * the lock in between, for others who want it or to wake them, and sleep until something
	 * arrives or `deadline_ns` (CLOCK_MONOTONIC) has passed. True: it has released the lock. */
	bool (*idle)(struct ptl_ni *ni, unsigned int idle, uint64_t deadline_ns);

	/* Host. The lock's holder `token` is not us and has not let go for a while. True: it is
	 * dead, its lock may be taken over. May let a stopped holder run to the end of its
	 * critical section. */
	bool (*holder_dead)(struct ptl_ni *ni, uint32_t token);

	/* Host. Events of this interface have handlers, or have none any more: while they do,
	 * only the owner may run the engine. Locked. */
	void (*own_events)(struct ptl_ni *ni, bool handlers);

	/* Host. ni->neighbours has become known: how many want the cores, by whatever NAL they
	 * are reached. Locked. */
	void (*counted)(struct ptl_ni *ni);

	/* In the child of a fork: lets go of what would keep the parent's interface alive. Calls
	 * nothing but close(). */
	void (*forked)(struct ptl_ni *ni);

	/* Network, or NULL. What it works by on this interface, for reports. Not locked. */
	void (*working)(struct ptl_ni *ni, char *text, size_t len);

	/* NULL, or: why `id` is another NAL's peer; of a network that has an address of it, what
	 * came of the attempt to reach it. NULL: that was not the reason. Locked. */
	const char *(*passed)(struct ptl_ni *ni, ptl_process_id_t id);

	/* One line for portals-info: what was measured and chosen. */
	void (*describe)(char *text, size_t len);

	/* Or NULL. For portals-info, whether it can be used or not: what it chooses among, a
	 * line for each. */
	void (*list)(void (*line)(const char *text));
};

/* The part of a rank's card that the NAL `name` wrote, *len characters; NULL: it has none. */
const char *ptl_net_card(const char *card, const char *name, size_t *len);

extern const struct nal_ops
	*const nal_registry[]; /* ends with NULL; generated from the build options */
/* Names of those that were asked for and could not be built; ends with NULL. */
extern const char *const nal_left_out[];

#endif
