/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Groups against the definitions of the standard, computed the slow way, on random groups of a
 * world of a few processes; and large ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/fake_world.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"

enum { SIZE = 12, ME = 5, ROUNDS = 2000 };

static struct mpi_group *world;

static int setup(void **state)
{
	(void)state;
	if (fake_world(ME, SIZE) != MPI_SUCCESS)
		return -1;
	return mpi_comm_group(&mpi_comm_world, &world);
}

static int teardown(void **state)
{
	(void)state;
	mpi_group_free(&world);
	fake_world_end();
	assert_int_equal(mpi_pools[MPI_KIND_GROUP].in_use, 0);
	mpi_pools_fini();
	return 0;
}

/* A random selection of the world in random order. */
static int random_ranks(int *rank)
{
	int n = rand() % (SIZE + 1);

	for (int i = 0; i < SIZE; i++)
		rank[i] = i;
	for (int i = SIZE - 1; i > 0; i--) {
		int j = rand() % (i + 1), t = rank[i];

		rank[i] = rank[j];
		rank[j] = t;
	}
	return n;
}

static bool among(int rank, const int *list, int n)
{
	for (int i = 0; i < n; i++)
		if (list[i] == rank)
			return true;
	return false;
}

static struct mpi_group *incl(struct mpi_group *from, int n, const int *rank)
{
	struct mpi_group *g;

	assert_int_equal(mpi_group_incl(from, n, rank, &g), MPI_SUCCESS);
	return g;
}

/* The group has exactly these world ranks, in this order, and knows its own rank. */
static void assert_group(struct mpi_group *g, const int *want, int n)
{
	int size, rank, own = MPI_UNDEFINED;

	mpi_group_size(g, &size);
	mpi_group_rank(g, &rank);
	assert_int_equal(size, n);
	for (int i = 0; i < n; i++) {
		assert_int_equal(mpi_group_world(g, i), want[i]);
		if (want[i] == ME)
			own = i;
	}
	assert_int_equal(rank, own);
}

static void assert_freed(struct mpi_group *g, const int *want, int n)
{
	assert_group(g, want, n);
	assert_int_equal(mpi_group_free(&g), MPI_SUCCESS);
	assert_null(g);
}

static void set_operations_keep_the_order_of_the_standard(void **state)
{
	int a[SIZE], b[SIZE], want[2 * SIZE];

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		int na = random_ranks(a), nb = random_ranks(b), n;
		struct mpi_group *ga = incl(world, na, a), *gb = incl(world, nb, b), *g;

		n = na;
		memcpy(want, a, sizeof(a));
		for (int i = 0; i < nb; i++)
			if (!among(b[i], a, na))
				want[n++] = b[i];
		assert_int_equal(mpi_group_union(ga, gb, &g), MPI_SUCCESS);
		assert_freed(g, want, n);

		n = 0;
		for (int i = 0; i < na; i++)
			if (among(a[i], b, nb))
				want[n++] = a[i];
		assert_int_equal(mpi_group_intersection(ga, gb, &g), MPI_SUCCESS);
		assert_freed(g, want, n);

		n = 0;
		for (int i = 0; i < na; i++)
			if (!among(a[i], b, nb))
				want[n++] = a[i];
		assert_int_equal(mpi_group_difference(ga, gb, &g), MPI_SUCCESS);
		assert_freed(g, want, n);
		mpi_group_free(&ga);
		mpi_group_free(&gb);
	}
}

static void parts_are_taken_or_left_out_by_rank(void **state)
{
	int a[SIZE], pick[SIZE], want[SIZE];

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		int na = random_ranks(a), np = 0, n, all = random_ranks(pick);
		struct mpi_group *ga = incl(world, na, a), *g;

		for (int i = 0; i < all; i++)
			if (pick[i] < na)
				pick[np++] = pick[i];
		for (int i = 0; i < np; i++)
			want[i] = a[pick[i]];
		assert_freed(incl(ga, np, pick), want, np);

		n = 0;
		for (int i = 0; i < na; i++)
			if (!among(i, pick, np))
				want[n++] = a[i];
		assert_int_equal(mpi_group_excl(ga, np, pick, &g), MPI_SUCCESS);
		assert_freed(g, want, n);
		mpi_group_free(&ga);
	}
}

