/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Reduce, up a tree that keeps the order of ranks. Where each rank has a processor, long
 * vectors of predefined operations are reduced in parts by all ranks (parts.h), and the root
 * collects the parts.
 */
#include "mpi_shim/coll/parts.h"
#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/core/error.h"

/* Vectors of all children of a rank together: up to this length they are received at once. */
#define TOGETHER_BYTES (32 << 10)
/* On oversubscribed machines the fewest messages are best up to here. */
#define TREE_BYTES_OVERSUBSCRIBED (32 << 10)

/* Longest vector on two levels. */
#define NODES_BYTES (1 << 20)

#define BATCH 64 /* receives that the root posts at a time */

/* The partial result of the ranks from this one upwards. */
struct partial {
	struct mpi_schedule *schedule;
	const void *at; /* where it is now: the send buffer, target or spare */
	void *target;   /* where it should be; NULL: not allocated yet */
	void *spare;
	MPI_Count count;
	struct mpi_type *type;
	struct mpi_op *op;
	struct mpi_comm *comm;
};

static void *room_for_partial(struct partial *p, void **buf)
{
	if (!*buf)
		*buf = mpi_schedule_typed(p->schedule, p->count, p->type);
	return *buf;
}

/* Receive the partial result of the ranks above, and combine it to the right of this one's. */
static int fold_in_child(struct partial *p, int child)
{
	bool here = p->at == p->target && p->target;
	void *in = here ? room_for_partial(p, &p->spare) : room_for_partial(p, &p->target);

	if (!in)
		return MPI_ERR_NO_MEM;
	mpi_schedule_recv(p->schedule, in, p->count, p->type, child, p->comm);
	mpi_schedule_wait(p->schedule);
	if (here && p->op->commutative) {
		mpi_schedule_apply(p->schedule, p->op, in, p->target, p->count, p->type);
		return MPI_SUCCESS;
	}
	mpi_schedule_apply(p->schedule, p->op, p->at, in, p->count, p->type);
	p->at = in;
	return MPI_SUCCESS;
}

/* Whether the vectors of n children are short. A datatype's elements may be longer than its
 * extent. */
static bool together(MPI_Count count, const struct mpi_type *type, int n)
{
	MPI_Aint each = type->extent < 0 ? -type->extent : type->extent;

	if (each < type->true_extent)
		each = type->true_extent;
	return each == 0 || count <= TOGETHER_BYTES / each / n;
}

/* Receive the vectors of all children at once: one wait instead of several. */
static int join_all(struct partial *p, const struct mpi_tree *t)
{
	char *in[MPI_TREE_CHILDREN];

	for (int i = 0; i < t->n; i++) {
		/* the last one is received where the result will be */
		if (i == t->n - 1 && p->target && p->at != p->target)
			in[i] = p->target;
		else
			in[i] = mpi_schedule_typed(p->schedule, p->count, p->type);
		if (!in[i])
			return MPI_ERR_NO_MEM;
	}
	for (int i = 0; i < t->n; i++)
		mpi_schedule_recv(p->schedule, in[i], p->count, p->type, t->child[i], p->comm);
	mpi_schedule_wait(p->schedule);
	for (int i = 0; i < t->n; i++) {
		mpi_schedule_apply(p->schedule, p->op, p->at, in[i], p->count, p->type);
		p->at = in[i];
	}
	return MPI_SUCCESS;
}

/* Reduce up the tree to `root`. The order of ranks is kept if the root is 0. */
static int reduce_up_tree(struct mpi_schedule *schedule, const void *sendbuf, void *recvbuf,
			  MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root,
			  int branches, struct mpi_comm *comm)
{
	struct mpi_tree t;
	struct partial p = { .schedule = schedule,
			     .at = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf,
			     .count = count,
			     .type = type,
			     .op = op,
			     .comm = comm };
	int rc = MPI_SUCCESS;

	mpi_tree_make(&t, root, branches, comm);
	p.target = t.parent < 0 ? recvbuf : NULL;
	if (t.n > 0 && together(count, type, t.n))
		rc = join_all(&p, &t);
	else
		for (int i = 0; i < t.n && !rc; i++)
			rc = fold_in_child(&p, t.child[i]);
	if (rc)
		return rc;
	if (t.parent >= 0) {
		mpi_schedule_send(schedule, p.at, count, type, t.parent, comm);
		mpi_schedule_wait(schedule);
	} else if (p.at != recvbuf) {
		mpi_schedule_copy(schedule, p.at, count, type, recvbuf, count, type);
	}
	return MPI_SUCCESS;
}

