/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Accumulates in memory that all ranks of a window have mapped.
 *
 * A few elements for which the processor has atomic instructions are changed by them, one by
 * one. Elements without instructions, or at odd addresses, are changed under the target's
 * lock. Address and type decide, so two ranks never differ about an element.
 *
 * An instruction costs about twenty times the time of a vectorized loop. So many elements are
 * changed under the lock, too, while nobody uses instructions (win.h).
 */
#include <string.h>

#include "mpi_shim/coll/op.h"
#include "mpi_shim/rma/rma.h"
#include "mpi_shim/datatype/body.h"

typedef _Atomic uint8_t a8;
typedef _Atomic uint16_t a16;
typedef _Atomic uint32_t a32;
typedef _Atomic uint64_t a64;

/* Properties of a call, common to all elements. */
struct task {
	MPI_Op op;
	bool whole; /* integers */
	struct mpi_op *object;
	mpi_op_loop *loop; /* NULL: a pair without a name */
	const struct mpi_type *basic;
};

static void calculate(const struct task *k, const void *in, void *inout, size_t n)
{
	if (k->loop)
		k->loop(in, inout, n);
	else
		mpi_op_pair(k->object, k->basic, in, inout, n);
}

/*
 * For each size: change one element and return its old value. Loads and stores of the program
 * may come in between, which the standard allows; other accumulates cannot.
 */
#define ELEMENT(bits, ADD)                                                                         \
	static inline uint##bits##_t element##bits(const struct task *k, a##bits *at,              \
						   const void *in)                                 \
	{                                                                                          \
		uint##bits##_t old, new, value = 0;                                                \
                                                                                                   \
		if (in)                                                                            \
			memcpy(&value, in, sizeof(value));                                         \
		if (k->op == MPI_NO_OP)                                                            \
			return atomic_load_explicit(at, memory_order_relaxed);                     \
		if (k->op == MPI_REPLACE)                                                          \
			return atomic_exchange_explicit(at, value, memory_order_acq_rel);          \
		if (ADD && k->whole && k->op == MPI_SUM)                                           \
			return atomic_fetch_add_explicit(at, value, memory_order_acq_rel);         \
		old = atomic_load_explicit(at, memory_order_relaxed);                              \
		do {                                                                               \
			new = old;                                                                 \
			calculate(k, &value, &new, 1);                                             \
		} while (!atomic_compare_exchange_weak_explicit(                                   \
			at, &old, new, memory_order_acq_rel, memory_order_relaxed));               \
		return old;                                                                        \
	}                                                                                          \
                                                                                                   \
	static void elements##bits(const struct task *k, void *at, const char *in, char *out,      \
				   size_t n)                                                       \
	{                                                                                          \
		a##bits *p = at;                                                                   \
                                                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			uint##bits##_t old = element##bits(k, &p[i], in);                          \
                                                                                                   \
			if (in)                                                                    \
				in += sizeof(old);                                                 \
			if (out) {                                                                 \
				memcpy(out, &old, sizeof(old));                                    \
				out += sizeof(old);                                                \
			}                                                                          \
		}                                                                                  \
	}
ELEMENT(8, false)
ELEMENT(16, false)
ELEMENT(32, true)
ELEMENT(64, true)

static bool has_instructions(const void *at, size_t size)
{
	return size <= 8 && (size & (size - 1)) == 0 && (uintptr_t)at % size == 0;
}

/* Change one element under the lock. Gaps between its data are not touched. Memory may end after
 * its last byte of data. */
static void one_locked(const struct task *k, char *at, const char *in, char *out)
{
	size_t bytes = (size_t)k->basic->true_extent;

	if (out)
		memcpy(out, at, bytes);
	if (!in) /* MPI_NO_OP */
		return;
	if (k->op == MPI_REPLACE)
		memcpy(at, in, bytes);
	else
		calculate(k, in, at, 1);
}

/* From so many elements on, plus one for every four ranks of the window, the lock is cheaper. */
#define MANY 4
/* At most so many elements under one lock: others wait. */
#define MOST 4096

static void few(const struct task *k, void *at, const char *in, char *out, size_t n)
{
	switch (k->basic->extent) {
	case 8:
		elements64(k, at, in, out, n);
		break;
	case 4:
		elements32(k, at, in, out, n);
		break;
	case 2:
		elements16(k, at, in, out, n);
		break;
	default:
		elements8(k, at, in, out, n);
	}
}

