/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The constructors of derived types other than arrays. Each gathers the new type's bounds in a
 * draft and builds its segment from those of its member types. It keeps its arguments for
 * get_contents.
 */
#include "mpi_shim/datatype/body.h"

#include <string.h>

#include "mpi_shim/impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/object.h"

static int no_memory(struct mpi_type *t)
{
	mpi_object_release(t);
	return mpi_fail(MPI_ERR_NO_MEM, "no memory for the layout of a datatype");
}

static int check_count(MPI_Count n)
{
	return n >= 0 ? MPI_SUCCESS
		      : mpi_fail(MPI_ERR_COUNT, "the count is %lld, but cannot be negative",
				 (long long)n);
}

static int check_lengths(MPI_Count count, const MPI_Count *length)
{
	for (MPI_Count i = 0; i < count; i++) {
		if (length[i] < 0)
			return mpi_fail(MPI_ERR_ARG,
					"block length %lld is %lld, but cannot be negative",
					(long long)i, (long long)length[i]);
	}
	return MPI_SUCCESS;
}

/* Begin a type made of oldtype alone. */
static int begin_derived(struct mpi_type **out, int combiner, MPI_Count n_args,
			 struct mpi_type *oldtype)
{
	int rc = mpi_type_usable(oldtype);

	if (rc == MPI_SUCCESS)
		rc = mpi_type_new(out, combiner, (size_t)n_args, 1);
	if (rc == MPI_SUCCESS)
		(*out)->body->types[0] = mpi_object_keep(oldtype);
	return rc;
}

/* Make a segment of `length` elements in a row. */
static bool row_of(const struct mpi_type *t, MPI_Count length, struct mpi_segment *out)
{
	return mpi_segment_loop(out, t->body->segment, (size_t)length, t->extent);
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* Finish a type of `count` blocks of `length` elements, the blocks `stride` bytes apart. */
static int regular(struct mpi_type *t, MPI_Count count, MPI_Count length, MPI_Aint stride,
		   struct mpi_type **newtype)
{
	struct mpi_type *old = t->body->types[0];
	struct mpi_draft d = { 0 };
	struct mpi_segment row, all = { 0 };
	bool ok;

	mpi_draft_add(&d, old, 0, count, length, stride);
	if (!d.overflow) {
		ok = row_of(old, length, &row) &&
		     mpi_segment_loop(&all, row, (size_t)count, stride);
		mpi_segment_release(row);
		if (!ok)
			return no_memory(t);
	}
	return mpi_type_finish(t, &d, false, all, newtype);
}

int mpi_type_contiguous(MPI_Count count, struct mpi_type *oldtype, struct mpi_type **newtype)
{
	struct mpi_type *t;
	int rc = check_count(count);

	if (rc == MPI_SUCCESS)
		rc = begin_derived(&t, MPI_COMBINER_CONTIGUOUS, 1, oldtype);
	if (rc != MPI_SUCCESS)
		return rc;
	t->body->args[0] = count;
	return regular(t, 1, count, 0, newtype);
}

static int vector(int combiner, MPI_Count count, MPI_Count length, MPI_Count stride,
		  struct mpi_type *oldtype, struct mpi_type **newtype)
{
	struct mpi_type *t;
	MPI_Aint bytes = stride;
	int rc = check_count(count);

	if (rc == MPI_SUCCESS)
		rc = check_lengths(1, &length);
	if (rc == MPI_SUCCESS)
		rc = begin_derived(&t, combiner, 3, oldtype);
	if (rc != MPI_SUCCESS)
		return rc;
	memcpy(t->body->args, (MPI_Count[]){ count, length, stride }, 3 * sizeof(MPI_Count));
	if (combiner == MPI_COMBINER_VECTOR && count > 1 &&
	    __builtin_mul_overflow(stride, oldtype->extent, &bytes)) {
		struct mpi_draft d = { .overflow = true };

		return mpi_type_finish(t, &d, false, (struct mpi_segment){ 0 }, newtype);
	}
	return regular(t, count, length, bytes, newtype);
}

int mpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
		    struct mpi_type *oldtype, struct mpi_type **newtype)
{
	return vector(MPI_COMBINER_VECTOR, count, blocklength, stride, oldtype, newtype);
}

int mpi_type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
			    struct mpi_type *oldtype, struct mpi_type **newtype)
{
	return vector(MPI_COMBINER_HVECTOR, count, blocklength, stride, oldtype, newtype);
}

/* ---- lists of blocks ------------------------------------------------------------------------- */

