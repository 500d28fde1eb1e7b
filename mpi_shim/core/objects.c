/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The predefined communicators, groups, error handlers and info object, and the pools of all
 * others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/attr.h"
#include "mpi_shim/core/context.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/info.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/topology.h"
#include "mpi_shim/core/world.h"

struct mpi_comm mpi_comm_world, mpi_comm_self, mpi_comm_job;

static uint32_t number_of_handle(const void *handle)
{
	return (uint32_t)(uintptr_t)handle;
}

static void keeps_nothing(struct mpi_comm *comm)
{
	(void)comm;
}

static void (*end_collectives)(struct mpi_comm *comm) = keeps_nothing;

void mpi_comm_at_end(void (*end)(struct mpi_comm *comm))
{
	end_collectives = end;
}

static void comm_destroy(void *object)
{
	struct mpi_comm *comm = object;

	end_collectives(comm);
	if (!comm->failed) /* else messages of it may still be queued */
		mpi_context_release(comm->context);
	mpi_object_release(comm->local_comm);
	mpi_object_release(comm->local);
	mpi_object_release(comm->remote);
	mpi_object_release(comm->handler);
	mpi_object_release(comm->info);
	mpi_topology_release(comm->topology);
	free(comm->buffer); /* its messages had a reference to the communicator and are gone */
}

static void group_destroy(void *object)
{
	struct mpi_group *g = object;

	if (g->owner)
		mpi_object_release(g->owner);
	else
		free(g->world);
}

static void predefine_handler(struct mpi_errhandler *e, MPI_Errhandler handle)
{
	mpi_object_predefine(e, MPI_KIND_ERRHANDLER, number_of_handle(handle));
}

/* Info objects and error handlers can be made before MPI_Init (MPI-4 §11.2.1). Fortran's
 * constructor makes some: in a program without shared libraries only priorities tell which one is
 * first. */
__attribute__((constructor(200))) static void set_up_pools(void)
{
	mpi_pool_setup(MPI_KIND_COMM, sizeof(struct mpi_comm), comm_destroy);
	mpi_pool_setup(MPI_KIND_GROUP, sizeof(struct mpi_group), group_destroy);
	mpi_pool_setup(MPI_KIND_ERRHANDLER, sizeof(struct mpi_errhandler), NULL);
	mpi_pool_setup(MPI_KIND_INFO, sizeof(struct mpi_info), mpi_info_destroy);
	predefine_handler(&mpi_errors_are_fatal, MPI_ERRORS_ARE_FATAL);
	predefine_handler(&mpi_errors_abort, MPI_ERRORS_ABORT);
	predefine_handler(&mpi_errors_return, MPI_ERRORS_RETURN);
	mpi_object_predefine(&mpi_info_env, MPI_KIND_INFO, number_of_handle(MPI_INFO_ENV));
	mpi_object_predefine(&mpi_group_empty, MPI_KIND_GROUP, number_of_handle(MPI_GROUP_EMPTY));
	mpi_group_empty.rank = MPI_UNDEFINED;
}

static int make_comm(struct mpi_comm *comm, const char *name, uint32_t context,
		     struct mpi_group *group)
{
	if (!group)
		return mpi_fail_memory("the predefined communicators");
	memset(comm, 0, sizeof(*comm));
	comm->obj.kind = MPI_KIND_COMM;
	comm->obj.refs = 1;
	comm->context = context;
	comm->local = group;
	comm->remote = mpi_object_keep(group);
	comm->rank = group->rank;
	comm->size = comm->remote_size = group->size;
	comm->handler = &mpi_errors_are_fatal;
	snprintf(comm->name, sizeof(comm->name), "%s", name);
	return MPI_SUCCESS;
}

/* Returns the group of the first `size` processes. */
static struct mpi_group *first_ones(int size)
{
	return mpi_group_make(size, NULL);
}

static struct mpi_group *myself(void)
{
	int *world = malloc(sizeof(*world));

	if (!world)
		return NULL;
	*world = mpi_world.rank;
	return mpi_group_make(1, world);
}

int mpi_objects_init(void)
{
	mpi_contexts_init();
	return make_comm(&mpi_comm_job, "the job", MPI_CONTEXT_WORLD, first_ones(mpi_world.size));
}

int mpi_world_objects_init(void)
{
	int err = make_comm(&mpi_comm_world, "MPI_COMM_WORLD", MPI_CONTEXT_WORLD,
			    first_ones(mpi_world.size));

	if (err == MPI_SUCCESS)
		err = make_comm(&mpi_comm_self, "MPI_COMM_SELF", MPI_CONTEXT_SELF, myself());
	if (err == MPI_SUCCESS)
		err = mpi_info_env_fill(0, NULL, &mpi_info_env);
	if (err != MPI_SUCCESS)
		return err;
	mpi_object_predefine(&mpi_comm_world, MPI_KIND_COMM, number_of_handle(MPI_COMM_WORLD));
	mpi_object_predefine(&mpi_comm_self, MPI_KIND_COMM, number_of_handle(MPI_COMM_SELF));
	return MPI_SUCCESS;
}

static void end_predefined(struct mpi_comm *comm)
{
	if (!comm->local)
		return;
	end_collectives(comm);
	mpi_object_release(comm->local);
	mpi_object_release(comm->remote);
	mpi_object_release(comm->handler);
	mpi_object_release(comm->info);
	comm->local = comm->remote = NULL;
	comm->handler = NULL;
	comm->info = NULL;
}

void mpi_world_objects_fini(void)
{
	mpi_predefined[number_of_handle(MPI_COMM_SELF)] = NULL;
	mpi_predefined[number_of_handle(MPI_COMM_WORLD)] = NULL;
	end_predefined(&mpi_comm_self);
	end_predefined(&mpi_comm_world);
	mpi_info_clear(&mpi_info_env);
}

void mpi_objects_fini(void)
{
	end_predefined(&mpi_comm_job);
	mpi_keyvals_fini();
}
