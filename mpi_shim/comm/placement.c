/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reordering ranks: see placement.h.
 *
 * Old ranks are sorted by node and cache. A grid is cut into blocks of as many cells as a node
 * has ranks, with the fewest neighbours apart, and these into blocks for a cache. The cells,
 * block by block, go to the sorted ranks. The vertices of a graph go to them in the order of a
 * search in breadth. All ranks get the same order, for it follows from what all of them know.
 */
#include "mpi_shim/comm/placement.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/node.h"
#include "mpi_shim/core/object.h"

#define DIMS_MOST 32 /* of a grid of at most 2^16 ranks only 16 dimensions are longer than 1 */

/* ---- where the ranks are --------------------------------------------------------------------- */

int mpi_placement_local(struct mpi_placement *p, const struct mpi_comm *comm, int n)
{
	*p = (struct mpi_placement){ .n = n };
	p->node = malloc(((size_t)n * 5 + 1) * sizeof(*p->node));
	if (!p->node)
		return mpi_fail_memory("the places of ranks");
	p->cache = p->node + n;
	p->order = p->cache + n;
	p->rank = p->order + n;
	p->work = p->rank + n;
	for (int i = 0; i < n; i++) {
		p->node[i] = (int)mpi_node_number(mpi_comm_peer(comm, i));
		p->cache[i] = -1;
		p->order[i] = p->rank[i] = i;
	}
	return MPI_SUCCESS;
}

void mpi_placement_end(struct mpi_placement *p)
{
	free(p->node);
	p->node = NULL;
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* A pair of neighbours on two nodes costs more than all the caches of a node can save. */
#define NODE_COST 1000

static int64_t pair_cost(const struct mpi_placement *p, int a, int b)
{
	if (p->node[a] != p->node[b])
		return NODE_COST;
	return p->cache[a] != p->cache[b];
}

/* The cost of all pairs of neighbours in a grid, with an order. */
static int64_t grid_cost(const struct mpi_placement *p, const int *order, int ndims,
			 const int *dims, const int *periods)
{
	int64_t cost = 0;
	int step = 1;

	for (int d = ndims - 1; d >= 0; step *= dims[d], d--) {
		if (dims[d] == 1)
			continue;
		for (int r = 0; r < p->n; r++) {
			int c = r / step % dims[d];

			if (c + 1 < dims[d])
				cost += pair_cost(p, order[r], order[r + step]);
			else if (periods[d])
				cost += pair_cost(p, order[r], order[r - c * step]);
		}
	}
	return cost;
}

static int64_t graph_cost(const struct mpi_placement *p, const int *order, const int *index,
			  const int *edge)
{
	int64_t cost = 0;

	for (int r = 0, e = 0; r < p->n; r++)
		for (; e < index[r]; e++)
			cost += pair_cost(p, order[r], order[edge[e]]);
	return cost;
}

/* Take the order of p->work if it is the better one. */
static void take_better(struct mpi_placement *p, int64_t old_cost, int64_t new_cost)
{
	if (new_cost >= old_cost)
		return;
	for (int r = 0; r < p->n; r++) {
		p->order[r] = p->work[r];
		p->rank[p->order[r]] = r;
	}
}

/* ---- sorted ranks ---------------------------------------------------------------------------- */

struct located {
	int node, cache, rank;
};

static int by_location(const void *a, const void *b)
{
	const struct located *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->cache != y->cache)
		return x->cache < y->cache ? -1 : 1;
	return x->rank - y->rank;
}

/* The length of the runs of equal ranks, if they all have the same; else 0. */
static int run_length(const struct located *l, int n, bool of_node)
{
	int length = 0, run = 0;

	for (int i = 0; i < n; i++) {
		run++;
		if (i + 1 < n && l[i].node == l[i + 1].node &&
		    (of_node || l[i].cache == l[i + 1].cache))
			continue;
		if (length && run != length)
			return 0;
		length = run;
		run = 0;
	}
	return length;
}

/* The ranks sorted by location. NULL: out of memory. */
static struct located *sort_by_location(const struct mpi_placement *p)
{
	struct located *l = malloc(((size_t)p->n + 1) * sizeof(*l));

	for (int i = 0; l && i < p->n; i++)
		l[i] = (struct located){ p->node[i], p->cache[i], i };
	if (l)
		qsort(l, (size_t)p->n, sizeof(*l), by_location);
	return l;
}

/* ---- grids ----------------------------------------------------------------------------------- */

struct shape {
	int ndims, dims[DIMS_MOST], periods[DIMS_MOST];
};

static int cells_of(const struct shape *grid)
{
	int n = 1;

	for (int d = 0; d < grid->ndims; d++)
		n *= grid->dims[d];
	return n;
}

/* The pairs of neighbours that are apart if the grid is cut into such blocks. */
static int64_t pairs_cut(const struct shape *grid, const struct shape *block)
{
	const int cells = cells_of(grid);
	int64_t sum = 0;

	for (int d = 0; d < grid->ndims; d++) {
		int blocks = grid->dims[d] / block->dims[d];

		if (blocks > 1)
			sum += (int64_t)(blocks - !grid->periods[d]) * (cells / grid->dims[d]);
	}
	return sum;
}

