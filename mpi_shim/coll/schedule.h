/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives as plans: every algorithm is written once, as a sequence of sends, receives,
 * waits, copies and reductions on this rank. A blocking collective carries each of them out
 * while the plan is made, so it costs nothing to have one. For a non-blocking collective they
 * are written down, and carried out as far as is possible without waiting in every round of
 * progress (hooks.h); a persistent one keeps what is written.
 *
 *   mpi_schedule_recv(p, ...);      begins at once, as sends do, and ends in the next
 *   mpi_schedule_wait(p);           ... wait for all that has begun; there is one at the end of
 *                               every plan
 *   mpi_schedule_apply(p, ...);     works on what has come
 *
 * So the code that makes a plan must not look at data, as they have not come yet: copying them,
 * too, is a step. What fails when it is carried out does not stop what follows, so that no other
 * rank waits for ever: the first error is kept. What fails when the plan is made is returned,
 * and the rank takes no part.
 *
 * Others wait for a collective when memory runs out while it is carried out, which a blocking
 * one is from its beginning. Then its plan is lost: it keeps step, but its messages are empty
 * and marked (MPI_BITS_NO_MEMORY), and what it receives is not looked at. Who gets a marked
 * message is lost, too, so that all whose result lacks something hear of it. A marked message
 * for which there is no memory either waits for that (send.c); only without memory for its
 * request it is not sent.
 *
 * When a rank of the communicator has died, a collective ends: at each rank as soon as that
 * knows, where it is, with MPI_ERR_PROC_ABORTED, and so do all after it, at once. Nothing is
 * passed on instead of what is lacking, nor is it waited for those that live, for they may be
 * gone from there as well; each finds out by itself. What has come meanwhile lies there, and is
 * asked for by nobody. So the context of such a communicator is never given to another one.
 *
 * Messages of a plan have a tag of its own on the collective context, so that several
 * non-blocking collectives can be under way; blocking ones come one after the other, and have
 * the same. What is received is compared with the call that the plan is of (calls.h).
 */
#ifndef MPI_SHIM_SCHEDULE_H
#define MPI_SHIM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi_shim/core/object.h"
#include "mpi_shim/core/request.h"
#include "mpi_shim/core/hooks.h"
#include "mpi_shim/datatype/type.h"

struct mpi_op;
struct mpi_schedule_op;

/* Tags of all but blocking ones, by the number of the plan; those of the making of communicators
 * lie above. */
#define MPI_TAG_SCHEDULES      0x100
#define MPI_TAG_SCHEDULES_MASK 0x1fffffffu

enum {
	MPI_TAG_BLOCKING = 1,
	MPI_TAG_LEADERS,  /* between the first ranks of nodes; coll/shm/nodes.c */
	MPI_TAG_LAST,     /* mpi_coll_last_barrier: none of an earlier one comes in between */
	MPI_TAG_DISAGREE, /* what ranks disagree about; calls.c */
};

#define MPI_SCHEDULE_FEW   32   /* messages between two waits that need no memory */
#define MPI_SCHEDULE_SMALL 1536 /* bytes of temporary buffers that need none */
#define MPI_SCHEDULE_HEAPS 6

struct mpi_schedule {
	struct mpi_hook steps; /* first */
	bool now;              /* carried out while it is made */
	bool lost;             /* from here on it keeps step, and that is all */
	bool gone;             /* the rest is left out */
	struct mpi_comm *comm; /* NULL: whose ranks may die, and it goes on */
	int tag;
	uint64_t mark; /* of its messages; 0: they are not compared (calls.h) */
	int rc;        /* the first error */
	struct mpi_request *request;
	struct mpi_schedule_op *ops; /* written down */
	int op_count, room, at;
	struct mpi_request **open; /* messages under way */
	int opens, open_room;
	void **heap; /* temporary buffers */
	int heaps, heap_room;
	size_t small_used;
	struct mpi_request *few[MPI_SCHEDULE_FEW];
	void *few_heaps[MPI_SCHEDULE_HEAPS];
	_Alignas(64) char small[MPI_SCHEDULE_SMALL];
};

/* ---- steps; buffers and types stay the caller's until the plan has ended --------------------- */

void mpi_schedule_send(struct mpi_schedule *p, const void *buf, MPI_Count count,
		       struct mpi_type *type, int dest, struct mpi_comm *comm);
void mpi_schedule_recv(struct mpi_schedule *p, void *buf, MPI_Count count, struct mpi_type *type,
		       int source, struct mpi_comm *comm);
void mpi_schedule_wait(struct mpi_schedule *p);
/* Both, and the wait for them. */
void mpi_schedule_sendrecv(struct mpi_schedule *p, const void *sendbuf, MPI_Count sendcount,
			   struct mpi_type *sendtype, int dest, void *recvbuf, MPI_Count recvcount,
			   struct mpi_type *recvtype, int source, struct mpi_comm *comm);
void mpi_schedule_copy(struct mpi_schedule *p, const void *from, MPI_Count from_count,
		       struct mpi_type *from_type, void *to, MPI_Count to_count,
		       struct mpi_type *to_type);
/* inout = in op inout */
void mpi_schedule_apply(struct mpi_schedule *p, struct mpi_op *op, const void *in, void *inout,
			MPI_Count count, struct mpi_type *type);
/* `count` elements at `buf` as bytes at `data`, and back. */
void mpi_schedule_pack(struct mpi_schedule *p, struct mpi_type *type, const void *buf,
		       MPI_Count count, void *data);
void mpi_schedule_unpack(struct mpi_schedule *p, struct mpi_type *type, void *buf, MPI_Count count,
			 const void *data);

/* ---- temporary buffers, which live as long as the plan --------------------------------------- */

/* NULL (MPI_ERR_NO_MEM, kept text) if there is no room; a blocking plan is lost then, and gets
 * an address for its steps, at which nothing may be written or read but by them. */
char *mpi_schedule_bytes(struct mpi_schedule *p, MPI_Count bytes);
/* Room for `count` elements laid out as the datatype says: the address that a user would pass. */
char *mpi_schedule_typed(struct mpi_schedule *p, MPI_Count count, const struct mpi_type *type);

/* ---- errors ---------------------------------------------------------------------------------- */

/* The first one is kept. */
void mpi_schedule_record(struct mpi_schedule *p, int rc);
/* From here on it keeps step, and that is all. */
void mpi_schedule_lose(struct mpi_schedule *p, int rc);

/* ---- from the call to the end ---------------------------------------------------------------- */

/* A blocking collective: begin, make unless that is an error, end. */
int mpi_schedule_begin(struct mpi_schedule *p, struct mpi_comm *comm);
/* The same of one that waits for all ranks that live, whatever happens to others. */
void mpi_schedule_begin_last(struct mpi_schedule *p);
int mpi_schedule_end(struct mpi_schedule *p, int rc);

/* Any other: new, make, then either of these with what making it returned. NULL: no memory. */
struct mpi_schedule *mpi_schedule_new(struct mpi_comm *comm);
int mpi_schedule_start(struct mpi_schedule *p, int rc, struct mpi_request **request);
int mpi_schedule_keep(struct mpi_schedule *p, int rc, struct mpi_request **request);

/* Before the first; and at the end: memory that is kept for the next collective goes. */
void mpi_schedules_init(void);
void mpi_schedules_fini(void);

#endif
