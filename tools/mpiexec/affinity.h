/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The cores this process may use, and binding to some of them.
 */
#ifndef MPIEXEC_AFFINITY_H
#define MPIEXEC_AFFINITY_H

/* Find the cores; hardware threads of one core count once. Returns how many, or -errno if
 * processes cannot be bound. */
int affinity_init(void);

/* Bind the calling process to all usable hardware threads of `count` cores from `first` on,
 * both modulo the number of cores. Only after affinity_init(). Returns 0 or -errno. */
int affinity_bind(int first, int count);

#endif
