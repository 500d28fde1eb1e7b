/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The start and the end of this process's part in an MPI job: core/world.h says what is open.
 */
#ifndef MPI_SHIM_STARTUP_H
#define MPI_SHIM_STARTUP_H

/* Open the world model, once: start Portals, find the peers and make the predefined
 * communicators. Sets model, level and threaded. Called without the lock; blocks until all ranks
 * can receive. MPI_SUCCESS, or an error class with the text kept. */
int mpi_world_init(int level);
/* Close it: end all operations first. Collective and blocking. Called with the lock held, and
 * releases it. Returns the error of the last barrier; a dead rank is none. */
int mpi_world_fini(void);
/* Open the library for one more session. Called without the lock; waits for no other process.
 * MPI_SUCCESS, or an error class with the text kept. */
int mpi_session_open(void);

#endif
