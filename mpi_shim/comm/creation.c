/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See creation.h. All messages use collective contexts. Messages between leaders and inside
 * groups have tags of their own. So they do not mix with collectives, nor with communicators
 * that other threads make at the same time.
 */
#include "mpi_shim/comm/creation.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/core/context.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/pt2pt/p2p.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/core/world.h"

struct mpi_creation mpi_creation_of(struct mpi_comm *comm)
{
	if (!comm->inter)
		return (struct mpi_creation){ .kind = MPI_CREATION_COMM, .comm = comm };
	return (struct mpi_creation){
		.kind = MPI_CREATION_BRIDGE,
		.comm = comm->local_comm,
		.tag = MPI_TAG_COMM_DUP_INTER,
		.peer = comm,
	};
}

static void combine_words(uint64_t *mine, const uint64_t *theirs, int n, bool max)
{
	for (int i = 0; i < n; i++) {
		if (!max)
			mine[i] &= theirs[i];
		else if (theirs[i] > mine[i])
			mine[i] = theirs[i];
	}
}

/* ---- some ranks of a communicator: a binomial tree ------------------------------------------- */

static int rank_of(const struct mpi_creation *t, int member)
{
	return mpi_group_rank_in(t->comm->local, mpi_group_world(t->group, member));
}

/* Receive words. An empty message says that the sender has none, because a rank of the group has
 * died: so no rank waits for one that has given up. */
static int group_recv(const struct mpi_creation *t, uint64_t *word, MPI_Count size, int from)
{
	MPI_Count got = size;
	int err = mpi_coll_recv(word, size, mpi_bytes(), rank_of(t, from), t->tag, t->comm, &got);

	if (err == MPI_SUCCESS && got < size)
		err = mpi_fail(MPI_ERR_PROC_ABORTED,
			       "a rank of the group has ended, or cannot be reached");
	return err;
}

/* Send words, or an empty message after an earlier error `err`. */
static int group_send(const struct mpi_creation *t, const uint64_t *word, MPI_Count size, int to,
		      int err)
{
	int rc = mpi_coll_send(word, err == MPI_SUCCESS ? size : 0, mpi_bytes(), rank_of(t, to),
			       t->tag, t->comm);

	return err == MPI_SUCCESS ? rc : err;
}

static int group_up(const struct mpi_creation *t, uint64_t *word, int n, bool max)
{
	uint64_t theirs[MPI_AGREE_WORDS];
	MPI_Count size = n * (MPI_Count)sizeof(*word);
	int err = MPI_SUCCESS, rc;

	for (int bit = 1; bit < t->group->size; bit <<= 1) {
		if (t->group->rank & bit)
			return group_send(t, word, size, t->group->rank - bit, err);
		if (t->group->rank + bit >= t->group->size)
			continue;
		rc = group_recv(t, theirs, size, t->group->rank + bit);
		if (rc == MPI_SUCCESS)
			combine_words(word, theirs, n, max);
		err = err == MPI_SUCCESS ? rc : err;
	}
	return err;
}

static int group_down(const struct mpi_creation *t, uint64_t *word, int n, int err)
{
	MPI_Count size = n * (MPI_Count)sizeof(*word);
	int bit = 1, rc;

	while (bit < t->group->size && !(t->group->rank & bit))
		bit <<= 1;
	if (t->group->rank != 0) {
		rc = group_recv(t, word, size, t->group->rank - bit);
		err = err == MPI_SUCCESS ? rc : err;
	}
	/* a rank that has died by now is found missing in the next round, if there is one */
	for (bit >>= 1; bit > 0; bit >>= 1)
		if (t->group->rank + bit < t->group->size)
			group_send(t, word, size, t->group->rank + bit, err);
	return err;
}

static int group_reduce(const struct mpi_creation *t, uint64_t *word, int n, bool max)
{
	return group_down(t, word, n, group_up(t, word, n, max));
}

/* ---- one communicator, and two --------------------------------------------------------------- */

static int comm_reduce(struct mpi_comm *comm, uint64_t *word, int n, bool max)
{
	if (max)
		return mpi_coll_allreduce_max((int64_t *)word, n, comm);
	return mpi_coll_allreduce_and(word, n, comm);
}

