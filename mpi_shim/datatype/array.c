/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Parts of arrays: MPI_Type_create_subarray and MPI_Type_create_darray. Dimensions are added
 * one by one, the fastest first. The part of a row becomes an element of the next dimension,
 * and its extent is the whole row's.
 */
#include "mpi_shim/datatype/body.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_shim/impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/object.h"

/* The selected part of one dimension: `blocks` blocks of `length` elements every `stride`, then
 * `rest` elements. */
struct taken {
	MPI_Count whole; /* elements of the dimension */
	MPI_Count start, blocks, length, stride, rest;
};

/* The part so far, as a type. */
struct level {
	struct mpi_type type;
	struct mpi_type_body body;
};

struct array {
	struct level level;
	struct mpi_draft draft;     /* the source of level.type */
	struct mpi_segment segment; /* owned */
	bool no_memory;
};

/* Bytes of so many elements in the dimension; sets d->overflow on overflow. */
static MPI_Aint bytes_to(struct mpi_draft *d, MPI_Count elements, MPI_Aint extent)
{
	MPI_Aint bytes = 0;

	d->overflow |= __builtin_mul_overflow(elements, extent, &bytes);
	return bytes;
}

static bool add_row(struct mpi_list *list, struct mpi_segment each, MPI_Count length,
		    MPI_Aint extent, MPI_Count blocks, MPI_Aint stride, MPI_Aint start)
{
	struct mpi_segment row, all;
	bool ok;

	if (!mpi_segment_loop(&row, each, (size_t)length, extent))
		return false;
	ok = mpi_segment_loop(&all, row, (size_t)blocks, stride);
	mpi_segment_release(row);
	if (ok)
		mpi_list_add(list, all, start);
	mpi_segment_release(all);
	return ok;
}

static void add_dimension(struct array *a, const struct taken *k)
{
	const struct mpi_type *t = &a->level.type;
	MPI_Aint extent = t->extent;
	struct mpi_draft d = { .marked_lb = true, .marked_ub = true };
	MPI_Aint start = bytes_to(&d, k->start, extent);
	MPI_Aint stride = bytes_to(&d, k->stride, extent);
	MPI_Aint rest = bytes_to(&d, k->start + k->blocks * k->stride, extent);
	struct mpi_list list = { 0 };
	struct mpi_segment segment = { 0 };
	bool ok = true;

	mpi_draft_add(&d, t, start, k->blocks, k->length, stride);
	mpi_draft_add(&d, t, rest, 1, k->rest, 0);
	/* the old element's own bounds have no effect; MPI-4 §5.1.3 */
	d.set_lb = 0;
	d.set_ub = bytes_to(&d, k->whole, extent);
	if (!d.overflow) {
		ok = add_row(&list, a->segment, k->length, extent, k->blocks, stride, start) &&
		     add_row(&list, a->segment, k->rest, extent, 1, 0, rest);
		ok = mpi_list_end(&list, &segment) && ok;
	}
	mpi_segment_release(a->segment);
	a->segment = segment;
	a->draft = d;
	a->no_memory |= !ok;
	a->draft.overflow |= !mpi_type_fill(&a->level.type, &a->draft, false, segment);
}

static int make_array(struct mpi_type *t, struct taken *dimension, int ndims,
		      struct mpi_type **newtype)
{
	struct mpi_type *old = t->body->types[0];
	struct array a = { .segment = mpi_segment_keep(old->body->segment) };

	a.level.type = *old;
	a.level.body = *old->body;
	a.level.type.body = &a.level.body;
	for (int i = 0; i < ndims && !a.draft.overflow && !a.no_memory; i++)
		add_dimension(&a, &dimension[i]);
	if (a.no_memory) {
		mpi_segment_release(a.segment);
		mpi_object_release(t);
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for the layout of a datatype");
	}
	a.draft.depth = old->body->depth + 1;
	return mpi_type_finish(t, &a.draft, false, a.segment, newtype);
}

/* Make the type with its arguments, or return an error common to all arrays. */
static int begin_array(struct mpi_type **out, int combiner, size_t n_args, int order,
		       struct mpi_type *oldtype)
{
	int rc = mpi_type_usable(oldtype);

