/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reductions of vectors that are worth dividing, in the memory of a hub: all ranks show their vectors and meet;
 * then each makes the result of one part, over all ranks in their order, and they meet again. So no more than two
 * switches of processes are needed for each rank where processors are short.
 */
#include <string.h>

#include "mpi_shim/coll_impl.h"
#include "mpi_shim/hub_impl.h"

struct vector {
	struct mpi_hub *hub;
	MPI_Count count;
	struct mpi_type *type;
	struct mpi_op *op;
	size_t bytes;
	const char *in;
};

/* The element with which the part of local rank i begins: on a cache line of its own, if elements fit one. */
static MPI_Count part(const struct vector *v, int i)
{
	MPI_Count line = 64 % v->type->size == 0 ? 64 / v->type->size : 1;
	MPI_Count each = (v->count + line * v->hub->n - 1) / (line * v->hub->n) * line;

	return each * i < v->count ? each * i : v->count;
}

/* The vector of local rank i, from an element on; the own one is not in the hub where this rank works on it. */
static const char *from(const struct vector *v, int i, MPI_Count element)
{
	const char *vector = i == v->hub->me ? v->in : mpi_hub_place(v->hub, i, v->bytes);

	return vector + element * v->type->size;
}

/* The result of this rank's part. */
static int fold_part(const struct vector *v, char *result)
{
	struct mpi_hub *h = v->hub;
	MPI_Count begin = part(v, h->me), n = part(v, h->me + 1) - begin;
	int rc = MPI_SUCCESS;

	if (n == 0)
		return MPI_SUCCESS;
	memcpy(result, from(v, h->n - 1, begin), (size_t)(n * v->type->size));
	for (int i = h->n - 2; i >= 0 && !rc; i--)
		rc = mpi_op_apply(v->op, from(v, i, begin), result, n, v->type);
	return rc;
}

/* The bytes of a vector but for this rank's part. */
static void copy_others_parts(const struct vector *v, char *to, const char *of)
{
	size_t begin = (size_t)(part(v, v->hub->me) * v->type->size);
	size_t end = (size_t)(part(v, v->hub->me + 1) * v->type->size);

	memcpy(to, of, begin);
	memcpy(to + end, of + end, v->bytes - end);
}

static char *result_place(const struct vector *v)
{
	return mpi_hub_place(v->hub, v->hub->n, v->bytes);
}

/* The first meeting, and this rank's part of the work, whose result is at `to`, or if that is NULL in the hub. `wrong`: what
 * went wrong before, at the root: the others have no need of its part. */
static int show_and_fold(const struct vector *v, int wrong, char *to)
{
	struct mpi_hub *h = v->hub;
	size_t begin = (size_t)(part(v, h->me) * v->type->size);
	int rc;

	mpi_hub_begin(h, true);
	rc = mpi_hub_reserve_long(h);
	if (!rc)
		copy_others_parts(v, mpi_hub_place(h, h->me, v->bytes), v->in);
	rc = mpi_first(mpi_first(rc, mpi_hub_meet(h)), wrong);
	mpi_hub_leave(h, rc);
	mpi_hub_begin(h, true);
	mpi_hub_left_long(h);
	return rc ? rc : fold_part(v, (to ? to : result_place(v)) + begin);
}

static int allreduce(struct mpi_hub *h, const void *in, void *out, MPI_Count count,
		     struct mpi_type *type, struct mpi_op *op)
{
	struct vector v = { h, count, type, op, (size_t)(count * type->size), in };
	int rc = show_and_fold(&v, MPI_SUCCESS, NULL);

	rc = mpi_first(rc, mpi_hub_meet(h));
	if (!rc)
		memcpy(out, result_place(&v), v.bytes);
	return mpi_hub_leave(h, rc);
}

static int reduce(struct mpi_hub *h, int wrong, const void *in, void *out, MPI_Count count,
		  struct mpi_type *type, struct mpi_op *op, int root)
{
	struct vector v = { h, count, type, op, (size_t)(count * type->size), in };
	bool there = h->me == root && in != out;
	int rc = show_and_fold(&v, wrong, there ? out : NULL);

	if (!h->crowded) {
		/* who ran ahead would take the caches from who works */
		rc = mpi_first(rc, mpi_hub_meet(h));
	} else {
		mpi_hub_raise(h, rc);
		if (h->me == root)
			rc = mpi_first(rc, mpi_hub_await_all(h));
	}
	if (there && !rc)
		copy_others_parts(&v, out, result_place(&v));
	else if (h->me == root && !rc)
		memcpy(out, result_place(&v), v.bytes);
	return mpi_hub_leave(h, rc);
}

/* ---- any length ---------------------------------------------------------------------------------------- */

/* From here on an allreduce pays to be divided; a reduction, from where it no longer lets ranks run ahead. */
#define DIVIDE_BYTES 1024

/* Elements of the next piece of `left`. */
static MPI_Count piece(MPI_Count left, const struct mpi_type *type)
{
	MPI_Count most = MPI_HUB_LONG / type->size;

	return left < most ? left : most;
}

int mpi_hub_reduce(struct mpi_hub *h, int rc, const void *in, void *out, MPI_Count count,
		   struct mpi_type *type, struct mpi_op *op, int root)
{
	const char *source = in;
	char *to = out;

	if (count * type->size <= MPI_HUB_BYTES)
		return mpi_hub_reduce_short(h, rc, in, out, count, type, op, root);
	for (MPI_Count n, i = 0; i < count; i += n) {
		n = piece(count - i, type);
		rc = mpi_first(rc, reduce(h, rc, source + i * type->size, to + i * type->size, n,
					  type, op, root));
	}
	return rc;
}

int mpi_hub_allreduce(struct mpi_hub *h, const void *in, void *out, MPI_Count count,
		      struct mpi_type *type, struct mpi_op *op)
{
	const char *source = in;
	char *to = out;
	int rc = MPI_SUCCESS;

	if (count * type->size <= (h->crowded ? MPI_HUB_BYTES : DIVIDE_BYTES))
		return mpi_hub_allreduce_short(h, in, out, count, type, op);
	for (MPI_Count n, i = 0; i < count; i += n) {
		n = piece(count - i, type);
		rc = mpi_first(rc, allreduce(h, source + i * type->size, to + i * type->size, n,
					     type, op));
	}
	return rc;
}