/* Reduce in the order of ranks, which begins with rank 0: make the result there and send it
 * on. */
static int ordered(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		   struct mpi_type *type, struct mpi_op *op, int root, int branches,
		   struct mpi_comm *comm)
{
	const void *from = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
	char *result = NULL;
	int rc;

	if (comm->rank == 0) {
		result = mpi_schedule_typed(p, count, type);
		if (!result)
			return MPI_ERR_NO_MEM;
	}
	rc = reduce_up_tree(p, from, result, count, type, op, 0, branches, comm);
	if (comm->rank == 0)
		mpi_schedule_send(p, result, count, type, root, comm);
	else if (comm->rank == root)
		mpi_schedule_recv(p, recvbuf, count, type, 0, comm);
	mpi_schedule_wait(p);
	return rc;
}

/* ---- in parts -------------------------------------------------------------------------------- */

/* Send the parts to the root, one from each worker. The root may be no worker itself. */
static void collect_parts(struct mpi_work *w, const struct mpi_fold *f, int root, char *recvbuf)
{
	int posted = 0;

	for (int i = 0; i < f->power; i++) {
		MPI_Count at = mpi_part(w, f, i), n = mpi_part(w, f, i + 1) - at;

		if (w->comm->rank != root) {
			if (i == f->rank)
				mpi_schedule_send(w->schedule, mpi_element(w, w->mine, at), n,
						  w->type, root, w->comm);
			continue;
		}
		if (i == f->rank) {
			mpi_schedule_copy(w->schedule, mpi_element(w, w->mine, at), n, w->type,
					  mpi_element(w, recvbuf, at), n, w->type);
			continue;
		}
		if (posted++ % BATCH == BATCH - 1)
			mpi_schedule_wait(w->schedule);
		mpi_schedule_recv(w->schedule, mpi_element(w, recvbuf, at), n, w->type,
				  mpi_fold_worker(f, i), w->comm);
	}
	mpi_schedule_wait(w->schedule);
}

static int reduce_in_parts(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
			   MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root,
			   struct mpi_comm *comm)
{
	struct mpi_work w = { .schedule = p, .count = count, .type = type, .op = op, .comm = comm };
	struct mpi_fold f = mpi_fold_of(comm);

	w.mine = mpi_schedule_typed(p, count, type);
	w.theirs = w.mine && f.rank >= 0 ? mpi_schedule_typed(p, count, type) : NULL;
	if (!w.mine || (f.rank >= 0 && !w.theirs))
		return MPI_ERR_NO_MEM;
	mpi_schedule_copy(p, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count, type, w.mine,
			  count, type);
	mpi_fold_in(&w, &f);
	if (f.rank >= 0)
		mpi_halving(&w, &f);
	collect_parts(&w, &f, root, recvbuf);
	return MPI_SUCCESS;
}

/* ---- choice of the algorithm ----------------------------------------------------------------- */

static enum mpi_algorithm choose_reduce(const struct mpi_schedule *p, MPI_Count count,
					const struct mpi_type *type, const struct mpi_op *op,
					const struct mpi_comm *comm)
{
	uint64_t can = MPI_COLL_BIT(REDUCE, BINOMIAL) | MPI_COLL_BIT(REDUCE, TREE);
	const bool oversubscribed = mpi_coll_oversubscribed(comm);
	enum mpi_algorithm best =
		oversubscribed && mpi_coll_bytes(count, type) <= TREE_BYTES_OVERSUBSCRIBED
			? MPI_COLL_REDUCE_TREE
			: MPI_COLL_REDUCE_BINOMIAL;

	if (mpi_coll_divisible(count, op, comm))
		can |= MPI_COLL_BIT(REDUCE, PARTS);
	if (mpi_coll_directly(p, comm, mpi_coll_bytes(count, type)))
		best = MPI_COLL_REDUCE_TREE;
	else if (comm->size > 2 && !oversubscribed && mpi_coll_in_parts(count, type, op, comm))
		best = MPI_COLL_REDUCE_PARTS;
	return mpi_coll_choose(can, best);
}

