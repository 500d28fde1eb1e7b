/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Puts and gets by cross-memory attach (CMA): the kernel copies to and from the memory of a
 * process on this node. cma.c explains how a path is chosen.
 *
 * CMA only moves contiguous data. An operation that fails here goes by Portals, which also
 * reports the error. Dynamic windows and accumulates must not come here: an accumulate has to
 * be atomic.
 *
 * All functions are called with the library's lock held, and none waits for another process.
 */
#ifndef MPI_SHIM_RMA_CMA_H
#define MPI_SHIM_RMA_CMA_H

#include "base/cpu.h"
#include "mpi_shim/rma/win.h"

void mpi_rma_cma_init(void);

/* mpi_rma_cma_advertise() fills in what the other ranks must know of this rank's memory, or leaves
 * pid 0 if CMA is not used for the window. mpi_rma_cma_hear() takes over another rank's part,
 * after a CMA read of its token has shown that the process is the right one. */
void mpi_rma_cma_advertise(struct mpi_win *win, struct mpi_win_part *part);
void mpi_rma_cma_hear(const struct mpi_win *win, struct mpi_win_target *t,
		      const struct mpi_win_part *part);

/* MPI_RMA_IN_SEGMENTS is only chosen in the class of the longest operations. */
enum mpi_rma_path { MPI_RMA_BY_PORTALS, MPI_RMA_BY_KERNEL, MPI_RMA_IN_SEGMENTS };

/* Whether a contiguous operation of so many bytes may go by CMA. */
bool mpi_rma_cma_has(const struct mpi_win_target *t, size_t bytes);
/* Choose the path of an operation for which mpi_rma_cma_has() is true. *since is the time in
 * nanoseconds at which it began, or 0 if it is not timed; hand it to mpi_rma_cma_end(). An
 * operation with a request is never timed, because it does not end in a flush. */
enum mpi_rma_path mpi_rma_cma_begin(struct mpi_win *win, size_t bytes, bool put, bool request,
				    uint64_t *since);
void mpi_rma_cma_end(struct mpi_win *win, size_t bytes, uint64_t since);
/* Copy `bytes` bytes between `here` and the target's memory. `offset` counts bytes from the
 * beginning of that memory. False: this operation and all later ones to the target must go by
 * Portals. */
bool mpi_rma_cma_copy(struct mpi_win_target *t, uint64_t offset, void *here, size_t bytes,
		      bool put);

/* Bracket a flush of the window: hand what mpi_rma_cma_flush() returns to mpi_rma_cma_flushed().
 * It is in nanoseconds, or 0 if the run is not timed. */
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
