/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Standard input goes to rank 0, or to the ranks of -s. A file or pipe for one rank is simply
 * inherited. A terminal cannot be: the ranks are in process groups of their own and would be
 * stopped when they read it. So mpiexec reads the terminal, and what is for several ranks, and
 * forwards the bytes.
 */
#ifndef MPIEXEC_INPUT_H
#define MPIEXEC_INPUT_H

#include <stdbool.h>

/* The ranks that read: "all", "none", "0" or "1,3-5"; NULL: 0. Returns 0 or -errno. */
int input_init(const char *readers, int ranks);

/* Are there several, each with a pipe? */
bool input_is_shared(void);

/* The standard input of a rank in *fd, -1: it has none. Returns 0 or -errno. */
int input_open(int rank, int *fd);

/* The rank has its end: close ours. */
void input_started(int rank);

/* All ranks are started: begin to forward. */
void input_begin(void);

/* mpiexec was stopped and continued, and may be in the foreground now. */
void input_check_again(void);

#endif
