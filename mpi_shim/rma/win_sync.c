/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Synchronization of windows: fence and locks; win_pscw.c has post and start. All memory is
 * always reachable, so epochs concern this library alone: they say which calls are errors, and
 * which operations are complete when.
 */
#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/rma/rma.h"

int mpi_win_wrong(const char *what)
{
	return mpi_fail(MPI_ERR_RMA_SYNC, "%s", what);
}

int mpi_win_check_assert(int assert, int allowed)
{
	if (!(assert & ~allowed))
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_ASSERT, "the assertions %d are not those of this function", assert);
}

static const char *open_epoch(const struct mpi_win *win)
{
	if (win->access == MPI_ACCESS_START)
		return "an epoch that MPI_Win_start began is open";
	if (win->access == MPI_ACCESS_LOCK)
		return "a target is locked";
	if (win->access == MPI_ACCESS_LOCK_ALL)
		return "all targets are locked";
	return NULL;
}

int mpi_win_check_closed(const struct mpi_win *win)
{
	const char *open = open_epoch(win);

	if (!open && win->access == MPI_ACCESS_FENCE && win->fence_used)
		open = "operations were started in the epoch of an MPI_Win_fence, which another "
		       "one "
		       "has to end";
	return open ? mpi_win_wrong(open) : MPI_SUCCESS;
}

int mpi_win_check_idle(const struct mpi_win *win)
{
	const char *open = open_epoch(win);

	if (!open && win->exposed)
		open = "an epoch that MPI_Win_post began is open";
	return open ? mpi_win_wrong(open) : MPI_SUCCESS;
}

/* ---- fence ----------------------------------------------------------------------------------- */

int mpi_win_fence(int assert, struct mpi_win *win)
{
	int err = mpi_win_check_assert(assert, MPI_MODE_NOSTORE | MPI_MODE_NOPUT |
						       MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED),
	    rc;

	if (!err)
		err = mpi_win_check_idle(win);
	if (!err && assert &MPI_MODE_NOPRECEDE && win->fence_used)
		err = mpi_fail(MPI_ERR_ASSERT,
			       "MPI_MODE_NOPRECEDE is given, but operations precede");
	if (err)
		return err;
	err = mpi_rma_flush_all(win);
	mpi_win_settle();
	/* where Portals moves the data, a wait for messages polls all the time; a wait in the
	 * area polls it now and then */
	rc = win->shmcoll ? mpi_barrier(win->comm) : mpi_coll_barrier(win->comm);
	mpi_win_settle();
	win->fence_used = false;
	win->access = assert &MPI_MODE_NOSUCCEED ? MPI_ACCESS_NONE : MPI_ACCESS_FENCE;
	return err ? err : rc;
}

/* ---- locks ----------------------------------------------------------------------------------- */

enum { LOCK_NONE, LOCK_SHARED, LOCK_EXCLUSIVE };

static int lock(struct mpi_win *win, struct mpi_win_target *t, int how, int assert)
{
	int err = MPI_SUCCESS;

	t->lock_nocheck = assert &MPI_MODE_NOCHECK;
	if (!t->lock_nocheck)
		err = mpi_win_take_lock(win, t, how == LOCK_EXCLUSIVE);
	if (!err)
		t->lock = (uint8_t)how;
	return err;
}

static int unlock(struct mpi_win *win, struct mpi_win_target *t)
{
	bool exclusive = t->lock == LOCK_EXCLUSIVE;

	t->lock = LOCK_NONE;
	return t->lock_nocheck ? MPI_SUCCESS : mpi_win_give_lock(win, t, exclusive);
}

