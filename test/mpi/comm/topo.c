/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Topologies against the definitions, worked out the slow way.
 */
#include "test/mpi/job_check.h"

/* ---- grids ----------------------------------------------------------------------------------- */

enum { DIMS_MOST = 4 };

struct grid {
	int n, dims[DIMS_MOST], periods[DIMS_MOST], size;
};

static struct grid draw_grid(void)
{
	struct grid g = { .n = 1 + (int)(job_draw() % DIMS_MOST), .size = 1 };

	for (int i = 0; i < g.n; i++) {
		g.dims[i] = 1 + (int)(job_draw() % 3);
		if (g.size * g.dims[i] > job_size)
			g.dims[i] = 1;
		g.size *= g.dims[i];
		g.periods[i] = (int)(job_draw() % 2);
	}
	return g;
}

static void coords_of(const struct grid *g, int rank, int *coords)
{
	for (int i = g->n - 1; i >= 0; i--) {
		coords[i] = rank % g->dims[i];
		rank /= g->dims[i];
	}
}

/* -1: there is no such place. */
static int rank_of(const struct grid *g, const int *coords)
{
	int rank = 0;

	for (int i = 0; i < g->n; i++) {
		int c = coords[i];

		while (g->periods[i] && c < 0)
			c += g->dims[i];
		while (g->periods[i] && c >= g->dims[i])
			c -= g->dims[i];
		if (c < 0 || c >= g->dims[i])
			return MPI_PROC_NULL;
		rank = rank * g->dims[i] + c;
	}
	return rank;
}

static void check_shifts(MPI_Comm cart, const struct grid *g)
{
	int coords[DIMS_MOST], there[DIMS_MOST], source, dest;

	coords_of(g, job_rank, coords);
	for (int direction = 0; direction < g->n; direction++)
		for (int disp = -4; disp <= 4; disp++) {
			MPI_Cart_shift(cart, direction, disp, &source, &dest);
			memcpy(there, coords, sizeof(there));
			there[direction] = coords[direction] + disp;
			CHECK_EQUAL(dest, rank_of(g, there));
			there[direction] = coords[direction] - disp;
			CHECK_EQUAL(source, rank_of(g, there));
		}
}

/* Those that share the coordinates that go. */
static void check_sub(MPI_Comm cart, const struct grid *g)
{
	int remain[DIMS_MOST], mine[DIMS_MOST], other[DIMS_MOST], size, rank, n = 0, at = -1,
									      kept = 0;
	int dims[DIMS_MOST], periods[DIMS_MOST], coords[DIMS_MOST], ndims;
	MPI_Comm sub;

	for (int i = 0; i < g->n; i++)
		remain[i] = (int)(job_draw() % 2);
	MPI_Cart_sub(cart, remain, &sub);
	coords_of(g, job_rank, mine);
	for (int r = 0; r < g->size; r++) {
		bool same = true;

		coords_of(g, r, other);
		for (int i = 0; i < g->n; i++)
			same &= remain[i] || other[i] == mine[i];
		if (same && r == job_rank)
			at = n;
		n += same;
	}
	MPI_Comm_size(sub, &size);
	MPI_Comm_rank(sub, &rank);
	CHECK_EQUAL(size, n);
	CHECK_EQUAL(rank, at);
	MPI_Cartdim_get(sub, &ndims);
	MPI_Cart_get(sub, DIMS_MOST, dims, periods, coords);
	for (int i = 0; i < g->n; i++) {
		if (!remain[i])
			continue;
		CHECK_EQUAL(dims[kept], g->dims[i]);
		CHECK_EQUAL(periods[kept], g->periods[i]);
		CHECK_EQUAL(coords[kept], mine[i]);
		kept++;
	}
	CHECK_EQUAL(ndims, kept);
	job_try(sub);
	MPI_Comm_free(&sub);
}

