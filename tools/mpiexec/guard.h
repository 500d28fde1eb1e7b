/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A small process that outlives mpiexec by a moment. If mpiexec is gone without having ended
 * its job (kill -9), it kills the process groups of the ranks. The ranks themselves die with
 * mpiexec anyway; the guard is for the processes that they have started.
 */
#ifndef MPIEXEC_GUARD_H
#define MPIEXEC_GUARD_H

#include <sys/types.h>

/* Start the guard of a job with so many ranks. Returns 0, or -1 after an error message. */
int guard_start(int ranks);

/* Set the process group of a rank, 0 when it is gone. Works in mpiexec and, before exec, in a
 * rank. */
void guard_set(int rank, pid_t group);

/* The job has ended properly: dismiss the guard and wait for its end. */
void guard_stop(void);

#endif
