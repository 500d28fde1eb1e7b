/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes: what communication needs to know of one, and packing.
 */
#ifndef MPI_SHIM_TYPE_H
#define MPI_SHIM_TYPE_H

#include <mpi.h>

#include "mpi_shim/core/handle.h"

struct mpi_attr;
struct mpi_type_body; /* how it was made; body.h */

struct mpi_type {
	struct mpi_obj obj;
	bool committed;
	bool dense; /* any count of it is one run of bytes without gaps, starting at true_lb */
	bool predefined;
	MPI_Count size; /* bytes of data in one */
	MPI_Aint lb, extent;
	MPI_Aint true_lb, true_extent;
	struct mpi_type_body *body;
	struct mpi_attr *attrs;
	char name[MPI_MAX_OBJECT_NAME];
};

/* MPI_LB and MPI_UB, which MPI-3 removed: numbers that the standard's handles cannot have. */
#define MPI_HANDLE_LB ((MPI_Datatype)0x800)
#define MPI_HANDLE_UB ((MPI_Datatype)0x801)

int mpi_types_init(void);
void mpi_types_fini(void);

/* `handle` as an object; NULL: not a datatype. */
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
 * Copies bytes [from, from + n) of the packed form of `count` elements at `buf` to `out`, or
 * from `in` back into their places. The packed form is the data in type map order, without gaps.
 * Pieces may be taken in any order; in order is fastest.
 */
void mpi_type_pack_bytes(const struct mpi_type *t, const void *buf, MPI_Count count, size_t from,
			 void *out, size_t n);
void mpi_type_unpack_bytes(const struct mpi_type *t, void *buf, MPI_Count count, size_t from,
			   const void *in, size_t n);

/*
 * The members of a pair for MPI_MINLOC and MPI_MAXLOC and where the index lies behind the value;
 * false: not a pair.
 */
bool mpi_type_pair(const struct mpi_type *t, const struct mpi_type **value,
		   const struct mpi_type **index, MPI_Aint *offset);
/* The one predefined type that all data of t is of, t itself if it is basic; NULL: of several. */
const struct mpi_type *mpi_type_basic(const struct mpi_type *t);

/* Marks a new type as made by a constructor's `_c` form: so the envelope shows it. */
void mpi_type_mark_large(struct mpi_type *t);

/* Basic elements in the first `bytes` of packed data of this type; -1 if they end within one. */
MPI_Count mpi_type_elements(const struct mpi_type *t, MPI_Count bytes);
/* Bytes of packed data that so many basic elements are; -1: the type has none, or too many
 * bytes. */
MPI_Count mpi_type_element_bytes(const struct mpi_type *t, MPI_Count elements);

/*
 * Copies between two typed places in this process, as a message would: at most the bytes of the
 * receiving side. MPI_SUCCESS or MPI_ERR_TRUNCATE (kept text).
 */
int mpi_type_copy(const void *from, MPI_Count from_count, const struct mpi_type *from_type,
		  void *to, MPI_Count to_count, const struct mpi_type *to_type);

/* `count` runs of `bytes` bytes of a datatype's data, `stride` bytes apart, the first at `offset`
 * from its origin. */
struct mpi_runs {
	MPI_Aint offset, stride;
	size_t bytes, count;
};

/* Runs of a datatype's data, none of which touches the next. Not MPI_SUCCESS ends the walk. */
typedef int mpi_run_fn(void *arg, const struct mpi_runs *r);
int mpi_type_runs(const struct mpi_type *t, MPI_Count count, mpi_run_fn *fn, void *arg);

#endif
