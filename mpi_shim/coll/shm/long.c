/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reductions of vectors that are worth dividing, in the shared-memory area. All ranks write
 * their vectors and wait for each other. Then each rank computes the result of one part, over
 * all ranks in their order, and all wait again. So on an oversubscribed node each rank needs at
 * most two process switches.
 *
 * A result that all ranks need may go in segments. Then the next segment is written before the
 * second wait: one barrier for each segment, and one more.
 */
#include <string.h>

#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

struct vector {
	struct mpi_shmcoll *shmcoll;
	MPI_Count count;
	struct mpi_type *type;
	struct mpi_op *op;
	size_t bytes;
	const char *in;
	int turn; /* index of its cell for long data */
};

/* The first element of the part of local rank i. Parts begin on cache lines of their own if
 * elements fit one. */
static MPI_Count elements_of_part(const struct vector *v, int i)
{
	MPI_Count line = 64 % v->type->size == 0 ? 64 / v->type->size : 1;
	MPI_Count each = (v->count + line * v->shmcoll->n - 1) / (line * v->shmcoll->n) * line;

	return each * i < v->count ? each * i : v->count;
}

/* The vector of local rank i, from an element on. The own one is read where this rank has it,
 * as that part is not in the area. */
static const char *from(const struct vector *v, int i, MPI_Count element)
{
	const char *vector = i == v->shmcoll->me
				     ? v->in
				     : mpi_shmcoll_long_cell(v->shmcoll, v->turn, i, v->bytes);

	return vector + element * v->type->size;
}

/* Compute the result of this rank's part. */
static int fold_part(const struct vector *v, char *result)
{
	struct mpi_shmcoll *h = v->shmcoll;
	MPI_Count begin = elements_of_part(v, h->me), n = elements_of_part(v, h->me + 1) - begin;
	int rc = MPI_SUCCESS;

	if (n == 0)
		return MPI_SUCCESS;
	memcpy(result, from(v, h->n - 1, begin), (size_t)(n * v->type->size));
	for (int i = h->n - 2; i >= 0 && !rc; i--)
		rc = mpi_op_apply(v->op, from(v, i, begin), result, n, v->type);
	return rc;
}

/* Copy a vector except this rank's part. */
static void copy_others_parts(const struct vector *v, char *to, const char *of)
{
	size_t begin = (size_t)(elements_of_part(v, v->shmcoll->me) * v->type->size);
	size_t end = (size_t)(elements_of_part(v, v->shmcoll->me + 1) * v->type->size);

	memcpy(to, of, begin);
	memcpy(to + end, of + end, v->bytes - end);
}

static char *result_place(const struct vector *v)
{
	return mpi_shmcoll_long_cell(v->shmcoll, v->turn, v->shmcoll->n, v->bytes);
}

/* Begin the next operation, in which all can see the vector after the barrier. */
static int show_vector(struct vector *v)
{
	struct mpi_shmcoll *h = v->shmcoll;
	int rc;

	mpi_shmcoll_begin(h, true);
	rc = mpi_shmcoll_reserve_long(h);
	v->turn = h->long_turn;
	mpi_shmcoll_left_long(h, v->turn);
	if (!rc)
		copy_others_parts(v, mpi_shmcoll_long_cell(h, v->turn, h->me, v->bytes), v->in);
	return rc;
}

/* Compute this rank's part of the result, in `to`, or in the area if that is NULL. */
static int reduce_part(const struct vector *v, char *to)
{
	return fold_part(v, (to ? to : result_place(v)) +
				    elements_of_part(v, v->shmcoll->me) * v->type->size);
}

/* One operation: write the next vector, unless it is empty. Compute the result of the last one,
 * unless that is empty. */
