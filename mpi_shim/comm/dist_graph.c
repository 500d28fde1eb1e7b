/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Distributed graph topologies: every process knows its own edges, in both directions. With
 * MPI_Dist_graph_create any process may name any edge. Each edge is sent to its two ends,
 * which keep edges in the order of the ranks that named them.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/comm/comm.h"
#include "mpi_shim/comm/creation.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/topology.h"
#include "mpi_shim/datatype/type.h"

static struct mpi_topology *dist_new(int in, int out, bool weighted)
{
	struct mpi_topology *t = mpi_topology_new(MPI_DIST_GRAPH, 2 * ((int64_t)in + out));

	if (!t)
		return NULL;
	t->dist.in = in;
	t->dist.out = out;
	t->dist.weighted = weighted;
	t->dist.source = t->memory;
	t->dist.source_weight = t->dist.source + in;
	t->dist.dest = t->dist.source_weight + in;
	t->dist.dest_weight = t->dist.dest + out;
	return t;
}

static int check_graph_intra(const struct mpi_comm *comm)
{
	if (!comm->inter)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
}

/* Check n ranks of a list of edges, and their weights. */
static int check_ends(const struct mpi_comm *comm, int n, const int *rank, const int *weight,
		      const char *what)
{
	bool weighted = weight != MPI_UNWEIGHTED && weight != MPI_WEIGHTS_EMPTY;

	if (n < 0)
		return mpi_fail(MPI_ERR_ARG, "the number of %s, %d, is negative", what, n);
	if (n > 0 && weight == MPI_WEIGHTS_EMPTY)
		return mpi_fail(MPI_ERR_ARG, "MPI_WEIGHTS_EMPTY is given for %d %s", n, what);
	for (int i = 0; i < n; i++) {
		if (rank[i] < 0 || rank[i] >= comm->size)
			return mpi_fail(MPI_ERR_RANK, "%s[%d] = %d is not a rank: there are %d",
					what, i, rank[i], comm->size);
		if (weighted && weight[i] < 0)
			return mpi_fail(MPI_ERR_ARG, "the weight of %s[%d], %d, is negative", what,
					i, weight[i]);
	}
	return MPI_SUCCESS;
}

/* Make a communicator of all ranks of comm, with this topology and these hints. */
static int attach_graph(struct mpi_comm *comm, struct mpi_topology *t, const struct mpi_info *info,
			struct mpi_comm **out)
{
	struct mpi_comm *made = NULL;
	int err = mpi_topology_attach(comm, comm->size, NULL, t, &made);

	if (err == MPI_SUCCESS)
		err = mpi_comm_take_hints(made, info);
	if (err == MPI_SUCCESS)
		*out = made;
	else
		mpi_comm_unmake(made);
	return err;
}

static void copy_ints_in(int *to, const int *from, int n)
{
	if (n > 0)
		memcpy(to, from, (size_t)n * sizeof(*to));
}

int mpi_dist_graph_create_adjacent(struct mpi_comm *comm, int in, const int *sources,
				   const int *source_weights, int out, const int *dests,
				   const int *dest_weights, struct mpi_info *info, int reorder,
				   struct mpi_comm **graph)
{
	bool weighted = source_weights != MPI_UNWEIGHTED;
	struct mpi_topology *t;
	int err = check_graph_intra(comm);

	(void)reorder; /* a permission, not used */
	if (err == MPI_SUCCESS)
		err = check_ends(comm, in, sources, source_weights, "sources");
	if (err == MPI_SUCCESS)
		err = check_ends(comm, out, dests, dest_weights, "destinations");
	if (err == MPI_SUCCESS && weighted != (dest_weights != MPI_UNWEIGHTED))
		err = mpi_fail(MPI_ERR_ARG, "MPI_UNWEIGHTED is given for one direction only");
	if (err != MPI_SUCCESS)
		return err;
	t = dist_new(in, out, weighted);
	if (t) {
		copy_ints_in(t->dist.source, sources, in);
		copy_ints_in(t->dist.dest, dests, out);
		if (weighted) {
			copy_ints_in(t->dist.source_weight, source_weights, in);
			copy_ints_in(t->dist.dest_weight, dest_weights, out);
		}
	}
	return attach_graph(comm, t, info, graph);
}

