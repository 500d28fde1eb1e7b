/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Topologies as objects; cart.c, graph.c and dist_graph.c fill them.
 */
#include "mpi_shim/topology.h"

#include <stdlib.h>

#include "mpi_shim/comm.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

struct mpi_topology *mpi_topology_new(int kind, int64_t words)
{
	struct mpi_topology *t = calloc(1, sizeof(*t) + (size_t)words * sizeof(t->memory[0]));

	if (!t)
		return NULL;
	t->refs = 1;
	t->kind = kind;
	return t;
}

struct mpi_topology *mpi_topology_keep(struct mpi_topology *t)
{
	if (t)
		t->refs++;
	return t;
}

void mpi_topology_release(struct mpi_topology *t)
{
	if (t && --t->refs == 0)
		free(t);
}

int mpi_topo_test(struct mpi_comm *comm, int *status)
{
	*status = comm->topology ? comm->topology->kind : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

const struct mpi_topology *mpi_topology_of(const struct mpi_comm *comm, int kind)
{
	const char *what = kind == MPI_CART    ? "Cartesian"
			   : kind == MPI_GRAPH ? "graph"
					       : "distributed graph";

	if (comm->topology && comm->topology->kind == kind)
		return comm->topology;
	mpi_fail(MPI_ERR_TOPOLOGY, "the communicator has no %s topology", what);
	return NULL;
}

static struct mpi_group *first_ranks(const struct mpi_comm *comm, int n)
{
	int *world;

	if (n == comm->size)
		return mpi_object_keep(comm->local);
	world = malloc(((size_t)n + 1) * sizeof(*world));
	if (!world)
		return NULL;
	for (int i = 0; i < n; i++)
		world[i] = mpi_group_world(comm->local, i);
	return mpi_group_make(n, world);
}

int mpi_topology_attach(struct mpi_comm *comm, int n, struct mpi_topology *t, struct mpi_comm **out)
{
	struct mpi_group *group = t ? first_ranks(comm, n) : NULL;
	struct mpi_comm *made = NULL;
	int err;

	if (!group) {
		mpi_topology_release(t);
		return mpi_fail_memory("a topology");
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
