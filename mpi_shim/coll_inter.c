/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives between two groups. In those with a root the other group's ranks deal with it; in the others
 * rank 0 of each group stands for it, and spreads in its own group what it got from the other.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

/* The two ranks 0 send each other a vector. */
static int leaders_swap(const void *give, void *take, MPI_Count count, struct mpi_type *type,
			struct mpi_comm *comm, int tag)
{
	return mpi_coll_sendrecv(give, count, type, 0, take, count, type, 0, tag, comm);
}

int mpi_inter_barrier(struct mpi_comm *comm)
{
	int rc = mpi_intra_barrier(comm->local_comm);

	if (comm->rank == 0)
		rc = mpi_first(rc, leaders_swap(NULL, NULL, 0, mpi_bytes(), comm, MPI_TAG_BARRIER));
	/* a second one: none leaves before the leader has heard from the other group */
	return mpi_first(rc, mpi_intra_barrier(comm->local_comm));
}

int mpi_inter_bcast(void *buf, MPI_Count count, struct mpi_type *type, int root,
		    struct mpi_comm *comm)
{
	int rc = MPI_SUCCESS;

	if (root == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (root == MPI_ROOT)
		return mpi_coll_send(buf, count, type, 0, MPI_TAG_BCAST, comm);
	if (comm->rank == 0)
		rc = mpi_coll_recv(buf, count, type, root, MPI_TAG_BCAST, comm, NULL);
	return mpi_first(rc, mpi_intra_bcast(buf, count, type, 0, comm->local_comm));
}

#define BATCH 64

/* To or from all ranks of the other group, a block each. */
static int root_blocks(const struct mpi_vec *v, struct mpi_comm *comm, int tag, bool send)
{
	struct mpi_request *requests[BATCH];
	int posted = 0, rc = MPI_SUCCESS;

	for (int i = 0; i < comm->remote_size; i++) {
		if (posted == BATCH) {
			rc = mpi_first(rc, mpi_coll_waitall(requests, posted));
			posted = 0;
		}
		requests[posted] = NULL;
		rc = mpi_first(rc, (send ? mpi_coll_isend(mpi_vec_at(v, i), mpi_vec_count(v, i),
							  mpi_vec_type(v, i), i, tag, comm,
							  &requests[posted])
					 : mpi_coll_irecv(mpi_vec_at(v, i), mpi_vec_count(v, i),
							  mpi_vec_type(v, i), i, tag, comm,
							  &requests[posted])));
		posted++;
	}
	return mpi_first(rc, mpi_coll_waitall(requests, posted));
}

int mpi_inter_gatherv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
		      const struct mpi_vec *recv, int root, struct mpi_comm *comm)
{
	if (root == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (root == MPI_ROOT)
		return root_blocks(recv, comm, MPI_TAG_GATHER, false);
	return mpi_coll_send(sendbuf, sendcount, sendtype, root, MPI_TAG_GATHER, comm);
}

int mpi_inter_scatterv(const struct mpi_vec *send, void *recvbuf, MPI_Count recvcount,
		       struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	if (root == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (root == MPI_ROOT)
		return root_blocks(send, comm, MPI_TAG_SCATTER, true);
	return mpi_coll_recv(recvbuf, recvcount, recvtype, root, MPI_TAG_SCATTER, comm, NULL);
}

/* Every rank's block to rank 0 of the other group, which spreads them there. */
int mpi_inter_allgatherv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
			 const struct mpi_vec *recv, struct mpi_comm *comm)
{
	struct mpi_request *request = NULL;
	int rc;

	rc = mpi_coll_isend(sendbuf, sendcount, sendtype, 0, MPI_TAG_ALLGATHER, comm, &request);
	if (comm->rank == 0)
		rc = mpi_first(rc, root_blocks(recv, comm, MPI_TAG_ALLGATHER, false));
	rc = mpi_first(
		rc, mpi_vec_bcast(recv, comm->remote_size, -1, comm->rank == 0, comm->local_comm));
	return mpi_first(rc, mpi_coll_waitall(&request, 1));
}

int mpi_inter_reduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
		     struct mpi_op *op, int root, struct mpi_comm *comm)
{
	struct mpi_tmp tmp = { .heap = NULL };
	char *result = NULL;
	int rc;

	if (root == MPI_PROC_NULL || count == 0)
		return MPI_SUCCESS;
	if (root == MPI_ROOT)
		return mpi_coll_recv(recvbuf, count, type, 0, MPI_TAG_REDUCE, comm, NULL);
	if (comm->rank == 0) {
		result = mpi_tmp_typed(&tmp, count, type);
		if (!result)
			return MPI_ERR_NO_MEM;
	}
	rc = mpi_intra_reduce(sendbuf, result, count, type, op, 0, comm->local_comm);
	if (comm->rank == 0)
		rc = mpi_first(rc, mpi_coll_send(result, count, type, root, MPI_TAG_REDUCE, comm));
	mpi_tmp_free(&tmp);
	return rc;
}

/* On rank 0: the other group's result into `result`. */
static int swap_results(const void *sendbuf, void *result, MPI_Count count, struct mpi_type *type,
			struct mpi_op *op, struct mpi_comm *comm, int tag)
{
	struct mpi_tmp tmp = { .heap = NULL };
	char *own = NULL;
	int rc;

	if (comm->rank == 0) {
		own = mpi_tmp_typed(&tmp, count, type);
		if (!own)
			return MPI_ERR_NO_MEM;
	}
	rc = mpi_intra_reduce(sendbuf, own, count, type, op, 0, comm->local_comm);
	if (comm->rank == 0)
		rc = mpi_first(rc, leaders_swap(own, result, count, type, comm, tag));
	mpi_tmp_free(&tmp);
	return rc;
}

int mpi_inter_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct mpi_type *type,
			struct mpi_op *op, struct mpi_comm *comm)
{
	int rc;

	if (count == 0)
		return MPI_SUCCESS;
	rc = swap_results(sendbuf, recvbuf, count, type, op, comm, MPI_TAG_ALLREDUCE);
	return mpi_first(rc, mpi_intra_bcast(recvbuf, count, type, 0, comm->local_comm));
}

int mpi_inter_reduce_scatter(const void *sendbuf, void *recvbuf, const struct mpi_vec *parts,
			     struct mpi_op *op, struct mpi_comm *comm)
{
	struct mpi_vec whole = *parts;
	struct mpi_tmp tmp = { .heap = NULL }, displs_tmp;
	MPI_Aint *displs;
	MPI_Count count = 0;
	int rc;

	displs = (MPI_Aint *)(void *)mpi_tmp_bytes(&displs_tmp,
						   comm->size * (MPI_Count)sizeof(*displs));
	if (!displs)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < comm->size; i++) {
		displs[i] = count;
		count += mpi_vec_count(parts, i);
	}
	whole.displs = displs;
	whole.buf = comm->rank == 0 ? mpi_tmp_typed(&tmp, count, parts->type) : NULL;
	if (comm->rank == 0 && !whole.buf) {
		rc = MPI_ERR_NO_MEM;
	} else if (count == 0) {
		rc = MPI_SUCCESS;
	} else {
		rc = swap_results(sendbuf, whole.buf, count, parts->type, op, comm,
				  MPI_TAG_REDUCE_SCATTER);
		rc = mpi_first(rc,
			       mpi_intra_scatterv(&whole, recvbuf, mpi_vec_count(parts, comm->rank),
						  parts->type, 0, comm->local_comm));
	}
	mpi_tmp_free(&tmp);
	mpi_tmp_free(&displs_tmp);
	return rc;
}
