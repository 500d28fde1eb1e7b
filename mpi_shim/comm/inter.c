/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Intercommunicators: made from two intracommunicators by their leaders, and merged into one
 * intracommunicator.
 */
#include <stdlib.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/core/context.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/process.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/comm/creation.h"

/* Check the arguments that only the leader can judge. The other ranks are told the result, as
 * they must not wait for it in vain. */
static int check_peer_comm(const struct mpi_creation *t)
{
	if (!t->peer)
		return mpi_fail(MPI_ERR_COMM, "peer_comm, which the leader must give, is invalid");
	if (t->remote < 0 || t->remote >= t->peer->remote_size)
		return mpi_fail(MPI_ERR_RANK, "remote_leader %d is not in peer_comm, which has %d",
				t->remote, t->peer->remote_size);
	return MPI_SUCCESS;
}

static int share_check_of_leader(const struct mpi_creation *t)
{
	int err = t->comm->rank == t->leader ? check_peer_comm(t) : MPI_SUCCESS, heard = err, rc;

	rc = mpi_coll_bcast_bytes(&heard, sizeof(heard), t->leader, t->comm);
	if (t->comm->rank == t->leader)
		/* even if a rank has died: the other leader still waits for a message */
		return err;
	if (rc != MPI_SUCCESS || heard == MPI_SUCCESS)
		return rc;
	return mpi_fail(heard, "the leader, rank %d, gave an invalid peer_comm or remote_leader",
			t->leader);
}

/* Check that the two sides have no process in common. All ranks find the same. */
static int check_disjoint(const struct mpi_group *a, const struct mpi_group *b)
{
	int *inverse = mpi_group_inverse(a), err = MPI_SUCCESS;

	if (!inverse)
		return mpi_fail_memory("an intercommunicator");
	for (int i = 0; i < b->size && err == MPI_SUCCESS; i++)
		if (inverse[mpi_group_world(b, i)] != MPI_UNDEFINED)
			err = mpi_fail(MPI_ERR_COMM, "the two sides have a process in common, %s",
				       mpi_process_text(mpi_group_world(b, i)));
	free(inverse);
	return err;
}

static int make_inter(const struct mpi_creation *t, struct mpi_group *remote, struct mpi_comm **out)
{
	uint32_t context[2] = { 0 };
	int err = remote ? check_disjoint(t->comm->local, remote) : mpi_fail_memory("a group");

	err = mpi_creation_contexts(t, err, 2, context);
	if (err == MPI_SUCCESS)
		err = mpi_comm_make_agreed(context, t->comm->local, remote, t->comm, out);
	return err;
}

int mpi_intercomm_create(struct mpi_comm *local, int leader, struct mpi_comm *peer, int remote,
			 int tag, struct mpi_comm **out)
{
	struct mpi_creation creation = {
		.kind = MPI_CREATION_BRIDGE,
		.comm = local,
		.tag = MPI_TAG_COMM_BRIDGE + (tag & 0x1fffffff),
		.leader = leader,
		.peer = peer,
		.remote = remote,
	};
	struct mpi_group *theirs = NULL;
	int err;

	if (local->inter)
		return mpi_fail(MPI_ERR_COMM, "local_comm is an intercommunicator");
	if (leader < 0 || leader >= local->size)
		return mpi_fail(MPI_ERR_RANK, "local_leader %d is not in local_comm, which has %d",
				leader, local->size);
	if (tag < 0)
		return mpi_fail(MPI_ERR_TAG, "tag %d is negative", tag);
	err = share_check_of_leader(&creation);
	if (err == MPI_SUCCESS)
		err = mpi_creation_swap_groups(&creation, MPI_SUCCESS, local->local, &theirs);
	if (err == MPI_SUCCESS)
		err = make_inter(&creation, theirs, out);
	mpi_creation_release(theirs);
	return err;
}

/* ---- merge ----------------------------------------------------------------------------------- */

enum { LOW, HIGH, MIXED };

/* Find the value of `high` on one side; MIXED if its ranks differ. */
static int wish(struct mpi_comm *side, int high, int *out)
{
	int64_t most[2] = { high != 0, high == 0 }; /* does any rank say high, does any say low? */
	int err = mpi_coll_allreduce_max(most, 2, side);

	*out = most[0] && most[1] ? MIXED : most[0] ? HIGH : LOW;
	return err;
}

/* Whether the local side comes first. If both sides gave the same value, the side whose rank 0
 * is lower in MPI_COMM_WORLD is first. */
static bool first(const struct mpi_comm *comm, int mine, int theirs)
{
	if (mine != theirs)
		return mine == LOW;
	return mpi_process_before(mpi_group_world(comm->local, 0),
				  mpi_group_world(comm->remote, 0));
}

static struct mpi_group *join_groups(const struct mpi_group *a, const struct mpi_group *b)
{
	int *world = malloc(((size_t)a->size + (size_t)b->size) * sizeof(*world));

	if (!world)
		return NULL;
	for (int i = 0; i < a->size; i++)
		world[i] = mpi_group_world(a, i);
	for (int i = 0; i < b->size; i++)
		world[a->size + i] = mpi_group_world(b, i);
	return mpi_group_make(a->size + b->size, world);
}

int mpi_intercomm_merge(struct mpi_comm *comm, int high, struct mpi_comm **out)
{
	struct mpi_creation creation;
	struct mpi_group *all;
	uint32_t context[1] = { 0 };
	int mine = LOW, theirs = LOW, err;

	if (!comm->inter)
		return mpi_fail(MPI_ERR_COMM, "the communicator is not an intercommunicator");
	creation = mpi_creation_of(comm);
	err = wish(comm->local_comm, high, &mine);
	err = mpi_creation_swap(&creation, err, &mine, 1, &theirs, 1);
	if (err == MPI_SUCCESS && (mine == MIXED || theirs == MIXED))
		err = mpi_fail(MPI_ERR_ARG, "the ranks of one group gave different values of high");
	if (err != MPI_SUCCESS)
		return err;
	all = first(comm, mine, theirs) ? join_groups(comm->local, comm->remote)
					: join_groups(comm->remote, comm->local);
	err = all ? MPI_SUCCESS : mpi_fail_memory("a communicator");
	err = mpi_creation_contexts(&creation, err, 1, context);
	if (err == MPI_SUCCESS)
		err = mpi_comm_make_agreed(context, all, NULL, comm, out);
	mpi_object_release(all);
	return err;
}