static void grids_are_row_major(void)
{
	for (int round = 0; round < 60; round++) {
		struct grid g = draw_grid();
		int want[DIMS_MOST], dims[DIMS_MOST], periods[DIMS_MOST], coords[DIMS_MOST];
		int kind, rank, mapped;
		MPI_Comm cart, copy;

		MPI_Cart_create(MPI_COMM_WORLD, g.n, g.dims, g.periods, 0, &cart);
		MPI_Cart_map(MPI_COMM_WORLD, g.n, g.dims, g.periods, &mapped);
		CHECK_EQUAL(mapped, job_rank < g.size ? job_rank : MPI_UNDEFINED);
		CHECK((cart != MPI_COMM_NULL) == (job_rank < g.size));
		if (cart == MPI_COMM_NULL) {
			for (int i = 0; i < g.n; i++)
				job_draw(); /* those of check_sub */
			continue;
		}
		MPI_Topo_test(cart, &kind);
		CHECK_EQUAL(kind, MPI_CART);
		MPI_Cart_get(cart, g.n, dims, periods, coords);
		coords_of(&g, job_rank, want);
		for (int i = 0; i < g.n; i++) {
			CHECK_EQUAL(dims[i], g.dims[i]);
			CHECK_EQUAL(periods[i], g.periods[i]);
			CHECK_EQUAL(coords[i], want[i]);
		}
		for (int r = 0; r < g.size; r++) {
			coords_of(&g, r, want);
			MPI_Cart_coords(cart, r, g.n, coords);
			for (int i = 0; i < g.n; i++) {
				CHECK_EQUAL(coords[i], want[i]);
				if (g.periods[i])
					coords[i] += 5 * g.dims[i] * (r % 2 ? -1 : 1);
			}
			MPI_Cart_rank(cart, coords, &rank);
			CHECK_EQUAL(rank, r);
		}
		check_shifts(cart, &g);
		check_sub(cart, &g);
		MPI_Comm_dup(cart, &copy);
		MPI_Comm_free(&cart);
		check_shifts(copy, &g);
		MPI_Comm_free(&copy);
	}
}

static void a_grid_without_dimensions_is_one_process(void)
{
	MPI_Comm cart, none, sub;
	int n, dims[1] = { 1 }, rank = -1;

	MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &none);
	CHECK((none != MPI_COMM_NULL) == (job_rank == 0));
	if (none != MPI_COMM_NULL) {
		MPI_Cartdim_get(none, &n);
		CHECK_EQUAL(n, 0);
		MPI_Cart_rank(none, NULL, &rank);
		CHECK_EQUAL(rank, 0);
		MPI_Comm_free(&none);
	}
	dims[0] = job_size;
	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, &(int){ 0 }, 1, &cart);
	MPI_Cart_sub(cart, &(int){ 0 }, &sub);
	MPI_Comm_size(sub, &n);
	CHECK_EQUAL(n, 1);
	MPI_Cartdim_get(sub, &n);
	CHECK_EQUAL(n, 0);
	MPI_Comm_free(&sub);
	MPI_Comm_free(&cart);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void graphs_are_as_they_were_given(void)
{
	for (int round = 0; round < 30; round++) {
		int nodes = 1 + (int)(job_draw() % (unsigned)job_size), n = 0, m, kind;
		int *index = malloc(sizeof(int) * (size_t)nodes), *got;
		int *edge = malloc(sizeof(int) * (size_t)nodes * 6);
		MPI_Comm graph;

		for (int i = 0; i < nodes; i++) {
			for (unsigned k = job_draw() % 5; k > 0; k--)
				edge[n++] = (int)(job_draw() % (unsigned)nodes);
			index[i] = n;
		}
		MPI_Graph_map(MPI_COMM_WORLD, nodes, index, edge, &m);
		CHECK(job_rank < nodes ? m >= 0 && m < nodes : m == MPI_UNDEFINED);
		MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edge, 0, &graph);
		CHECK((graph != MPI_COMM_NULL) == (job_rank < nodes));
		if (graph != MPI_COMM_NULL) {
			MPI_Topo_test(graph, &kind);
			CHECK_EQUAL(kind, MPI_GRAPH);
			MPI_Graphdims_get(graph, &m, &kind);
			CHECK_EQUAL(m, nodes);
			CHECK_EQUAL(kind, n);
			got = malloc(sizeof(int) * (size_t)(nodes + n + 1));
			MPI_Graph_get(graph, nodes, n, got, got + nodes);
			CHECK(memcmp(got, index, sizeof(int) * (size_t)nodes) == 0);
			CHECK(memcmp(got + nodes, edge, sizeof(int) * (size_t)n) == 0);
			for (int r = 0; r < nodes; r++) {
				int first = r ? index[r - 1] : 0;

				MPI_Graph_neighbors_count(graph, r, &m);
				CHECK_EQUAL(m, index[r] - first);
				MPI_Graph_neighbors(graph, r, m, got);
				CHECK(memcmp(got, edge + first, sizeof(int) * (size_t)m) == 0);
			}
			free(got);
			job_try(graph);
			MPI_Comm_free(&graph);
		}
		free(index);
		free(edge);
	}
}

