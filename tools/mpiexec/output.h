/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What mpiexec writes: its own messages, with -l the ranks' output line by line, and without it
 * their output to a file, as it comes: programs' libraries keep back what they write to a file
 * until it is much, and lose it when they are killed, but pass on what they write to a pipe. What
 * is neither labelled nor a file, a terminal or a pipe, the ranks inherit. A reader that is slow or
 * gone never blocks the rest of mpiexec; a file system that stands still does.
 */
#ifndef MPIEXEC_OUTPUT_H
#define MPIEXEC_OUTPUT_H

#include <stdbool.h>

/* Of a rank's standard output and error, what goes through a pipe; `one`: both through that of the
 * output. */
struct output_pipes {
	bool out, err, one;
};

/* For that many ranks, labelled or not; `room`: there may be pipes without labels, too. 0 or
 * -errno. */
int output_init(int ranks, bool label, bool room);
struct output_pipes output_pipes(void);

/* Reads a rank's output from these pipes from now on, and closes them at their end; -1: there is
 * none. 0 or -errno. */
int output_attach(int rank, int out_fd, int err_fd);

/* Takes what a rank has written so far, so that a message about it comes afterwards. */
void output_collect(int rank);

/* The ranks are gone: takes what is left, unfinished lines too, and closes all pipes. */
void output_finish(void);

/* Is everything written? */
bool output_idle(void);

/* Could something not be written? */
bool output_lost(void);

/* One line "mpiexec: ..." on stderr. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same about a system call that failed; one that a container's filter refuses is called that.
 * -1. */
int say_refused(const char *call, int err);

#endif