/* Lengths in bytes of a leader's message that carries no data: a rank of its side is dead, or
 * cannot take part. All data are longer. */
enum { NOTHING_DEAD = 0, NOTHING_OTHER = 1 };

static int send_and_receive(const struct mpi_creation *t, const void *mine, size_t size,
			    void *theirs, size_t room, size_t *got)
{
	MPI_Count came = 0;
	int err;

	if (t->exchange)
		return t->exchange(t->link, mine, size, theirs, room, got);
	err = mpi_coll_sendrecv(mine, (MPI_Count)size, mpi_bytes(), t->remote, theirs,
				(MPI_Count)room, mpi_bytes(), t->remote, t->tag, t->peer, &came);
	*got = (size_t)came;
	return err;
}

/*
 * Exchange data between the leaders. After an earlier error on its side (`err`) a leader sends
 * no data, and the other side gives up, too. It must send this message, because the other leader
 * waits as long as this one is alive. After an error nothing is received into `theirs`, as there
 * may be no memory for it.
 */
static int exchange_between_sides(const struct mpi_creation *t, int err, const void *mine,
				  size_t size, void *theirs, size_t their_size)
{
	const bool well = err == MPI_SUCCESS;
	const char nothing[] = { 0 };
	const size_t give = well                          ? size
			    : err == MPI_ERR_PROC_ABORTED ? NOTHING_DEAD
							  : NOTHING_OTHER;
	size_t got = 0;
	int rc = send_and_receive(t, well ? mine : nothing, give, theirs, well ? their_size : 0,
				  &got);

	if (err != MPI_SUCCESS || rc != MPI_SUCCESS)
		return err != MPI_SUCCESS ? err : rc;
	if (got == NOTHING_DEAD)
		return mpi_fail(MPI_ERR_PROC_ABORTED,
				"the other side has given up: a rank of it has died");
	if (got == NOTHING_OTHER)
		return mpi_fail(MPI_ERR_OTHER, "a rank of the other side cannot take part");
	return got == their_size ? MPI_SUCCESS
				 : mpi_fail(MPI_ERR_OTHER, "the other side speaks otherwise");
}

/*
 * Broadcast the leader's data to its side, with the result of getting them. The leader itself
 * goes on if a rank of its side has died by now, as the other leader does not know. It finds
 * that out when context numbers are agreed on.
 */
static int spread_in_group(const struct mpi_creation *t, void *data, size_t size, int err)
{
	int heard = err, rc;

	rc = mpi_coll_bcast_bytes(&heard, sizeof(heard), t->leader, t->comm);
	if (rc == MPI_SUCCESS && heard == MPI_SUCCESS)
		rc = mpi_coll_bcast_bytes(data, size, t->leader, t->comm);
	if (err != MPI_SUCCESS || t->comm->rank == t->leader)
		return err;
	if (rc != MPI_SUCCESS || heard == MPI_SUCCESS)
		return rc;
	return mpi_fail(heard, "the leader of this side, rank %d, could not talk to the other one",
			t->leader);
}

static int bridge_reduce(const struct mpi_creation *t, uint64_t *word, int n, bool max)
{
	uint64_t theirs[MPI_AGREE_WORDS];
	size_t size = (size_t)n * sizeof(*word);
	int err = comm_reduce(t->comm, word, n, max);

	if (t->comm->rank == t->leader) {
		err = exchange_between_sides(t, err, word, size, theirs, size);
		if (err == MPI_SUCCESS)
			combine_words(word, theirs, n, max);
	}
	return spread_in_group(t, word, size, err);
}

int mpi_creation_reduce(const struct mpi_creation *t, uint64_t *word, int n, bool max)
{
	if (t->kind == MPI_CREATION_COMM)
		return comm_reduce(t->comm, word, n, max);
	if (t->kind == MPI_CREATION_GROUP)
		return group_reduce(t, word, n, max);
	return bridge_reduce(t, word, n, max);
}

