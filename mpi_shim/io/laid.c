/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes as they lie in a file. A representation has sizes of its own for basic types, and a
 * filetype that is made of these by counts and displacements in elements has other sizes, extents
 * and displacements in the file. It is made once more, with the same constructors, of basic types
 * that are as long as in the file. Displacements in bytes stay, for the program has chosen them by
 * MPI_File_get_type_extent (MPI-4 §14.5).
 */
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/datatype/body.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/datarep.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

bool mpi_datarep_is_basic(const struct mpi_type *type)
{
	return type->body->n_types == 0 || type->body->combiner == MPI_COMBINER_NAMED ||
	       type->body->combiner == MPI_COMBINER_VALUE_INDEX;
}

static int too_many_bytes(const struct mpi_type *type)
{
	return mpi_fail(MPI_ERR_TYPE, "a datatype of %lld bytes exceeds 2^63 bytes in the file",
			(long long)type->size);
}

static int add_bytes(const struct mpi_type *type, MPI_Count times, MPI_Count each, MPI_Count *sum)
{
	MPI_Count more;

	if (__builtin_mul_overflow(times, each, &more) || __builtin_add_overflow(*sum, more, sum))
		return too_many_bytes(type);
	return MPI_SUCCESS;
}

/* The depth of types is bounded. */
int mpi_datarep_bytes(const struct mpi_datarep *rep, const struct mpi_type *type, MPI_Count *bytes)
{
	const struct mpi_type_body *b = type->body;
	MPI_Count each = 0, times;
	int err = MPI_SUCCESS;

	*bytes = rep->kind == MPI_DATAREP_EXTERNAL32 ? b->external : type->size;
	if (rep->kind != MPI_DATAREP_REGISTERED || type->size == 0)
		return MPI_SUCCESS;
	if (mpi_datarep_is_basic(type))
		return mpi_datarep_basic(rep, type, bytes);
	*bytes = 0;
	if (b->only) {
		err = mpi_datarep_basic(rep, b->only, &each);
		return err ? err : add_bytes(type, b->elements, each, bytes);
	}
	for (size_t i = 0; i < b->n_types && !err; i++) {
		const struct mpi_type *m = mpi_type_member(type, i, &times);

		err = mpi_datarep_bytes(rep, m, &each);
		if (!err)
			err = add_bytes(type, times, each, bytes);
	}
	return err;
}

/* Whole members of the given type at the beginning of *bytes, which are taken off. */
static MPI_Count whole_members(const struct mpi_type *m, MPI_Count each, MPI_Count times,
			       MPI_Count *bytes, struct mpi_datarep_prefix *prefix)
{
	MPI_Count whole = each > 0 && *bytes / each < times ? *bytes / each : times;

	prefix->elements += whole * m->body->elements;
	prefix->native += whole * m->size;
	*bytes -= whole * each;
	return whole;
}

int mpi_datarep_measure(const struct mpi_datarep *rep, const struct mpi_type *type, MPI_Count bytes,
			struct mpi_datarep_prefix *prefix)
{
	const struct mpi_type_body *b = type->body;
	MPI_Count each = 0, times;
	int err = MPI_SUCCESS;

