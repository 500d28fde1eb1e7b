/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Barrier by messages. With a processor for every rank: dissemination, ceil(log2 P) rounds in which each
 * rank sends one message. With fewer processors every message costs a switch of processes: then a tree
 * up and down, 2(P - 1) messages in all.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/coll_plans.h"

static void dissemination(struct mpi_plan *p, struct mpi_comm *comm)
{
	int n = comm->size;

	for (int step = 1; step < n; step *= 2)
		mpi_plan_sendrecv(p, NULL, 0, mpi_bytes(), (comm->rank + step) % n, NULL, 0,
				  mpi_bytes(), (comm->rank - step + n) % n, comm);
}

static void tree(struct mpi_plan *p, struct mpi_comm *comm)
{
	struct mpi_tree t;

	mpi_tree_make(&t, 0, MPI_TREE_BRANCHES, comm);
	for (int i = 0; i < t.n; i++)
		mpi_plan_recv(p, NULL, 0, mpi_bytes(), t.child[i], comm);
	mpi_plan_wait(p);
	if (t.parent >= 0)
		mpi_plan_sendrecv(p, NULL, 0, mpi_bytes(), t.parent, NULL, 0, mpi_bytes(), t.parent,
				  comm);
	for (int i = t.n - 1; i >= 0; i--)
		mpi_plan_send(p, NULL, 0, mpi_bytes(), t.child[i], comm);
	mpi_plan_wait(p);
}

void mpi_intra_barrier(struct mpi_plan *p, struct mpi_comm *comm)
{
	bool few_messages = mpi_coll_crowded() && comm->size > 2;

	if (mpi_coll_choose(BASE_COLL_BIT(BARRIER, TREE) | BASE_COLL_BIT(BARRIER, DISSEMINATION),
			    few_messages
				    ? BASE_COLL_BARRIER_TREE
				    : BASE_COLL_BARRIER_DISSEMINATION) == BASE_COLL_BARRIER_TREE)
		tree(p, comm);
	else
		dissemination(p, comm);
}

int mpi_barrier_plan(struct mpi_plan *p, struct mpi_comm *comm)
{
	struct mpi_hub *hub = mpi_hub_for_barrier(p, comm);

	if (hub)
		return mpi_hub_barrier(hub);
	if (comm->inter)
		mpi_inter_barrier(p, comm);
	else
		mpi_intra_barrier(p, comm);
	return MPI_SUCCESS;
}
