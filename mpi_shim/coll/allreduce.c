/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Allreduce. Among few ranks, a collective started and ended by separate calls sends each
 * vector straight to all ranks. Short vectors use recursive doubling, or on oversubscribed
 * machines a tree up and down. Long ones use Rabenseifner's algorithm. In it the ranks halve
 * the vector among them until each has the result of one part, and then put the parts together.
 *
 * All ranks get the same bits. Where two ranks compute one partial result, both take the lower
 * ranks' as left operand. This also keeps the order that operations which do not commute need.
 */
#include "mpi_shim/coll/parts.h"
#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/node.h"

/* Most vectors that allreduce_linear() has room for, one from each rank. */
#define LINEAR_RANKS 32

/* Longest vector on two levels. */
#define NODES_BYTES (1 << 20)

/* Between two ranks on one node, longer vectors in messages go to one rank and back: both ranks
 * take part in the copy of each message. */
#define ROOT_BYTES (256 << 10)

static void allreduce_by_doubling(struct mpi_work *w, const struct mpi_fold *f)
{
	for (int bit = 1; bit < f->power && f->rank >= 0; bit *= 2) {
		int partner = mpi_fold_worker(f, f->rank ^ bit);

		mpi_schedule_sendrecv(w->schedule, w->mine, w->count, w->type, partner, w->theirs,
				      w->count, w->type, partner, w->comm);
		if (f->rank & bit) {
			mpi_schedule_apply(w->schedule, w->op, w->theirs, w->mine, w->count,
					   w->type);
		} else {
			char *result = w->theirs;

			mpi_schedule_apply(w->schedule, w->op, w->mine, result, w->count, w->type);
			w->theirs = w->mine;
			w->mine = result;
		}
	}
}

/* Distribute each worker's part, until all workers have the whole vector. */
static void gathering(struct mpi_work *w, const struct mpi_fold *f)
{
	for (int bit = 1; bit < f->power; bit *= 2) {
		int partner = mpi_fold_worker(f, f->rank ^ bit);
		int have = f->rank & -bit, want = have ^ bit;
		MPI_Count have_at = mpi_part(w, f, have), want_at = mpi_part(w, f, want);

		mpi_schedule_sendrecv(w->schedule, mpi_element(w, w->mine, have_at),
				      mpi_part(w, f, have + bit) - have_at, w->type, partner,
				      mpi_element(w, w->mine, want_at),
				      mpi_part(w, f, want + bit) - want_at, w->type, partner,
				      w->comm);
	}
}

static void all_work(struct mpi_work *w, bool parts)
{
	struct mpi_fold f = mpi_fold_of(w->comm);

	mpi_fold_in(w, &f);
	if (f.rank >= 0 && parts) {
		mpi_halving(w, &f);
		gathering(w, &f);
	} else if (f.rank >= 0) {
		allreduce_by_doubling(w, &f);
	}
	mpi_fold_out(w, &f);
}

/* Send each rank's vector to all. Each rank combines them in the order of ranks, from the last
 * one down. */
static int allreduce_linear(struct mpi_schedule *p, const void *mine, void *recvbuf,
			    MPI_Count count, struct mpi_type *type, struct mpi_op *op,
			    struct mpi_comm *comm)
{
	int n = comm->size;
	char *in[LINEAR_RANKS] = { NULL };

	for (int i = 0; i < n; i++) {
		in[i] = mpi_schedule_typed(p, count, type);
		if (!in[i])
			return MPI_ERR_NO_MEM;
	}
	mpi_schedule_copy(p, mine, count, type, in[comm->rank], count, type);
	for (int i = 0; i < n; i++)
		if (i != comm->rank)
			mpi_schedule_recv(p, in[i], count, type, i, comm);
	for (int i = 0; i < n; i++)
		if (i != comm->rank)
			mpi_schedule_send(p, in[comm->rank], count, type, i, comm);
	mpi_schedule_wait(p);
	for (int i = n - 2; i >= 0; i--)
		mpi_schedule_apply(p, op, in[i], in[n - 1], count, type);
	mpi_schedule_copy(p, in[n - 1], count, type, recvbuf, count, type);
	return MPI_SUCCESS;
}

static enum mpi_algorithm choose_allreduce(const struct mpi_schedule *p, MPI_Count count,
					   const struct mpi_type *type, const struct mpi_op *op,
					   const struct mpi_comm *comm)
{
	uint64_t can = MPI_COLL_BIT(ALLREDUCE, DOUBLING) | MPI_COLL_BIT(ALLREDUCE, ROOT);
	enum mpi_algorithm best = MPI_COLL_ALLREDUCE_DOUBLING;

	if (mpi_coll_divisible(count, op, comm))
		can |= MPI_COLL_BIT(ALLREDUCE, PARTS);
	if (comm->size <= LINEAR_RANKS)
		can |= MPI_COLL_BIT(ALLREDUCE, LINEAR);
	if (mpi_coll_directly(p, comm, mpi_coll_bytes(count, type)))
		best = MPI_COLL_ALLREDUCE_LINEAR;
	else if (comm->size == 2 && mpi_coll_one_node(comm) &&
		 mpi_coll_bytes(count, type) > ROOT_BYTES)
		best = MPI_COLL_ALLREDUCE_ROOT;
	else if (mpi_coll_in_parts(count, type, op, comm))
		best = MPI_COLL_ALLREDUCE_PARTS;
	else if (comm->size > 2 && mpi_coll_oversubscribed(comm))
		best = MPI_COLL_ALLREDUCE_ROOT;
	return mpi_coll_choose(can, best);
}

