/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Info objects from the inside.
 */
#ifndef MPI_SHIM_INFO_H
#define MPI_SHIM_INFO_H

#include "mpi_shim/core/object.h"

extern struct mpi_info mpi_info_env;

/* What the process knows of its start: command, argv, maxprocs and the like. argc 0: the
 * arguments are those the system has. */
int mpi_info_env_fill(int argc, char *argv[], struct mpi_info *info);
void mpi_info_clear(struct mpi_info *info);
void mpi_info_destroy(void *object);

#endif
