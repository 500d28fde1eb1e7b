/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Progress. A round takes events from Portals, handles them, and advances every operation that
 * does not wait for the user. This file owns the event queues of requests. The layers above
 * register other queues, and further work for each round, once at start.
 *
 * All functions need the global lock, which is released while a round waits. Functions that a
 * round calls must not make progress themselves.
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
	MPI_PT_CANCEL = 45,
	MPI_PT_PART = 46
};

/* ---- called by rounds ----------------------------------------------------------------------- */

struct mpi_progress_hooks {
	/* Inline handler: takes arrivals while the process is in Portals, before their event. */
	ptl_inline_handler_t inline_handler;
	/* Called at the end of a round, when all its events are handled. `any`: there were
	 * some. */
	void (*handled)(bool any);
	/* Checks the peers that something waits for. Slow. */
	void (*check)(void);
};

int mpi_progress_init(const struct mpi_progress_hooks *hooks);
/* Exchanges the hooks of a library that runs. */
void mpi_progress_rehook(const struct mpi_progress_hooks *hooks);
/* To be called when mpi_events_watched has changed (events.h). */
void mpi_progress_mode_changed(void);
/* From now on mpi_world.threaded is set. No thread is in the library. */
int mpi_progress_use_threads(void);

/* Adds a queue, whose events go to `event`; two at most. */
void mpi_progress_add_queue(ptl_handle_eq_t eq, void (*event)(const ptl_event_t *ev));

/* Number of memory regions that others reach through Portals: a waiting process must poll for
 * what comes to them. */
extern uint32_t mpi_exposed;
/* Number of operations in progress whose end comes without an event: a waiting process looks for
 * it every millisecond. */
extern uint32_t mpi_polled;

/* ---- queues of requests --------------------------------------------------------------------- */

/* An event queue for posted receives and sends. Each operation reserves the events it may
 * cause. */
struct mpi_eq {
	ptl_handle_eq_t handle;
	uint32_t room, reserved;
};

struct mpi_queues {
	/* The only request that the present round waits for, or NULL. */
	const struct mpi_request *awaited;
	int neqs;
	/* The first neqs are in use, small ones first. An operation uses the first with room. */
	struct mpi_eq eq[16];
};

extern struct mpi_queues mpi_queues;

/* Reserves room for `n` events of *r and sets r->eq. MPI_SUCCESS or an error with a kept text. */
int mpi_events_reserve(struct mpi_request *r, uint32_t n);
void mpi_events_release(struct mpi_request *r, uint32_t n);

/* ---- rounds --------------------------------------------------------------------------------- */

/* Runs one round. With `block` and no event at hand it waits for one, for a bounded time, and
 * releases the global lock meanwhile. Returns whether anything has come; with threads, false
 * after a wait. */
bool mpi_progress(bool block);

/* Polls for some microseconds at most, until something arrives or *word is at least `least`.
 * For a rank that has a processor of its own, while other processes access its memory. */
void mpi_progress_watch(const _Atomic uint64_t *word, uint64_t least);

/* Runs a round that waits for events of this queue alone; with threads, of all queues. For
 * events that come without any other progress. */
bool mpi_progress_queue(ptl_handle_eq_t *eq);

/* Runs rounds until the request is done. */
void mpi_progress_until(const struct mpi_request *r);

/* Yields the processor and the lock, if it is time. For a caller that waits in rounds that do
 * not block. Without threads Portals yields by itself. */
void mpi_yield(void);

/* Handles everything in this queue. Returns whether there was anything. */
bool mpi_progress_drain(ptl_handle_eq_t *eq);

/* Takes the next event of a queue that no thread waits at. False: none. */
bool mpi_event_get(ptl_handle_eq_t eq, ptl_event_t *ev);

/* Makes waiting threads check again: an operation has ended, or something has arrived, outside
 * the call that waits for it. */
void mpi_progress_wake(void);
/* Makes a thread that waits in Portals return, since there is a queue that it does not poll. */
void mpi_progress_kick(void);

/* Milliseconds of a monotonic clock that is cheap to read. */
int64_t mpi_now_ms(void);
/* Run the hook that checks the peers: now, or at most every 250 ms. */
void mpi_check_peers(void);
void mpi_check_peers_now_and_then(void);

#endif
