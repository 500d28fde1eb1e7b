/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Short runs of a target's data travel together: one message brings a list of where they are and, packed, what
 * is for them; the list says "so many bytes, every so many bytes, so many times" as long as it can. What
 * is too long to gain by it, and what goes to other nodes, for which Portals has no such operation, goes run by run.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/error.h"
#include "mpi_shim/rma.h"

/* Runs from here on go by themselves. */
#define RUN_LONG 1024

/* Where the runs of a batch may lie around the first. */
#define REACH (UINT64_C(1) << 31)

/* A run by itself. */
static int alone(const struct mpi_rma_batch *b, const char *from, char *to, size_t bytes,
		 uint64_t offset)
{
	if (!b->moves)
		return mpi_rma_atomic(b->op, from ? from : to, to, bytes, b->number, offset,
				      b->what, b->type);
	return to ? mpi_rma_get(b->op, to, bytes, b->number, offset)
		  : mpi_rma_put(b->op, from, bytes, b->number, offset);
}

static int one_by_one(const struct mpi_rma_batch *b)
{
	const char *from = b->from;
	char *to = b->to;
	int err = MPI_SUCCESS;

	for (uint32_t i = 0; i < b->groups && !err; i++) {
		const ptl_atomic_run_t *g = &b->group[i];

		for (uint32_t k = 0; k < g->count && !err; k++) {
			err = alone(b, from, to, g->bytes,
				    b->base + g->offset + (uint64_t)k * g->stride);
			from += from ? g->bytes : 0;
			to += to ? g->bytes : 0;
		}
	}
	return err;
}

/* What is sent, in memory that stays until the operation is over. */
static const ptl_atomic_runs_t *message(struct mpi_rma_batch *b)
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
			 ptl_atomic_op_t what, ptl_atomic_type_t type)
{
	b->op = op;
	b->moves = moves;
	b->what = what;
	b->type = type;
	b->base = 0;
	b->bytes = 0;
	b->number = b->groups = 0;
}

int mpi_rma_batch_end(struct mpi_rma_batch *b)
{
	struct mpi_win_target *t = &b->op->win->target[b->op->rank];
	const ptl_atomic_runs_t *r;
	bool can = false;
	int err = MPI_SUCCESS;

	if (!b->groups)
		return MPI_SUCCESS;
	if (!t->no_runs && (b->groups > 1 || b->group[0].count > 1)) {
		r = message(b);
		if (!r)
			return mpi_fail_memory("a message of a one-sided operation");
		err = mpi_rma_runs(b->op, r, b->to, b->bytes, b->number, b->base, b->what, b->type,
				   &can);
		t->no_runs = !can;
	}
	if (!can)
		err = one_by_one(b);
	b->groups = 0;
	return err;
}

/* Another run of the last group? */
static bool extend(struct mpi_rma_batch *b, uint32_t offset, uint32_t bytes)
{
	ptl_atomic_run_t *g = &b->group[b->groups ? b->groups - 1 : 0];

	if (!b->groups || g->bytes != bytes || offset < g->offset)
		return false;
	if (g->count == 1)
		g->stride = offset - g->offset;
	else if (offset != g->offset + (uint64_t)g->stride * g->count)
		return false;
	g->count++;
	return true;
}

static bool fits(const struct mpi_rma_batch *b, size_t bytes, uint32_t number, uint64_t offset)
{
	size_t list = sizeof(ptl_atomic_runs_t) + (b->groups + 1) * sizeof(b->group[0]);

	return b->groups < MPI_RMA_GROUPS && number == b->number && offset >= b->base &&
	       offset - b->base < REACH * 2 - RUN_LONG &&
	       list + b->bytes + bytes <= MPI_RMA_ATOMIC_MOST;
}

int mpi_rma_batch_add(struct mpi_rma_batch *b, const char *from, char *to, size_t bytes,
		      uint32_t number, uint64_t offset)
{
	uint32_t at;
	int err;

	if (bytes >= RUN_LONG || !fits(b, bytes, number, offset)) {
		err = mpi_rma_batch_end(b);
		b->number = number;
		if (err || bytes >= RUN_LONG)
			return err ? err : alone(b, from, to, bytes, offset);
	}
	if (!b->groups) {
		b->base = offset > REACH ? offset - REACH : 0;
		b->from = from;
		b->to = to;
		b->bytes = 0;
		b->span = 0;
	}
	at = (uint32_t)(offset - b->base);
	if (!extend(b, at, (uint32_t)bytes))
		b->group[b->groups++] = (ptl_atomic_run_t){ at, (uint32_t)bytes, 0, 1 };
	b->bytes += bytes;
	if (at + bytes > b->span)
		b->span = at + (uint32_t)bytes;
	return MPI_SUCCESS;
}
