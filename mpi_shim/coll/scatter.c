/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Scatter and MPI_Scatterv: the reverse of MPI_Gather. Equal short blocks go down a
 * binomial tree. Long ones, and those of different lengths, go from the root directly.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/core/error.h"

/* Blocks up to SHORT_BYTES use the tree, with at least TREE_RANKS ranks. */
#define SHORT_BYTES 2048
#define TREE_RANKS  8

/* Most bytes of all blocks through shared memory, where each rank has a processor. */
#define SHMCOLL_BYTES 4096

#define BATCH 64 /* sends that the root starts at a time */

static void distribute(struct mpi_schedule *p, const struct mpi_vec *send, struct mpi_comm *comm)
{
	for (int i = 1; i < comm->size; i++) {
		int to = (int)(((long)comm->rank + i) % comm->size);

		if (i % BATCH == 0)
			mpi_schedule_wait(p);
		mpi_schedule_send(p, mpi_vec_at(send, to), mpi_vec_count(send, to),
				  mpi_vec_type(send, to), to, comm);
	}
	mpi_schedule_wait(p);
}

void mpi_intra_scatterv(struct mpi_schedule *p, const struct mpi_vec *send, void *recvbuf,
			MPI_Count recvcount, struct mpi_type *recvtype, int root,
			struct mpi_comm *comm)
{
	if (comm->rank != root) {
		mpi_schedule_recv(p, recvbuf, recvcount, recvtype, root, comm);
		mpi_schedule_wait(p);
		return;
	}
	if (recvbuf != MPI_IN_PLACE)
		mpi_schedule_copy(p, mpi_vec_at(send, root), mpi_vec_count(send, root),
				  mpi_vec_type(send, root), recvbuf, recvcount, recvtype);
	distribute(p, send, comm);
}

/* Ranks in the subtree of `relative`, itself included. */
static int scatter_subtree(int relative, int n)
{
	int below = relative ? relative & -relative : n;

	return below < n - relative ? below : n - relative;
}

/* Send to the ranks below in the tree, from `data`, where the own block is the first. */
static void descend(struct mpi_schedule *p, const char *data, MPI_Count bytes, int root,
		    struct mpi_comm *comm)
{
	int n = comm->size, relative = (comm->rank - root + n) % n;
	int bit = 1;

	while (!(relative & bit) && bit < n)
		bit *= 2;
	while ((bit /= 2) > 0) {
		if (relative + bit < n)
			mpi_schedule_send(p, data + bit * bytes,
					  scatter_subtree(relative + bit, n) * bytes, mpi_bytes(),
					  (int)(((long)comm->rank + bit) % n), comm);
	}
}

static int scatter_leaf_or_branch(struct mpi_schedule *p, void *recvbuf, MPI_Count recvcount,
				  struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	MPI_Count bytes = recvcount * recvtype->size;
	int n = comm->size, relative = (comm->rank - root + n) % n;
	int parent = (comm->rank - (relative & -relative) + n) % n;
	char *data;

	if (relative & 1) {
		mpi_schedule_recv(p, recvbuf, recvcount, recvtype, parent, comm);
		return MPI_SUCCESS;
	}
	data = mpi_schedule_bytes(p, scatter_subtree(relative, n) * bytes);
	if (!data)
		return MPI_ERR_NO_MEM;
	mpi_schedule_recv(p, data, scatter_subtree(relative, n) * bytes, mpi_bytes(), parent, comm);
	mpi_schedule_wait(p);
	descend(p, data, bytes, root, comm);
	mpi_schedule_unpack(p, recvtype, recvbuf, recvcount, data);
	return MPI_SUCCESS;
}

static int scatter_tree_root(struct mpi_schedule *p, const struct mpi_vec *send, void *recvbuf,
			     MPI_Count recvcount, struct mpi_type *recvtype, struct mpi_comm *comm)
{
	MPI_Count bytes = mpi_vec_bytes(send, 0);
	int root = comm->rank, above = comm->size - root;
	char *data = mpi_schedule_bytes(p, comm->size * bytes);

	if (!data)
		return MPI_ERR_NO_MEM;
	/* from the root's own block on, then those from rank 0 on */
	mpi_schedule_pack(p, send->type, mpi_vec_at(send, root), send->count * above, data);
	mpi_schedule_pack(p, send->type, send->buf, send->count * root, data + bytes * above);
	if (recvbuf != MPI_IN_PLACE)
		mpi_schedule_copy(p, data, bytes, mpi_bytes(), recvbuf, recvcount, recvtype);
	descend(p, data, bytes, root, comm);
	return MPI_SUCCESS;
}

/* Whether to use the tree. It costs its inner ranks a wait, which is expensive when they must
 * get a processor first. */
