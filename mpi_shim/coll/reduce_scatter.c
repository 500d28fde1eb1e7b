/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block. They use shared memory if they can.
 * Otherwise operations that commute halve the vector, or send each rank its part directly if it
 * is long. All others go through rank 0, and so do short vectors on oversubscribed machines.
 */
#include "mpi_shim/coll/parts.h"

#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/core/error.h"

/* Bytes of the whole vector from which on parts are sent directly. */
#define LONG_BYTES                (512 << 10)
#define LONG_BYTES_OVERSUBSCRIBED (2 << 20)
/* Longest part through shared memory, where each rank has a processor. */
#define SHMCOLL_BYTES (32 << 10)
/* Longest vector that goes through rank 0 on oversubscribed machines. */
#define SHORT_BYTES_OVERSUBSCRIBED (128 << 10)

/* Allocate n numbers; NULL: out of memory. A blocking schedule goes on without (schedule.h). */
static MPI_Count *numbers(struct mpi_schedule *p, int n)
{
	MPI_Count *number = (void *)mpi_schedule_bytes(p, (MPI_Count)sizeof(*number) * n);

	return p->failed ? NULL : number;
}

/* Where each rank's part begins, and after the last one the end. */
struct places {
	MPI_Count count;
	const MPI_Count *begin; /* NULL if the schedule has failed: nowhere */
};

static MPI_Count begin_of_part(const struct places *at, int i)
{
	return at->begin ? at->begin[i] : 0;
}

static int find_places(struct mpi_schedule *p, struct places *at, const struct mpi_vec *parts,
		       int n)
{
	MPI_Count *begin = numbers(p, n + 1);

	if (!begin && !p->failed)
		return MPI_ERR_NO_MEM;
	*at = (struct places){ .begin = begin };
	for (int i = 0; i < n; i++) {
		if (begin)
			begin[i] = at->count;
		at->count += mpi_vec_count(parts, i);
	}
	if (begin)
		begin[n] = at->count;
	return MPI_SUCCESS;
}

/* Reduce to rank 0 and scatter from there; keeps the order of ranks. */
static int reduce_scatter_through_root(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
				       const struct mpi_vec *parts, const struct places *at,
				       struct mpi_op *op, struct mpi_comm *comm)
{
	MPI_Count count = at->count, own = mpi_vec_count(parts, comm->rank);
	struct mpi_type *type = parts->type;
	struct mpi_vec whole = {
		.counts = parts->counts, .count = parts->count, .displs = at->begin, .type = type
	};
	int rc;

	if (comm->rank == 0) {
		whole.buf = mpi_schedule_typed(p, count, type);
		if (!whole.buf)
			return MPI_ERR_NO_MEM;
	}
	rc = mpi_intra_reduce(p, sendbuf, whole.buf, count, type, op, 0, comm);
	if (!rc)
		mpi_intra_scatterv(p, &whole, recvbuf, own, type, 0, comm);
	return rc;
}

/* Send each rank its part directly. */
static int reduce_scatter_pairwise(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
				   const struct mpi_vec *parts, const struct places *at,
				   struct mpi_op *op, struct mpi_comm *comm)
{
	MPI_Count own = mpi_vec_count(parts, comm->rank);
	MPI_Aint extent = parts->type->extent;
	struct mpi_type *type = parts->type;
	char *from = (char *)(uintptr_t)sendbuf, *in, *sum;

	in = mpi_schedule_typed(p, own, type);
	sum = in ? mpi_schedule_typed(p, own, type) : NULL;
	if (!sum)
		return MPI_ERR_NO_MEM;
	mpi_schedule_copy(p, from + begin_of_part(at, comm->rank) * extent, own, type, sum, own,
			  type);
	for (int i = 1; i < comm->size; i++) {
		int to = (comm->rank + i) % comm->size;
		int source = (comm->rank - i + comm->size) % comm->size;

		mpi_schedule_sendrecv(p, from + begin_of_part(at, to) * extent,
				      mpi_vec_count(parts, to), type, to, in, own, type, source,
				      comm);
		mpi_schedule_apply(p, op, in, sum, own, type);
	}
	mpi_schedule_copy(p, sum, own, type, recvbuf, own, type);
	return MPI_SUCCESS;
}

