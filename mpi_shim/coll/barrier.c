/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Barrier by messages. With a processor for every rank it is a dissemination barrier:
 * ceil(log2 P) rounds, in each of which each rank sends one message. With fewer processors
 * every message costs a process switch. Then it goes up and down a tree: 2(P - 1) messages in
 * all.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"

static void dissemination(struct mpi_schedule *p, struct mpi_comm *comm)
{
	int n = comm->size;

	for (int step = 1; step < n; step *= 2)
		mpi_schedule_sendrecv(p, NULL, 0, mpi_bytes(), (comm->rank + step) % n, NULL, 0,
				      mpi_bytes(), (comm->rank - step + n) % n, comm);
}

static void barrier_by_tree(struct mpi_schedule *p, struct mpi_comm *comm)
{
	struct mpi_tree t;

	mpi_tree_make(&t, 0, MPI_TREE_BRANCHES, comm);
	for (int i = 0; i < t.n; i++)
		mpi_schedule_recv(p, NULL, 0, mpi_bytes(), t.child[i], comm);
	mpi_schedule_wait(p);
	if (t.parent >= 0)
		mpi_schedule_sendrecv(p, NULL, 0, mpi_bytes(), t.parent, NULL, 0, mpi_bytes(),
				      t.parent, comm);
	for (int i = t.n - 1; i >= 0; i--)
		mpi_schedule_send(p, NULL, 0, mpi_bytes(), t.child[i], comm);
	mpi_schedule_wait(p);
}

static void barrier_linear(struct mpi_schedule *p, struct mpi_comm *comm)
{
	for (int i = 1; i < comm->size; i++)
		mpi_schedule_recv(p, NULL, 0, mpi_bytes(), (comm->rank + i) % comm->size, comm);
	for (int i = 1; i < comm->size; i++)
		mpi_schedule_send(p, NULL, 0, mpi_bytes(), (comm->rank + i) % comm->size, comm);
	mpi_schedule_wait(p);
}

void mpi_intra_barrier(struct mpi_schedule *p, struct mpi_comm *comm)
{
	uint64_t can = MPI_COLL_BIT(BARRIER, TREE) | MPI_COLL_BIT(BARRIER, DISSEMINATION) |
		       MPI_COLL_BIT(BARRIER, LINEAR);
	enum mpi_algorithm best = MPI_COLL_BARRIER_DISSEMINATION;

	if (mpi_coll_directly(p, comm, 0))
		best = MPI_COLL_BARRIER_LINEAR;
	else if (mpi_coll_oversubscribed(comm) && comm->size > 2)
		best = MPI_COLL_BARRIER_TREE;
	switch (mpi_coll_choose(can, best)) {
	case MPI_COLL_BARRIER_LINEAR:
		barrier_linear(p, comm);
		break;
	case MPI_COLL_BARRIER_TREE:
		barrier_by_tree(p, comm);
		break;
	default:
		dissemination(p, comm);
		break;
	}
}

int mpi_barrier_schedule(struct mpi_schedule *p, struct mpi_comm *comm)
{
	struct mpi_shmcoll *shmcoll;

	mpi_calls_announce(p, comm, MPI_CALL_BARRIER, MPI_CALL_ANY_ROOT, NULL, 0);
	shmcoll = mpi_shmcoll_for_barrier(p, comm);
	if (shmcoll)
		return mpi_shmcoll_barrier(shmcoll);
	if (comm->inter)
		mpi_inter_barrier(p, comm);
	else
		mpi_intra_barrier(p, comm);
	return MPI_SUCCESS;
}
