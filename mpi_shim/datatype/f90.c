/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Predefined types without a name: the types that Fortran's selected_real_kind and
 * selected_int_kind would choose, pairs for MPI_MINLOC, and types found by size. The same
 * parameters always give the same handle, so a type is kept until MPI_Finalize.
 */
#include "mpi_shim/datatype/body.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/impl.h"
#include "mpi_shim/core/error.h"

/* The types made so far; their parameters are in the type. */
static struct special {
	struct mpi_type *type;
} * special;
static size_t special_count;

void mpi_type_special_fini(void)
{
	for (size_t i = 0; i < special_count; i++)
		mpi_object_release(special[i].type);
	free(special);
	special = NULL;
	special_count = 0;
}

static struct mpi_type *find_by_numbers(int combiner, const MPI_Count *args, size_t n)
{
	for (size_t i = 0; i < special_count; i++) {
		const struct mpi_type_body *b = special[i].type->body;

		if (b->combiner == combiner && b->n_args == n &&
		    memcmp(b->args, args, n * sizeof(*args)) == 0)
			return special[i].type;
	}
	return NULL;
}

static struct mpi_type *find_pair_type(const struct mpi_type *value, const struct mpi_type *index)
{
	for (size_t i = 0; i < special_count; i++) {
		const struct mpi_type_body *b = special[i].type->body;

		if (b->combiner == MPI_COMBINER_VALUE_INDEX && b->types[0] == value &&
		    b->types[1] == index)
			return special[i].type;
	}
	return NULL;
}

static int keep_special(struct mpi_type *t)
{
	struct special *more = reallocarray(special, special_count + 1, sizeof(*more));

	if (!more)
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for one more datatype");
	special = more;
	special[special_count++].type = t;
	t->predefined = t->committed = true;
	return MPI_SUCCESS;
}

/* ---- Fortran's kinds ------------------------------------------------------------------------- */

struct kind {
	MPI_Datatype real, complex;
	int digits, range;
};

static const struct kind kinds[] = {
	{ MPI_REAL4, MPI_COMPLEX8, FLT_DIG, FLT_MAX_10_EXP - 1 },
	{ MPI_REAL8, MPI_COMPLEX16, DBL_DIG, DBL_MAX_10_EXP - 1 },
	{ MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX, LDBL_DIG, LDBL_MAX_10_EXP - 1 },
	{ MPI_REAL16, MPI_COMPLEX32, 33, 4931 },
};

static const struct {
	MPI_Datatype type;
	int range;
} int_kinds[] = {
	{ MPI_INTEGER1, 2 },  { MPI_INTEGER2, 4 },   { MPI_INTEGER4, 9 },
	{ MPI_INTEGER8, 18 }, { MPI_INTEGER16, 38 },
};

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* Make, or find, the unnamed twin of a predefined type with these parameters. */
static int twin(int combiner, const MPI_Count *args, size_t n_args, MPI_Datatype like,
		struct mpi_type **newtype)
{
	const struct mpi_type *base = mpi_type_of(like);
	struct mpi_type *t = find_by_numbers(combiner, args, n_args);
	struct mpi_draft d = { 0 };
	int rc;

	if (t) {
		*newtype = t;
		return MPI_SUCCESS;
	}
	rc = mpi_type_new(&t, combiner, n_args, 0);
	if (rc != MPI_SUCCESS)
		return rc;
	memcpy(t->body->args, args, n_args * sizeof(*args));
	mpi_draft_add(&d, base, 0, 1, 1, 0);
	d.depth = 0;
	rc = mpi_type_finish(t, &d, false, base->body->segment, &t);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = keep_special(t);
	if (rc != MPI_SUCCESS) {
		mpi_object_release(t);
		return rc;
	}
	*newtype = t;
	return MPI_SUCCESS;
}

static int real_kind(int combiner, int p, int r, struct mpi_type **newtype)
{
	if (p == MPI_UNDEFINED && r == MPI_UNDEFINED)
		return mpi_fail(MPI_ERR_ARG, "precision and range are both MPI_UNDEFINED");
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		const struct kind *k = &kinds[i];

		if ((p == MPI_UNDEFINED || p <= k->digits) && (r == MPI_UNDEFINED || r <= k->range))
			return twin(combiner, (MPI_Count[]){ p, r }, 2,
				    combiner == MPI_COMBINER_F90_REAL ? k->real : k->complex,
				    newtype);
	}
	return mpi_fail(MPI_ERR_ARG,
			"no real kind has %d digits and a decimal exponent range of %d", p, r);
}

