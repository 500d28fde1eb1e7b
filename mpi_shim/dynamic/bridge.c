/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How two jobs become one intercommunicator. Each side tells the other how many processes it
 * has, then their names and what they give each process of the other side to use. When every
 * process has admitted those of the other side, all agree on context numbers as for any other
 * communicator (comm/creation.h). So no message comes before its receiver knows the sender.
 */
#include "mpi_shim/dynamic/bridge.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/comm/creation.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/process.h"
#include "mpi_shim/pt2pt/protocol.h"

/* A process, as it presents itself to its own side. */
struct member {
	struct mpi_process_name name;
	struct mpi_shares left;
};

/* A side, as it presents itself to the other one; the names follow. */
struct side {
	struct mpi_shares gives; /* each process to each of the other side */
	struct mpi_process_name name[];
};

struct bridge {
	struct mpi_comm *comm;
	struct mpi_creation creation;
	struct member *members; /* of this side */
	struct side *ours, *theirs;
	int n; /* processes of the other side */
	int connected;
	int *world; /* their numbers; the group's, when there is one */
	struct mpi_group *group;
};

int mpi_bridge_check(const struct mpi_comm *comm, int root)
{
	if (comm->inter)
		return mpi_fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
	if (root < 0 || root >= comm->size)
		return mpi_fail(MPI_ERR_ROOT, "root %d is not in the communicator, which has %d",
				root, comm->size);
	return MPI_SUCCESS;
}

int mpi_bridge_hear(struct mpi_comm *comm, int root, int err, const char *doing)
{
	int heard = err, rc = mpi_coll_bcast_bytes(&heard, sizeof(heard), root, comm);

	if (comm->rank == root)
		return err;
	if (rc != MPI_SUCCESS || heard == MPI_SUCCESS)
		return rc;
	return mpi_fail(heard, "the root, rank %d, could not %s", root, doing);
}

static size_t side_bytes(int n)
{
	return sizeof(struct side) + (size_t)n * sizeof(struct mpi_process_name);
}

static int ints(size_t bytes)
{
	return (int)(bytes / sizeof(int));
}

static void take_least(struct mpi_shares *to, const struct mpi_shares *s)
{
	if (s->bytes < to->bytes)
		to->bytes = s->bytes;
	if (s->slots < to->slots)
		to->slots = s->slots;
}

/* Gathers the names of this side, and what it can give. */
static int gather_side(struct bridge *b)
{
	const int size = b->comm->size;
	struct member me = { mpi_process_name(mpi_world.rank), mpi_others_can_give(b->n) };
	int err;

	b->members = malloc((size_t)size * sizeof(*b->members));
	b->ours = malloc(side_bytes(size));
	b->theirs = malloc(side_bytes(b->n));
	b->world = malloc((size_t)b->n * sizeof(*b->world));
	err = b->members && b->ours && b->theirs && b->world
		      ? MPI_SUCCESS
		      : mpi_fail_memory("the processes of another job");
	err = mpi_creation_side(&b->creation, err);
	if (err == MPI_SUCCESS)
		err = mpi_coll_allgather_bytes(&me, b->members, sizeof(me), b->comm);
	if (err != MPI_SUCCESS)
		return err;
	b->ours->gives = b->members[0].left;
	for (int i = 0; i < size; i++) {
		take_least(&b->ours->gives, &b->members[i].left);
		b->ours->name[i] = b->members[i].name;
	}
	return MPI_SUCCESS;
}

/* Exchanges the number of processes, then their names. */
static int learn_other_side(struct bridge *b)
{
	const int mine = b->comm->size;
	int err = mpi_creation_swap(&b->creation, MPI_SUCCESS, &mine, 1, &b->n, 1);

	if (err == MPI_SUCCESS && (b->n < 1 || b->n > MPI_PROCESSES_MOST))
		err = mpi_fail(MPI_ERR_OTHER, "the other job has %d processes", b->n);
	if (err == MPI_SUCCESS)
		err = gather_side(b);
	return mpi_creation_swap(&b->creation, err, (const int *)b->ours, ints(side_bytes(mine)),
				 (int *)b->theirs, ints(side_bytes(b->n)));
}

