/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Building of shapes: loops and lists of pieces, simplified as they are made. What a type's author
 * wrote and what is copied can look quite different: a struct of touching members is a run, an
 * indexed type with regular displacements a loop, a vector of contiguous rows one block.
 */
#include "mpi_shim/datatype/body.h"

#include <stdlib.h>
#include <string.h>

enum {
	INLINE_MOST = 8, /* entries of a list within a list that are taken over one by one */
	DEEP = 64, /* lists within lists beyond this depth are taken over, whatever they cost */
	LIST_FIRST = 16,
	CUT_FROM = 16, /* runs; of fewer, the branch predictor knows the lengths */
	CUT_MOST = 1 << 20,
	CUT_RATIO = 8,
};

/* Offsets that a type needs are known not to overflow; those on the way to them may. */
static MPI_Aint moved_by_extent(MPI_Aint offset, MPI_Aint by)
{
	return (MPI_Aint)((size_t)offset + (size_t)by);
}

struct mpi_segment mpi_segment_keep(struct mpi_segment p)
{
	if (p.shape)
		p.shape->refs++;
	return p;
}

/* Recursion is bounded: see DEEP. */
void mpi_segment_release(struct mpi_segment p)
{
	struct mpi_shape *s = p.shape;

	if (!s || --s->refs > 0)
		return;
	if (s->kind == MPI_SHAPE_LOOP)
		mpi_segment_release(s->each);
	if (s->kind == MPI_SHAPE_LIST) {
		for (size_t i = 0; i < s->n; i++)
			mpi_segment_release(s->segment[i]);
	}
	free(s->near);
	free(s->run);
	free(s->segment);
	free(s->start);
	free(s);
}

static struct mpi_shape *shape_new(enum mpi_shape_kind kind, size_t n)
{
	struct mpi_shape *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->refs = 1;
	s->depth = 1;
	s->kind = kind;
	s->n = n;
	return s;
}

bool mpi_segment_loop(struct mpi_segment *out, struct mpi_segment each, size_t count,
		      MPI_Aint stride)
{
	const struct mpi_shape *inner = each.shape;
	struct mpi_shape *s;

	*out = (struct mpi_segment){ 0 };
	if (count == 0 || each.size == 0)
		return true;
	if (count == 1) {
		*out = mpi_segment_keep(each);
		return true;
	}
	out->offset = each.offset;
	out->size = count * each.size;
	if (!inner && stride == (MPI_Aint)each.size)
		return true;
	/* a loop that goes on where the inner one stops is more of the inner one */
	if (inner && inner->kind == MPI_SHAPE_LOOP &&
	    stride == (MPI_Aint)((size_t)inner->stride * inner->n)) {
		count *= inner->n;
		stride = inner->stride;
		each = inner->each;
	}
	s = shape_new(MPI_SHAPE_LOOP, count);
	if (!s)
		return false;
	s->stride = stride;
	s->each = mpi_segment_keep(each);
	s->each.offset = 0;
	s->depth = each.shape ? each.shape->depth + 1 : 1;
	out->shape = s;
	return true;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool joins(const struct mpi_list *l, const struct mpi_segment *p)
{
	const struct mpi_segment *last;

	if (l->n == 0 || p->shape)
		return false;
	last = &l->segment[l->n - 1];
	return !last->shape && p->offset == (MPI_Aint)((size_t)last->offset + last->size);
}

static void push_segment(struct mpi_list *l, struct mpi_segment p)
{
	if (joins(l, &p)) {
		l->segment[l->n - 1].size += p.size;
		return;
	}
	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : LIST_FIRST;
		struct mpi_segment *more = reallocarray(l->segment, room, sizeof(*more));

		if (!more) {
			l->failed = true;
			return;
		}
		l->segment = more;
		l->room = room;
	}
	l->segment[l->n++] = mpi_segment_keep(p);
}

/* Whether the entries of p are better in the list themselves. */
static bool taken_over(const struct mpi_shape *s)
{
	if (s->kind == MPI_SHAPE_LOOP)
		return !s->each.shape && s->n <= INLINE_MOST;
	return s->n <= INLINE_MOST || s->depth >= DEEP;
}

void mpi_list_add(struct mpi_list *l, struct mpi_segment p, MPI_Aint offset)
{
	const struct mpi_shape *s = p.shape;

	if (p.size == 0 || l->failed)
		return;
	p.offset = moved_by_extent(p.offset, offset);
	if (!s || !taken_over(s)) {
		push_segment(l, p);
		return;
	}
	for (size_t i = 0; i < s->n && !l->failed; i++) {
		struct mpi_segment e = { 0 };

		switch (s->kind) {
		case MPI_SHAPE_LOOP:
			e = s->each;
			e.offset = (MPI_Aint)(i * (size_t)s->stride);
			break;
		case MPI_SHAPE_BLOCKS:
			e.offset = moved_by_extent(s->base, s->near[i]);
			e.size = s->length;
			break;
		case MPI_SHAPE_RUNS:
			e.offset = s->run[i].offset;
			e.size = s->run[i + 1].start - s->run[i].start;
			break;
		case MPI_SHAPE_LIST:
			e = s->segment[i];
			break;
		}
		e.offset = moved_by_extent(e.offset, p.offset);
		push_segment(l, e);
	}
}