int mpi_type_create_f90_real(int p, int r, struct mpi_type **newtype)
{
	return real_kind(MPI_COMBINER_F90_REAL, p, r, newtype);
}

int mpi_type_create_f90_complex(int p, int r, struct mpi_type **newtype)
{
	return real_kind(MPI_COMBINER_F90_COMPLEX, p, r, newtype);
}

int mpi_type_create_f90_integer(int r, struct mpi_type **newtype)
{
	for (size_t i = 0; i < COUNT_OF(int_kinds); i++) {
		if (r <= int_kinds[i].range)
			return twin(MPI_COMBINER_F90_INTEGER, (MPI_Count[]){ r }, 1,
				    int_kinds[i].type, newtype);
	}
	return mpi_fail(MPI_ERR_ARG, "no integer kind has a decimal range of %d", r);
}

/* ---- by size --------------------------------------------------------------------------------- */

int mpi_type_match_size(int typeclass, int size, struct mpi_type **datatype)
{
	static const MPI_Datatype integers[] = { MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4,
						 MPI_INTEGER8, MPI_INTEGER16 };
	static const MPI_Datatype reals[] = { MPI_REAL2, MPI_REAL4, MPI_REAL8, MPI_REAL16 };
	static const MPI_Datatype complexes[] = { MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16,
						  MPI_COMPLEX32 };
	const MPI_Datatype *in = integers;
	size_t n = COUNT_OF(integers);

	if (typeclass == MPI_TYPECLASS_REAL) {
		in = reals;
		n = COUNT_OF(reals);
	} else if (typeclass == MPI_TYPECLASS_COMPLEX) {
		in = complexes;
		n = COUNT_OF(complexes);
	} else if (typeclass != MPI_TYPECLASS_INTEGER) {
		return mpi_fail(MPI_ERR_ARG,
				"type class %d is none of MPI_TYPECLASS_INTEGER, _REAL and "
				"_COMPLEX",
				typeclass);
	}
	for (size_t i = 0; i < n; i++) {
		struct mpi_type *t = mpi_type_of(in[i]);

		if (t->size == size) {
			*datatype = t;
			return MPI_SUCCESS;
		}
	}
	return mpi_fail(MPI_ERR_ARG, "no predefined type of this class has %d bytes", size);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static bool is_value(const struct mpi_type *t)
{
	enum mpi_basic kind = t->body->basic;

	return t->predefined && t->size > 0 &&
	       (kind == MPI_BASIC_SIGNED || kind == MPI_BASIC_UNSIGNED || kind == MPI_BASIC_FLOAT ||
		kind == MPI_BASIC_LONG_DOUBLE);
}

static bool is_integer_type(const struct mpi_type *t)
{
	return t->body->basic == MPI_BASIC_SIGNED || t->body->basic == MPI_BASIC_UNSIGNED;
}

static struct mpi_type *named_pair(const struct mpi_type *value, const struct mpi_type *index)
{
	static const MPI_Datatype pairs[] = { MPI_FLOAT_INT, MPI_DOUBLE_INT,
					      MPI_LONG_INT,  MPI_2INT,
					      MPI_SHORT_INT, MPI_LONG_DOUBLE_INT,
					      MPI_2REAL,     MPI_2DOUBLE_PRECISION,
					      MPI_2INTEGER };

	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		struct mpi_type *t = mpi_type_of(pairs[i]);

		if (t->body->types[0] == value && t->body->types[1] == index)
			return t;
	}
	return NULL;
}

int mpi_type_get_value_index(struct mpi_type *value_type, struct mpi_type *index_type,
			     struct mpi_type **pair_type)
{
	struct mpi_type *t = named_pair(value_type, index_type);
	int rc;

	*pair_type = t;
	if (t || !is_value(value_type) || !is_value(index_type) || !is_integer_type(index_type))
		return MPI_SUCCESS; /* MPI_DATATYPE_NULL: no such pair; MPI-4.1 §5.1.4 */
	t = find_pair_type(value_type, index_type);
	if (!t) {
		rc = mpi_type_new(&t, MPI_COMBINER_VALUE_INDEX, 0, 2);
		if (rc != MPI_SUCCESS)
			return rc;
		rc = mpi_type_make_pair(t, value_type, index_type);
		if (rc == MPI_SUCCESS)
			rc = keep_special(t);
		if (rc != MPI_SUCCESS) {
			mpi_object_release(t);
			return rc;
		}
	}
	*pair_type = t;
	return MPI_SUCCESS;
}
