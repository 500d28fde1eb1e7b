/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Short runs of a target's data travel together. One message has a list of their positions,
 * and then their packed data. Each entry of the list says "so many bytes, every so many bytes,
 * so many times", and covers as many runs as it can. A run too long to gain from it goes by
 * itself.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/rma/rma.h"

/* Runs of so many bytes or more go by themselves. */
#define RUN_LONG 1024

/* How far the runs of a batch may lie from the first, in bytes. */
#define REACH (UINT64_C(1) << 31)

/* Start a run by itself. */
static int alone(const struct mpi_rma_batch *b, uint64_t offset, const char *from, char *to,
		 size_t bytes)
{
	int err = MPI_SUCCESS;

	if (b->moves)
		return to ? mpi_rma_get(b->op, to, bytes, b->number, offset)
			  : mpi_rma_put(b->op, from, bytes, b->number, offset);
	for (size_t at = 0, some; at < bytes && !err; at += some) {
		some = bytes - at < MPI_RMA_ATOMIC_MOST ? bytes - at : MPI_RMA_ATOMIC_MOST;
		err = mpi_rma_atomic(b->op, (from ? from : to) + at, to ? to + at : NULL, some,
				     b->number, offset + at, b->what, b->type);
	}
	return err;
}

/* Make the message, in memory that lives until the operation is over. */
static const ptl_atomic_runs_t *batch_message(struct mpi_rma_batch *b)
{
	size_t list = sizeof(ptl_atomic_runs_t) + b->groups * sizeof(b->group[0]);
	struct mpi_rma_chunk *c = malloc(sizeof(*c) + list + b->bytes);
	ptl_atomic_runs_t *r;

	if (!c)
		return NULL;
	c->next = b->op->chunks;
	b->op->chunks = c;
	r = (ptl_atomic_runs_t *)(void *)c->data;
	r->span = b->span;
	r->groups = b->groups;
	memcpy(r + 1, b->group, b->groups * sizeof(b->group[0]));
	if (b->from)
		memcpy((char *)r + list, b->from, b->bytes);
	return r;
}

void mpi_rma_batch_begin(struct mpi_rma_batch *b, struct mpi_rma *op, bool moves,
			 ptl_atomic_op_t what, ptl_atomic_type_t type, size_t element)
{
	b->op = op;
	b->element = element;
	b->moves = moves;
	b->what = what;
	b->type = type;
	b->base = 0;
	b->bytes = 0;
	b->number = b->groups = 0;
}

int mpi_rma_batch_end(struct mpi_rma_batch *b)
{
	const ptl_atomic_run_t *g = b->group;
	const ptl_atomic_runs_t *r;

	if (!b->groups)
		return MPI_SUCCESS;
	if (b->groups == 1 && g->count == 1) {
		b->groups = 0;
		return alone(b, b->base + g->offset, b->from, b->to, g->bytes);
	}
	r = batch_message(b);
	if (!r)
		return mpi_fail_memory("a message of a one-sided operation");
	b->groups = 0;
	return mpi_rma_atomic(b->op, r, b->to, b->bytes, b->number, b->base,
			      (ptl_atomic_op_t)(b->what | PTL_ATOMIC_RUNS), b->type);
}

/* Extend the last group by these runs. False: they do not continue it. */
static bool extend(struct mpi_rma_batch *b, const ptl_atomic_run_t *more)
{
	ptl_atomic_run_t *g = &b->group[b->groups ? b->groups - 1 : 0];
	uint32_t stride = g->stride;

	if (!b->groups || g->bytes != more->bytes || more->offset < g->offset)
		return false;
	if (g->count == 1)
		stride = more->offset - g->offset;
	if (more->offset - g->offset != (uint64_t)stride * g->count ||
	    (more->count > 1 && more->stride != stride))
		return false;
	g->stride = stride;
	g->count += more->count;
	return true;
}

