/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The output of mpiexec: its own messages, and the output of the ranks. That of a job of several
 * ranks passes through mpiexec unless it goes to a terminal, so that lines stay whole; so does what
 * goes to a file: libraries of programs buffer much of that, and lose it when they are killed, but
 * pass on what they write to a pipe. Other output is inherited by the
 * ranks.
 *
 * A reader that is slow or gone never blocks the rest of mpiexec; a file system that hangs
 * does.
 */
#ifndef MPIEXEC_OUTPUT_H
#define MPIEXEC_OUTPUT_H

#include <stdbool.h>

#include "tools/mpiexec/options.h"

/* Which of a rank's standard output and error go through a pipe; `one`: both through that of
 * the output. */
struct output_pipes {
	bool out, err, one;
};

/* Prepare for all ranks. `room`: pipes are possible also where no option asks for them. Returns 0
 * or -errno. */
int output_init(const struct options *opt, bool room, const char *host);
/* The pipes that each rank needs. */
struct output_pipes output_pipes(void);

/* Open the files that a rank's output goes to. Returns 0, or -1 after a message. */
int output_open(int rank);

/* Read a rank's output from these pipes from now on, and close them at their end; -1: no pipe.
 * Returns 0 or -errno. */
int output_attach(int rank, int out_fd, int err_fd);

/* Read what a rank has written so far, so that a message about it comes afterwards. */
void output_collect(int rank);

/* The ranks are gone: read the rest, unfinished lines too, and close all pipes. */
void output_finish(void);

/* Is everything written? */
bool output_idle(void);

/* Could something not be written? */
bool output_lost(void);

/* Print one line "mpiexec: ..." on stderr. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print that a system call failed; a message says so if a container's filter refuses it.
 * Returns -1. */
int say_refused(const char *call, int err);

#endif
