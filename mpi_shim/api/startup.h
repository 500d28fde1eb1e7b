/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The start and the end of this process's part in an MPI job. Each may be called once, in this
 * order.
 */
#ifndef MPI_SHIM_STARTUP_H
#define MPI_SHIM_STARTUP_H

/* Start Portals, find the peers and make all predefined objects. Sets phase, level and threaded.
 * Called without the lock; blocks until all ranks can receive. MPI_SUCCESS, or an error class
 * with the text kept. */
int mpi_world_init(int level);
/* End all operations, then Portals. Collective and blocking. Called with the lock held, and
 * releases it. Returns the error of the last barrier; a dead rank is none. */
int mpi_world_fini(void);

#endif
