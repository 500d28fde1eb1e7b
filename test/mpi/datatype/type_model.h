/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A model of datatypes: the type map itself, one entry for each basic element, and every rule of
 * the standard as the loop that it is. Slow, and hard to get wrong.
 */
#ifndef TYPE_MODEL_H
#define TYPE_MODEL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_MOST = 1500, MODEL_DIMS = 3 };

struct m_basic {
	MPI_Datatype handle;
	const char *name;
	int size, align, external;
};

extern const struct m_basic m_basics[];
extern const int m_basic_count;

struct m_entry {
	int64_t at;
	const struct m_basic *basic;
};

struct m_type {
	size_t n;
	struct m_entry entry[MODEL_MOST];
	bool overfull; /* too many entries: not to be used */
	bool has_lb, has_ub, any;
	int64_t mark_lb, mark_ub, low, high;
	int64_t align;
	/* when it is done */
	int64_t lb, ub;
};

void m_of_basic(struct m_type *m, const struct m_basic *basic);
/* The named pair of these two. */
void m_of_pair(struct m_type *m, const struct m_basic *value, const struct m_basic *index);

void m_begin(struct m_type *m);
void m_add(struct m_type *m, const struct m_type *old, int64_t at);
/* `length` elements in a row. */
void m_add_row(struct m_type *m, const struct m_type *old, int64_t at, int64_t length);
void m_mark_lb(struct m_type *m, int64_t at);
void m_mark_ub(struct m_type *m, int64_t at);
void m_end(struct m_type *m, bool pad);

/* For arrays, everything in the order of the user's arguments. */
struct m_array {
	int ndims, order;
	MPI_Count size[MODEL_DIMS], part[MODEL_DIMS], start[MODEL_DIMS];
	int distrib[MODEL_DIMS], darg[MODEL_DIMS], psize[MODEL_DIMS];
	int processes, rank;
};

void m_subarray(struct m_type *m, const struct m_type *old, const struct m_array *a);
void m_darray(struct m_type *m, const struct m_type *old, const struct m_array *a);

int64_t m_size(const struct m_type *m);
int64_t m_true_lb(const struct m_type *m);
int64_t m_true_ub(const struct m_type *m);
int64_t m_external_size(const struct m_type *m);
/* Whether two elements of `count` of it share a byte. */
bool m_overlaps(const struct m_type *m, int count);
void m_pack(const struct m_type *m, const char *buf, int count, char *out);
void m_unpack(const struct m_type *m, char *buf, int count, const char *in);
/* Basic elements in that many bytes of packed data, -1 if they end within one. */
int64_t m_elements(const struct m_type *m, int64_t bytes);

#endif