/* Blocks of an indexed type or a struct. */
struct blocks {
	MPI_Count count;
	const MPI_Count *length; /* length of each block, or one for all */
	bool same_length;
	const MPI_Count *displacement;
	MPI_Aint unit;                 /* bytes of a displacement */
	struct mpi_type *const *types; /* type of each block, or one for all */
	bool same_type;
};

static MPI_Count length_of(const struct blocks *b, MPI_Count i)
{
	return b->length[b->same_length ? 0 : i];
}

static const struct mpi_type *type_of_block(const struct blocks *b, MPI_Count i)
{
	return b->types[b->same_type ? 0 : i];
}

static void draft_blocks(struct mpi_draft *d, const struct blocks *b)
{
	for (MPI_Count i = 0; i < b->count && !d->overflow; i++) {
		MPI_Aint offset;

		if (length_of(b, i) == 0)
			continue;
		if (__builtin_mul_overflow(b->displacement[i], b->unit, &offset))
			d->overflow = true;
		else
			mpi_draft_add(d, type_of_block(b, i), offset, 1, length_of(b, i), 0);
	}
}

static bool list_blocks(struct mpi_list *list, const struct blocks *b)
{
	struct mpi_segment row = { 0 };
	MPI_Count made = -1; /* the block for which `row` was made */

	for (MPI_Count i = 0; i < b->count; i++) {
		MPI_Count length = length_of(b, i);

		if (made < 0 || length != length_of(b, made) ||
		    type_of_block(b, i) != type_of_block(b, made)) {
			mpi_segment_release(row);
			if (!row_of(type_of_block(b, i), length, &row))
				return false;
			made = i;
		}
		mpi_list_add(list, row, (MPI_Aint)((size_t)b->displacement[i] * (size_t)b->unit));
	}
	mpi_segment_release(row);
	return true;
}

static int from_blocks(struct mpi_type *t, const struct blocks *b, bool pad,
		       struct mpi_type **newtype)
{
	struct mpi_draft d = { 0 };
	struct mpi_list list = { 0 };
	struct mpi_segment segment = { 0 };

	draft_blocks(&d, b);
	if (!d.overflow) {
		bool listed = list_blocks(&list, b);

		if (!mpi_list_end(&list, &segment) || !listed) {
			mpi_segment_release(segment);
			return no_memory(t);
		}
	}
	return mpi_type_finish(t, &d, pad, segment, newtype);
}

/* The four indexed types. Their arguments are a count, one or `count` lengths, and `count`
 * displacements. */
static int indexed(int combiner, struct blocks *b, struct mpi_type *oldtype,
		   struct mpi_type **newtype)
{
	MPI_Count lengths = b->same_length ? 1 : b->count;
	struct mpi_type *t;
	int rc = check_count(b->count);

	if (rc == MPI_SUCCESS)
		rc = check_lengths(lengths, b->length);
	if (rc == MPI_SUCCESS)
		rc = begin_derived(&t, combiner, 1 + lengths + b->count, oldtype);
	if (rc != MPI_SUCCESS)
		return rc;
	t->body->args[0] = b->count;
	if (b->count > 0) {
		size_t bytes = (size_t)b->count * sizeof(MPI_Count);

		memcpy(t->body->args + 1, b->length, (size_t)lengths * sizeof(MPI_Count));
		memcpy(t->body->args + 1 + lengths, b->displacement, bytes);
	} else if (b->same_length) {
		t->body->args[1] = b->length[0];
	}
	b->types = t->body->types;
	b->same_type = true;
	return from_blocks(t, b, false, newtype);
}

int mpi_type_indexed(MPI_Count count, const MPI_Count *array_of_blocklengths,
		     const MPI_Count *array_of_displacements, struct mpi_type *oldtype,
		     struct mpi_type **newtype)
{
	struct blocks b = { .count = count,
			    .length = array_of_blocklengths,
			    .displacement = array_of_displacements,
			    .unit = oldtype->extent };

	return indexed(MPI_COMBINER_INDEXED, &b, oldtype, newtype);
}

int mpi_type_create_hindexed(MPI_Count count, const MPI_Count *array_of_blocklengths,
			     const MPI_Count *array_of_displacements, struct mpi_type *oldtype,
			     struct mpi_type **newtype)
{
	struct blocks b = { .count = count,
			    .length = array_of_blocklengths,
			    .displacement = array_of_displacements,
			    .unit = 1 };

	return indexed(MPI_COMBINER_HINDEXED, &b, oldtype, newtype);
}

int mpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength,
				  const MPI_Count *array_of_displacements, struct mpi_type *oldtype,
				  struct mpi_type **newtype)
{
	struct blocks b = { .count = count,
			    .length = &blocklength,
			    .same_length = true,
			    .displacement = array_of_displacements,
			    .unit = oldtype->extent };

