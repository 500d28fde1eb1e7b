/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Generalized requests: operations of the user's that MPI_Wait and its like complete (MPI-4
 * §13.2). The global lock is released while a function of the user's runs.
 */
#ifndef MPI_SHIM_GENERALIZED_H
#define MPI_SHIM_GENERALIZED_H

#include "mpi_shim/core/request.h"

/* Calls the user's cancel function and returns its code. */
int mpi_generalized_cancel(struct mpi_request *r);

/* Calls the user's free function and returns its code. No handle names the request from then
 * on; the caller releases it. */
int mpi_generalized_free(struct mpi_request *r);

extern const struct mpi_request_ops mpi_generalized_ops;

#endif