	if (rc == MPI_SUCCESS && order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
		rc = mpi_fail(MPI_ERR_ARG, "order %d is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN",
			      order);
	if (rc == MPI_SUCCESS)
		rc = mpi_type_new(out, combiner, n_args, 1);
	if (rc == MPI_SUCCESS)
		(*out)->body->types[0] = mpi_object_keep(oldtype);
	return rc;
}

static int check_ndims(int ndims)
{
	return ndims >= 1
		       ? MPI_SUCCESS
		       : mpi_fail(MPI_ERR_ARG, "an array of %d dimensions; 1 is the least", ndims);
}

/* ---- subarrays ------------------------------------------------------------------------------- */

static int check_subarray(int ndims, const MPI_Count *size, const MPI_Count *part,
			  const MPI_Count *start)
{
	for (int i = 0; i < ndims; i++) {
		if (size[i] < 1 || part[i] < 1 || part[i] > size[i])
			return mpi_fail(MPI_ERR_ARG,
					"dimension %d: a part of %lld of %lld elements", i,
					(long long)part[i], (long long)size[i]);
		if (start[i] < 0 || start[i] > size[i] - part[i])
			return mpi_fail(MPI_ERR_ARG,
					"dimension %d: %lld elements from %lld on are not within "
					"%lld",
					i, (long long)part[i], (long long)start[i],
					(long long)size[i]);
	}
	return MPI_SUCCESS;
}

/* The index in the user's arrays of dimension i, counted from the fastest. */
static int fastest(int i, int ndims, int order)
{
	return order == MPI_ORDER_C ? ndims - 1 - i : i;
}

int mpi_type_create_subarray(int ndims, const MPI_Count *array_of_sizes,
			     const MPI_Count *array_of_subsizes, const MPI_Count *array_of_starts,
			     int order, struct mpi_type *oldtype, struct mpi_type **newtype)
{
	size_t n = (size_t)ndims;
	struct taken *dimension;
	struct mpi_type *t;
	int rc = check_ndims(ndims);

	if (rc == MPI_SUCCESS)
		rc = check_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts);
	if (rc == MPI_SUCCESS)
		rc = begin_array(&t, MPI_COMBINER_SUBARRAY, 3 * n + 2, order, oldtype);
	if (rc != MPI_SUCCESS)
		return rc;
	dimension = calloc(n, sizeof(*dimension));
	if (!dimension) {
		mpi_object_release(t);
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for %d dimensions", ndims);
	}
	t->body->args[0] = ndims;
	t->body->args[3 * n + 1] = order;
	for (int i = 0; i < ndims; i++) {
		int from = fastest(i, ndims, order);

		t->body->args[1 + i] = array_of_sizes[i];
		t->body->args[1 + ndims + i] = array_of_subsizes[i];
		t->body->args[1 + 2 * ndims + i] = array_of_starts[i];
		dimension[i] = (struct taken){ .whole = array_of_sizes[from],
					       .start = array_of_starts[from],
					       .blocks = 1,
					       .length = array_of_subsizes[from] };
	}
	rc = make_array(t, dimension, ndims, newtype);
	free(dimension);
	return rc;
}

/* ---- distributed arrays ---------------------------------------------------------------------- */

/* One dimension of a distribution, as one process sees it. */
struct share {
	MPI_Count size; /* of the whole array */
	int how, arg;
	int processes, mine; /* along this dimension */
};

static int check_share(int i, const struct share *s)
{
	if (s->size < 1 || s->processes < 1)
		return mpi_fail(MPI_ERR_ARG, "dimension %d: %lld elements on %d processes", i,
				(long long)s->size, s->processes);
	if (s->how != MPI_DISTRIBUTE_NONE && s->how != MPI_DISTRIBUTE_BLOCK &&
	    s->how != MPI_DISTRIBUTE_CYCLIC)
		return mpi_fail(MPI_ERR_ARG, "dimension %d: %d is not a distribution", i, s->how);
	if (s->how == MPI_DISTRIBUTE_NONE)
		return s->processes == 1
			       ? MPI_SUCCESS
			       : mpi_fail(MPI_ERR_ARG,
					  "dimension %d: not distributed, but on %d processes; "
					  "give it one",
					  i, s->processes);
	if (s->arg == MPI_DISTRIBUTE_DFLT_DARG)
		return MPI_SUCCESS;
	if (s->arg < 1)
		return mpi_fail(MPI_ERR_ARG, "dimension %d: blocks of %d elements", i, s->arg);
	if (s->how == MPI_DISTRIBUTE_BLOCK && (MPI_Count)s->arg * s->processes < s->size)
		return mpi_fail(MPI_ERR_ARG,
				"dimension %d: %d blocks of %d elements do not hold %lld", i,
				s->processes, s->arg, (long long)s->size);
	return MPI_SUCCESS;
}

