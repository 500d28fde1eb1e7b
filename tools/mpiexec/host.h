/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which names belong to this machine.
 */
#ifndef MPIEXEC_HOST_H
#define MPIEXEC_HOST_H

#include <stdbool.h>

bool host_is_here(const char *name);

#endif
