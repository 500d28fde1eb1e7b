/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The inside of a datatype: how it was made, and where its bytes lie. It is for this folder,
 * and for the operations and accumulates that need a basic type's meaning.
 *
 * The layout is a segment: a run of bytes, or a shape, which is a loop or a list over smaller
 * segments. Shapes never change once made, and types share them. A type's segment is built
 * with the type, from the segments of the types it is made of. It is as flat as possible:
 * touching bytes are one run, and a regular sequence is a loop.
 *
 * Reference counts are not atomic: the library's lock must be held.
 */
#ifndef MPI_SHIM_TYPE_BODY_H
#define MPI_SHIM_TYPE_BODY_H

#include "mpi_shim/datatype/type.h"

/* ---- layout ---------------------------------------------------------------------------------- */

struct mpi_segment {
	MPI_Aint offset;         /* from the address where the segment is put */
	size_t size;             /* bytes of data */
	struct mpi_shape *shape; /* NULL: one run */
};

struct mpi_run {
	MPI_Aint offset;
	size_t start; /* in packed data; the next run's start is the end */
};

enum mpi_shape_kind { MPI_SHAPE_LOOP, MPI_SHAPE_BLOCKS, MPI_SHAPE_RUNS, MPI_SHAPE_LIST };

struct mpi_shape {
	int refs;
	int depth; /* of nesting: bounds recursion */
	enum mpi_shape_kind kind;
	size_t n;
	/* LOOP: n times `each`, `stride` bytes apart; the offset of `each` is 0 */
	MPI_Aint stride;
	struct mpi_segment each;
	/* BLOCKS: n runs of `length` bytes, within 4 GiB from `base` on; offset32[i] is the offset
	 * of run i from `base` */
	size_t length;
	MPI_Aint base;
	uint32_t *offset32;
	/* RUNS: n + 1 entries */
	struct mpi_run *run;
	/* LIST: n segments; n + 1 starts in packed data */
	struct mpi_segment *segment;
	size_t *start;
};

/* Segments under construction, in packed order. */
struct mpi_list {
	struct mpi_segment *segment;
	size_t n, room;
	bool failed; /* out of memory */
};

struct mpi_segment mpi_segment_keep(struct mpi_segment p);
void mpi_segment_release(struct mpi_segment p);
/* Make `count` times `each`, `stride` bytes apart. False: out of memory. The caller owns the
 * result, and `each` keeps its owner. */
bool mpi_segment_loop(struct mpi_segment *out, struct mpi_segment each, size_t count,
		      MPI_Aint stride);
/* Add p, moved by `offset` bytes. A failure is reported by mpi_list_end(). */
void mpi_list_add(struct mpi_list *list, struct mpi_segment p, MPI_Aint offset);
/* End the list: make its segment and free it. False: out of memory. */
bool mpi_list_end(struct mpi_list *list, struct mpi_segment *out);

/* ---- construction ---------------------------------------------------------------------------- */

/* Meaning of a basic type's bytes, for external32. */
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
	struct mpi_type_body *next; /* list of bodies to be freed */
	int combiner;
	bool large; /* made by a call with MPI_Count arguments, for get_contents */
	/* set by a marker or MPI_Type_create_resized; else the bounds follow from the data */
	bool lb_set, ub_set;
	int depth;   /* nesting depth of types */
	int handles; /* the user's handles; attributes go with the last */
	MPI_Aint align;
	struct mpi_segment segment;
	enum mpi_basic basic;        /* meaning of a basic type's bytes */
	const struct mpi_type *only; /* the basic type of all its data; NULL: of several */
	MPI_Count elements;          /* basic elements in an element of the type */
	MPI_Count unit;              /* bytes of each basic element; 0 if they differ */
	MPI_Count external;          /* bytes of an element in external32 */
	/* The arguments of the constructor, in the order of its `_c` form. */
	size_t n_args;
	MPI_Count *args;
	size_t n_types;
	struct mpi_type *leaf; /* set by leaf_of() for accumulates */
	bool leaf_known;
	struct mpi_type **types;
};

/* Deeper nesting is refused: this bounds recursion over types. */
#define MPI_TYPE_DEPTH 2048

/* Bounds and counts of a type under construction, gathered block by block. */
struct mpi_draft {
	bool overflow;
	bool data, marked_lb, marked_ub;
	MPI_Aint lb, ub, set_lb, set_ub, true_lb, true_ub;
	MPI_Count size, elements, unit, external;
	const struct mpi_type *only;
	MPI_Aint align;
	int depth;
};

/* Add `count` blocks of `length` elements of `t`, `stride` bytes apart, the first at `offset`. */
void mpi_draft_add(struct mpi_draft *d, const struct mpi_type *t, MPI_Aint offset, MPI_Count count,
		   MPI_Count length, MPI_Aint stride);
/* Make a type with room for arguments and types, with one handle and everything else zero.
 * MPI_ERR_NO_MEM: out of memory. */
int mpi_type_new(struct mpi_type **out, int combiner, size_t n_args, size_t n_types);
bool mpi_type_fill(struct mpi_type *t, const struct mpi_draft *d, bool pad,
		   struct mpi_segment segment);
/* Complete the type from the draft and a segment, which it takes over; or end it and return an
 * error. `pad`: the extent is rounded up to the alignment, as for a struct. */
int mpi_type_finish(struct mpi_type *t, const struct mpi_draft *d, bool pad,
		    struct mpi_segment segment, struct mpi_type **newtype);
/* MPI_SUCCESS, or MPI_ERR_TYPE if the type does not exist on this platform. */
int mpi_type_usable(const struct mpi_type *t);

/* Member i of a type that is not basic, repeated `times` times in packed order. */
const struct mpi_type *mpi_type_member(const struct mpi_type *t, size_t i, MPI_Count *times);

/* Make t the pair of C's struct { value; index; }. Its body must have room for two types. */
int mpi_type_make_pair(struct mpi_type *t, struct mpi_type *value, struct mpi_type *index);

int mpi_types_predefine(void);
void mpi_types_forget(void);
/* Set *bytes to count * each. Fails if the type is unusable, the count negative or the product
 * too large. */
int mpi_type_bytes(const struct mpi_type *t, MPI_Count count, MPI_Count each, MPI_Count *bytes);
/* Check that `bytes` bytes at `position` fit into `size` bytes: MPI_SUCCESS, MPI_ERR_ARG or
 * MPI_ERR_TRUNCATE. */
int mpi_pack_room(MPI_Count position, MPI_Count size, MPI_Count bytes);

/* Release f90.c's types, which are made once for each set of parameters. */
void mpi_type_special_fini(void);

#endif
