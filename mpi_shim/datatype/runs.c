/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Walk over the runs of bytes of a datatype's data, in type map order. One-sided operations
 * make a message of each run, files an extent.
 */
#include "mpi_shim/datatype/body.h"

struct walk {
	mpi_run_fn *fn;
	void *arg;
	MPI_Aint offset; /* a held run, which the next one may extend */
	size_t bytes;
};

static MPI_Aint moved_by_bytes(MPI_Aint offset, size_t by)
{
	return (MPI_Aint)((size_t)offset + by);
}

/* Pass on the held run, then `count` more runs. */
static int give(struct walk *w, MPI_Aint offset, size_t bytes, MPI_Aint stride, size_t count)
{
	struct mpi_runs last = { w->offset, 0, w->bytes, 1 };
	struct mpi_runs those = { offset, stride, bytes, count };
	int err = w->bytes ? w->fn(w->arg, &last) : MPI_SUCCESS;

	w->bytes = 0;
	return err || !count ? err : w->fn(w->arg, &those);
}

static int add_run(struct walk *w, MPI_Aint offset, size_t bytes)
{
	int err;

	if (w->bytes && offset == moved_by_bytes(w->offset, w->bytes)) {
		w->bytes += bytes;
		return MPI_SUCCESS;
	}
	err = give(w, 0, 0, 0, 0);
	w->offset = offset;
	w->bytes = bytes;
	return err;
}

static int walk_segment(struct walk *w, const struct mpi_segment *p, MPI_Aint at);

static int loop(struct walk *w, const struct mpi_segment *each, MPI_Aint at, size_t n,
		MPI_Aint stride)
{
	MPI_Aint first = moved_by_bytes(at, (size_t)each->offset);
	int err = MPI_SUCCESS;

	if (each->shape || n < 3 || stride == (MPI_Aint)each->size) {
		for (size_t i = 0; i < n && !err; i++)
			err = walk_segment(w, each, moved_by_bytes(at, i * (size_t)stride));
		return err;
	}
	/* the first may touch the run before it, the last the run behind it */
	err = add_run(w, first, each->size);
	if (!err)
		err = give(w, moved_by_bytes(first, (size_t)stride), each->size, stride, n - 2);
	return err ? err : add_run(w, moved_by_bytes(first, (n - 1) * (size_t)stride), each->size);
}

/* Recursion is bounded by the shapes' depth. */
static int walk_segment(struct walk *w, const struct mpi_segment *p, MPI_Aint at)
{
	const struct mpi_shape *s = p->shape;
	int err = MPI_SUCCESS;

	at = moved_by_bytes(at, (size_t)p->offset);
	if (!s)
		return add_run(w, at, p->size);
	if (s->kind == MPI_SHAPE_LOOP)
		return loop(w, &s->each, at, s->n, s->stride);
	for (size_t i = 0; i < s->n && !err; i++) {
		switch (s->kind) {
		case MPI_SHAPE_LOOP:
			break;
		case MPI_SHAPE_BLOCKS:
			err = add_run(w, moved_by_bytes(at, (size_t)s->base + s->offset32[i]),
				      s->length);
			break;
		case MPI_SHAPE_RUNS:
			err = add_run(w, moved_by_bytes(at, (size_t)s->run[i].offset),
				      s->run[i + 1].start - s->run[i].start);
			break;
		case MPI_SHAPE_LIST:
			err = walk_segment(w, &s->segment[i], at);
			break;
		}
	}
	return err;
}

int mpi_type_runs(const struct mpi_type *t, MPI_Count count, mpi_run_fn *fn, void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };
	struct mpi_runs whole = { t->true_lb, 0, (size_t)(count * t->size), 1 };
	int err;

	if (count == 0 || t->size == 0)
		return MPI_SUCCESS;
	if (t->dense)
		return fn(arg, &whole);
	err = loop(&w, &t->body->segment, 0, (size_t)count, t->extent);
	return err ? err : give(&w, 0, 0, 0, 0);
}

/* ---- a part of the data ---------------------------------------------------------------------- */

/* Bytes [from, to) of the packed form of a segment. */
struct span {
	size_t from, to;
};

static int walk_span(struct walk *w, const struct mpi_segment *p, MPI_Aint at, struct span s);

static int loop_span(struct walk *w, const struct mpi_segment *each, MPI_Aint at, MPI_Aint stride,
		     struct span s)
{
	int err = MPI_SUCCESS;

	for (size_t i = s.from / each->size; i * each->size < s.to && !err; i++) {
		size_t start = i * each->size;
		struct span rest = { s.from > start ? s.from - start : 0, s.to - start };

		if (rest.to > each->size)
			rest.to = each->size;
		err = walk_span(w, each, moved_by_bytes(at, i * (size_t)stride), rest);
	}
	return err;
}

/* Where entry i of a shape that is no loop begins in packed data. */
static size_t entry_start(const struct mpi_shape *s, size_t i)
{
	if (s->kind == MPI_SHAPE_BLOCKS)
		return i * s->length;
	return s->kind == MPI_SHAPE_RUNS ? s->run[i].start : s->start[i];
}

/* The entry that holds the packed byte `at`. */
static size_t entry_at(const struct mpi_shape *s, size_t at)
{
	size_t low = 0, high = s->n; /* it is in [low, high) */

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (entry_start(s, middle) <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Recursion is bounded by the shapes' depth. */
static int walk_span(struct walk *w, const struct mpi_segment *p, MPI_Aint at, struct span s)
{
	const struct mpi_shape *shape = p->shape;
	int err = MPI_SUCCESS;

	at = moved_by_bytes(at, (size_t)p->offset);
	if (!shape)
		return add_run(w, moved_by_bytes(at, s.from), s.to - s.from);
	if (shape->kind == MPI_SHAPE_LOOP)
		return loop_span(w, &shape->each, at, shape->stride, s);
	for (size_t i = entry_at(shape, s.from); i < shape->n && !err; i++) {
		size_t start = entry_start(shape, i), end = entry_start(shape, i + 1);
		struct span rest = { s.from > start ? s.from - start : 0,
				     (s.to < end ? s.to : end) - start };

		if (start >= s.to)
			break;
		if (shape->kind == MPI_SHAPE_LIST)
			err = walk_span(w, &shape->segment[i], at, rest);
		else
			err = add_run(w,
				      moved_by_bytes(at, (shape->kind == MPI_SHAPE_BLOCKS
								  ? (size_t)shape->base +
									    shape->offset32[i]
								  : (size_t)shape->run[i].offset) +
								 rest.from),
				      rest.to - rest.from);
	}
	return err;
}

int mpi_type_runs_between(const struct mpi_type *t, size_t from, size_t to, mpi_run_fn *fn,
			  void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };
	struct mpi_runs whole = { moved_by_bytes(t->true_lb, from), 0, to - from, 1 };
	int err;

	if (from >= to || t->size == 0)
		return MPI_SUCCESS;
	if (t->dense)
		return fn(arg, &whole);
	err = loop_span(&w, &t->body->segment, 0, t->extent, (struct span){ from, to });
	return err ? err : give(&w, 0, 0, 0, 0);
}
