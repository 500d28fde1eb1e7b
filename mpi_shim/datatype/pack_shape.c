/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Building shapes: loops and lists of segments, simplified as they are made. The result may
 * look quite different from the constructor's arguments. A struct of touching members is a
 * run, an indexed type with regular displacements a loop, and a vector of contiguous rows one
 * block.
 */
#include "mpi_shim/datatype/body.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* entries; so short a list within a list is dissolved into the outer one */
	INLINE_MOST = 8,
	DEEP = 64, /* nesting; deeper lists are dissolved, whatever they cost */
	LIST_FIRST = 16,
	CUT_FROM = 16, /* runs; with fewer, the branch predictor knows the lengths */
	CUT_MOST = 1 << 20,
	CUT_RATIO = 8,
};

/* Add offsets. A type's own offsets are known not to overflow, but intermediate ones may. */
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
	free(s->offset32);
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
	/* a loop that continues where the inner one stops extends the inner one */
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

/* Whether the entries of a shape are better in the outer list themselves. */
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
			e.offset = moved_by_extent(s->base, s->offset32[i]);
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

/* Properties common to all entries. */
struct likeness {
	/* runs: the largest power of two, 64 at most, that divides all lengths */
	size_t grain;
	bool runs;         /* all are runs */
	bool fits_32_bits; /* and all end within 4 GiB from the lowest */
	MPI_Aint low;
	bool equal;   /* all have the same shape and size */
	bool regular; /* and equally far apart */
	size_t size;
	int depth;
};

/* Compare the entries of a list that has at least one. */
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
	k.fits_32_bits = k.runs && reach <= UINT32_MAX;
	k.regular = k.regular && k.equal;
	k.grain = lengths & -lengths;
	return k;
}

/* Make blocks of one length; longer runs are cut into several. */
static struct mpi_shape *blocks(const struct mpi_list *l, const struct likeness *k, size_t length)
{
	struct mpi_shape *s = shape_new(MPI_SHAPE_BLOCKS, k->size / length);
	size_t n = 0;

	if (!s)
		return NULL;
	s->length = length;
	s->base = k->low;
	s->offset32 = calloc(s->n, sizeof(*s->offset32));
	if (!s->offset32) {
		free(s);
		return NULL;
	}
	for (size_t i = 0; i < l->n; i++) {
		for (size_t at = 0; at < l->segment[i].size; at += length)
			s->offset32[n++] =
				(uint32_t)((size_t)l->segment[i].offset - (size_t)k->low + at);
	}
	return s;
}

/*
 * Whether runs of different lengths are better cut into blocks of one length. An unpredictable
 * number of bytes costs as much as several copies of a constant number. But the blocks' offsets
 * must not take much memory, unless the runs' take nearly as much.
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

/* Make a list shape; it takes over the segments of the list. */
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
			if (k.fits_32_bits && k.equal)
				out->shape = blocks(l, &k, l->segment[0].size);
			else if (k.fits_32_bits && better_cut(l, &k))
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