int mpi_intra_reduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op, int root, struct mpi_comm *comm)
{
	enum mpi_algorithm c;
	int branches;

	if (count == 0)
		return MPI_SUCCESS;
	if (comm->size == 1) {
		if (sendbuf != MPI_IN_PLACE)
			mpi_schedule_copy(p, sendbuf, count, type, recvbuf, count, type);
		return MPI_SUCCESS;
	}
	c = choose_reduce(p, count, type, op, comm);
	if (c == MPI_COLL_REDUCE_PARTS)
		return reduce_in_parts(p, sendbuf, recvbuf, count, type, op, root, comm);
	branches = c == MPI_COLL_REDUCE_TREE ? MPI_TREE_BRANCHES : 2;
	return (root == 0 || op->commutative ? reduce_up_tree : ordered)(
		p, sendbuf, recvbuf, count, type, op, root, branches, comm);
}

/* Check the buffers of the root. */
static int check_root_buffers(const void *sendbuf, const void *recvbuf, MPI_Count count,
			      const struct mpi_type *type)
{
	int rc = mpi_coll_check(recvbuf, count, type, "recvbuf");

	if (!rc && sendbuf != MPI_IN_PLACE) {
		rc = mpi_coll_check(sendbuf, count, type, "sendbuf");
		if (!rc)
			rc = mpi_coll_check_alias(sendbuf, count, type, recvbuf, count, type);
	}
	return rc;
}

/* Two ranks compute a part each, from each other's memory. False: use another algorithm. */
static bool reduce_by_reading(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
			      MPI_Count count, struct mpi_type *type, struct mpi_op *op, int root,
			      struct mpi_comm *comm, int *rc)
{
	struct mpi_shmcoll *shmcoll =
		mpi_shmcoll_folds_in_any_order(type, op)
			? mpi_shmcoll_for_taking(p, MPI_COLL_REDUCE_READ, comm, count * type->size,
						 MPI_SHMCOLL_TWO_BYTES, MPI_SHMCOLL_REDUCE_MOST)
			: NULL;

	return shmcoll &&
	       mpi_shmcoll_read_reduce(p, shmcoll, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf,
				       recvbuf, count, type, op, root, rc);
}

int mpi_reduce_schedule(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
			struct mpi_type *datatype, struct mpi_op *op, int root,
			struct mpi_comm *comm)
{
	int rc = mpi_coll_check_root(root, comm);
	struct mpi_shmcoll *shmcoll;

	if (rc)
		return rc;
	if (comm->inter && root == MPI_PROC_NULL)
		rc = MPI_SUCCESS;
	else if (comm->inter && root == MPI_ROOT)
		rc = mpi_coll_check(recvbuf, count, datatype, "recvbuf");
	else if (!comm->inter && root == comm->rank)
		rc = check_root_buffers(sendbuf, recvbuf, count, datatype);
	else
		rc = mpi_coll_check(sendbuf, count, datatype, "sendbuf");
	if (!rc && root != MPI_PROC_NULL)
		rc = mpi_op_check(op, datatype);
	if (rc)
		return rc;
	mpi_calls_announce(p, comm, MPI_CALL_REDUCE, root, op,
			   comm->inter ? MPI_CALL_ANY_BYTES : mpi_coll_bytes(count, datatype));
	if (comm->inter)
		return mpi_inter_reduce(p, sendbuf, recvbuf, count, datatype, op, root, comm);
	if (reduce_by_reading(p, sendbuf, recvbuf, count, datatype, op, root, comm, &rc))
		return rc;
	shmcoll = mpi_shmcoll_for_op(p, MPI_COLL_REDUCE_SHM, comm, count, datatype, op,
				     comm->size == 2 ? MPI_SHMCOLL_TWO_BYTES : MPI_SHMCOLL_REDUCE,
				     NODES_BYTES);
	if (shmcoll && sendbuf == MPI_IN_PLACE)
		sendbuf = recvbuf;
	if (shmcoll && mpi_shmcoll_nodes(shmcoll) > 1)
		return mpi_nodes_reduce(p, shmcoll, sendbuf, recvbuf, count, datatype, op, root);
	if (shmcoll)
		return mpi_shmcoll_reduce(shmcoll, MPI_SUCCESS, sendbuf, recvbuf, count, datatype,
					  op, root);
	return mpi_intra_reduce(p, sendbuf, recvbuf, count, datatype, op, root, comm);
}