int mpi_win_lock(int lock_type, int rank, int assert, struct mpi_win *win)
{
	int err = mpi_win_check_assert(assert, MPI_MODE_NOCHECK);

	if (!err && lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
		err = mpi_fail(MPI_ERR_LOCKTYPE,
			       "%d is neither MPI_LOCK_EXCLUSIVE nor MPI_LOCK_SHARED", lock_type);
	if (!err && rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (!err && win->access != MPI_ACCESS_LOCK)
		err = mpi_win_check_closed(win);
	if (!err && win->target[rank].lock)
		err = mpi_win_wrong("the target is locked already");
	if (!err)
		err = lock(win, &win->target[rank],
			   lock_type == MPI_LOCK_EXCLUSIVE ? LOCK_EXCLUSIVE : LOCK_SHARED, assert);
	if (err)
		return err;
	mpi_win_settle();
	win->access = MPI_ACCESS_LOCK;
	win->locks++;
	return MPI_SUCCESS;
}

int mpi_win_unlock(int rank, struct mpi_win *win)
{
	struct mpi_win_target *t;
	int err, rc;

	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	t = &win->target[rank];
	if (win->access != MPI_ACCESS_LOCK || !t->lock)
		return mpi_win_wrong("the target was not locked by MPI_Win_lock");
	err = mpi_rma_flush(win, rank);
	mpi_win_settle();
	rc = unlock(win, t);
	if (--win->locks == 0)
		win->access = MPI_ACCESS_NONE;
	return err ? err : rc;
}

int mpi_win_lock_all(int assert, struct mpi_win *win)
{
	int err = mpi_win_check_assert(assert, MPI_MODE_NOCHECK);

	if (!err)
		err = mpi_win_check_closed(win);
	if (err)
		return err;
	for (int i = 0; i < win->size && !err; i++)
		err = lock(win, &win->target[i], LOCK_SHARED, assert);
	if (err) {
		for (int i = 0; i < win->size; i++)
			if (win->target[i].lock)
				unlock(win, &win->target[i]);
		return err;
	}
	mpi_win_settle();
	win->access = MPI_ACCESS_LOCK_ALL;
	return MPI_SUCCESS;
}

int mpi_win_unlock_all(struct mpi_win *win)
{
	int err, rc;

	if (win->access != MPI_ACCESS_LOCK_ALL)
		return mpi_win_wrong("the targets were not locked by MPI_Win_lock_all");
	err = mpi_rma_flush_all(win);
	mpi_win_settle();
	for (int i = 0; i < win->size; i++) {
		rc = unlock(win, &win->target[i]);
		err = err ? err : rc;
	}
	win->access = MPI_ACCESS_NONE;
	return err;
}

/* ---- flush ----------------------------------------------------------------------------------- */

static int check_passive(const struct mpi_win *win, int rank)
{
	if (win->access == MPI_ACCESS_LOCK_ALL)
		return MPI_SUCCESS;
	if (win->access == MPI_ACCESS_LOCK && (rank < 0 || win->target[rank].lock))
		return MPI_SUCCESS;
	return mpi_win_wrong(rank < 0 ? "no target is locked" : "the target is not locked");
}

int mpi_win_flush(int rank, struct mpi_win *win)
{
	int err;

	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	err = check_passive(win, rank);
	if (!err)
		err = mpi_rma_flush(win, rank);
	mpi_win_settle();
	return err;
}

int mpi_win_flush_all(struct mpi_win *win)
{
	int err = check_passive(win, -1);

	if (!err)
		err = mpi_rma_flush_all(win);
	mpi_win_settle();
	return err;
}

/* An operation that is complete here is complete at the target, too. */
int mpi_win_flush_local(int rank, struct mpi_win *win)
{
	return mpi_win_flush(rank, win);
}

int mpi_win_flush_local_all(struct mpi_win *win)
{
	return mpi_win_flush_all(win);
}

int mpi_win_sync(struct mpi_win *win)
{
	(void)win;
	mpi_win_settle();
	return MPI_SUCCESS;
}

/* ---- for reports ----------------------------------------------------------------------------- */

static void describe_locks_of(const struct mpi_win *win, struct base_waits_body *body)
{
	for (int i = 0; i < win->size; i++)
		if (win->target[i].lock && body->ops++ < BASE_WAITS_OPS)
			body->op[body->ops - 1] = (struct base_wait_op){
				.kind = BASE_WAIT_OP_LOCKED,
				.context = win->comm->context,
				.peer = win->target[i].world,
				.tag = BASE_WAITS_ANY,
			};
}

void mpi_win_describe_locks(struct base_waits_body *body)
{
	const struct mpi_win *win;

	for (uint32_t i = 0; (win = mpi_pool_at(MPI_KIND_WIN, i)); i++)
		if (win->obj.handle && win->target && win->comm)
			describe_locks_of(win, body);
}
