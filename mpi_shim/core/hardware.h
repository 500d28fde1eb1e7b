/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The hardware that this process is restricted to: the host, and the packages, NUMA nodes, caches,
 * cores and processors that hwloc knows. Its library is loaded when first asked, and never
 * linked. Without it there are the host and the processor.
 */
#ifndef MPI_SHIM_HARDWARE_H
#define MPI_SHIM_HARDWARE_H

enum { MPI_HARDWARE_TYPES = 11, MPI_HARDWARE_HOST = 0 };

/* The names of types, from the host to the single processor; hwloc://Package and so on. NULL:
 * this machine has none of that type, or it cannot be known. */
const char *mpi_hardware_name(int type);

/* The type of this name; -1: there is none. */
int mpi_hardware_type(const char *name);

#define MPI_HARDWARE_INDEX_MOST 32767

/* The number, on this machine, of the only resource of a type that this thread may use. -1: it
 * may use several, or none. */
int mpi_hardware_index(int type);

#endif
