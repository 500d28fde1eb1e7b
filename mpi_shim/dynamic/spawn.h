/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Spawned jobs, as MPI_Init sees them.
 */
#ifndef MPI_SHIM_SPAWN_H
#define MPI_SHIM_SPAWN_H

/* Connects this job to the one that spawned it, if one did. Collective over MPI_COMM_WORLD, the
 * last step of the start. MPI_SUCCESS or an error with a text kept. */
int mpi_spawn_meet_parent(void);

#endif