/* Try all blocks of `left` cells from dimension d on, and keep the best. */
static void try_blocks(const struct shape *grid, struct shape *block, int d, int left,
		       struct shape *best, int64_t *least)
{
	if (d == grid->ndims) {
		int64_t cut = left == 1 ? pairs_cut(grid, block) : *least;

		if (cut < *least) {
			*least = cut;
			*best = *block;
		}
		return;
	}
	for (int b = 1; b <= grid->dims[d] && b <= left; b++) {
		if (grid->dims[d] % b || left % b)
			continue;
		block->dims[d] = b;
		try_blocks(grid, block, d + 1, left / b, best, least);
	}
}

/* The block of `cells` cells that the grid can be cut into, with the fewest pairs of neighbours
 * apart. False: there is none. */
static bool best_block(const struct shape *grid, int cells, struct shape *best)
{
	struct shape block = { .ndims = grid->ndims };
	int64_t least = INT64_MAX;

	best->ndims = grid->ndims;
	try_blocks(grid, &block, 0, cells, best, &least);
	return least < INT64_MAX;
}

/* Add to coords those of number i in a grid, in units of a block. */
static void add_coords(const struct shape *grid, const struct shape *block, int i, int *coords)
{
	for (int d = grid->ndims - 1; d >= 0; d--) {
		int each = block->dims[d] ? block->dims[d] : 1;
		int n = grid->dims[d] > each ? grid->dims[d] / each : 1;

		coords[d] += i % n * each;
		i /= n;
	}
}

/* The cell, row by row, of number i if cells are counted block by block. */
static int cell_of(const struct shape level[4], const int size[4], int i)
{
	int coords[DIMS_MOST] = { 0 }, cell = 0;

	for (int k = 1; k < 4; k++) {
		add_coords(&level[k - 1], &level[k], i / size[k], coords);
		i %= size[k];
	}
	for (int d = 0; d < level[0].ndims; d++)
		cell = cell * level[0].dims[d] + coords[d];
	return cell;
}

/* Cut the grid, level[0], into blocks for nodes, caches and single ranks. */
static bool cut_grid(const struct located *l, int n, struct shape level[4], int size[4])
{
	size[0] = n;
	size[1] = run_length(l, n, true);
	if (!size[1] || !best_block(&level[0], size[1], &level[1]))
		return false;
	size[2] = run_length(l, n, false);
	if (!size[2] || !best_block(&level[1], size[2], &level[2])) {
		size[2] = size[1];
		level[2] = level[1];
	}
	size[3] = 1;
	level[3].ndims = level[0].ndims;
	for (int d = 0; d < level[0].ndims; d++)
		level[3].dims[d] = 1;
	return true;
}

int mpi_placement_grid(struct mpi_placement *p, int ndims, const int *dims, const int *periods)
{
	struct shape level[4] = { { 0 } };
	struct located *l;
	int size[4];

	for (int d = 0; d < ndims; d++) {
		if (dims[d] == 1 || level[0].ndims == DIMS_MOST)
			continue;
		level[0].periods[level[0].ndims] = periods[d] != 0;
		level[0].dims[level[0].ndims++] = dims[d];
	}
	l = sort_by_location(p);
	if (!l)
		return mpi_fail_memory("the order of ranks");
	if (cut_grid(l, p->n, level, size)) {
		for (int i = 0; i < p->n; i++)
			p->work[cell_of(level, size, i)] = l[i].rank;
		take_better(p, grid_cost(p, p->order, ndims, dims, periods),
			    grid_cost(p, p->work, ndims, dims, periods));
	}
	free(l);
	return MPI_SUCCESS;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Fill in the vertices in the order of a search in breadth. `seen` has a false for each. */
static void search_in_breadth(int n, const int *index, const int *edge, int *found, bool *seen)
{
	int head = 0, tail = 0;

	for (int start = 0; start < n; start++) {
		if (seen[start])
			continue;
		seen[start] = true;
		found[tail++] = start;
		for (; head < tail; head++) {
			int v = found[head];

			for (int e = v ? index[v - 1] : 0; e < index[v]; e++) {
				if (seen[edge[e]])
					continue;
				seen[edge[e]] = true;
				found[tail++] = edge[e];
			}
		}
	}
}

int mpi_placement_graph(struct mpi_placement *p, const int *index, const int *edge)
{
	struct located *l = sort_by_location(p);
	int *found = malloc(((size_t)p->n + 1) * sizeof(*found));
	bool *seen = calloc((size_t)p->n + 1, sizeof(*seen));
	const bool memory = l && found && seen;

	if (memory) {
		search_in_breadth(p->n, index, edge, found, seen);
		for (int i = 0; i < p->n; i++)
			p->work[found[i]] = l[i].rank;
		take_better(p, graph_cost(p, p->order, index, edge),
			    graph_cost(p, p->work, index, edge));
	}
	free(l);
	free(found);
	free(seen);
	return memory ? MPI_SUCCESS : mpi_fail_memory("the order of ranks");
}
