/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Gather and MPI_Gatherv. Equal short blocks go up a binomial tree. Long blocks go to the
 * root directly, and so do those of different lengths, which only the root knows.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/core/error.h"

/* Blocks up to SHORT_BYTES use the tree, with at least TREE_RANKS ranks. */
#define SHORT_BYTES 2048
#define TREE_RANKS  8

/* Longest block through shared memory, where each rank has a processor. */
#define SHMCOLL_BYTES 4096

#define BATCH 64 /* receives that the root posts at a time */

static void collect_from_all(struct mpi_schedule *p, const struct mpi_vec *recv,
			     struct mpi_comm *comm)
{
	for (int i = 1; i < comm->size; i++) {
		int from = (int)(((long)comm->rank + i) % comm->size);

		if (i % BATCH == 0)
			mpi_schedule_wait(p);
		mpi_schedule_recv(p, mpi_vec_at(recv, from), mpi_vec_count(recv, from),
				  mpi_vec_type(recv, from), from, comm);
	}
	mpi_schedule_wait(p);
}

void mpi_intra_gatherv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
		       struct mpi_type *sendtype, const struct mpi_vec *recv, int root,
		       struct mpi_comm *comm)
{
	if (comm->rank != root) {
		mpi_schedule_send(p, sendbuf, sendcount, sendtype, root, comm);
		mpi_schedule_wait(p);
		return;
	}
	if (sendbuf != MPI_IN_PLACE)
		mpi_schedule_copy(p, sendbuf, sendcount, sendtype, mpi_vec_at(recv, root),
				  mpi_vec_count(recv, root), mpi_vec_type(recv, root));
	collect_from_all(p, recv, comm);
}

/* Ranks in the subtree of `relative`, itself included. */
static int gather_subtree(int relative, int n)
{
	int below = relative ? relative & -relative : n;

	return below < n - relative ? below : n - relative;
}

/*
 * Receive the blocks of the ranks below this one in the tree into `data`, behind the own block,
 * in the order of ranks relative to the root. Then send all of them up, unless this is the
 * root.
 */
static void climb(struct mpi_schedule *p, char *data, MPI_Count bytes, int root,
		  struct mpi_comm *comm)
{
	int n = comm->size, relative = (comm->rank - root + n) % n;
	int bit = 1;

	for (; !(relative & bit) && bit < n; bit *= 2) {
		if (relative + bit < n)
			mpi_schedule_recv(p, data + bit * bytes,
					  gather_subtree(relative + bit, n) * bytes, mpi_bytes(),
					  (int)(((long)comm->rank + bit) % n), comm);
	}
	mpi_schedule_wait(p);
	if (relative)
		mpi_schedule_send(p, data, gather_subtree(relative, n) * bytes, mpi_bytes(),
				  (comm->rank - bit + n) % n, comm);
	mpi_schedule_wait(p);
}

static int gather_leaf_or_branch(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
				 struct mpi_type *sendtype, int root, struct mpi_comm *comm)
{
	MPI_Count bytes = sendcount * sendtype->size;
	int n = comm->size, relative = (comm->rank - root + n) % n;
	char *data;

	if (relative & 1) {
		mpi_schedule_send(p, sendbuf, sendcount, sendtype, (comm->rank - 1 + n) % n, comm);
		return MPI_SUCCESS;
	}
	data = mpi_schedule_bytes(p, gather_subtree(relative, n) * bytes);
	if (!data)
		return MPI_ERR_NO_MEM;
	mpi_schedule_pack(p, sendtype, sendbuf, sendcount, data);
	climb(p, data, bytes, root, comm);
	return MPI_SUCCESS;
}

static int gather_tree_root(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			    struct mpi_type *sendtype, const struct mpi_vec *recv,
			    struct mpi_comm *comm)
{
	MPI_Count bytes = mpi_vec_bytes(recv, 0);
	int root = comm->rank;
	char *data = mpi_schedule_bytes(p, comm->size * bytes);

	if (!data)
		return MPI_ERR_NO_MEM;
	if (sendbuf != MPI_IN_PLACE)
		mpi_schedule_copy(p, sendbuf, sendcount, sendtype, mpi_vec_at(recv, root),
				  recv->count, recv->type);
	climb(p, data, bytes, root, comm);
	/* behind the root's own block: the ranks above it, then those from 0 on */
	mpi_schedule_unpack(p, recv->type, mpi_vec_at(recv, root + 1),
			    recv->count * (comm->size - 1 - root), data + bytes);
	mpi_schedule_unpack(p, recv->type, recv->buf, recv->count * root,
			    data + bytes * (comm->size - root));
	return MPI_SUCCESS;
}

/* Whether to use the tree. It costs its inner ranks a wait, which is expensive when they must
 * get a processor first. */