/* Whether two buffers overlap. Vectors would then see other changes than single elements do. */
static bool overlap(const char *a, const char *b, size_t bytes)
{
	return a && b && (uintptr_t)a - (uintptr_t)b + bytes - 1 < 2 * bytes - 1;
}

static void many(struct mpi_win *win, struct mpi_win_target *t, const struct task *k, char *at,
		 const char *in, char *out, size_t n)
{
	for (size_t some, bytes; n; n -= some) {
		some = n < MOST ? n : MOST;
		bytes = some * (size_t)k->basic->extent;
		mpi_win_lock_elements(win, t);
		mpi_win_await_elements(win, t);
		if (out)
			memcpy(out, at, bytes);
		if (k->op == MPI_REPLACE)
			memcpy(at, in, bytes);
		else if (k->op != MPI_NO_OP)
			calculate(k, in, at, some);
		mpi_win_unlock_elements(t);
		at += bytes;
		in += in ? bytes : 0;
		out += out ? bytes : 0;
	}
}

static void by_instructions(struct mpi_win *win, struct mpi_win_target *t, const struct task *k,
			    void *at, const char *in, char *out, size_t n)
{
	const size_t bytes = n * (size_t)k->basic->extent;
	bool locked;

	if (n >= MANY + (size_t)win->size / 4 && !overlap(in, at, bytes) &&
	    !overlap(out, at, bytes) && !overlap(in, out, bytes)) {
		many(win, t, k, at, in, out, n);
		return;
	}
	locked = mpi_win_begin_elements(win, t);
	few(k, at, in, out, n);
	mpi_win_end_elements(win, t, locked);
}

int mpi_rma_direct(struct mpi_win *win, struct mpi_win_target *t, void *at, const void *in,
		   void *out, size_t n, const struct mpi_type *basic, struct mpi_op *op)
{
	MPI_Op handle = mpi_handle_of(op);
	enum mpi_basic kind = basic->body->basic;
	bool calculates = handle != MPI_REPLACE && handle != MPI_NO_OP;
	struct task k = { handle, kind == MPI_BASIC_SIGNED || kind == MPI_BASIC_UNSIGNED, op,
			  calculates ? mpi_op_loop_of(op, basic) : NULL, basic };
	size_t stride = (size_t)basic->extent;
	const char *from = in;
	char *to = out, *place = at;

	if (basic->dense && has_instructions(at, stride)) {
		by_instructions(win, t, &k, at, in, out, n);
		return MPI_SUCCESS;
	}
	mpi_win_lock_elements(win, t);
	for (size_t i = 0; i < n; i++)
		one_locked(&k, place + i * stride, from ? from + i * stride : NULL,
			   to ? to + i * stride : NULL);
	mpi_win_unlock_elements(t);
	return MPI_SUCCESS;
}

#define CAS(bits)                                                                                  \
	static void cas##bits(void *at, const void *compare, const void *in, void *out)            \
	{                                                                                          \
		uint##bits##_t old, new;                                                           \
                                                                                                   \
		memcpy(&old, compare, sizeof(old));                                                \
		memcpy(&new, in, sizeof(new));                                                     \
		atomic_compare_exchange_strong((a##bits *)at, &old, new);                          \
		memcpy(out, &old, sizeof(old));                                                    \
	}
CAS(8)
CAS(16)
CAS(32)
CAS(64)

void mpi_rma_direct_cas(struct mpi_win *win, struct mpi_win_target *t, void *at,
			const void *compare, const void *in, void *out, size_t size)
{
	char old[32];
	bool locked;

	if (has_instructions(at, size)) {
		locked = mpi_win_begin_elements(win, t);
		if (size == 8)
			cas64(at, compare, in, out);
		else if (size == 4)
			cas32(at, compare, in, out);
		else if (size == 2)
			cas16(at, compare, in, out);
		else
			cas8(at, compare, in, out);
		mpi_win_end_elements(win, t, locked);
		return;
	}
	mpi_win_lock_elements(win, t);
	memcpy(old, at, size);
	if (memcmp(old, compare, size) == 0)
		memcpy(at, in, size);
	mpi_win_unlock_elements(t);
	memcpy(out, old, size);
}
