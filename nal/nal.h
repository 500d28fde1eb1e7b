/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The contract between Portals and a network abstraction layer (NAL). A NAL brings requests to
 * the target's engine, moves the bytes a delivery asks for, and brings answers back. It uses
 * nothing of portals/ beyond portals/engine/. To add one: a folder nal/NAME
 * with `nal_NAME_ops`, and its word in meson_options.txt.
 *
 * "Locked" in a comment: the owner's region lock (portals/engine/lock.h) is held. Unless said
 * otherwise an operation does not block, and keeps no pointer it was given.
 */
#ifndef NAL_H
#define NAL_H

#include <stddef.h>

#include "portals/engine/engine.h"

struct ptl_ni;

/* Result of `send` for a target that is not a peer of this NAL. Nothing was started. */
#define NAL_ELSEWHERE (-1)

/* The job of an interface, as a network NAL learns of it. */
struct nal_job {
	unsigned int size, own;      /* number of ranks, our rank; size 0: no ids are known */
	const ptl_process_id_t *ids; /* of all ranks */
	const char *const *card;     /* the card of each rank, see ptl_net_card; NULL: no cards */
	unsigned char secret[256];   /* shared by the job's processes; keys are derived from it */
	size_t secret_len;           /* 0: there is no secret */
};

#define NAL_IDLE_ASLEEP UINT32_MAX /* for `idle` of nal_ops */

/*
 * An interface has one host NAL, which is shared memory, and any number of network NALs. The
 * host provides the lock, the doorbell, the waiting, and messages to this process itself. A
 * peer belongs to the NAL that reached it first, in the order of PTL_NAL. An operation marked
 * "Host." or "Network." is NULL in the other kind.
 */
struct nal_ops {
	const char *name;
	bool needs_secret; /* network: needs the secret of nal_job */
	bool by_name;      /* network: used only if PTL_NAL names it */

	/* NULL if the NAL can be used here, else a sentence that says why not. No interface
	 * need exist. It may take a millisecond. */
	const char *(*unusable)(void);

	/* Bytes of the region that it wants. The host's bytes are the first of the NALs' part. */
	size_t (*region_bytes)(void);

	/* Host. Bytes of the region that it maps by itself, segment by segment
	 * (ptl_region_segment), at most `most`. 0: `most` is too little. */
	uint64_t (*far_bytes)(uint64_t most);

	/* Make ni reachable as ni->id.nid and pid `want`, and store the pid in ni->id.pid.
	 * PTL_PID_ANY: choose one that is free on this host.
	 *
	 * Returns PTL_OK, PTL_PID_INVALID (taken), PTL_NO_SPACE or PTL_FAIL. On PTL_FAIL it
	 * has printed the reason. Where PTL_NAL does not name it, it may set ni->unopened, a
	 * lasting string, instead.
	 *
	 * Host: peers may connect from now on. Network: it is opened before the host and takes
	 * an address. With PTL_PID_ANY it may choose the pid, or leave that to the host. */
	int (*open)(struct ptl_ni *ni, ptl_pid_t want);

	/* Network. Write the address that other ranks need to reach us, as text without blanks. */
	void (*card)(struct ptl_ni *ni, char *text, size_t len);

	/* Network. The job is known and the host is open: begin to work. Returns NULL, or the
	 * reason why not; the caller then closes it. Not locked. */
	const char *(*join)(struct ptl_ni *ni, const struct nal_job *job);

	/* Close. The NAL uses nothing of the interface afterwards. Not locked. It may wait for
	 * the NAL's own thread, and a bounded time for messages in flight. The host is closed
	 * last. */
	void (*close)(struct ptl_ni *ni);

	/* Distance to a peer of this NAL: 0 for this process, ULONG_MAX if the peer is gone.
	 * Locked. */
	unsigned long (*distance)(struct ptl_ni *ni, ptl_process_id_t id);

	/* Is `target` a peer of this NAL? Locked. */
	bool (*knows)(struct ptl_ni *ni, ptl_process_id_t target);

	/* Get ready to send to `target`, which is no NAL's peer yet. True: it is this NAL's
	 * peer from now on. An address that may still turn out to be unreachable counts.
	 * Locked. A first connection may release the lock for a bounded time, so look handles
	 * up again afterwards. */
	bool (*connect)(struct ptl_ni *ni, ptl_process_id_t target);

