/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Buffered sends: the message is copied into the buffer the user attached (to the process or to the
 * communicator, MPI-4.1 §3.6) and sent from there by a request of the library's own.
 */
#ifndef MPI_SHIM_BUFFERED_H
#define MPI_SHIM_BUFFERED_H

#include "mpi_shim/core/request.h"

/* Starts a send of mode MPI_SEND_BUFFERED; it is done when this returns. MPI_ERR_BUFFER: no
 * room. */
int mpi_buffered_launch(struct mpi_request *r);

/* The library's own send is over: its segment is free. */
void mpi_buffered_over(void *segment);

/* In MPI_Finalize: waits until all has gone. */
void mpi_buffered_fini(void);

#endif
