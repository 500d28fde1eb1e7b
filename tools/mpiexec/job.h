/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * One job from its first process to its last: starting, watching, forwarding signals, ending.
 */
#ifndef MPIEXEC_JOB_H
#define MPIEXEC_JOB_H

#include "tools/mpiexec/options.h"

/* Run the job and return the exit status of mpiexec. */
int job_run(const struct options *opt);

#endif
