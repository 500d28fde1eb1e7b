/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * One-sided operations under way by way of Portals. Each has a record; its number travels in the
 * lower half of the match bits and comes back with the acknowledgement or reply, so no memory
 * descriptor need be made for an operation: two cover the whole address space, and the offset in
 * them is the address.
 *
 * Requests that nothing accepts would never be answered. Therefore the last entry of the RMA
 * portal takes everything and stores nothing: an answer of 0 bytes means that there was no such
 * memory.
 */
#ifndef MPI_SHIM_RMA_H
#define MPI_SHIM_RMA_H

#include <portals3_ext.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/rma/win.h"

/* Memory of an operation that goes with it. */
struct mpi_rma_chunk {
	struct mpi_rma_chunk *next;
	char data[];
};

struct mpi_rma {
	struct mpi_win *win; /* NULL: the record is free */
	int rank;
	uint32_t index;
	uint32_t large; /* of its parts, those that are long */
	uint32_t parts; /* answers that are still to come, and one while it is being started */
	bool starting;  /* ... which is not over yet */
	bool forsaken;  /* its target has died; answers may still come */
	bool told;      /* its error was returned by the call that started it */
	bool segments;  /* it is long, and faster in pieces than as a whole */
	bool held;      /* whoever started it looks at it when it is over, and frees it */
	int error;
	struct mpi_rma_chunk *chunks; /* malloc'd: what its messages are sent from */
	void *tmp; /* malloc'd: what the operation reads or writes instead of the user's memory */
	char few[64];       /* the same, for little */
	const void *packed; /* a get: goes to the user's memory when it is complete */
	void *buf;
	MPI_Count count;
	struct mpi_type *type, *basic; /* packed holds elements of `basic`, NULL: packed data */
	struct mpi_request *request;
	uint32_t next; /* free list: index + 1 */
};

/* At the first window; what it makes stays until MPI_Finalize. */
int mpi_rma_init(void);
void mpi_rma_fini(void);

/* What came goes to its places: packed data, or an array of elements of `basic`, which may have
 * gaps. */
void mpi_rma_store(const char *from, const struct mpi_type *basic, void *buf, MPI_Count count,
		   const struct mpi_type *type);

/* An entry of the portal for memory that others may read and change. *number is what names it. */
int mpi_rma_expose(void *start, uint64_t bytes, uint32_t *number, ptl_handle_me_t *me);
void mpi_rma_hide(ptl_handle_me_t me);

/* A record of an operation, with one part. NULL: kept MPI_ERR_NO_MEM. */
struct mpi_rma *mpi_rma_begin(struct mpi_win *win, int rank);
/* All parts are started. The record may be gone. */
void mpi_rma_started(struct mpi_rma *op);
/* Not all could be started, and the caller returns `error`; mpi_rma_started is still due. */
void mpi_rma_fail(struct mpi_rma *op, int error);
/* A held one: waits, frees it. */
int mpi_rma_wait(struct mpi_rma *op);

/* Parts of an operation; `number` and `offset` say where at the target. Wait if too many are
 * under way. */
int mpi_rma_put(struct mpi_rma *op, const void *from, size_t bytes, uint32_t number,
		uint64_t offset);
/* A put without a record, of which nobody hears before the next flush; `pieces` as in a record.
 * Returns how many of its bytes could go so. */
size_t mpi_rma_put_along(struct mpi_win *win, int rank, const void *from, size_t bytes,
			 uint32_t number, uint64_t offset, bool segments);
int mpi_rma_get(struct mpi_rma *op, void *to, size_t bytes, uint32_t number, uint64_t offset);
/* `to` NULL: nothing comes back. `bytes` at the target, at most MPI_RMA_ATOMIC_MOST, of a
 * compare and swap half. */
int mpi_rma_atomic(struct mpi_rma *op, const void *from, void *to, size_t bytes, uint32_t number,
		   uint64_t offset, ptl_atomic_op_t what, ptl_atomic_type_t type);
#define MPI_RMA_ATOMIC_MOST 4096

/* ---- runs.c ---------------------------------------------------------------------------------- */

#define MPI_RMA_GROUPS 96

struct mpi_rma_place;

/* Runs that go in one message. */
struct mpi_rma_batch {
	struct mpi_rma *op;
	bool moves; /* put and get: runs by themselves need not be atomic */
	ptl_atomic_op_t what;
	ptl_atomic_type_t type;
	size_t element;   /* bytes that must lie together */
	const char *from; /* the data of all runs lie one after the other */
	char *to;
	size_t bytes;
	uint64_t base; /* the runs' offsets count from here */
	uint32_t number, span, groups;
	ptl_atomic_run_t group[MPI_RMA_GROUPS];
};

void mpi_rma_batch_begin(struct mpi_rma_batch *b, struct mpi_rma *op, bool moves,
			 ptl_atomic_op_t what, ptl_atomic_type_t type, size_t element);
/*
 * Adds runs. `from` and `to` follow those of the runs before; NULL: nothing is sent but what may
 * be anything, or nothing comes back. In the end what is left goes.
 */
int mpi_rma_batch_add(struct mpi_rma_batch *b, const struct mpi_rma_place *place, const char *from,
		      char *to, const struct mpi_runs *r);
int mpi_rma_batch_end(struct mpi_rma_batch *b);

/* Until all operations to the target are over; its error, which is told once. */
int mpi_rma_flush(struct mpi_win *win, int rank);
int mpi_rma_flush_all(struct mpi_win *win);

/* ---- op.c ------------------------------------------------------------------------------------ */

/* What an operation is to: epoch, rank and range are checked. *none: MPI_PROC_NULL, nothing is
 * to be done. */
struct mpi_rma_place {
	struct mpi_win_target *t;
	char *here; /* of displacement 0 of the target's data, if it is mapped; else NULL */
	uint32_t number;
	/* else of the same in the memory `number` names; may be before its beginning */
	uint64_t offset;
	/* number 0, dynamic windows: its address there; runs may be in different memory */
	uint64_t far;
};
/* Number and offset of a run of the target's data, `at` from displacement 0; *bytes: those that
 * are there together, whole elements. */
int mpi_rma_find(struct mpi_win *win, const struct mpi_rma_place *place, MPI_Aint at,
		 size_t element, size_t *bytes, uint32_t *number, uint64_t *offset);
int mpi_rma_locate(struct mpi_win *win, int rank, MPI_Aint disp, MPI_Count count,
		   const struct mpi_type *type, struct mpi_rma_place *place, bool *none);
/* A request of an operation that is over. */
int mpi_rma_request_done(struct mpi_request **request);
/* A request for a record, that ends with it. */
int mpi_rma_request(struct mpi_rma *op, struct mpi_request **request);

/* ---- atomic.c -------------------------------------------------------------------------------- */

/*
 * Elements of one predefined type, in memory mapped here: each of n at `at` becomes in[i] op
 * at[i], what was there goes to out[i] (NULL: nowhere). Atomic against the same in other
 * processes. in may be NULL for MPI_NO_OP.
 */
int mpi_rma_direct(struct mpi_win *win, struct mpi_win_target *t, void *at, const void *in,
		   void *out, size_t n, const struct mpi_type *basic, struct mpi_op *op);
void mpi_rma_direct_cas(struct mpi_win *win, struct mpi_win_target *t, void *at,
			const void *compare, const void *in, void *out, size_t size);

#endif
