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

/* Children of rank r: r + 1, r + 2, r + 4 ... below its lowest bit. */
static int tree(struct mpi_comm *comm)
{
	struct mpi_request *requests[32];
	int rank = comm->rank, n = 0, rc = MPI_SUCCESS;
	int bit = 1;

	for (; !(rank & bit) && bit < comm->size; bit *= 2) {
		if (rank + bit >= comm->size)
			continue;
		requests[n] = NULL;
		rc = mpi_first(rc, mpi_coll_irecv(NULL, 0, mpi_bytes(), rank + bit, MPI_TAG_BARRIER,
						  comm, &requests[n++]));
	}
	rc = mpi_first(rc, mpi_coll_waitall(requests, n));
	if (rank > 0) {
		rc = mpi_first(rc,
			       mpi_coll_sendrecv(NULL, 0, mpi_bytes(), rank - bit, NULL, 0,
						 mpi_bytes(), rank - bit, MPI_TAG_BARRIER, comm));
	}
	while ((bit /= 2) > 0) {
		if (rank + bit < comm->size)
			rc = mpi_first(rc, mpi_coll_send(NULL, 0, mpi_bytes(), rank + bit,
							 MPI_TAG_BARRIER, comm));
	}
	return rc;
}

int mpi_intra_barrier(struct mpi_comm *comm)
{
	return mpi_coll_crowded() && comm->size > 2 ? tree(comm) : dissemination(comm);
}

int mpi_barrier(struct mpi_comm *comm)
{
	return comm->inter ? mpi_inter_barrier(comm) : mpi_intra_barrier(comm);
}
