/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The end of communicators: freeing, and disconnecting, which all ranks call together.
 */
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/request.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"

static int check_freeable(const struct mpi_comm *comm)
{
	if (comm == &mpi_comm_world || comm == &mpi_comm_self)
		return mpi_fail(MPI_ERR_COMM, "%s cannot be freed", comm->name);
	if (comm->freed)
		return mpi_fail(MPI_ERR_COMM, "the communicator has been freed before");
	return MPI_SUCCESS;
}

/* Operations in progress keep the object and its context. `stays`: its processes stay connected. */
static int free_comm(struct mpi_comm **comm, bool stays)
{
	int err = check_freeable(*comm);

	if (err == MPI_SUCCESS)
		err = mpi_attrs_delete(*comm, MPI_KIND_COMM, &(*comm)->attrs);
	if (err != MPI_SUCCESS)
		return err;
	if ((*comm)->others && stays) {
		mpi_others_stay(*comm);
	} else if ((*comm)->others) {
		/* now, as on the other side, whatever still has a reference */
		mpi_others_count(*comm, -1);
		(*comm)->counted = false;
	}
	(*comm)->freed = true;
	mpi_object_rename(&(*comm)->obj);
	mpi_object_release(*comm);
	*comm = NULL;
	return MPI_SUCCESS;
}

int mpi_comm_free(struct mpi_comm **comm)
{
	return free_comm(comm, true);
}

static bool is_pending(const struct mpi_request *r, const struct mpi_comm *comm)
{
	return r->obj.handle && !r->done && r->comm == comm &&
	       (r->kind == MPI_REQ_SEND || r->kind == MPI_REQ_RECV) &&
	       (!r->persistent || r->active);
}

static bool any_pending(const struct mpi_comm *comm)
{
	const struct mpi_request *r;

	for (uint32_t i = 0; (r = mpi_pool_at(MPI_KIND_REQUEST, i)); i++)
		if (is_pending(r, comm))
			return true;
	return false;
}

/*
 * Returns after all ranks have called it. In one job operations in progress end by themselves.
 * Links to other jobs are cut if no other communicator needs them. If a process of another job has
 * died, the others are left all the same.
 */
int mpi_comm_disconnect(struct mpi_comm **comm)
{
	const bool others = (*comm)->others;
	int err = MPI_SUCCESS;

	/* free_comm() refuses these, without a barrier */
	if (*comm != &mpi_comm_world && *comm != &mpi_comm_self && !(*comm)->freed) {
		while (others && any_pending(*comm))
			mpi_progress(true);
		err = mpi_barrier(*comm);
	}
	if (others && err == MPI_ERR_PROC_ABORTED)
		err = MPI_SUCCESS;
	if (err == MPI_SUCCESS)
		err = free_comm(comm, false);
	if (err == MPI_SUCCESS && others)
		mpi_others_leave(false);
	return err;
}
