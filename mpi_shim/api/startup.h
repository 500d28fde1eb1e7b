/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The start and the end of the process's part in an MPI job.
 */
#ifndef MPI_SHIM_STARTUP_H
#define MPI_SHIM_STARTUP_H

/* Portals stands, the peers are known, all predefined objects exist; or MPI_ERR_* with text
 * kept. Sets phase, level, threaded. Not locked. */
int mpi_world_init(int level);
/* Collective: all that was started ends, then Portals goes. Locked; the lock is gone afterwards. */
int mpi_world_fini(void);

#endif
