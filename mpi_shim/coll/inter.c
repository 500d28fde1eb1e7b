/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives between two groups. In those with a root, the other group's ranks deal with it.
 * In all others rank 0 of each group acts for it, and distributes in its own group what it
 * received from the other.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"

/* The two ranks 0 send each other a vector. */
static void leaders_swap(struct mpi_schedule *p, const void *give, void *take, MPI_Count count,
			 struct mpi_type *type, struct mpi_comm *comm)
{
	mpi_schedule_sendrecv(p, give, count, type, 0, take, count, type, 0, comm);
}

void mpi_inter_barrier(struct mpi_schedule *p, struct mpi_comm *comm)
{
	mpi_intra_barrier(p, comm->local_comm);
	if (comm->rank == 0)
		leaders_swap(p, NULL, NULL, 0, mpi_bytes(), comm);
	/* a second barrier: no rank leaves before its leader has heard from the other group */
	mpi_intra_barrier(p, comm->local_comm);
}

int mpi_inter_bcast(struct mpi_schedule *p, void *buf, MPI_Count count, struct mpi_type *type,
		    int root, struct mpi_comm *comm)
{
	if (root == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (root == MPI_ROOT) {
		mpi_schedule_send(p, buf, count, type, 0, comm);
		return MPI_SUCCESS;
	}
	if (comm->rank == 0) {
		mpi_schedule_recv(p, buf, count, type, root, comm);
		mpi_schedule_wait(p);
	}
	return mpi_intra_bcast(p, buf, count, type, 0, comm->local_comm);
}

#define BATCH 64

/* Send to, or receive from, all ranks of the other group, a block each. */
static void root_blocks(struct mpi_schedule *p, const struct mpi_vec *v, struct mpi_comm *comm,
			bool send)
{
	for (int i = 0; i < comm->remote_size; i++) {
		if (i % BATCH == BATCH - 1)
			mpi_schedule_wait(p);
		if (send)
			mpi_schedule_send(p, mpi_vec_at(v, i), mpi_vec_count(v, i),
					  mpi_vec_type(v, i), i, comm);
		else
			mpi_schedule_recv(p, mpi_vec_at(v, i), mpi_vec_count(v, i),
					  mpi_vec_type(v, i), i, comm);
	}
}

void mpi_inter_gatherv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
		       struct mpi_type *sendtype, const struct mpi_vec *recv, int root,
		       struct mpi_comm *comm)
{
	if (root == MPI_ROOT)
		root_blocks(p, recv, comm, false);
	else if (root != MPI_PROC_NULL)
		mpi_schedule_send(p, sendbuf, sendcount, sendtype, root, comm);
}

void mpi_inter_scatterv(struct mpi_schedule *p, const struct mpi_vec *send, void *recvbuf,
			MPI_Count recvcount, struct mpi_type *recvtype, int root,
			struct mpi_comm *comm)
{
	if (root == MPI_ROOT)
		root_blocks(p, send, comm, true);
	else if (root != MPI_PROC_NULL)
		mpi_schedule_recv(p, recvbuf, recvcount, recvtype, root, comm);
}

/* Send every rank's block to rank 0 of the other group, which distributes them there. */
int mpi_inter_allgatherv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			 struct mpi_type *sendtype, const struct mpi_vec *recv,
			 struct mpi_comm *comm)
{
	mpi_schedule_send(p, sendbuf, sendcount, sendtype, 0, comm);
	if (comm->rank == 0)
		root_blocks(p, recv, comm, false);
	mpi_schedule_wait(p);
	return mpi_vec_bcast(p, recv, comm->remote_size, -1, comm->rank == 0, comm->local_comm);
}

int mpi_inter_reduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op, int root, struct mpi_comm *comm)
{
	char *result = NULL;
	int rc;

	if (root == MPI_PROC_NULL || count == 0)
		return MPI_SUCCESS;
	if (root == MPI_ROOT) {
		mpi_schedule_recv(p, recvbuf, count, type, 0, comm);
		return MPI_SUCCESS;
	}
	if (comm->rank == 0) {
		result = mpi_schedule_typed(p, count, type);
		if (!result)
			return MPI_ERR_NO_MEM;
	}
	rc = mpi_intra_reduce(p, sendbuf, result, count, type, op, 0, comm->local_comm);
	if (!rc && comm->rank == 0)
		mpi_schedule_send(p, result, count, type, root, comm);
	return rc;
}

/* On rank 0: receive the other group's result into `result`. */
static int swap_results(struct mpi_schedule *p, const void *sendbuf, void *result, MPI_Count count,
			struct mpi_type *type, struct mpi_op *op, struct mpi_comm *comm)
{
	char *own = NULL;
	int rc;

	if (comm->rank == 0) {
		own = mpi_schedule_typed(p, count, type);
		if (!own)
			return MPI_ERR_NO_MEM;
	}
	rc = mpi_intra_reduce(p, sendbuf, own, count, type, op, 0, comm->local_comm);
	if (!rc && comm->rank == 0)
		leaders_swap(p, own, result, count, type, comm);
	return rc;
}

int mpi_inter_allreduce(struct mpi_schedule *p, const void *sendbuf, void *recvbuf, MPI_Count count,
			struct mpi_type *type, struct mpi_op *op, struct mpi_comm *comm)
{
	int rc;

	if (count == 0)
		return MPI_SUCCESS;
	rc = swap_results(p, sendbuf, recvbuf, count, type, op, comm);
	return rc ? rc : mpi_intra_bcast(p, recvbuf, count, type, 0, comm->local_comm);
}

int mpi_inter_reduce_scatter(struct mpi_schedule *p, const void *sendbuf, void *recvbuf,
			     const struct mpi_vec *parts, struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_vec whole = *parts;
	MPI_Aint *displs;
	MPI_Count count = 0;
	int rc;

	displs = (MPI_Aint *)(void *)mpi_schedule_bytes(p, comm->size * (MPI_Count)sizeof(*displs));
	if (!displs)
		return MPI_ERR_NO_MEM;
	if (!p->failed)
		whole.displs = displs;
	for (int i = 0; i < comm->size; i++) {
		if (!p->failed)
			displs[i] = count;
		count += mpi_vec_count(parts, i);
	}
	if (count == 0)
		return MPI_SUCCESS;
	whole.buf = comm->rank == 0 ? mpi_schedule_typed(p, count, parts->type) : NULL;
	if (comm->rank == 0 && !whole.buf)
		return MPI_ERR_NO_MEM;
	rc = swap_results(p, sendbuf, whole.buf, count, parts->type, op, comm);
	if (!rc)
		mpi_intra_scatterv(p, &whole, recvbuf, mpi_vec_count(parts, comm->rank),
				   parts->type, 0, comm->local_comm);
	return rc;
}
