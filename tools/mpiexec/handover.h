/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Hands a job to an engine that starts ranks on several machines: translates the options, and
 * becomes that engine, so that its exit status and its signals are ours.
 */
#ifndef MPIEXEC_HANDOVER_H
#define MPIEXEC_HANDOVER_H

#include "tools/mpiexec/options.h"

/* program: the engine of opt->launcher. Returns only if it could not be started, with the exit
 * status after a message. */
int handover(const struct options *opt, const char *program);

#endif