/* The part that a process gets: MPI-4 §5.1.4. */
static struct taken indices_taken(const struct share *s)
{
	struct taken t = { .whole = s->size };
	MPI_Count block = s->arg, left, round;

	if (s->how == MPI_DISTRIBUTE_NONE)
		block = s->size;
	else if (s->arg == MPI_DISTRIBUTE_DFLT_DARG)
		block = s->how == MPI_DISTRIBUTE_BLOCK ? (s->size - 1) / s->processes + 1 : 1;
	round = block * s->processes;
	left = s->size - block * s->mine;
	if (left <= 0)
		return t;
	t.start = block * s->mine;
	t.length = block;
	t.stride = round;
	t.blocks = left / round;
	t.rest = left % round;
	if (t.rest >= block) {
		t.rest = 0;
		t.blocks++;
	}
	return t;
}

/* Compute the coordinates of `rank` in the grid. The last dimension is the fastest, whatever the
 * order of the array. */
static int place_in_grid(struct share *share, int ndims, int size, int rank)
{
	MPI_Count all = 1;

	for (int i = 0; i < ndims && all <= size; i++)
		all *= share[i].processes;
	if (all != size)
		return mpi_fail(MPI_ERR_ARG, "the process grid does not have %d processes", size);
	if (rank < 0 || rank >= size)
		return mpi_fail(MPI_ERR_ARG, "rank %d of %d processes", rank, size);
	for (int i = ndims - 1; i >= 0 && share[i].processes > 0; i--) {
		share[i].mine = rank % share[i].processes;
		rank /= share[i].processes;
	}
	return MPI_SUCCESS;
}

static int darray(struct mpi_type *t, struct share *share, struct taken *dimension, int order,
		  struct mpi_type **newtype)
{
	const MPI_Count *args = t->body->args;
	int ndims = (int)args[2];
	int rc = MPI_SUCCESS;

	for (int i = 0; i < ndims && rc == MPI_SUCCESS; i++) {
		share[i] = (struct share){ .size = args[3 + i],
					   .how = (int)args[3 + ndims + i],
					   .arg = (int)args[3 + 2 * ndims + i],
					   .processes = (int)args[3 + 3 * ndims + i] };
		rc = check_share(i, &share[i]);
	}
	if (rc == MPI_SUCCESS)
		rc = place_in_grid(share, ndims, (int)args[0], (int)args[1]);
	if (rc != MPI_SUCCESS) {
		mpi_object_release(t);
		return rc;
	}
	for (int i = 0; i < ndims; i++)
		dimension[i] = indices_taken(&share[fastest(i, ndims, order)]);
	return make_array(t, dimension, ndims, newtype);
}

int mpi_type_create_darray(int size, int rank, int ndims, const MPI_Count *array_of_gsizes,
			   const int *array_of_distribs, const int *array_of_dargs,
			   const int *array_of_psizes, int order, struct mpi_type *oldtype,
			   struct mpi_type **newtype)
{
	size_t n = (size_t)ndims;
	struct taken *dimension;
	struct share *share;
	struct mpi_type *t;
	int rc = check_ndims(ndims);

	if (rc == MPI_SUCCESS)
		rc = begin_array(&t, MPI_COMBINER_DARRAY, 4 * n + 4, order, oldtype);
	if (rc != MPI_SUCCESS)
		return rc;
	memcpy(t->body->args, (MPI_Count[]){ size, rank, ndims }, 3 * sizeof(MPI_Count));
	for (size_t i = 0; i < n; i++) {
		t->body->args[3 + i] = array_of_gsizes[i];
		t->body->args[3 + n + i] = array_of_distribs[i];
		t->body->args[3 + 2 * n + i] = array_of_dargs[i];
		t->body->args[3 + 3 * n + i] = array_of_psizes[i];
	}
	t->body->args[3 + 4 * n] = order;
	share = calloc(n, sizeof(*share));
	dimension = calloc(n, sizeof(*dimension));
	if (share && dimension) {
		rc = darray(t, share, dimension, order, newtype);
	} else {
		mpi_object_release(t);
		rc = mpi_fail(MPI_ERR_NO_MEM, "no memory for %d dimensions", ndims);
	}
	free(share);
	free(dimension);
	return rc;
}
