/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives for the library itself, by messages, on plain bytes and words. Communicators and
 * windows are made with them.
 */
#include "mpi_shim/coll/coll_impl.h"

/* Begin. Inside another collective, or on one side of an intercommunicator, the mark stays that
 * of the call under way. */
static int begin_internal(struct mpi_schedule *p, struct mpi_comm *comm, MPI_Count bytes)
{
	int rc = mpi_schedule_begin(p, comm);

	if (comm->calls.nested)
		p->mark = comm->calls.mark;
	else if (!rc)
		mpi_calls_announce(p, comm, MPI_CALL_MAKE, MPI_CALL_ANY_ROOT, NULL, bytes);
	return rc;
}

int mpi_coll_barrier(struct mpi_comm *comm)
{
	struct mpi_schedule p;
	int rc = begin_internal(&p, comm, 0);

	if (!rc)
		mpi_intra_barrier(&p, comm);
	return mpi_schedule_end(&p, rc);
}

int mpi_coll_last_barrier(struct mpi_comm *comm)
{
	struct mpi_schedule p;

	mpi_schedule_begin_last(&p);
	if (!comm->failed)
		mpi_calls_announce(&p, comm, MPI_CALL_LAST, MPI_CALL_ANY_ROOT, NULL, 0);
	mpi_intra_barrier(&p, comm);
	return mpi_schedule_end(&p, MPI_SUCCESS);
}

int mpi_coll_bcast_bytes(void *buf, size_t bytes, int root, struct mpi_comm *comm)
{
	struct mpi_schedule p;
	int rc = begin_internal(&p, comm, (MPI_Count)bytes);

	if (!rc)
		rc = mpi_intra_bcast(&p, buf, (MPI_Count)bytes, mpi_bytes(), root, comm);
	return mpi_schedule_end(&p, rc);
}

int mpi_coll_allgather_bytes(const void *in, void *out, size_t bytes_each, struct mpi_comm *comm)
{
	struct mpi_vec v = { .buf = out, .count = (MPI_Count)bytes_each, .type = mpi_bytes() };
	struct mpi_schedule p;
	int rc = begin_internal(&p, comm, v.count);

	if (!rc)
		rc = mpi_intra_allgather(&p, in, v.count, v.type, &v, comm);
	return mpi_schedule_end(&p, rc);
}

static int allreduce_words(void *word, int n, MPI_Datatype type, MPI_Op op, struct mpi_comm *comm)
{
	struct mpi_schedule p;
	int rc = begin_internal(&p, comm, n);

	if (!rc)
		rc = mpi_intra_allreduce(&p, MPI_IN_PLACE, word, n, mpi_type_of(type),
					 mpi_op_of(op), comm);
	return mpi_schedule_end(&p, rc);
}

int mpi_coll_allreduce_and(uint64_t *word, int n, struct mpi_comm *comm)
{
	return allreduce_words(word, n, MPI_UINT64_T, MPI_BAND, comm);
}

int mpi_coll_allreduce_max(int64_t *word, int n, struct mpi_comm *comm)
{
	return allreduce_words(word, n, MPI_INT64_T, MPI_MAX, comm);
}
