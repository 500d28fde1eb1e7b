/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Generalized requests: see generalized.h.
 */
#include "mpi_shim/pt2pt/generalized.h"

#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"

struct mpi_generalized {
	MPI_Grequest_query_function *query;
	MPI_Grequest_free_function *free;
	MPI_Grequest_cancel_function *cancel;
	void *state;
};

int mpi_grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
		       MPI_Grequest_cancel_function *cancel_fn, void *extra_state,
		       struct mpi_request **request)
{
	struct mpi_request *r = mpi_request_new(MPI_REQ_GENERALIZED);

	if (!r)
		return MPI_ERR_NO_MEM;
	r->generalized = malloc(sizeof(*r->generalized));
	if (!r->generalized) {
		mpi_object_release(r);
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for a generalized request");
	}
	*r->generalized = (struct mpi_generalized){ query_fn, free_fn, cancel_fn, extra_state };
	*request = r;
	return MPI_SUCCESS;
}

int mpi_grequest_complete(MPI_Request request)
{
	struct mpi_request *r = mpi_object_of(request, MPI_KIND_REQUEST);
	int err = MPI_SUCCESS;

	if (!r || r->kind != MPI_REQ_GENERALIZED)
		return mpi_fail(MPI_ERR_REQUEST, "not a generalized request");
	if (r->freed)
		err = mpi_generalized_free(r);
	mpi_request_done(r);
	mpi_progress_wake();
	return err;
}

/* Calls the user's query function, which fills the status, and returns its code. The lock is
 * released meanwhile. */
static int query_status(struct mpi_request *r, MPI_Status *status)
{
	struct mpi_generalized *g = r->generalized;
	MPI_Status own;
	int err = MPI_SUCCESS;

	if (status == MPI_STATUS_IGNORE)
		status = &own;
	mpi_status_none(status, MPI_ANY_SOURCE);
	if (g->query) {
		mpi_unlock_for_callback();
		err = g->query(g->state, status);
		mpi_lock_after_callback();
	}
	return err ? mpi_fail(err, "the query function of a generalized request failed") : err;
}

int mpi_generalized_free(struct mpi_request *r)
{
	struct mpi_generalized *g = r->generalized;
	int err = MPI_SUCCESS;

	mpi_object_retire(&r->obj);
	r->generalized = NULL;
	if (g->free) {
		mpi_unlock_for_callback();
		err = g->free(g->state);
		mpi_lock_after_callback();
	}
	free(g);
	return err ? mpi_fail(err, "the free function of a generalized request failed") : err;
}

int mpi_generalized_cancel(struct mpi_request *r)
{
	struct mpi_generalized *g = r->generalized;
	int err = MPI_SUCCESS;

	if (g->cancel) {
		mpi_unlock_for_callback();
		err = g->cancel(g->state, r->done);
		mpi_lock_after_callback();
	}
	return err ? mpi_fail(err, "the cancel function of a generalized request failed") : err;
}

const struct mpi_request_ops mpi_generalized_ops = {
	.status = query_status,
	.finish = mpi_generalized_free,
};
