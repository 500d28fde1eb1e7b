/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which names are this machine's.
 */
#ifndef MPIEXEC_HOST_H
#define MPIEXEC_HOST_H

#include <stdbool.h>

/* Are all names of this list with commas between, each with or without ":number" behind, this
 * machine's? */
bool host_is_here(const char *names);

#endif
