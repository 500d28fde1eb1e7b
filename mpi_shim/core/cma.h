/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Copies between this process and another process of the node, by the kernel: cross-memory
 * attach (CMA), process_vm_readv(2) and process_vm_writev(2).
 */
#ifndef MPI_SHIM_CMA_H
#define MPI_SHIM_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies `bytes` from address `there` of the process to `here`, or with `write` the other way.
 * False: errno has the reason, and a part may have been copied. */
bool mpi_cma_copy(pid_t pid, uint64_t there, void *here, size_t bytes, bool write);

#endif
