/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Allreduce: recursive doubling for short vectors, or a tree up and down where processors are short;
 * Rabenseifner's algorithm for long ones: the ranks halve the vector among them until each has the result
 * of one part, and put the parts together again.
 *
 * All ranks get the same bits. Where two ranks compute one partial result, both take the lower ranks'
 * as left operand; this also keeps the order that operations which do not commute need.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

/* From here on vectors are reduced in parts. */
#define LONG_BYTES         (8 << 10)
#define LONG_BYTES_CROWDED (64 << 10)

/*
 * The largest power of two of ranks does the work. Of the first 2 * rest ranks the even ones give their
 * vector to the odd one above them before, and get the result after.
 */
struct fold {
	int power, rest;
	int rank; /* among the workers; -1: not one */
};

static struct fold fold_of(const struct mpi_comm *comm)
{
	struct fold f = { .power = 1 };

	while (f.power <= comm->size / 2)
		f.power *= 2;
	f.rest = comm->size - f.power;
	if (comm->rank >= 2 * f.rest)
		f.rank = comm->rank - f.rest;
	else
		f.rank = comm->rank & 1 ? comm->rank / 2 : -1;
	return f;
}

static int worker(const struct fold *f, int rank)
{
	return rank < f->rest ? 2 * rank + 1 : rank + f->rest;
}

/* A reduction under way: the vector here, and room for another's. */
struct work {
	char *mine, *theirs;
	MPI_Count count;
	struct mpi_type *type;
	struct mpi_op *op;
	struct mpi_comm *comm;
	int tag;
};

static int fold_in(struct work *w, const struct fold *f)
{
	struct mpi_comm *comm = w->comm;
	int rc;

	if (comm->rank >= 2 * f->rest)
		return MPI_SUCCESS;
	if (f->rank < 0)
		return mpi_coll_send(w->mine, w->count, w->type, comm->rank + 1, w->tag, comm);
	rc = mpi_coll_recv(w->theirs, w->count, w->type, comm->rank - 1, w->tag, comm, NULL);
	return rc ? rc : mpi_op_apply(w->op, w->theirs, w->mine, w->count, w->type);
}

static int fold_out(struct work *w, const struct fold *f)
{
	struct mpi_comm *comm = w->comm;

	if (comm->rank >= 2 * f->rest)
		return MPI_SUCCESS;
	if (f->rank < 0)
		return mpi_coll_recv(w->mine, w->count, w->type, comm->rank + 1, w->tag, comm,
				     NULL);
	return mpi_coll_send(w->mine, w->count, w->type, comm->rank - 1, w->tag, comm);
}

static int doubling(struct work *w, const struct fold *f)
{
	int rc = MPI_SUCCESS;

	for (int bit = 1; bit < f->power && f->rank >= 0; bit *= 2) {
		int partner = worker(f, f->rank ^ bit);

		rc = mpi_first(rc, mpi_coll_sendrecv(w->mine, w->count, w->type, partner, w->theirs,
						     w->count, w->type, partner, w->tag, w->comm));
		if (f->rank & bit) {
			rc = mpi_first(rc,
				       mpi_op_apply(w->op, w->theirs, w->mine, w->count, w->type));
		} else {
			char *result = w->theirs;

			rc = mpi_first(rc, mpi_op_apply(w->op, w->mine, result, w->count, w->type));
			w->theirs = w->mine;
			w->mine = result;
		}
	}
	return rc;
}

/* ---- in parts ----------------------------------------------------------------------------------- */

/* The first element of worker i's part. */
static MPI_Count part(const struct work *w, const struct fold *f, int i)
{
	MPI_Count each = w->count / f->power, more = w->count % f->power;

	return each * i + (i < more ? i : more);
}

static char *element(const struct work *w, char *base, MPI_Count i)
{
	return base + i * w->type->extent;
}

/* Afterwards worker i has the result of part i. Commutative operations only. */
static int halving(struct work *w, const struct fold *f)
{
	int begin = 0, rc = MPI_SUCCESS;

	for (int bit = f->power / 2; bit > 0; bit /= 2) {
		int partner = worker(f, f->rank ^ bit), middle = begin + bit;
		bool upper = f->rank & bit;
		int give = upper ? begin : middle, keep = upper ? middle : begin;
		MPI_Count give_at = part(w, f, give), keep_at = part(w, f, keep);
		MPI_Count give_count = part(w, f, give + bit) - give_at;
		MPI_Count keep_count = part(w, f, keep + bit) - keep_at;
		char *in = element(w, w->theirs, keep_at);

		rc = mpi_first(rc, mpi_coll_sendrecv(element(w, w->mine, give_at), give_count,
						     w->type, partner, in, keep_count, w->type,
						     partner, w->tag, w->comm));
		rc = mpi_first(rc, mpi_op_apply(w->op, in, element(w, w->mine, keep_at), keep_count,
						w->type));
		begin = keep;
	}
	return rc;
}

/* From each worker's part to the whole vector on all of them. */
static int gathering(struct work *w, const struct fold *f)
{
	int rc = MPI_SUCCESS;

	for (int bit = 1; bit < f->power; bit *= 2) {
		int partner = worker(f, f->rank ^ bit);
		int have = f->rank & -bit, want = have ^ bit;
		MPI_Count have_at = part(w, f, have), want_at = part(w, f, want);

		rc = mpi_first(rc, mpi_coll_sendrecv(element(w, w->mine, have_at),
						     part(w, f, have + bit) - have_at, w->type,
						     partner, element(w, w->mine, want_at),
						     part(w, f, want + bit) - want_at, w->type,
						     partner, w->tag, w->comm));
	}
	return rc;
}

