/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Walking over the runs of bytes that the data of a datatype are, in the order of the type map: what one-sided
 * operations make a message of each of.
 */
#include "mpi_shim/rma.h"
#include "mpi_shim/type_body.h"

struct walk {
	mpi_run_fn *fn;
	void *arg;
	MPI_Aint offset; /* a run that may go on */
	size_t bytes;
};

static MPI_Aint moved(MPI_Aint offset, size_t by)
{
	return (MPI_Aint)((size_t)offset + by);
}

static int run(struct walk *w, MPI_Aint offset, size_t bytes)
{
	int err = MPI_SUCCESS;

	if (w->bytes && offset == moved(w->offset, w->bytes)) {
		w->bytes += bytes;
		return MPI_SUCCESS;
	}
	if (w->bytes)
		err = w->fn(w->arg, w->offset, w->bytes);
	w->offset = offset;
	w->bytes = bytes;
	return err;
}

/* Recursion is bounded by the shapes' depth. */
static int piece(struct walk *w, const struct mpi_piece *p, MPI_Aint at)
{
	const struct mpi_shape *s = p->shape;
	int err = MPI_SUCCESS;

	at = moved(at, (size_t)p->offset);
	if (!s)
		return run(w, at, p->size);
	for (size_t i = 0; i < s->n && !err; i++) {
		switch (s->kind) {
		case MPI_SHAPE_LOOP:
			err = piece(w, &s->each, moved(at, i * (size_t)s->stride));
			break;
		case MPI_SHAPE_BLOCKS:
			err = run(w, moved(at, (size_t)s->base + s->near[i]), s->length);
			break;
		case MPI_SHAPE_RUNS:
			err = run(w, moved(at, (size_t)s->run[i].offset),
				  s->run[i + 1].start - s->run[i].start);
			break;
		case MPI_SHAPE_LIST:
			err = piece(w, &s->piece[i], at);
			break;
		}
	}
	return err;
}

int mpi_type_runs(const struct mpi_type *t, MPI_Count count, mpi_run_fn *fn, void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };
	int err = MPI_SUCCESS;

	if (count == 0 || t->size == 0)
		return MPI_SUCCESS;
	if (t->dense)
		return fn(arg, t->true_lb, (size_t)(count * t->size));
	for (MPI_Count i = 0; i < count && !err; i++)
		err = piece(&w, &t->body->piece, (MPI_Aint)((size_t)i * (size_t)t->extent));
	return err ? err : fn(arg, w.offset, w.bytes);
}
