/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Synchronization of windows: fence, post and start, locks. All memory is always reachable, so that epochs are
 * a matter of this library alone: they say what is an error, and what is complete when.
 *
 * Post and complete are empty messages on the window's communicator.
 */
#include <stdlib.h>

#include "mpi_shim/coll.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/p2p.h"
#include "mpi_shim/protocol.h"
#include "mpi_shim/rma.h"

enum { TAG_POST = 1, TAG_COMPLETE = 2 };

static int wrong(const char *what)
{
	return mpi_fail(MPI_ERR_RMA_SYNC, "%s", what);
}

/* What was stored here is seen there, and what was stored there here. */
static void settle(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

static int check_assert(int assert, int allowed)
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

/* No access epoch but that of a fence that was not used. */
static int check_closed(const struct mpi_win *win)
{
	const char *open = open_epoch(win);

	if (!open && win->access == MPI_ACCESS_FENCE && win->fence_used)
		open = "operations were started in the epoch of an MPI_Win_fence, which another "
		       "one "
		       "has to end";
	return open ? wrong(open) : MPI_SUCCESS;
}

int mpi_win_check_idle(const struct mpi_win *win)
{
	const char *open = open_epoch(win);

	if (!open && win->post_group)
		open = "an epoch that MPI_Win_post began is open";
	return open ? wrong(open) : MPI_SUCCESS;
}

/* ---- fence --------------------------------------------------------------------------------------------- */

int mpi_win_fence(int assert, struct mpi_win *win)
{
	int err = check_assert(assert, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE |
					       MPI_MODE_NOSUCCEED),
	    rc;

	if (!err)
		err = mpi_win_check_idle(win);
	if (!err && assert &MPI_MODE_NOPRECEDE && win->fence_used)
		err = mpi_fail(MPI_ERR_ASSERT,
			       "MPI_MODE_NOPRECEDE is given, but operations precede");
	if (err)
		return err;
	err = mpi_rma_flush_all(win);
	settle();
	rc = mpi_coll_barrier(win->comm);
	settle();
	win->fence_used = false;
	win->access = assert &MPI_MODE_NOSUCCEED ? MPI_ACCESS_NONE : MPI_ACCESS_FENCE;
	return err ? err : rc;
}

/* ---- post, start, complete, wait ------------------------------------------------------------------------- */

/* The ranks in the window of a group's members; -1: one is not in it. */
static int *ranks_of(const struct mpi_win *win, const struct mpi_group *group, int *err)
{
	int *rank = malloc(((size_t)group->size + 1) * sizeof(*rank));

	*err = rank ? MPI_SUCCESS : mpi_fail_memory("the ranks of a group");
	for (int i = 0; rank && i < group->size; i++) {
		rank[i] = mpi_group_rank_in(win->comm->local, mpi_group_world(group, i));
		if (rank[i] != MPI_UNDEFINED)
			continue;
		*err = mpi_fail(MPI_ERR_GROUP, "rank %d of the group is not in the window", i);
		free(rank);
		return NULL;
	}
	return rank;
}

static int tell(struct mpi_win *win, int rank, int tag)
{
	struct mpi_request *r;
	int err = mpi_start_send(NULL, 0, mpi_type_of(MPI_BYTE), rank, tag, win->comm,
				 win->comm->context, MPI_SEND_STANDARD, &r);

	if (err)
		return err;
	mpi_request_wait(r);
	return mpi_request_finish(r, MPI_STATUS_IGNORE);
}

static int hear(struct mpi_win *win, int rank, int tag, struct mpi_request **r)
{
	return mpi_start_recv(NULL, 0, mpi_type_of(MPI_BYTE), rank, tag, win->comm,
			      win->comm->context, r);
}

int mpi_win_post(struct mpi_group *group, int assert, struct mpi_win *win)
{
	int err = check_assert(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT), *rank;

	if (!err && win->post_group)
		err = wrong("an epoch that MPI_Win_post began is open");
	if (err)
		return err;
	rank = ranks_of(win, group, &err);
	if (err)
		return err;
	win->completes = calloc((size_t)group->size + 1, sizeof(struct mpi_request *));
	if (!win->completes)
		err = mpi_fail_memory("an exposure epoch");
	settle();
	for (int i = 0; i < group->size && !err; i++)
		err = hear(win, rank[i], TAG_COMPLETE, &win->completes[i]);
	for (int i = 0; i < group->size && !err && !(assert &MPI_MODE_NOCHECK); i++)
		err = tell(win, rank[i], TAG_POST);
	free(rank);
	if (win->completes)
		win->post_group = mpi_object_keep(group);
	return err;
}

int mpi_win_start(struct mpi_group *group, int assert, struct mpi_win *win)
{
	int err = check_assert(assert, MPI_MODE_NOCHECK), *rank, rc;

	if (!err)
		err = check_closed(win);
	if (err)
		return err;
	rank = ranks_of(win, group, &err);
	if (err)
		return err;
	for (int i = 0; i < group->size; i++) {
		struct mpi_request *r = NULL;

		win->target[rank[i]].started = true;
		if (assert & MPI_MODE_NOCHECK)
			continue;
		rc = hear(win, rank[i], TAG_POST, &r);
		if (!rc) {
			mpi_request_wait(r);
			rc = mpi_request_finish(r, MPI_STATUS_IGNORE);
		}
		err = err ? err : rc;
	}
	free(rank);
	settle();
	win->start_group = mpi_object_keep(group);
	win->access = MPI_ACCESS_START;
	return err;
}

int mpi_win_complete(struct mpi_win *win)
{
	int err, rc, *rank;

	if (win->access != MPI_ACCESS_START)
		return wrong("there is no epoch that MPI_Win_start began");
	err = mpi_rma_flush_all(win);
	settle();
	rank = ranks_of(win, win->start_group, &rc);
	err = err ? err : rc;
	for (int i = 0; rank && i < win->start_group->size; i++) {
		win->target[rank[i]].started = false;
		rc = tell(win, rank[i], TAG_COMPLETE);
		err = err ? err : rc;
	}
	free(rank);
	mpi_object_release(win->start_group);
	win->start_group = NULL;
	win->access = MPI_ACCESS_NONE;
	return err;
}

static int end_exposure(struct mpi_win *win)
{
	int err = MPI_SUCCESS;

	for (int i = 0; i < win->post_group->size; i++) {
		struct mpi_request *r = win->completes[i];
		int rc;

		if (!r)
			continue;
		mpi_request_wait(r);
		rc = mpi_request_finish(r, MPI_STATUS_IGNORE);
		err = err ? err : rc;
	}
	free(win->completes);
	win->completes = NULL;
	mpi_object_release(win->post_group);
	win->post_group = NULL;
	settle();
	return err;
}

int mpi_win_wait(struct mpi_win *win)
{
	if (!win->post_group)
		return wrong("there is no epoch that MPI_Win_post began");
	return end_exposure(win);
}

int mpi_win_test(struct mpi_win *win, int *flag)
{
	if (!win->post_group)
		return wrong("there is no epoch that MPI_Win_post began");
	mpi_progress(false);
	*flag = 1;
	for (int i = 0; i < win->post_group->size; i++)
		if (win->completes[i] && !win->completes[i]->done)
			*flag = 0;
	return *flag ? end_exposure(win) : MPI_SUCCESS;
}

/* ---- locks ---------------------------------------------------------------------------------------------- */

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
	int err = check_assert(assert, MPI_MODE_NOCHECK);

	if (!err && lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
		err = mpi_fail(MPI_ERR_LOCKTYPE,
			       "%d is neither MPI_LOCK_EXCLUSIVE nor MPI_LOCK_SHARED", lock_type);
	if (!err && rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (!err && win->access != MPI_ACCESS_LOCK)
		err = check_closed(win);
	if (!err && win->target[rank].lock)
		err = wrong("the target is locked already");
	if (!err)
		err = lock(win, &win->target[rank],
			   lock_type == MPI_LOCK_EXCLUSIVE ? LOCK_EXCLUSIVE : LOCK_SHARED, assert);
	if (err)
		return err;
	settle();
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
		return wrong("the target was not locked by MPI_Win_lock");
	err = mpi_rma_flush(win, rank);
	settle();
	rc = unlock(win, t);
	if (--win->locks == 0)
		win->access = MPI_ACCESS_NONE;
	return err ? err : rc;
}

int mpi_win_lock_all(int assert, struct mpi_win *win)
{
	int err = check_assert(assert, MPI_MODE_NOCHECK);

	if (!err)
		err = check_closed(win);
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
	settle();
	win->access = MPI_ACCESS_LOCK_ALL;
	return MPI_SUCCESS;
}

int mpi_win_unlock_all(struct mpi_win *win)
{
	int err, rc;

	if (win->access != MPI_ACCESS_LOCK_ALL)
		return wrong("the targets were not locked by MPI_Win_lock_all");
	err = mpi_rma_flush_all(win);
	settle();
	for (int i = 0; i < win->size; i++) {
		rc = unlock(win, &win->target[i]);
		err = err ? err : rc;
	}
	win->access = MPI_ACCESS_NONE;
	return err;
}

/* ---- flush ---------------------------------------------------------------------------------------------- */

static int check_passive(const struct mpi_win *win, int rank)
{
	if (win->access == MPI_ACCESS_LOCK_ALL)
		return MPI_SUCCESS;
	if (win->access == MPI_ACCESS_LOCK && (rank < 0 || win->target[rank].lock))
		return MPI_SUCCESS;
	return wrong(rank < 0 ? "no target is locked" : "the target is not locked");
}

int mpi_win_flush(int rank, struct mpi_win *win)
{
	int err;

	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	err = check_passive(win, rank);
	if (!err)
		err = mpi_rma_flush(win, rank);
	settle();
	return err;
}

int mpi_win_flush_all(struct mpi_win *win)
{
	int err = check_passive(win, -1);

	if (!err)
		err = mpi_rma_flush_all(win);
	settle();
	return err;
}

/* What is complete here is so there, too. */
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
	settle();
	return MPI_SUCCESS;
}
