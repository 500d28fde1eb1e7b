/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Scan and MPI_Exscan: recursive doubling, log2 P rounds; where processors are short from rank to
 * rank, P - 1 messages. Both keep the order of ranks.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

struct scan {
	char *result;  /* what the lower ranks have, and for MPI_Scan this one */
	char *partial; /* of this rank and of those that it has heard of */
	char *in;
	bool exclusive;
	MPI_Count count;
	struct mpi_type *type;
	struct mpi_op *op;
	struct mpi_comm *comm;
};

static int copy(const struct scan *s, const char *from, char *to)
{
	return mpi_type_copy(from, s->count, s->type, to, s->count, s->type);
}

static int apply(const struct scan *s, const char *in, char *inout)
{
	return mpi_op_apply(s->op, in, inout, s->count, s->type);
}

/* `partial` is this rank's own; it becomes the prefix that the next rank needs. */
static int chain(struct scan *s)
{
	int rank = s->comm->rank, rc = MPI_SUCCESS;

	if (rank > 0) {
		char *in = s->exclusive ? s->result : s->in;

		rc = mpi_coll_recv(in, s->count, s->type, rank - 1, MPI_TAG_SCAN, s->comm, NULL);
		rc = mpi_first(rc, apply(s, in, s->partial));
	}
	if (rank + 1 < s->comm->size)
		rc = mpi_first(rc, mpi_coll_send(s->partial, s->count, s->type, rank + 1,
						 MPI_TAG_SCAN, s->comm));
	if (!s->exclusive)
		rc = mpi_first(rc, copy(s, s->partial, s->result));
	return rc;
}

/* Before the round of a bit, `partial` is of the aligned group of that many ranks this one is in. */
static int doubling(struct scan *s)
{
	int rank = s->comm->rank, rc = MPI_SUCCESS;
	bool empty = s->exclusive;

	for (int bit = 1; bit < s->comm->size; bit *= 2) {
		int partner = rank ^ bit;

		if (partner >= s->comm->size)
			continue;
		rc = mpi_first(rc, mpi_coll_sendrecv(s->partial, s->count, s->type, partner, s->in,
						     s->count, s->type, partner, MPI_TAG_SCAN,
						     s->comm));
		if (partner > rank) {
			char *both = s->in;

			rc = mpi_first(rc, apply(s, s->partial, both));
			s->in = s->partial;
			s->partial = both;
			continue;
		}
		rc = mpi_first(rc, empty ? copy(s, s->in, s->result) : apply(s, s->in, s->result));
		rc = mpi_first(rc, apply(s, s->in, s->partial));
		empty = false;
	}
	return rc;
}

static int scan(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
		struct mpi_op *op, struct mpi_comm *comm, bool exclusive)
{
	struct scan s = { .result = recvbuf,
			  .exclusive = exclusive,
			  .count = count,
			  .type = type,
			  .op = op,
			  .comm = comm };
	const char *own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
	struct mpi_tmp partial, in = { .heap = NULL };
	int rc = MPI_ERR_NO_MEM;

	if (count == 0)
		return MPI_SUCCESS;
	s.partial = mpi_tmp_typed(&partial, count, type);
	s.in = s.partial ? mpi_tmp_typed(&in, count, type) : NULL;
	if (s.in) {
		rc = copy(&s, own, s.partial);
		if (!exclusive && own != recvbuf)
			rc = mpi_first(rc, copy(&s, own, recvbuf));
		rc = mpi_first(rc, mpi_coll_crowded() ? chain(&s) : doubling(&s));
	}
	mpi_tmp_free(&in);
	mpi_tmp_free(&partial);
	return rc;
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

int mpi_scan(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *datatype,
	     struct mpi_op *op, struct mpi_comm *comm)
{
	int rc = check(sendbuf, recvbuf, count, datatype, op, comm, true);

	return rc ? rc : scan(sendbuf, recvbuf, count, datatype, op, comm, false);
}

int mpi_exscan(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *datatype,
	       struct mpi_op *op, struct mpi_comm *comm)
{
	/* there is no result on rank 0 */
	int rc = check(sendbuf, recvbuf, count, datatype, op, comm, comm->rank > 0);

	return rc ? rc : scan(sendbuf, recvbuf, count, datatype, op, comm, true);
}