/* What all entries have in common. */
struct likeness {
	/* runs: the largest power of two, 64 at most, that all lengths are multiples of */
	size_t grain;
	bool runs; /* all are runs */
	bool near; /* and end within 4 GiB from the lowest */
	MPI_Aint low;
	bool equal;   /* all are the same thing */
	bool regular; /* and equally far apart */
	size_t size;
	int depth;
};

/* Of at least one entry. */
static struct likeness compare_segments(const struct mpi_list *l)
{
	const struct mpi_segment *p = l->segment;
	struct likeness k = { .runs = true, .equal = true, .regular = true, .low = p->offset };
	size_t lengths = 64, reach = 0;

	for (size_t i = 0; i < l->n; i++) {
		k.size += p[i].size;
		lengths |= p[i].size;
		k.runs = k.runs && !p[i].shape;
		k.equal = k.equal && p[i].shape == p[0].shape && p[i].size == p[0].size;
		k.regular =
			k.regular && (i < 2 || (size_t)p[i].offset - (size_t)p[i - 1].offset ==
						       (size_t)p[1].offset - (size_t)p[0].offset);
		if (p[i].shape && p[i].shape->depth > k.depth)
			k.depth = p[i].shape->depth;
	}
	for (size_t i = 0; i < l->n; i++)
		k.low = p[i].offset < k.low ? p[i].offset : k.low;
	for (size_t i = 0; i < l->n; i++) {
		size_t end = (size_t)p[i].offset - (size_t)k.low + p[i].size;

		reach = end > reach ? end : reach;
	}
	k.near = k.runs && reach <= UINT32_MAX;
	k.regular = k.regular && k.equal;
	k.grain = lengths & -lengths;
	return k;
}

/* Runs of one length, or cut into pieces of it. */
static struct mpi_shape *blocks(const struct mpi_list *l, const struct likeness *k, size_t length)
{
	struct mpi_shape *s = shape_new(MPI_SHAPE_BLOCKS, k->size / length);
	size_t n = 0;

	if (!s)
		return NULL;
	s->length = length;
	s->base = k->low;
	s->near = calloc(s->n, sizeof(*s->near));
	if (!s->near) {
		free(s);
		return NULL;
	}
	for (size_t i = 0; i < l->n; i++) {
		for (size_t at = 0; at < l->segment[i].size; at += length)
			s->near[n++] =
				(uint32_t)((size_t)l->segment[i].offset - (size_t)k->low + at);
	}
	return s;
}

/*
 * Whether runs of different lengths are better copied as more blocks of one: a number of bytes that
 * cannot be predicted costs as much as several copies of a constant number. Not where the places of
 * the blocks would take much memory, unless those of the runs take nearly as much.
 */
static bool better_cut(const struct mpi_list *l, const struct likeness *k)
{
	size_t segments = k->size / k->grain;

	return k->grain >= 4 && l->n >= CUT_FROM &&
	       (segments <= l->n + l->n / 2 ||
		(segments <= CUT_MOST && segments / l->n < CUT_RATIO));
}

static struct mpi_shape *runs(const struct mpi_list *l)
{
	struct mpi_shape *s = shape_new(MPI_SHAPE_RUNS, l->n);
	size_t start = 0;

	if (!s)
		return NULL;
	s->run = calloc(l->n + 1, sizeof(*s->run));
	if (!s->run) {
		free(s);
		return NULL;
	}
	for (size_t i = 0; i < l->n; i++) {
		s->run[i] = (struct mpi_run){ l->segment[i].offset, start };
		start += l->segment[i].size;
	}
	s->run[l->n].start = start;
	return s;
}

/* Takes the pieces of the list. */
static struct mpi_shape *mixed(struct mpi_list *l, int depth)
{
	struct mpi_shape *s = shape_new(MPI_SHAPE_LIST, l->n);
	size_t start = 0;

	if (!s)
		return NULL;
	s->start = calloc(l->n + 1, sizeof(*s->start));
	if (!s->start) {
		free(s);
		return NULL;
	}
	for (size_t i = 0; i < l->n; i++) {
		s->start[i] = start;
		start += l->segment[i].size;
	}
	s->start[l->n] = start;
	s->depth = depth + 1;
	s->segment = l->segment;
	l->segment = NULL;
	l->n = 0;
	return s;
}

bool mpi_list_end(struct mpi_list *l, struct mpi_segment *out)
{
	bool ok = !l->failed;
	struct likeness k;

	*out = (struct mpi_segment){ 0 };
	if (ok && l->n > 0) {
		k = compare_segments(l);
		if (k.regular) {
			MPI_Aint stride = l->n > 1 ? (MPI_Aint)((size_t)l->segment[1].offset -
								(size_t)l->segment[0].offset)
						   : 0;

			ok = mpi_segment_loop(out, l->segment[0], l->n, stride);
		} else {
			out->size = k.size;
			if (k.near && k.equal)
				out->shape = blocks(l, &k, l->segment[0].size);
			else if (k.near && better_cut(l, &k))
				out->shape = blocks(l, &k, k.grain);
			else
				out->shape = k.runs ? runs(l) : mixed(l, k.depth);
			ok = out->shape != NULL;
		}
	}
	for (size_t i = 0; i < l->n; i++)
		mpi_segment_release(l->segment[i]);
	free(l->segment);
	*l = (struct mpi_list){ 0 };
	return ok;
}
