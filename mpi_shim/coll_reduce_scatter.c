/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block. Operations that commute: by halving the vector, or for
 * long ones by sending each rank its part directly; the others, and short vectors where processors
 * are short, by way of rank 0.
 */
#include "mpi_shim/coll_parts.h"

#include <stdlib.h>

#include "mpi_shim/coll_plans.h"
#include "mpi_shim/error.h"

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
static int through_root(struct mpi_plan *p, const void *sendbuf, void *recvbuf,
			const struct mpi_vec *parts, const MPI_Count *begin, struct mpi_op *op,
			struct mpi_comm *comm)
{
	MPI_Count count = begin[comm->size], own = mpi_vec_count(parts, comm->rank);
	struct mpi_type *type = parts->type;
	struct mpi_vec whole = {
		.counts = parts->counts, .count = parts->count, .displs = begin, .type = type
	};
	int rc;

	if (comm->rank == 0) {
		whole.buf = mpi_plan_typed(p, count, type);
		if (!whole.buf)
			return MPI_ERR_NO_MEM;
	}
	rc = mpi_intra_reduce(p, sendbuf, whole.buf, count, type, op, 0, comm);
	if (!rc)
		mpi_intra_scatterv(p, &whole, recvbuf, own, type, 0, comm);
	return rc;
}

/* The part of each rank straight to it. */
static int pairwise(struct mpi_plan *p, const void *sendbuf, void *recvbuf,
		    const struct mpi_vec *parts, const MPI_Count *begin, struct mpi_op *op,
		    struct mpi_comm *comm)
{
	MPI_Count own = mpi_vec_count(parts, comm->rank);
	MPI_Aint extent = parts->type->extent;
	struct mpi_type *type = parts->type;
	char *from = (char *)(uintptr_t)sendbuf, *in, *sum;

	in = mpi_plan_typed(p, own, type);
	sum = in ? mpi_plan_typed(p, own, type) : NULL;
	if (!sum)
		return MPI_ERR_NO_MEM;
	mpi_plan_copy(p, from + begin[comm->rank] * extent, own, type, sum, own, type);
	for (int i = 1; i < comm->size; i++) {
		int to = (comm->rank + i) % comm->size;
		int source = (comm->rank - i + comm->size) % comm->size;

		mpi_plan_sendrecv(p, from + begin[to] * extent, mpi_vec_count(parts, to), type, to,
				  in, own, type, source, comm);
		mpi_plan_apply(p, op, in, sum, own, type);
	}
	mpi_plan_copy(p, sum, own, type, recvbuf, own, type);
	return MPI_SUCCESS;
}

/* The result of a worker's part to the ranks it is for: itself and perhaps the one below it. */
static void hand_out(struct mpi_work *w, const struct mpi_fold *f, void *recvbuf,
		     const struct mpi_vec *parts, const MPI_Count *begin)
{
	struct mpi_comm *comm = w->comm;
	MPI_Count own = mpi_vec_count(parts, comm->rank);

	if (f->rank < 0) {
		mpi_plan_recv(w->plan, recvbuf, own, w->type, comm->rank + 1, comm);
		return;
	}
	if (f->rank < f->rest)
		mpi_plan_send(w->plan, mpi_element(w, w->mine, begin[comm->rank - 1]),
			      mpi_vec_count(parts, comm->rank - 1), w->type, comm->rank - 1, comm);
	mpi_plan_copy(w->plan, mpi_element(w, w->mine, begin[comm->rank]), own, w->type, recvbuf,
		      own, w->type);
}

static int halve(struct mpi_plan *p, const void *sendbuf, void *recvbuf,
		 const struct mpi_vec *parts, const MPI_Count *begin, struct mpi_op *op,
		 struct mpi_comm *comm)
{
	struct mpi_fold f = mpi_fold_of(comm);
	struct mpi_work w = {
		.plan = p, .count = begin[comm->size], .type = parts->type, .op = op, .comm = comm
	};
	MPI_Count *work_begin = malloc(((size_t)f.power + 1) * sizeof(*work_begin));
	int rc = MPI_SUCCESS;

