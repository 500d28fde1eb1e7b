/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every MPI function is a weak alias of its PMPI twin, so that a tool can replace it. An
 * attribute makes the alias instead of a pragma, because link-time optimization keeps it.
 */
#ifndef MPI_SHIM_WEAK_H
#define MPI_SHIM_WEAK_H

/* Use MPI_WEAK(MPI_X); before the definition of PMPI_X in the same file. */
#define MPI_WEAK(name) extern __typeof__(P##name) name __attribute__((weak, alias("P" #name)))

#endif
