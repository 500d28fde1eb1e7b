/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A creation group: the processes that make a communicator together. They agree on context
 * numbers. If there are two sides, they also exchange data between the sides.
 *
 * All functions but mpi_creation_of() are collective over the creation group and blocking.
 * They are called with the library's lock held. They return an MPI error class, with the text
 * kept by mpi_fail(). A parameter `err` is an earlier error of this rank, or MPI_SUCCESS. It
 * lets a failed rank take part, so that no rank waits for it.
 */
#ifndef MPI_SHIM_CREATION_H
#define MPI_SHIM_CREATION_H

#include "mpi_shim/core/object.h"

struct mpi_creation {
	enum {
		MPI_CREATION_COMM,   /* all ranks of an intracommunicator */
		MPI_CREATION_GROUP,  /* some of its ranks, the only ones that call */
		MPI_CREATION_BRIDGE, /* two intracommunicators, joined by their leaders */
	} kind;
	struct mpi_comm *comm; /* BRIDGE: this side's communicator */
	int tag;
	/* GROUP */
	const struct mpi_group *group;
	/* BRIDGE */
	int leader;            /* rank in comm */
	struct mpi_comm *peer; /* leader only: in it, the other leader is `remote` */
	int remote;
	/* leader only, in place of `peer`: send `size` bytes to the other leader, and receive its
	 * bytes, at most `room`, of which *got are stored */
	int (*exchange)(void *link, const void *mine, size_t size, void *theirs, size_t room,
			size_t *got);
	void *link;
};

/* The creation group of all processes of comm, with one group or two. */
struct mpi_creation mpi_creation_of(struct mpi_comm *comm);

/* Reduce n words over the creation group, in place, by maximum or by "and". Words must be below
 * 2^63 for the maximum. */
int mpi_creation_reduce(const struct mpi_creation *t, uint64_t *word, int n, bool max);
/* Take `want` context numbers (1 or 2) that are free in all processes. `err` becomes this rank's
 * result, and the other ranks get an error, too. */
int mpi_creation_contexts(const struct mpi_creation *t, int err, int want, uint32_t *context);

/* COMM, BRIDGE: tell all ranks of `comm` whether one of them has failed (`err`), for example for
 * lack of memory. */
int mpi_creation_side(const struct mpi_creation *t, int err);
/*
 * BRIDGE: exchange ints between the sides. Each leader gives `n` ints, at least one, and gets
 * `their_n` ints of the other leader; all ranks of its side have them then. `mine` is used in
 * leaders only. After an earlier error `err` is the result, and the other side gives up as well.
 */
int mpi_creation_swap(const struct mpi_creation *t, int err, const int *mine, int n, int *theirs,
		      int their_n);
/* BRIDGE: give each side the other side's group. `mine` is used in leaders only. *theirs is one
 * reference. Its processes are connected until mpi_creation_release. MPI_SUCCESS with *theirs NULL:
 * this rank cannot have the group, and the others do not know yet. */
int mpi_creation_swap_groups(const struct mpi_creation *t, int err, const struct mpi_group *mine,
			     struct mpi_group **theirs);
/* Ends what mpi_creation_swap_groups got; the group may be NULL. */
void mpi_creation_release(struct mpi_group *theirs);

#endif