/* Send the result of a worker's part to its ranks: itself and perhaps the one below it. */
static void hand_out(struct mpi_work *w, const struct mpi_fold *f, void *recvbuf,
		     const struct mpi_vec *parts, const struct places *at)
{
	struct mpi_comm *comm = w->comm;
	MPI_Count own = mpi_vec_count(parts, comm->rank);

	if (f->rank < 0) {
		mpi_schedule_recv(w->schedule, recvbuf, own, w->type, comm->rank + 1, comm);
		return;
	}
	if (f->rank < f->rest)
		mpi_schedule_send(
			w->schedule, mpi_element(w, w->mine, begin_of_part(at, comm->rank - 1)),
			mpi_vec_count(parts, comm->rank - 1), w->type, comm->rank - 1, comm);
	mpi_schedule_copy(w->schedule, mpi_element(w, w->mine, begin_of_part(at, comm->rank)), own,
			  w->type, recvbuf, own, w->type);
}

static int halve_vector(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
			const struct mpi_vec *parts, const struct places *at, struct mpi_op *op,
			struct mpi_comm *comm)
{
	struct mpi_fold f = mpi_fold_of(comm);
	struct mpi_work w = {
		.schedule = p, .count = at->count, .type = parts->type, .op = op, .comm = comm
	};
	MPI_Count *work_begin = numbers(p, f.power + 1);

	w.mine = mpi_schedule_typed(p, w.count, w.type);
	w.theirs = f.rank >= 0 ? mpi_schedule_typed(p, w.count, w.type) : NULL;
	if (!p->failed && (!work_begin || !w.mine || (f.rank >= 0 && !w.theirs)))
		return MPI_ERR_NO_MEM;
	/* a worker's part is its own and that of the rank below it that folded in */
	for (int i = 0; i < f.power && work_begin; i++)
		work_begin[i] = begin_of_part(at, i < f.rest ? 2 * i : i + f.rest);
	if (work_begin)
		work_begin[f.power] = w.count;
	w.begin = work_begin;
	mpi_schedule_copy(p, sendbuf, w.count, w.type, w.mine, w.count, w.type);
	mpi_fold_in(&w, &f);
	if (f.rank >= 0)
		mpi_halving(&w, &f);
	hand_out(&w, &f, recvbuf, parts, at);
	return MPI_SUCCESS;
}

static enum mpi_algorithm choose_reduce_scatter(MPI_Count bytes, const struct mpi_op *op,
						const struct mpi_comm *comm)
{
	uint64_t can = MPI_COLL_BIT(REDUCE_SCATTER, ROOT);
	enum mpi_algorithm best = MPI_COLL_REDUCE_SCATTER_HALVING;

	if (op->commutative)
		can |= MPI_COLL_BIT(REDUCE_SCATTER, HALVING) |
		       MPI_COLL_BIT(REDUCE_SCATTER, PAIRWISE);
	if (!op->commutative ||
	    (mpi_coll_oversubscribed(comm) && bytes <= SHORT_BYTES_OVERSUBSCRIBED))
		best = MPI_COLL_REDUCE_SCATTER_ROOT;
	else if (bytes >= (mpi_coll_oversubscribed(comm) ? LONG_BYTES_OVERSUBSCRIBED : LONG_BYTES))
		best = MPI_COLL_REDUCE_SCATTER_PAIRWISE;
	return mpi_coll_choose(can, best);
}

static int divide(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
		  const struct mpi_vec *parts, const struct places *at, struct mpi_op *op,
		  struct mpi_comm *comm)
{
	switch (choose_reduce_scatter(at->count * parts->type->size, op, comm)) {
	case MPI_COLL_REDUCE_SCATTER_ROOT:
		return reduce_scatter_through_root(p, sendbuf, recvbuf, parts, at, op, comm);
	case MPI_COLL_REDUCE_SCATTER_PAIRWISE:
		return reduce_scatter_pairwise(p, sendbuf, recvbuf, parts, at, op, comm);
	default:
		return halve_vector(p, sendbuf, recvbuf, parts, at, op, comm);
	}
}

