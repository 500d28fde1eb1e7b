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
