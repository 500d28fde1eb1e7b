/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The barrier of a hub, inside a node and between nodes, and broadcasts and reductions of a few bytes inside a
 * node. See hub.h; hub_make.c makes it, hub_meet.c has what this is made of, hub_wait.c waits, hub_long.c has
 * what takes two meetings, hub_blocks.c what has a block for each rank.
 */
#include <string.h>

#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/hub_impl.h"

/* ---- barrier ---------------------------------------------------------------------------------------- */

/* The number of this barrier into word `word` of another node's master; with an error it says that, too. */
static int put(struct mpi_hub *h, int node, int word, int rc)
{
	return mpi_first(rc, mpi_hub_put(h, node, word, h->crossing | (rc ? MPI_HUB_MISSING : 0)));
}

/* Words of a master: one for each round, then those for folding in and out. */
static int await_word(struct mpi_hub *h, int word)
{
	return mpi_hub_await(h, &h->word[word], h->crossing);
}

/* Recursive doubling by the masters of the largest power of two of nodes; the others fold in and out. */
static int between_nodes(struct mpi_hub *h, int rc)
{
	int power = 1, rounds = 0;

	for (; power <= h->nodes / 2; power *= 2)
		rounds++;
	if (h->node >= power) {
		rc = put(h, h->node - power, rounds, rc);
		return mpi_first(rc, await_word(h, rounds + 1));
	}
	if (h->node + power < h->nodes)
		rc = mpi_first(rc, await_word(h, rounds));
	for (int round = 0; round < rounds; round++) {
		rc = put(h, h->node ^ 1 << round, round, rc);
		rc = mpi_first(rc, await_word(h, round));
	}
	if (h->node + power < h->nodes)
		rc = put(h, h->node + power, rounds + 1, rc);
	return rc;
}

static int with_masters(struct mpi_hub *h)
{
	int rc;

	h->crossing++;
	mpi_hub_raise(h, MPI_SUCCESS);
	mpi_hub_wake(h);
	if (h->me != 0)
		return mpi_hub_await_release(h);
	/* what goes wrong here must not keep the other nodes waiting, but they have to know */
	rc = between_nodes(h, mpi_hub_await_all(h));
	if (h->n > 1)
		mpi_hub_release(h, rc);
	return rc;
}

int mpi_hub_barrier(struct mpi_hub *h)
{
	mpi_hub_begin(h, false);
	return mpi_hub_leave(h, h->nodes > 1 ? with_masters(h) : mpi_hub_meet(h));
}

/* ---- broadcast and reductions ------------------------------------------------------------------------ */

int mpi_hub_bcast(struct mpi_hub *h, int rc, void *data, size_t bytes, int root)
{
	mpi_hub_begin_ahead(h, bytes);
	if (h->wide) {
		rc = mpi_first(rc, mpi_hub_reserve_long(h));
		mpi_hub_left_long(h);
	} else if (h->me == root) {
		rc = mpi_first(rc, mpi_hub_reserve(h));
	}
	if (h->me == root) {
		if (!rc)
			mpi_hub_show(h, mpi_hub_place(h, root, bytes), data, bytes);
		mpi_hub_raise(h, rc);
	} else {
		rc = mpi_first(rc, mpi_hub_await_flag(h, root));
		if (!rc)
			memcpy(data, mpi_hub_place(h, root, bytes), bytes);
	}
	return mpi_hub_leave(h, rc);
}

/* What this rank contributes can be seen by who sees its flag. */
static int contribute(struct mpi_hub *h, const void *in, size_t bytes)
{
	int rc = h->wide ? mpi_hub_reserve_long(h) : mpi_hub_reserve(h);

	if (h->wide)
		mpi_hub_left_long(h);
	if (!rc)
		memcpy(mpi_hub_place(h, h->me, bytes), in, bytes);
	return rc;
}

/* result = rank 0's op (rank 1's op (...)); everybody has contributed. */
static int fold(struct mpi_hub *h, char *result, MPI_Count count, struct mpi_type *type,
		struct mpi_op *op)
{
	size_t bytes = (size_t)(count * type->size);
	int rc = MPI_SUCCESS;

	memcpy(result, mpi_hub_place(h, h->n - 1, bytes), bytes);
	for (int i = h->n - 2; i >= 0 && !rc; i--)
		rc = mpi_op_apply(op, mpi_hub_place(h, i, bytes), result, count, type);
	return rc;
}

int mpi_hub_reduce_short(struct mpi_hub *h, const void *in, void *out, MPI_Count count,
			 struct mpi_type *type, struct mpi_op *op, int root)
{
	size_t bytes = (size_t)(count * type->size);
	int rc;

	mpi_hub_begin_ahead(h, bytes);
	rc = contribute(h, in, bytes);
	mpi_hub_raise(h, rc);
	if (h->me == root) {
		rc = mpi_first(rc, mpi_hub_await_all(h));
		if (!rc)
			rc = fold(h, out, count, type, op);
	}
	return mpi_hub_leave(h, rc);
}

int mpi_hub_allreduce_short(struct mpi_hub *h, const void *in, void *out, MPI_Count count,
			    struct mpi_type *type, struct mpi_op *op)
{
	size_t bytes = (size_t)(count * type->size);
	char *result;
	int rc;

	mpi_hub_begin(h, bytes > MPI_HUB_FEW);
	rc = contribute(h, in, bytes);
	if (!mpi_hub_has_master(h)) {
		rc = mpi_first(rc, mpi_hub_meet(h));
		return mpi_hub_leave(h, rc ? rc : fold(h, out, count, type, op));
	}
	result = mpi_hub_place(h, h->n, bytes);
	if (mpi_hub_arrive(h, &rc)) {
		rc = mpi_first(rc, fold(h, result, count, type, op));
		mpi_hub_release(h, rc);
	} else {
		rc = mpi_first(rc, mpi_hub_await_release(h));
	}
	if (!rc)
		memcpy(out, result, bytes);
	return mpi_hub_leave(h, rc);
}
