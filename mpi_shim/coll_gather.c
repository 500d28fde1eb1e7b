/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Gather and MPI_Gatherv. Equal short blocks come up a binomial tree; long ones, and those of
 * different lengths, which only the root knows, go to it directly.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

/* Blocks up to here go by the tree, with at least so many ranks. */
#define SHORT_BYTES 2048
#define TREE_RANKS  8

#define BATCH 64 /* receives that the root posts at a time */

static int collect(const struct mpi_vec *recv, struct mpi_comm *comm)
{
	struct mpi_request *requests[BATCH];
	int posted = 0, rc = MPI_SUCCESS;

	for (int i = 1; i < comm->size; i++) {
		int from = (int)(((long)comm->rank + i) % comm->size);

		if (posted == BATCH) {
			rc = mpi_first(rc, mpi_coll_waitall(requests, posted));
			posted = 0;
		}
		requests[posted] = NULL;
		rc = mpi_first(rc, mpi_coll_irecv(mpi_vec_at(recv, from), mpi_vec_count(recv, from),
						  mpi_vec_type(recv, from), from, MPI_TAG_GATHER,
						  comm, &requests[posted++]));
	}
	return mpi_first(rc, mpi_coll_waitall(requests, posted));
}

int mpi_intra_gatherv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
		      const struct mpi_vec *recv, int root, struct mpi_comm *comm)
{
	int rc = MPI_SUCCESS;

	if (comm->rank != root)
		return mpi_coll_send(sendbuf, sendcount, sendtype, root, MPI_TAG_GATHER, comm);
	if (sendbuf != MPI_IN_PLACE)
		rc = mpi_type_copy(sendbuf, sendcount, sendtype, mpi_vec_at(recv, root),
				   mpi_vec_count(recv, root), mpi_vec_type(recv, root));
	return mpi_first(rc, collect(recv, comm));
}

/* Ranks below and including `relative` in the tree, itself first. */
static int subtree(int relative, int n)
{
	int below = relative ? relative & -relative : n;

	return below < n - relative ? below : n - relative;
}

/*
 * The blocks of this rank and of those below it in the tree, into `data`, in the order of ranks
 * relative to the root; then up, unless this is the root.
 */
static int climb(char *data, MPI_Count bytes, int root, struct mpi_comm *comm)
{
	int n = comm->size, relative = (comm->rank - root + n) % n;
	int bit = 1, rc = MPI_SUCCESS;

	for (; !(relative & bit) && bit < n; bit *= 2) {
		if (relative + bit < n)
			rc = mpi_first(rc, mpi_coll_recv(data + bit * bytes,
							 subtree(relative + bit, n) * bytes,
							 mpi_bytes(),
							 (int)(((long)comm->rank + bit) % n),
							 MPI_TAG_GATHER, comm, NULL));
	}
	if (relative)
		rc = mpi_first(rc, mpi_coll_send(data, subtree(relative, n) * bytes, mpi_bytes(),
						 (comm->rank - bit + n) % n, MPI_TAG_GATHER, comm));
	return rc;
}

static int tree_leaf_or_branch(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
			       int root, struct mpi_comm *comm)
{
	MPI_Count bytes = sendcount * sendtype->size;
	int n = comm->size, relative = (comm->rank - root + n) % n;
	struct mpi_tmp tmp;
	char *data;
	int rc;

	if (relative & 1)
		return mpi_coll_send(sendbuf, sendcount, sendtype, (comm->rank - 1 + n) % n,
				     MPI_TAG_GATHER, comm);
	data = mpi_tmp_bytes(&tmp, subtree(relative, n) * bytes);
	if (!data)
		return MPI_ERR_NO_MEM;
	mpi_type_pack_bytes(sendtype, sendbuf, sendcount, 0, data, (size_t)bytes);
	rc = climb(data, bytes, root, comm);
	mpi_tmp_free(&tmp);
	return rc;
}

