/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Graph topologies of MPI-1: every process knows the whole graph.
 */
#include <string.h>

#include "mpi_shim/comm/comm.h"
#include "mpi_shim/comm/placement.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/topology.h"

static int check_graph(const struct mpi_comm *comm, int nodes, const int *index, const int *edge)
{
	int last = 0;

	if (comm->inter)
		return mpi_fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
	if (nodes < 0 || nodes > comm->size)
		return mpi_fail(MPI_ERR_ARG, "the graph has %d nodes, the communicator %d ranks",
				nodes, comm->size);
	for (int i = 0; i < nodes; i++) {
		if (index[i] < last)
			return mpi_fail(MPI_ERR_ARG, "index[%d] = %d is less than the one before",
					i, index[i]);
		last = index[i];
	}
	if (last > 0 && !edge)
		return mpi_fail(MPI_ERR_ARG, "edges is NULL, but there are %d", last);
	for (int i = 0; i < last; i++)
		if (edge[i] < 0 || edge[i] >= nodes)
			return mpi_fail(MPI_ERR_ARG, "edges[%d] = %d is not one of the %d nodes", i,
					edge[i], nodes);
	return MPI_SUCCESS;
}

static struct mpi_topology *graph_of(int nodes, const int *index, const int *edge)
{
	const int edges = nodes ? index[nodes - 1] : 0;
	struct mpi_topology *t = mpi_topology_new(MPI_GRAPH, (int64_t)nodes + edges);

	if (!t)
		return NULL;
	t->graph.nodes = nodes;
	t->graph.edges = edges;
	t->graph.index = t->memory;
	t->graph.edge = t->memory + nodes;
	if (nodes)
		memcpy(t->graph.index, index, (size_t)nodes * sizeof(int));
	if (edges)
		memcpy(t->graph.edge, edge, (size_t)edges * sizeof(int));
	return t;
}

int mpi_graph_create(struct mpi_comm *comm, int nodes, const int *index, const int *edge,
		     int reorder, struct mpi_comm **out)
{
	struct mpi_placement p;
	struct mpi_topology *t = NULL;
	int err = check_graph(comm, nodes, index, edge);

	if (err != MPI_SUCCESS)
		return err;
	if (!reorder)
		return mpi_topology_attach(comm, nodes, NULL, graph_of(nodes, index, edge), out);
	err = mpi_placement_agree(&p, comm, nodes);
	if (err != MPI_SUCCESS)
		return err;
	if (mpi_placement_graph(&p, index, edge) == MPI_SUCCESS)
		t = graph_of(nodes, index, edge);
	err = mpi_topology_attach(comm, nodes, p.order, t, out);
	mpi_placement_end(&p);
	return err;
}

/* As MPI_Cart_map: with nodes alone. */
int mpi_graph_map(struct mpi_comm *comm, int nodes, const int *index, const int *edge, int *rank)
{
	struct mpi_placement p = { 0 };
	int err = check_graph(comm, nodes, index, edge);

	if (err == MPI_SUCCESS)
		err = mpi_placement_local(&p, comm, nodes);
	if (err == MPI_SUCCESS)
		err = mpi_placement_graph(&p, index, edge);
	if (err == MPI_SUCCESS)
		*rank = comm->rank < nodes ? p.rank[comm->rank] : MPI_UNDEFINED;
	mpi_placement_end(&p);
	return err;
}

int mpi_graphdims_get(struct mpi_comm *comm, int *nodes, int *edges)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_GRAPH);

	if (!t)
		return MPI_ERR_TOPOLOGY;
	*nodes = t->graph.nodes;
	*edges = t->graph.edges;
	return MPI_SUCCESS;
}

/* Copy at most `room` of n ints. The program has been told how many there are. */
static int copy_ints_out(int *out, int room, const int *from, int n)
{
	int m = room < n ? room : n;

	if (room < 0)
		return mpi_fail(MPI_ERR_ARG, "the room for the answer, %d, is negative", room);
	if (m > 0)
		memcpy(out, from, (size_t)m * sizeof(*out));
	return MPI_SUCCESS;
}

int mpi_graph_get(struct mpi_comm *comm, int index_room, int edge_room, int *index, int *edge)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_GRAPH);
	int err;

	if (!t)
		return MPI_ERR_TOPOLOGY;
	err = copy_ints_out(index, index_room, t->graph.index, t->graph.nodes);
	if (err == MPI_SUCCESS)
		err = copy_ints_out(edge, edge_room, t->graph.edge, t->graph.edges);
	return err;
}

/* Find the first edge of a rank and their number. Fails if there is no such graph or rank. */
static int edges_of(struct mpi_comm *comm, int rank, const int **first, int *n)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_GRAPH);
	int begin;

	if (!t)
		return MPI_ERR_TOPOLOGY;
	if (rank < 0 || rank >= t->graph.nodes)
		return mpi_fail(MPI_ERR_RANK, "rank %d is not in the graph, which has %d", rank,
				t->graph.nodes);
	begin = rank ? t->graph.index[rank - 1] : 0;
	*first = t->graph.edge + begin;
	*n = t->graph.index[rank] - begin;
	return MPI_SUCCESS;
}

int mpi_graph_neighbors_count(struct mpi_comm *comm, int rank, int *n)
{
	const int *first;

	return edges_of(comm, rank, &first, n);
}

int mpi_graph_neighbors(struct mpi_comm *comm, int rank, int room, int *neighbors)
{
	const int *first = NULL;
	int n = 0, err = edges_of(comm, rank, &first, &n);

	return err == MPI_SUCCESS ? copy_ints_out(neighbors, room, first, n) : err;
}
