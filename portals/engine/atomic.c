/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PtlAtomic and PtlFetchAtomic: see atomic.h and portals3_ext.h. Elements are read and written
 * through types of alignment 1, because an application may use memory at any address.
 */
#include "portals/engine/atomic.h"

#include <string.h>

#define LOOSE __attribute__((may_alias, aligned(1)))

typedef int8_t LOOSE i8;
typedef uint8_t LOOSE u8;
typedef int16_t LOOSE i16;
typedef uint16_t LOOSE u16;
typedef int32_t LOOSE i32;
typedef uint32_t LOOSE u32;
typedef int64_t LOOSE i64;
typedef uint64_t LOOSE u64;
typedef float LOOSE f32;
typedef double LOOSE f64;

static const uint8_t sizes[] = {
	[PTL_ATOMIC_INT8] = 1,   [PTL_ATOMIC_UINT8] = 1,    [PTL_ATOMIC_INT16] = 2,
	[PTL_ATOMIC_UINT16] = 2, [PTL_ATOMIC_INT32] = 4,    [PTL_ATOMIC_UINT32] = 4,
	[PTL_ATOMIC_INT64] = 8,  [PTL_ATOMIC_UINT64] = 8,   [PTL_ATOMIC_FLOAT] = 4,
	[PTL_ATOMIC_DOUBLE] = 8, [PTL_ATOMIC_BLOCK16] = 16, [PTL_ATOMIC_BLOCK32] = 32,
};

static bool moves_only(unsigned int op)
{
	return op == PTL_ATOMIC_SWAP || op == PTL_ATOMIC_FETCH || op == PTL_ATOMIC_CSWAP;
}

bool ptl_atomic_valid(unsigned int op, unsigned int type, uint64_t length)
{
	if (op < PTL_ATOMIC_SUM || op > PTL_ATOMIC_CSWAP || type < PTL_ATOMIC_INT8 ||
	    type > PTL_ATOMIC_BLOCK32 || length % sizes[type])
		return false;
	if (moves_only(op) || type < PTL_ATOMIC_FLOAT)
		return true;
	return type <= PTL_ATOMIC_DOUBLE && op <= PTL_ATOMIC_MAX;
}

bool ptl_runs_valid(const ptl_atomic_runs_t *r, uint64_t room, unsigned int op, unsigned int type,
		    uint64_t length)
{
	unsigned int plain = ptl_atomic_plain(op);
	uint64_t sum = 0, list;

	if (!ptl_atomic_on_runs(op) || plain == PTL_ATOMIC_CSWAP ||
	    !ptl_atomic_valid(plain, type, length) || room < sizeof(*r))
		return false;
	list = ptl_runs_bytes(r);
	if (list > room || room - list != (plain == PTL_ATOMIC_FETCH ? 0 : length))
		return false;
	for (uint32_t i = 0; i < r->groups; i++) {
		const ptl_atomic_run_t *g = &ptl_runs_groups(r)[i];

		if (!g->bytes || !g->count || g->bytes % sizes[type] ||
		    g->bytes > length / g->count ||
		    g->offset + (uint64_t)g->stride * (g->count - 1) + g->bytes > r->span)
			return false;
		sum += (uint64_t)g->bytes * g->count;
	}
	return sum == length;
}

/* ---- calculating ----------------------------------------------------------------------------- */

#define LOOP(expression)                                                                           \
	for (uint64_t i = 0; i < n; i++) {                                                         \
		__typeof__(*o) x = a[i], y = b[i];                                                 \
                                                                                                   \
		o[i] = (__typeof__(*o))(expression);                                               \
	}                                                                                          \
	break;

/* Sums and products of integers wrap around: `m` is an unsigned type that is not promoted to a
 * signed one. */
