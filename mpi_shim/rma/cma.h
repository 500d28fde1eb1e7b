/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Puts and gets by the kernel, to and from a process on this node: see cma.c.
 */
#ifndef MPI_SHIM_RMA_CMA_H
#define MPI_SHIM_RMA_CMA_H

#include "base/cpu.h"
#include "mpi_shim/rma/win.h"

void mpi_rma_cma_init(void);

/* What this rank says of its memory, and what another has said. */
void mpi_rma_cma_tell(struct mpi_win *win, struct mpi_win_part *part);
void mpi_rma_cma_hear(const struct mpi_win *win, struct mpi_win_target *t,
		      const struct mpi_win_part *part);

/* The last one for long ones only. */
enum mpi_rma_path { MPI_RMA_BY_PORTALS, MPI_RMA_BY_KERNEL, MPI_RMA_IN_SEGMENTS };

/* Whether so many bytes in one piece have a choice. */
bool mpi_rma_cma_has(const struct mpi_win_target *t, size_t bytes);
/* Which way one goes that has; what it takes is known at its end, unless a request is waited
 * for. *since: for that. */
enum mpi_rma_path mpi_rma_cma_begin(struct mpi_win *win, size_t bytes, bool put, bool request,
				    uint64_t *since);
void mpi_rma_cma_end(struct mpi_win *win, size_t bytes, uint64_t since);
/* `offset` counts from the beginning of the target's memory. False: it shall go by Portals, now
 * and from now on. */
bool mpi_rma_cma_copy(struct mpi_win_target *t, uint64_t offset, void *here, size_t bytes,
		      bool put);

/* A flush of the window begins, and ends. */
static inline uint64_t mpi_rma_cma_flush(const struct mpi_win *win)
{
	return win->run.path && win->run.timed ? base_now_ns() : 0;
}

void mpi_rma_cma_waited(struct mpi_win *win, uint64_t since);

static inline void mpi_rma_cma_flushed(struct mpi_win *win, uint64_t since)
{
	if (win->run.path)
		mpi_rma_cma_waited(win, since);
}

#endif
