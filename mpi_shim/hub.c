/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What the collectives of a hub do: see hub.h. hub_make.c makes it, hub_wait.c waits.
 */
#include "mpi_shim/hub_impl.h"

#include <string.h>

#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/world.h"

/* Up to so many ranks with a processor each look at each other's flags, instead of at the master's. */
#define LOOK_AT_ALL 4

/* ---- flags and data ------------------------------------------------------------------------------- */

static struct mpi_hub_flag *flag(const struct mpi_hub *h, int i)
{
	return &h->flags[h->number % MPI_HUB_DEPTH * (size_t)h->n + (size_t)i];
}

/* Where the data of local rank i lies; those of rank n are the result. */
static char *place(const struct mpi_hub *h, int i, size_t bytes)
{
	size_t at = h->number % MPI_HUB_DEPTH * ((size_t)h->n + 1) + (size_t)i;

	if (bytes > MPI_HUB_FEW)
		return h->places + at * MPI_HUB_STRIDE;
	return i < h->n ? flag(h, i)->data : h->results[h->number % MPI_HUB_DEPTH].data;
}

/* The next operation begins. */
static void begin(struct mpi_hub *h)
{
	h->number++;
}

/* The places of the operation before are free: everybody has left the one that used them last. */
static int reserve(struct mpi_hub *h)
{
	uint64_t least;
	int rc = MPI_SUCCESS;

	if (h->number <= h->free_to)
		return MPI_SUCCESS;
	least = h->number - MPI_HUB_DEPTH;
	for (int i = 0; i < h->n && !rc; i++)
		if (i != h->me)
			rc = mpi_hub_await(h, &h->seats[i].left, least);
	if (rc)
		return rc;
	least = UINT64_MAX;
	for (int i = 0; i < h->n; i++) {
		uint64_t left = atomic_load_explicit(&h->seats[i].left, memory_order_acquire);

		if (i != h->me && left < least)
			least = left;
	}
	h->free_to = least + MPI_HUB_DEPTH;
	return MPI_SUCCESS;
}

/* Nothing of this operation is needed here any more. */
static int leave(struct mpi_hub *h, int rc)
{
	/* pairs with the look at it in reserve() */
	atomic_store_explicit(&h->seats[h->me].left, h->number, memory_order_release);
	mpi_hub_wake(h);
	if (rc)
		h->broken = true;
	return rc;
}

/* What this rank has written can be seen by who sees its number. */
static void raise_flag(struct mpi_hub *h)
{
	atomic_store_explicit(&flag(h, h->me)->number, h->number, memory_order_release);
}

static int await_flag(struct mpi_hub *h, int i)
{
	return mpi_hub_await(h, &flag(h, i)->number, h->number);
}

static int await_all(struct mpi_hub *h)
{
	int rc = MPI_SUCCESS;

	for (int i = 0; i < h->n; i++)
		if (i != h->me)
			rc = mpi_first(rc, await_flag(h, i));
	return rc;
}

/* Says that it is here; true: as the last one. */
static bool arrive(struct mpi_hub *h)
{
	_Atomic uint32_t *count = &h->shared->count[h->number % MPI_HUB_DEPTH].n;

	raise_flag(h);
	/* the last one sees what all have written before they arrived */
	if (atomic_fetch_add_explicit(count, 1, memory_order_acq_rel) + 1 < (uint32_t)h->n)
		return false;
	atomic_store_explicit(count, 0, memory_order_relaxed);
	return true;
}

static void release(struct mpi_hub *h)
{
	atomic_store_explicit(&h->shared->release, h->number, memory_order_release);
	mpi_hub_wake(h);
}

static int await_release(struct mpi_hub *h)
{
	return mpi_hub_await(h, &h->shared->release, h->number);
}

/* ---- between nodes ---------------------------------------------------------------------------------- */

/* The number of this barrier into word `word` of another node's master. */
static int put(struct mpi_hub *h, int node, int word)
{
	return mpi_hub_put(h, node, word, h->number);
}

/* Words of a master: one for each round, then those for folding in and out. */
static int await_word(struct mpi_hub *h, int word)
{
	return mpi_hub_await(h, &h->word[word], h->number);
}

