/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The temporary buffers of plans, from their beginning to their end.
 */
#ifndef MPI_SHIM_PLAN_MEMORY_H
#define MPI_SHIM_PLAN_MEMORY_H

#include "mpi_shim/coll/plan.h"

void mpi_plan_memory_init(struct mpi_plan *p);
void mpi_plan_memory_fini(struct mpi_plan *p);

#endif
