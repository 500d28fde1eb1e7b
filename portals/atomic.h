/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What PtlAtomic and PtlFetchAtomic calculate. A NAL that has atomics calls ptl_atomic_apply where it would
 * store the bytes of a put, while nobody else can change the target's memory through Portals: under the
 * lock of its region.
 */
#ifndef PTL_ATOMIC_H
#define PTL_ATOMIC_H

#include <portals3_ext.h>
#include <stdbool.h>

/* Is `op` defined on `type`, and are `length` bytes whole elements? Of numbers that come from anywhere. */
bool ptl_atomic_valid(unsigned int op, unsigned int type, uint64_t length);

/* Bytes the initiator sends for `length` bytes at the target. `op` 0: no atomic, as many. */
static inline uint64_t ptl_atomic_operand(unsigned int op, uint64_t length)
{
	return op == PTL_ATOMIC_CSWAP ? 2 * length : length;
}

/*
 * out = old op operand, for the whole elements of `mlength` bytes; what is left over stays as in old.
 * `operand` is of a request for `rlength` bytes, at least mlength. Valid arguments; nothing need be aligned.
 */
void ptl_atomic_apply(unsigned int op, unsigned int type, void *out, const void *old,
		      const void *operand, uint64_t rlength, uint64_t mlength);

#endif
