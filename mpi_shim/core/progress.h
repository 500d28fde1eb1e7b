/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Progress: rounds that take in what Portals has to tell, and let go on what does not wait for the
 * user. The queues of the events of requests are of this room; the rooms above register other ones,
 * and what else there is to do, once, when they start.
 *
 * All of it is called with the global lock, which is let go while a round waits. What a round calls
 * must not make progress itself.
 */
#ifndef MPI_SHIM_PROGRESS_H
#define MPI_SHIM_PROGRESS_H

#include <portals3_ext.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi_shim/core/request.h"

/* Portal table indices. */
enum {
	MPI_PT_RECV = 40,
	MPI_PT_READ = 41,
	MPI_PT_CREDIT = 42,
	MPI_PT_FLAG = 43,
	MPI_PT_RMA = 44,
	MPI_PT_CANCEL = 45
};

/* ---- what rounds call ----------------------------------------------------------------------- */

struct mpi_progress_hooks {
	/* Takes what comes while we are in Portals, before an event tells of it. */
	ptl_inline_handler_t offered;
	/* At the end of a round, whose events are all handled; any: there were some. */
	void (*handled)(bool any);
	/* Looks after the peers that something waits for. Slow. */
	void (*check)(void);
};

int mpi_progress_init(const struct mpi_progress_hooks *hooks);

/* Another queue, whose events go to `event`; two at most. */
void mpi_progress_add_queue(ptl_handle_eq_t eq, void (*event)(const ptl_event_t *ev));

/* Pieces of memory that others reach by Portals: who waits shall look for what comes to them. */
extern uint32_t mpi_exposed;

/* ---- queues of requests --------------------------------------------------------------------- */

/* A queue for the events of posted receives and sends. Each reserves what it may cause. */
struct mpi_eq {
	ptl_handle_eq_t handle;
	uint32_t room, reserved;
};

struct mpi_queues {
	const struct mpi_request *awaited; /* alone, by the round under way; or NULL */
	int neqs;
	struct mpi_eq
		eq[16]; /* [0 .. neqs), small ones first; an operation takes the first with room */
};

extern struct mpi_queues mpi_queues;

/* Room for `n` events of *r; sets r->eq. MPI_SUCCESS or an error. */
int mpi_events_reserve(struct mpi_request *r, uint32_t n);
void mpi_events_release(struct mpi_request *r, uint32_t n);

/* ---- rounds --------------------------------------------------------------------------------- */

/* One round: takes in events. `block`: waits for one, a bounded time, when there is none; the
 * global lock is let go meanwhile. Returns whether there was any. */
bool mpi_progress(bool block);

/* Some microseconds' rounds at most, until something comes or *word is `least`: of a rank that
 * has a processor, while others reach its memory. */
void mpi_progress_watch(const _Atomic uint64_t *word, uint64_t least);

/* A round that waits for events of this queue alone: where they come without anything else going
 * on. */
bool mpi_progress_queue(ptl_handle_eq_t *eq);

/* Rounds until the request is done. */
void mpi_progress_until(const struct mpi_request *r);

/* Between rounds that do not wait, of who waits all the same: lets others have the processor,
 * and the lock, if it is time. Without threads Portals does that. */
void mpi_yield(void);

/* Takes everything out of this queue. Returns whether there was anything. */
bool mpi_progress_drain(ptl_handle_eq_t *eq);

/* The next event of a queue that nobody waits at. False: none. */
bool mpi_event_get(ptl_handle_eq_t eq, ptl_event_t *ev);

/* Something was completed or has arrived other than in the call that waits for it: threads that
 * wait look again. */
void mpi_progress_wake(void);
/* A thread that waits in Portals comes out of it: there is a queue that it does not look at. */
void mpi_progress_kick(void);

/* Of a clock that only goes forward, and is cheap to read. */
int64_t mpi_now_ms(void);
/* Has the peers checked (the hook), now or at most every 250 ms. */
void mpi_check_peers(void);
void mpi_check_peers_now_and_then(void);

#endif