int mpi_creation_contexts(const struct mpi_creation *t, int err, int want, uint32_t *context)
{
	struct mpi_agree a;

	mpi_agree_begin(&a, err, want);
	for (;;) {
		mpi_agree_offer(&a);
		err = mpi_creation_reduce(t, a.word, a.n, a.max);
		if (err != MPI_SUCCESS) {
			mpi_agree_abandon(&a);
			return err;
		}
		if (mpi_agree_judge(&a))
			break;
		/* a creation group of one exchanges nothing, and may wait for an MPI_Comm_idup
		 * or another thread's agreement to end: they need the lock */
		mpi_progress(false);
		mpi_unlock();
		sched_yield();
		mpi_lock();
	}
	if (a.error == MPI_SUCCESS)
		memcpy(context, a.context, (size_t)want * sizeof(*context));
	return a.error;
}

int mpi_creation_side(const struct mpi_creation *t, int err)
{
	uint64_t well = err == MPI_SUCCESS;
	int rc = comm_reduce(t->comm, &well, 1, false);

	if (err != MPI_SUCCESS || rc != MPI_SUCCESS)
		return err != MPI_SUCCESS ? err : rc;
	return well ? MPI_SUCCESS : mpi_fail(MPI_ERR_OTHER, "a rank of this side cannot take part");
}

int mpi_creation_swap(const struct mpi_creation *t, int err, const int *mine, int n, int *theirs,
		      int their_n)
{
	size_t size = (size_t)their_n * sizeof(*theirs);

	if (t->comm->rank == t->leader)
		err = exchange_between_sides(t, err, mine, (size_t)n * sizeof(*mine), theirs, size);
	return spread_in_group(t, theirs, size, err);
}

/* Finds or connects the processes of the other side. NULL: not possible here. A process that is
 * connected only by others of its job gets the least share. */
static struct mpi_group *connect_group(const struct mpi_process_name *name, int n)
{
	static const struct mpi_shares least;
	int *world = malloc(((size_t)n + 1) * sizeof(*world)), i = 0;
	struct mpi_group *group = NULL;

	for (; world && i < n; i++) {
		world[i] = mpi_process_add(&name[i]);
		if (world[i] < 0 || mpi_other_connect(world[i], least, least) != MPI_SUCCESS)
			break;
	}
	if (i == n)
		group = world ? mpi_group_make(n, world) : NULL;
	if (group || !world)
		return group;
	while (i-- > 0)
		mpi_other_release(world[i]);
	free(world);
	return NULL;
}

void mpi_creation_release(struct mpi_group *theirs)
{
	for (int i = 0; theirs && i < theirs->size; i++)
		mpi_other_release(mpi_group_world(theirs, i));
	mpi_object_release(theirs);
}

enum { NAME_INTS = sizeof(struct mpi_process_name) / sizeof(int) };

int mpi_creation_swap_groups(const struct mpi_creation *creation, int err,
			     const struct mpi_group *mine, struct mpi_group **theirs)
{
	/* One more name than the group has: it may be empty. Memory for this side is there before
	 * the other side is told a size. From then on the other side counts on this rank, and so
	 * does a rank that hears from the leader through this one. */
	struct mpi_process_name *name = calloc((size_t)mine->size + 1, sizeof(*name));
	struct mpi_process_name *other = NULL;
	int n = 0;

	if (!err && !name)
		err = mpi_fail_memory("a group");
	for (int i = 0; name && i < mine->size; i++)
		name[i] = mpi_process_name(mpi_group_world(mine, i));
	err = mpi_creation_side(creation, err);
	err = mpi_creation_swap(creation, err, &mine->size, 1, &n, 1);
	if (err == MPI_SUCCESS && (n < 0 || n > MPI_PROCESSES_MOST))
		err = mpi_fail(MPI_ERR_OTHER, "the other side has %d processes", n);
	if (err == MPI_SUCCESS) {
		other = malloc(((size_t)n + 1) * sizeof(*other));
		err = mpi_creation_side(creation, other ? MPI_SUCCESS : mpi_fail_memory("a group"));
		err = mpi_creation_swap(creation, err, (const int *)name,
					(mine->size + 1) * NAME_INTS, (int *)other,
					(n + 1) * NAME_INTS);
	}
	if (err == MPI_SUCCESS)
		*theirs = connect_group(other, n);
	free(name);
	free(other);
	return err;
}
