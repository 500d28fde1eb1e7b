/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Detects other MPIs in this process: a program may have parts that were built with different
 * ones.
 */
#ifndef MPI_SHIM_FOREIGN_H
#define MPI_SHIM_FOREIGN_H

#include "mpi_shim/core/handle.h"

/* Returns the name of the MPI whose mpi.h has such a value for an object of this kind; NULL:
 * unknown. */
const char *mpi_foreign_handle(enum mpi_kind kind, const void *handle) __attribute__((cold));

#endif
