/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Communicators made from one communicator and, perhaps, a group: dup, create, create_group.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/core/context.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/topology.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/comm/creation.h"

int mpi_comm_make_agreed(const uint32_t *context, struct mpi_group *local, struct mpi_group *remote,
			 const struct mpi_comm *parent, struct mpi_comm **out)
{
	struct mpi_comm *comm = mpi_comm_make(context[0], local, remote, parent);

	if (remote) {
		struct mpi_comm *side = mpi_comm_make(context[1], local, NULL, parent);

		if (comm && side) {
			comm->local_comm = side;
			side->calls.nested = true;
		} else {
			mpi_comm_unmake(side);
			mpi_comm_unmake(comm);
			comm = NULL;
		}
	}
	if (!comm)
		return mpi_fail_memory("a communicator");
	*out = comm;
	return MPI_SUCCESS;
}

/* ---- duplicates ------------------------------------------------------------------------------ */

int mpi_comm_complete_dup(struct mpi_comm *comm, const struct mpi_info *info,
			  struct mpi_comm **copy)
{
	int err;

	(*copy)->topology = mpi_topology_keep(comm->topology);
	err = mpi_comm_take_hints(*copy, info);
	if (err == MPI_SUCCESS)
		err = mpi_attrs_copy(comm, MPI_KIND_COMM, comm->attrs, *copy, &(*copy)->attrs);
	if (err != MPI_SUCCESS) {
		mpi_comm_unmake(*copy);
		*copy = NULL;
	}
	return err;
}

/* The duplicate does not get the original's hints (MPI-4 §7.4.2). */
int mpi_comm_dup_with_info(struct mpi_comm *comm, struct mpi_info *info, struct mpi_comm **out)
{
	struct mpi_creation creation = mpi_creation_of(comm);
	struct mpi_comm *copy = NULL;
	uint32_t context[2] = { 0 };
	int err = mpi_creation_contexts(&creation, MPI_SUCCESS, comm->inter ? 2 : 1, context);

	if (err == MPI_SUCCESS)
		err = mpi_comm_make_agreed(context, comm->local, comm->inter ? comm->remote : NULL,
					   comm, &copy);
	if (err == MPI_SUCCESS)
		err = mpi_comm_complete_dup(comm, info, &copy);
	if (err == MPI_SUCCESS)
		*out = copy;
	return err;
}

int mpi_comm_dup(struct mpi_comm *comm, struct mpi_comm **out)
{
	return mpi_comm_dup_with_info(comm, NULL, out);
}

/* ---- from a group ---------------------------------------------------------------------------- */

/* Check that all members of the group are in comm's local one. Works without memory, too: then
 * it looks up each rank by itself. */
static int check_subset(const struct mpi_group *group, const struct mpi_comm *comm)
{
	int *inverse = mpi_group_inverse(comm->local), err = MPI_SUCCESS;

	for (int i = 0; i < group->size && !err; i++) {
		const int world = mpi_group_world(group, i);

		if ((inverse ? inverse[world] : mpi_group_rank_in(comm->local, world)) ==
		    MPI_UNDEFINED)
			err = mpi_fail(MPI_ERR_GROUP,
				       "rank %d of the group is not in the communicator", i);
	}
	free(inverse);
	return err;
}

/* Different callers may give different groups if these do not overlap; then they share the
 * context number. */
static int create_intra(struct mpi_comm *comm, int err, struct mpi_group *group,
			struct mpi_comm **out)
{
	struct mpi_creation creation = mpi_creation_of(comm);
	uint32_t context[1] = { 0 };

	err = mpi_creation_contexts(&creation, err, 1, context);
	if (err != MPI_SUCCESS)
		return err;
	if (group->rank == MPI_UNDEFINED) {
		mpi_context_release(context[0]);
		*out = NULL;
		return MPI_SUCCESS;
	}
	return mpi_comm_make_agreed(context, group, NULL, comm, out);
}

static int create_inter(struct mpi_comm *comm, int err, struct mpi_group *group,
			struct mpi_comm **out)
{
	struct mpi_creation creation = mpi_creation_of(comm);
	struct mpi_group *theirs = NULL;
	uint32_t context[2] = { 0 };

	err = mpi_creation_swap_groups(&creation, err, group, &theirs);
	if (err == MPI_SUCCESS)
		err = mpi_creation_contexts(
			&creation, theirs ? MPI_SUCCESS : mpi_fail_memory("a group"), 2, context);
	if (err != MPI_SUCCESS || !theirs) {
		mpi_creation_release(theirs);
		return err;
	}
	if (group->rank == MPI_UNDEFINED || theirs->size == 0) {
		mpi_context_release(context[0]);
		mpi_context_release(context[1]);
		*out = NULL;
	} else {
		err = mpi_comm_make_agreed(context, group, theirs, comm, out);
	}
	mpi_creation_release(theirs);
	return err;
}

int mpi_comm_create(struct mpi_comm *comm, struct mpi_group *group, struct mpi_comm **out)
{
	/* take part after an error, too: the others wait for this rank */
	int err = check_subset(group, comm);

	return comm->inter ? create_inter(comm, err, group, out)
			   : create_intra(comm, err, group, out);
}

int mpi_comm_create_group(struct mpi_comm *comm, struct mpi_group *group, int tag,
			  struct mpi_comm **out)
{
	struct mpi_creation creation = { .kind = MPI_CREATION_GROUP,
					 .comm = comm,
					 .tag = mpi_tag_comm_group(tag),
					 .group = group };
	uint32_t context[1] = { 0 };
	int err;

	if (comm->inter)
		return mpi_fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
	if (tag < 0)
		return mpi_fail(MPI_ERR_TAG, "tag %d is negative", tag);
	err = check_subset(group, comm);
	if (err != MPI_SUCCESS)
		return err;
	if (group->rank == MPI_UNDEFINED) {
		*out = NULL;
		return MPI_SUCCESS;
	}
	err = mpi_creation_contexts(&creation, MPI_SUCCESS, 1, context);
	return err == MPI_SUCCESS ? mpi_comm_make_agreed(context, group, NULL, comm, out) : err;
}
