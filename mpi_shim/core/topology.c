/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Topologies as objects. cart.c, graph.c and dist_graph.c fill them.
 */
#include "mpi_shim/core/topology.h"

#include <stdlib.h>

#include "mpi_shim/core/error.h"
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

static int degree(const struct mpi_comm *comm, bool out)
{
	const struct mpi_topology *t = comm->topology;

	if (!t)
		return 0;
	if (t->kind == MPI_CART)
		return 2 * t->cart.ndims;
	if (t->kind == MPI_GRAPH)
		return t->graph.index[comm->rank] -
		       (comm->rank ? t->graph.index[comm->rank - 1] : 0);
	return out ? t->dist.out : t->dist.in;
}

int mpi_neighbors_in(const struct mpi_comm *comm)
{
	return degree(comm, false);
}

int mpi_neighbors_out(const struct mpi_comm *comm)
{
	return degree(comm, true);
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
