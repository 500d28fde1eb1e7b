/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes as communication sees them, and packing.
 *
 * The layout of a type never changes after its constructor. Packing copies bytes without
 * conversion: all processes have the same representation. Counts are in elements, sizes and
 * offsets in bytes.
 *
 * Callers check counts, sizes and whether a type is committed and usable; the functions here
 * trust them unless they return an error. None blocks. Functions that make or free types need
 * the library's lock.
 */
#ifndef MPI_SHIM_TYPE_H
#define MPI_SHIM_TYPE_H

#include <mpi.h>

#include "mpi_shim/core/handle.h"

struct mpi_attr;
struct mpi_type_body; /* its construction; body.h */

struct mpi_type {
	struct mpi_obj obj;
	bool committed;
	bool dense; /* any number of elements is one run of bytes without gaps, from true_lb on */
	bool predefined;
	MPI_Count size; /* bytes of data in an element */
	MPI_Aint lb, extent;
	MPI_Aint true_lb, true_extent;
	struct mpi_type_body *body;
	struct mpi_attr *attrs;
	char name[MPI_MAX_OBJECT_NAME];
};

/* MPI_LB and MPI_UB, which MPI-3 removed: numbers that no handle of the standard has. */
#define MPI_HANDLE_LB ((MPI_Datatype)0x800)
#define MPI_HANDLE_UB ((MPI_Datatype)0x801)

int mpi_types_init(void);
void mpi_types_fini(void);

/* The datatype of `handle`; NULL: not a datatype. */
static inline struct mpi_type *mpi_type_of(MPI_Datatype handle)
{
	return mpi_object_of(handle, MPI_KIND_TYPE);
}

/* The datatype of bytes. */
static inline struct mpi_type *mpi_bytes(void)
{
	return mpi_type_of(MPI_BYTE);
}

/*
 * Copy bytes [from, from + n) of the packed form of `count` elements at `buf` to `out`, or from
 * `in` back to the elements. The packed form is the data in type map order, without gaps. Parts
 * may be copied in any order; in order is fastest.
 */
void mpi_type_pack_bytes(const struct mpi_type *t, const void *buf, MPI_Count count, size_t from,
			 void *out, size_t n);
void mpi_type_unpack_bytes(const struct mpi_type *t, void *buf, MPI_Count count, size_t from,
			   const void *in, size_t n);

/*
 * Find the members of a pair for MPI_MINLOC and MPI_MAXLOC, and the offset of the index in
 * bytes. False: not a pair.
 */
bool mpi_type_pair(const struct mpi_type *t, const struct mpi_type **value,
		   const struct mpi_type **index, MPI_Aint *offset);
/* The one predefined type of all data of t; t itself if it is basic. NULL: data of several
 * types. */
const struct mpi_type *mpi_type_basic(const struct mpi_type *t);

/* Give the program one more handle of a type that it made, which it has to free. */
struct mpi_type *mpi_type_lend(struct mpi_type *t);

/* Mark a new type as made by a constructor's `_c` form, for the envelope. */
void mpi_type_mark_large(struct mpi_type *t);

/* Count the basic elements in the first `bytes` of packed data of this type. -1: the bytes end
 * within an element. */
MPI_Count mpi_type_elements(const struct mpi_type *t, MPI_Count bytes);
/* Count the bytes of packed data of so many basic elements. -1: the type has none, or the bytes
 * overflow. */
MPI_Count mpi_type_element_bytes(const struct mpi_type *t, MPI_Count elements);

/*
 * Copy between two typed buffers of this process, as a message would: at most the bytes of the
 * receiving side. MPI_SUCCESS, or an error class with the text kept, such as MPI_ERR_TRUNCATE.
 */
int mpi_type_copy(const void *from, MPI_Count from_count, const struct mpi_type *from_type,
		  void *to, MPI_Count to_count, const struct mpi_type *to_type);

/* `count` runs of `bytes` bytes of a datatype's data, `stride` bytes apart. The first is at
 * `offset` from the type's origin. */
struct mpi_runs {
	MPI_Aint offset, stride;
	size_t bytes, count;
};

/* Call `fn` for the runs of a datatype's data, in type map order; no run touches the next.
 * Another result of `fn` than MPI_SUCCESS ends the walk and is returned. */
typedef int mpi_run_fn(void *arg, const struct mpi_runs *r);
int mpi_type_runs(const struct mpi_type *t, MPI_Count count, mpi_run_fn *fn, void *arg);
/* The same for bytes [from, to) of the packed form of any number of elements: the first run may be
 * the rest of one, the last the beginning of one. */
int mpi_type_runs_between(const struct mpi_type *t, size_t from, size_t to, mpi_run_fn *fn,
			  void *arg);

#endif