static void ranges_count_up_and_down(void **state)
{
	int ranges[3][3] = { { 1, 8, 3 }, { 10, 9, -1 }, { 0, 0, 5 } };
	const int in[] = { 1, 4, 7, 10, 9, 0 }, out[] = { 2, 3, 5, 6, 8, 11 };
	struct mpi_group *g;

	(void)state;
	assert_int_equal(mpi_group_range_incl(world, 3, ranges, &g), MPI_SUCCESS);
	assert_freed(g, in, 6);
	assert_int_equal(mpi_group_range_excl(world, 3, ranges, &g), MPI_SUCCESS);
	assert_freed(g, out, 6);
	assert_int_equal(mpi_group_range_incl(world, 0, ranges, &g), MPI_SUCCESS);
	assert_ptr_equal(g, &mpi_group_empty);
}

static void invalid_parts_are_refused_with_their_cause(void **state)
{
	const int twice[] = { 3, 4, 3 }, outside[] = { 0, SIZE }, below[] = { -1 };
	int still[1][3] = { { 0, 3, 0 } }, wrong_way[1][3] = { { 3, 0, 1 } },
	    too_far[1][3] = { { 0, SIZE, 1 } };
	int over[1][3] = { { 0, 0x7fffffff, 0x7fffffff } };
	struct mpi_group *g = NULL;

	(void)state;
	assert_int_equal(mpi_group_incl(world, 3, twice, &g), MPI_ERR_RANK);
	assert_non_null(strstr(mpi_fail_text(), "rank 3 is named twice"));
	assert_int_equal(mpi_group_excl(world, 2, outside, &g), MPI_ERR_RANK);
	assert_int_equal(mpi_group_incl(world, 1, below, &g), MPI_ERR_RANK);
	assert_int_equal(mpi_group_incl(world, -1, below, &g), MPI_ERR_ARG);
	assert_int_equal(mpi_group_range_incl(world, 1, still, &g), MPI_ERR_ARG);
	assert_int_equal(mpi_group_range_incl(world, 1, wrong_way, &g), MPI_ERR_ARG);
	assert_int_equal(mpi_group_range_excl(world, 1, too_far, &g), MPI_ERR_RANK);
	assert_int_equal(mpi_group_range_incl(world, 1, over, &g), MPI_ERR_RANK);
	assert_null(g);
}

static void comparison_tells_order_from_members(void **state)
{
	const int a[] = { 1, 2, 3 }, b[] = { 3, 1, 2 }, c[] = { 1, 2, 4 },
		  all[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	struct mpi_group *ga = incl(world, 3, a), *gb = incl(world, 3, b), *gc = incl(world, 3, c);
	struct mpi_group *gd = incl(world, 3, a), *ge = incl(world, SIZE, all);
	int result;

	(void)state;
	mpi_group_compare(ga, gd, &result);
	assert_int_equal(result, MPI_IDENT);
	mpi_group_compare(ga, gb, &result);
	assert_int_equal(result, MPI_SIMILAR);
	mpi_group_compare(ga, gc, &result);
	assert_int_equal(result, MPI_UNEQUAL);
	mpi_group_compare(world, ge, &result);
	assert_int_equal(result, MPI_IDENT);
	mpi_group_compare(&mpi_group_empty, ga, &result);
	assert_int_equal(result, MPI_UNEQUAL);
	mpi_group_compare(&mpi_group_empty, &mpi_group_empty, &result);
	assert_int_equal(result, MPI_IDENT);
	mpi_group_free(&ga);
	mpi_group_free(&gb);
	mpi_group_free(&gc);
	mpi_group_free(&gd);
	mpi_group_free(&ge);
}

static void ranks_are_translated_many_or_few(void **state)
{
	int a[SIZE], b[SIZE], from[SIZE + 1], to[SIZE + 1];

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		int na = random_ranks(a), nb = random_ranks(b), n = 0;
		struct mpi_group *ga = incl(world, na, a), *gb = incl(world, nb, b);

		for (int i = 0; i < na && (round % 2 || n < 3); i++)
			from[n++] = i;
		from[n++] = MPI_PROC_NULL;
		assert_int_equal(mpi_group_translate_ranks(ga, n, from, gb, to), MPI_SUCCESS);
		assert_int_equal(to[n - 1], MPI_PROC_NULL);
		for (int i = 0; i < n - 1; i++) {
			if (among(a[i], b, nb))
				assert_int_equal(b[to[i]], a[i]);
			else
				assert_int_equal(to[i], MPI_UNDEFINED);
		}
		from[0] = na;
		assert_int_equal(mpi_group_translate_ranks(ga, 1, from, gb, to), MPI_ERR_RANK);
		mpi_group_free(&ga);
		mpi_group_free(&gb);
	}
}

