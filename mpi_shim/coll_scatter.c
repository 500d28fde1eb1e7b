/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Scatter and MPI_Scatterv: MPI_Gather backwards. Equal short blocks go down a binomial tree; long
 * ones, and those of different lengths, come from the root directly.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/impl.h"

/* Blocks up to here go by the tree, with at least so many ranks. */
#define SHORT_BYTES 2048
#define TREE_RANKS  8

#define BATCH 64 /* sends that the root starts at a time */

static int distribute(const struct mpi_vec *send, struct mpi_comm *comm)
{
	struct mpi_request *requests[BATCH];
	int posted = 0, rc = MPI_SUCCESS;

	for (int i = 1; i < comm->size; i++) {
		int to = (int)(((long)comm->rank + i) % comm->size);

		if (posted == BATCH) {
			rc = mpi_first(rc, mpi_coll_waitall(requests, posted));
			posted = 0;
		}
		requests[posted] = NULL;
		rc = mpi_first(rc, mpi_coll_isend(mpi_vec_at(send, to), mpi_vec_count(send, to),
						  mpi_vec_type(send, to), to, MPI_TAG_SCATTER, comm,
						  &requests[posted++]));
	}
	return mpi_first(rc, mpi_coll_waitall(requests, posted));
}

int mpi_intra_scatterv(const struct mpi_vec *send, void *recvbuf, MPI_Count recvcount,
		       struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	int rc = MPI_SUCCESS;

	if (comm->rank != root)
		return mpi_coll_recv(recvbuf, recvcount, recvtype, root, MPI_TAG_SCATTER, comm,
				     NULL);
	if (recvbuf != MPI_IN_PLACE)
		rc = mpi_type_copy(mpi_vec_at(send, root), mpi_vec_count(send, root),
				   mpi_vec_type(send, root), recvbuf, recvcount, recvtype);
	return mpi_first(rc, distribute(send, comm));
}

/* Ranks below and including `relative` in the tree, itself first. */
static int subtree(int relative, int n)
{
	int below = relative ? relative & -relative : n;

	return below < n - relative ? below : n - relative;
}

/* To the ranks below in the tree, from `data`, where the own block is the first. */
static int descend(const char *data, MPI_Count bytes, int root, struct mpi_comm *comm)
{
	int n = comm->size, relative = (comm->rank - root + n) % n;
	int bit = 1, rc = MPI_SUCCESS;

	while (!(relative & bit) && bit < n)
		bit *= 2;
	while ((bit /= 2) > 0) {
		if (relative + bit < n)
			rc = mpi_first(rc, mpi_coll_send(data + bit * bytes,
							 subtree(relative + bit, n) * bytes,
							 mpi_bytes(),
							 (int)(((long)comm->rank + bit) % n),
							 MPI_TAG_SCATTER, comm));
	}
	return rc;
}

static int tree_leaf_or_branch(void *recvbuf, MPI_Count recvcount, struct mpi_type *recvtype,
			       int root, struct mpi_comm *comm)
{
	MPI_Count bytes = recvcount * recvtype->size;
	int n = comm->size, relative = (comm->rank - root + n) % n;
	int parent = (comm->rank - (relative & -relative) + n) % n;
	struct mpi_tmp tmp;
	char *data;
	int rc;

	if (relative & 1)
		return mpi_coll_recv(recvbuf, recvcount, recvtype, parent, MPI_TAG_SCATTER, comm,
				     NULL);
	data = mpi_tmp_bytes(&tmp, subtree(relative, n) * bytes);
	if (!data)
		return MPI_ERR_NO_MEM;
	rc = mpi_coll_recv(data, subtree(relative, n) * bytes, mpi_bytes(), parent, MPI_TAG_SCATTER,
			   comm, NULL);
	rc = mpi_first(rc, descend(data, bytes, root, comm));
	mpi_type_unpack_bytes(recvtype, recvbuf, recvcount, 0, data, (size_t)bytes);
	mpi_tmp_free(&tmp);
	return rc;
}

