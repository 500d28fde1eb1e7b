/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reductions whose work is divided among the ranks: the common parts of MPI_Reduce,
 * MPI_Allreduce and MPI_Reduce_scatter. All functions add operations to a schedule. Only a
 * blocking schedule may block.
 */
#ifndef MPI_SHIM_COLL_PARTS_H
#define MPI_SHIM_COLL_PARTS_H

#include "mpi_shim/coll/coll_impl.h"

/*
 * A power of two of ranks, the largest, does the work: the workers. Of the first 2 * rest ranks
 * each even one gives its vector to the odd one above it before, and gets the result after.
 */
struct mpi_fold {
	int power, rest;
	int rank; /* among the workers; -1: not a worker */
};

struct mpi_fold mpi_fold_of(const struct mpi_comm *comm);

/* The rank of worker i. */
static inline int mpi_fold_worker(const struct mpi_fold *f, int i)
{
	return i < f->rest ? 2 * i + 1 : i + f->rest;
}

/* A reduction under way: this rank's vector, and memory for another's. */
struct mpi_work {
	struct mpi_schedule *schedule;
	char *mine, *theirs;
	MPI_Count count;
	const MPI_Count
		*begin; /* where each worker's part begins, and the end; NULL: equal parts */
	struct mpi_type *type;
	struct mpi_op *op;
	struct mpi_comm *comm;
};

/* The first element of worker i's part. */
static inline MPI_Count mpi_part(const struct mpi_work *w, const struct mpi_fold *f, int i)
{
	MPI_Count each = w->count / f->power, more = w->count % f->power;

	if (w->begin)
		return w->begin[i];
	return each * i + (i < more ? i : more);
}

static inline char *mpi_element(const struct mpi_work *w, char *base, MPI_Count i)
{
	return base + i * w->type->extent;
}

/* mpi_fold_in(): send the vectors of the other ranks to the workers. mpi_fold_out(): send the
 * whole result back to them. */
void mpi_fold_in(struct mpi_work *w, const struct mpi_fold *f);
void mpi_fold_out(struct mpi_work *w, const struct mpi_fold *f);
/* Recursive halving by the workers; then worker i has the result of its part. Commutative
 * operations only. */
void mpi_halving(struct mpi_work *w, const struct mpi_fold *f);

#endif
