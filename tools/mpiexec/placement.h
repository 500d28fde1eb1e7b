/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Where a job runs, how many ranks it has there, and by which engine.
 */
#ifndef MPIEXEC_PLACEMENT_H
#define MPIEXEC_PLACEMENT_H

#include "tools/mpiexec/options.h"

/*
 * Complete what the command line leaves open: numbers of ranks, and the engine in opt->launcher.
 * Returns the path of an engine's program in *engine, NULL for the embedded one; allocated. False
 * with *status after an error message.
 */
bool placement_resolve(struct options *opt, char **engine, int *status);

#endif
