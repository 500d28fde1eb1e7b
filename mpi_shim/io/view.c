/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Views: from positions and data bytes to bytes of the file, and back. Nothing is flattened: a walk
 * asks the filetype's layout for some runs at a time, from any data byte on.
 */
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/io/io.h"

/* ---- walks ----------------------------------------------------------------------------------- */

void mpi_extents_begin(struct mpi_extents *x, const struct mpi_type *type, int64_t base,
		       uint64_t from, uint64_t to)
{
	x->type = type;
	x->base = base;
	x->next = from;
	x->to = to;
	x->i = x->n = 0;
}

/* Store runs until there is no room. A result other than MPI_SUCCESS ends the walk. */
static int store_runs(void *arg, const struct mpi_runs *r)
{
	struct mpi_extents *x = arg;

	for (size_t i = 0; i < r->count; i++) {
		if (x->n == MPI_EXTENTS)
			return MPI_ERR_OTHER;
		x->extent[x->n].at = (int64_t)((uint64_t)x->base + (uint64_t)r->offset +
					       i * (uint64_t)r->stride);
		x->extent[x->n++].bytes = r->bytes;
		x->next += r->bytes;
	}
	return MPI_SUCCESS;
}

const struct mpi_extent *mpi_extents_peek(struct mpi_extents *x)
{
	if (x->i < x->n)
		return &x->extent[x->i];
	x->i = x->n = 0;
	if (x->next < x->to)
		mpi_type_runs_between(x->type, x->next, x->to, store_runs, x);
	return x->n ? &x->extent[0] : NULL;
}

void mpi_extents_skip(struct mpi_extents *x, uint64_t bytes)
{
	struct mpi_extent *e = &x->extent[x->i];

	e->at = (int64_t)((uint64_t)e->at + bytes);
	e->bytes -= bytes;
	if (e->bytes == 0)
		x->i++;
}

/* ---- places ---------------------------------------------------------------------------------- */

int64_t mpi_view_place(const struct mpi_view *v, uint64_t at)
{
	struct mpi_extents x;
	const struct mpi_extent *e;

	mpi_view_extents(&x, v, at, at + 1);
	e = mpi_extents_peek(&x);
	return e ? e->at : v->disp;
}

int mpi_view_reaches(const struct mpi_view *v, uint64_t from, uint64_t bytes)
{
	uint64_t end;
	int64_t at; /* of the copy of the filetype that has the last byte, then of its end */

	if (bytes == 0 || v->laid->size == 0)
		return MPI_SUCCESS;
	if (!__builtin_add_overflow(from, bytes, &end) && end < INT64_MAX &&
	    !__builtin_mul_overflow((int64_t)((end - 1) / (uint64_t)v->laid->size), v->laid->extent,
				    &at) &&
	    !__builtin_add_overflow(at, v->laid->true_lb + v->laid->true_extent, &at) &&
	    !__builtin_add_overflow(at, v->disp, &at))
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_ARG, "the access would reach behind byte 2^63 of the file");
}

uint64_t mpi_view_data_before(const struct mpi_view *v, int64_t place)
{
	uint64_t low = 0, high;

	if (place <= v->disp || v->laid->size == 0)
		return 0;
	if (v->laid->dense && v->laid->true_lb == 0)
		return (uint64_t)(place - v->disp);
	if (__builtin_mul_overflow((uint64_t)((place - v->disp) / v->laid->extent) + 1,
				   (uint64_t)v->laid->size, &high))
		high = INT64_MAX;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (mpi_view_place(v, middle) < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

MPI_Offset mpi_view_etypes_to(const struct mpi_view *v, int64_t end)
{
	uint64_t data = mpi_view_data_before(v, end), each = (uint64_t)v->etype_bytes;

	return (MPI_Offset)(data / each + (data % each != 0));
}

/* ---- making ---------------------------------------------------------------------------------- */

/* A filetype's runs so far. */
struct order_check {
	bool writable;
	MPI_Aint end; /* of the last run; of files that are only read, its beginning */
};

/* Displacements must not be negative, nor decrease; what can be written must not overlap (MPI-4
 * §14.3). */
static int check_order(void *arg, const struct mpi_runs *r)
{
	struct order_check *c = arg;
	MPI_Aint step = c->writable ? (MPI_Aint)r->bytes : 0;

	if (r->offset < 0)
		return mpi_fail(MPI_ERR_TYPE,
				"the filetype has data at byte %lld: displacements "
				"must not be negative",
				(long long)r->offset);
	if (r->offset < c->end || (r->count > 1 && r->stride < step))
		return mpi_fail(
			MPI_ERR_TYPE, "the filetype's displacements %s at byte %lld: they must not",
			c->writable ? "decrease or overlap" : "decrease", (long long)r->offset);
	c->end = r->offset + (MPI_Aint)(r->count - 1) * r->stride + step;
	return MPI_SUCCESS;
}

static int check_filetype(const struct mpi_type *etype, const struct mpi_type *filetype,
			  bool writable)
{
	struct order_check c = { .writable = writable };

	if (etype->size <= 0)
		return mpi_fail(MPI_ERR_TYPE, "the etype has no data");
	if (filetype->size % etype->size != 0)
		return mpi_fail(MPI_ERR_TYPE,
				"the filetype has %lld bytes of data, which are no whole etypes of "
				"%lld bytes",
				(long long)filetype->size, (long long)etype->size);
	if (filetype->size > 0 && filetype->extent <= 0)
		return mpi_fail(MPI_ERR_TYPE, "the filetype's extent is %lld: it must be positive",
				(long long)filetype->extent);
	return mpi_type_runs(filetype, 1, check_order, &c);
}

/* A file that is only read may have runs that overlap. */
static bool is_disjoint(const struct mpi_type *laid)
{
	struct order_check c = { .writable = true };

	return mpi_type_runs(laid, 1, check_order, &c) == MPI_SUCCESS;
}

static void use_types(struct mpi_view *v, struct mpi_type *etype, struct mpi_type *filetype)
{
	v->etype = mpi_object_keep(etype);
	v->filetype = mpi_object_keep(filetype);
}

int mpi_view_make(struct mpi_view *v, MPI_Offset disp, struct mpi_type *etype,
		  struct mpi_type *filetype, const struct mpi_datarep *rep, bool writable)
{
	struct mpi_view made = { .disp = disp, .rep = rep };
	int err = check_filetype(etype, filetype, writable);

	if (!err)
		err = mpi_datarep_bytes(rep, etype, &made.etype_bytes);
	if (!err && made.etype_bytes <= 0)
		err = mpi_fail(MPI_ERR_TYPE, "the etype has no data in the file");
	if (!err)
		err = mpi_datarep_laid(rep, filetype, &made.laid);
	if (err)
		return err;
	use_types(&made, etype, filetype);
	made.sorted = made.laid->true_extent <= made.laid->extent && is_disjoint(made.laid);
	*v = made;
	return MPI_SUCCESS;
}

void mpi_view_default(struct mpi_view *v)
{
	struct mpi_type *bytes = mpi_bytes();

	*v = (struct mpi_view){ .rep = mpi_datarep_native(), .etype_bytes = 1, .sorted = true };
	use_types(v, bytes, bytes);
	v->laid = mpi_object_keep(bytes);
}

void mpi_view_end(struct mpi_view *v)
{
	mpi_object_release(v->etype);
	mpi_object_release(v->filetype);
	mpi_object_release(v->laid);
	v->etype = v->filetype = v->laid = NULL;
}
