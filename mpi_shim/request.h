/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Requests: operations in progress. A request is made by a start function of p2p.h, completed by
 * progress, and ended by mpi_request_finish (or, with MPI_Request_free, by its completion).
 */
#ifndef MPI_SHIM_REQUEST_H
#define MPI_SHIM_REQUEST_H

#include <mpi.h>
#include <portals3.h>

#include "mpi_shim/handle.h"

struct mpi_comm;
struct mpi_type;
struct mpi_unexpected;

enum mpi_request_kind { MPI_REQ_SEND, MPI_REQ_RECV, MPI_REQ_GENERALIZED, MPI_REQ_DONE };

struct mpi_request {
	struct mpi_obj obj;
	/* one line with obj: what completion touches */
	uint8_t kind; /* enum mpi_request_kind */
	bool done;
	bool persistent;
	bool active; /* persistent: started and not yet waited for */
	bool freed;  /* MPI_Request_free: nobody will wait */
	bool cancelled;
	uint8_t mode;    /* enum mpi_send_mode */
	uint8_t state;   /* p2p.c's */
	int error;       /* class, of a request that is done */
	int source, tag; /* recv: what came, when done; as asked before */
	MPI_Count bytes; /* recv: bytes received; send: bytes of the message */
	void *data;      /* the bytes on the wire: the user's buffer, or `packed` */
	/* second line */
	void *packed; /* malloc'd when the datatype has gaps */
	void *buf;
	MPI_Count count;
	struct mpi_type *type; /* referenced */
	struct mpi_comm *comm; /* referenced */
	int peer;              /* rank asked for; may be MPI_ANY_SOURCE */
	uint32_t context;      /* of the match bits */
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	struct mpi_request *next; /* queue of sends that wait for a slot; list of pending ones */
	char *error_text;         /* malloc'd; NULL: the class's own */
	struct mpi_generalized *generalized;
	uint64_t id; /* sends: what late answers name it by */
};

/* As mpi_fail keeps it; for a request that ends in an error. */
void mpi_request_fail(struct mpi_request *r, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));

/* Makes progress, and waits if need be, until *r is done. MPI_SUCCESS, or the error of the wait itself
 * (a peer died). The global lock is let go while waiting. */
int mpi_request_wait(struct mpi_request *r);

/* Takes the result of a done request: status (may be MPI_STATUS_IGNORE), its error as return value
 * (with its text kept as by mpi_fail), and the reference of the handle: it is gone, or inactive if persistent. */
int mpi_request_finish(struct mpi_request *r, MPI_Status *status);

/* A status as from a receive from MPI_PROC_NULL (or, source MPI_ANY_SOURCE, the empty status). */
void mpi_status_empty(MPI_Status *status, int source);
/* The count and cancelled fields live in MPI_internal. */
void mpi_status_set_bytes(MPI_Status *status, MPI_Count bytes, bool cancelled);
MPI_Count mpi_status_bytes(const MPI_Status *status);
bool mpi_status_cancelled(const MPI_Status *status);

#endif
