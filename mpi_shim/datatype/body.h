/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The inside of a datatype: how it was made, and where its bytes lie. For this folder.
 *
 * Where bytes lie is a piece: a run of bytes, or a shape (a loop or a list over smaller pieces).
 * Shapes never change once made and are shared between types, so a type's piece is built when the
 * type is, from the pieces of the types it is made of, and is as flat as it can be: what touches is
 * one run, what is regular is a loop.
 */
#ifndef MPI_SHIM_TYPE_BODY_H
#define MPI_SHIM_TYPE_BODY_H

#include "mpi_shim/datatype/type.h"

/* ---- where bytes lie ------------------------------------------------------------------------- */

struct mpi_segment {
	MPI_Aint offset;         /* from where the piece is put */
	size_t size;             /* bytes of data */
	struct mpi_shape *shape; /* NULL: one run */
};

struct mpi_run {
	MPI_Aint offset;
	size_t start; /* in packed data; the next one's is the end */
};

enum mpi_shape_kind { MPI_SHAPE_LOOP, MPI_SHAPE_BLOCKS, MPI_SHAPE_RUNS, MPI_SHAPE_LIST };

struct mpi_shape {
	int refs;
	int depth; /* of nesting: bounds recursion */
	enum mpi_shape_kind kind;
	size_t n;
	/* LOOP: n times `each`, whose offset is 0, `stride` apart */
	MPI_Aint stride;
	struct mpi_segment each;
	/* BLOCKS: runs of `length` bytes, within 4 GiB from `base` on */
	size_t length;
	MPI_Aint base;
	uint32_t *near;
	/* RUNS: n + 1 entries */
	struct mpi_run *run;
	/* LIST: n pieces; n + 1 starts */
	struct mpi_segment *segment;
	size_t *start;
};

/* Pieces under construction, in packed order. */
struct mpi_list {
	struct mpi_segment *segment;
	size_t n, room;
	bool failed; /* memory was short */
};

struct mpi_segment mpi_segment_keep(struct mpi_segment p);
void mpi_segment_release(struct mpi_segment p);
/* `count` times `each`. False: memory is short. The result is the caller's, `each` stays its
 * owner's. */
bool mpi_segment_loop(struct mpi_segment *out, struct mpi_segment each, size_t count,
		      MPI_Aint stride);
/* Adds p, moved by `offset`. */
void mpi_list_add(struct mpi_list *list, struct mpi_segment p, MPI_Aint offset);
/* Ends the list. False: memory was short. */
bool mpi_list_end(struct mpi_list *list, struct mpi_segment *out);

/* ---- how a type was made --------------------------------------------------------------------- */

/* What a basic type's bytes mean, for external32. */
enum mpi_basic {
	MPI_BASIC_NONE,
	MPI_BASIC_BYTES, /* never converted */
	MPI_BASIC_SIGNED,
	MPI_BASIC_UNSIGNED,
	MPI_BASIC_FLOAT,
	MPI_BASIC_COMPLEX,
	MPI_BASIC_LONG_DOUBLE, /* the platform's own */
	MPI_BASIC_LONG_COMPLEX,
};

struct mpi_type_body {
	struct mpi_type_body *next; /* of those to be ended */
	int combiner;
	bool large; /* made by a call with MPI_Count arguments: so get_contents shows it */
	bool lb_set,
		ub_set; /* by a marker or MPI_Type_create_resized; else they follow from data */
	int depth;      /* of types within types */
	int handles;    /* the user's; attributes go with the last */
	MPI_Aint align;
	struct mpi_segment segment;
	enum mpi_basic basic;        /* of a basic type */
	const struct mpi_type *only; /* the basic type all its data is of, NULL if of several */
	MPI_Count elements;          /* basic elements in one */
	MPI_Count unit;              /* bytes of each of them, 0 if they differ */
	MPI_Count external;          /* bytes of one in external32 */
	/* The arguments of the constructor, in the order of its `_c` form. */
	size_t n_args;
	MPI_Count *args;
	size_t n_types;
	struct mpi_type *leaf; /* for accumulates, which ask for it first: see leaf_of() */
	bool leaf_known;
	struct mpi_type **types;
};

/* Nesting beyond this is refused: it bounds recursion over types. */
#define MPI_TYPE_DEPTH 2048

/* What a type will be, gathered block by block. */
struct mpi_draft {
	bool overflow;
	bool data, marked_lb, marked_ub;
	MPI_Aint lb, ub, set_lb, set_ub, true_lb, true_ub;
	MPI_Count size, elements, unit, external;
	const struct mpi_type *only;
	MPI_Aint align;
	int depth;
};

/* `count` blocks of `length` elements of `t`, `stride` bytes apart, the first at `offset`. */
void mpi_draft_add(struct mpi_draft *d, const struct mpi_type *t, MPI_Aint offset, MPI_Count count,
		   MPI_Count length, MPI_Aint stride);
/* A type with room for arguments and types, one handle, everything else zero. */
int mpi_type_new(struct mpi_type **out, int combiner, size_t n_args, size_t n_types);
bool mpi_type_fill(struct mpi_type *t, const struct mpi_draft *d, bool pad,
		   struct mpi_segment segment);
/* The type becomes what the draft says, with this piece (which it takes), or ends with an error.
 * `pad`: the extent is rounded up to the alignment, as that of a struct is. */
int mpi_type_finish(struct mpi_type *t, const struct mpi_draft *d, bool pad,
		    struct mpi_segment segment, struct mpi_type **newtype);
/* MPI_SUCCESS, or the error that such a type cannot be used. */
int mpi_type_usable(const struct mpi_type *t);

/* Member i of a type that is not basic: `times` this type, in packed order. */
const struct mpi_type *mpi_type_member(const struct mpi_type *t, size_t i, MPI_Count *times);

/* t becomes the pair that C's struct { value; index; } is; its body has room for two types. */
int mpi_type_make_pair(struct mpi_type *t, struct mpi_type *value, struct mpi_type *index);

int mpi_types_predefine(void);
void mpi_types_forget(void);
/* Bytes that `count` times `each` bytes are; fails if count or type is wrong. */
int mpi_type_bytes(const struct mpi_type *t, MPI_Count count, MPI_Count each, MPI_Count *bytes);
/* Whether `bytes` at `position` are within `size`. */
int mpi_pack_room(MPI_Count position, MPI_Count size, MPI_Count bytes);

/* f90.c's own types, made once for each set of parameters. */
void mpi_type_special_fini(void);

#endif
