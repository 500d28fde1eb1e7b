/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ports: names by which one job finds another. The name has a secret in it, which is made for it
 * alone, and where the process that opened the port listens. Any number of processes may be
 * connected by one name until the port is closed.
 *
 * Functions return an MPI error class with a text kept, and need the global lock.
 */
#ifndef MPI_SHIM_PORT_H
#define MPI_SHIM_PORT_H

#include "mpi_shim/dynamic/channel.h"

/* Opens a port. `name` has MPI_MAX_PORT_NAME bytes. */
int mpi_port_open(char *name);
int mpi_port_close(const char *name);
/* Waits for a process that calls a port of this process. `ms` -1: for ever. MPI_ERR_PENDING
 * without a text: nobody has called in time. */
int mpi_port_accept(const char *name, int64_t ms, struct mpi_channel *c);
/* Calls the process that opened the port, and waits until it accepts. */
int mpi_port_call(const char *name, struct mpi_channel *c);
/* Closes the ports that are open, in MPI_Finalize. */
void mpi_ports_close(void);

#endif
