/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Groups as objects: making, reading, comparing, freeing. group_set.c makes groups from groups.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/process.h"
#include "mpi_shim/core/world.h"

struct mpi_group mpi_group_empty;

struct mpi_group *mpi_group_make(int size, int *world)
{
	struct mpi_group *g;

	if (size == 0) {
		free(world);
		return mpi_object_keep(&mpi_group_empty);
	}
	g = mpi_object_new(MPI_KIND_GROUP);
	if (!g) {
		free(world);
		return NULL;
	}
	g->size = size;
	g->world = world;
	g->rank = mpi_group_rank_in(g, mpi_world.rank);
	for (int i = 0; world && i < size; i++)
		g->others |= mpi_is_other_job(world[i]);
	return g;
}

int mpi_group_export(struct mpi_group *g, struct mpi_group **out)
{
	struct mpi_group *twin;

	if (g == &mpi_group_empty) {
		*out = g;
		return MPI_SUCCESS;
	}
	twin = mpi_object_new(MPI_KIND_GROUP);
	if (!twin)
		return mpi_fail_memory("a group");
	twin->size = g->size;
	twin->rank = g->rank;
	twin->world = g->world;
	twin->others = g->others;
	twin->session = g->session;
	twin->owner = mpi_object_keep(g->owner ? g->owner : g);
	*out = twin;
	return MPI_SUCCESS;
}

int mpi_group_rank_in(const struct mpi_group *g, int world)
{
	if (!g->world)
		return world < g->size ? world : MPI_UNDEFINED;
	for (int i = 0; i < g->size; i++)
		if (g->world[i] == world)
			return i;
	return MPI_UNDEFINED;
}

int *mpi_group_inverse(const struct mpi_group *g)
{
	int *rank = malloc((size_t)mpi_world.processes * sizeof(*rank));

	if (!rank)
		return NULL;
	for (int i = 0; i < mpi_world.processes; i++)
		rank[i] = MPI_UNDEFINED;
	for (int i = 0; i < g->size; i++)
		rank[mpi_group_world(g, i)] = i;
	return rank;
}

int mpi_group_size(struct mpi_group *g, int *size)
{
	*size = g->size;
	return MPI_SUCCESS;
}

int mpi_group_rank(struct mpi_group *g, int *rank)
{
	*rank = g->rank;
	return MPI_SUCCESS;
}

static int check_rank(const struct mpi_group *g, int rank)
{
	if (rank == MPI_PROC_NULL || (rank >= 0 && rank < g->size))
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_RANK, "rank %d is not in the group, which has %d", rank, g->size);
}

int mpi_group_translate_ranks(struct mpi_group *from, int n, const int ranks[],
			      struct mpi_group *to, int out[])
{
	int *inverse = NULL;

	if (n < 0)
		return mpi_fail(MPI_ERR_ARG, "the number of ranks, %d, is negative", n);
	for (int i = 0; i < n; i++)
		if (check_rank(from, ranks[i]) != MPI_SUCCESS)
			return MPI_ERR_RANK;
	/* A few ranks are found by searching; for many a table pays. */
	if (n > 4 && to->world) {
		inverse = mpi_group_inverse(to);
		if (!inverse)
			return mpi_fail_memory("the translation of ranks");
	}
	for (int i = 0; i < n; i++) {
		if (ranks[i] == MPI_PROC_NULL) {
			out[i] = MPI_PROC_NULL;
		} else {
			int world = mpi_group_world(from, ranks[i]);

			out[i] = inverse ? inverse[world] : mpi_group_rank_in(to, world);
		}
	}
	free(inverse);
	return MPI_SUCCESS;
}

static bool same_order(const struct mpi_group *a, const struct mpi_group *b)
{
	if (a->world == b->world)
		return true;
	for (int i = 0; i < a->size; i++)
		if (mpi_group_world(a, i) != mpi_group_world(b, i))
			return false;
	return true;
}

int mpi_group_compare(struct mpi_group *a, struct mpi_group *b, int *result)
{
	int *inverse;

	*result = MPI_UNEQUAL;
	if (a->size != b->size)
		return MPI_SUCCESS;
	if (same_order(a, b)) {
		*result = MPI_IDENT;
		return MPI_SUCCESS;
	}
	inverse = mpi_group_inverse(b);
	if (!inverse)
		return mpi_fail_memory("the comparison of groups");
	*result = MPI_SIMILAR;
	for (int i = 0; i < a->size; i++)
		if (inverse[mpi_group_world(a, i)] == MPI_UNDEFINED) {
			*result = MPI_UNEQUAL;
			break;
		}
	free(inverse);
	return MPI_SUCCESS;
}

int mpi_group_free(struct mpi_group **g)
{
	mpi_object_retire(&(*g)->obj);
	mpi_object_release(*g);
	*g = NULL;
	return MPI_SUCCESS;
}
