/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Requests: operations in progress. A start function of p2p.h makes a request, progress
 * completes it, and mpi_request_finish ends it. After MPI_Request_free its completion ends it.
 * The global lock guards all requests.
 */
#ifndef MPI_SHIM_REQUEST_H
#define MPI_SHIM_REQUEST_H

#include <mpi.h>
#include <portals3.h>

#include "mpi_shim/core/handle.h"

struct mpi_bucket;
struct mpi_comm;
struct mpi_type;
struct mpi_unexpected;

enum mpi_request_kind {
	MPI_REQ_SEND,
	MPI_REQ_RECV,
	MPI_REQ_GENERALIZED,
	MPI_REQ_RMA,   /* rma.h: ends with its operation */
	MPI_REQ_HOOK,  /* consists of other operations: hooks.h */
	MPI_REQ_FILE,  /* io/nonblocking.c: has a count of bytes */
	MPI_REQ_PSEND, /* partitioned.h */
	MPI_REQ_PRECV,
	MPI_REQ_KINDS
};

struct mpi_request {
	struct mpi_obj obj;
	/* Zero in a new request, but for kind and parts. */
	uint8_t kind; /* enum mpi_request_kind */
	bool done;    /* true also for an inactive persistent request */
	bool persistent;
	bool active; /* started and not yet waited for */
	bool freed;  /* MPI_Request_free: nobody will wait */
	bool cancelled;
	bool differs;  /* recv: the message is of another collective call */
	uint8_t mode;  /* enum mpi_send_mode */
	uint8_t state; /* private to send.c and recv.c */
	int error;     /* code, once done */
	int parts;
	struct mpi_request *parent; /* done when its parts are done */
	struct mpi_type *type;      /* referenced */
	struct mpi_comm *comm;      /* referenced */
	void *packed;               /* malloc'd if the datatype has gaps */
	void *segment;              /* in the attached buffer, see buffered.h */
	char *error_text;           /* malloc'd; NULL: text of the class */
	struct mpi_generalized *generalized;
	union {
		/* Of a collective: its schedule, while active or persistent. */
		struct mpi_schedule *schedule;
		/* Send, recv: the operation fails when any rank of this communicator has died. */
		struct mpi_comm *whole;
		struct mpi_partitioned *partitioned; /* of PSEND and PRECV */
	};
	uint32_t win; /* handle of the window of a one-sided operation, or of the file */
	/* From here on a new request has the values of its last user, where it has no use for
	 * them. */
	int peer;         /* as asked for; may be MPI_ANY_SOURCE */
	int tag;          /* as asked for */
	int source, came; /* recv, once done: rank and tag of the message */
	uint64_t context; /* context of the match bits; above it a collective's mark (calls.h) */
	MPI_Count bytes;  /* send: length of the message; recv: room, then length received */
	char *data;       /* the bytes on the wire: in the user's buffer, or `packed` */
	void *buf;
	MPI_Count count;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	uint8_t eq;   /* index of the queue in which it has reserved room */
	uint8_t open; /* recv: which fields are open, an index as in mpi_open_of */
	int world;    /* send: world rank of the receiver; recv by get: of the sender */
	struct mpi_request *next, *prev; /* sends that wait for a slot; receives in posted.c */
	struct mpi_request *chain_next, *chain_prev; /* posted.c: chain of equal hash */
	struct mpi_bucket *bucket;                   /* its bucket */
	uint64_t serial;
	/* Long send: its number on the READ portal. Recv: the header data of the message. */
	uint64_t number;
	uint64_t bits;  /* recv: match bits asked for; recv by get: of the message */
	MPI_Count sent; /* recv: length of the message */
	MPI_Count room; /* recv: bytes of the buffer */
};

/* The functions that differ between kinds of requests. NULL: the default, or nothing to do. */
struct mpi_request_ops {
	/* Starts a persistent request again. */
	int (*launch)(struct mpi_request *r);
	/* Handles an event whose descriptor names the request. */
	void (*event)(struct mpi_request *r, const ptl_event_t *ev);
	/* Unlinks the exposed memory of a request that is over. False: events that name it may
	 * still come. */
	bool (*settled)(struct mpi_request *r);
	/* Fills the status of a done request and returns its error. */
	int (*status)(struct mpi_request *r, MPI_Status *status);
	/* Ends the request, after the user has got the status. Returns its error, or 0 to keep
	 * that of the status. */
	int (*finish)(struct mpi_request *r);
	/* Releases what only this kind of request owns. */
	void (*free)(struct mpi_request *r);
	/* Whether the request in progress ends without anything that a rank must still do: its
	 * message is on its way. */
	bool (*moves)(const struct mpi_request *r);
};

