/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The memory of another process on this node, by the kernel (cross-memory attach).
 */
#ifndef MPI_SHIM_CMA_H
#define MPI_SHIM_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies out of a process, or with `write` into it. False: errno says why not; a part may have
 * been copied. */
bool mpi_cma_copy(pid_t pid, uint64_t there, void *here, size_t bytes, bool write);

#endif
