/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See steps.h.
 */
#include "mpi_shim/core/steps.h"

#include <stddef.h>

#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/world.h"

struct mpi_steps *mpi_steps_active;

bool mpi_steps_due;

/* What a step starts may make progress itself, and so may other threads while a user's function
 * runs: the round that is under way goes on for them. */
static bool in_round;

void mpi_steps_start(struct mpi_steps *s)
{
	struct mpi_steps **end = &mpi_steps_active;

	while (*end)
		end = &(*end)->next;
	s->next = NULL;
	*end = s;
	/* what another thread waits for may have ended as well */
	if (mpi_steps_round() && mpi_world.threaded)
		mpi_progress_wake();
}

/* While one runs it is not in the list, which others may be added to. */
static bool walk(void)
{
	struct mpi_steps **p = &mpi_steps_active;
	bool any = false;

	while (*p) {
		struct mpi_steps *s = *p;

		*p = s->next;
		if (s->run(s)) {
			any = true;
			continue;
		}
		s->next = *p;
		*p = s;
		p = &s->next;
	}
	return any;
}

bool mpi_steps_round(void)
{
	bool any = false;

	if (in_round) {
		mpi_steps_due = true;
		return false;
	}
	in_round = true;
	do {
		mpi_steps_due = false;
		any |= walk();
	} while (mpi_steps_due);
	in_round = false;
	return any;
}
