/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Post, start, complete and wait. If all ranks have the window mapped, they are words in the
 * shared memory. Each rank has two words for each other rank there: how many epochs it has
 * posted for that rank, and how many it has completed there (struct mpi_win_pair). A process
 * waits for them as for the flags of a shared-memory collective area. In all other windows
 * post and complete are empty messages on the window's communicator.
 */
#include <stdlib.h>
#include <time.h>

#include "base/yield.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/p2p.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/rma.h"

enum { TAG_POST = 1, TAG_COMPLETE = 2 };

/* Polls of a word before we sleep between them, if it cannot be waited for in the area. */
#define YIELDS 1000
#define NAP_NS 20000

/* ---- groups ---------------------------------------------------------------------------------- */

/* Fill in the group's members by their ranks in the window. MPI_ERR_GROUP: not all are in it,
 * and the group is left empty. */
static int fill_in_group(struct mpi_win_group *g, const struct mpi_win *win,
			 const struct mpi_group *group)
{
	g->size = 0;
	for (int i = 0; i < group->size; i++) {
		int rank = mpi_group_rank_in(win->comm->local, mpi_group_world(group, i));

		if (rank == MPI_UNDEFINED)
			return mpi_fail(MPI_ERR_GROUP, "rank %d of the group is not in the window",
					i);
		g->rank[i] = rank;
	}
	g->size = group->size;
	return MPI_SUCCESS;
}

/* ---- by words -------------------------------------------------------------------------------- */

static bool epoch_reached(const _Atomic uint64_t *word, uint64_t least)
{
	/* pairs with the release in say() */
	return atomic_load_explicit(word, memory_order_acquire) >= least;
}

/* Publish a number. A process that sees it also sees all earlier stores of this rank in this
 * memory and through it. */
static void say(_Atomic uint64_t *word, uint64_t number)
{
	atomic_store_explicit(word, number, memory_order_release);
}

/* Make the ranks of the group that may sleep poll their words again. */
static void wake_group(const struct mpi_win *win, const struct mpi_win_group *g)
{
	if (win->shmcoll)
		mpi_shmcoll_wake(win->shmcoll);
	/* another thread of this rank may wait for a word that the rank wrote for itself */
	for (int i = 0; i < g->size && mpi_world.threaded; i++)
		if (g->rank[i] == win->rank)
			mpi_progress_wake();
}

static int dead(int rank)
{
	return mpi_fail(MPI_ERR_PROC_ABORTED, "the process of rank %d of the window has died",
			rank);
}

/* MPI_ERR_PROC_ABORTED if the rank is known to be dead. */
static int check_alive(const struct mpi_win *win, int rank)
{
	if (mpi_proto.any_dead && mpi_failed_source(win->comm, rank) >= 0)
		return dead(rank);
	return MPI_SUCCESS;
}

/* Let others work between two polls of a word. */
static void let_others_work(int polls)
{
	struct timespec t = { 0, NAP_NS };

	mpi_progress(false);
	mpi_unlock();
	if (polls >= YIELDS || !base_yield())
		nanosleep(&t, NULL);
	mpi_lock();
}

/*
 * Wait until the rank's word reaches `least`, or the rank has died. Only one thread at a time
 * can wait in the shared-memory collective area. The area also gives up when any of its ranks
 * has died, which need not be the awaited one. Then the word is polled now and then.
 */
static int await_long(struct mpi_win *win, int rank, const _Atomic uint64_t *word, uint64_t least)
{
	for (int polls = 0; !epoch_reached(word, least); polls++) {
		bool failed;
		int err = MPI_ERR_OTHER;

		if (win->shmcoll && !win->in_shmcoll) {
			win->in_shmcoll = true;
			err = mpi_shmcoll_await(win->shmcoll, word, least);
			win->in_shmcoll = false;
		}
		if (!err)
			break;
		/* poll once more after the check: it may have written the word before it died */
		failed = mpi_failed_source(win->comm, rank) >= 0;
		if (epoch_reached(word, least))
			break;
		if (failed)
			return dead(rank);
		let_others_work(polls);
	}
	return MPI_SUCCESS;
}

