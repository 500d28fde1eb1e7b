/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The waits of this process, for portals-stat and mpiexec (base/waits.h). A wait for one
 * request is seen by itself; other waits describe themselves with a struct on their stack. The
 * file is written when a wait has lasted for a quarter of a second, and each quarter after
 * that; a shorter wait costs nothing, or a few stores.
 *
 * All functions need the global lock.
 */
#ifndef MPI_SHIM_WAITING_H
#define MPI_SHIM_WAITING_H

#include <mpi.h>

#include "base/cpu.h"
#include "base/waits.h"

struct mpi_comm;
struct mpi_request;

/* A wait in progress. */
struct mpi_wait {
	enum base_wait_kind kind;
	const struct mpi_comm *comm;       /* NULL: none */
	const struct mpi_request *request; /* REQUEST */
	const MPI_Request *any;            /* ANY: `n` handles */
	int n;
	int peer, tag;   /* world rank, or BASE_WAITS_ANY */
	uint64_t number; /* tells it from the next wait of the same kind */
	struct mpi_wait *next;
	uintptr_t thread;
	int64_t since_ms; /* when it was first seen */
	int frames;
	uint64_t frame[BASE_WAITS_FRAMES];
};

extern struct mpi_wait *mpi_waits; /* in progress, the latest first */

/* Begins a wait, which stays where it is until mpi_wait_end(). The caller sets what else its
 * kind has: `request`, or `any` and `n`. */
static inline void mpi_wait_begin(struct mpi_wait *w, enum base_wait_kind kind,
				  const struct mpi_comm *comm, int peer, int tag, uint64_t number)
{
	w->kind = kind;
	w->comm = comm;
	w->request = NULL;
	w->any = NULL;
	w->n = 0;
	w->peer = peer;
	w->tag = tag;
	w->number = number;
	w->thread = base_thread();
	w->since_ms = 0;
	w->frames = 0;
	w->next = mpi_waits;
	mpi_waits = w;
}

static inline void mpi_wait_end(const struct mpi_wait *w)
{
	struct mpi_wait **at = &mpi_waits;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

/* For a thread that waits for another one to poll: note where it is, once its wait is long. */
void mpi_waits_seen(void);

/* A wait that is long: write the file. `awaited`: the request that the calling thread waits
 * for, or NULL. Called at most every quarter of a second. */
void mpi_waiting_write(const struct mpi_request *awaited);

/* Adds what a layer above knows to what is written; two at most. */
void mpi_waiting_describe_also(void (*describe)(struct base_waits_body *body));

/* Makes the file. Without one this process is only missing in reports. */
void mpi_waiting_init(void);
void mpi_waiting_fini(void);

#endif
