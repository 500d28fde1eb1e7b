/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Progress hooks: operations that consist of other operations and advance while no caller waits
 * for them. Every round of progress calls the hook of each active one; it goes on as far as it
 * can without waiting. The global lock is held.
 */
#ifndef MPI_SHIM_HOOKS_H
#define MPI_SHIM_HOOKS_H

#include <stdbool.h>

struct mpi_hook {
	struct mpi_hook *next;
	/* True: the operation has ended, and the memory of this struct may be freed. Must not
	 * wait. The only user callbacks it runs are reduction operations, which must not
	 * communicate. */
	bool (*run)(struct mpi_hook *s);
};

extern struct mpi_hook *mpi_hooks_active;
/* An event has come since the hooks last ran. */
extern bool mpi_hooks_due;

/* Adds a hook and runs its first steps. Later rounds of progress run the rest. */
void mpi_hooks_start(struct mpi_hook *s);
/* Runs all active hooks once. Returns whether any operation has ended. */
bool mpi_hooks_round(void);

/* Called at the end of each round of progress. */
static inline bool mpi_hooks_progress(void)
{
	return mpi_hooks_active && mpi_hooks_round();
}

#endif
