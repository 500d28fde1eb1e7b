/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What PtlAtomic and PtlFetchAtomic calculate. A NAL calls ptl_atomic_apply where it would store
 * the bytes of a put, while nobody else can change the target's memory through Portals: under the
 * lock of its region.
 */
#ifndef PTL_ATOMIC_H
#define PTL_ATOMIC_H

#include <portals3_ext.h>
#include <stdbool.h>

/* Is `op` defined on `type`, and are `length` bytes whole elements? Of numbers that come from
 * anywhere. */
bool ptl_atomic_valid(unsigned int op, unsigned int type, uint64_t length);

/* Bytes the initiator sends for `length` bytes at the target. `op` 0: no atomic, as many. */
static inline uint64_t ptl_atomic_operand(unsigned int op, uint64_t length)
{
	return op == PTL_ATOMIC_CSWAP ? 2 * length : length;
}

/* Whether `op` is one on runs, and that without its mark. */
static inline bool ptl_atomic_on_runs(unsigned int op)
{
	return op & PTL_ATOMIC_RUNS;
}

static inline unsigned int ptl_atomic_plain(unsigned int op)
{
	return op & ~(unsigned int)PTL_ATOMIC_RUNS;
}

/* The groups of a list of runs, and the bytes of all of it. */
static inline const ptl_atomic_run_t *ptl_runs_groups(const ptl_atomic_runs_t *r)
{
	return (const ptl_atomic_run_t *)(r + 1);
}

static inline uint64_t ptl_runs_bytes(const ptl_atomic_runs_t *r)
{
	return sizeof(*r) + r->groups * (uint64_t)sizeof(ptl_atomic_run_t);
}

/*
 * Is this, in `room` bytes that nobody else can change, a list of runs in which there are
 * `length` bytes of elements for the operation, and what the operation sends with it?
 */
bool ptl_runs_valid(const ptl_atomic_runs_t *r, uint64_t room, unsigned int op, unsigned int type,
		    uint64_t length);

/*
 * out = old op operand, for the whole elements of `mlength` bytes; what is left over stays as in
 * old. `operand` is of a request for `rlength` bytes, at least mlength. Valid arguments; nothing
 * need be aligned.
 */
void ptl_atomic_apply(unsigned int op, unsigned int type, void *out, const void *old,
		      const void *operand, uint64_t rlength, uint64_t mlength);

#endif