	return indexed(MPI_COMBINER_INDEXED_BLOCK, &b, oldtype, newtype);
}

int mpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength,
				   const MPI_Count *array_of_displacements,
				   struct mpi_type *oldtype, struct mpi_type **newtype)
{
	struct blocks b = { .count = count,
			    .length = &blocklength,
			    .same_length = true,
			    .displacement = array_of_displacements,
			    .unit = 1 };

	return indexed(MPI_COMBINER_HINDEXED_BLOCK, &b, oldtype, newtype);
}

int mpi_type_create_struct(MPI_Count count, const MPI_Count *array_of_blocklengths,
			   const MPI_Count *array_of_displacements,
			   struct mpi_type *const *array_of_types, struct mpi_type **newtype)
{
	struct mpi_type *t;
	size_t n = (size_t)count;
	int rc = check_count(count);

	if (rc == MPI_SUCCESS)
		rc = check_lengths(count, array_of_blocklengths);
	for (MPI_Count i = 0; i < count && rc == MPI_SUCCESS; i++)
		rc = mpi_type_usable(array_of_types[i]);
	if (rc == MPI_SUCCESS)
		rc = mpi_type_new(&t, MPI_COMBINER_STRUCT, 1 + 2 * n, n);
	if (rc != MPI_SUCCESS)
		return rc;
	t->body->args[0] = count;
	for (size_t i = 0; i < n; i++) {
		t->body->args[1 + i] = array_of_blocklengths[i];
		t->body->args[1 + n + i] = array_of_displacements[i];
		t->body->types[i] = mpi_object_keep(array_of_types[i]);
	}
	return from_blocks(t,
			   &(struct blocks){ .count = count,
					     .length = array_of_blocklengths,
					     .displacement = array_of_displacements,
					     .unit = 1,
					     .types = t->body->types },
			   true, newtype);
}

/* ---- resized and duplicate types ------------------------------------------------------------- */

int mpi_type_create_resized(struct mpi_type *oldtype, MPI_Count lb, MPI_Count extent,
			    struct mpi_type **newtype)
{
	struct mpi_draft d = { 0 };
	struct mpi_type *t;
	int rc = begin_derived(&t, MPI_COMBINER_RESIZED, 2, oldtype);

	if (rc != MPI_SUCCESS)
		return rc;
	t->body->args[0] = lb;
	t->body->args[1] = extent;
	mpi_draft_add(&d, oldtype, 0, 1, 1, 0);
	d.depth = oldtype->body->depth; /* its elements are found without recursion */
	d.marked_lb = d.marked_ub = true;
	d.set_lb = lb;
	d.overflow |= __builtin_add_overflow(lb, extent, &d.set_ub);
	return mpi_type_finish(t, &d, false, mpi_segment_keep(oldtype->body->segment), newtype);
}

int mpi_type_dup(struct mpi_type *oldtype, struct mpi_type **newtype)
{
	struct mpi_draft d = { 0 };
	struct mpi_type *t;
	int rc = begin_derived(&t, MPI_COMBINER_DUP, 0, oldtype);

	if (rc != MPI_SUCCESS)
		return rc;
	mpi_draft_add(&d, oldtype, 0, 1, 1, 0);
	d.depth = oldtype->body->depth;
	rc = mpi_type_finish(t, &d, false, mpi_segment_keep(oldtype->body->segment), &t);
	if (rc != MPI_SUCCESS)
		return rc;
	t->committed = oldtype->committed;
	rc = mpi_attrs_copy(oldtype, MPI_KIND_TYPE, oldtype->attrs, t, &t->attrs);
	if (rc != MPI_SUCCESS) {
		mpi_object_release(t);
		return rc;
	}
	*newtype = t;
	return MPI_SUCCESS;
}

/* The layout of a pair: MPI_MINLOC's operands are C structs. */
int mpi_type_make_pair(struct mpi_type *t, struct mpi_type *value, struct mpi_type *index)
{
	MPI_Aint align = index->body->align;
	MPI_Aint offset = (value->extent + align - 1) / align * align;
	struct mpi_draft d = { 0 };
	struct mpi_list list = { 0 };
	struct mpi_segment segment;

	t->body->n_types = 2;
	t->body->types[0] = mpi_object_keep(value);
	t->body->types[1] = mpi_object_keep(index);
	mpi_draft_add(&d, value, 0, 1, 1, 0);
	mpi_draft_add(&d, index, offset, 1, 1, 0);
	mpi_list_add(&list, value->body->segment, 0);
	mpi_list_add(&list, index->body->segment, offset);
	if (!mpi_list_end(&list, &segment) || !mpi_type_fill(t, &d, true, segment))
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for a pair datatype");
	return MPI_SUCCESS;
}
