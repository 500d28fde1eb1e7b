/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Puts and gets by the kernel: of some hundred bytes to 64 KiB in the program's own memory of a
 * process on this node, in one piece on both sides. By Portals the other side, or this one for
 * it, takes part in what is in shared memory, which is faster for little; the kernel has a price
 * of its own, but copies once, and nobody else is needed. From where on it is faster depends on
 * where the two cores are, and on what the target does. So base/tuner.h finds out, for each class
 * of lengths of puts and of gets: what they take in a *run*, which goes on while something of a
 * window is under way, and the flushes until nothing is. What went by the kernel is over in the
 * call. A run is for the class of the longest operations in it, those of other classes do not
 * count; of two that are as long for either in turn. Nor do those with a request, whose end is
 * not in a flush. Those of the longest class have a third way, by Portals in pieces, which some
 * machines are faster by than as a whole, and others half as fast.
 *
 * What the kernel will not copy goes by Portals, which also says what is wrong.
 */
#include "mpi_shim/rma/cma.h"

#include <unistd.h>

#include "base/config.h"
#include "base/random.h"
#include "mpi_shim/core/cma.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/core/world.h"

/* Less is faster by Portals wherever the cores are; of more both sides copy a half. */
#define LEAST   257
#define MOST    65536
#define CLASSES 8

static struct base_tuner path[2][CLASSES]; /* gets, puts; what 1024 bytes take, in ns */

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

void mpi_rma_cma_tell(struct mpi_win *win, struct mpi_win_part *part)
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

/* One of another window may have come before. */
static void run_over(struct mpi_win_run *run)
{
	if (run->path->phase == run->phase)
		base_tuner_ended(run->path, (run->ns << 10) / (run->bytes | 1));
	run->path = NULL;
}

/* An operation of this class, and so long: the run is for it, or goes on for another. */
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