static int tree_root(const struct mpi_vec *send, void *recvbuf, MPI_Count recvcount,
		     struct mpi_type *recvtype, struct mpi_comm *comm)
{
	MPI_Count bytes = mpi_vec_bytes(send, 0);
	int root = comm->rank, above = comm->size - root, rc = MPI_SUCCESS;
	struct mpi_tmp tmp;
	char *data = mpi_tmp_bytes(&tmp, comm->size * bytes);

	if (!data)
		return MPI_ERR_NO_MEM;
	/* from the root's own block on, then those from rank 0 */
	mpi_type_pack_bytes(send->type, mpi_vec_at(send, root), send->count * above, 0, data,
			    (size_t)(bytes * above));
	mpi_type_pack_bytes(send->type, send->buf, send->count * root, 0, data + bytes * above,
			    (size_t)(bytes * root));
	if (recvbuf != MPI_IN_PLACE)
		rc = mpi_type_copy(data, bytes, mpi_bytes(), recvbuf, recvcount, recvtype);
	rc = mpi_first(rc, descend(data, bytes, root, comm));
	mpi_tmp_free(&tmp);
	return rc;
}

/* A tree costs its inner ranks a wait, which is dear when they must be given a processor first. */
static bool by_tree(MPI_Count bytes, const struct mpi_comm *comm)
{
	return bytes <= SHORT_BYTES && comm->size >= TREE_RANKS && !mpi_coll_crowded();
}

static int check_root(const struct mpi_vec *send, void *recvbuf, MPI_Count recvcount,
		      struct mpi_type *recvtype, struct mpi_comm *comm)
{
	int rc = mpi_vec_check(send, comm->inter ? comm->remote_size : comm->size, "sendbuf");

	if (rc || comm->inter || recvbuf == MPI_IN_PLACE)
		return rc;
	rc = mpi_coll_check(recvbuf, recvcount, recvtype, "recvbuf");
	if (!rc)
		rc = mpi_coll_check_alias(mpi_vec_at(send, comm->rank),
					  mpi_vec_count(send, comm->rank), send->type, recvbuf,
					  recvcount, recvtype);
	return rc;
}

static int check(const struct mpi_vec *send, void *recvbuf, MPI_Count recvcount,
		 struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	int rc = mpi_coll_check_root(root, comm);

	if (rc || (comm->inter && root == MPI_PROC_NULL))
		return rc;
	if (comm->inter ? root == MPI_ROOT : root == comm->rank)
		return check_root(send, recvbuf, recvcount, recvtype, comm);
	return mpi_coll_check(recvbuf, recvcount, recvtype, "recvbuf");
}

int mpi_scatter(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype, void *recvbuf,
		MPI_Count recvcount, struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.count = sendcount,
				.type = sendtype };
	int rc = check(&send, recvbuf, recvcount, recvtype, root, comm);
	MPI_Count bytes;

	if (rc)
		return rc;
	if (comm->inter)
		return mpi_inter_scatterv(&send, recvbuf, recvcount, recvtype, root, comm);
	bytes = comm->rank == root ? mpi_vec_bytes(&send, 0) : recvcount * recvtype->size;
	if (bytes == 0)
		return MPI_SUCCESS;
	if (!by_tree(bytes, comm))
		return mpi_intra_scatterv(&send, recvbuf, recvcount, recvtype, root, comm);
	if (comm->rank == root)
		return tree_root(&send, recvbuf, recvcount, recvtype, comm);
	return tree_leaf_or_branch(recvbuf, recvcount, recvtype, root, comm);
}

int mpi_scatterv(const void *sendbuf, const MPI_Count *sendcounts, const MPI_Aint *displs,
		 struct mpi_type *sendtype, void *recvbuf, MPI_Count recvcount,
		 struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.counts = sendcounts,
				.displs = displs,
				.type = sendtype };
	int rc = check(&send, recvbuf, recvcount, recvtype, root, comm);

	if (rc)
		return rc;
	return (comm->inter ? mpi_inter_scatterv : mpi_intra_scatterv)(&send, recvbuf, recvcount,
								       recvtype, root, comm);
}
