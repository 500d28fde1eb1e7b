/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which ranks are on this node, and whether each of them has a processor. Needs mpi_world.
 */
#ifndef MPI_SHIM_NODE_H
#define MPI_SHIM_NODE_H

#include "mpi_shim/core/world.h"

/* Whether a world rank is on this node. */
static inline bool mpi_is_here(int world)
{
	return mpi_world.id[world].nid == mpi_world.id[mpi_world.rank].nid;
}

/* A number that the processes of one node have in common. PTL_MPI_NODE pretends smaller nodes. */
uint32_t mpi_node_number(int world);
/* Whether all ranks of the job are on one node. The same on all ranks. */
bool mpi_one_node(void);
/* Whether the node is oversubscribed: more ranks than processors. */
bool mpi_node_short(void);

#endif
