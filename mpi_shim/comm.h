/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How communicators are made: what the comm_*.c files share.
 */
#ifndef MPI_SHIM_COMM_H
#define MPI_SHIM_COMM_H

#include "mpi_shim/object.h"

/* Tags on collective contexts from here on belong to the making of communicators; collectives stay below. */
#define MPI_TAG_COMM_INTER 0x40000000 /* the leaders' exchange of MPI_Intercomm_create */
#define MPI_TAG_COMM_DUP_INTER                                                                     \
	0x40000001                    /* the exchange between the sides of an intercommunicator */
#define MPI_TAG_COMM_IDUP  0x41000000 /* + number of the MPI_Comm_idup, 24 bits */
#define MPI_TAG_COMM_GROUP 0x42000000 /* + a number for the user's tag */

/*
 * A communicator of these groups (remote NULL: an intracommunicator), which it references, with the error
 * handler of `parent` (NULL: the default one). Owns `context` from now on: releases it when it ends, or
 * here on failure. NULL: no memory.
 */
struct mpi_comm *mpi_comm_make(uint32_t context, struct mpi_group *local, struct mpi_group *remote,
			       const struct mpi_comm *parent);

/* Ends a communicator nobody has seen: after a failure while it was being made. NULL: nothing. */
void mpi_comm_unmake(struct mpi_comm *comm);

/* Takes the hints that we know from `info` (NULL: none). */
int mpi_comm_take_hints(struct mpi_comm *comm, const struct mpi_info *info);

/* A topology is shared by a communicator and its duplicates. */
struct mpi_topology *mpi_topology_keep(struct mpi_topology *t);
void mpi_topology_release(struct mpi_topology *t);

#endif