static bool choose_scatter_tree(const struct mpi_schedule *p, MPI_Count bytes,
				const struct mpi_comm *comm)
{
	/* in a non-blocking one the tree would wait for a rank that computes */
	bool few_rounds = p->now && bytes <= SHORT_BYTES && comm->size >= TREE_RANKS &&
			  !mpi_coll_oversubscribed(comm);

	return mpi_coll_choose(MPI_COLL_BIT(SCATTER, BINOMIAL) | MPI_COLL_BIT(SCATTER, LINEAR),
			       few_rounds ? MPI_COLL_SCATTER_BINOMIAL : MPI_COLL_SCATTER_LINEAR) ==
	       MPI_COLL_SCATTER_BINOMIAL;
}

static int check_scatter_root(const struct mpi_vec *send, void **recvbuf, MPI_Count recvcount,
			      struct mpi_type *recvtype, struct mpi_comm *comm)
{
	int rc = mpi_vec_check(send, comm->inter ? comm->remote_size : comm->size, "sendbuf");

	if (rc || comm->inter || *recvbuf == MPI_IN_PLACE)
		return rc;
	rc = mpi_coll_check(*recvbuf, recvcount, recvtype, "recvbuf");
	if (!rc && mpi_coll_in_its_place(*recvbuf, recvcount, recvtype, send, comm->rank))
		*recvbuf = MPI_IN_PLACE;
	else if (!rc)
		rc = mpi_coll_check_alias(mpi_vec_at(send, comm->rank),
					  mpi_vec_count(send, comm->rank), send->type, *recvbuf,
					  recvcount, recvtype);
	return rc;
}

/* Check the arguments. The root's own block may turn out to be in place. */
static int check_scatter(const struct mpi_vec *send, void **recvbuf, MPI_Count recvcount,
			 struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	int rc = mpi_coll_check_root(root, comm);

	if (rc || (comm->inter && root == MPI_PROC_NULL))
		return rc;
	if (comm->inter ? root == MPI_ROOT : root == comm->rank)
		return check_scatter_root(send, recvbuf, recvcount, recvtype, comm);
	return mpi_coll_check(*recvbuf, recvcount, recvtype, "recvbuf");
}

int mpi_scatter_schedule(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			 struct mpi_type *sendtype, void *recvbuf, MPI_Count recvcount,
			 struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.count = sendcount,
				.type = sendtype };
	int rc = check_scatter(&send, &recvbuf, recvcount, recvtype, root, comm);
	struct mpi_shmcoll *shmcoll;
	MPI_Count bytes;

	if (rc)
		return rc;
	bytes = MPI_CALL_ANY_BYTES;
	if (!comm->inter)
		bytes = comm->rank == root ? mpi_vec_bytes(&send, 0) : recvcount * recvtype->size;
	mpi_calls_announce(p, comm, MPI_CALL_SCATTER, root, NULL, bytes);
	if (comm->inter) {
		mpi_inter_scatterv(p, &send, recvbuf, recvcount, recvtype, root, comm);
		return MPI_SUCCESS;
	}
	if (bytes == 0)
		return MPI_SUCCESS;
	shmcoll = mpi_shmcoll_for(p, MPI_COLL_SCATTER_SHM, comm, bytes, SHMCOLL_BYTES / comm->size,
				  0);
	if (shmcoll)
		return mpi_shmcoll_scatter(shmcoll, &send, recvbuf, recvcount, recvtype,
					   (size_t)bytes, root);
	if (!choose_scatter_tree(p, bytes, comm))
		mpi_intra_scatterv(p, &send, recvbuf, recvcount, recvtype, root, comm);
	else if (comm->rank == root)
		rc = scatter_tree_root(p, &send, recvbuf, recvcount, recvtype, comm);
	else
		rc = scatter_leaf_or_branch(p, recvbuf, recvcount, recvtype, root, comm);
	return rc;
}

int mpi_scatterv_schedule(struct mpi_schedule *p, const void *sendbuf, const MPI_Count *sendcounts,
			  const MPI_Aint *displs, struct mpi_type *sendtype, void *recvbuf,
			  MPI_Count recvcount, struct mpi_type *recvtype, int root,
			  struct mpi_comm *comm)
{
	struct mpi_vec send = { .buf = (char *)(uintptr_t)sendbuf,
				.counts = sendcounts,
				.displs = displs,
				.type = sendtype };
	int rc = check_scatter(&send, &recvbuf, recvcount, recvtype, root, comm);

	if (rc)
		return rc;
	mpi_calls_announce(p, comm, MPI_CALL_SCATTERV, root, NULL, MPI_CALL_ANY_BYTES);
	if (!comm->inter)
		mpi_coll_choose(0, MPI_COLL_SCATTER_LINEAR);
	(comm->inter ? mpi_inter_scatterv : mpi_intra_scatterv)(p, &send, recvbuf, recvcount,
								recvtype, root, comm);
	return MPI_SUCCESS;
}
