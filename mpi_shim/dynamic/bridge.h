/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * An intercommunicator between two jobs whose roots have a channel.
 */
#ifndef MPI_SHIM_BRIDGE_H
#define MPI_SHIM_BRIDGE_H

#include "mpi_shim/core/object.h"
#include "mpi_shim/dynamic/channel.h"

/* Tells all ranks of comm whether its root has failed. Returns the root's error, or MPI_SUCCESS. */
int mpi_bridge_hear(struct mpi_comm *comm, int root, int err, const char *doing);

/*
 * Makes an intercommunicator of this job's processes in comm and of the other job's. Collective
 * over comm. The root has the channel, which it closes. The root's `err` is an error that it has
 * met before; it has no channel then.
 */
int mpi_bridge_make(struct mpi_comm *comm, int root, int err, struct mpi_channel *c,
		    struct mpi_comm **out);

/* Checks the arguments of a collective call. */
int mpi_bridge_check(const struct mpi_comm *comm, int root);

#endif
