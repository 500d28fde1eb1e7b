/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The order of ranks in a grid or graph: it is a permutation, never worse than the old one, and
 * as good as can be where that is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/comm/placement.h"
#include "test/mpi/fake_world.h"

enum { MOST = 256 };

static int node[MOST], cache[MOST], order[MOST], rank_of[MOST], work[MOST];

static struct mpi_placement placement_of(int n)
{
	struct mpi_placement p = { n, node, cache, order, rank_of, work };

	for (int i = 0; i < n; i++) {
		order[i] = rank_of[i] = i;
		cache[i] = -1;
	}
	return p;
}

/* The pairs of neighbours that `apart` says are apart; the grid without the library's formula. */
static int pairs_apart(int n, int ndims, const int *dims, const int *periods, const int *place,
		       const int *of)
{
	int apart = 0;

	for (int a = 0; a < n; a++) {
		int step = n;

		for (int d = 0; d < ndims; d++) {
			int c, b;

			step /= dims[d];
			c = a / step % dims[d];
			if (dims[d] == 1 || (c == dims[d] - 1 && !periods[d]))
				continue;
			b = c == dims[d] - 1 ? a - c * step : a + step;
			apart += place[of[a]] != place[of[b]];
		}
	}
	return apart;
}

static void assert_permutation(int n)
{
	char seen[MOST] = { 0 };

	for (int r = 0; r < n; r++) {
		assert_true(order[r] >= 0 && order[r] < n && !seen[order[r]]);
		seen[order[r]] = 1;
		assert_int_equal(rank_of[order[r]], r);
	}
}

static void a_grid_is_cut_into_blocks_for_the_nodes(void **state)
{
	struct mpi_placement p = placement_of(64);
	const int dims[2] = { 8, 8 }, straight[2] = { 0, 0 }, round[2] = { 1, 1 };

	(void)state;
	for (int i = 0; i < 64; i++)
		node[i] = i % 4; /* as --map-by node gives them */
	assert_int_equal(mpi_placement_grid(&p, 2, dims, straight), MPI_SUCCESS);
	assert_permutation(64);
	assert_int_equal(pairs_apart(64, 2, dims, straight, node, order),
			 16); /* 4 squares of 4x4 */
	p = placement_of(64);
	for (int i = 0; i < 64; i++)
		node[i] = i / 16; /* two rows each */
	assert_int_equal(mpi_placement_grid(&p, 2, dims, round), MPI_SUCCESS);
	assert_permutation(64);
	assert_int_equal(pairs_apart(64, 2, dims, round, node, order), 32);
}

static void a_block_of_a_node_is_cut_for_the_caches(void **state)
{
	struct mpi_placement p = placement_of(64);
	const int dims[3] = { 4, 4, 4 }, periods[3] = { 0, 0, 0 };

	(void)state;
	for (int i = 0; i < 64; i++) {
		node[i] = i % 2;
		cache[i] = i / 2 % 4; /* of 8 ranks each */
	}
	assert_int_equal(mpi_placement_grid(&p, 3, dims, periods), MPI_SUCCESS);
	assert_permutation(64);
	assert_int_equal(pairs_apart(64, 3, dims, periods, node, order), 16);
	for (int i = 0; i < 64; i++)
		node[i] = node[i] * 4 + cache[i];
	/* cubes of 2x2x2: three cuts of 16 pairs each */
	assert_int_equal(pairs_apart(64, 3, dims, periods, node, order), 48);
}

static void a_good_order_stays(void **state)
{
	struct mpi_placement p = placement_of(16);
	const int dims[1] = { 16 }, periods[1] = { 0 };

	(void)state;
	for (int i = 0; i < 16; i++)
		node[i] = 7 - i / 4; /* nodes in another order, but one after the other */
	assert_int_equal(mpi_placement_grid(&p, 1, dims, periods), MPI_SUCCESS);
	for (int i = 0; i < 16; i++)
		assert_int_equal(order[i], i);
}

static unsigned draw(unsigned below)
{
	static unsigned long long x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned)(x % below);
}

static void no_order_is_worse_than_the_old_one(void **state)
{
	static int same[MOST];

	(void)state;
	for (int round = 0; round < 2000; round++) {
		int dims[4], periods[4], ndims = 1 + (int)draw(4), n = 1;
		int nodes = 1 + (int)draw(5);
		struct mpi_placement p;

		for (int d = 0; d < ndims; d++) {
			dims[d] = 1 + (int)draw(4);
			periods[d] = (int)draw(2);
			n *= dims[d];
		}
		p = placement_of(n);
		for (int i = 0; i < n; i++) {
			node[i] = draw(2) ? i % nodes : (int)draw((unsigned)nodes);
			cache[i] = (int)draw(3);
			same[i] = i;
		}
		assert_int_equal(mpi_placement_grid(&p, ndims, dims, periods), MPI_SUCCESS);
		assert_permutation(n);
		assert_true(pairs_apart(n, ndims, dims, periods, node, order) <=
			    pairs_apart(n, ndims, dims, periods, node, same));
	}
}

static void a_ring_of_ranks_visits_each_node_once(void **state)
{
	int index[24], edge[48], apart = 0;
	struct mpi_placement p = placement_of(24);

	(void)state;
	for (int i = 0; i < 24; i++) {
		node[i] = i % 3;
		index[i] = 2 * i + 2;
		edge[2 * i] = (i + 1) % 24;
		edge[2 * i + 1] = (i + 23) % 24;
	}
	assert_int_equal(mpi_placement_graph(&p, index, edge), MPI_SUCCESS);
	assert_permutation(24);
	for (int i = 0; i < 24; i++)
		apart += node[order[i]] != node[order[(i + 1) % 24]];
	assert_true(apart <= 6); /* of 24; the search goes round in both directions */
}

static void graphs_of_no_edges_and_of_no_vertices_are_kept(void **state)
{
	int index[4] = { 0 };
	struct mpi_placement p = placement_of(4);

	(void)state;
	for (int i = 0; i < 4; i++)
		node[i] = i % 2;
	assert_int_equal(mpi_placement_graph(&p, index, NULL), MPI_SUCCESS);
	assert_permutation(4);
	assert_int_equal(order[1], 1);
	p = placement_of(0);
	assert_int_equal(mpi_placement_graph(&p, NULL, NULL), MPI_SUCCESS);
	p = placement_of(1);
	assert_int_equal(mpi_placement_grid(&p, 0, NULL, NULL), MPI_SUCCESS);
	assert_int_equal(order[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_grid_is_cut_into_blocks_for_the_nodes),
		cmocka_unit_test(a_block_of_a_node_is_cut_for_the_caches),
		cmocka_unit_test(a_good_order_stays),
		cmocka_unit_test(no_order_is_worse_than_the_old_one),
		cmocka_unit_test(a_ring_of_ranks_visits_each_node_once),
		cmocka_unit_test(graphs_of_no_edges_and_of_no_vertices_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