/* ---- edges named by any rank ----------------------------------------------------------------- */

/* An edge as one of its ends gets it. */
struct half_edge {
	int leaves; /* 1: the edge begins here; 0: it ends here */
	int other;
	int weight;
};

enum { INTS = sizeof(struct half_edge) / sizeof(int) };

/* Half edges for, or from, every rank. Those of rank i are count[i] ints, beginning with int
 * displ[i]. */
struct parcels {
	int ranks;
	MPI_Count *count;
	MPI_Aint *displ;
	struct half_edge *edge;
	int64_t edges;
};

static void parcels_fini(struct parcels *p)
{
	free(p->count);
	free(p->displ);
	free(p->edge);
}

static bool parcels_init(struct parcels *p, int ranks)
{
	p->ranks = ranks;
	p->count = calloc((size_t)ranks, sizeof(*p->count));
	p->displ = calloc((size_t)ranks, sizeof(*p->displ));
	return p->count && p->displ;
}

/* Set the displacements from the counts, and allocate the edges. */
static bool parcels_lay_out(struct parcels *p)
{
	MPI_Aint at = 0;

	for (int i = 0; i < p->ranks; i++) {
		p->displ[i] = at;
		at += p->count[i];
	}
	p->edges = at / INTS;
	p->edge = malloc(((size_t)p->edges + 1) * sizeof(*p->edge));
	return p->edge != NULL;
}

struct named {
	int n;
	const int *source, *degree, *dest, *weight; /* weight NULL: unweighted */
};

static bool pack(struct parcels *p, const struct named *e)
{
	int64_t at = 0;

	for (int i = 0; i < e->n; i++)
		for (int j = 0; j < e->degree[i]; j++) {
			p->count[e->source[i]] += INTS;
			p->count[e->dest[at++]] += INTS;
		}
	if (!parcels_lay_out(p))
		return false;
	memset(p->count, 0, (size_t)p->ranks * sizeof(*p->count));
	at = 0;
	for (int i = 0; i < e->n; i++)
		for (int j = 0; j < e->degree[i]; j++, at++) {
			int from = e->source[i], to = e->dest[at];
			int weight = e->weight ? e->weight[at] : 0;

			p->edge[(p->displ[from] + p->count[from]) / INTS] =
				(struct half_edge){ 1, to, weight };
			p->count[from] += INTS;
			p->edge[(p->displ[to] + p->count[to]) / INTS] =
				(struct half_edge){ 0, from, weight };
			p->count[to] += INTS;
		}
	return true;
}

static struct mpi_topology *unpack(const struct parcels *p, bool weighted)
{
	struct mpi_topology *t;
	int in = 0, out = 0;

	for (int64_t i = 0; i < p->edges; i++)
		*(p->edge[i].leaves ? &out : &in) += 1;
	t = dist_new(in, out, weighted);
	if (!t)
		return NULL;
	in = out = 0;
	for (int64_t i = 0; i < p->edges; i++) {
		const struct half_edge *e = &p->edge[i];

		if (e->leaves) {
			t->dist.dest[out] = e->other;
			t->dist.dest_weight[out++] = e->weight;
		} else {
			t->dist.source[in] = e->other;
			t->dist.source_weight[in++] = e->weight;
		}
	}
	return t;
}

/* Collective: a rank that lacks memory must not leave the others waiting for its edges. */
static int agree_on(struct mpi_comm *comm, int err)
{
	const struct mpi_creation creation = mpi_creation_of(comm);

	return mpi_creation_side(&creation, err);
}

static int deliver_parcels(const struct parcels *mine, struct parcels *theirs,
			   struct mpi_comm *comm)
{
	int err = mpi_alltoall(mine->count, 1, mpi_type_of(MPI_COUNT), theirs->count, 1,
			       mpi_type_of(MPI_COUNT), comm);

	if (err == MPI_SUCCESS && !parcels_lay_out(theirs))
		err = mpi_fail_memory("a topology");
	err = agree_on(comm, err);
	if (err != MPI_SUCCESS)
		return err;
	return mpi_alltoallv(mine->edge, mine->count, mine->displ, mpi_type_of(MPI_INT),
			     theirs->edge, theirs->count, theirs->displ, mpi_type_of(MPI_INT),
			     comm);
}