/* To the root, which may be no worker itself, a part from each. */
static int collect(struct work *w, const struct fold *f, int root, char *recvbuf)
{
	struct mpi_request *requests[64];
	int rc = MPI_SUCCESS, posted = 0;
	MPI_Count at;

	if (w->comm->rank != root) {
		if (f->rank < 0)
			return MPI_SUCCESS;
		at = part(w, f, f->rank);
		return mpi_coll_send(element(w, w->mine, at), part(w, f, f->rank + 1) - at, w->type,
				     root, w->tag, w->comm);
	}
	for (int i = 0; i < f->power; i++) {
		MPI_Count n;

		at = part(w, f, i);
		n = part(w, f, i + 1) - at;
		if (i == f->rank) {
			rc = mpi_first(rc, mpi_type_copy(element(w, w->mine, at), n, w->type,
							 element(w, recvbuf, at), n, w->type));
			continue;
		}
		if (posted == 64) {
			rc = mpi_first(rc, mpi_coll_waitall(requests, posted));
			posted = 0;
		}
		requests[posted] = NULL;
		rc = mpi_first(rc, mpi_coll_irecv(element(w, recvbuf, at), n, w->type, worker(f, i),
						  w->tag, w->comm, &requests[posted++]));
	}
	return mpi_first(rc, mpi_coll_waitall(requests, posted));
}

bool mpi_coll_in_parts(MPI_Count count, const struct mpi_type *type, const struct mpi_op *op,
		       const struct mpi_comm *comm)
{
	MPI_Count least = mpi_coll_crowded() ? LONG_BYTES_CROWDED : LONG_BYTES;

	/* functions of users may expect to be given the whole vector at once */
	return op->predefined && op->commutative && count >= comm->size &&
	       count >= (least + type->size - 1) / type->size;
}

int mpi_intra_reduce_parts(const void *sendbuf, void *recvbuf, MPI_Count count,
			   struct mpi_type *type, struct mpi_op *op, int root,
			   struct mpi_comm *comm)
{
	struct work w = { .count = count, .type = type, .op = op, .comm = comm };
	struct fold f = fold_of(comm);
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
		rc = fold_in(&w, &f);
		if (f.rank >= 0)
			rc = mpi_first(rc, halving(&w, &f));
		rc = mpi_first(rc, collect(&w, &f, root, recvbuf));
	}
	mpi_tmp_free(&theirs);
	mpi_tmp_free(&mine);
	return rc;
}

/* ---- MPI_Allreduce ------------------------------------------------------------------------------- */

static int all_work(struct work *w)
{
	struct fold f = fold_of(w->comm);
	bool parts = mpi_coll_in_parts(w->count, w->type, w->op, w->comm);
	int rc = fold_in(w, &f);

	if (f.rank >= 0 && parts) {
		rc = mpi_first(rc, halving(w, &f));
		rc = mpi_first(rc, gathering(w, &f));
	} else if (f.rank >= 0) {
		rc = mpi_first(rc, doubling(w, &f));
	}
	return mpi_first(rc, fold_out(w, &f));
}

int mpi_intra_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
			struct mpi_op *op, struct mpi_comm *comm)
{
	struct work w = { .mine = recvbuf, .count = count, .type = type, .op = op, .comm = comm };
	struct mpi_tmp tmp;
	int rc = MPI_SUCCESS;

	if (count == 0)
		return MPI_SUCCESS;
	if (comm->size > 2 && mpi_coll_crowded() && !mpi_coll_in_parts(count, type, op, comm)) {
		if (sendbuf == MPI_IN_PLACE && comm->rank != 0)
			sendbuf = recvbuf;
		rc = mpi_intra_reduce(sendbuf, recvbuf, count, type, op, 0, comm);
		return mpi_first(rc, mpi_intra_bcast(recvbuf, count, type, 0, comm));
	}
	if (sendbuf != MPI_IN_PLACE)
		rc = mpi_type_copy(sendbuf, count, type, recvbuf, count, type);
	if (rc || comm->size == 1)
		return rc;
	w.tag = MPI_TAG_ALLREDUCE;
	w.theirs = mpi_tmp_typed(&tmp, count, type);
	if (!w.theirs)
		return MPI_ERR_NO_MEM;
	rc = all_work(&w);
	if (w.mine != recvbuf)
		rc = mpi_first(rc, mpi_type_copy(w.mine, count, type, recvbuf, count, type));
	mpi_tmp_free(&tmp);
	return rc;
}

int mpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *datatype,
		  struct mpi_op *op, struct mpi_comm *comm)
{
	bool in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int rc = mpi_coll_check(recvbuf, count, datatype, "recvbuf");

	if (!rc && !in_place)
		rc = mpi_coll_check(sendbuf, count, datatype, "sendbuf");
	if (!rc && !in_place)
		rc = mpi_coll_check_alias(sendbuf, count, recvbuf, count);
	if (!rc)
		rc = mpi_op_check(op, datatype);
	if (rc)
		return rc;
	return (comm->inter ? mpi_inter_allreduce : mpi_intra_allreduce)(sendbuf, recvbuf, count,
									 datatype, op, comm);
}
