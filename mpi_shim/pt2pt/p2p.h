/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Point-to-point messages for the rest of the shim. The user's messages use the communicator's
 * context, those of collectives use context + 1. Arguments must be valid: ranks exist or are
 * MPI_PROC_NULL, tags are not negative, types are committed. The global lock is held; blocking
 * calls release it while they wait.
 *
 * All functions return MPI_SUCCESS or mpi_fail(...).
 */
#ifndef MPI_SHIM_P2P_H
#define MPI_SHIM_P2P_H

#include <mpi.h>

#include "mpi_shim/core/object.h"
#include "mpi_shim/core/request.h"
#include "mpi_shim/datatype/type.h"

/* NO_MEMORY: an empty message of a collective, which says that its sender is out of memory or
 * depends on such a rank. Its receive ends with MPI_ERR_OTHER. */
enum mpi_send_mode {
	MPI_SEND_STANDARD,
	MPI_SEND_SYNC,
	MPI_SEND_READY,
	MPI_SEND_BUFFERED,
	MPI_SEND_NO_MEMORY
};

/* `context`: comm->context or comm->context + 1. *request has one reference, the caller's. When
 * a message of a collective has a request and then runs out of memory, its receiver is told,
 * before the request is done. */
int mpi_start_send(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		   struct mpi_comm *comm, uint64_t context, enum mpi_send_mode mode,
		   struct mpi_request **request);
int mpi_start_recv(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		   struct mpi_comm *comm, uint64_t context, struct mpi_request **request);

/* ---- for collectives: on the collective context ---------------------------------------------- */

int mpi_coll_send(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		  struct mpi_comm *comm);
/* *received: number of bytes that came; `received` may be NULL. */
int mpi_coll_recv(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		  struct mpi_comm *comm, MPI_Count *received);
int mpi_coll_isend(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		   struct mpi_comm *comm, struct mpi_request **request);
int mpi_coll_irecv(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		   struct mpi_comm *comm, struct mpi_request **request);
/* *received: number of bytes that came; `received` must not be NULL. */
int mpi_coll_sendrecv(const void *sendbuf, MPI_Count sendcount, struct mpi_type *sendtype, int dest,
		      void *recvbuf, MPI_Count recvcount, struct mpi_type *recvtype, int source,
		      int tag, struct mpi_comm *comm, MPI_Count *received);
/* Waits for all requests and ends them, also after an error. Skips NULL entries. Returns the
 * first error. */
int mpi_coll_waitall(struct mpi_request **request, int n);

#endif