static int tree_root(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
		     const struct mpi_vec *recv, struct mpi_comm *comm)
{
	MPI_Count bytes = mpi_vec_bytes(recv, 0);
	int root = comm->rank, rc = MPI_SUCCESS;
	struct mpi_tmp tmp;
	char *data = mpi_tmp_bytes(&tmp, comm->size * bytes);

	if (!data)
		return MPI_ERR_NO_MEM;
	if (sendbuf != MPI_IN_PLACE)
		rc = mpi_type_copy(sendbuf, sendcount, sendtype, mpi_vec_at(recv, root),
				   recv->count, recv->type);
	rc = mpi_first(rc, climb(data, bytes, root, comm));
	/* behind the root's own block: the ranks above it, then those from 0 */
	mpi_type_unpack_bytes(recv->type, mpi_vec_at(recv, root + 1),
			      recv->count * (comm->size - 1 - root), 0, data + bytes,
			      (size_t)(bytes * (comm->size - 1 - root)));
	mpi_type_unpack_bytes(recv->type, recv->buf, recv->count * root, 0,
			      data + bytes * (comm->size - root), (size_t)(bytes * root));
	mpi_tmp_free(&tmp);
	return rc;
}

/* A tree costs its inner ranks a wait, which is dear when they must be given a processor first. */
static bool by_tree(MPI_Count bytes, const struct mpi_comm *comm)
{
	return bytes <= SHORT_BYTES && comm->size >= TREE_RANKS && !mpi_coll_crowded();
}

static int check_root(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
		      const struct mpi_vec *recv, struct mpi_comm *comm)
{
	int rc = mpi_vec_check(recv, comm->inter ? comm->remote_size : comm->size, "recvbuf");

	if (rc || comm->inter || sendbuf == MPI_IN_PLACE)
		return rc;
	rc = mpi_coll_check(sendbuf, sendcount, sendtype, "sendbuf");
	if (!rc)
		rc = mpi_coll_check_alias(sendbuf, sendcount, sendtype,
					  mpi_vec_at(recv, comm->rank),
					  mpi_vec_count(recv, comm->rank), recv->type);
	return rc;
}

static int check(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
		 const struct mpi_vec *recv, int root, struct mpi_comm *comm)
{
	int rc = mpi_coll_check_root(root, comm);

	if (rc || (comm->inter && root == MPI_PROC_NULL))
		return rc;
	if (comm->inter ? root == MPI_ROOT : root == comm->rank)
		return check_root(sendbuf, sendcount, sendtype, recv, comm);
	return mpi_coll_check(sendbuf, sendcount, sendtype, "sendbuf");
}

int mpi_gather(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype, void *recvbuf,
	       MPI_Count recvcount, struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	struct mpi_vec recv = { .buf = recvbuf, .count = recvcount, .type = recvtype };
	int rc = check(sendbuf, sendcount, sendtype, &recv, root, comm);
	MPI_Count bytes;

	if (rc)
		return rc;
	if (comm->inter)
		return mpi_inter_gatherv(sendbuf, sendcount, sendtype, &recv, root, comm);
	bytes = comm->rank == root ? mpi_vec_bytes(&recv, 0) : sendcount * sendtype->size;
	if (bytes == 0)
		return MPI_SUCCESS;
	if (!by_tree(bytes, comm))
		return mpi_intra_gatherv(sendbuf, sendcount, sendtype, &recv, root, comm);
	if (comm->rank == root)
		return tree_root(sendbuf, sendcount, sendtype, &recv, comm);
	return tree_leaf_or_branch(sendbuf, sendcount, sendtype, root, comm);
}

int mpi_gatherv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype, void *recvbuf,
		const MPI_Count *recvcounts, const MPI_Aint *displs, struct mpi_type *recvtype,
		int root, struct mpi_comm *comm)
{
	struct mpi_vec recv = {
		.buf = recvbuf, .counts = recvcounts, .displs = displs, .type = recvtype
	};
	int rc = check(sendbuf, sendcount, sendtype, &recv, root, comm);

	if (rc)
		return rc;
	return (comm->inter ? mpi_inter_gatherv : mpi_intra_gatherv)(sendbuf, sendcount, sendtype,
								     &recv, root, comm);
}