static void each_handle_of_a_group_ends_by_itself(void **state)
{
	struct mpi_group *one, *two, *kept;
	void *handle;
	int size;

	(void)state;
	mpi_comm_group(&mpi_comm_self, &one);
	mpi_comm_group(&mpi_comm_self, &two);
	handle = mpi_handle_of(one);
	assert_ptr_equal(mpi_object_of(handle, MPI_KIND_GROUP), one);
	kept = mpi_object_keep(one); /* as a communicator that is made of it does */
	assert_int_equal(mpi_group_free(&one), MPI_SUCCESS);
	assert_null(one);
	assert_null(mpi_object_of(handle, MPI_KIND_GROUP));
	mpi_object_release(kept);
	assert_ptr_equal(mpi_object_of(mpi_handle_of(two), MPI_KIND_GROUP), two);
	assert_freed(two, &mpi_world.rank, 1);
	mpi_group_size(mpi_comm_self.local, &size);
	assert_int_equal(size, 1);
}

static void groups_of_fifty_thousand_take_no_time(void **state)
{
	enum { MANY = 50000 };
	static int even[MANY], out[MANY];
	struct mpi_group *all, *evens, *odds, *both, *empty;
	int result, ranges[1][3] = { { 1, MANY - 1, 2 } };

	(void)state;
	fake_world_end();
	assert_int_equal(fake_world(7, MANY), MPI_SUCCESS);
	mpi_comm_group(&mpi_comm_world, &all);
	for (int i = 0; i < MANY / 2; i++)
		even[i] = 2 * i;
	evens = incl(all, MANY / 2, even);
	assert_int_equal(mpi_group_range_incl(all, 1, ranges, &odds), MPI_SUCCESS);
	mpi_group_rank(odds, &result);
	assert_int_equal(result, 3);
	assert_int_equal(mpi_group_union(odds, evens, &both), MPI_SUCCESS);
	mpi_group_compare(both, all, &result);
	assert_int_equal(result, MPI_SIMILAR);
	assert_int_equal(mpi_group_intersection(odds, evens, &empty), MPI_SUCCESS);
	assert_ptr_equal(empty, &mpi_group_empty);
	assert_int_equal(mpi_group_translate_ranks(all, MANY / 2, even, both, out), MPI_SUCCESS);
	assert_int_equal(out[10], MANY / 2 + 10);
	mpi_group_free(&all);
	mpi_group_free(&evens);
	mpi_group_free(&odds);
	mpi_group_free(&both);
	fake_world_end();
	assert_int_equal(mpi_pools[MPI_KIND_GROUP].in_use, 2); /* the fixture's and its owner */
	fake_world(ME, SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_operations_keep_the_order_of_the_standard),
		cmocka_unit_test(parts_are_taken_or_left_out_by_rank),
		cmocka_unit_test(ranges_count_up_and_down),
		cmocka_unit_test(invalid_parts_are_refused_with_their_cause),
		cmocka_unit_test(comparison_tells_order_from_members),
		cmocka_unit_test(ranks_are_translated_many_or_few),
		cmocka_unit_test(each_handle_of_a_group_ends_by_itself),
		cmocka_unit_test(groups_of_fifty_thousand_take_no_time),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
