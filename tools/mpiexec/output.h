/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What mpiexec writes: its own messages and, with -l, the ranks' output line by line. A reader that
 * is slow or gone never blocks the rest of mpiexec.
 */
#ifndef MPIEXEC_OUTPUT_H
#define MPIEXEC_OUTPUT_H

#include <stdbool.h>

/* Labelled output of that many ranks, 0 for none. 0 or -errno. */
int output_init(int ranks);

/* Reads a rank's output from these pipes from now on, and closes them at their end. 0 or -errno. */
int output_attach(int rank, int out_fd, int err_fd);

/* Takes what a rank has written so far, so that a message about it comes afterwards. */
void output_collect(int rank);

/* The ranks are gone: takes what is left, unfinished lines too, and closes all pipes. */
void output_finish(void);

/* Is everything written? */
bool output_idle(void);

/* One line "mpiexec: ..." on stderr. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same about a system call that failed; one that a container's filter refuses is called that. -1. */
int say_refused(const char *call, int err);

#endif
