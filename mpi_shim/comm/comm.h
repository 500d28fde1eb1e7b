/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Making communicators: functions and tags that the files of this folder share.
 *
 * Functions return an MPI error class, with the text kept by mpi_fail(). All are called with
 * the library's lock held. Ranks, groups and tags must have been checked by the caller. A
 * communicator that the program has seen is freed by mpi_comm_free(), not by
 * mpi_comm_unmake().
 */
#ifndef MPI_SHIM_COMM_H
#define MPI_SHIM_COMM_H

#include "mpi_shim/core/object.h"

/*
 * Tags on collective contexts from MPI_TAG_COMM_DUP_INTER on, and negative tags except
 * MPI_ANY_TAG, are reserved for making communicators. Collectives use smaller tags.
 */
#define MPI_TAG_COMM_DUP_INTER 0x40000000 /* between the sides of an intercommunicator */
#define MPI_TAG_COMM_IDUP      0x41000000 /* + number of the MPI_Comm_idup, 24 bits */
/* 0x42000000: offers of partitioned sends (pt2pt/partitioned_match.c) */
#define MPI_TAG_COMM_FROM_GROUP 0x50000000 /* in mpi_comm_job; + a hash, 28 bits */
#define MPI_TAG_COMM_BRIDGE     0x60000000 /* MPI_Intercomm_create; + the user's tag, 29 bits */

/* For MPI_Comm_create_group: each user tag has a tag of its own. */
static inline int mpi_tag_comm_group(int tag)
{
	int t = (int)(0x80000000u | (unsigned)tag);

	return t == MPI_ANY_TAG ? MPI_TAG_COMM_DUP_INTER + 1 : t;
}

/*
 * Make a communicator of these groups, which it references. `remote` NULL: an intracommunicator.
 * It gets the error handler of `parent`, or the default one if that is NULL. It owns `context`
 * from now on, and releases it when it ends; a failure releases it here. NULL: out of memory.
 */
struct mpi_comm *mpi_comm_make(uint32_t context, struct mpi_group *local, struct mpi_group *remote,
			       const struct mpi_comm *parent);

/* End a communicator that the program has not seen, after a failure while it was being made.
 * NULL: does nothing. */
void mpi_comm_unmake(struct mpi_comm *comm);

/*
 * Make a communicator on agreed contexts: context[0] is its own, context[1] is that of an
 * intercommunicator's local side. On failure the contexts are released.
 */
int mpi_comm_make_agreed(const uint32_t *context, struct mpi_group *local, struct mpi_group *remote,
			 const struct mpi_comm *parent, struct mpi_comm **out);

/* Add to a duplicate what it has besides its groups: topology, hints and attributes. On failure
 * *copy is unmade and set to NULL. May call the program's attribute callbacks. */
int mpi_comm_complete_dup(struct mpi_comm *comm, const struct mpi_info *info,
			  struct mpi_comm **copy);

/* Store the known hints of `info`. NULL: none. */
int mpi_comm_take_hints(struct mpi_comm *comm, const struct mpi_info *info);

/*
 * Make a communicator of the first n ranks of comm, with a topology. Collective over comm,
 * blocking. `order`: their ranks by new rank; NULL: they keep them. Takes over `t`: it is
 * released on failure and on ranks that get no communicator. `t` NULL: this rank could not make
 * it, and the result is MPI_ERR_NO_MEM.
 */
int mpi_topology_attach(struct mpi_comm *comm, int n, const int *order, struct mpi_topology *t,
			struct mpi_comm **out);

#endif
