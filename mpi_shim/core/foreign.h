/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Other MPIs beside this one: a program whose parts were built with different ones.
 */
#ifndef MPI_SHIM_FOREIGN_H
#define MPI_SHIM_FOREIGN_H

#include "mpi_shim/core/handle.h"

/* Whose mpi.h has a value like this for an object of this kind; NULL if we know of none. */
const char *mpi_foreign_handle(enum mpi_kind kind, const void *handle) __attribute__((cold));

#endif