	if (mpi_datarep_is_basic(type))
		return MPI_SUCCESS; /* less than one element */
	if (b->only) {
		err = mpi_datarep_bytes(rep, b->only, &each);
		if (!err)
			whole_members(b->only, each, b->elements, &bytes, prefix);
		return err;
	}
	for (size_t i = 0; i < b->n_types && bytes > 0 && !err; i++) {
		const struct mpi_type *m = mpi_type_member(type, i, &times);

		err = mpi_datarep_bytes(rep, m, &each);
		if (!err && whole_members(m, each, times, &bytes, prefix) < times)
			return mpi_datarep_measure(rep, m, bytes, prefix);
	}
	return err;
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* The ints of a constructor's arguments; NULL: out of memory. */
static int *as_ints(const MPI_Count *arg, size_t n)
{
	int *ints = malloc((n ? n : 1) * sizeof(*ints));

	for (size_t i = 0; ints && i < n; i++)
		ints[i] = (int)arg[i];
	return ints;
}

static int make_darray(const MPI_Count *arg, struct mpi_type *of, struct mpi_type **out)
{
	size_t n = (size_t)arg[2];
	int *ints = as_ints(arg + 3 + n, 3 * n);
	int err;

	if (!ints)
		return mpi_fail_memory("a datatype");
	err = mpi_type_create_darray((int)arg[0], (int)arg[1], (int)n, arg + 3, ints, ints + n,
				     ints + 2 * n, (int)arg[3 + 4 * n], of, out);
	free(ints);
	return err;
}

/* Make a type like `like`, of other members. */
static int make_like(const struct mpi_type *like, struct mpi_type **of, struct mpi_type **out)
{
	const struct mpi_type_body *b = like->body;
	const MPI_Count *arg = b->args;
	size_t n = b->n_args ? (size_t)arg[0] : 0;

	switch (b->combiner) {
	case MPI_COMBINER_DUP:
		return mpi_type_dup(of[0], out);
	case MPI_COMBINER_CONTIGUOUS:
		return mpi_type_contiguous(arg[0], of[0], out);
	case MPI_COMBINER_VECTOR:
		return mpi_type_vector(arg[0], arg[1], arg[2], of[0], out);
	case MPI_COMBINER_HVECTOR:
		return mpi_type_create_hvector(arg[0], arg[1], arg[2], of[0], out);
	case MPI_COMBINER_INDEXED:
		return mpi_type_indexed(arg[0], arg + 1, arg + 1 + n, of[0], out);
	case MPI_COMBINER_HINDEXED:
		return mpi_type_create_hindexed(arg[0], arg + 1, arg + 1 + n, of[0], out);
	case MPI_COMBINER_INDEXED_BLOCK:
		return mpi_type_create_indexed_block(arg[0], arg[1], arg + 2, of[0], out);
	case MPI_COMBINER_HINDEXED_BLOCK:
		return mpi_type_create_hindexed_block(arg[0], arg[1], arg + 2, of[0], out);
	case MPI_COMBINER_STRUCT:
		return mpi_type_create_struct(arg[0], arg + 1, arg + 1 + n, of, out);
	case MPI_COMBINER_SUBARRAY:
		return mpi_type_create_subarray((int)n, arg + 1, arg + 1 + n, arg + 1 + 2 * n,
						(int)arg[1 + 3 * n], of[0], out);
	case MPI_COMBINER_DARRAY:
		return make_darray(arg, of[0], out);
	case MPI_COMBINER_RESIZED:
		return mpi_type_create_resized(of[0], arg[0], arg[1], out);
	default:
		return mpi_fail(MPI_ERR_TYPE,
				"the datatype cannot be laid out in a file of another "
				"representation");
	}
}

static int lay_basic(const struct mpi_datarep *rep, struct mpi_type *type, struct mpi_type **out)
{
	MPI_Count bytes = 0;
	int err = mpi_datarep_bytes(rep, type, &bytes);

	if (err)
		return err;
	if (bytes != type->size || type->extent != type->size)
		return mpi_type_contiguous(bytes, mpi_bytes(), out);
	*out = mpi_object_keep(type);
	return MPI_SUCCESS;
}

static int lay_derived(const struct mpi_datarep *rep, struct mpi_type *type, struct mpi_type **out)
{
	const struct mpi_type_body *b = type->body;
	struct mpi_type **of = calloc(b->n_types, sizeof(*of));
	int err = of ? MPI_SUCCESS : mpi_fail_memory("a datatype");
	bool differs = false;

	for (size_t i = 0; of && !err && i < b->n_types; i++) {
		err = mpi_datarep_laid(rep, b->types[i], &of[i]);
		differs |= !err && of[i] != b->types[i];
	}
	if (!err && differs)
		err = make_like(type, of, out);
	else if (!err)
		*out = mpi_object_keep(type);
	for (size_t i = 0; of && i < b->n_types; i++)
		mpi_object_release(of[i]);
	free(of);
	return err;
}

/* The depth of types is bounded. A type that is no longer than in memory is its own. */
int mpi_datarep_laid(const struct mpi_datarep *rep, struct mpi_type *type, struct mpi_type **laid)
{
	if (rep->kind == MPI_DATAREP_NATIVE) {
		*laid = mpi_object_keep(type);
		return MPI_SUCCESS;
	}
	return mpi_datarep_is_basic(type) ? lay_basic(rep, type, laid)
					  : lay_derived(rep, type, laid);
}

int mpi_datarep_extent(const struct mpi_datarep *rep, const struct mpi_type *type,
		       MPI_Count *extent)
{
	struct mpi_type *laid = NULL;
	/* it is only referenced */
	int err = mpi_datarep_laid(rep, (struct mpi_type *)(uintptr_t)type, &laid);

	if (!err && laid)
		*extent = laid->extent;
	mpi_object_release(laid);
	return err;
}
