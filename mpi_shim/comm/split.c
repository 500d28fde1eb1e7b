/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Comm_split and MPI_Comm_split_type. Every rank learns the colours and keys of all ranks,
 * 8 bytes each, and sorts those of its own colour. Disjoint parts share the context number.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/core/context.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/comm/creation.h"
#include "mpi_shim/core/world.h"

struct choice {
	int colour, key;
};

struct place {
	int key, rank;
};

static int compare_choices(const void *a, const void *b)
{
	const struct place *p = a, *q = b;

	if (p->key != q->key)
		return p->key < q->key ? -1 : 1;
	return p->rank < q->rank ? -1 : 1;
}

/* The group of the processes of `from` that chose this colour, in the order of key and rank.
 * NULL: out of memory. */
static struct mpi_group *group_of_colour(const struct mpi_group *from, const struct choice *choice,
					 int colour)
{
	struct place *place;
	int n = 0, *world;

	for (int i = 0; i < from->size; i++)
		n += choice[i].colour == colour;
	place = malloc(((size_t)n + 1) * sizeof(*place));
	world = malloc(((size_t)n + 1) * sizeof(*world));
	if (!place || !world) {
		free(place);
		free(world);
		return NULL;
	}
	n = 0;
	for (int i = 0; i < from->size; i++)
		if (choice[i].colour == colour)
			place[n++] = (struct place){ choice[i].key, i };
	qsort(place, (size_t)n, sizeof(*place), compare_choices);
	for (int i = 0; i < n; i++)
		world[i] = mpi_group_world(from, place[i].rank);
	free(place);
	return mpi_group_make(n, world);
}

struct split {
	struct mpi_comm *comm;
	struct mpi_creation creation;
	struct choice *local, *remote; /* by rank */
};

/* Collect the choices of all ranks, of both sides if there are two. */
static int collect_choices(struct split *s, struct choice mine)
{
	struct mpi_comm *side = s->comm->inter ? s->comm->local_comm : s->comm;
	const int ints = sizeof(struct choice) / sizeof(int);
	int err = MPI_SUCCESS;

	s->local = malloc((size_t)s->comm->size * sizeof(*s->local));
	s->remote = malloc((size_t)s->comm->remote_size * sizeof(*s->remote));
	if (!s->local || !s->remote)
		err = mpi_fail_memory("the colours and keys of all ranks");
	err = mpi_creation_side(&s->creation, err);
	if (err == MPI_SUCCESS)
		err = mpi_coll_allgather_bytes(&mine, s->local, sizeof(mine), side);
	if (s->comm->inter)
		err = mpi_creation_swap(&s->creation, err, (const int *)s->local,
					ints * s->comm->size, (int *)s->remote,
					ints * s->comm->remote_size);
	return err;
}

/* Make a communicator of these groups, if each side has a process in it. */
static int make_colour(const struct split *s, struct mpi_group *local, struct mpi_group *remote,
		       const uint32_t *context, struct mpi_comm **out)
{
	const int n = s->comm->inter ? 2 : 1;

	if (local && (!remote || remote->size > 0))
		return mpi_comm_make_agreed(context, local, remote, s->comm, out);
	for (int i = 0; i < n; i++)
		mpi_context_release(context[i]);
	*out = NULL;
	return MPI_SUCCESS;
}

static int split_by(struct split *s, int colour, int key, struct mpi_comm **out)
{
	const bool in = colour != MPI_UNDEFINED, inter = s->comm->inter;
	struct mpi_group *local = NULL, *remote = NULL;
	uint32_t context[2] = { 0 };
	int err = collect_choices(s, (struct choice){ colour, key });

	/* take part after an error, too: the others may know of none */
	if (in && err == MPI_SUCCESS)
		local = group_of_colour(s->comm->local, s->local, colour);
	if (in && inter && err == MPI_SUCCESS)
		remote = group_of_colour(s->comm->remote, s->remote, colour);
	if (in && err == MPI_SUCCESS && (!local || (inter && !remote)))
		err = mpi_fail_memory("a communicator");
	err = mpi_creation_contexts(&s->creation, err, inter ? 2 : 1, context);
	if (err == MPI_SUCCESS)
		err = make_colour(s, local, remote, context, out);
	mpi_object_release(local);
	mpi_object_release(remote);
	return err;
}

/* An invalid colour counts as MPI_UNDEFINED for the other ranks, which would wait for ever
 * otherwise. */
int mpi_comm_split(struct mpi_comm *comm, int colour, int key, struct mpi_comm **out)
{
	struct split s = { .comm = comm, .creation = mpi_creation_of(comm) };
	bool valid = colour >= 0 || colour == MPI_UNDEFINED;
	int err = split_by(&s, valid ? colour : MPI_UNDEFINED, key, out);

	free(s.local);
	free(s.remote);
	if (err == MPI_SUCCESS && !valid)
		err = mpi_fail(MPI_ERR_ARG, "colour %d is negative and not MPI_UNDEFINED", colour);
	return err;
}

/* ---- split_type ------------------------------------------------------------------------------ */

static ptl_nid_t node_of_world(int world)
{
	return mpi_world.id[world].nid;
}

/* The lowest rank of the job on this process's node. It identifies the node, and is the same for
 * both groups of an intercommunicator. */
static int node_colour(void)
{
	int first = 0;

	while (node_of_world(first) != node_of_world(mpi_world.rank))
		first++;
	return first;
}

static bool group_elsewhere(const struct mpi_group *group)
{
	for (int i = 0; i < group->size; i++)
		if (node_of_world(mpi_group_world(group, i)) != node_of_world(mpi_world.rank))
			return true;
	return false;
}

/* Shared memory is the only kind of hardware known here; other kinds give no communicator (MPI-4
 * §7.4.2). */
static int guided_colour(const struct mpi_info *info)
{
	const char *kind = mpi_info_value(info, "mpi_hw_resource_type");

	return kind && strcmp(kind, "mpi_shared_memory") == 0 ? node_colour() : MPI_UNDEFINED;
}

/* In an intercommunicator the processes of a node on both sides stay together, as with
 * MPI_Comm_split. If a node has processes on one side only, they get no communicator. */
int mpi_comm_split_type(struct mpi_comm *comm, int type, int key, struct mpi_info *info,
			struct mpi_comm **out)
{
	int colour = MPI_UNDEFINED, err;
	bool known = true;

	switch (type) {
	case MPI_COMM_TYPE_SHARED:
		colour = node_colour();
		break;
	case MPI_COMM_TYPE_HW_UNGUIDED: /* parts must be smaller than the whole */
		if (group_elsewhere(comm->local) || group_elsewhere(comm->remote))
			colour = node_colour();
		break;
	case MPI_COMM_TYPE_HW_GUIDED:
	case MPI_COMM_TYPE_RESOURCE_GUIDED:
		colour = guided_colour(info);
		break;
	default:
		known = type == MPI_UNDEFINED;
	}
	err = mpi_comm_split(comm, colour, key, out);
	if (err == MPI_SUCCESS && !known)
		err = mpi_fail(MPI_ERR_ARG, "%d is not a way to split a communicator", type);
	return err;
}
