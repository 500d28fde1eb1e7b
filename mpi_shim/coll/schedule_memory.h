/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The temporary buffers of plans, from their beginning to their end.
 */
#ifndef MPI_SHIM_SCHEDULE_MEMORY_H
#define MPI_SHIM_SCHEDULE_MEMORY_H

#include "mpi_shim/coll/schedule.h"

void mpi_schedule_memory_init(struct mpi_schedule *p);
void mpi_schedule_memory_fini(struct mpi_schedule *p);

#endif