int mpi_intra_allreduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
			struct mpi_type *type, struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_work w = {
		.schedule = p, .mine = recvbuf, .count = count, .type = type, .op = op, .comm = comm
	};
	enum mpi_algorithm c = MPI_COLL_ALLREDUCE_DOUBLING;
	int rc;

	if (count == 0)
		return MPI_SUCCESS;
	if (comm->size > 1)
		c = choose_allreduce(p, count, type, op, comm);
	if (c == MPI_COLL_ALLREDUCE_LINEAR)
		return allreduce_linear(p, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf,
					count, type, op, comm);
	if (c == MPI_COLL_ALLREDUCE_ROOT) {
		if (sendbuf == MPI_IN_PLACE && comm->rank != 0)
			sendbuf = recvbuf;
		rc = mpi_intra_reduce(p, sendbuf, recvbuf, count, type, op, 0, comm);
		return rc ? rc : mpi_intra_bcast(p, recvbuf, count, type, 0, comm);
	}
	if (sendbuf != MPI_IN_PLACE)
		mpi_schedule_copy(p, sendbuf, count, type, recvbuf, count, type);
	if (comm->size == 1)
		return MPI_SUCCESS;
	w.theirs = mpi_schedule_typed(p, count, type);
	if (!w.theirs)
		return MPI_ERR_NO_MEM;
	all_work(&w, c == MPI_COLL_ALLREDUCE_PARTS);
	if (w.mine != recvbuf)
		mpi_schedule_copy(p, w.mine, count, type, recvbuf, count, type);
	return MPI_SUCCESS;
}

/* Two ranks read each other's data. False: use another algorithm. */
static bool allreduce_by_reading(struct mpi_schedule *p, const void *in, void *out, MPI_Count count,
				 struct mpi_type *type, struct mpi_op *op, struct mpi_comm *comm,
				 int *rc)
{
	struct mpi_shmcoll *shmcoll =
		mpi_shmcoll_folds_in_any_order(type, op)
			? mpi_shmcoll_for_taking(p, MPI_COLL_ALLREDUCE_READ, comm,
						 count * type->size, MPI_SHMCOLL_TAKE_BYTES,
						 INT64_MAX)
			: NULL;

	return shmcoll && mpi_shmcoll_read_allreduce(p, shmcoll, in, out, count, type, op, rc);
}

int mpi_allreduce_schedule(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
			   MPI_Count count, struct mpi_type *datatype, struct mpi_op *op,
			   struct mpi_comm *comm)
{
	bool in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int rc = mpi_coll_check(recvbuf, count, datatype, "recvbuf");
	struct mpi_shmcoll *shmcoll;

	if (!rc && !in_place)
		rc = mpi_coll_check(sendbuf, count, datatype, "sendbuf");
	if (!rc && !in_place)
		rc = mpi_coll_check_alias(sendbuf, count, datatype, recvbuf, count, datatype);
	if (!rc)
		rc = mpi_op_check(op, datatype);
	if (rc)
		return rc;
	mpi_calls_announce(p, comm, MPI_CALL_ALLREDUCE, MPI_CALL_ANY_ROOT, op,
			   mpi_coll_bytes(count, datatype));
	if (comm->inter)
		return mpi_inter_allreduce(p, sendbuf, recvbuf, count, datatype, op, comm);
	if (allreduce_by_reading(p, in_place ? recvbuf : sendbuf, recvbuf, count, datatype, op,
				 comm, &rc))
		return rc;
	shmcoll = mpi_shmcoll_for_op(p, MPI_COLL_ALLREDUCE_SHM, comm, count, datatype, op,
				     MPI_SHMCOLL_REDUCE, NODES_BYTES);
	if (shmcoll && in_place)
		sendbuf = recvbuf;
	if (shmcoll && mpi_shmcoll_nodes(shmcoll) > 1)
		return mpi_nodes_allreduce(p, shmcoll, sendbuf, recvbuf, count, datatype, op);
	if (shmcoll)
		return mpi_shmcoll_allreduce(shmcoll, sendbuf, recvbuf, count, datatype, op);
	return mpi_intra_allreduce(p, sendbuf, recvbuf, count, datatype, op, comm);
}
