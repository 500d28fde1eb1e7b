/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How communicators are made: what the files of this folder share.
 */
#ifndef MPI_SHIM_COMM_H
#define MPI_SHIM_COMM_H

#include "mpi_shim/core/object.h"

/*
 * Tags on collective contexts from here on, and negative ones but MPI_ANY_TAG, belong to the
 * making of communicators; collectives stay below.
 */
#define MPI_TAG_COMM_DUP_INTER 0x40000000 /* between the sides of an intercommunicator */
#define MPI_TAG_COMM_IDUP      0x41000000 /* + number of the MPI_Comm_idup, 24 bits */
#define MPI_TAG_COMM_BRIDGE    0x60000000 /* MPI_Intercomm_create; + the user's tag, 29 bits */

/* For MPI_Comm_create_group: each tag of the user's has one of its own. */
static inline int mpi_tag_comm_group(int tag)
{
	int t = (int)(0x80000000u | (unsigned)tag);

	return t == MPI_ANY_TAG ? MPI_TAG_COMM_DUP_INTER + 1 : t;
}

/*
 * A communicator of these groups (remote NULL: an intracommunicator), which it references, with
 * the error handler of `parent` (NULL: the default one). Owns `context` from now on: releases it
 * when it ends, or here on failure. NULL: no memory.
 */
struct mpi_comm *mpi_comm_make(uint32_t context, struct mpi_group *local, struct mpi_group *remote,
			       const struct mpi_comm *parent);

/* Ends a communicator nobody has seen: after a failure while it was being made. NULL: nothing. */
void mpi_comm_unmake(struct mpi_comm *comm);

/*
 * The same for a communicator that has been agreed on: context[0] for itself, and for an
 * intercommunicator context[1] for its local side. MPI_SUCCESS or mpi_fail(...); then the
 * contexts are released.
 */
int mpi_comm_make_agreed(const uint32_t *context, struct mpi_group *local, struct mpi_group *remote,
			 const struct mpi_comm *parent, struct mpi_comm **out);

/* What a duplicate has besides its groups: topology, hints, attributes. On failure *copy is
 * unmade. */
int mpi_comm_complete_dup(struct mpi_comm *comm, const struct mpi_info *info,
			  struct mpi_comm **copy);

/* Takes the hints that we know from `info` (NULL: none). */
int mpi_comm_take_hints(struct mpi_comm *comm, const struct mpi_info *info);

/*
 * A communicator of the first n ranks of comm, collective over comm, with a topology, which is
 * taken (and released on failure and where there is no communicator); reordering is not done.
 * `t` NULL: this rank failed to make it, the text is kept as MPI_ERR_NO_MEM.
 */
int mpi_topology_attach(struct mpi_comm *comm, int n, struct mpi_topology *t,
			struct mpi_comm **out);

#endif
