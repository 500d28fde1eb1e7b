/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every MPI function is a weak name of its PMPI twin, so that a tool can put its own in between.
 * By attribute and not by pragma: that is the one that optimization at link time keeps.
 */
#ifndef MPI_SHIM_WEAK_H
#define MPI_SHIM_WEAK_H

/* Before the definition of PMPI_X in the same file: MPI_WEAK(MPI_X); */
#define MPI_WEAK(name) extern __typeof__(P##name) name __attribute__((weak, alias("P" #name)))

#endif