static bool choose_gather_tree(const struct mpi_schedule *p, MPI_Count bytes,
			       const struct mpi_comm *comm)
{
	/* in a non-blocking one the tree would wait for a rank that computes */
	bool few_rounds = p->now && bytes <= SHORT_BYTES && comm->size >= TREE_RANKS &&
			  !mpi_coll_oversubscribed(comm);

	return mpi_coll_choose(MPI_COLL_BIT(GATHER, BINOMIAL) | MPI_COLL_BIT(GATHER, LINEAR),
			       few_rounds ? MPI_COLL_GATHER_BINOMIAL : MPI_COLL_GATHER_LINEAR) ==
	       MPI_COLL_GATHER_BINOMIAL;
}

static int check_gather_root(const void **sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
			     const struct mpi_vec *recv, struct mpi_comm *comm)
{
	int rc = mpi_vec_check(recv, comm->inter ? comm->remote_size : comm->size, "recvbuf");

	if (rc || comm->inter || *sendbuf == MPI_IN_PLACE)
		return rc;
	rc = mpi_coll_check(*sendbuf, sendcount, sendtype, "sendbuf");
	if (!rc && mpi_coll_in_its_place(*sendbuf, sendcount, sendtype, recv, comm->rank))
		*sendbuf = MPI_IN_PLACE;
	else if (!rc)
		rc = mpi_coll_check_alias(*sendbuf, sendcount, sendtype,
					  mpi_vec_at(recv, comm->rank),
					  mpi_vec_count(recv, comm->rank), recv->type);
	return rc;
}

/* Check the arguments. The root's own block may turn out to be in place. */
static int check_gather(const void **sendbuf, MPI_Count sendcount, struct mpi_type *sendtype,
			const struct mpi_vec *recv, int root, struct mpi_comm *comm)
{
	int rc = mpi_coll_check_root(root, comm);

	if (rc || (comm->inter && root == MPI_PROC_NULL))
		return rc;
	if (comm->inter ? root == MPI_ROOT : root == comm->rank)
		return check_gather_root(sendbuf, sendcount, sendtype, recv, comm);
	return mpi_coll_check(*sendbuf, sendcount, sendtype, "sendbuf");
}

int mpi_gather_schedule(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			struct mpi_type *sendtype, void *recvbuf, MPI_Count recvcount,
			struct mpi_type *recvtype, int root, struct mpi_comm *comm)
{
	struct mpi_vec recv = { .buf = recvbuf, .count = recvcount, .type = recvtype };
	int rc = check_gather(&sendbuf, sendcount, sendtype, &recv, root, comm);
	struct mpi_shmcoll *shmcoll;
	MPI_Count bytes;

	if (rc)
		return rc;
	bytes = MPI_CALL_ANY_BYTES;
	if (!comm->inter)
		bytes = comm->rank == root ? mpi_vec_bytes(&recv, 0) : sendcount * sendtype->size;
	mpi_calls_announce(p, comm, MPI_CALL_GATHER, root, NULL, bytes);
	if (comm->inter) {
		mpi_inter_gatherv(p, sendbuf, sendcount, sendtype, &recv, root, comm);
		return MPI_SUCCESS;
	}
	if (bytes == 0)
		return MPI_SUCCESS;
	shmcoll = mpi_shmcoll_for(p, MPI_COLL_GATHER_SHM, comm, bytes, SHMCOLL_BYTES, 0);
	if (shmcoll)
		return mpi_shmcoll_gather(shmcoll, MPI_SUCCESS, sendbuf, sendcount, sendtype, &recv,
					  (size_t)bytes, root);
	if (!choose_gather_tree(p, bytes, comm))
		mpi_intra_gatherv(p, sendbuf, sendcount, sendtype, &recv, root, comm);
	else if (comm->rank == root)
		rc = gather_tree_root(p, sendbuf, sendcount, sendtype, &recv, comm);
	else
		rc = gather_leaf_or_branch(p, sendbuf, sendcount, sendtype, root, comm);
	return rc;
}

int mpi_gatherv_schedule(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			 struct mpi_type *sendtype, void *recvbuf, const MPI_Count *recvcounts,
			 const MPI_Aint *displs, struct mpi_type *recvtype, int root,
			 struct mpi_comm *comm)
{
	struct mpi_vec recv = {
		.buf = recvbuf, .counts = recvcounts, .displs = displs, .type = recvtype
	};
	int rc = check_gather(&sendbuf, sendcount, sendtype, &recv, root, comm);

	if (rc)
		return rc;
	mpi_calls_announce(p, comm, MPI_CALL_GATHERV, root, NULL, MPI_CALL_ANY_BYTES);
	if (!comm->inter)
		mpi_coll_choose(0, MPI_COLL_GATHER_LINEAR);
	(comm->inter ? mpi_inter_gatherv : mpi_intra_gatherv)(p, sendbuf, sendcount, sendtype,
							      &recv, root, comm);
	return MPI_SUCCESS;
}