static int await(struct mpi_win *win, int rank, const _Atomic uint64_t *word, uint64_t least)
{
	struct mpi_wait wait;
	int err;

	if (epoch_reached(word, least))
		return MPI_SUCCESS;
	mpi_wait_begin(&wait, BASE_WAIT_EPOCH, win->comm, win->target[rank].world, BASE_WAITS_ANY,
		       least);
	err = await_long(win, rank, word, least);
	mpi_wait_end(&wait);
	return err;
}

static int post_words(struct mpi_win *win)
{
	int err = MPI_SUCCESS;

	for (int i = 0; i < win->posted.size; i++) {
		int rank = win->posted.rank[i], rc = check_alive(win, rank);
		struct mpi_win_target *t = &win->target[rank];

		say(&t->there->posted, ++t->posts);
		err = err ? err : rc;
	}
	wake_group(win, &win->posted);
	return err;
}

static int start_words(struct mpi_win *win, bool await_posts)
{
	int err = MPI_SUCCESS;

	for (int i = 0; i < win->started.size; i++) {
		int rank = win->started.rank[i], rc;
		struct mpi_win_target *t = &win->target[rank];

		t->starts++;
		if (!await_posts)
			continue;
		rc = await(win, rank, &t->here->posted, t->starts);
		err = err ? err : rc;
	}
	return err;
}

static int complete_words(struct mpi_win *win)
{
	int err = MPI_SUCCESS;

	for (int i = 0; i < win->started.size; i++) {
		int rank = win->started.rank[i], rc = check_alive(win, rank);
		struct mpi_win_target *t = &win->target[rank];

		say(&t->there->completed, t->starts);
		err = err ? err : rc;
	}
	wake_group(win, &win->started);
	return err;
}

static int await_words(struct mpi_win *win)
{
	int err = MPI_SUCCESS;

	for (int i = 0; i < win->posted.size; i++) {
		int rank = win->posted.rank[i];
		struct mpi_win_target *t = &win->target[rank];
		int rc = await(win, rank, &t->here->completed, t->posts);

		err = err ? err : rc;
	}
	return err;
}

/* Whether nothing is left to wait for. */
static bool words_done(struct mpi_win *win)
{
	for (int i = 0; i < win->posted.size; i++) {
		int rank = win->posted.rank[i];
		struct mpi_win_target *t = &win->target[rank];

		if (!epoch_reached(&t->here->completed, t->posts) &&
		    mpi_failed_source(win->comm, rank) < 0)
			return false;
	}
	return true;
}

/* ---- by messages ----------------------------------------------------------------------------- */

static int send_empty(struct mpi_win *win, int rank, int tag)
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

static int finish_message(struct mpi_request *r)
{
	mpi_request_wait(r);
	return mpi_request_finish(r, MPI_STATUS_IGNORE);
}

static int post_messages(struct mpi_win *win, bool notifies)
{
	const struct mpi_win_group *g = &win->posted;
	int err = MPI_SUCCESS;

	win->completes = calloc((size_t)g->size + 1, sizeof(struct mpi_request *));
	if (!win->completes)
		return mpi_fail_memory("an exposure epoch");
	mpi_win_settle();
	for (int i = 0; i < g->size && !err; i++)
		err = hear(win, g->rank[i], TAG_COMPLETE, &win->completes[i]);
	for (int i = 0; i < g->size && !err && notifies; i++)
		err = send_empty(win, g->rank[i], TAG_POST);
	return err;
}

static int start_messages(struct mpi_win *win, bool await_posts)
{
	int err = MPI_SUCCESS, rc;

	for (int i = 0; i < win->started.size && await_posts; i++) {
		struct mpi_request *r = NULL;

		rc = hear(win, win->started.rank[i], TAG_POST, &r);
		rc = rc ? rc : finish_message(r);
		err = err ? err : rc;
	}
	mpi_win_settle();
	return err;
}

static int complete_messages(struct mpi_win *win)
{
	int err = MPI_SUCCESS, rc;

	mpi_win_settle();
	for (int i = 0; i < win->started.size; i++) {
		rc = send_empty(win, win->started.rank[i], TAG_COMPLETE);
		err = err ? err : rc;
	}
	return err;
}

