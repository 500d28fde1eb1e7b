/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Puts and gets by the kernel: of some hundred bytes to some KiB in the program's own memory of a process on this node, in
 * one piece on both sides. By Portals the other side, or this one for it, takes part in what is in shared memory, which is
 * faster for little; the kernel has a price of its own, but copies once, and nobody else is needed. From where on it is
 * faster depends on where the two cores are, and on what the target does. So base/way.h finds out, for each class of
 * lengths of puts and of gets: what all of them take from one flush of a window to the next, and that flush. What went by the
 * kernel is over in the call, and has nothing to be flushed.
 *
 * What the kernel will not copy goes by Portals, which also says what is wrong.
 */
#include "mpi_shim/rma_near.h"

#include <sys/random.h>
#include <unistd.h>

#include "base/config.h"
#include "mpi_shim/attach.h"
#include "mpi_shim/world.h"

/* Less is faster by Portals wherever the cores are; of more both sides copy a half. */
#define LEAST   257
#define MOST    65536
#define CLASSES 8

struct mpi_rma_run mpi_rma_run;

static struct base_way way[2][CLASSES]; /* gets, puts; what 1024 bytes take, in ns */

void mpi_rma_near_init(void)
{
	for (int k = 0; k < CLASSES; k++) {
		base_way_init(&way[0][k], false, false);
		base_way_init(&way[1][k], false, false);
	}
	mpi_rma_run.win = NULL;
}

/* ---- whether it can be done ----------------------------------------------------------------------------- */

void mpi_rma_near_tell(struct mpi_win *win, struct mpi_win_part *part)
{
	if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC || base_config()->ptl_shm_cma == BASE_CMA_OFF ||
	    base_config()->ptl_mpi_rma == BASE_RMA_PORTALS ||
	    getrandom(&win->token, sizeof(win->token), 0) != sizeof(win->token))
		return;
	part->pid = getpid();
	part->token = win->token;
	part->token_at = (uint64_t)(uintptr_t)&win->token;
	part->address = (uint64_t)(uintptr_t)win->base;
}

void mpi_rma_near_hear(const struct mpi_win *win, struct mpi_win_target *t,
		       const struct mpi_win_part *part)
{
	const pid_t pid = (pid_t)part->pid;
	uint64_t token;

	t->pid = 0;
	/* a process of another namespace may have this number here */
	if (pid <= 0 || !win->token || t->base ||
	    mpi_world.id[t->world].nid != mpi_world.id[mpi_world.rank].nid ||
	    !mpi_attach_copy(pid, part->token_at, &token, sizeof(token), false) ||
	    token != part->token)
		return;
	t->pid = pid;
	t->address = part->address;
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static bool always(void)
{
	return base_config()->ptl_mpi_rma == BASE_RMA_ATTACH;
}

bool mpi_rma_near_has(const struct mpi_win_target *t, size_t bytes)
{
	return t->pid && ((bytes >= LEAST && bytes <= MOST) || always());
}

bool mpi_rma_near_begin(const struct mpi_win *win, size_t bytes, bool put, uint64_t *since)
{
	struct mpi_rma_run *run = &mpi_rma_run;
	struct base_way *w;

	*since = 0;
	if (always())
		return true;
	w = &way[put][63 - __builtin_clzll((bytes - 1) / (LEAST - 1))];
	if (!run->win)
		*run = (struct mpi_rma_run){ .win = win, .way = w, .timed = base_way_timed(w) };
	if (run->win == win && run->timed)
		*since = base_now_ns();
	return w->second;
}

void mpi_rma_near_end(size_t bytes, uint64_t since)
{
	if (!since)
		return;
	mpi_rma_run.ns += base_now_ns() - since;
	mpi_rma_run.bytes += bytes;
}

bool mpi_rma_near_copy(struct mpi_win_target *t, uint64_t offset, void *here, size_t bytes,
		       bool put)
{
	if (mpi_attach_copy(t->pid, t->address + offset, here, bytes, put))
		return true;
	t->pid = 0;
	return false;
}

void mpi_rma_near_over(uint64_t since)
{
	struct mpi_rma_run *run = &mpi_rma_run;

	if (since)
		run->ns += base_now_ns() - since;
	base_way_ended(run->way, (run->ns << 10) / (run->bytes | 1));
	run->win = NULL;
}
