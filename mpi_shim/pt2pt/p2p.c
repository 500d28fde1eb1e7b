/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The point-to-point calls of MPI: send and receive in all modes, blocking, non-blocking,
 * combined. Also the calls that collectives use.
 */
#include "mpi_shim/pt2pt/p2p.h"

#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

/* ---- sending --------------------------------------------------------------------------------- */

int mpi_send(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
	     struct mpi_comm *comm)
{
	return mpi_send_now(buf, count, datatype, dest, tag, comm, comm->context,
			    MPI_SEND_STANDARD);
}

int mpi_bsend(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
	      struct mpi_comm *comm)
{
	return mpi_send_now(buf, count, datatype, dest, tag, comm, comm->context,
			    MPI_SEND_BUFFERED);
}

int mpi_ssend(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
	      struct mpi_comm *comm)
{
	return mpi_send_now(buf, count, datatype, dest, tag, comm, comm->context, MPI_SEND_SYNC);
}

int mpi_rsend(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
	      struct mpi_comm *comm)
{
	return mpi_send_now(buf, count, datatype, dest, tag, comm, comm->context, MPI_SEND_READY);
}

int mpi_isend(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
	      struct mpi_comm *comm, struct mpi_request **request)
{
	return mpi_start_send(buf, count, datatype, dest, tag, comm, comm->context,
			      MPI_SEND_STANDARD, request);
}

int mpi_ibsend(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
	       struct mpi_comm *comm, struct mpi_request **request)
{
	return mpi_start_send(buf, count, datatype, dest, tag, comm, comm->context,
			      MPI_SEND_BUFFERED, request);
}

int mpi_issend(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
	       struct mpi_comm *comm, struct mpi_request **request)
{
	return mpi_start_send(buf, count, datatype, dest, tag, comm, comm->context, MPI_SEND_SYNC,
			      request);
}

int mpi_irsend(const void *buf, MPI_Count count, struct mpi_type *datatype, int dest, int tag,
	       struct mpi_comm *comm, struct mpi_request **request)
{
	return mpi_start_send(buf, count, datatype, dest, tag, comm, comm->context, MPI_SEND_READY,
			      request);
}

/* ---- receiving ------------------------------------------------------------------------------- */

int mpi_recv(void *buf, MPI_Count count, struct mpi_type *datatype, int source, int tag,
	     struct mpi_comm *comm, MPI_Status *status)
{
	struct mpi_request *r;
	int err = mpi_start_recv(buf, count, datatype, source, tag, comm, comm->context, &r);

	if (err)
		return err;
	mpi_request_wait(r);
	return mpi_request_finish(r, status);
}

int mpi_irecv(void *buf, MPI_Count count, struct mpi_type *datatype, int source, int tag,
	      struct mpi_comm *comm, struct mpi_request **request)
{
	return mpi_start_recv(buf, count, datatype, source, tag, comm, comm->context, request);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Drops a receive in progress, after its send could not be started. */
static void drop_recv(struct mpi_request *r)
{
	mpi_recv_cancel(r);
	if (r->done)
		mpi_object_release(r);
	else
		r->freed = true;
}

static int both(struct mpi_request *recv, const void *sendbuf, MPI_Count sendcount,
		struct mpi_type *sendtype, int dest, int sendtag, struct mpi_comm *comm,
		uint64_t context, MPI_Status *status)
{
	struct mpi_request *send;
	int err = mpi_start_send(sendbuf, sendcount, sendtype, dest, sendtag, comm, context,
				 MPI_SEND_STANDARD, &send);
	int recv_err;

	if (err) {
		drop_recv(recv);
		return err;
	}
	mpi_request_wait(recv);
	mpi_request_wait(send);
	recv_err = mpi_request_finish(recv, status);
	err = mpi_request_finish(send, MPI_STATUS_IGNORE);
	return recv_err ? recv_err : err;
}

int mpi_sendrecv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype, int dest,
		 int sendtag, void *recvbuf, MPI_Count recvcount, struct mpi_type *recvtype,
		 int source, int recvtag, struct mpi_comm *comm, MPI_Status *status)
{
	struct mpi_request *recv;
	int err = mpi_start_recv(recvbuf, recvcount, recvtype, source, recvtag, comm, comm->context,
				 &recv);

	if (err)
		return err;
	return both(recv, sendbuf, sendcount, sendtype, dest, sendtag, comm, comm->context, status);
}

/* Copies the bytes to be sent, before the receive overwrites the buffer. */
static int packed_copy(const void *buf, MPI_Count count, const struct mpi_type *type, void **copy,
		       MPI_Count *bytes)
{
	int err = mpi_message_bytes(type, count, bytes);

	if (err)
		return err;
	*copy = malloc(*bytes ? (size_t)*bytes : 1);
	if (!*copy)
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for %lld bytes to be sent and replaced",
				(long long)*bytes);
	mpi_type_pack_bytes(type, buf, count, 0, *copy, (size_t)*bytes);
	return MPI_SUCCESS;
}

