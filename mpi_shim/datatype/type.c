/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes as objects: how a constructor's draft becomes a type, their lifetime and names,
 * and queries of size and bounds.
 */
#include "mpi_shim/datatype/body.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_shim/impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/object.h"

int mpi_type_usable(const struct mpi_type *t)
{
	if (t->size != MPI_UNDEFINED)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_TYPE, "%s does not exist on this platform; use another type",
			t->name);
}

/* ---- from blocks to bounds ------------------------------------------------------------------- */

/* *sum += a * b; false on overflow. */
static bool add_product(int64_t *sum, int64_t a, int64_t b)
{
	int64_t product;

	return !__builtin_mul_overflow(a, b, &product) &&
	       !__builtin_add_overflow(*sum, product, sum);
}

/* Extend `low` or `high` to the outermost of n items that are `step` bytes apart. */
static bool spread_bounds(MPI_Count n, MPI_Aint step, MPI_Aint *low, MPI_Aint *high)
{
	return add_product(step < 0 ? low : high, n - 1, step);
}

static bool lower(MPI_Aint *bound, bool known, MPI_Aint base, MPI_Aint offset)
{
	MPI_Aint at;

	if (__builtin_add_overflow(base, offset, &at))
		return false;
	if (!known || at < *bound)
		*bound = at;
	return true;
}

static bool heighten(MPI_Aint *bound, bool known, MPI_Aint base, MPI_Aint offset)
{
	MPI_Aint at;

	if (__builtin_add_overflow(base, offset, &at))
		return false;
	if (!known || at > *bound)
		*bound = at;
	return true;
}

static bool add_bounds(struct mpi_draft *d, const struct mpi_type *t, MPI_Aint low, MPI_Aint high)
{
	const struct mpi_type_body *b = t->body;
	MPI_Aint ub = t->lb + t->extent;
	bool ok = true;

	if (b->lb_set)
		ok = lower(&d->set_lb, d->marked_lb, low, t->lb);
	if (b->ub_set)
		ok = ok && heighten(&d->set_ub, d->marked_ub, high, ub);
	if (t->size > 0)
		ok = ok && lower(&d->true_lb, d->data, low, t->true_lb) &&
		     heighten(&d->true_ub, d->data, high, t->true_lb + t->true_extent) &&
		     lower(&d->lb, d->data, low, t->lb) && heighten(&d->ub, d->data, high, ub);
	d->marked_lb |= b->lb_set;
	d->marked_ub |= b->ub_set;
	return ok;
}

static bool add_counts(struct mpi_draft *d, const struct mpi_type *t, MPI_Count n)
{
	const struct mpi_type_body *b = t->body;

	d->unit = !d->data || d->unit == b->unit ? b->unit : 0;
	d->only = !d->data || d->only == b->only ? b->only : NULL;
	d->data = true;
	if (b->align > d->align)
		d->align = b->align;
	return add_product(&d->size, n, t->size) && add_product(&d->elements, n, b->elements) &&
	       add_product(&d->external, n, b->external);
}

void mpi_draft_add(struct mpi_draft *d, const struct mpi_type *t, MPI_Aint offset, MPI_Count count,
		   MPI_Count length, MPI_Aint stride)
{
	MPI_Aint low = offset, high = offset;
	MPI_Count n;

	if (t->body->depth >= d->depth)
		d->depth = t->body->depth + 1;
	if (d->overflow || count == 0 || length == 0)
		return;
	d->overflow = !spread_bounds(count, stride, &low, &high) ||
		      !spread_bounds(length, t->extent, &low, &high) ||
		      !add_bounds(d, t, low, high) ||
		      (t->size > 0 && __builtin_mul_overflow(count, length, &n)) ||
		      (t->size > 0 && !add_counts(d, t, n));
}

/* Round `ub` up so that the extent is a multiple of the alignment; MPI-4 §5.1.6. */
static bool pad_to(MPI_Aint lb, MPI_Aint *ub, MPI_Aint align)
{
	MPI_Aint extent, rest;

	if (align <= 1)
		return true;
	if (__builtin_sub_overflow(*ub, lb, &extent))
		return false;
	rest = extent % align;
	if (rest < 0)
		rest += align;
	return rest == 0 || !__builtin_add_overflow(*ub, align - rest, ub);
}

static bool set_type_bounds(const struct mpi_draft *d, struct mpi_type *t, bool pad)
{
	MPI_Aint lb = d->marked_lb ? d->set_lb : d->data ? d->lb : 0;
	MPI_Aint ub = d->marked_ub ? d->set_ub : d->data ? d->ub : lb;

	if (!d->marked_lb && !d->data)
		lb = d->marked_ub ? ub : 0;
	if (pad && !d->marked_ub && d->data && !pad_to(lb, &ub, d->align))
		return false;
	t->lb = lb;
	t->true_lb = d->true_lb;
	return !__builtin_sub_overflow(ub, lb, &t->extent) &&
	       !__builtin_sub_overflow(d->true_ub, d->true_lb, &t->true_extent);
}

/* ---- from a draft to a type ------------------------------------------------------------------ */

