/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block. Operations that commute: by halving the vector, or for
 * long ones by sending each rank its part directly; the others, and short vectors where processors
 * are short, by way of rank 0.
 */
#include "mpi_shim/coll_parts.h"

#include <stdlib.h>

#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

/* Of the whole vector: from here on parts are sent directly. */
#define LONG_BYTES (512 << 10)
/* Up to here by way of rank 0, where processors are short. */
#define SHORT_BYTES_CROWDED (8 << 20)

/* Where each rank's part begins, and behind the last the end; malloc'd. */
static MPI_Count *begins(const struct mpi_vec *parts, int n)
{
	MPI_Count *begin = calloc((size_t)n + 1, sizeof(*begin));

	if (!begin) {
		mpi_fail(MPI_ERR_NO_MEM, "no memory for the places of %d parts", n);
		return NULL;
	}
	for (int i = 0; i < n; i++)
		begin[i + 1] = begin[i] + mpi_vec_count(parts, i);
	return begin;
}

/* The order of ranks is kept. */
static int through_root(const void *sendbuf, void *recvbuf, const struct mpi_vec *parts,
			const MPI_Count *begin, struct mpi_op *op, struct mpi_comm *comm)
{
	MPI_Count count = begin[comm->size], own = mpi_vec_count(parts, comm->rank);
	struct mpi_type *type = parts->type;
	struct mpi_vec whole = {
		.counts = parts->counts, .count = parts->count, .displs = begin, .type = type
	};
	struct mpi_tmp tmp = { .heap = NULL };
	int rc;

	if (comm->rank == 0) {
		whole.buf = mpi_tmp_typed(&tmp, count, type);
		if (!whole.buf)
			return MPI_ERR_NO_MEM;
	}
	rc = mpi_intra_reduce(sendbuf, whole.buf, count, type, op, 0, comm);
	rc = mpi_first(rc, mpi_intra_scatterv(&whole, recvbuf, own, type, 0, comm));
	mpi_tmp_free(&tmp);
	return rc;
}

/* The part of each rank straight to it. */
static int pairwise(const void *sendbuf, void *recvbuf, const struct mpi_vec *parts,
		    const MPI_Count *begin, struct mpi_op *op, struct mpi_comm *comm)
{
	MPI_Count own = mpi_vec_count(parts, comm->rank);
	MPI_Aint extent = parts->type->extent;
	struct mpi_type *type = parts->type;
	struct mpi_tmp in_tmp, sum_tmp = { .heap = NULL };
	char *from = (char *)(uintptr_t)sendbuf, *in, *sum;
	int rc;

	in = mpi_tmp_typed(&in_tmp, own, type);
	sum = mpi_tmp_typed(&sum_tmp, own, type);
	rc = in && sum ? mpi_type_copy(from + begin[comm->rank] * extent, own, type, sum, own, type)
		       : MPI_ERR_NO_MEM;
	for (int i = 1; i < comm->size && in && sum; i++) {
		int to = (comm->rank + i) % comm->size;
		int source = (comm->rank - i + comm->size) % comm->size;

		rc = mpi_first(rc, mpi_coll_sendrecv(from + begin[to] * extent,
						     mpi_vec_count(parts, to), type, to, in, own,
						     type, source, MPI_TAG_REDUCE_SCATTER, comm));
		rc = mpi_first(rc, mpi_op_apply(op, in, sum, own, type));
	}
	rc = rc ? rc : mpi_type_copy(sum, own, type, recvbuf, own, type);
	mpi_tmp_free(&sum_tmp);
	mpi_tmp_free(&in_tmp);
	return rc;
}

/* The result of a worker's part to the ranks it is for: itself and perhaps the one below it. */
static int hand_out(struct mpi_work *w, const struct mpi_fold *f, void *recvbuf,
		    const struct mpi_vec *parts, const MPI_Count *begin)
{
	struct mpi_comm *comm = w->comm;
	MPI_Count own = mpi_vec_count(parts, comm->rank);
	int rc = MPI_SUCCESS;

	if (f->rank < 0)
		return mpi_coll_recv(recvbuf, own, w->type, comm->rank + 1, w->tag, comm, NULL);
	if (f->rank < f->rest)
		rc = mpi_coll_send(mpi_element(w, w->mine, begin[comm->rank - 1]),
				   mpi_vec_count(parts, comm->rank - 1), w->type, comm->rank - 1,
				   w->tag, comm);
	return mpi_first(rc, mpi_type_copy(mpi_element(w, w->mine, begin[comm->rank]), own, w->type,
					   recvbuf, own, w->type));
}

