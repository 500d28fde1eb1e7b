/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Operations that are made of others and go on while nobody waits for them: each has a function
 * that does the next steps, as far as it can without waiting, and which every round of progress
 * calls.
 */
#ifndef MPI_SHIM_STEPS_H
#define MPI_SHIM_STEPS_H

#include <stdbool.h>

struct mpi_steps {
	struct mpi_steps *next;
	/* True: it has ended, and the memory of this struct may be gone. Waits for nothing; the
	 * only callbacks of the user's that it runs are reduction operations, which must not
	 * communicate. */
	bool (*run)(struct mpi_steps *s);
};

extern struct mpi_steps *mpi_steps_active;
/* Something has come in since they were looked at. */
extern bool mpi_steps_due;

/* The first steps, and the others by and by. */
void mpi_steps_start(struct mpi_steps *s);
/* One round of all that are active; returns whether any has ended. */
bool mpi_steps_round(void);

/* At the end of each round of progress. */
static inline bool mpi_steps_progress(void)
{
	return mpi_steps_active && mpi_steps_round();
}

#endif
