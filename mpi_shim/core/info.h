/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Info objects, for the rest of the shim. object.h has the functions that read and set single
 * keys.
 */
#ifndef MPI_SHIM_INFO_H
#define MPI_SHIM_INFO_H

#include "mpi_shim/core/object.h"

extern struct mpi_info mpi_info_env;

/* Sets what the process knows of its start: command, argv, maxprocs and the like. With argc 0
 * it reads the arguments from the system. MPI_SUCCESS or mpi_fail(...). */
int mpi_info_env_fill(int argc, char *argv[], struct mpi_info *info);
/* "MPI_THREAD_SINGLE" and so on. */
const char *mpi_level_name(int level);
void mpi_info_clear(struct mpi_info *info);
void mpi_info_destroy(void *object);

#endif
