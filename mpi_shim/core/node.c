/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which ranks are on this node: see node.h.
 */
#include "mpi_shim/core/node.h"

#include <unistd.h>

#include "base/config.h"

uint32_t mpi_node_number(int world)
{
	const long pretended = base_config()->ptl_mpi_node;

	return pretended > 0 ? (uint32_t)(world / pretended) : mpi_world.id[world].nid;
}

static int ranks_here(void)
{
	static int known;
	int here = 0;

	if (known)
		return known;
	for (int i = 0; i < mpi_world.size; i++)
		here += mpi_is_here(i);
	known = here;
	return here;
}

bool mpi_one_node(void)
{
	return ranks_here() == mpi_world.size;
}

bool mpi_node_short(void)
{
	static signed char known = -1;

	if (known < 0)
		known = ranks_here() > sysconf(_SC_NPROCESSORS_ONLN);
	return known;
}
