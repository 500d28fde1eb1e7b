/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Barrier. With a processor for every rank: dissemination, ceil(log2 P) rounds in which each rank
 * sends one message. With fewer processors every message costs a switch of processes: then a tree
 * up and down, 2(P - 1) messages in all.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/impl.h"

static int dissemination(struct mpi_comm *comm)
{
	int n = comm->size, rc = MPI_SUCCESS;

	for (int step = 1; step < n; step *= 2)
		rc = mpi_first(rc,
			       mpi_coll_sendrecv(NULL, 0, mpi_bytes(), (comm->rank + step) % n,
						 NULL, 0, mpi_bytes(), (comm->rank - step + n) % n,
						 MPI_TAG_BARRIER, comm));
	return rc;
}

static int tree(struct mpi_comm *comm)
{
	struct mpi_request *requests[MPI_TREE_CHILDREN] = { NULL };
	struct mpi_tree t;
	int rc = MPI_SUCCESS;

	mpi_tree_make(&t, 0, comm);
	for (int i = 0; i < t.n; i++)
		rc = mpi_first(rc, mpi_coll_irecv(NULL, 0, mpi_bytes(), t.child[i], MPI_TAG_BARRIER,
						  comm, &requests[i]));
	rc = mpi_first(rc, mpi_coll_waitall(requests, t.n));
	if (t.parent >= 0)
		rc = mpi_first(rc, mpi_coll_sendrecv(NULL, 0, mpi_bytes(), t.parent, NULL, 0,
						     mpi_bytes(), t.parent, MPI_TAG_BARRIER, comm));
	for (int i = t.n - 1; i >= 0; i--)
		rc = mpi_first(
			rc, mpi_coll_send(NULL, 0, mpi_bytes(), t.child[i], MPI_TAG_BARRIER, comm));
	return rc;
}

int mpi_intra_barrier(struct mpi_comm *comm)
{
	return mpi_coll_crowded() && comm->size > 2 ? tree(comm) : dissemination(comm);
}

int mpi_barrier(struct mpi_comm *comm)
{
	struct mpi_hub *hub = mpi_hub_of(comm, false);

	if (hub)
		return mpi_hub_barrier(hub);
	return comm->inter ? mpi_inter_barrier(comm) : mpi_intra_barrier(comm);
}
