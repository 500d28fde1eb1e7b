/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The barrier of the shared-memory area, inside a node and between nodes, and broadcasts,
 * reductions and scans of a few bytes inside a node. See shmcoll.h. The other files:
 *
 *   make.c          makes the area;
 *   node_barrier.c  numbers, cells, flags and the node barrier;
 *   wait.c          waits and wakes;
 *   long.c          reductions with two barriers;
 *   blocks.c        collectives with a block for each rank;
 *   alltoallv.c     such blocks of different lengths;
 *   read.c          long blocks, by CMA reads;
 *   path.c          the choice between blocks.c and read.c;
 *   nodes.c         collectives over several nodes.
 */
#include <assert.h>
#include <string.h>

#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

#define NODES (1 << 16) /* at most, as ranks */

static_assert(MPI_SHMCOLL_WORDS >= 16 + 2, "by_doubling: one for each round of NODES, and two");
static_assert(MPI_SHMCOLL_WORDS >= MPI_DIRECT_RANKS, "at_once: one for each node");
/* in_tree: the root has the most children, one for each nonzero value of each of four digits.
 * The first digit has few values. */
#define CUBE (MPI_SHMCOLL_BRANCHES * MPI_SHMCOLL_BRANCHES * MPI_SHMCOLL_BRANCHES)
static_assert(CUBE * MPI_SHMCOLL_BRANCHES >= NODES, "its parent and four digits have words");
static_assert(3 * (MPI_SHMCOLL_BRANCHES - 1) + (NODES - 1) / CUBE <= MPI_TREE_CHILDREN,
	      "it has room");

/* ---- barrier --------------------------------------------------------------------------------- */

/* The number of this barrier, as it is advertised. */
static uint64_t crossing_number(const struct mpi_shmcoll *h)
{
	return h->crossing << MPI_SHMCOLL_MARK_BITS | h->mark;
}

/* Put the number of this barrier into word `word` of another node's leader. With an error the
 * number says that, too. */
static int put_word(struct mpi_shmcoll *h, int node, int word, int rc)
{
	uint64_t more = rc ? MPI_SHMCOLL_MISSING : 0;

	if (rc && h->comm->calls.found)
		more |= MPI_SHMCOLL_NO_MEMORY;
	return mpi_first(rc, mpi_shmcoll_put(h, node, word, crossing_number(h) | more));
}

/* Wait until the leader of `node` has put the number into word `word` here. It may be in a
 * later barrier; in this one it must be in the same call. */
static int await_word(struct mpi_shmcoll *h, int node, int word)
{
	int rc = mpi_shmcoll_await(h, &h->word[word], h->crossing << MPI_SHMCOLL_MARK_BITS);
	uint64_t advertised = atomic_load_explicit(&h->word[word], memory_order_relaxed);

	if (rc || advertised == crossing_number(h) ||
	    advertised >> MPI_SHMCOLL_MARK_BITS != h->crossing)
		return rc;
	return mpi_calls_refuse_calls(h->comm, h->leader_of[node], 0, h->comm->calls.call);
}

/* Recursive doubling by the leaders of the largest power of two of nodes; the others fold in
 * and out. Words of a leader: one for each round, then those for folding in and out. */
static int by_doubling(struct mpi_shmcoll *h, int rc)
{
	int power = 1, rounds = 0;

	for (; power <= h->nodes / 2; power *= 2)
		rounds++;
	if (h->node >= power) {
		rc = put_word(h, h->node - power, rounds, rc);
		return mpi_first(rc, await_word(h, h->node - power, rounds + 1));
	}
	if (h->node + power < h->nodes)
		rc = mpi_first(rc, await_word(h, h->node + power, rounds));
	for (int round = 0; round < rounds; round++) {
		rc = put_word(h, h->node ^ 1 << round, round, rc);
		rc = mpi_first(rc, await_word(h, h->node ^ 1 << round, round));
	}
	if (h->node + power < h->nodes)
		rc = put_word(h, h->node + power, rounds + 1, rc);
	return rc;
}

/* All leaders put their number to all others at once. So the last one to arrive need not wait
 * for anybody. */
static int at_once(struct mpi_shmcoll *h, int rc)
{
	const int n = h->nodes;

	for (int i = 1; i < n; i++)
		rc = put_word(h, (h->node + i) % n, h->node, rc);
	for (int i = 1; i < n; i++)
		rc = mpi_first(rc, await_word(h, (h->node + i) % n, (h->node + i) % n));
	return rc;
}

/*
 * Up a tree and down again. Words of a leader: the first for its parent, then one for each
 * child. The digits of a node's number give its position in the tree (mpi_tree_make()). So the
 * lowest digit that is not 0 gives the node's word at its parent.
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
		rc = put_word(h, t.parent, word + digits % MPI_SHMCOLL_BRANCHES - 1, rc);
		rc = mpi_first(rc, await_word(h, t.parent, 0));
	}
	for (int i = 0; i < t.n; i++)
		rc = put_word(h, t.child[i], 0, rc);
	return rc;
}

/* On oversubscribed machines each wait costs a process switch; then use the algorithm with the
 * fewest waits. */
static int between_nodes(struct mpi_shmcoll *h, int rc)
{
	if (!mpi_coll_oversubscribed(h->comm))
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
	/* an error must not keep the other nodes waiting, but they must know of it */
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

/* Write this rank's contribution; a rank that sees its flag sees the contribution. */
static int contribute(struct mpi_shmcoll *h, const void *in, size_t bytes)
{
	int rc = h->wide ? mpi_shmcoll_reserve_long(h) : mpi_shmcoll_reserve(h);

	if (h->wide)
		mpi_shmcoll_left_long(h, h->long_turn);
	if (!rc)
		memcpy(mpi_shmcoll_cell(h, h->me, bytes), in, bytes);
	return rc;
}

/* result = rank 0's op (rank 1's op (...)), up to that of `last`; these ranks have
 * contributed. */
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
