/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Sets of groups: union, intersection, difference, and parts by rank or range. The time of
 * each is linear in the sizes of the groups and of the world.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/world.h"

/* Make the group of the first n of `world`, which it takes over. It is of the session of `from`. */
static int finish_group(const struct mpi_group *from, int n, int *world, struct mpi_group **out)
{
	struct mpi_group *g = mpi_group_make(n, world);

	if (!g)
		return mpi_fail_memory("a group");
	if (g != &mpi_group_empty)
		g->session = from->session;
	*out = g;
	return MPI_SUCCESS;
}

static int *room_for(int64_t n)
{
	return malloc((size_t)(n > 0 ? n : 1) * sizeof(int));
}

/* Append to `world` the processes of a that are in b (`member`) or are not, in the order of a. */
static int filter(const struct mpi_group *a, const int *inverse_b, bool member, int *world)
{
	int n = 0;

	for (int i = 0; i < a->size; i++) {
		int w = mpi_group_world(a, i);

		if ((inverse_b[w] != MPI_UNDEFINED) == member)
			world[n++] = w;
	}
	return n;
}

static int combine_groups(struct mpi_group *a, struct mpi_group *b, bool member,
			  struct mpi_group **out)
{
	int *inverse = mpi_group_inverse(b), *world = room_for(a->size);
	int n;

	if (!inverse || !world) {
		free(inverse);
		free(world);
		return mpi_fail_memory("a group");
	}
	n = filter(a, inverse, member, world);
	free(inverse);
	return finish_group(a, n, world, out);
}

int mpi_group_intersection(struct mpi_group *a, struct mpi_group *b, struct mpi_group **out)
{
	return combine_groups(a, b, true, out);
}

int mpi_group_difference(struct mpi_group *a, struct mpi_group *b, struct mpi_group **out)
{
	return combine_groups(a, b, false, out);
}

int mpi_group_union(struct mpi_group *a, struct mpi_group *b, struct mpi_group **out)
{
	int *inverse = mpi_group_inverse(a), *world = room_for((int64_t)a->size + b->size);

	if (!inverse || !world) {
		free(inverse);
		free(world);
		return mpi_fail_memory("a group");
	}
	for (int i = 0; i < a->size; i++)
		world[i] = mpi_group_world(a, i);
	int n = a->size + filter(b, inverse, false, world + a->size);

	free(inverse);
	return finish_group(a, n, world, out);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The ranks of a group that a call names, in the order of the call, each at most once. */
struct part {
	const struct mpi_group *from;
	bool *named;
	int *rank;
	int n;
};

static int part_begin(struct part *p, const struct mpi_group *from, int n)
{
	if (n < 0)
		return mpi_fail(MPI_ERR_ARG, "the number of ranks or ranges, %d, is negative", n);
	p->from = from;
	p->n = 0;
	p->named = calloc((size_t)from->size + 1, sizeof(*p->named));
	p->rank = room_for(from->size);
	if (p->named && p->rank)
		return MPI_SUCCESS;
	free(p->named);
	free(p->rank);
	return mpi_fail_memory("a group");
}

static void part_end(struct part *p)
{
	free(p->named);
	free(p->rank);
}

static int part_add(struct part *p, int64_t rank)
{
	if (rank < 0 || rank >= p->from->size)
		return mpi_fail(MPI_ERR_RANK, "rank %lld is not in the group, which has %d",
				(long long)rank, p->from->size);
	if (p->named[rank])
		return mpi_fail(MPI_ERR_RANK, "rank %lld is named twice", (long long)rank);
	p->named[rank] = true;
	p->rank[p->n++] = (int)rank;
	return MPI_SUCCESS;
}

static int part_of_ranks(struct part *p, const struct mpi_group *from, int n, const int ranks[])
{
	int err = part_begin(p, from, n);

	if (err != MPI_SUCCESS)
		return err;
	for (int i = 0; i < n; i++) {
		err = part_add(p, ranks[i]);
		if (err != MPI_SUCCESS) {
			part_end(p);
			return err;
		}
	}
	return MPI_SUCCESS;
}

/* Add first, first + stride, ... up to last, which itself need not be reached. */
static int part_add_range(struct part *p, const int range[3])
{
	int64_t first = range[0], last = range[1], stride = range[2];
	int err;

	if (stride == 0)
		return mpi_fail(MPI_ERR_ARG, "the stride of a range is 0");
	if (stride > 0 ? first > last : first < last)
		return mpi_fail(MPI_ERR_ARG, "the range from %d to %d has a stride of %d", range[0],
				range[1], range[2]);
	for (int64_t r = first; stride > 0 ? r <= last : r >= last; r += stride) {
		err = part_add(p, r);
		if (err != MPI_SUCCESS)
			return err;
	}
	return MPI_SUCCESS;
}

static int part_of_ranges(struct part *p, const struct mpi_group *from, int n, int ranges[][3])
{
	int err = part_begin(p, from, n);

	if (err != MPI_SUCCESS)
		return err;
	for (int i = 0; i < n; i++) {
		err = part_add_range(p, ranges[i]);
		if (err != MPI_SUCCESS) {
			part_end(p);
			return err;
		}
	}
	return MPI_SUCCESS;
}

static int group_of_part(struct part *p, struct mpi_group **out)
{
	int *world = p->rank;

	for (int i = 0; i < p->n; i++)
		world[i] = mpi_group_world(p->from, world[i]);
	free(p->named);
	return finish_group(p->from, p->n, world, out);
}

static int take_others(struct part *p, struct mpi_group **out)
{
	int *world = p->rank;
	int n = 0;

	for (int i = 0; i < p->from->size; i++)
		if (!p->named[i])
			world[n++] = mpi_group_world(p->from, i);
	free(p->named);
	return finish_group(p->from, n, world, out);
}

int mpi_group_incl(struct mpi_group *g, int n, const int ranks[], struct mpi_group **out)
{
	struct part p = { 0 };
	int err = part_of_ranks(&p, g, n, ranks);

	return err == MPI_SUCCESS ? group_of_part(&p, out) : err;
}

int mpi_group_excl(struct mpi_group *g, int n, const int ranks[], struct mpi_group **out)
{
	struct part p = { 0 };
	int err = part_of_ranks(&p, g, n, ranks);

	return err == MPI_SUCCESS ? take_others(&p, out) : err;
}

int mpi_group_range_incl(struct mpi_group *g, int n, int ranges[][3], struct mpi_group **out)
{
	struct part p = { 0 };
	int err = part_of_ranges(&p, g, n, ranges);

	return err == MPI_SUCCESS ? group_of_part(&p, out) : err;
}

int mpi_group_range_excl(struct mpi_group *g, int n, int ranges[][3], struct mpi_group **out)
{
	struct part p = { 0 };
	int err = part_of_ranges(&p, g, n, ranges);

	return err == MPI_SUCCESS ? take_others(&p, out) : err;
}
