/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The processes that make a communicator together, and what they do together: agree on context
 * numbers, and, where there are two sides, tell each other something.
 */
#ifndef MPI_SHIM_CREATION_H
#define MPI_SHIM_CREATION_H

#include "mpi_shim/core/object.h"

struct mpi_creation {
	enum {
		MPI_CREATION_COMM,   /* all of an intracommunicator */
		MPI_CREATION_GROUP,  /* some of it, the only ones to call */
		MPI_CREATION_BRIDGE, /* two intracommunicators, joined by their leaders */
	} kind;
	struct mpi_comm *comm; /* BRIDGE: this side */
	int tag;
	/* GROUP */
	const struct mpi_group *group;
	/* BRIDGE */
	int leader;            /* in comm */
	struct mpi_comm *peer; /* the leader's only: where the other leader is `remote` */
	int remote;
};

/* All of comm, be it one group or two. */
struct mpi_creation mpi_creation_of(struct mpi_comm *comm);

/* `n` words over all, in place: the maximum (as unsigned numbers), or "and". */
int mpi_creation_reduce(const struct mpi_creation *t, uint64_t *word, int n, bool max);
/* `want` context numbers (1 or 2) that are free in all processes; they are taken now. `err`:
 * what has gone wrong here before, of which the others need not know: it is the outcome, and
 * theirs is an error, too. */
int mpi_creation_contexts(const struct mpi_creation *t, int err, int want, uint32_t *context);

/* COMM, BRIDGE: what has gone wrong at a rank of `comm` before, `err`, as it has no memory, is
 * known to all of it then. */
int mpi_creation_side(const struct mpi_creation *t, int err);
/*
 * BRIDGE: each leader gives `n` ints, at least one, and gets the other's, of which it knows the
 * number, and all on its side have them then. `mine` is looked at in leaders only. `err`, what
 * has gone wrong before, is the outcome then, and the other side gives up as well.
 */
int mpi_creation_swap(const struct mpi_creation *t, int err, const int *mine, int n, int *theirs,
		      int their_n);
/* BRIDGE: each side has the other's group then; `mine` is looked at in leaders only. One
 * reference. `err`: what has gone wrong here before. MPI_SUCCESS and *theirs NULL: there is no
 * memory for it at this rank, and the others do not know yet. */
int mpi_creation_swap_groups(const struct mpi_creation *t, int err, const struct mpi_group *mine,
			     struct mpi_group **theirs);

#endif