/* Recursive doubling by the masters of the largest power of two of nodes; the others fold in and out. */
static int between_nodes(struct mpi_hub *h)
{
	int power = 1, rounds = 0, rc = MPI_SUCCESS;

	for (; power <= h->nodes / 2; power *= 2)
		rounds++;
	if (h->node >= power) {
		rc = put(h, h->node - power, rounds);
		return mpi_first(rc, await_word(h, rounds + 1));
	}
	if (h->node + power < h->nodes)
		rc = await_word(h, rounds);
	for (int round = 0; round < rounds; round++) {
		rc = mpi_first(rc, put(h, h->node ^ 1 << round, round));
		rc = mpi_first(rc, await_word(h, round));
	}
	if (h->node + power < h->nodes)
		rc = mpi_first(rc, put(h, h->node + power, rounds + 1));
	return rc;
}

/* ---- collectives ------------------------------------------------------------------------------------ */

/* Each looks at each, the master at all and all at the master, or all at the last. */
static int inside_node(struct mpi_hub *h)
{
	if (h->crowded) {
		if (!arrive(h))
			return await_release(h);
		release(h);
		return MPI_SUCCESS;
	}
	raise_flag(h);
	mpi_hub_wake(h);
	if (h->n <= LOOK_AT_ALL)
		return await_all(h);
	if (h->me != 0)
		return await_release(h);
	return await_all(h);
}

static int with_masters(struct mpi_hub *h)
{
	int rc;

	raise_flag(h);
	mpi_hub_wake(h);
	if (h->me != 0)
		return await_release(h);
	/* what goes wrong here must not keep the other nodes waiting */
	rc = await_all(h);
	rc = mpi_first(rc, between_nodes(h));
	if (h->n > 1)
		release(h);
	return rc;
}

int mpi_hub_barrier(struct mpi_hub *h)
{
	int rc;

	begin(h);
	if (h->nodes > 1) {
		rc = with_masters(h);
	} else {
		rc = inside_node(h);
		if (!h->crowded && h->n > LOOK_AT_ALL && h->me == 0)
			release(h);
	}
	return leave(h, rc);
}

int mpi_hub_bcast(struct mpi_hub *h, void *data, size_t bytes, int root)
{
	int rc;

	begin(h);
	if (h->me == root) {
		rc = reserve(h);
		if (!rc)
			memcpy(place(h, root, bytes), data, bytes);
		raise_flag(h);
		mpi_hub_wake(h);
	} else {
		rc = await_flag(h, root);
		if (!rc)
			memcpy(data, place(h, root, bytes), bytes);
	}
	return leave(h, rc);
}

/* What this rank contributes can be seen. */
static int contribute(struct mpi_hub *h, const void *in, size_t bytes)
{
	int rc = reserve(h);

	if (!rc)
		memcpy(place(h, h->me, bytes), in, bytes);
	return rc;
}

/* result = rank 0's op (rank 1's op (...)); everybody has contributed. */
static int fold(struct mpi_hub *h, char *result, MPI_Count count, struct mpi_type *type,
		struct mpi_op *op)
{
	size_t bytes = (size_t)(count * type->size);
	int rc = MPI_SUCCESS;

	memcpy(result, place(h, h->n - 1, bytes), bytes);
	for (int i = h->n - 2; i >= 0 && !rc; i--)
		rc = mpi_op_apply(op, place(h, i, bytes), result, count, type);
	return rc;
}

int mpi_hub_reduce(struct mpi_hub *h, const void *in, void *out, MPI_Count count,
		   struct mpi_type *type, struct mpi_op *op, int root)
{
	int rc;

	begin(h);
	rc = contribute(h, in, (size_t)(count * type->size));
	raise_flag(h);
	if (h->me == root) {
		rc = mpi_first(rc, await_all(h));
		if (!rc)
			rc = fold(h, out, count, type, op);
	}
	return leave(h, rc);
}

int mpi_hub_allreduce(struct mpi_hub *h, const void *in, void *out, MPI_Count count,
		      struct mpi_type *type, struct mpi_op *op)
{
	size_t bytes = (size_t)(count * type->size);
	char *result;
	int rc;

	begin(h);
	rc = contribute(h, in, bytes);
	result = place(h, h->n, bytes);
	if (!h->crowded && h->n <= LOOK_AT_ALL) {
		raise_flag(h);
		mpi_hub_wake(h);
		rc = mpi_first(rc, await_all(h));
		return leave(h, rc ? rc : fold(h, out, count, type, op));
	}
	if (arrive(h)) {
		rc = mpi_first(rc, fold(h, result, count, type, op));
		release(h);
	} else {
		rc = mpi_first(rc, await_release(h));
	}
	if (!rc)
		memcpy(out, result, bytes);
	return leave(h, rc);
}
