/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See hooks.h.
 */
#include "mpi_shim/core/hooks.h"

#include <stddef.h>

#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/world.h"

struct mpi_hook *mpi_hooks_active;

bool mpi_hooks_due;

/* A hook may start operations that make progress themselves. So may other threads, while a
 * user's function runs. The round in progress then goes on for them. */
static bool in_round;

void mpi_hooks_start(struct mpi_hook *s)
{
	struct mpi_hook **end = &mpi_hooks_active;

	while (*end)
		end = &(*end)->next;
	s->next = NULL;
	*end = s;
	/* An operation that another thread waits for may have ended too. */
	if (mpi_hooks_round() && mpi_world.threaded)
		mpi_progress_wake();
}

/* Runs each hook once. A hook that runs is off the list, and others may be added meanwhile. */
static bool walk(void)
{
	struct mpi_hook **p = &mpi_hooks_active;
	bool any = false;

	while (*p) {
		struct mpi_hook *s = *p;

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

bool mpi_hooks_round(void)
{
	bool any = false;

	if (in_round) {
		mpi_hooks_due = true;
		return false;
	}
	in_round = true;
	do {
		mpi_hooks_due = false;
		any |= walk();
	} while (mpi_hooks_due);
	in_round = false;
	return any;
}
