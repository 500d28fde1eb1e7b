/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Notices that all ranks wait and none makes progress, and prints what each one waits for.
 */
#ifndef MPIEXEC_DEADLOCK_H
#define MPIEXEC_DEADLOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/mpiexec/options.h"

/* Begin to watch a job. `abort_job` is called with --deadlock-abort, once, after the report.
 * Returns 0 or -ENOMEM. */
int deadlock_watch(const struct options *opt, void (*abort_job)(void));

/* The process of a rank; 0: it has ended. */
void deadlock_rank(int rank, pid_t pid);

/* Print the report, then call `after`. False: it cannot be made, or one is being made; `after`
 * is not called. */
bool deadlock_report(void (*after)(void));

/* Print what the ranks of another job wait for on standard output. Returns an exit status. */
int deadlock_status(const char *pid);

#endif
