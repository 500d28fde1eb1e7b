/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Who is on this node, and whether there is a processor for each of them.
 */
#ifndef MPI_SHIM_NODE_H
#define MPI_SHIM_NODE_H

#include "mpi_shim/core/world.h"

/* A world rank is of this node. */
static inline bool mpi_is_here(int world)
{
	return mpi_world.id[world].nid == mpi_world.id[mpi_world.rank].nid;
}

/* All ranks of the job are on one node. The same on all ranks. */
bool mpi_one_node(void);
/* The node has more ranks than processors. */
bool mpi_node_short(void);

#endif
