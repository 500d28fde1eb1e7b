/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Dims_create: factors of a number that are as equal as possible, in falling order. Of all
 * products it takes the one with the smallest largest factor, then with the smallest second
 * factor, and so on.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"

enum { DIVISORS_MOST = 1600 }; /* 2095133040 has 1600 divisors; no int has more */

struct divisors {
	int n;
	int at[DIVISORS_MOST]; /* rising */
};

static void find_divisors(struct divisors *d, int number)
{
	int large = 0, above[DIVISORS_MOST];

	d->n = 0;
	for (int64_t i = 1; i * i <= number; i++) {
		if (number % i)
			continue;
		d->at[d->n++] = (int)i;
		if (i * i != number)
			above[large++] = (int)(number / i);
	}
	while (large > 0)
		d->at[d->n++] = above[--large];
}

/* Whether most^n >= number. */
static bool enough(int most, int n, int number)
{
	int64_t product = 1;

	for (int i = 0; i < n && product < number; i++)
		product *= most;
	return product >= number;
}

/* Write `number` as a product of n factors, none above `most`, in falling order. False:
 * impossible. */
static bool factor(const struct divisors *d, int number, int n, int most, int *out)
{
	if (n == 1) {
		out[0] = number;
		return number <= most;
	}
	for (int i = 0; i < d->n && d->at[i] <= most; i++) {
		int f = d->at[i];

		if (number % f == 0 && enough(f, n, number) &&
		    factor(d, number / f, n - 1, f, out + 1)) {
			out[0] = f;
			return true;
		}
	}
	return false;
}

/* Compute the product left for the dimensions that are 0, and how many these are. */
static int what_is_left(int nodes, int ndims, const int *dims, int *left, int *open)
{
	int64_t fixed = 1;

	*open = 0;
	for (int i = 0; i < ndims; i++) {
		if (dims[i] < 0)
			return mpi_fail(MPI_ERR_DIMS, "dims[%d] = %d is negative", i, dims[i]);
		if (dims[i] == 0)
			++*open;
		else if (fixed <= nodes)
			fixed *= dims[i];
	}
	if (fixed > nodes || nodes % fixed || (!*open && fixed != nodes))
		return mpi_fail(MPI_ERR_DIMS,
				"%d processes cannot be divided by the dimensions that are given",
				nodes);
	*left = (int)(nodes / fixed);
	return MPI_SUCCESS;
}

int mpi_dims_create(int nodes, int ndims, int *dims)
{
	struct divisors d;
	int left = 1, open = 0, *factors, err;

	if (nodes <= 0)
		return mpi_fail(MPI_ERR_ARG, "the number of processes, %d, is not positive", nodes);
	if (ndims < 0)
		return mpi_fail(MPI_ERR_DIMS, "the number of dimensions, %d, is negative", ndims);
	if (ndims == 0)
		return MPI_SUCCESS;
	err = what_is_left(nodes, ndims, dims, &left, &open);
	if (err != MPI_SUCCESS || open == 0)
		return err;
	factors = calloc((size_t)open, sizeof(*factors));
	if (!factors)
		return mpi_fail_memory("dimensions");
	find_divisors(&d, left);
	factor(&d, left, open, left, factors);
	for (int i = 0, next = 0; i < ndims; i++)
		if (dims[i] == 0)
			dims[i] = factors[next++];
	free(factors);
	return MPI_SUCCESS;
}
