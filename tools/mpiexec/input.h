/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Standard input goes to rank 0. A file or pipe is simply inherited. A terminal cannot be: the
 * ranks are in process groups of their own and would be stopped when they read it. So mpiexec
 * reads the terminal and forwards the bytes.
 */
#ifndef MPIEXEC_INPUT_H
#define MPIEXEC_INPUT_H

/* The standard input of rank 0, or -1 with errno. Close it with input_started. */
int input_open(void);

/* Rank 0 has its end: close ours and begin to forward. */
void input_started(void);

/* mpiexec was stopped and continued, and may be in the foreground now. */
void input_check_again(void);

#endif
