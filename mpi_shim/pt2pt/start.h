/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Starting operations, in two halves for persistent requests: prepare makes the request, launch
 * starts it, any number of times. Also how sends and receives end early. All functions need the
 * global lock. mpi_send_now may block, and releases it meanwhile; mpi_recv_launch may yield it.
 */
#ifndef MPI_SHIM_START_H
#define MPI_SHIM_START_H

#include "mpi_shim/pt2pt/p2p.h"

int mpi_send_prepare(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		     struct mpi_comm *comm, uint64_t context, enum mpi_send_mode mode,
		     struct mpi_request **request);
int mpi_recv_prepare(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		     struct mpi_comm *comm, uint64_t context, struct mpi_request **request);

/* On error the request stays as it was, not started. */
int mpi_send_launch(struct mpi_request *r);
int mpi_recv_launch(struct mpi_request *r);

/* A blocking send. */
int mpi_send_now(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		 struct mpi_comm *comm, uint64_t context, enum mpi_send_mode mode);

/* Sends to a rank that may not be waiting for the message. With credit for a short message it
 * carries these bytes. Else it is empty and may go later (MPI_SEND_NO_MEMORY). The caller need
 * not wait for anything. */
void mpi_send_notice(const void *buf, size_t bytes, int dest, int tag, struct mpi_comm *comm,
		     uint64_t context);

/* Returns MPI_SUCCESS and the length of a message in *bytes, or MPI_ERR_COUNT. */
int mpi_message_bytes(const struct mpi_type *type, MPI_Count count, MPI_Count *bytes);

/* Gives the receive a message that is off the list. */
void mpi_recv_take(struct mpi_request *r, struct mpi_unexpected *u);

/* Gives the receive the bytes of a short message. */
void mpi_recv_short(struct mpi_request *r, uint64_t bits, uint64_t hdr, const void *data,
		    MPI_Count bytes);

/* Cancel a posted receive, if no message has matched it, and a send, if no receive has matched
 * it. */
void mpi_recv_cancel(struct mpi_request *r);
void mpi_send_cancel(struct mpi_request *r);
/* Whether this is a long send to this process that is in progress. */
bool mpi_send_to_self(const struct mpi_request *r);

/* End an operation whose peer has died with MPI_ERR_PROC_ABORTED, as soon as Portals permits. */
void mpi_recv_abandon(struct mpi_request *r, int source);
void mpi_send_abandon(struct mpi_request *r);
/* End an operation whose peer lives, because another rank has died or because ranks disagree.
 * The error is `code`, with the kept text. If the peer has matched the operation already, it
 * ends by itself. */
void mpi_recv_give_up(struct mpi_request *r, int code);
void mpi_send_give_up(struct mpi_request *r, int code);
/* The functions of send and receive requests. */
extern const struct mpi_request_ops mpi_send_ops, mpi_recv_ops;

#endif
