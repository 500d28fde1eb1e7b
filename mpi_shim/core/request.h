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

#include "mpi_shim/core/handle.h"

struct mpi_bucket;
struct mpi_comm;
struct mpi_type;
struct mpi_unexpected;

enum mpi_request_kind {
	MPI_REQ_SEND,
	MPI_REQ_RECV,
	MPI_REQ_GENERALIZED,
	MPI_REQ_RMA,  /* rma.h: ends with its operation */
	MPI_REQ_HOOK, /* made of others: hooks.h */
	MPI_REQ_KINDS
};

struct mpi_request {
	struct mpi_obj obj;
	/* zero in a new one, but for kind and parts */
	uint8_t kind; /* enum mpi_request_kind */
	bool done;    /* of a persistent one that is not active: true */
	bool persistent;
	bool active; /* started and not yet waited for */
	bool freed;  /* MPI_Request_free: nobody will wait */
	bool cancelled;
	bool differs;  /* recv: its message is of another collective call */
	uint8_t mode;  /* enum mpi_send_mode */
	uint8_t state; /* send.c's and recv.c's */
	int error;     /* code, of a request that is done */
	int parts;
	struct mpi_request *parent; /* is done when its parts are */
	struct mpi_type *type;      /* referenced */
	struct mpi_comm *comm;      /* referenced */
	void *packed;               /* malloc'd when the datatype has gaps */
	void *segment;              /* of the attached buffer, see buffered.h */
	char *error_text;           /* malloc'd; NULL: the class's own */
	struct mpi_generalized *generalized;
	union {
		struct mpi_schedule
			*schedule;      /* steps: while they are under way or if it is persistent */
		struct mpi_comm *whole; /* send, recv: in vain when any rank of this one has died */
	};
	uint32_t win; /* handle of the window of a one-sided operation */
	/* as its last user left it, where this one has no use for it */
	int peer;         /* rank asked for; may be MPI_ANY_SOURCE */
	int tag;          /* as asked for */
	int source, came; /* recv, done: rank and tag of the message */
	uint64_t context; /* of the match bits; above it the mark of a collective (calls.h) */
	MPI_Count bytes;  /* send: of the message; recv: there is room for, then received */
	char *data;       /* the bytes on the wire: in the user's buffer, or `packed` */
	void *buf;
	MPI_Count count;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	uint8_t eq;   /* index of the queue it has reserved room in */
	uint8_t open; /* recv: what it leaves open, an index as mpi_open_of has it */
	int world;    /* send: world rank of the receiver; recv that gets: of the sender */
	struct mpi_request *next, *prev; /* sends that wait for a slot; receives that wait here */
	struct mpi_request *chain_next, *chain_prev; /* posted.c: of equal hash, */
	struct mpi_bucket *bucket;                   /* and where */
	uint64_t serial;
	/* of a long send on the READ portal; recv: the header data of its message */
	uint64_t number;
	uint64_t bits;  /* recv: match bits asked for; of one that gets: of the message */
	MPI_Count sent; /* ... and its bytes */
	MPI_Count room; /* recv: bytes of the buffer */
};

/* What requests of one kind do in their own way. NULL: nothing, or what all do. */
struct mpi_request_ops {
	/* Starts a persistent one again. */
	int (*launch)(struct mpi_request *r);
	/* An event whose descriptor names it. */
	void (*event)(struct mpi_request *r, const ptl_event_t *ev);
	/* Takes back what was exposed of one that is over. False: events that name it may come. */
	bool (*settled)(struct mpi_request *r);
	/* Of one that is done: fills the status; its error. */
	int (*status)(struct mpi_request *r, MPI_Status *status);
	/* The user has got the status, and the request ends: its error, 0 to leave that of the
	 * status. */
	int (*finish)(struct mpi_request *r);
	/* It goes, with what it has that other kinds have not. */
	void (*free)(struct mpi_request *r);
};

extern struct mpi_request_ops mpi_request_ops[MPI_REQ_KINDS];

/* The request of every send that was over when it started. */
extern struct mpi_request mpi_request_sent;

/* The request ends in an error; texts as mpi_fail keeps them. */
void mpi_request_fail(struct mpi_request *r, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));

/* Makes progress, and waits if need be, until *r is done. The global lock is let go while
 * waiting. */
void mpi_request_wait(struct mpi_request *r);

/* Takes the result of a done request: status (may be MPI_STATUS_IGNORE), its error as return
 * value (with its text kept as by mpi_fail), and the reference of the handle: it is gone, or
 * inactive if persistent. */
int mpi_request_finish(struct mpi_request *r, MPI_Status *status);

/* A status as from a receive from MPI_PROC_NULL: nothing came from there. MPI_ERROR stays as it
 * is (MPI-4 §3.2.5). */
void mpi_status_none(MPI_Status *status, int source);
/* The empty status of a request that is null or inactive. */
void mpi_status_empty(MPI_Status *status);
/* The count and cancelled fields live in MPI_internal. MPI_STATUS_IGNORE is not allowed. */
void mpi_status_set_bytes(MPI_Status *status, MPI_Count bytes, bool cancelled);
MPI_Count mpi_status_bytes(const MPI_Status *status);
bool mpi_status_cancelled(const MPI_Status *status);

/* ---- for the library ----------------------------------------------------------------------- */

void mpi_requests_init(void);

/* Is there a send in progress that nobody waits for? */
bool mpi_requests_freed(void);

/* NULL, and kept MPI_ERR_NO_MEM. */
struct mpi_request *mpi_request_none(void) __attribute__((cold));

/* A request of one part. NULL: kept MPI_ERR_NO_MEM. */
static inline struct mpi_request *mpi_request_new(enum mpi_request_kind kind)
{
	struct mpi_request *r = mpi_object_take(MPI_KIND_REQUEST);

	if (__builtin_expect(!r, 0))
		return mpi_request_none();
	/* one by one, for `kind` is a constant: as a call or a string instruction it would take
	 * longer */
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

/* A part of it is done, or it: what was packed goes; its parent may be done, too; it is freed if
 * nobody will wait for it. */
void mpi_request_settle(struct mpi_request *r);

/* The same; mostly there is no more to it. */
static inline void mpi_request_done(struct mpi_request *r)
{
	if (r->parts == 1 && !((uintptr_t)r->packed | (uintptr_t)r->parent) && !r->freed)
		r->done = true;
	else
		mpi_request_settle(r);
}

/* The same, once no event can name it any more; a long send. */
void mpi_request_done_later(struct mpi_request *r);
/* The status of a done request, which stays; its error. */
int mpi_request_status(struct mpi_request *r, MPI_Status *status);

#endif
