/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Persistent requests: those of point-to-point messages, and the start of all.
 */
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

static int send_init(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		     struct mpi_comm *comm, enum mpi_send_mode mode, struct mpi_request **request)
{
	struct mpi_request *r;
	int err = mpi_send_prepare(buf, count, type, dest, tag, comm, comm->context, mode, &r);

	if (err)
		return err;
	r->persistent = r->done = true;
	*request = r;
	return MPI_SUCCESS;
}

int mpi_send_init(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
		  struct mpi_comm *comm, struct mpi_request **request)
{
	return send_init(buf, count, datatype, dest, tag, comm, MPI_SEND_STANDARD, request);
}

int mpi_bsend_init(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
		   struct mpi_comm *comm, struct mpi_request **request)
{
	return send_init(buf, count, datatype, dest, tag, comm, MPI_SEND_BUFFERED, request);
}

int mpi_ssend_init(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
		   struct mpi_comm *comm, struct mpi_request **request)
{
	return send_init(buf, count, datatype, dest, tag, comm, MPI_SEND_SYNC, request);
}

int mpi_rsend_init(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
		   struct mpi_comm *comm, struct mpi_request **request)
{
	return send_init(buf, count, datatype, dest, tag, comm, MPI_SEND_READY, request);
}

int mpi_recv_init(void *buf, MPI_Count count, struct mpi_type *datatype, int source, int tag,
		  struct mpi_comm *comm, struct mpi_request **request)
{
	struct mpi_request *r;
	int err = mpi_recv_prepare(buf, count, datatype, source, tag, comm, comm->context, &r);

	if (err)
		return err;
	r->persistent = r->done = true;
	*request = r;
	return MPI_SUCCESS;
}

int mpi_start(MPI_Request *request)
{
	struct mpi_request *r = mpi_object_of(*request, MPI_KIND_REQUEST);
	int err;

	if (!r || !r->persistent)
		return mpi_fail(MPI_ERR_REQUEST, "not a persistent request");
	if (r->active)
		return mpi_fail(MPI_ERR_REQUEST,
				"the request is active: complete it before it is started again");
	r->cancelled = false;
	r->active = true;
	err = mpi_request_ops[r->kind].launch(r);
	if (err) {
		r->done = true;
		r->active = false;
	}
	return err;
}

int mpi_startall(int count, MPI_Request *array_of_requests)
{
	for (int i = 0; i < count; i++) {
		int err = mpi_start(&array_of_requests[i]);

		if (err)
			return err;
	}
	return MPI_SUCCESS;
}
