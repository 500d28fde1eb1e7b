/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Scan and MPI_Exscan: recursive doubling, log2 P rounds; where processors are short from rank to
 * rank, P - 1 messages. Both keep the order of ranks.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/coll_plans.h"
#include "mpi_shim/error.h"

struct scan {
	struct mpi_plan *plan;
	char *result;  /* what the lower ranks have, and for MPI_Scan this one */
	char *partial; /* of this rank and of those that it has heard of */
	char *in;
	bool exclusive;
	MPI_Count count;
	struct mpi_type *type;
	struct mpi_op *op;
	struct mpi_comm *comm;
};

static void copy(const struct scan *s, const char *from, char *to)
{
	mpi_plan_copy(s->plan, from, s->count, s->type, to, s->count, s->type);
}

static void apply(const struct scan *s, const char *in, char *inout)
{
	mpi_plan_apply(s->plan, s->op, in, inout, s->count, s->type);
}

/* `partial` is this rank's own; it becomes the prefix that the next rank needs. */
static void chain(struct scan *s)
{
	int rank = s->comm->rank;

	if (rank > 0) {
		char *in = s->exclusive ? s->result : s->in;

		mpi_plan_recv(s->plan, in, s->count, s->type, rank - 1, s->comm);
		mpi_plan_wait(s->plan);
		apply(s, in, s->partial);
	}
	if (rank + 1 < s->comm->size)
		mpi_plan_send(s->plan, s->partial, s->count, s->type, rank + 1, s->comm);
	if (!s->exclusive)
		copy(s, s->partial, s->result);
}

/* Before the round of a bit, `partial` is of the aligned group of that many ranks this one is in. */
static void doubling(struct scan *s)
{
	int rank = s->comm->rank;
	bool empty = s->exclusive;

	for (int bit = 1; bit < s->comm->size; bit *= 2) {
		int partner = rank ^ bit;

		if (partner >= s->comm->size)
			continue;
		mpi_plan_sendrecv(s->plan, s->partial, s->count, s->type, partner, s->in, s->count,
				  s->type, partner, s->comm);
		if (partner > rank) {
			char *both = s->in;

			apply(s, s->partial, both);
			s->in = s->partial;
			s->partial = both;
			continue;
		}
		if (empty)
			copy(s, s->in, s->result);
		else
			apply(s, s->in, s->result);
		apply(s, s->in, s->partial);
		empty = false;
	}
}

static int scan(struct mpi_plan *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		struct mpi_type *type, struct mpi_op *op, struct mpi_comm *comm, bool exclusive)
{
	struct scan s = { .plan = p,
			  .result = recvbuf,
			  .exclusive = exclusive,
			  .count = count,
			  .type = type,
			  .op = op,
			  .comm = comm };
	const char *own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;

	if (count == 0)
		return MPI_SUCCESS;
	s.partial = mpi_plan_typed(p, count, type);
	s.in = s.partial ? mpi_plan_typed(p, count, type) : NULL;
	if (!s.in)
		return MPI_ERR_NO_MEM;
	copy(&s, own, s.partial);
	if (!exclusive && own != recvbuf)
		copy(&s, own, recvbuf);
	if (mpi_coll_choose(BASE_COLL_BIT(SCAN, LINEAR) | BASE_COLL_BIT(SCAN, DOUBLING),
			    mpi_coll_crowded() ? BASE_COLL_SCAN_LINEAR : BASE_COLL_SCAN_DOUBLING) ==
	    BASE_COLL_SCAN_LINEAR)
		chain(&s);
	else
		doubling(&s);
	return MPI_SUCCESS;
}

static int check(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
		 struct mpi_op *op, struct mpi_comm *comm, bool result)
{
	int rc = mpi_coll_refuse_inter(comm);

	if (!rc && (result || sendbuf == MPI_IN_PLACE))
		rc = mpi_coll_check(recvbuf, count, type, "recvbuf");
	if (!rc && sendbuf != MPI_IN_PLACE) {
		rc = mpi_coll_check(sendbuf, count, type, "sendbuf");
		if (!rc && result)
			rc = mpi_coll_check_alias(sendbuf, count, type, recvbuf, count, type);
	}
	return rc ? rc : mpi_op_check(op, type);
}

int mpi_scan_plan(struct mpi_plan *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		  struct mpi_type *datatype, struct mpi_op *op, struct mpi_comm *comm)
{
	int rc = check(sendbuf, recvbuf, count, datatype, op, comm, true);

	return rc ? rc : scan(p, sendbuf, recvbuf, count, datatype, op, comm, false);
}

int mpi_exscan_plan(struct mpi_plan *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		    struct mpi_type *datatype, struct mpi_op *op, struct mpi_comm *comm)
{
	/* there is no result on rank 0 */
	int rc = check(sendbuf, recvbuf, count, datatype, op, comm, comm->rank > 0);

	return rc ? rc : scan(p, sendbuf, recvbuf, count, datatype, op, comm, true);
}
