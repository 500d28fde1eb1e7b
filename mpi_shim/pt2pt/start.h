/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The two halves of starting an operation, for persistent requests: prepare makes the request,
 * launch starts it, any number of times.
 */
#ifndef MPI_SHIM_START_H
#define MPI_SHIM_START_H

#include "mpi_shim/pt2pt/p2p.h"

int mpi_send_prepare(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		     struct mpi_comm *comm, uint64_t context, enum mpi_send_mode mode,
		     struct mpi_request **request);
int mpi_recv_prepare(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		     struct mpi_comm *comm, uint64_t context, struct mpi_request **request);

/* An error leaves the request as it was, not started. */
int mpi_send_launch(struct mpi_request *r);
int mpi_recv_launch(struct mpi_request *r);

/* A blocking send. */
int mpi_send_now(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		 struct mpi_comm *comm, uint64_t context, enum mpi_send_mode mode);

/* To a rank that may not be waiting for it: with these bytes if there is credit for a short
 * message, else empty, and it may go later (MPI_SEND_NO_MEMORY). Nothing has to be waited for. */
void mpi_send_notice(const void *buf, size_t bytes, int dest, int tag, struct mpi_comm *comm,
		     uint64_t context);

/* MPI_SUCCESS and the bytes of a message, or MPI_ERR_COUNT. */
int mpi_message_bytes(const struct mpi_type *type, MPI_Count count, MPI_Count *bytes);

/* The receive takes this message, which is off the list. */
void mpi_recv_take(struct mpi_request *r, struct mpi_unexpected *u);

/* The receive takes the bytes of a short message. */
void mpi_recv_short(struct mpi_request *r, uint64_t bits, uint64_t hdr, const void *data,
		    MPI_Count bytes);

/* Takes a posted receive back, if no message has it; and a send, if no receive has it. */
void mpi_recv_cancel(struct mpi_request *r);
void mpi_send_cancel(struct mpi_request *r);
/* A long send to this process that is under way. */
bool mpi_send_to_self(const struct mpi_request *r);

/* The other side has died: the operation ends with MPI_ERR_PROC_ABORTED, as soon as Portals lets
 * it. */
void mpi_recv_abandon(struct mpi_request *r, int source);
void mpi_send_abandon(struct mpi_request *r);
/* The same while the other side lives, for want of another rank or because ranks disagree: with
 * this error and the text that is kept, unless the other side has it and it ends by itself. */
void mpi_recv_give_up(struct mpi_request *r, int code);
void mpi_send_give_up(struct mpi_request *r, int code);
/* Sends and receives are what these say. */
extern const struct mpi_request_ops mpi_send_ops, mpi_recv_ops;

#endif