int mpi_sendrecv_replace(void *buf, MPI_Count count, struct mpi_type *datatype, int dest,
			 int sendtag, int source, int recvtag, struct mpi_comm *comm,
			 MPI_Status *status)
{
	struct mpi_request *recv;
	MPI_Count bytes;
	void *copy;
	int err = packed_copy(buf, count, datatype, &copy, &bytes);

	if (err)
		return err;
	err = mpi_start_recv(buf, count, datatype, source, recvtag, comm, comm->context, &recv);
	if (!err)
		err = both(recv, copy, bytes, mpi_type_of(MPI_BYTE), dest, sendtag, comm,
			   comm->context, status);
	free(copy);
	return err;
}

/* Joins a send to a receive: the request of the receive is done when both are. The send's own
 * request ends by itself. */
static int join_send(struct mpi_request *recv, struct mpi_request *send)
{
	if (send->done) {
		int err = mpi_request_finish(send, MPI_STATUS_IGNORE);

		if (err && !recv->error)
			mpi_request_fail(recv, err, "%s", mpi_fail_text());
		return MPI_SUCCESS;
	}
	/* A receive that is done already waits again, for the send alone. */
	recv->parts = recv->done ? 1 : 2;
	recv->done = false;
	send->parent = recv;
	send->freed = true;
	return MPI_SUCCESS;
}

static int ijoin(struct mpi_request *recv, const void *sendbuf, MPI_Count sendcount,
		 struct mpi_type *sendtype, int dest, int sendtag, struct mpi_comm *comm,
		 void *owned, struct mpi_request **request)
{
	struct mpi_request *send;
	int err = mpi_send_prepare(sendbuf, sendcount, sendtype, dest, sendtag, comm, comm->context,
				   MPI_SEND_STANDARD, &send);

	if (!err) {
		send->packed = owned;
		err = mpi_send_launch(send);
		if (err)
			mpi_object_release(send);
	} else {
		free(owned);
	}
	if (err) {
		drop_recv(recv);
		return err;
	}
	*request = recv;
	return join_send(recv, send);
}

int mpi_isendrecv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype, int dest,
		  int sendtag, void *recvbuf, MPI_Count recvcount, struct mpi_type *recvtype,
		  int source, int recvtag, struct mpi_comm *comm, struct mpi_request **request)
{
	struct mpi_request *recv;
	int err = mpi_start_recv(recvbuf, recvcount, recvtype, source, recvtag, comm, comm->context,
				 &recv);

	if (err)
		return err;
	return ijoin(recv, sendbuf, sendcount, sendtype, dest, sendtag, comm, NULL, request);
}

int mpi_isendrecv_replace(void *buf, MPI_Count count, struct mpi_type *datatype, int dest,
			  int sendtag, int source, int recvtag, struct mpi_comm *comm,
			  struct mpi_request **request)
{
	struct mpi_request *recv;
	MPI_Count bytes;
	void *copy;
	int err = packed_copy(buf, count, datatype, &copy, &bytes);

	if (err)
		return err;
	err = mpi_start_recv(buf, count, datatype, source, recvtag, comm, comm->context, &recv);
	if (err) {
		free(copy);
		return err;
	}
	return ijoin(recv, copy, bytes, mpi_type_of(MPI_BYTE), dest, sendtag, comm, copy, request);
}

/* ---- for collectives ------------------------------------------------------------------------- */

int mpi_coll_send(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		  struct mpi_comm *comm)
{
	return mpi_send_now(buf, count, type, dest, tag, comm, comm->context + 1,
			    MPI_SEND_STANDARD);
}

int mpi_coll_recv(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		  struct mpi_comm *comm, MPI_Count *received)
{
	struct mpi_request *r;
	MPI_Status status;
	int err = mpi_start_recv(buf, count, type, source, tag, comm, comm->context + 1, &r);

	if (err)
		return err;
	mpi_request_wait(r);
	err = mpi_request_finish(r, &status);
	if (received)
		*received = mpi_status_bytes(&status);
	return err;
}

int mpi_coll_isend(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		   struct mpi_comm *comm, struct mpi_request **request)
{
	return mpi_start_send(buf, count, type, dest, tag, comm, comm->context + 1,
			      MPI_SEND_STANDARD, request);
}

int mpi_coll_irecv(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		   struct mpi_comm *comm, struct mpi_request **request)
{
	int err = mpi_start_recv(buf, count, type, source, tag, comm, comm->context + 1, request);

	if (!err)
		(*request)->whole = comm;
	return err;
}

int mpi_coll_sendrecv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype, int dest,
		      void *recvbuf, MPI_Count recvcount, struct mpi_type *recvtype, int source,
		      int tag, struct mpi_comm *comm, MPI_Count *received)
{
	struct mpi_request *recv;
	MPI_Status status;
	int err = mpi_start_recv(recvbuf, recvcount, recvtype, source, tag, comm, comm->context + 1,
				 &recv);

	if (err)
		return err;
	/* Within one group, leaders may act on behalf of ranks that live. */
	recv->whole = comm->inter ? comm : NULL;
	err = both(recv, sendbuf, sendcount, sendtype, dest, tag, comm, comm->context + 1, &status);
	if (err == MPI_SUCCESS)
		*received = mpi_status_bytes(&status);
	return err;
}

int mpi_coll_waitall(struct mpi_request **request, int n)
{
	int first = MPI_SUCCESS;

	for (int i = 0; i < n; i++) {
		int err;

		if (!request[i])
			continue;
		mpi_request_wait(request[i]);
		err = mpi_request_finish(request[i], MPI_STATUS_IGNORE);
		if (err && !first)
			first = err;
	}
	return first;
}
