/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Accumulates in memory that all ranks of a window have mapped. Elements for which the processor has atomic
 * instructions are changed by them, one by one; the others, and those at odd addresses, under a lock of the
 * target's. Which it is follows from address and type, so that two ranks never differ about an element.
 */
#include <string.h>

#include "mpi_shim/op.h"
#include "mpi_shim/rma.h"
#include "mpi_shim/type_body.h"

typedef _Atomic uint8_t a8;
typedef _Atomic uint16_t a16;
typedef _Atomic uint32_t a32;
typedef _Atomic uint64_t a64;

/* Everything about a call that its elements have in common. */
struct task {
	MPI_Op op;
	bool whole; /* whole numbers */
	struct mpi_op *object;
	mpi_op_loop *loop; /* NULL: a pair without a name */
	const struct mpi_type *basic;
};

static void calculate(const struct task *k, const void *in, void *inout)
{
	if (k->loop)
		k->loop(in, inout, 1);
	else
		mpi_op_pair(k->object, k->basic, in, inout, 1);
}

/*
 * What there is for each size: the old value of one element. Loads and stores of the program's may come in
 * between for all the standard cares; other accumulates cannot.
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
			calculate(k, &value, &new);                                                \
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

/* Between its data an element may have gaps, which are not touched; after them there may be the end of memory. */
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
		calculate(k, in, at);
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
		if (stride == 8)
			elements64(&k, at, in, out, n);
		else if (stride == 4)
			elements32(&k, at, in, out, n);
		else if (stride == 2)
			elements16(&k, at, in, out, n);
		else
			elements8(&k, at, in, out, n);
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

	if (has_instructions(at, size)) {
		if (size == 8)
			cas64(at, compare, in, out);
		else if (size == 4)
			cas32(at, compare, in, out);
		else if (size == 2)
			cas16(at, compare, in, out);
		else
			cas8(at, compare, in, out);
		return;
	}
	mpi_win_lock_elements(win, t);
	memcpy(old, at, size);
	if (memcmp(old, compare, size) == 0)
		memcpy(at, in, size);
	mpi_win_unlock_elements(t);
	memcpy(out, old, size);
}
