/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The temporary buffers of schedules, from beginning to end. For schedule.c only; algorithms
 * use mpi_schedule_bytes() and mpi_schedule_typed() of schedule.h.
 */
#ifndef MPI_SHIM_SCHEDULE_MEMORY_H
#define MPI_SHIM_SCHEDULE_MEMORY_H

#include "mpi_shim/coll/schedule.h"

void mpi_schedule_memory_init(struct mpi_schedule *p);
void mpi_schedule_memory_fini(struct mpi_schedule *p);

#endif
