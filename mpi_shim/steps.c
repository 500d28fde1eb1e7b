/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See steps.h.
 */
#include "mpi_shim/steps.h"

#include <stddef.h>

struct mpi_steps *mpi_steps_active;

/* What a step starts may make progress itself; the round that is under way is enough. */
static bool in_round;

void mpi_steps_start(struct mpi_steps *s)
{
	struct mpi_steps **end = &mpi_steps_active;

	while (*end)
		end = &(*end)->next;
	s->next = NULL;
	*end = s;
	mpi_steps_round();
}

bool mpi_steps_round(void)
{
	struct mpi_steps **p = &mpi_steps_active;
	bool any = false;

	if (in_round)
		return false;
	in_round = true;
	while (*p) {
		struct mpi_steps *s = *p, *next = s->next;

		if (s->run(s)) {
			*p = next;
			any = true;
		} else {
			p = &s->next;
		}
	}
	in_round = false;
	return any;
}
