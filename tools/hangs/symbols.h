/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * From the return addresses of a waiting thread to the MPI function that it is in and the
 * program's own line that called it. libdw of elfutils is loaded for that; without it only the
 * file of the program and an offset in it are known.
 */
#ifndef HANGS_SYMBOLS_H
#define HANGS_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct place {
	char call[64]; /* "MPI_Recv"; empty: not known */
	char at[176];  /* "solver.c:88", "main in solver" or "solver+0x1234"; empty: not known */
};

struct symbols; /* of one process */

/* NULL: libdw is not there, or cannot read the process. */
struct symbols *symbols_open(pid_t pid);
/* Finds the place of these return addresses, the innermost first. `s` may be NULL. */
void symbols_place(struct symbols *s, pid_t pid, const uint64_t *frame, unsigned int n,
		   struct place *place);
void symbols_close(struct symbols *s);

/* Why there are no lines; NULL if there may be some. */
const char *symbols_why_not(void);

#endif
