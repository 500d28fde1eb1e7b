/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The calculations of PtlAtomic and PtlFetchAtomic. A NAL calls ptl_atomic_apply where it
 * would store the bytes of a put. It holds the target's region lock then, so nobody else
 * changes the target's memory through Portals.
 */
#ifndef PTL_ATOMIC_H
#define PTL_ATOMIC_H

#include <portals3_ext.h>
#include <stdbool.h>

/* Is `op` defined on `type`, and are `length` bytes whole elements? The numbers may come from
 * anywhere. */
bool ptl_atomic_valid(unsigned int op, unsigned int type, uint64_t length);

/* Bytes of operand that the initiator sends for `length` bytes at the target. `op` 0: not an
 * atomic, `length` bytes. */
static inline uint64_t ptl_atomic_operand(unsigned int op, uint64_t length)
{
	return op == PTL_ATOMIC_CSWAP ? 2 * length : length;
}

/* Is `op` an operation on runs? ptl_atomic_plain: `op` without that flag. */
static inline bool ptl_atomic_on_runs(unsigned int op)
{
	return op & PTL_ATOMIC_RUNS;
}

static inline unsigned int ptl_atomic_plain(unsigned int op)
{
	return op & ~(unsigned int)PTL_ATOMIC_RUNS;
}

/* The groups of a list of runs, and the bytes of the whole list. */
static inline const ptl_atomic_run_t *ptl_runs_groups(const ptl_atomic_runs_t *r)
{
	return (const ptl_atomic_run_t *)(r + 1);
}

static inline uint64_t ptl_runs_bytes(const ptl_atomic_runs_t *r)
{
	return sizeof(*r) + r->groups * (uint64_t)sizeof(ptl_atomic_run_t);
}

/*
 * Is this a valid list of runs, followed by the operand that the operation needs? The list
 * must contain `length` bytes of elements. List and operand together are `room` bytes, which
 * nobody else can change.
 */
bool ptl_runs_valid(const ptl_atomic_runs_t *r, uint64_t room, unsigned int op, unsigned int type,
		    uint64_t length);

/*
 * out = old op operand, for the whole elements in `mlength` bytes; the rest is copied from
 * old. `operand` belongs to a request for `rlength` bytes, at least mlength. The arguments are
 * valid, and nothing need be aligned.
 */
void ptl_atomic_apply(unsigned int op, unsigned int type, void *out, const void *old,
		      const void *operand, uint64_t rlength, uint64_t mlength);

#endif
