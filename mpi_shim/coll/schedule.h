/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Schedules of collectives. Each algorithm is written once, as a sequence of operations of this
 * rank: sends, receives, waits, copies and reductions. A blocking collective carries each
 * operation out while the schedule is made, so a schedule costs it nothing. For a non-blocking
 * collective the operations are recorded. Every round of progress (hooks.h) then carries them
 * out as far as it can without waiting. A persistent collective keeps the recorded operations.
 *
 *   mpi_schedule_recv(p, ...);      begins at once, as sends do, and ends in the next
 *   mpi_schedule_wait(p);           ... wait for all that has begun; every schedule ends with one
 *   mpi_schedule_apply(p, ...);     works on what has been received
 *
 * Do not read data in the code that makes a schedule: they have not arrived yet. So a copy of
 * data is an operation, too. An error while an operation is carried out does not stop the
 * operations after it, so that no other rank waits for ever. The first error is kept. An error
 * while the schedule is made is returned, and the rank takes no part.
 *
 * Out of memory. Other ranks wait for a collective whose memory runs out while it is carried
 * out; a blocking one is carried out from its beginning. Its schedule has then failed.
 * It still sends and receives in step, but its messages are empty and marked
 * (MPI_BITS_NO_MEMORY), and it ignores what it receives. A rank that gets a marked message
 * fails too, so every rank whose result is incomplete learns of it. If there is no memory for a
 * marked message either, it waits for memory (send.c). It is left out only if there is no
 * memory for its request.
 *
 * Dead ranks. When a rank of the communicator has died, a collective ends with
 * MPI_ERR_PROC_ABORTED. It ends at each rank wherever it is, as soon as that rank knows. All
 * later collectives end at once. Nothing is sent in place of missing data. Nobody waits for the
 * living ranks, which may have left already; each finds out by itself. Messages that have
 * arrived meanwhile are never received. So the context of such a communicator is never given to
 * another one.
 *
 * The messages of a non-blocking schedule have a tag of their own on the collective context, so
 * several schedules can be under way. Blocking ones follow each other and share one tag. The
 * messages that a schedule receives are compared with its call (calls.h).
 *
 * Functions are called with the MPI lock held, if threads need one. Only a blocking schedule
 * may block.
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

/* Tags of all schedules but blocking ones, by their number. Tags for making communicators lie
 * above. */
#define MPI_TAG_SCHEDULES      0x100
#define MPI_TAG_SCHEDULES_MASK 0x1fffffffu

enum {
	MPI_TAG_BLOCKING = 1,
	MPI_TAG_LEADERS,  /* between node leaders; coll/shm/nodes.c */
	MPI_TAG_LAST,     /* mpi_coll_last_barrier: nothing of an earlier one interferes */
	MPI_TAG_DISAGREE, /* what ranks disagree about; calls.c */
};

#define MPI_SCHEDULE_FEW   32   /* messages between two waits that need no memory */
#define MPI_SCHEDULE_SMALL 1536 /* bytes of temporary buffers that need none */
#define MPI_SCHEDULE_HEAPS 6

struct mpi_schedule {
	struct mpi_hook steps; /* the progress hook; first */
	bool now;              /* carried out while it is made */
	bool failed;           /* failed: it only sends and receives in step */
	bool gone;             /* the remaining operations are left out */
	struct mpi_comm *comm; /* NULL: ranks may die, and it goes on */
	int tag;
	uint64_t mark; /* of its messages; 0: they are not compared (calls.h) */
	int rc;        /* the first error */
	struct mpi_request *request;
	struct mpi_schedule_op *ops; /* recorded */
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

/* ---- operations; buffers and types stay the caller's until the schedule has ended ------------ */

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
/* Pack `count` elements at `buf` into bytes at `data`; mpi_schedule_unpack() is the reverse. */
void mpi_schedule_pack(struct mpi_schedule *p, struct mpi_type *type, const void *buf,
		       MPI_Count count, void *data);
void mpi_schedule_unpack(struct mpi_schedule *p, struct mpi_type *type, void *buf, MPI_Count count,
			 const void *data);

/* ---- temporary buffers, which live as long as the schedule ---------------------------------- */

/* NULL (MPI_ERR_NO_MEM, text kept) if there is no memory. A blocking schedule fails then, and
 * gets an address for its operations. Only these may read or write there. */
char *mpi_schedule_bytes(struct mpi_schedule *p, MPI_Count bytes);
/* Memory for `count` elements laid out as the datatype says. Returns the address that a user
 * would pass. */
char *mpi_schedule_typed(struct mpi_schedule *p, MPI_Count count, const struct mpi_type *type);

/* ---- errors ---------------------------------------------------------------------------------- */

/* Keep the first error. */
void mpi_schedule_record(struct mpi_schedule *p, int rc);
/* The schedule fails: from here on it only sends and receives in step. */
void mpi_schedule_fail(struct mpi_schedule *p, int rc);

/* ---- from the call to the end ---------------------------------------------------------------- */

/* A blocking collective: begin, make unless begin failed, end. The end waits for all messages. */
int mpi_schedule_begin(struct mpi_schedule *p, struct mpi_comm *comm);
/* The same for one that waits for all living ranks, whatever happens to others. */
void mpi_schedule_begin_last(struct mpi_schedule *p);
int mpi_schedule_end(struct mpi_schedule *p, int rc);

/* Any other: new, make, then start or keep with the result of making it. NULL: out of memory.
 * Start and keep free the schedule on an error. */
struct mpi_schedule *mpi_schedule_new(struct mpi_comm *comm);
int mpi_schedule_start(struct mpi_schedule *p, int rc, struct mpi_request **request);
int mpi_schedule_keep(struct mpi_schedule *p, int rc, struct mpi_request **request);

/* Called before the first schedule; and at the end, to free the memory kept for the next ones. */
void mpi_schedules_init(void);
void mpi_schedules_fini(void);

#endif