	w.mine = mpi_plan_typed(p, w.count, w.type);
	w.theirs = f.rank >= 0 ? mpi_plan_typed(p, w.count, w.type) : NULL;
	if (!work_begin || !w.mine || (f.rank >= 0 && !w.theirs)) {
		rc = mpi_fail(MPI_ERR_NO_MEM, "no memory for a reduction of %lld elements",
			      (long long)w.count);
	} else {
		/* a worker's part is its own and that of the rank below it that folded in */
		for (int i = 0; i < f.power; i++)
			work_begin[i] = begin[i < f.rest ? 2 * i : i + f.rest];
		work_begin[f.power] = w.count;
		w.begin = work_begin;
		mpi_plan_copy(p, sendbuf, w.count, w.type, w.mine, w.count, w.type);
		mpi_fold_in(&w, &f);
		if (f.rank >= 0)
			mpi_halving(&w, &f);
		hand_out(&w, &f, recvbuf, parts, begin);
	}
	free(work_begin);
	return rc;
}

static enum base_coll choose(MPI_Count bytes, const struct mpi_op *op)
{
	uint64_t can = BASE_COLL_BIT(REDUCE_SCATTER, ROOT);
	enum base_coll best = BASE_COLL_REDUCE_SCATTER_HALVING;

	if (op->commutative)
		can |= BASE_COLL_BIT(REDUCE_SCATTER, HALVING) |
		       BASE_COLL_BIT(REDUCE_SCATTER, PAIRWISE);
	if (!op->commutative || (mpi_coll_crowded() && bytes <= SHORT_BYTES_CROWDED))
		best = BASE_COLL_REDUCE_SCATTER_ROOT;
	else if (bytes >= LONG_BYTES && !mpi_coll_crowded())
		best = BASE_COLL_REDUCE_SCATTER_PAIRWISE;
	return mpi_coll_choose(can, best);
}

static int divide(struct mpi_plan *p, const void *sendbuf, void *recvbuf,
		  const struct mpi_vec *parts, const MPI_Count *begin, struct mpi_op *op,
		  struct mpi_comm *comm)
{
	switch (choose(begin[comm->size] * parts->type->size, op)) {
	case BASE_COLL_REDUCE_SCATTER_ROOT:
		return through_root(p, sendbuf, recvbuf, parts, begin, op, comm);
	case BASE_COLL_REDUCE_SCATTER_PAIRWISE:
		return pairwise(p, sendbuf, recvbuf, parts, begin, op, comm);
	default:
		return halve(p, sendbuf, recvbuf, parts, begin, op, comm);
	}
}

static int intra(struct mpi_plan *p, const void *sendbuf, void *recvbuf,
		 const struct mpi_vec *parts, struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_type *type = parts->type;
	MPI_Count *begin = begins(parts, comm->size);
	int rc = MPI_SUCCESS;

	if (!begin)
		return MPI_ERR_NO_MEM;
	if (sendbuf == MPI_IN_PLACE)
		sendbuf = recvbuf;
	if (begin[comm->size] == 0)
		rc = MPI_SUCCESS;
	else if (comm->size == 1 && sendbuf != recvbuf)
		mpi_plan_copy(p, sendbuf, begin[1], type, recvbuf, begin[1], type);
	else if (comm->size == 1)
		rc = MPI_SUCCESS;
	else
		rc = divide(p, sendbuf, recvbuf, parts, begin, op, comm);
	free(begin);
	return rc;
}

static int reduce_scatter(struct mpi_plan *p, const void *sendbuf, void *recvbuf,
			  const struct mpi_vec *parts, struct mpi_op *op, struct mpi_comm *comm)
{
	bool in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int rc = MPI_SUCCESS, n = comm->size;
	MPI_Count count = 0;

	for (int i = 0; i < n && !rc; i++) {
		/* of what others receive there is nothing here */
		rc = mpi_coll_check(i == comm->rank || in_place ? recvbuf : parts,
				    mpi_vec_count(parts, i), parts->type, "recvbuf");
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
	return (comm->inter ? mpi_inter_reduce_scatter : intra)(p, sendbuf, recvbuf, parts, op,
								comm);
}

int mpi_reduce_scatter_plan(struct mpi_plan *p, const void *sendbuf, void *recvbuf,
			    const MPI_Count *recvcounts, struct mpi_type *datatype,
			    struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_vec parts = { .counts = recvcounts, .type = datatype };

	if (!recvcounts)
		return mpi_fail(MPI_ERR_ARG, "recvcounts is NULL");
	return reduce_scatter(p, sendbuf, recvbuf, &parts, op, comm);
}

int mpi_reduce_scatter_block_plan(struct mpi_plan *p, const void *sendbuf, void *recvbuf,
				  MPI_Count recvcount, struct mpi_type *datatype, struct mpi_op *op,
				  struct mpi_comm *comm)
{
	struct mpi_vec parts = { .count = recvcount, .type = datatype };

	return reduce_scatter(p, sendbuf, recvbuf, &parts, op, comm);
}