static int exchange_edges(struct mpi_comm *comm, const struct named *e, bool weighted,
			  struct mpi_topology **t)
{
	struct parcels mine = { 0 }, theirs = { 0 };
	const bool room = parcels_init(&mine, comm->size) && parcels_init(&theirs, comm->size) &&
			  pack(&mine, e);
	int err = agree_on(comm, room ? MPI_SUCCESS : mpi_fail_memory("a topology"));

	if (err == MPI_SUCCESS)
		err = deliver_parcels(&mine, &theirs, comm);
	if (err == MPI_SUCCESS)
		*t = unpack(&theirs, weighted);
	parcels_fini(&mine);
	parcels_fini(&theirs);
	return err;
}

static int check_named(const struct mpi_comm *comm, const struct named *e, const int *weights)
{
	int64_t edges = 0;
	int err = check_graph_intra(comm);

	if (err == MPI_SUCCESS)
		err = check_ends(comm, e->n, e->source, MPI_UNWEIGHTED, "sources");
	for (int i = 0; i < e->n && err == MPI_SUCCESS; i++) {
		if (e->degree[i] < 0)
			err = mpi_fail(MPI_ERR_ARG, "degrees[%d] = %d is negative", i,
				       e->degree[i]);
		edges += e->degree[i];
	}
	if (err == MPI_SUCCESS && edges > INT32_MAX / 2)
		err = mpi_fail(MPI_ERR_ARG, "%lld edges are more than the %d allowed",
			       (long long)edges, INT32_MAX / 2);
	if (err == MPI_SUCCESS)
		err = check_ends(comm, (int)edges, e->dest, weights, "destinations");
	return err;
}

int mpi_dist_graph_create(struct mpi_comm *comm, int n, const int *sources, const int *degrees,
			  const int *dests, const int *weights, struct mpi_info *info, int reorder,
			  struct mpi_comm **graph)
{
	bool weighted = weights != MPI_UNWEIGHTED;
	struct named e = {
		.n = n,
		.source = sources,
		.degree = degrees,
		.dest = dests,
		.weight = weighted && weights != MPI_WEIGHTS_EMPTY ? weights : NULL,
	};
	struct mpi_topology *t = NULL;
	int rc, err = check_named(comm, &e, weights);

	(void)reorder;
	if (err != MPI_SUCCESS)
		return err;
	err = exchange_edges(comm, &e, weighted, &t);
	/* after an error, too: a rank that has all its edges does not know, and waits there */
	rc = attach_graph(comm, t, info, graph);
	return err != MPI_SUCCESS ? err : rc;
}

/* ---- queries --------------------------------------------------------------------------------- */

int mpi_dist_graph_neighbors_count(struct mpi_comm *comm, int *in, int *out, int *weighted)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_DIST_GRAPH);

	if (!t)
		return MPI_ERR_TOPOLOGY;
	*in = t->dist.in;
	*out = t->dist.out;
	*weighted = t->dist.weighted;
	return MPI_SUCCESS;
}

/* Copy the first `room` of n neighbours, and their weights if they exist and are asked for. */
static int neighbors(const struct mpi_topology *t, int room, int n, const int *rank,
		     const int *weight, int *out, int *out_weight)
{
	int m = room < n ? room : n;

	if (room < 0)
		return mpi_fail(MPI_ERR_ARG, "the room for neighbours, %d, is negative", room);
	copy_ints_in(out, rank, m);
	if (t->dist.weighted && out_weight != MPI_UNWEIGHTED && out_weight != MPI_WEIGHTS_EMPTY)
		copy_ints_in(out_weight, weight, m);
	return MPI_SUCCESS;
}

int mpi_dist_graph_neighbors(struct mpi_comm *comm, int in_room, int *sources, int *source_weights,
			     int out_room, int *dests, int *dest_weights)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_DIST_GRAPH);
	int err;

	if (!t)
		return MPI_ERR_TOPOLOGY;
	err = neighbors(t, in_room, t->dist.in, t->dist.source, t->dist.source_weight, sources,
			source_weights);
	if (err == MPI_SUCCESS)
		err = neighbors(t, out_room, t->dist.out, t->dist.dest, t->dist.dest_weight, dests,
				dest_weights);
	return err;
}
