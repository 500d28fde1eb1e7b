/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Reduce, up a tree that keeps the order of ranks; long vectors of predefined operations are
 * reduced in parts by all ranks (coll_allreduce.c) and collected by the root.
 */
#include "mpi_shim/coll_parts.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

/* Vectors of all children of a rank together: up to here they are received at once. */
#define TOGETHER_BYTES (32 << 10)

/* The partial result of the ranks from this one upwards. */
struct partial {
	const void *at; /* where it is now: the send buffer, target or spare */
	void *target;   /* where it is wanted; NULL: not made yet */
	void *spare;
	struct mpi_tmp target_tmp, spare_tmp;
};

static void *room(void **buf, struct mpi_tmp *tmp, MPI_Count count, const struct mpi_type *type)
{
	if (!*buf)
		*buf = mpi_tmp_typed(tmp, count, type);
	return *buf;
}

/* Receives what the ranks above have, and joins it to the right of what is here. */
static int join(struct partial *p, MPI_Count count, struct mpi_type *type, struct mpi_op *op,
		int child, struct mpi_comm *comm)
{
	bool here = p->at == p->target && p->target;
	void *in = here ? room(&p->spare, &p->spare_tmp, count, type)
			: room(&p->target, &p->target_tmp, count, type);
	int rc;

	if (!in)
		return MPI_ERR_NO_MEM;
	rc = mpi_coll_recv(in, count, type, child, MPI_TAG_REDUCE, comm, NULL);
	if (rc)
		return rc;
	if (here && op->commutative)
		return mpi_op_apply(op, in, p->target, count, type);
	rc = mpi_op_apply(op, p->at, in, count, type);
	p->at = in;
	return rc;
}

/* The vectors of all children at once, if they are short: one wait instead of several. */
static int join_all(struct partial *p, MPI_Count count, struct mpi_type *type, struct mpi_op *op,
		    const struct mpi_tree *t, struct mpi_comm *comm)
{
	struct mpi_request *requests[MPI_TREE_CHILDREN] = { NULL };
	char *in[MPI_TREE_CHILDREN];
	int rc = MPI_SUCCESS;

	p->spare = mpi_tmp_typed(&p->spare_tmp, t->n * count, type);
	if (!p->spare)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < t->n; i++) {
		in[i] = (char *)p->spare + i * count * type->extent;
		/* the last one is where the result will be */
		if (i == t->n - 1 && p->target && p->at != p->target)
			in[i] = p->target;
		rc = mpi_first(rc, mpi_coll_irecv(in[i], count, type, t->child[i], MPI_TAG_REDUCE,
						  comm, &requests[i]));
	}
	rc = mpi_first(rc, mpi_coll_waitall(requests, t->n));
	for (int i = 0; i < t->n && !rc; i++) {
		rc = mpi_op_apply(op, p->at, in[i], count, type);
		p->at = in[i];
	}
	return rc;
}

/* Up the tree to `root`. The order of ranks is kept if the root is 0. */
static int tree(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
		struct mpi_op *op, int root, struct mpi_comm *comm)
{
	bool in_place = sendbuf == MPI_IN_PLACE;
	struct mpi_tree t;
	struct partial p;
	int rc = MPI_SUCCESS;

	mpi_tree_make(&t, root, comm);
	p.target_tmp.heap = p.spare_tmp.heap = NULL;
	p.target = t.parent < 0 ? recvbuf : NULL;
	p.spare = NULL;
	p.at = in_place ? recvbuf : sendbuf;
	if (t.n > 0 && count <= TOGETHER_BYTES / type->extent / t.n)
		rc = join_all(&p, count, type, op, &t, comm);
	else
		for (int i = 0; i < t.n; i++)
			rc = mpi_first(rc, join(&p, count, type, op, t.child[i], comm));
	if (t.parent >= 0)
		rc = mpi_first(rc,
			       mpi_coll_send(p.at, count, type, t.parent, MPI_TAG_REDUCE, comm));
	else if (p.at != recvbuf)
		rc = mpi_first(rc, mpi_type_copy(p.at, count, type, recvbuf, count, type));
	mpi_tmp_free(&p.target_tmp);
	mpi_tmp_free(&p.spare_tmp);
	return rc;
}

/* The order of ranks has rank 0 at its beginning: the result is made there and sent on. */
static int ordered(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
		   struct mpi_op *op, int root, struct mpi_comm *comm)
{
	struct mpi_tmp tmp = { .heap = NULL };
	const void *from = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
	char *result;
	int rc;

	if (comm->rank != 0) {
		rc = tree(from, NULL, count, type, op, 0, comm);
		if (comm->rank == root)
			rc = mpi_first(rc, mpi_coll_recv(recvbuf, count, type, 0, MPI_TAG_REDUCE,
							 comm, NULL));
		return rc;
	}
	result = mpi_tmp_typed(&tmp, count, type);
	if (!result)
		return MPI_ERR_NO_MEM;
	rc = tree(from, result, count, type, op, 0, comm);
	rc = mpi_first(rc, mpi_coll_send(result, count, type, root, MPI_TAG_REDUCE, comm));
	mpi_tmp_free(&tmp);
	return rc;
}

