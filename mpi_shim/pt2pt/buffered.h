/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Buffered sends. The message is copied into the buffer that the user attached to the process
 * or to the communicator (MPI-4.1 §3.6). A request of the library's own sends it from there.
 * All functions need the global lock.
 */
#ifndef MPI_SHIM_BUFFERED_H
#define MPI_SHIM_BUFFERED_H

#include "mpi_shim/core/request.h"

struct mpi_buffer;

/* Starts a send of mode MPI_SEND_BUFFERED, which is done on return. Makes progress to find
 * room, but does not block. MPI_ERR_BUFFER: no buffer, or no room. */
int mpi_buffered_launch(struct mpi_request *r);

/* Frees the segment of a send that is over. `segment`: as in the request. */
void mpi_buffered_over(void *segment);

/* Waits until all buffered messages are sent, then detaches the buffer, if there is one: that of
 * a session, or the process's in MPI_Finalize. */
void mpi_buffered_end(struct mpi_buffer **at);
void mpi_buffered_fini(void);

#endif
