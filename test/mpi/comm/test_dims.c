/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Dims_create against a search of all factorizations, and against results other MPIs are known
 * to give.
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

enum { MOST = 5 };

/* Falling factors, compared from the largest on: is a better? */
static bool better(const int *a, const int *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i] != b[i])
			return a[i] < b[i];
	return false;
}

static void search(int left, int n, int at, int most, int *now, int *best)
{
	if (at == n) {
		if (left == 1 && better(now, best, n))
			memcpy(best, now, (size_t)n * sizeof(int));
		return;
	}
	for (int f = 1; f <= left && f <= most; f++)
		if (left % f == 0) {
			now[at] = f;
			search(left / f, n, at + 1, f, now, best);
		}
}

static void factors_are_the_best_of_all(void **state)
{
	(void)state;
	for (int n = 1; n <= MOST; n++)
		for (int nodes = 1; nodes <= (n < 4 ? 600 : 130); nodes++) {
			int dims[MOST] = { 0 }, now[MOST], best[MOST] = { nodes + 1 };

			search(nodes, n, 0, nodes, now, best);
			assert_int_equal(mpi_dims_create(nodes, n, dims), MPI_SUCCESS);
			assert_memory_equal(dims, best, (size_t)n * sizeof(int));
		}
}

static void assert_dims(int nodes, int n, const int *given, const int *want)
{
	int dims[8];

	memcpy(dims, given, (size_t)n * sizeof(int));
	assert_int_equal(mpi_dims_create(nodes, n, dims), MPI_SUCCESS);
	assert_memory_equal(dims, want, (size_t)n * sizeof(int));
}

static void the_examples_of_the_standard_come_out(void **state)
{
	(void)state;
	assert_dims(6, 2, (int[]){ 0, 0 }, (int[]){ 3, 2 });
	assert_dims(7, 2, (int[]){ 0, 0 }, (int[]){ 7, 1 });
	assert_dims(6, 3, (int[]){ 0, 3, 0 }, (int[]){ 2, 3, 1 });
	assert_dims(4096, 3, (int[]){ 0, 0, 0 }, (int[]){ 16, 16, 16 });
	assert_dims(12, 2, (int[]){ 3, 4 }, (int[]){ 3, 4 });
	assert_dims(1, 2, (int[]){ 0, 0 }, (int[]){ 1, 1 });
}

static void large_numbers_are_no_problem(void **state)
{
	(void)state;
	assert_dims(2147483647, 3, (int[]){ 0, 0, 0 }, (int[]){ 2147483647, 1, 1 });
	assert_dims(2095133040, 4, (int[]){ 0, 0, 0, 0 }, (int[]){ 221, 216, 210, 209 });
	assert_dims(1073741824, 8, (int[8]){ 0 }, (int[]){ 16, 16, 16, 16, 16, 16, 8, 8 });
}

static void what_does_not_divide_is_refused(void **state)
{
	int dims[3] = { 0, 3, 0 };

	(void)state;
	assert_int_equal(mpi_dims_create(7, 3, dims), MPI_ERR_DIMS);
	assert_int_equal(dims[0], 0);
	dims[1] = -1;
	assert_int_equal(mpi_dims_create(6, 3, dims), MPI_ERR_DIMS);
	assert_int_equal(mpi_dims_create(0, 3, dims), MPI_ERR_ARG);
	assert_int_equal(mpi_dims_create(6, -1, dims), MPI_ERR_DIMS);
	dims[0] = dims[1] = dims[2] = 0x7fffffff;
	assert_int_equal(mpi_dims_create(6, 3, dims), MPI_ERR_DIMS);
	assert_int_equal(mpi_dims_create(6, 0, NULL), MPI_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factors_are_the_best_of_all),
		cmocka_unit_test(the_examples_of_the_standard_come_out),
		cmocka_unit_test(large_numbers_are_no_problem),
		cmocka_unit_test(what_does_not_divide_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
