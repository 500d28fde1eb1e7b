/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The predefined datatypes: one table, by handle. Some Fortran and C++ types have no
 * counterpart in C compilers here. They exist, but have the size MPI_UNDEFINED and cannot be
 * used (MPI-5 ABI).
 */
#include "mpi_shim/datatype/body.h"

#include <stddef.h>
#include <string.h>
#include <wchar.h>

#include "mpi_shim/core/error.h"

/* Fortran's default kinds, which are the same in all its compilers on LP64. */
enum { F_INTEGER = 4, F_REAL = 4, F_DOUBLE = 8 };

#define NONE 0 /* as size: not on this platform */

struct entry {
	MPI_Datatype handle;
	const char *name;
	enum mpi_basic basic;
	int size, align, external;
};

struct pair_entry {
	MPI_Datatype handle;
	const char *name;
	MPI_Datatype value, index;
};

/* clang-format off */
#define C_TYPE(name, kind, type, external) \
	{ MPI_##name, "MPI_" #name, MPI_BASIC_##kind, sizeof(type), _Alignof(type), external }
#define F_TYPE(name, kind, size, align) \
	{ MPI_##name, "MPI_" #name, MPI_BASIC_##kind, size, align, size }
/* clang-format on */

static const struct entry basics[] = {
	C_TYPE(AINT, SIGNED, MPI_Aint, 8),
	C_TYPE(COUNT, SIGNED, MPI_Count, 8),
	C_TYPE(OFFSET, SIGNED, MPI_Offset, 8),
	F_TYPE(PACKED, BYTES, 1, 1),
	C_TYPE(SHORT, SIGNED, short, 2),
	C_TYPE(INT, SIGNED, int, 4),
	C_TYPE(LONG, SIGNED, long, 4),
	C_TYPE(LONG_LONG_INT, SIGNED, long long, 8),
	C_TYPE(UNSIGNED_SHORT, UNSIGNED, unsigned short, 2),
	C_TYPE(UNSIGNED, UNSIGNED, unsigned int, 4),
	C_TYPE(UNSIGNED_LONG, UNSIGNED, unsigned long, 4),
	C_TYPE(UNSIGNED_LONG_LONG, UNSIGNED, unsigned long long, 8),
	C_TYPE(FLOAT, FLOAT, float, 4),
	C_TYPE(C_COMPLEX, COMPLEX, float _Complex, 8),
	C_TYPE(CXX_FLOAT_COMPLEX, COMPLEX, float _Complex, 8),
	C_TYPE(DOUBLE, FLOAT, double, 8),
	C_TYPE(C_DOUBLE_COMPLEX, COMPLEX, double _Complex, 16),
	C_TYPE(CXX_DOUBLE_COMPLEX, COMPLEX, double _Complex, 16),
	F_TYPE(LOGICAL, UNSIGNED, F_INTEGER, F_INTEGER),
	F_TYPE(INTEGER, SIGNED, F_INTEGER, F_INTEGER),
	F_TYPE(REAL, FLOAT, F_REAL, F_REAL),
	F_TYPE(COMPLEX, COMPLEX, 2 * F_REAL, F_REAL),
	F_TYPE(DOUBLE_PRECISION, FLOAT, F_DOUBLE, F_DOUBLE),
	F_TYPE(DOUBLE_COMPLEX, COMPLEX, 2 * F_DOUBLE, F_DOUBLE),
	F_TYPE(CHARACTER, BYTES, 1, 1),
	C_TYPE(LONG_DOUBLE, LONG_DOUBLE, long double, 16),
	C_TYPE(C_LONG_DOUBLE_COMPLEX, LONG_COMPLEX, long double _Complex, 32),
	C_TYPE(CXX_LONG_DOUBLE_COMPLEX, LONG_COMPLEX, long double _Complex, 32),
	C_TYPE(C_BOOL, UNSIGNED, _Bool, 1),
	C_TYPE(CXX_BOOL, UNSIGNED, _Bool, 1),
	C_TYPE(WCHAR, UNSIGNED, wchar_t, 2),
	C_TYPE(INT8_T, SIGNED, int8_t, 1),
	C_TYPE(UINT8_T, UNSIGNED, uint8_t, 1),
	C_TYPE(CHAR, BYTES, char, 1),
	C_TYPE(SIGNED_CHAR, SIGNED, signed char, 1),
	C_TYPE(UNSIGNED_CHAR, UNSIGNED, unsigned char, 1),
	F_TYPE(BYTE, BYTES, 1, 1),
	C_TYPE(INT16_T, SIGNED, int16_t, 2),
	C_TYPE(UINT16_T, UNSIGNED, uint16_t, 2),
	C_TYPE(INT32_T, SIGNED, int32_t, 4),
	C_TYPE(UINT32_T, UNSIGNED, uint32_t, 4),
	C_TYPE(INT64_T, SIGNED, int64_t, 8),
	C_TYPE(UINT64_T, UNSIGNED, uint64_t, 8),
	F_TYPE(LOGICAL1, UNSIGNED, 1, 1),
	F_TYPE(INTEGER1, SIGNED, 1, 1),
	F_TYPE(LOGICAL2, UNSIGNED, 2, 2),
	F_TYPE(INTEGER2, SIGNED, 2, 2),
	F_TYPE(REAL2, FLOAT, NONE, 1),
	F_TYPE(LOGICAL4, UNSIGNED, 4, 4),
	F_TYPE(INTEGER4, SIGNED, 4, 4),
	F_TYPE(REAL4, FLOAT, 4, 4),
	F_TYPE(COMPLEX4, COMPLEX, NONE, 1),
	F_TYPE(LOGICAL8, UNSIGNED, 8, 8),
	F_TYPE(INTEGER8, SIGNED, 8, 8),
	F_TYPE(REAL8, FLOAT, 8, 8),
	F_TYPE(COMPLEX8, COMPLEX, 8, 4),
	F_TYPE(LOGICAL16, UNSIGNED, 16, 16),
	F_TYPE(INTEGER16, SIGNED, 16, 16),
	F_TYPE(REAL16, FLOAT, 16, 16),
	F_TYPE(COMPLEX16, COMPLEX, 16, 8),
	F_TYPE(COMPLEX32, COMPLEX, 32, 16),
};

/* clang-format off */
#define PAIR(name, value, index) { MPI_##name, "MPI_" #name, MPI_##value, MPI_##index }
/* clang-format on */

static const struct pair_entry pairs[] = {
	PAIR(FLOAT_INT, FLOAT, INT),
	PAIR(DOUBLE_INT, DOUBLE, INT),
	PAIR(LONG_INT, LONG, INT),
	PAIR(2INT, INT, INT),
	PAIR(SHORT_INT, SHORT, INT),
	PAIR(LONG_DOUBLE_INT, LONG_DOUBLE, INT),
	PAIR(2REAL, REAL, REAL),
	PAIR(2DOUBLE_PRECISION, DOUBLE_PRECISION, DOUBLE_PRECISION),
	PAIR(2INTEGER, INTEGER, INTEGER),
};

enum {
	BASICS = sizeof(basics) / sizeof(basics[0]),
	PAIRS = sizeof(pairs) / sizeof(pairs[0]),
	MARKERS = 2,
	ALL = BASICS + PAIRS + MARKERS,
};

static struct mpi_type types[ALL];
static struct mpi_type_body bodies[ALL];
static struct mpi_type *pair_types[PAIRS][2];

static struct mpi_type *predefine_type(int i, MPI_Datatype handle, const char *name)
{
	struct mpi_type *t = &types[i];
	struct mpi_type_body *b = &bodies[i];

	*t = (struct mpi_type){ .committed = true, .predefined = true, .body = b };
	*b = (struct mpi_type_body){ .combiner = MPI_COMBINER_NAMED, .handles = 1, .align = 1 };
	strncpy(t->name, name, sizeof(t->name) - 1);
	mpi_object_predefine(t, MPI_KIND_TYPE, (uint32_t)(uintptr_t)handle);
	return t;
}

static void predefine_basic(int i, const struct entry *e)
{
	struct mpi_type *t = predefine_type(i, e->handle, e->name);
	struct mpi_type_body *b = t->body;

	if (e->size == NONE) {
		t->size = MPI_UNDEFINED;
		t->committed = false;
		return;
	}
	t->dense = true;
	t->size = t->extent = t->true_extent = e->size;
	b->basic = e->basic;
	b->only = t;
	b->elements = 1;
	b->unit = e->size;
	b->external = e->external;
	b->align = e->align;
	b->segment.size = (size_t)e->size;
}

int mpi_types_predefine(void)
{
	int i = 0, rc = MPI_SUCCESS;

	for (int k = 0; k < BASICS; k++)
		predefine_basic(i++, &basics[k]);
	for (int k = 0; k < PAIRS && rc == MPI_SUCCESS; k++) {
		const struct pair_entry *p = &pairs[k];
		struct mpi_type *t = predefine_type(i++, p->handle, p->name);

		t->body->types = pair_types[k];
		rc = mpi_type_make_pair(t, mpi_type_of(p->value), mpi_type_of(p->index));
	}
	predefine_type(i, MPI_HANDLE_LB, "MPI_LB")->body->lb_set = true;
	types[i++].committed = false;
	predefine_type(i, MPI_HANDLE_UB, "MPI_UB")->body->ub_set = true;
	types[i++].committed = false;
	return rc;
}

void mpi_types_forget(void)
{
	for (int i = 0; i < BASICS + PAIRS; i++) {
		mpi_segment_release(bodies[i].segment);
		bodies[i].segment = (struct mpi_segment){ 0 };
	}
}
