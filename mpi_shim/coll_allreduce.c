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
#include "mpi_shim/coll_parts.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

static int doubling(struct mpi_work *w, const struct mpi_fold *f)
{
	int rc = MPI_SUCCESS;

	for (int bit = 1; bit < f->power && f->rank >= 0; bit *= 2) {
		int partner = mpi_fold_worker(f, f->rank ^ bit);

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

/* From each worker's part to the whole vector on all of them. */
static int gathering(struct mpi_work *w, const struct mpi_fold *f)
{
	int rc = MPI_SUCCESS;

	for (int bit = 1; bit < f->power; bit *= 2) {
		int partner = mpi_fold_worker(f, f->rank ^ bit);
		int have = f->rank & -bit, want = have ^ bit;
		MPI_Count have_at = mpi_part(w, f, have), want_at = mpi_part(w, f, want);

		rc = mpi_first(rc, mpi_coll_sendrecv(mpi_element(w, w->mine, have_at),
						     mpi_part(w, f, have + bit) - have_at, w->type,
						     partner, mpi_element(w, w->mine, want_at),
						     mpi_part(w, f, want + bit) - want_at, w->type,
						     partner, w->tag, w->comm));
	}
	return rc;
}

static int all_work(struct mpi_work *w)
{
	struct mpi_fold f = mpi_fold_of(w->comm);
	bool parts = mpi_coll_in_parts(w->count, w->type, w->op, w->comm);
	int rc = mpi_fold_in(w, &f);

	if (f.rank >= 0 && parts) {
		rc = mpi_first(rc, mpi_halving(w, &f));
		rc = mpi_first(rc, gathering(w, &f));
	} else if (f.rank >= 0) {
		rc = mpi_first(rc, doubling(w, &f));
	}
	return mpi_first(rc, mpi_fold_out(w, &f));
}

int mpi_intra_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
			struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_work w = {
		.mine = recvbuf, .count = count, .type = type, .op = op, .comm = comm
	};
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
	struct mpi_hub *hub;
	int rc = mpi_coll_check(recvbuf, count, datatype, "recvbuf");

	if (!rc && !in_place)
		rc = mpi_coll_check(sendbuf, count, datatype, "sendbuf");
	if (!rc && !in_place)
		rc = mpi_coll_check_alias(sendbuf, count, datatype, recvbuf, count, datatype);
	if (!rc)
		rc = mpi_op_check(op, datatype);
	if (rc)
		return rc;
	hub = mpi_hub_for_op(comm, count, datatype, op);
	if (hub)
		return mpi_hub_allreduce(hub, in_place ? recvbuf : sendbuf, recvbuf, count,
					 datatype, op);
	return (comm->inter ? mpi_inter_allreduce : mpi_intra_allreduce)(sendbuf, recvbuf, count,
									 datatype, op, comm);
}