static int long_step(struct mpi_shmcoll *h, struct vector *next, const struct vector *last,
		     char *out)
{
	int rc = MPI_SUCCESS;

	if (next->count) {
		rc = show_vector(next);
	} else {
		/* only the last result needs this: for the others the next barrier is enough,
		 * which no rank reaches before it has copied the result */
		mpi_shmcoll_begin(h, true);
		mpi_shmcoll_left_long(h, last->turn);
	}
	if (last->count && !rc)
		rc = reduce_part(last, NULL);
	rc = mpi_first(rc, mpi_shmcoll_node_barrier(h));
	if (last->count && !rc)
		memcpy(out, result_place(last), last->bytes);
	return mpi_shmcoll_leave(h, rc);
}

static int reduce(struct mpi_shmcoll *h, int wrong, const void *in, void *out, MPI_Count count,
		  struct mpi_type *type, struct mpi_op *op, int root)
{
	struct vector v = { h, count, type, op, (size_t)(count * type->size), in, 0 };
	bool there = h->me == root && in != out;
	int rc = show_vector(&v);

	/* the others need not know of the root's error: only the root needs its part */
	rc = mpi_first(mpi_first(rc, mpi_shmcoll_node_barrier(h)), wrong);
	mpi_shmcoll_leave(h, rc);
	mpi_shmcoll_begin(h, true);
	mpi_shmcoll_left_long(h, v.turn);
	rc = rc ? rc : reduce_part(&v, there ? out : NULL);
	if (!h->oversubscribed) {
		/* a rank that ran ahead would take the caches from those that still work */
		rc = mpi_first(rc, mpi_shmcoll_node_barrier(h));
	} else {
		mpi_shmcoll_raise(h, rc);
		if (h->me == root)
			rc = mpi_first(rc, mpi_shmcoll_await_all(h));
	}
	if (there && !rc)
		copy_others_parts(&v, out, result_place(&v));
	else if (h->me == root && !rc)
		memcpy(out, result_place(&v), v.bytes);
	return mpi_shmcoll_leave(h, rc);
}

/* ---- any length ------------------------------------------------------------------------------ */

/* From here on an allreduce is worth dividing. A reduce is divided from where it no longer lets
 * ranks run ahead (MPI_SHMCOLL_BYTES). */
#define DIVIDE_BYTES 1024

/* Elements of the next segment of `left`. */
static MPI_Count elements_of_segment(MPI_Count left, const struct mpi_type *type)
{
	MPI_Count most = MPI_SHMCOLL_LONG / type->size;

	return left < most ? left : most;
}

int mpi_shmcoll_reduce(struct mpi_shmcoll *h, int rc, const void *in, void *out, MPI_Count count,
		       struct mpi_type *type, struct mpi_op *op, int root)
{
	const char *source = in;
	char *to = out;

	if (count * type->size <= MPI_SHMCOLL_BYTES)
		return mpi_shmcoll_reduce_short(h, rc, in, out, count, type, op, root);
	for (MPI_Count n, i = 0; i < count; i += n) {
		n = elements_of_segment(count - i, type);
		rc = mpi_first(rc, reduce(h, rc, source + i * type->size, to + i * type->size, n,
					  type, op, root));
	}
	return rc;
}

int mpi_shmcoll_allreduce(struct mpi_shmcoll *h, const void *in, void *out, MPI_Count count,
			  struct mpi_type *type, struct mpi_op *op)
{
	struct vector last = { .count = 0 };
	const char *source = in;
	char *to = out;
	int rc = MPI_SUCCESS;

	if (count * type->size <= (h->oversubscribed ? MPI_SHMCOLL_BYTES : DIVIDE_BYTES))
		return mpi_shmcoll_allreduce_short(h, in, out, count, type, op);
	/* the result of a segment is computed in the operation that writes the next one: one
	 * barrier for each, and one more */
	for (MPI_Count n, i = 0; i < count || last.count; i += n) {
		struct vector next = { h, 0, type, op, 0, source + i * type->size, 0 };

		next.count = n = elements_of_segment(count - i, type);
		next.bytes = (size_t)(n * type->size);
		rc = mpi_first(rc, long_step(h, &next, &last, to + (i - last.count) * type->size));
		last = next;
	}
	return rc;
}
