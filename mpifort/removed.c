/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Functions that MPI-3 removed and old programs still call, with the arguments of MPI-1:
 * addresses are INTEGERs of default kind. Each is built on its replacement.
 */
#include "mpifort.h"

#include <limits.h>
#include <stdlib.h>

#define BINDING(name, ...)                                                                         \
	MPIFORT_ENTRY void MPIFORT_NAME(name)(__VA_ARGS__);                                        \
	MPIFORT_ENTRY void MPIFORT_NAME(name)(__VA_ARGS__)

/* Markers in type maps, which the standard binary interface does not have. */
enum { LB = 0x800, UB = 0x801 };

/* An address may not fit. Then the error is visible at once, instead of wrong data. */
static int narrow(MPI_Aint value, int *to)
{
	if (value < INT_MIN || value > INT_MAX)
		return mpifort_raise(MPI_ERR_VALUE_TOO_LARGE);
	*to = (int)value;
	return MPI_SUCCESS;
}

/*
 * Most addresses today do not fit an INTEGER. The lower part suffices for what nearly all
 * programs do: subtract two addresses. Only MPI_BOTTOM needs the whole address: see doc/mpi.md.
 */
BINDING(mpi_address_, void *location, int *address, int *ierror)
{
	MPI_Aint whole;
	int rc = MPIFORT_CALL(Get_address)(mpifort_buffer(location), &whole);

	if (rc == MPI_SUCCESS)
		*address = (int)(unsigned)(uintptr_t)whole;
	mpifort_done(ierror, rc);
}

BINDING(mpi_type_extent_, int *datatype, int *extent, int *ierror)
{
	MPI_Aint lb, size;
	int rc = MPIFORT_CALL(Type_get_extent)(mpifort_datatype(*datatype), &lb, &size);

	if (rc == MPI_SUCCESS)
		rc = narrow(size, extent);
	mpifort_done(ierror, rc);
}

BINDING(mpi_type_lb_, int *datatype, int *displacement, int *ierror)
{
	MPI_Aint lb, size;
	int rc = MPIFORT_CALL(Type_get_extent)(mpifort_datatype(*datatype), &lb, &size);

	if (rc == MPI_SUCCESS)
		rc = narrow(lb, displacement);
	mpifort_done(ierror, rc);
}

BINDING(mpi_type_ub_, int *datatype, int *displacement, int *ierror)
{
	MPI_Aint lb, size;
	int rc = MPIFORT_CALL(Type_get_extent)(mpifort_datatype(*datatype), &lb, &size);

	if (rc == MPI_SUCCESS)
		rc = narrow(lb + size, displacement);
	mpifort_done(ierror, rc);
}

BINDING(mpi_type_hvector_, int *count, int *blocklength, int *stride, int *oldtype, int *newtype,
	int *ierror)
{
	MPI_Datatype made = MPI_DATATYPE_NULL;
	int rc = MPIFORT_CALL(Type_create_hvector)(*count, *blocklength, *stride,
						   mpifort_datatype(*oldtype), &made);

	if (rc == MPI_SUCCESS)
		*newtype = mpifort_of_datatype(made);
	mpifort_done(ierror, rc);
}

static MPI_Aint *widen(const int *values, int n, int *rc)
{
	MPI_Aint *wide = malloc((n > 0 ? (size_t)n : 1) * sizeof(*wide));

	if (!wide)
		*rc = mpifort_raise(MPI_ERR_NO_MEM);
	for (int i = 0; wide && i < n; i++)
		wide[i] = values[i];
	return wide;
}

BINDING(mpi_type_hindexed_, int *count, int *array_of_blocklengths, int *array_of_displacements,
	int *oldtype, int *newtype, int *ierror)
{
	MPI_Datatype made = MPI_DATATYPE_NULL;
	int rc = MPI_SUCCESS;
	MPI_Aint *at = widen(array_of_displacements, *count, &rc);

	if (rc == MPI_SUCCESS)
		rc = MPIFORT_CALL(Type_create_hindexed)(*count, array_of_blocklengths, at,
							mpifort_datatype(*oldtype), &made);
	if (rc == MPI_SUCCESS)
		*newtype = mpifort_of_datatype(made);
	free(at);
	mpifort_done(ierror, rc);
}

