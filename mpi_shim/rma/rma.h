/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * One-sided operations in progress by Portals. The callers choose the path: op.c for put and
 * get, accumulate.c for accumulates.
 *
 * Each operation has a record. The record's number travels in the lower half of the match bits
 * and comes back with the acknowledgement or reply. So no memory descriptor is made for an
 * operation: two descriptors cover the whole address space, and the offset in them is the
 * address.
 *
 * A request that no entry accepts would never be answered. Therefore the last entry of the RMA
 * portal accepts every request and stores nothing. An answer of 0 bytes means that there was
 * no such memory.
 *
 * Functions return an MPI error class, with the text kept by mpi_fail(). All are called with
 * the library's lock held. The functions that start parts may block for room, and make
 * progress meanwhile. Ranks are those of the window, lengths are in bytes, and pointers may
 * not be NULL unless stated.
 */
#ifndef MPI_SHIM_RMA_H
#define MPI_SHIM_RMA_H

#include <portals3_ext.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/rma/win.h"

/* Memory that lives as long as the operation. */
struct mpi_rma_chunk {
	struct mpi_rma_chunk *next;
	char data[];
};

struct mpi_rma {
	struct mpi_win *win; /* NULL: the record is free */
	int rank;
	uint32_t index;
	uint32_t large; /* unanswered parts that are long (see LARGE in rma.c) */
	uint32_t parts; /* answers still to come, plus one while the operation is being started */
	bool starting;  /* more parts may still be started */
	bool forsaken;  /* its target has died; answers may still come */
	bool reported;  /* its error was returned by the call that started it */
	bool segments;  /* it is long, and faster in segments than as a whole */
	bool held;      /* its starter waits for it and frees it */
	int error;
	struct mpi_rma_chunk *chunks; /* malloc'd: its messages are sent from here */
	void *tmp;                    /* malloc'd: read or written instead of the user's memory */
	char few[64];                 /* the same, for a few bytes */
	const void *packed;           /* a get: copied to the user's memory at completion */
	void *buf;
	MPI_Count count;
	struct mpi_type *type, *basic; /* packed holds elements of `basic`, NULL: packed data */
	struct mpi_request *request;
	uint32_t next; /* free list: index + 1 */
};

/* Set up at the first window; a later call does nothing. The portal and its queue stay until
 * MPI_Finalize. */
int mpi_rma_init(void);
void mpi_rma_fini(void);

/* Unpack received data into the user's buffer. `from` is packed data if `basic` is NULL; else it
 * is an array of elements of `basic`, which may have gaps. */
void mpi_rma_store(const char *from, const struct mpi_type *basic, void *buf, MPI_Count count,
		   const struct mpi_type *type);

/* Expose memory to the other ranks by an entry of the portal. *number identifies it in the match
 * bits. mpi_rma_hide() waits until no transfer uses the entry. */
int mpi_rma_expose(void *start, uint64_t bytes, uint32_t *number, ptl_handle_me_t *me);
void mpi_rma_hide(ptl_handle_me_t me);

/* Make the record of an operation, with one part. NULL: out of memory, with MPI_ERR_NO_MEM kept. */
struct mpi_rma *mpi_rma_begin(struct mpi_win *win, int rank);
/* All parts are started. The record may be freed by this call. */
void mpi_rma_started(struct mpi_rma *op);
/* Not all parts could be started, and the caller returns `error`. mpi_rma_started() is still
 * due. */
void mpi_rma_fail(struct mpi_rma *op, int error);
/* Wait for an operation and free its record; replaces mpi_rma_started(). Returns the operation's
 * error. */
int mpi_rma_wait(struct mpi_rma *op);

/* Start parts of an operation. `number` and `offset` name the memory at the target. They block
 * while too many parts are in progress. The user's memory must stay until the operation is over. */
int mpi_rma_put(struct mpi_rma *op, const void *from, size_t bytes, uint32_t number,
		uint64_t offset);
/* Put data without a record. The answer to a later put confirms it, at the latest at the next
 * flush. `segments` as in a record. Returns how many of the bytes, from the first on, could be
 * sent this way. */
size_t mpi_rma_put_along(struct mpi_win *win, int rank, const void *from, size_t bytes,
			 uint32_t number, uint64_t offset, bool segments);
