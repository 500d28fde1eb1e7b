/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Operations that are made of others and go on while nobody waits for them: each has a function
 * that does the next steps, as far as it can without waiting, and which every round of progress
 * calls.
 */
#ifndef MPI_SHIM_HOOKS_H
#define MPI_SHIM_HOOKS_H

#include <stdbool.h>

struct mpi_hook {
	struct mpi_hook *next;
	/* True: it has ended, and the memory of this struct may be gone. Waits for nothing; the
	 * only callbacks of the user's that it runs are reduction operations, which must not
	 * communicate. */
	bool (*run)(struct mpi_hook *s);
};

extern struct mpi_hook *mpi_hooks_active;
/* Something has come in since they were looked at. */
extern bool mpi_hooks_due;

/* The first steps, and the others by and by. */
void mpi_hooks_start(struct mpi_hook *s);
/* One round of all that are active; returns whether any has ended. */
bool mpi_hooks_round(void);

/* At the end of each round of progress. */
static inline bool mpi_hooks_progress(void)
{
	return mpi_hooks_active && mpi_hooks_round();
}

#endif
