/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The barrier of a hub, inside a node and between nodes, and broadcasts, reductions and scans of
 * a few bytes inside a node. See shmcoll.h; make.c makes it, meet.c has what this is made of,
 * wait.c
 * waits, long.c has what takes two meetings, blocks.c what has a block for each rank, alltoallv.c
 * such blocks if they differ, read.c if they are long.
 */
#include <assert.h>
#include <string.h>

#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

#define NODES (1 << 16) /* at most, as ranks */

static_assert(MPI_SHMCOLL_WORDS >= 16 + 2, "by_doubling: one for each round of NODES, and two");
static_assert(MPI_SHMCOLL_WORDS >= MPI_DIRECT_RANKS, "at_once: one for each node");
/* in_tree: the root has the most, one for each value of each of four digits, of which the first
 * has few */
#define CUBE (MPI_SHMCOLL_BRANCHES * MPI_SHMCOLL_BRANCHES * MPI_SHMCOLL_BRANCHES)
static_assert(CUBE * MPI_SHMCOLL_BRANCHES >= NODES, "its parent and four digits have words");
static_assert(3 * (MPI_SHMCOLL_BRANCHES - 1) + (NODES - 1) / CUBE <= MPI_TREE_CHILDREN,
	      "it has room");

/* ---- barrier --------------------------------------------------------------------------------- */

/* The number of this barrier, as it is told. */
static uint64_t crossing(const struct mpi_shmcoll *h)
{
	return h->crossing << MPI_SHMCOLL_MARK_BITS | h->mark;
}

/* The number of this barrier into word `word` of another node's master; with an error it says
 * that, too. */
static int put(struct mpi_shmcoll *h, int node, int word, int rc)
{
	uint64_t more = rc ? MPI_SHMCOLL_MISSING : 0;

	if (rc && h->comm->calls.found)
		more |= MPI_SHMCOLL_NO_MEMORY;
	return mpi_first(rc, mpi_shmcoll_put(h, node, word, crossing(h) | more));
}

/* Until the master of this node has put it into word `word` here. It may be in a later barrier; in
 * this one it has to be in the same call. */
static int await_word(struct mpi_shmcoll *h, int node, int word)
{
	int rc = mpi_shmcoll_await(h, &h->word[word], h->crossing << MPI_SHMCOLL_MARK_BITS);
	uint64_t told = atomic_load_explicit(&h->word[word], memory_order_relaxed);

	if (rc || told == crossing(h) || told >> MPI_SHMCOLL_MARK_BITS != h->crossing)
		return rc;
	return mpi_calls_refuse_calls(h->comm, h->master[node], 0, h->comm->calls.call);
}

/* Recursive doubling by the masters of the largest power of two of nodes; the others fold in and
 * out. Words of a master: one for each round, then those for folding in and out. */
static int by_doubling(struct mpi_shmcoll *h, int rc)
{
	int power = 1, rounds = 0;

	for (; power <= h->nodes / 2; power *= 2)
		rounds++;
	if (h->node >= power) {
		rc = put(h, h->node - power, rounds, rc);
		return mpi_first(rc, await_word(h, h->node - power, rounds + 1));
	}
	if (h->node + power < h->nodes)
		rc = mpi_first(rc, await_word(h, h->node + power, rounds));
	for (int round = 0; round < rounds; round++) {
		rc = put(h, h->node ^ 1 << round, round, rc);
		rc = mpi_first(rc, await_word(h, h->node ^ 1 << round, round));
	}
	if (h->node + power < h->nodes)
		rc = put(h, h->node + power, rounds + 1, rc);
	return rc;
}

/* All tell each other at once, so that who comes last need not wait for anybody. */
static int at_once(struct mpi_shmcoll *h, int rc)
{
	const int n = h->nodes;

	for (int i = 1; i < n; i++)
		rc = put(h, (h->node + i) % n, h->node, rc);
	for (int i = 1; i < n; i++)
		rc = mpi_first(rc, await_word(h, (h->node + i) % n, (h->node + i) % n));
	return rc;
}

/*
 * Up a tree and down again. Words of a master: the first for its parent, then one for each
 * child. The digits of a node's number say where it is in the tree (mpi_tree_make), and so the
 * lowest that is not 0 which word of its parent is its.
 */
static int in_tree(struct mpi_shmcoll *h, int rc)
{
	int word = 1, digits = h->node;
	struct mpi_tree t;

	mpi_tree_make(&t, 0, MPI_SHMCOLL_BRANCHES, &h->leaders);
	for (int i = 0; i < t.n; i++)
		rc = mpi_first(rc, await_word(h, t.child[i], 1 + i));
	if (t.parent >= 0) {
		for (; digits % MPI_SHMCOLL_BRANCHES == 0; digits /= MPI_SHMCOLL_BRANCHES)
			word += MPI_SHMCOLL_BRANCHES - 1;
		rc = put(h, t.parent, word + digits % MPI_SHMCOLL_BRANCHES - 1, rc);
		rc = mpi_first(rc, await_word(h, t.parent, 0));
	}
	for (int i = 0; i < t.n; i++)
		rc = put(h, t.child[i], 0, rc);
	return rc;
}

/* Where processors are short each wait costs a switch of processes: then with the fewest waits. */
static int between_nodes(struct mpi_shmcoll *h, int rc)
{
	if (!mpi_coll_oversubscribed())
		return by_doubling(h, rc);
	return h->nodes <= MPI_DIRECT_RANKS ? at_once(h, rc) : in_tree(h, rc);
}