extern struct mpi_request_ops mpi_request_ops[MPI_REQ_KINDS];

/* The request of every send that was over when it started. */
extern struct mpi_request mpi_request_sent;

/* Marks the request as failed. The text has the form of mpi_fail's. */
void mpi_request_fail(struct mpi_request *r, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));

/* Makes progress until *r is done, and waits if need be. The global lock is released while
 * waiting. */
void mpi_request_wait(struct mpi_request *r);

/* Takes the result of a done request: fills the status (may be MPI_STATUS_IGNORE) and returns
 * the error, with its text kept as by mpi_fail. Drops the reference of the handle: the request
 * is gone, or inactive if persistent. */
int mpi_request_finish(struct mpi_request *r, MPI_Status *status);

/* Fills a status as for a receive from MPI_PROC_NULL: `source`, no bytes. MPI_ERROR keeps its
 * value (MPI-4 §3.2.5). */
void mpi_status_none(MPI_Status *status, int source);
/* Fills the empty status of a null or inactive request. */
void mpi_status_empty(MPI_Status *status);
/* MPI_internal holds the count and the cancelled flag. `status` must not be MPI_STATUS_IGNORE. */
void mpi_status_set_bytes(MPI_Status *status, MPI_Count bytes, bool cancelled);
MPI_Count mpi_status_bytes(const MPI_Status *status);
bool mpi_status_cancelled(const MPI_Status *status);

/* ---- for the library ----------------------------------------------------------------------- */

void mpi_requests_init(void);

/* Whether a send is in progress that nobody waits for, or a partitioned operation is to end. */
bool mpi_requests_freed(void);

/* Keeps MPI_ERR_NO_MEM and returns NULL. */
struct mpi_request *mpi_request_none(void) __attribute__((cold));

/* Makes a request of one part. NULL: MPI_ERR_NO_MEM is kept. */
static inline struct mpi_request *mpi_request_new(enum mpi_request_kind kind)
{
	struct mpi_request *r = mpi_object_take(MPI_KIND_REQUEST);

	if (__builtin_expect(!r, 0))
		return mpi_request_none();
	/* Field by field, since `kind` is a constant: a call or a string instruction would take
	 * longer. */
	r->kind = (uint8_t)kind;
	r->done = r->persistent = r->active = r->freed = r->cancelled = r->differs = false;
	r->mode = r->state = 0;
	r->error = MPI_SUCCESS;
	r->parts = 1;
	r->parent = NULL;
	r->type = NULL;
	r->comm = NULL;
	r->packed = r->segment = NULL;
	r->error_text = NULL;
	r->generalized = NULL;
	r->schedule = NULL;
	r->win = 0;
	return r;
}

/* Marks one part, or the whole request, as done. Then frees the packed bytes, settles the
 * parent, and frees the request if nobody will wait for it. */
void mpi_request_settle(struct mpi_request *r);

/* The number of parts with which a request takes the short path below. No request has the
 * second one: it sends all to mpi_request_settle, while a tool watches their ends (events.h). */
#define MPI_PLAIN_PARTS 1
#define MPI_PLAIN_NEVER (-1)
extern int mpi_request_plain;

/* As mpi_request_settle, with a short path for the common case. */
static inline void mpi_request_done(struct mpi_request *r)
{
	if (r->parts == mpi_request_plain && !((uintptr_t)r->packed | (uintptr_t)r->parent) &&
	    !r->freed)
		r->done = true;
	else
		mpi_request_settle(r);
}

/* As mpi_request_done, but only when no event can name the request any more. For long sends. */
void mpi_request_done_later(struct mpi_request *r);
/* Fills the status of a done request, which stays, and returns its error. */
int mpi_request_status(struct mpi_request *r, MPI_Status *status);

#endif
