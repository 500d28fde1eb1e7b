/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Communicators from groups alone. There is no communicator yet in which the members could agree
 * on a number. So they do it in one of all processes of the job that no program sees, under a tag
 * that is a hash of the caller's string and of the group.
 */
#include <string.h>

#include "mpi_shim/comm/comm.h"
#include "mpi_shim/comm/creation.h"
#include "mpi_shim/core/context.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/impl.h"

static uint64_t hash_of_string(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

/* Each bit of the result depends on all of `x`. */
static uint64_t mix_bits(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* A sum over the members, which does not depend on their order: both sides of an
 * intercommunicator may add it to that of the other. */
static uint64_t hash_of(const struct mpi_group *group, const char *stringtag)
{
	const uint64_t text = hash_of_string(stringtag);
	uint64_t sum = 0;

	for (int i = 0; i < group->size; i++)
		sum += mix_bits(text +
				((uint64_t)mpi_group_world(group, i) + 1) * 0x9e3779b97f4a7c15);
	return sum;
}

/* All bits of the hash count. */
static int fold_hash(uint64_t hash, int bits)
{
	return (int)(mix_bits(hash) >> (64 - bits));
}

static int check_call(const struct mpi_group *group, const struct mpi_errhandler *handler)
{
	if (handler->serves != MPI_SERVES_ANY && handler->serves != MPI_SERVES_COMM)
		return mpi_fail(MPI_ERR_ARG, "the error handler was not created by "
					     "MPI_Comm_create_errhandler");
	if (group->size && group->rank == MPI_UNDEFINED)
		return mpi_fail(MPI_ERR_GROUP, "this process is not in the group");
	if (group->others)
		return mpi_fail(MPI_ERR_GROUP, "the group has processes of other jobs");
	return mpi_world.connect();
}

/* Gives the communicator what it does not have from a parent. */
static int complete(struct mpi_comm *comm, const struct mpi_group *group, struct mpi_info *info,
		    struct mpi_errhandler *handler)
{
	struct mpi_comm *both[] = { comm, comm->local_comm };

	for (int i = 0; i < 2 && both[i]; i++) {
		mpi_object_release(both[i]->handler);
		both[i]->handler = mpi_object_keep(handler);
		both[i]->session = group->session;
	}
	return mpi_comm_take_hints(comm, info);
}

static int make_intra(struct mpi_group *group, const char *stringtag, struct mpi_comm **out)
{
	struct mpi_creation creation = {
		.kind = MPI_CREATION_GROUP,
		.comm = &mpi_comm_job,
		.tag = MPI_TAG_COMM_FROM_GROUP + fold_hash(hash_of(group, stringtag), 28),
		.group = group,
	};
	uint32_t context[1] = { 0 };
	int err = mpi_creation_contexts(&creation, MPI_SUCCESS, 1, context);

	return err ? err : mpi_comm_make_agreed(context, group, NULL, &mpi_comm_job, out);
}

int mpi_comm_create_from_group(struct mpi_group *group, const char *stringtag,
			       struct mpi_info *info, struct mpi_errhandler *errhandler,
			       struct mpi_comm **newcomm)
{
	struct mpi_comm *comm = NULL;
	int err = check_call(group, errhandler);

	*newcomm = NULL;
	if (err || !group->size)
		return err;
	err = make_intra(group, stringtag, &comm);
	if (err)
		return err;
	err = complete(comm, group, info, errhandler);
	if (err)
		mpi_comm_unmake(comm);
	else
		*newcomm = comm;
	return err;
}

/* ---- intercommunicators ---------------------------------------------------------------------- */

static int check_leader(const struct mpi_group *group, int leader, const char *which)
{
	if (leader >= 0 && leader < group->size)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_RANK, "%s_leader %d is not in %s_group, which has %d", which,
			leader, which, group->size);
}

/* The other side must be the group that was given here. All ranks find the same, unless they were
 * given different groups. */
static int check_remote(const struct mpi_comm *comm, struct mpi_group *remote)
{
	int result = MPI_UNEQUAL;
	int err = mpi_group_compare(comm->remote, remote, &result);

	if (err || result == MPI_IDENT)
		return err;
	return mpi_fail(MPI_ERR_GROUP, "remote_group is not the other side's local_group");
}

static int join_sides(struct mpi_comm *side, int local_leader, struct mpi_group *remote,
		      int remote_leader, uint64_t hash, struct mpi_comm **out)
{
	int err = mpi_intercomm_create(side, local_leader, &mpi_comm_job,
				       mpi_group_world(remote, remote_leader), fold_hash(hash, 29),
				       out);

	if (err)
		return err;
	err = check_remote(*out, remote);
	if (err) {
		mpi_comm_unmake(*out);
		*out = NULL;
	}
	return err;
}

int mpi_intercomm_create_from_groups(struct mpi_group *local_group, int local_leader,
				     struct mpi_group *remote_group, int remote_leader,
				     const char *stringtag, struct mpi_info *info,
				     struct mpi_errhandler *errhandler,
				     struct mpi_comm **newintercomm)
{
	struct mpi_comm *side = NULL, *comm = NULL;
	int err = check_leader(local_group, local_leader, "local");

	if (!err)
		err = check_leader(remote_group, remote_leader, "remote");
	if (!err)
		err = check_call(local_group, errhandler);
	if (!err)
		err = make_intra(local_group, stringtag, &side);
	if (err)
		return err;
	err = join_sides(side, local_leader, remote_group, remote_leader,
			 hash_of(local_group, stringtag) + hash_of(remote_group, stringtag), &comm);
	mpi_comm_unmake(side);
	if (!err)
		err = complete(comm, local_group, info, errhandler);
	if (err)
		mpi_comm_unmake(comm);
	else
		*newintercomm = comm;
	return err;
}
