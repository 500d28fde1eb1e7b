/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A small process that outlives mpiexec by a moment: when mpiexec is gone without having ended its
 * job (kill -9), it kills the process groups of the ranks. The ranks themselves die with mpiexec
 * anyway; this is for what they have started.
 */
#ifndef MPIEXEC_GUARD_H
#define MPIEXEC_GUARD_H

#include <sys/types.h>

/* Starts the guard of a job of that many ranks. 0, or -1 after an error was said. */
int guard_start(int ranks);

/* The process group of a rank, 0 when it is gone. Works in mpiexec and, before exec, in a rank. */
void guard_set(int rank, pid_t group);

/* The job has ended in good order: dismisses the guard and waits for its end. */
void guard_stop(void);

#endif
