/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Puts and gets by cross-memory attach (CMA): of 257 bytes to 64 KiB, contiguous on both
 * sides, to or from the program's own memory in a process on this node.
 *
 * By Portals the target takes part in what is in shared memory, or this process does so on its
 * behalf. That is faster for short data. CMA has a price of its own, but the kernel copies
 * once, and nobody else is needed. The length from which it is faster depends on where the two
 * cores are, and on what the target does. So a tuner (base/tuner.h) finds out, for each length
 * class of puts and of gets.
 *
 * The tuner measures runs. A run lasts while an operation of the window is in progress, and
 * includes the flushes until none is. A CMA copy is complete when the call returns. A run is
 * for the class of its longest operations; operations of other classes do not count. If
 * operations of two classes are equally long, runs are for either in turn. Operations with a
 * request do not count either, as their end is not in a flush.
 *
 * The longest class has a third path, by Portals in segments. It is faster than the whole on
 * some machines, and half as fast on others.
 *
 * An operation that CMA cannot do goes by Portals, which also reports the error.
 */
#include "mpi_shim/rma/cma.h"

#include <unistd.h>

#include "base/config.h"
#include "base/random.h"
#include "mpi_shim/core/cma.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/core/world.h"

/* Shorter data are faster by Portals wherever the cores are. For longer data each side copies
 * half. */
#define LEAST   257
#define MOST    65536
#define CLASSES 8

static struct base_tuner path[2][CLASSES]; /* gets, puts; the cost is in ns per 1024 bytes */

void mpi_rma_cma_init(void)
{
	for (int k = 0; k < CLASSES; k++) {
		const bool three = k == CLASSES - 1;
		const unsigned int paths = three ? 3 : 2,
				   now = three ? MPI_RMA_IN_SEGMENTS : MPI_RMA_BY_PORTALS;

		base_tuner_init(&path[0][k], paths, now);
		base_tuner_init(&path[1][k], paths, now);
	}
}

/* ---- whether it can be done ------------------------------------------------------------------ */

void mpi_rma_cma_advertise(struct mpi_win *win, struct mpi_win_part *part)
{
	if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC || base_config()->ptl_shm_cma == BASE_CMA_OFF ||
	    base_config()->ptl_mpi_rma == BASE_RMA_PORTALS ||
	    !base_random(&win->token, sizeof(win->token)))
		return;
	part->pid = getpid();
	part->token = win->token;
	part->token_at = (uint64_t)(uintptr_t)&win->token;
	part->address = (uint64_t)(uintptr_t)win->base;
}

void mpi_rma_cma_hear(const struct mpi_win *win, struct mpi_win_target *t,
		      const struct mpi_win_part *part)
{
	const pid_t pid = (pid_t)part->pid;
	uint64_t token;

	t->pid = 0;
	/* a process of another namespace may have this number here */
	if (pid <= 0 || !win->token || t->base ||
	    mpi_world.id[t->world].nid != mpi_world.id[mpi_world.rank].nid ||
	    !mpi_cma_copy(pid, part->token_at, &token, sizeof(token), false) ||
	    token != part->token)
		return;
	t->pid = pid;
	t->address = part->address;
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool always(void)
{
	return base_config()->ptl_mpi_rma == BASE_RMA_CMA;
}

bool mpi_rma_cma_has(const struct mpi_win_target *t, size_t bytes)
{
	/* another process may have the number of a dead one */
	return t->pid && !mpi_proto.peer[t->world].dead &&
	       ((bytes >= LEAST && bytes <= MOST) || always());
}

static bool under_way(const struct mpi_win *win)
{
	return win->pending || win->along;
}

/* End the run. It counts only if no other window's run has ended the tuner's phase before. */
static void run_over(struct mpi_win_run *run)
{
	if (run->path->phase == run->phase)
		base_tuner_ended(run->path, (run->ns << 10) / (run->bytes | 1));
	run->path = NULL;
}

/* Let an operation of `bytes` bytes, with tuner w, join the run. The run becomes one for its
 * class, or goes on for another. */
static void join_run(struct mpi_win_run *run, struct base_tuner *w, size_t bytes)
{
	static unsigned int turn;

	if (run->path && bytes <= run->longest &&
	    (bytes < run->longest || w == run->path || !run->yields))
		return;
	*run = (struct mpi_win_run){
		.path = w,
		.phase = w->phase,
		.timed = base_tuner_timed(w),
		.yields = !run->path && turn++ % 2,
		.longest = bytes,
	};
}

enum mpi_rma_path mpi_rma_cma_begin(struct mpi_win *win, size_t bytes, bool put, bool request,
				    uint64_t *since)
{
	struct mpi_win_run *run = &win->run;
	struct base_tuner *w;

	*since = 0;
	if (always())
		return MPI_RMA_BY_KERNEL;
	w = &path[put][63 - __builtin_clzll((bytes - 1) / (LEAST - 1))];
	if (request)
		return w->now;
	if (run->path && !under_way(win))
		run_over(run);
	join_run(run, w, bytes);
	if (run->path == w && run->timed)
		*since = base_now_ns();
	return w->now;
}

void mpi_rma_cma_end(struct mpi_win *win, size_t bytes, uint64_t since)
{
	if (!since)
		return;
	win->run.ns += base_now_ns() - since;
	win->run.bytes += bytes;
}

bool mpi_rma_cma_copy(struct mpi_win_target *t, uint64_t offset, void *here, size_t bytes, bool put)
{
	if (mpi_cma_copy(t->pid, t->address + offset, here, bytes, put))
		return true;
	t->pid = 0;
	return false;
}

void mpi_rma_cma_waited(struct mpi_win *win, uint64_t since)
{
	if (since)
		win->run.ns += base_now_ns() - since;
	if (!under_way(win))
		run_over(&win->run);
}