/* ---- distributed graphs ---------------------------------------------------------------------- */

struct edge {
	int from, to, weight, namer;
};

static int compare_edges(const void *a, const void *b)
{
	return memcmp(a, b, 2 * sizeof(int));
}

/* Neighbours and weights of one direction against those expected, in any order. */
static void check_side(const int *rank, const int *weight, int n, const struct edge *edge,
		       int edges, bool in, bool weighted)
{
	int(*want)[2] = calloc((size_t)edges + 1, sizeof(*want)), m = 0;
	int(*is)[2] = calloc((size_t)n + 1, sizeof(*is));

	for (int i = 0; i < edges; i++)
		if ((in ? edge[i].to : edge[i].from) == job_rank) {
			want[m][0] = in ? edge[i].from : edge[i].to;
			want[m++][1] = weighted ? edge[i].weight : 0;
		}
	for (int i = 0; i < n; i++) {
		is[i][0] = rank[i];
		is[i][1] = weighted ? weight[i] : 0;
	}
	CHECK_EQUAL(n, m);
	qsort(want, (size_t)m, sizeof(*want), compare_edges);
	qsort(is, (size_t)n, sizeof(*is), compare_edges);
	if (n == m)
		CHECK(memcmp(want, is, sizeof(*is) * (size_t)n) == 0);
	free(want);
	free(is);
}

static void check_dist(MPI_Comm graph, const struct edge *edge, int edges, bool weighted)
{
	int in, out, flag, kind;
	int *rank, *weight;

	MPI_Topo_test(graph, &kind);
	CHECK_EQUAL(kind, MPI_DIST_GRAPH);
	MPI_Dist_graph_neighbors_count(graph, &in, &out, &flag);
	CHECK_EQUAL(!!flag, weighted);
	rank = malloc(sizeof(int) * (size_t)(in + out + 1));
	weight = malloc(sizeof(int) * (size_t)(in + out + 1));
	MPI_Dist_graph_neighbors(graph, in, rank, weighted ? weight : MPI_UNWEIGHTED, out,
				 rank + in, weighted ? weight + in : MPI_UNWEIGHTED);
	check_side(rank, weight, in, edge, edges, true, weighted);
	check_side(rank + in, weight + in, out, edge, edges, false, weighted);
	free(rank);
	free(weight);
}