static int halve(const void *sendbuf, void *recvbuf, const struct mpi_vec *parts,
		 const MPI_Count *begin, struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_fold f = mpi_fold_of(comm);
	struct mpi_work w = { .count = begin[comm->size],
			      .type = parts->type,
			      .op = op,
			      .comm = comm,
			      .tag = MPI_TAG_REDUCE_SCATTER };
	struct mpi_tmp mine, theirs = { .heap = NULL };
	MPI_Count *work_begin = malloc(((size_t)f.power + 1) * sizeof(*work_begin));
	int rc = MPI_SUCCESS;

	w.mine = mpi_tmp_typed(&mine, w.count, w.type);
	w.theirs = f.rank >= 0 ? mpi_tmp_typed(&theirs, w.count, w.type) : NULL;
	if (!work_begin || !w.mine || (f.rank >= 0 && !w.theirs)) {
		rc = mpi_fail(MPI_ERR_NO_MEM, "no memory for a reduction of %lld elements",
			      (long long)w.count);
	} else {
		/* a worker's part is its own and that of the rank below it that folded in */
		for (int i = 0; i < f.power; i++)
			work_begin[i] = begin[i < f.rest ? 2 * i : i + f.rest];
		work_begin[f.power] = w.count;
		w.begin = work_begin;
		rc = mpi_type_copy(sendbuf, w.count, w.type, w.mine, w.count, w.type);
		rc = mpi_first(rc, mpi_fold_in(&w, &f));
		if (f.rank >= 0)
			rc = mpi_first(rc, mpi_halving(&w, &f));
		rc = mpi_first(rc, hand_out(&w, &f, recvbuf, parts, begin));
	}
	free(work_begin);
	mpi_tmp_free(&theirs);
	mpi_tmp_free(&mine);
	return rc;
}

static int intra(const void *sendbuf, void *recvbuf, const struct mpi_vec *parts, struct mpi_op *op,
		 struct mpi_comm *comm)
{
	struct mpi_type *type = parts->type;
	MPI_Count bytes, *begin = begins(parts, comm->size);
	int rc = MPI_SUCCESS;

	if (!begin)
		return MPI_ERR_NO_MEM;
	bytes = begin[comm->size] * type->size;
	if (sendbuf == MPI_IN_PLACE)
		sendbuf = recvbuf;
	if (begin[comm->size] == 0)
		rc = MPI_SUCCESS;
	else if (comm->size == 1)
		rc = sendbuf == recvbuf
			     ? MPI_SUCCESS
			     : mpi_type_copy(sendbuf, begin[1], type, recvbuf, begin[1], type);
	else if (!op->commutative || (mpi_coll_crowded() && bytes <= SHORT_BYTES_CROWDED))
		rc = through_root(sendbuf, recvbuf, parts, begin, op, comm);
	else if (bytes >= LONG_BYTES && !mpi_coll_crowded())
		rc = pairwise(sendbuf, recvbuf, parts, begin, op, comm);
	else
		rc = halve(sendbuf, recvbuf, parts, begin, op, comm);
	free(begin);
	return rc;
}

static int reduce_scatter(const void *sendbuf, void *recvbuf, const struct mpi_vec *parts,
			  struct mpi_op *op, struct mpi_comm *comm)
{
	bool in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int rc = MPI_SUCCESS, n = comm->size;
	MPI_Count count = 0;

	for (int i = 0; i < n && !rc; i++) {
		rc = mpi_coll_check(recvbuf, mpi_vec_count(parts, i), parts->type, "recvbuf");
		count += mpi_vec_count(parts, i);
	}
	if (!rc && !in_place)
		rc = mpi_coll_check(sendbuf, count, parts->type, "sendbuf");
	if (!rc && !in_place)
		rc = mpi_coll_check_alias(sendbuf, count, parts->type, recvbuf,
					  mpi_vec_count(parts, comm->rank), parts->type);
	if (!rc)
		rc = mpi_op_check(op, parts->type);
	if (rc)
		return rc;
	return (comm->inter ? mpi_inter_reduce_scatter : intra)(sendbuf, recvbuf, parts, op, comm);
}

int mpi_reduce_scatter(const void *sendbuf, void *recvbuf, const MPI_Count *recvcounts,
		       struct mpi_type *datatype, struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_vec parts = { .counts = recvcounts, .type = datatype };

	if (!recvcounts)
		return mpi_fail(MPI_ERR_ARG, "recvcounts is NULL");
	return reduce_scatter(sendbuf, recvbuf, &parts, op, comm);
}

int mpi_reduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
			     struct mpi_type *datatype, struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_vec parts = { .count = recvcount, .type = datatype };

	return reduce_scatter(sendbuf, recvbuf, &parts, op, comm);
}