static int with_leaders(struct mpi_shmcoll *h)
{
	int rc;

	h->crossing++;
	mpi_shmcoll_raise(h, MPI_SUCCESS);
	mpi_shmcoll_wake(h);
	if (h->me != 0)
		return mpi_shmcoll_await_release(h);
	/* what goes wrong here must not keep the other nodes waiting, but they have to know */
	rc = between_nodes(h, mpi_shmcoll_await_all(h));
	if (h->n > 1)
		mpi_shmcoll_release(h, rc);
	return rc;
}

int mpi_shmcoll_barrier(struct mpi_shmcoll *h)
{
	mpi_shmcoll_begin(h, false);
	return mpi_shmcoll_leave(h, h->nodes > 1 ? with_leaders(h) : mpi_shmcoll_node_barrier(h));
}

/* ---- broadcast and reductions ---------------------------------------------------------------- */

int mpi_shmcoll_bcast(struct mpi_shmcoll *h, int rc, void *data, size_t bytes, int root)
{
	mpi_shmcoll_begin_ahead(h, bytes);
	if (h->wide) {
		rc = mpi_first(rc, mpi_shmcoll_reserve_long(h));
		mpi_shmcoll_left_long(h, h->long_turn);
	} else if (h->me == root) {
		rc = mpi_first(rc, mpi_shmcoll_reserve(h));
	}
	if (h->me == root) {
		if (!rc)
			memcpy(mpi_shmcoll_cell(h, root, bytes), data, bytes);
		mpi_shmcoll_raise(h, rc);
	} else {
		rc = mpi_first(rc, mpi_shmcoll_await_flag(h, root));
		if (!rc)
			memcpy(data, mpi_shmcoll_cell(h, root, bytes), bytes);
	}
	return mpi_shmcoll_leave(h, rc);
}

/* What this rank contributes can be seen by who sees its flag. */
static int contribute(struct mpi_shmcoll *h, const void *in, size_t bytes)
{
	int rc = h->wide ? mpi_shmcoll_reserve_long(h) : mpi_shmcoll_reserve(h);

	if (h->wide)
		mpi_shmcoll_left_long(h, h->long_turn);
	if (!rc)
		memcpy(mpi_shmcoll_cell(h, h->me, bytes), in, bytes);
	return rc;
}

/* result = rank 0's op (rank 1's op (...)), up to that of `last`; they have all contributed. */
static int fold(struct mpi_shmcoll *h, int last, char *result, MPI_Count count,
		struct mpi_type *type, struct mpi_op *op)
{
	size_t bytes = (size_t)(count * type->size);
	int rc = MPI_SUCCESS;

	memcpy(result, mpi_shmcoll_cell(h, last, bytes), bytes);
	for (int i = last - 1; i >= 0 && !rc; i--)
		rc = mpi_op_apply(op, mpi_shmcoll_cell(h, i, bytes), result, count, type);
	return rc;
}

int mpi_shmcoll_reduce_short(struct mpi_shmcoll *h, int rc, const void *in, void *out,
			     MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root)
{
	size_t bytes = (size_t)(count * type->size);

	mpi_shmcoll_begin_ahead(h, bytes);
	rc = mpi_first(rc, contribute(h, in, bytes));
	mpi_shmcoll_raise(h, rc);
	if (h->me == root) {
		rc = mpi_first(rc, mpi_shmcoll_await_all(h));
		if (!rc)
			rc = fold(h, h->n - 1, out, count, type, op);
	}
	return mpi_shmcoll_leave(h, rc);
}

int mpi_shmcoll_allreduce_short(struct mpi_shmcoll *h, const void *in, void *out, MPI_Count count,
				struct mpi_type *type, struct mpi_op *op)
{
	size_t bytes = (size_t)(count * type->size);
	char *result;
	int rc;

	mpi_shmcoll_begin(h, bytes > MPI_SHMCOLL_FEW);
	rc = contribute(h, in, bytes);
	if (!mpi_shmcoll_has_leader(h)) {
		rc = mpi_first(rc, mpi_shmcoll_node_barrier(h));
		return mpi_shmcoll_leave(h, rc ? rc : fold(h, h->n - 1, out, count, type, op));
	}
	result = mpi_shmcoll_cell(h, h->n, bytes);
	if (mpi_shmcoll_arrive(h, &rc)) {
		rc = mpi_first(rc, fold(h, h->n - 1, result, count, type, op));
		mpi_shmcoll_release(h, rc);
	} else {
		rc = mpi_first(rc, mpi_shmcoll_await_release(h));
	}
	if (!rc)
		memcpy(out, result, bytes);
	return mpi_shmcoll_leave(h, rc);
}

int mpi_shmcoll_scan(struct mpi_shmcoll *h, const void *in, void *out, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op, bool exclusive)
{
	const int last = h->me - exclusive;
	size_t bytes = (size_t)(count * type->size);
	int rc;

	mpi_shmcoll_begin_ahead(h, bytes);
	rc = contribute(h, in, bytes);
	mpi_shmcoll_raise(h, rc);
	for (int i = 0; i < h->me; i++)
		rc = mpi_first(rc, mpi_shmcoll_await_flag(h, i));
	if (!rc && last >= 0)
		rc = fold(h, last, out, count, type, op);
	return mpi_shmcoll_leave(h, rc);
}
