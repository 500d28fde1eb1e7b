/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Make the communicator of a topology, from the first ranks of another communicator.
 */
#include <stdlib.h>

#include "mpi_shim/comm/comm.h"
#include "mpi_shim/comm/creation.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/topology.h"

static struct mpi_group *first_ranks(const struct mpi_comm *comm, int n, const int *order)
{
	int *world;

	if (n == comm->size && !order)
		return mpi_object_keep(comm->local);
	world = malloc(((size_t)n + 1) * sizeof(*world));
	if (!world)
		return NULL;
	for (int i = 0; i < n; i++)
		world[i] = mpi_group_world(comm->local, order ? order[i] : i);
	return mpi_group_make(n, world);
}

int mpi_topology_attach(struct mpi_comm *comm, int n, const int *order, struct mpi_topology *t,
			struct mpi_comm **out)
{
	struct mpi_group *group = t ? first_ranks(comm, n, order) : NULL;
	struct mpi_comm *made = NULL;
	int err;

	if (!group) {
		/* as mpi_comm_create does: without memory here the others get an error, too */
		struct mpi_creation creation = mpi_creation_of(comm);
		uint32_t context[1];

		mpi_topology_release(t);
		return mpi_creation_contexts(&creation, mpi_fail_memory("a topology"), 1, context);
	}
	err = mpi_comm_create(comm, group, &made);
	mpi_object_release(group);
	if (err != MPI_SUCCESS || !made)
		mpi_topology_release(t);
	else
		made->topology = t;
	if (err == MPI_SUCCESS)
		*out = made;
	return err;
}