#define NUMBERS(t, m)                                                                              \
	case PTL_ATOMIC_SUM:                                                                       \
		LOOP((m)x + (m)y)                                                                  \
	case PTL_ATOMIC_PROD:                                                                      \
		LOOP((m)x *(m)y)                                                                   \
	case PTL_ATOMIC_MIN:                                                                       \
		LOOP(y < x ? y : x)                                                                \
	case PTL_ATOMIC_MAX:                                                                       \
		LOOP(y > x ? y : x)

#define WHOLE_NUMBERS                                                                              \
	case PTL_ATOMIC_BAND:                                                                      \
		LOOP(x &y)                                                                         \
	case PTL_ATOMIC_BOR:                                                                       \
		LOOP(x | y)                                                                        \
	case PTL_ATOMIC_BXOR:                                                                      \
		LOOP(x ^ y)                                                                        \
	case PTL_ATOMIC_LAND:                                                                      \
		LOOP((x != 0) & (y != 0))                                                          \
	case PTL_ATOMIC_LOR:                                                                       \
		LOOP((x != 0) | (y != 0))                                                          \
	case PTL_ATOMIC_LXOR:                                                                      \
		LOOP((x != 0) ^ (y != 0))

#define CALCULATE(t, m, MORE)                                                                      \
	static void calculate_##t(unsigned int op, void *out, const void *old,                     \
				  const void *operand, uint64_t n)                                 \
	{                                                                                          \
		t *o = out;                                                                        \
		const t *a = old, *b = operand;                                                    \
                                                                                                   \
		switch (op) {                                                                      \
			NUMBERS(t, m)                                                              \
			MORE                                                                       \
		}                                                                                  \
	}
CALCULATE(i8, unsigned, WHOLE_NUMBERS)
CALCULATE(u8, unsigned, WHOLE_NUMBERS)
CALCULATE(i16, unsigned, WHOLE_NUMBERS)
CALCULATE(u16, unsigned, WHOLE_NUMBERS)
CALCULATE(i32, uint32_t, WHOLE_NUMBERS)
CALCULATE(u32, uint32_t, WHOLE_NUMBERS)
CALCULATE(i64, uint64_t, WHOLE_NUMBERS)
CALCULATE(u64, uint64_t, WHOLE_NUMBERS)
CALCULATE(f32, f32, )
CALCULATE(f64, f64, )

typedef void calculate(unsigned int op, void *out, const void *old, const void *operand,
		       uint64_t n);

static calculate *const calculates[] = {
	[PTL_ATOMIC_INT8] = calculate_i8,   [PTL_ATOMIC_UINT8] = calculate_u8,
	[PTL_ATOMIC_INT16] = calculate_i16, [PTL_ATOMIC_UINT16] = calculate_u16,
	[PTL_ATOMIC_INT32] = calculate_i32, [PTL_ATOMIC_UINT32] = calculate_u32,
	[PTL_ATOMIC_INT64] = calculate_i64, [PTL_ATOMIC_UINT64] = calculate_u64,
	[PTL_ATOMIC_FLOAT] = calculate_f32, [PTL_ATOMIC_DOUBLE] = calculate_f64,
};

static void compare_and_swap(char *out, const char *old, const char *compare, const char *swap,
			     uint64_t n, size_t size)
{
	for (uint64_t at = 0; at < n * size; at += size)
		memcpy(out + at, memcmp(old + at, compare + at, size) == 0 ? swap + at : old + at,
		       size);
}

void ptl_atomic_apply(unsigned int op, unsigned int type, void *out, const void *old,
		      const void *operand, uint64_t rlength, uint64_t mlength)
{
	uint64_t n = mlength / sizes[type], done = n * sizes[type];

	if (op == PTL_ATOMIC_CSWAP)
		compare_and_swap(out, old, operand, (const char *)operand + rlength, n,
				 sizes[type]);
	else if (op == PTL_ATOMIC_SWAP)
		memcpy(out, operand, done);
	else if (op == PTL_ATOMIC_FETCH)
		memcpy(out, old, done);
	else
		calculates[type](op, out, old, operand, n);
	memcpy((char *)out + done, (const char *)old + done, mlength - done);
}
