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
#include "mpi_shim/core/hardware.h"
#include "mpi_shim/core/info.h"
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

/* The number of the only resource of a type that this process may use, in the job: that of its
 * node and that on the node. MPI_UNDEFINED: there is none. */
static int resource_colour(int type)
{
	const int index = type < 0 ? -1 : mpi_hardware_index(type);

	return index < 0 ? MPI_UNDEFINED : node_colour() * (MPI_HARDWARE_INDEX_MOST + 1) + index;
}

/* A type that is unknown here gives no communicator (MPI-4 §7.4.2). */
static int guided_colour(const struct mpi_info *info)
{
	const char *name = mpi_info_value(info, "mpi_hw_resource_type");

	if (!name)
		return MPI_UNDEFINED;
	return strcmp(name, "mpi_shared_memory") == 0 ? node_colour()
						      : resource_colour(mpi_hardware_type(name));
}

/* The process sets that every job has. */
static int set_colour(const char *name)
{
	if (strcmp(name, "mpi://WORLD") == 0)
		return 0;
	if (strcmp(name, "mpi://SELF") == 0)
		return mpi_world.rank;
	return strcmp(name, "mpi://SHARED") == 0 ? node_colour() : MPI_UNDEFINED;
}

/* Only one of the keys may be set. */
static bool has_both_keys(const struct mpi_info *info)
{
	return mpi_info_value(info, "mpi_pset_name") &&
	       mpi_info_value(info, "mpi_hw_resource_type");
}

static int resource_guided_colour(const struct mpi_info *info)
{
	const char *set = mpi_info_value(info, "mpi_pset_name");

	if (has_both_keys(info))
		return MPI_UNDEFINED;
	return set ? set_colour(set) : guided_colour(info);
}

/*
 * Find the widest type of hardware of which the processes of comm use more than one resource, or
 * some use none alone. Collective; a process that takes no part in the split knows no types, so
 * all of them first ask whether any does. -1: there is no such type, or none asks.
 */
static int agree_on_type(struct mpi_comm *comm, bool wanted, int *type)
{
	int64_t any = wanted, id[MPI_HARDWARE_TYPES][2]; /* largest; largest of the negative ones */
	int err = mpi_coll_allreduce_max(&any, 1, comm);

	*type = -1;
	if (err != MPI_SUCCESS || !any)
		return err;
	for (int i = 0; i < MPI_HARDWARE_TYPES; i++) {
		int colour = mpi_hardware_name(i) ? resource_colour(i) : MPI_UNDEFINED;

		id[i][0] = colour == MPI_UNDEFINED ? -1 : colour;
		id[i][1] = -id[i][0];
	}
	err = mpi_coll_allreduce_max(id[0], 2 * MPI_HARDWARE_TYPES, comm);
	for (int i = 0; err == MPI_SUCCESS && *type < 0 && i < MPI_HARDWARE_TYPES; i++)
		if (id[i][0] != -id[i][1])
			*type = i;
	return err;
}

/* The part of this process in a split into parts that are smaller than the whole. Of an
 * intercommunicator the parts are nodes. */
static int unguided_colour(struct mpi_comm *comm, int type)
{
	if (!comm->inter)
		return resource_colour(type);
	return group_elsewhere(comm->local) || group_elsewhere(comm->remote) ? node_colour()
									     : MPI_UNDEFINED;
}

/* The part of this process, as the way to split says. `hardware`: the type that was agreed on. */
static int colour_by(struct mpi_comm *comm, int type, const struct mpi_info *info, int hardware)
{
	switch (type) {
	case MPI_COMM_TYPE_SHARED:
		return node_colour();
	case MPI_COMM_TYPE_HW_UNGUIDED:
		return unguided_colour(comm, hardware);
	case MPI_COMM_TYPE_HW_GUIDED:
		return guided_colour(info);
	case MPI_COMM_TYPE_RESOURCE_GUIDED:
		return resource_guided_colour(info);
	default:
		return MPI_UNDEFINED;
	}
}

static int check_split(int type, const struct mpi_info *info)
{
	if (type == MPI_COMM_TYPE_RESOURCE_GUIDED && has_both_keys(info))
		return mpi_fail(MPI_ERR_INFO, "mpi_hw_resource_type and mpi_pset_name are both "
					      "set, but only one of them may be");
	if (type == MPI_UNDEFINED || type == MPI_COMM_TYPE_SHARED ||
	    type == MPI_COMM_TYPE_HW_UNGUIDED || type == MPI_COMM_TYPE_HW_GUIDED ||
	    type == MPI_COMM_TYPE_RESOURCE_GUIDED)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_ARG, "%d is not a way to split a communicator", type);
}

/* Keep the hints of a part, and say in the info object what an unguided one stands for. */
static int take_part_info(struct mpi_comm *part, struct mpi_info *info, const char *hardware)
{
	if (hardware && info && info != &mpi_info_env) {
		int err = mpi_info_put(info, "mpi_hw_resource_type", hardware);

		if (err != MPI_SUCCESS)
			return err;
	}
	return mpi_comm_take_hints(part, info);
}

/* In an intercommunicator the processes of a node on both sides stay together, as with
 * MPI_Comm_split. If a node has processes on one side only, they get no communicator. A process
 * with an argument that is wrong takes part without a colour, as the others know nothing. */
int mpi_comm_split_type(struct mpi_comm *comm, int type, int key, struct mpi_info *info,
			struct mpi_comm **out)
{
	const bool unguided = type == MPI_COMM_TYPE_HW_UNGUIDED;
	struct mpi_comm *part = NULL;
	int hardware = MPI_HARDWARE_HOST;
	int err = comm->inter ? MPI_SUCCESS : agree_on_type(comm, unguided, &hardware);

	if (err == MPI_SUCCESS)
		err = mpi_comm_split(comm, colour_by(comm, type, info, hardware), key, &part);
	if (err == MPI_SUCCESS)
		err = check_split(type, info);
	if (err == MPI_SUCCESS && part)
		err = take_part_info(part, info, unguided ? mpi_hardware_name(hardware) : NULL);
	if (err == MPI_SUCCESS)
		*out = part;
	else
		mpi_comm_unmake(part);
	return err;
}