/* How many of `count` runs fit. */
static size_t fit_runs(const struct mpi_rma_batch *b, uint32_t number, uint64_t offset,
		       const struct mpi_runs *r, size_t count)
{
	size_t used = sizeof(ptl_atomic_runs_t) + (b->groups + 1) * sizeof(b->group[0]) + b->bytes;
	size_t room = used < MPI_RMA_ATOMIC_MOST ? (MPI_RMA_ATOMIC_MOST - used) / r->bytes : 0;
	uint64_t reach = 2 * REACH - RUN_LONG;

	if (b->groups == MPI_RMA_GROUPS || number != b->number || offset < b->base ||
	    offset - b->base >= reach)
		return 0;
	reach -= offset - b->base;
	if (r->stride && reach / (uint64_t)r->stride < count)
		count = (size_t)(reach / (uint64_t)r->stride) + 1;
	return count < room ? count : room;
}

static void begin_at(struct mpi_rma_batch *b, const char *from, char *to, uint32_t number,
		     uint64_t offset)
{
	b->from = from;
	b->to = to;
	b->bytes = 0;
	b->span = 0;
	b->number = number;
	b->base = offset > REACH ? offset - REACH : 0;
}

/* Add `count` runs at `offset` of `number`. The stride must be 0 to REACH. */
static int add_equal_runs(struct mpi_rma_batch *b, const char *from, char *to, uint32_t number,
			  uint64_t offset, const struct mpi_runs *r, size_t count)
{
	int err = MPI_SUCCESS;

	while (count && !err) {
		size_t n = b->groups ? fit_runs(b, number, offset, r, count) : 0;
		ptl_atomic_run_t more = { .bytes = (uint32_t)r->bytes };
		uint64_t end;

		if (!n) {
			err = mpi_rma_batch_end(b);
			begin_at(b, from, to, number, offset);
			n = fit_runs(b, number, offset, r, count);
		}
		more.offset = (uint32_t)(offset - b->base);
		more.count = (uint32_t)n;
		more.stride = n > 1 ? (uint32_t)r->stride : 0;
		end = more.offset + (uint64_t)more.stride * (n - 1) + more.bytes;
		if (!extend(b, &more))
			b->group[b->groups++] = more;
		b->bytes += n * r->bytes;
		if (end > b->span)
			b->span = (uint32_t)end;
		from += from ? n * r->bytes : 0;
		to += to ? n * r->bytes : 0;
		offset += n * (uint64_t)r->stride;
		count -= n;
	}
	return err;
}

static int add_segment(struct mpi_rma_batch *b, const char *from, char *to, uint32_t number,
		       uint64_t offset, size_t bytes)
{
	int err;

	if (bytes < RUN_LONG)
		return add_equal_runs(b, from, to, number, offset,
				      &(struct mpi_runs){ .bytes = bytes }, 1);
	err = mpi_rma_batch_end(b);
	b->number = number;
	return err ? err : alone(b, offset, from, to, bytes);
}

/* Add a run, which may span several attached regions. */
static int add_one(struct mpi_rma_batch *b, const struct mpi_rma_place *place, MPI_Aint at,
		   const char *from, char *to, size_t bytes)
{
	int err = MPI_SUCCESS;

	for (size_t done = 0, some; done < bytes && !err; done += some) {
		uint64_t offset;
		uint32_t number;

		some = bytes - done;
		err = mpi_rma_find(b->op->win, place, at + (MPI_Aint)done, b->element, &some,
				   &number, &offset);
		if (!err)
			err = add_segment(b, from ? from + done : NULL, to ? to + done : NULL,
					  number, offset, some);
	}
	return err;
}

int mpi_rma_batch_add(struct mpi_rma_batch *b, const struct mpi_rma_place *place, const char *from,
		      char *to, const struct mpi_runs *r)
{
	int err = MPI_SUCCESS;

	if (r->count > 1 && place->number && r->bytes < RUN_LONG && r->stride >= 0 &&
	    (uint64_t)r->stride <= REACH)
		return add_equal_runs(b, from, to, place->number,
				      place->offset + (uint64_t)r->offset, r, r->count);
	for (size_t i = 0; i < r->count && !err; i++) {
		err = add_one(b, place, r->offset + (MPI_Aint)i * r->stride, from, to, r->bytes);
		from += from ? r->bytes : 0;
		to += to ? r->bytes : 0;
	}
	return err;
}