/* My edges, as sources with degrees, as far as `named(edge)` says that I name them. */
static MPI_Comm create_general(const struct edge *edge, int edges, bool weighted)
{
	int *source = malloc(sizeof(int) * (size_t)(edges + 1)), n = 0;
	int *degree = malloc(sizeof(int) * (size_t)(edges + 1));
	int *dest = malloc(sizeof(int) * (size_t)(edges + 1));
	int *weight = malloc(sizeof(int) * (size_t)(edges + 1));
	MPI_Comm graph;

	for (int i = 0; i < edges; i++) {
		if (edge[i].namer != job_rank)
			continue;
		source[n] = edge[i].from;
		degree[n] = 1;
		dest[n] = edge[i].to;
		weight[n++] = edge[i].weight;
	}
	MPI_Dist_graph_create(MPI_COMM_WORLD, n, source, degree, dest,
			      weighted ? weight : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
	free(source);
	free(degree);
	free(dest);
	free(weight);
	return graph;
}

static MPI_Comm create_adjacent(const struct edge *edge, int edges, bool weighted)
{
	int *rank = malloc(sizeof(int) * (size_t)(2 * edges + 1)), in = 0, out = 0;
	int *weight = malloc(sizeof(int) * (size_t)(2 * edges + 1));
	MPI_Comm graph;

	for (int i = 0; i < edges; i++)
		if (edge[i].to == job_rank) {
			rank[in] = edge[i].from;
			weight[in++] = edge[i].weight;
		}
	for (int i = 0; i < edges; i++)
		if (edge[i].from == job_rank) {
			rank[in + out] = edge[i].to;
			weight[in + out++] = edge[i].weight;
		}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, rank,
				       !weighted ? MPI_UNWEIGHTED
				       : in      ? weight
						 : MPI_WEIGHTS_EMPTY,
				       out, rank + in,
				       !weighted ? MPI_UNWEIGHTED
				       : out     ? weight + in
						 : MPI_WEIGHTS_EMPTY,
				       MPI_INFO_NULL, 0, &graph);
	free(rank);
	free(weight);
	return graph;
}

static void distributed_graphs_know_the_edges_of_both_ends(void)
{
	enum { EDGES = 60 };
	struct edge edge[EDGES];

	for (int round = 0; round < 30; round++) {
		int edges = (int)(job_draw() % EDGES);
		bool weighted = job_draw() % 2;
		MPI_Comm graph, copy;

		for (int i = 0; i < edges; i++) {
			edge[i].from = (int)(job_draw() % (unsigned)job_size);
			edge[i].to = (int)(job_draw() % (unsigned)job_size);
			edge[i].weight = (int)(job_draw() % 1000);
			edge[i].namer = (int)(job_draw() % (unsigned)job_size);
		}
		graph = create_general(edge, edges, weighted);
		check_dist(graph, edge, edges, weighted);
		MPI_Comm_dup(graph, &copy);
		MPI_Comm_free(&graph);
		check_dist(copy, edge, edges, weighted);
		MPI_Comm_free(&copy);
		graph = create_adjacent(edge, edges, weighted);
		check_dist(graph, edge, edges, weighted);
		job_try(graph);
		MPI_Comm_free(&graph);
	}
}

static void wrong_topologies_have_their_error_class(void)
{
	MPI_Comm cart = MPI_COMM_NULL, line;
	int n, dims[1] = { job_size + 1 }, periods[1] = { 0 }, kind, class, coords[1] = { -1 };
	int index[2] = { 1, 0 }, edges[1] = { 0 };

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Topo_test(MPI_COMM_WORLD, &kind);
	CHECK_EQUAL(kind, MPI_UNDEFINED);
	MPI_Error_class(MPI_Cartdim_get(MPI_COMM_WORLD, &n), &class);
	CHECK_EQUAL(class, MPI_ERR_TOPOLOGY);
	MPI_Error_class(MPI_Graph_neighbors_count(MPI_COMM_WORLD, 0, &n), &class);
	CHECK_EQUAL(class, MPI_ERR_TOPOLOGY);
	CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart) != MPI_SUCCESS);
	dims[0] = -1;
	CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart) != MPI_SUCCESS);
	CHECK(MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &cart) != MPI_SUCCESS);
	edges[0] = 5000;
	CHECK(MPI_Graph_create(MPI_COMM_WORLD, 1, index, edges, 0, &cart) != MPI_SUCCESS);
	dims[0] = job_size;
	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line);
	CHECK(MPI_Cart_rank(line, coords, &n) != MPI_SUCCESS);
	CHECK(MPI_Cart_coords(line, job_size, 1, coords) != MPI_SUCCESS);
	CHECK(MPI_Cart_shift(line, 1, 1, &n, &n) != MPI_SUCCESS);
	MPI_Comm_free(&line);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	CASE(grids_are_row_major);
	CASE(a_grid_without_dimensions_is_one_process);
	CASE(graphs_are_as_they_were_given);
	CASE(distributed_graphs_know_the_edges_of_both_ends);
	CASE(wrong_topologies_have_their_error_class);
	return job_end();
}