/* Jobs have different keys, so that no network leads from one to the other. */
static int check_reachable(const struct mpi_process_name *name)
{
	const char *nal = base_config()->ptl_nal;

	if (name->nid != mpi_world.id[mpi_world.rank].nid)
		return mpi_fail(MPI_ERR_OTHER,
				"rank %u of the other job is on another node: jobs are connected "
				"through shared memory",
				name->rank);
	if (strcmp(nal, "auto") != 0 && strncmp(nal, "shm", 3) != 0)
		return mpi_fail(MPI_ERR_OTHER,
				"jobs are connected through shared memory, and PTL_NAL=%s asks "
				"for something else",
				nal);
	return MPI_SUCCESS;
}

static int connect_process(const struct bridge *b, const struct mpi_process_name *name, int *world)
{
	int err = MPI_SUCCESS;

	*world = mpi_process_add(name);
	if (*world < 0)
		return mpi_fail_memory("the processes of another job");
	if (mpi_is_other_job(*world))
		err = check_reachable(name);
	return err ? err : mpi_other_connect(*world, b->theirs->gives, b->ours->gives);
}

/* Admits the processes of the other side. */
static int connect_processes(struct bridge *b)
{
	int err = MPI_SUCCESS;

	while (b->connected < b->n && err == MPI_SUCCESS) {
		int world;

		err = connect_process(b, &b->theirs->name[b->connected], &world);
		if (err == MPI_SUCCESS)
			b->world[b->connected++] = world;
	}
	return err;
}

/* The group of the other side. Both sides must have no process in common. */
static int make_other_group(struct bridge *b)
{
	int *copy = malloc((size_t)b->n * sizeof(*copy));

	for (int i = 0; copy && i < b->n; i++)
		copy[i] = b->world[i];
	b->group = copy ? mpi_group_make(b->n, copy) : NULL;
	if (!b->group)
		return mpi_fail_memory("a group");
	for (int i = 0; i < b->comm->size; i++)
		if (mpi_group_rank_in(b->group, mpi_group_world(b->comm->local, i)) !=
		    MPI_UNDEFINED)
			return mpi_fail(MPI_ERR_COMM,
					"rank %d of the communicator is on both sides", i);
	return MPI_SUCCESS;
}

static void end_bridge(struct bridge *b)
{
	mpi_object_release(b->group);
	for (int i = 0; i < b->connected; i++)
		mpi_other_release(b->world[i]);
	free(b->members);
	free(b->ours);
	free(b->theirs);
	free(b->world);
}

int mpi_bridge_make(struct mpi_comm *comm, int root, int err, struct mpi_channel *c,
		    struct mpi_comm **out)
{
	struct bridge b = { .comm = comm };
	uint32_t context[2] = { 0 };
	bool met;

	b.creation = (struct mpi_creation){ .kind = MPI_CREATION_BRIDGE,
					    .comm = comm,
					    .leader = root,
					    .exchange = mpi_channel_exchange,
					    .link = c };
	err = mpi_bridge_hear(comm, root, err, "meet the other job");
	if (err != MPI_SUCCESS)
		return err;
	err = learn_other_side(&b);
	met = err == MPI_SUCCESS;
	if (met)
		err = connect_processes(&b);
	if (met && err == MPI_SUCCESS)
		err = make_other_group(&b);
	/* also after an error of this process: the others wait for it */
	if (met)
		err = mpi_creation_contexts(&b.creation, err, 2, context);
	if (err == MPI_SUCCESS)
		err = mpi_comm_make_agreed(context, comm->local, b.group, comm, out);
	end_bridge(&b);
	if (comm->rank == root)
		mpi_channel_close(c);
	return err;
}