static int await_messages(struct mpi_win *win)
{
	int err = MPI_SUCCESS, rc;

	for (int i = 0; i < win->posted.size; i++) {
		rc = win->completes[i] ? finish_message(win->completes[i]) : MPI_SUCCESS;
		err = err ? err : rc;
	}
	free(win->completes);
	win->completes = NULL;
	mpi_win_settle();
	return err;
}

static bool messages_done(const struct mpi_win *win)
{
	for (int i = 0; i < win->posted.size; i++)
		if (win->completes[i] && !win->completes[i]->done)
			return false;
	return true;
}

/* ---- the calls ------------------------------------------------------------------------------- */

int mpi_win_post(struct mpi_group *group, int assert, struct mpi_win *win)
{
	int err =
		mpi_win_check_assert(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);

	if (!err && win->exposed)
		err = mpi_win_wrong("an epoch that MPI_Win_post began is open");
	if (!err)
		err = fill_in_group(&win->posted, win, group);
	if (err)
		return err;
	/* words count every epoch; MPI_MODE_NOCHECK only saves the other side from polling them */
	err = win->words ? post_words(win) : post_messages(win, !(assert &MPI_MODE_NOCHECK));
	win->exposed = win->words || win->completes;
	return err;
}

int mpi_win_start(struct mpi_group *group, int assert, struct mpi_win *win)
{
	int err = mpi_win_check_assert(assert, MPI_MODE_NOCHECK);
	bool await_posts = !(assert &MPI_MODE_NOCHECK);

	if (!err)
		err = mpi_win_check_closed(win);
	if (!err)
		err = fill_in_group(&win->started, win, group);
	if (err)
		return err;
	err = win->words ? start_words(win, await_posts) : start_messages(win, await_posts);
	for (int i = 0; i < win->started.size; i++)
		win->target[win->started.rank[i]].started = true;
	win->access = MPI_ACCESS_START;
	return err;
}

int mpi_win_complete(struct mpi_win *win)
{
	int err, rc;

	if (win->access != MPI_ACCESS_START)
		return mpi_win_wrong("there is no epoch that MPI_Win_start began");
	err = mpi_rma_flush_all(win);
	rc = win->words ? complete_words(win) : complete_messages(win);
	for (int i = 0; i < win->started.size; i++)
		win->target[win->started.rank[i]].started = false;
	win->access = MPI_ACCESS_NONE;
	return err ? err : rc;
}

static int check_exposed(const struct mpi_win *win)
{
	return win->exposed ? MPI_SUCCESS
			    : mpi_win_wrong("there is no epoch that MPI_Win_post began");
}

static int end_exposure(struct mpi_win *win)
{
	int err = win->words ? await_words(win) : await_messages(win);

	win->exposed = false;
	return err;
}

int mpi_win_wait(struct mpi_win *win)
{
	int err = check_exposed(win);

	return err ? err : end_exposure(win);
}

int mpi_win_test(struct mpi_win *win, int *flag)
{
	int err = check_exposed(win);

	if (err)
		return err;
	mpi_progress(false);
	*flag = win->words ? words_done(win) : messages_done(win);
	return *flag ? end_exposure(win) : MPI_SUCCESS;
}

/* ---- setup ----------------------------------------------------------------------------------- */

int mpi_win_pscw_init(struct mpi_win *win)
{
	int *rank = calloc(2 * (size_t)win->size, sizeof(*rank));

	if (!rank)
		return MPI_ERR_NO_MEM;
	win->posted.rank = rank;
	win->started.rank = rank + win->size;
	return MPI_SUCCESS;
}

void mpi_win_pscw_connect(struct mpi_win *win)
{
	/* decided by what is equal on all ranks; if one of them dies now, only some may have an
	 * area */
	win->words = mpi_win_self(win)->here && mpi_shmcoll_takes_node(win->comm);
	if (win->words)
		win->shmcoll = mpi_shmcoll_of(win->comm, true);
}

void mpi_win_pscw_fini(struct mpi_win *win)
{
	free(win->posted.rank);
	free(win->completes);
}