/* False: use messages. */
static bool reduce_scatter_by_shmcoll(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
				      const struct mpi_vec *parts, struct mpi_op *op,
				      struct mpi_comm *comm, int *rc)
{
	const MPI_Count own = mpi_vec_count(parts, comm->rank);
	struct mpi_type *type = parts->type;
	const MPI_Count longest = type->size ? mpi_vec_longest(parts, comm->size) / type->size : 0;
	struct mpi_shmcoll *shmcoll = mpi_shmcoll_for_op(p, MPI_COLL_REDUCE_SCATTER_SHM, comm,
							 longest, type, op, SHMCOLL_BYTES, 0);
	char *result = recvbuf;

	if (!shmcoll)
		return false;
	if (sendbuf == recvbuf)
		result = mpi_schedule_typed(p, own, type);
	*rc = mpi_shmcoll_reduce_scatter(shmcoll, p->failed ? MPI_ERR_NO_MEM : MPI_SUCCESS, sendbuf,
					 result, parts, op);
	if (!*rc && result != recvbuf)
		mpi_schedule_copy(p, result, own, type, recvbuf, own, type);
	return true;
}

static int intra(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
		 const struct mpi_vec *parts, struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_type *type = parts->type;
	struct places at;
	int rc;

	if (sendbuf == MPI_IN_PLACE)
		sendbuf = recvbuf;
	if (comm->size > 1 && reduce_scatter_by_shmcoll(p, sendbuf, recvbuf, parts, op, comm, &rc))
		return rc;
	rc = find_places(p, &at, parts, comm->size);
	if (rc || at.count == 0)
		return rc;
	if (comm->size > 1)
		return divide(p, sendbuf, recvbuf, parts, &at, op, comm);
	if (sendbuf != recvbuf)
		mpi_schedule_copy(p, sendbuf, at.count, type, recvbuf, at.count, type);
	return MPI_SUCCESS;
}

static int reduce_scatter(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
			  const struct mpi_vec *parts, struct mpi_op *op, struct mpi_comm *comm)
{
	bool in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int rc = MPI_SUCCESS, n = comm->size;
	MPI_Count count = 0;

	for (int i = 0; i < n && !rc; i++) {
		/* the parts of other ranks have no buffer here */
		rc = mpi_coll_check(i == comm->rank || in_place ? recvbuf : parts,
				    mpi_vec_count(parts, i), parts->type, "recvbuf");
		if (__builtin_add_overflow(count, mpi_vec_count(parts, i), &count))
			count = INT64_MAX;
	}
	if (!rc)
		rc = mpi_coll_check(in_place ? recvbuf : sendbuf, count, parts->type,
				    in_place ? "recvbuf" : "sendbuf");
	if (!rc && !in_place)
		rc = mpi_coll_check_alias(sendbuf, count, parts->type, recvbuf,
					  mpi_vec_count(parts, comm->rank), parts->type);
	if (!rc)
		rc = mpi_op_check(op, parts->type);
	if (rc)
		return rc;
	mpi_calls_announce(p, comm,
			   parts->counts ? MPI_CALL_REDUCE_SCATTER : MPI_CALL_REDUCE_SCATTER_BLOCK,
			   MPI_CALL_ANY_ROOT, op, mpi_coll_bytes(count, parts->type));
	return (comm->inter ? mpi_inter_reduce_scatter : intra)(p, sendbuf, recvbuf, parts, op,
								comm);
}

int mpi_reduce_scatter_schedule(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
				const MPI_Count *recvcounts, struct mpi_type *datatype,
				struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_vec parts = { .counts = recvcounts, .type = datatype };

	if (!recvcounts)
		return mpi_fail(MPI_ERR_ARG, "recvcounts is NULL");
	return reduce_scatter(p, sendbuf, recvbuf, &parts, op, comm);
}

int mpi_reduce_scatter_block_schedule(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
				      MPI_Count recvcount, struct mpi_type *datatype,
				      struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_vec parts = { .count = recvcount, .type = datatype };

	return reduce_scatter(p, sendbuf, recvbuf, &parts, op, comm);
}