int mpi_rma_get(struct mpi_rma *op, void *to, size_t bytes, uint32_t number, uint64_t offset);
/* `to` NULL: nothing comes back. `bytes` counts bytes at the target: at most
 * MPI_RMA_ATOMIC_MOST, and half of that for a compare and swap. */
int mpi_rma_atomic(struct mpi_rma *op, const void *from, void *to, size_t bytes, uint32_t number,
		   uint64_t offset, ptl_atomic_op_t what, ptl_atomic_type_t type);
#define MPI_RMA_ATOMIC_MOST 4096

/* ---- runs.c ---------------------------------------------------------------------------------- */

#define MPI_RMA_GROUPS 96

struct mpi_rma_place;

/* Runs that travel in one message. */
struct mpi_rma_batch {
	struct mpi_rma *op;
	bool moves; /* put or get: a run need not be atomic */
	ptl_atomic_op_t what;
	ptl_atomic_type_t type;
	size_t element;   /* bytes that must lie together */
	const char *from; /* data of all runs, one after the other */
	char *to;
	size_t bytes;
	uint64_t base; /* the runs' offsets count from here */
	uint32_t number, span, groups;
	ptl_atomic_run_t group[MPI_RMA_GROUPS];
};

void mpi_rma_batch_begin(struct mpi_rma_batch *b, struct mpi_rma *op, bool moves,
			 ptl_atomic_op_t what, ptl_atomic_type_t type, size_t element);
/*
 * Add runs. `from` and `to` must follow those of the runs added before. `from` NULL: any data
 * may be sent. `to` NULL: nothing comes back. A full message is sent at once;
 * mpi_rma_batch_end() sends the rest.
 */
int mpi_rma_batch_add(struct mpi_rma_batch *b, const struct mpi_rma_place *place, const char *from,
		      char *to, const struct mpi_runs *r);
int mpi_rma_batch_end(struct mpi_rma_batch *b);

/* Wait until all operations to the target, or to all targets, are over. Return the error of a
 * failed one; each error is reported once. */
int mpi_rma_flush(struct mpi_win *win, int rank);
int mpi_rma_flush_all(struct mpi_win *win);

/* ---- op.c ------------------------------------------------------------------------------------ */

/* The target memory of an operation. mpi_rma_locate() checks epoch and range. *none: there is
 * nothing to do (MPI_PROC_NULL or no data). */
struct mpi_rma_place {
	struct mpi_win_target *t;
	char *here; /* local address of the operation's displacement, if mapped; else NULL */
	uint32_t number;
	/* the same place as an offset in the memory that `number` names; may be before its
	 * beginning */
	uint64_t offset;
	/* `number` is 0, in dynamic windows only: the target's address; the runs may be in
	 * different memory */
	uint64_t far;
};
/* Find number and offset of a run of the target's data that begins `at` bytes from the
 * operation's displacement. *bytes is reduced to the whole elements that are contiguous there. */
int mpi_rma_find(struct mpi_win *win, const struct mpi_rma_place *place, MPI_Aint at,
		 size_t element, size_t *bytes, uint32_t *number, uint64_t *offset);
int mpi_rma_locate(struct mpi_win *win, int rank, MPI_Aint disp, MPI_Count count,
		   const struct mpi_type *type, struct mpi_rma_place *place, bool *none);
/* Make a request that is already complete. */
int mpi_rma_request_done(struct mpi_request **request);
/* Make a request that completes with the record. */
int mpi_rma_request(struct mpi_rma *op, struct mpi_request **request);

/* ---- atomic.c -------------------------------------------------------------------------------- */

/*
 * Accumulate n elements of one predefined type in memory that is mapped here. Element i at `at`
 * becomes in[i] op at[i]. The old value goes to out[i], or nowhere if `out` is NULL. Atomic
 * against the same function in other processes. `in` may be NULL for MPI_NO_OP.
 */
int mpi_rma_direct(struct mpi_win *win, struct mpi_win_target *t, void *at, const void *in,
		   void *out, size_t n, const struct mpi_type *basic, struct mpi_op *op);
void mpi_rma_direct_cas(struct mpi_win *win, struct mpi_win_target *t, void *at,
			const void *compare, const void *in, void *out, size_t size);

#endif