	/* May be NULL. End the connection to `id` and release what it takes; nothing if it is no
	 * peer. Operations under way fail. Messages injected before still arrive. It may release
	 * the lock for a bounded time. Locked. */
	void (*drop)(struct ptl_ni *ni, ptl_process_id_t id);

	/* Start a put, get or getput with checked arguments, and call ptl_engine_send. Locked.
	 * A target that is no longer reachable is a failure event, not an error. Returns
	 * PTL_OK, PTL_NO_SPACE (nothing was started) or NAL_ELSEWHERE.
	 *
	 * With s->inject: put these bytes, and copy them before returning. There are no
	 * events. Returns PTL_OK, PTL_NO_SPACE (never for 0 bytes), PTL_PROCESS_INVALID or
	 * NAL_ELSEWHERE. */
	int (*send)(struct ptl_ni *ni, const struct ptl_start *s);

	/* Host, see PtlPieceLength. Bytes of the segments that suit long data to or from
	 * `target` now. 0: as a whole, or `target` is not a peer of this NAL. Locked. */
	uint64_t (*segment)(struct ptl_ni *ni, ptl_process_id_t target);

	/* One round: accept arrived messages, and move a bounded amount of long data. Locked.
	 * True: it did something. */
	bool (*progress)(struct ptl_ni *ni);

	/* Network. The application is about to sleep on the doorbell: the next arrival must
	 * ring it, once. Returns the latest time at which the NAL needs progress
	 * (CLOCK_MONOTONIC, ns), 0: at once. Locked. */
	uint64_t (*arm)(struct ptl_ni *ni);

	/* Host. Another NAL accepted something while the application waited. Locked. */
	void (*found)(struct ptl_ni *ni);

	/* Host. Locked on entry, not on return. Release the lock, wake the threads that wait
	 * for posted events, and make sure that somebody handles everything that arrived or
	 * was started meanwhile. `lazily`: lazy messages (ptl_start.lazy) may stay where they
	 * are if no thread waits. */
	void (*leave)(struct ptl_ni *ni, bool lazily);

	/* Host. Called in every round of a wait; `idle` counts the rounds in a row that found
	 * nothing. Poll for a moment. Locked before and after. It may release the lock in
	 * between, for threads that want it or to wake them. It may also sleep until something
	 * arrives or `deadline_ns` (CLOCK_MONOTONIC) passes. True: it has released the lock.
	 * NAL_IDLE_ASLEEP: sleep without polling first. */
	bool (*idle)(struct ptl_ni *ni, unsigned int idle, uint64_t deadline_ns);

	/* Host. The lock's holder `token` is another process that has held it for a while.
	 * True: the holder is dead and its lock may be taken over. It may resume a stopped
	 * holder until the end of its critical section. */
	bool (*holder_dead)(struct ptl_ni *ni, uint32_t token);

	/* Host. The interface has event handlers from now on, or has none any more. While it
	 * has some, only the owner may run the engine, because only it can call them. Locked. */
	void (*own_events)(struct ptl_ni *ni, bool handlers);

	/* Host. ni->neighbours is known: the number of processes that share the cores,
	 * whatever NAL reaches them. Locked. */
	void (*counted)(struct ptl_ni *ni);

	/* In the child of a fork: close whatever would keep the parent's interface alive. It
	 * calls only close(). */
	void (*forked)(struct ptl_ni *ni);

	/* Network, or NULL. Write the means it works by on this interface, for reports. Not
	 * locked. */
	void (*working)(struct ptl_ni *ni, char *text, size_t len);

	/* May be NULL. Why `id` is another NAL's peer. A network NAL that has an address of
	 * the peer tells how the attempt to reach it ended. NULL: that was not the reason.
	 * Locked. */
	const char *(*failed_over)(struct ptl_ni *ni, ptl_process_id_t id);

	/* One line for portals-info: measurements and choices. */
	void (*describe)(char *text, size_t len);

	/* May be NULL. For portals-info, usable or not: one line for each of the alternatives
	 * it chooses from. */
	void (*list)(void (*line)(const char *text));
};

/* The part of a rank's card that the NAL `name` wrote, *len characters. NULL: the card has none. */
const char *ptl_net_card(const char *card, const char *name, size_t *len);

extern const struct nal_ops
	*const nal_registry[]; /* ends with NULL; generated from the build options */
/* NALs that were asked for at build time and could not be built. Ends with NULL. */
extern const char *const nal_left_out[];

#endif
