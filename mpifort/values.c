/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Arrays of handles, and errors that the bindings find themselves.
 */
#include "mpifort.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---------------------------------------------------------------------------------- */

int mpifort_raise(int rc)
{
	PMPI_Comm_call_errhandler(MPI_COMM_SELF, rc);
	return rc;
}

/* ---- arrays of handles ----------------------------------------------------------------------- */

/* Room for n pointers, in `few` if they fit. */
static void *room(MPI_Count n, void *few, int *rc)
{
	void *more;

	if (n <= MPIFORT_FEW)
		return few;
	more = malloc((size_t)n * sizeof(void *));
	if (!more)
		*rc = mpifort_raise(MPI_ERR_NO_MEM);
	return more;
}

void mpifort_requests_open(struct mpifort_requests *r, int n, const int *handles, int *rc)
{
	r->at = r->few;
	r->n = 0;
	if (*rc != MPI_SUCCESS || n <= 0)
		return; /* the function itself reports a wrong count */
	r->at = room(n, r->few, rc);
	if (!r->at)
		return;
	r->n = n;
	for (int i = 0; i < n; i++)
		r->at[i] = mpifort_request(handles[i]);
}

void mpifort_requests_close(struct mpifort_requests *r, int *handles)
{
	for (int i = 0; i < r->n; i++)
		handles[i] = mpifort_request_now(handles[i], r->at[i]);
	if (r->at != r->few)
		free(r->at);
}

void mpifort_requests_seen(struct mpifort_requests *r, const int *handles)
{
	for (int i = 0; i < r->n; i++)
		mpifort_request_seen(handles[i]);
	if (r->at != r->few)
		free(r->at);
}

void mpifort_datatypes_room(struct mpifort_datatypes *t, MPI_Count n, int *rc)
{
	t->at = t->few;
	t->n = 0;
	if (*rc != MPI_SUCCESS || n <= 0)
		return;
	t->at = room(n, t->few, rc);
	if (!t->at)
		return;
	t->n = (int)n;
	memset(t->at, 0, (size_t)n * sizeof(*t->at));
}

void mpifort_datatypes_open(struct mpifort_datatypes *t, MPI_Count n, const int *handles, int *rc)
{
	mpifort_datatypes_room(t, n, rc);
	for (int i = 0; *rc == MPI_SUCCESS && i < t->n; i++)
		t->at[i] = mpifort_datatype(handles[i]);
}

void mpifort_datatypes_open_kept(struct mpifort_datatypes *t, MPI_Count n, const int *handles,
				 int *rc)
{
	t->at = NULL;
	t->n = 0;
	if (*rc != MPI_SUCCESS || n <= 0)
		return;
	t->at = malloc((size_t)n * sizeof(*t->at));
	if (!t->at) {
		*rc = mpifort_raise(MPI_ERR_NO_MEM);
		return;
	}
	t->n = (int)n;
	for (int i = 0; i < t->n; i++)
		t->at[i] = mpifort_datatype(handles[i]);
}

/* Zero is not a handle: C wrote nothing there. */
void mpifort_datatypes_give(struct mpifort_datatypes *t, int *handles)
{
	for (int i = 0; i < t->n; i++) {
		if (t->at[i])
			handles[i] = mpifort_of_datatype(t->at[i]);
	}
}

void mpifort_datatypes_close(struct mpifort_datatypes *t)
{
	if (t->at != t->few)
		free(t->at);
}

int mpifort_peers(MPI_Comm comm)
{
	int inter = 0, n = 0;

	if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
		return 0;
	if (inter)
		PMPI_Comm_remote_size(comm, &n);
	else
		PMPI_Comm_size(comm, &n);
	return n;
}

int mpifort_sendtypes(MPI_Comm comm, const void *sendbuf)
{
	int inter = 0;

	/* intercommunicators have no MPI_IN_PLACE: pass all datatypes, so that the function
	 * reports it */
	if (sendbuf == MPI_IN_PLACE &&
	    (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || !inter))
		return 0;
	return mpifort_peers(comm);
}

int mpifort_neighbours(MPI_Comm comm, bool destinations)
{
	int kind = MPI_UNDEFINED, in = 0, out = 0, weighted, rank;

	if (comm == MPI_COMM_NULL || PMPI_Topo_test(comm, &kind) != MPI_SUCCESS)
		return 0;
	switch (kind) {
	case MPI_CART:
		PMPI_Cartdim_get(comm, &in);
		in *= 2;
		return in;
	case MPI_GRAPH:
		PMPI_Comm_rank(comm, &rank);
		PMPI_Graph_neighbors_count(comm, rank, &in);
		return in;
	case MPI_DIST_GRAPH:
		PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
		return destinations ? out : in;
	default:
		return 0;
	}
}

void mpifort_indices(int *indices, int n)
{
	for (int i = 0; i < n; i++)
		indices[i] = mpifort_index(indices[i]);
}