int mpi_type_new(struct mpi_type **out, int combiner, size_t n_args, size_t n_types)
{
	size_t bytes;
	struct mpi_type *t;
	struct mpi_type_body *b;

	if (__builtin_mul_overflow(n_args, sizeof(*b->args), &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*b) + n_types * sizeof(struct mpi_type *), &bytes))
		return mpi_fail(MPI_ERR_NO_MEM, "a datatype of %zu parameters is too large",
				n_args);
	b = calloc(1, bytes);
	if (!b)
		return mpi_fail(MPI_ERR_NO_MEM, "no memory (%zu bytes) for a datatype", bytes);
	t = mpi_object_new(MPI_KIND_TYPE);
	if (!t) {
		free(b);
		return mpi_fail(MPI_ERR_NO_MEM, "too many datatypes, or no memory for one more; "
						"free those no longer needed with MPI_Type_free");
	}
	b->combiner = combiner;
	b->handles = 1;
	b->n_args = n_args;
	b->n_types = n_types;
	b->args = (MPI_Count *)(void *)(b + 1);
	b->types = (struct mpi_type **)(void *)(b->args + n_args);
	t->body = b;
	*out = t;
	return MPI_SUCCESS;
}

bool mpi_type_fill(struct mpi_type *t, const struct mpi_draft *d, bool pad,
		   struct mpi_segment segment)
{
	struct mpi_type_body *b = t->body;

	b->segment = segment;
	if (d->overflow || !set_type_bounds(d, t, pad))
		return false;
	t->size = d->size;
	b->elements = d->elements;
	b->unit = d->unit;
	b->only = d->only;
	b->external = d->external;
	b->align = d->align ? d->align : 1;
	b->depth = d->depth;
	b->lb_set = d->marked_lb;
	b->ub_set = d->marked_ub;
	t->dense = !segment.shape && (MPI_Aint)segment.size == t->extent;
	return true;
}

int mpi_type_finish(struct mpi_type *t, const struct mpi_draft *d, bool pad,
		    struct mpi_segment segment, struct mpi_type **newtype)
{
	if (!mpi_type_fill(t, d, pad, segment)) {
		mpi_object_release(t);
		return mpi_fail(MPI_ERR_ARG,
				"the datatype's size or bounds would exceed 2^63 bytes; "
				"check counts, strides and displacements");
	}
	if (d->depth > MPI_TYPE_DEPTH) {
		mpi_object_release(t);
		return mpi_fail(MPI_ERR_TYPE,
				"datatypes nested more than %d deep; build the type from its "
				"basic elements instead",
				MPI_TYPE_DEPTH);
	}
	*newtype = t;
	return MPI_SUCCESS;
}

/* ---- lifetime -------------------------------------------------------------------------------- */

/*
 * Bodies to be freed, one after another instead of recursively. So a chain of a million types
 * needs no stack. Guarded by the library's lock.
 */
static struct mpi_type_body *ending;
static bool is_ending;

static void destroy_type(void *object)
{
	struct mpi_type *t = object;
	struct mpi_type_body *b;

	t->body->next = ending;
	ending = t->body;
	if (is_ending)
		return;
	is_ending = true;
	while ((b = ending)) {
		ending = b->next;
		for (size_t i = 0; i < b->n_types; i++)
			mpi_object_release(b->types[i]);
		mpi_segment_release(b->segment);
		free(b);
	}
	is_ending = false;
}

int mpi_types_init(void)
{
	mpi_pool_setup(MPI_KIND_TYPE, sizeof(struct mpi_type), destroy_type);
	return mpi_types_predefine();
}

void mpi_types_fini(void)
{
	mpi_type_special_fini();
	mpi_types_forget();
}

int mpi_type_commit(struct mpi_type **datatype)
{
	int rc = mpi_type_usable(*datatype);

	if (rc == MPI_SUCCESS)
		(*datatype)->committed = true;
	return rc;
}

struct mpi_type *mpi_type_lend(struct mpi_type *t)
{
	t->body->handles++;
	return mpi_object_keep(t);
}

int mpi_type_free(struct mpi_type **datatype)
{
	struct mpi_type *t = *datatype;
	int rc;

	if (t->predefined)
		return mpi_fail(MPI_ERR_TYPE, "%s is predefined and cannot be freed",
				t->name[0] ? t->name : "the datatype");
	if (t->body->handles == 0)
		return mpi_fail(MPI_ERR_TYPE, "the datatype was freed before");
	if (t->body->handles == 1) {
		rc = mpi_attrs_delete(t, MPI_KIND_TYPE, &t->attrs);
		if (rc != MPI_SUCCESS)
			return rc;
	}
	if (--t->body->handles == 0)
		mpi_object_rename(&t->obj);
	mpi_object_release(t);
	*datatype = NULL;
	return MPI_SUCCESS;
}

/* ---- queries --------------------------------------------------------------------------------- */

int mpi_type_size(struct mpi_type *datatype, MPI_Count *size)
{
	*size = datatype->size;
	return MPI_SUCCESS;
}

int mpi_type_get_extent(struct mpi_type *datatype, MPI_Count *lb, MPI_Count *extent)
{
	*lb = datatype->lb;
	*extent = datatype->extent;
	return MPI_SUCCESS;
}

int mpi_type_get_true_extent(struct mpi_type *datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
	*true_lb = datatype->true_lb;
	*true_extent = datatype->true_extent;
	return MPI_SUCCESS;
}

int mpi_type_set_name(struct mpi_type *datatype, const char *type_name)
{
	/* longer names are cut, as in C; MPI-4 §7.8 */
	size_t n = strnlen(type_name, sizeof(datatype->name) - 1);

	memcpy(datatype->name, type_name, n);
	datatype->name[n] = '\0';
	return MPI_SUCCESS;
}

int mpi_type_get_name(struct mpi_type *datatype, char *type_name, int *resultlen)
{
	const char *of = datatype ? datatype->name : "MPI_DATATYPE_NULL";

	*resultlen = (int)strlen(of);
	memcpy(type_name, of, (size_t)*resultlen + 1);
	return MPI_SUCCESS;
}

void mpi_type_mark_large(struct mpi_type *t)
{
	t->body->large = true;
}