/* The parts of a structure without MPI_LB and MPI_UB, and the bounds these gave. */
struct parts {
	int n;
	int *lengths;
	MPI_Aint *at, lb, ub;
	MPI_Datatype *types;
	bool has_lb, has_ub;
};

static void mark(MPI_Aint at, bool lower, MPI_Aint *bound, bool *has)
{
	if (!*has || (lower ? at < *bound : at > *bound))
		*bound = at;
	*has = true;
}

static void add_part(struct parts *p, int length, MPI_Aint at, int type)
{
	if (type == LB && length > 0) {
		mark(at, true, &p->lb, &p->has_lb);
	} else if (type == UB && length > 0) {
		mark(at, false, &p->ub, &p->has_ub);
	} else if (type != LB && type != UB) {
		p->lengths[p->n] = length;
		p->at[p->n] = at;
		p->types[p->n++] = mpifort_datatype(type);
	}
}

static void parts_in(struct parts *p, int n, const int *lengths, const int *at, const int *types,
		     int *rc)
{
	size_t room = n > 0 ? (size_t)n : 1;

	p->lengths = malloc(room * sizeof(*p->lengths));
	p->at = malloc(room * sizeof(*p->at));
	p->types = malloc(room * sizeof(MPI_Datatype));
	if (!p->lengths || !p->at || !p->types) {
		*rc = mpifort_raise(MPI_ERR_NO_MEM);
		return;
	}
	for (int i = 0; i < n; i++)
		add_part(p, lengths[i], at[i], types[i]);
	if (n < 0)
		p->n = n; /* the following call reports the error */
}

/* Give the type the bounds that were marked. */
static int bounded(const struct parts *p, MPI_Datatype *type)
{
	MPI_Datatype plain = *type;
	MPI_Aint lb, extent, ub;
	int rc;

	if (!p->has_lb && !p->has_ub)
		return MPI_SUCCESS;
	rc = MPIFORT_CALL(Type_get_extent)(plain, &lb, &extent);
	if (rc != MPI_SUCCESS)
		return rc;
	ub = p->has_ub ? p->ub : lb + extent;
	if (p->has_lb)
		lb = p->lb;
	rc = MPIFORT_CALL(Type_create_resized)(plain, lb, ub - lb, type);
	MPIFORT_CALL(Type_free)(&plain);
	return rc;
}

BINDING(mpi_type_struct_, int *count, int *array_of_blocklengths, int *array_of_displacements,
	int *array_of_types, int *newtype, int *ierror)
{
	MPI_Datatype made = MPI_DATATYPE_NULL;
	struct parts p = { 0 };
	int rc = MPI_SUCCESS;

	parts_in(&p, *count, array_of_blocklengths, array_of_displacements, array_of_types, &rc);
	if (rc == MPI_SUCCESS)
		rc = MPIFORT_CALL(Type_create_struct)(p.n, p.lengths, p.at, p.types, &made);
	if (rc == MPI_SUCCESS)
		rc = bounded(&p, &made);
	if (rc == MPI_SUCCESS)
		*newtype = mpifort_of_datatype(made);
	free(p.types);
	free(p.at);
	free(p.lengths);
	mpifort_done(ierror, rc);
}

BINDING(mpi_errhandler_set_, int *comm, int *errhandler, int *ierror)
{
	mpifort_done(ierror, MPIFORT_CALL(Comm_set_errhandler)(mpifort_comm(*comm),
							       mpifort_errhandler(*errhandler)));
}

BINDING(mpi_errhandler_get_, int *comm, int *errhandler, int *ierror)
{
	MPI_Errhandler found = MPI_ERRHANDLER_NULL;
	int rc = MPIFORT_CALL(Comm_get_errhandler)(mpifort_comm(*comm), &found);

	if (rc == MPI_SUCCESS)
		*errhandler = mpifort_of_errhandler(found);
	mpifort_done(ierror, rc);
}