/* ---- in parts ----------------------------------------------------------------------------------- */

/* To the root, which may be no worker itself, a part from each. */
static int collect(struct mpi_work *w, const struct mpi_fold *f, int root, char *recvbuf)
{
	struct mpi_request *requests[64];
	int rc = MPI_SUCCESS, posted = 0;
	MPI_Count at;

	if (w->comm->rank != root) {
		if (f->rank < 0)
			return MPI_SUCCESS;
		at = mpi_part(w, f, f->rank);
		return mpi_coll_send(mpi_element(w, w->mine, at), mpi_part(w, f, f->rank + 1) - at,
				     w->type, root, w->tag, w->comm);
	}
	for (int i = 0; i < f->power; i++) {
		MPI_Count n;

		at = mpi_part(w, f, i);
		n = mpi_part(w, f, i + 1) - at;
		if (i == f->rank) {
			rc = mpi_first(rc, mpi_type_copy(mpi_element(w, w->mine, at), n, w->type,
							 mpi_element(w, recvbuf, at), n, w->type));
			continue;
		}
		if (posted == 64) {
			rc = mpi_first(rc, mpi_coll_waitall(requests, posted));
			posted = 0;
		}
		requests[posted] = NULL;
		rc = mpi_first(rc, mpi_coll_irecv(mpi_element(w, recvbuf, at), n, w->type,
						  mpi_fold_worker(f, i), w->tag, w->comm,
						  &requests[posted++]));
	}
	return mpi_first(rc, mpi_coll_waitall(requests, posted));
}

static int in_parts(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
		    struct mpi_op *op, int root, struct mpi_comm *comm)
{
	struct mpi_work w = { .count = count, .type = type, .op = op, .comm = comm };
	struct mpi_fold f = mpi_fold_of(comm);
	struct mpi_tmp mine, theirs = { .heap = NULL };
	int rc = MPI_SUCCESS;

	w.tag = MPI_TAG_REDUCE;
	w.mine = mpi_tmp_typed(&mine, count, type);
	w.theirs = w.mine && f.rank >= 0 ? mpi_tmp_typed(&theirs, count, type) : NULL;
	if (!w.mine || (f.rank >= 0 && !w.theirs))
		rc = MPI_ERR_NO_MEM;
	if (!rc)
		rc = mpi_type_copy(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count, type, w.mine,
				   count, type);
	if (!rc) {
		rc = mpi_fold_in(&w, &f);
		if (f.rank >= 0)
			rc = mpi_first(rc, mpi_halving(&w, &f));
		rc = mpi_first(rc, collect(&w, &f, root, recvbuf));
	}
	mpi_tmp_free(&theirs);
	mpi_tmp_free(&mine);
	return rc;
}

/* ---- which ---------------------------------------------------------------------------------------- */

int mpi_intra_reduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
		     struct mpi_op *op, int root, struct mpi_comm *comm)
{
	if (count == 0)
		return MPI_SUCCESS;
	if (comm->size == 1)
		return sendbuf == MPI_IN_PLACE
			       ? MPI_SUCCESS
			       : mpi_type_copy(sendbuf, count, type, recvbuf, count, type);
	if (mpi_coll_in_parts(count, type, op, comm))
		return in_parts(sendbuf, recvbuf, count, type, op, root, comm);
	if (root == 0 || op->commutative)
		return tree(sendbuf, recvbuf, count, type, op, root, comm);
	return ordered(sendbuf, recvbuf, count, type, op, root, comm);
}

/* The buffers of a rank that is the root. */
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

int mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *datatype,
	       struct mpi_op *op, int root, struct mpi_comm *comm)
{
	int rc = mpi_coll_check_root(root, comm);
	struct mpi_hub *hub;

	if (rc || (comm->inter && root == MPI_PROC_NULL))
		return rc;
	if (comm->inter && root == MPI_ROOT)
		rc = mpi_coll_check(recvbuf, count, datatype, "recvbuf");
	else if (!comm->inter && root == comm->rank)
		rc = check_root_buffers(sendbuf, recvbuf, count, datatype);
	else
		rc = mpi_coll_check(sendbuf, count, datatype, "sendbuf");
	if (!rc)
		rc = mpi_op_check(op, datatype);
	if (rc)
		return rc;
	hub = mpi_hub_for_op(comm, count, datatype, op);
	if (hub)
		return mpi_hub_reduce(hub, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf,
				      count, datatype, op, root);
	return (comm->inter ? mpi_inter_reduce : mpi_intra_reduce)(sendbuf, recvbuf, count,
								   datatype, op, root, comm);
}
