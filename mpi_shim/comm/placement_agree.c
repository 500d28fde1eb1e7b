/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reordering ranks: how they learn of each other where they are. See placement.h.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/creation.h"
#include "mpi_shim/comm/placement.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/hardware.h"

/* The number of the cache that this rank shares with others; -1: unknown. */
static int shared_cache(void)
{
	int type = mpi_hardware_type("hwloc://L3Cache");

	if (type < 0)
		type = mpi_hardware_type("hwloc://NUMANode");
	return type < 0 ? -1 : mpi_hardware_index(type);
}

int mpi_placement_agree(struct mpi_placement *p, struct mpi_comm *comm, int n)
{
	const struct mpi_creation creation = mpi_creation_of(comm);
	int mine, *all = malloc((size_t)comm->size * sizeof(*all));
	int err = mpi_placement_local(p, comm, n);

	if (err == MPI_SUCCESS && !all)
		err = mpi_fail_memory("the places of ranks");
	err = mpi_creation_side(&creation, err);
	if (err == MPI_SUCCESS) {
		mine = shared_cache();
		err = mpi_coll_allgather_bytes(&mine, all, sizeof(mine), comm);
	}
	if (err == MPI_SUCCESS && all)
		memcpy(p->cache, all, (size_t)n * sizeof(*all));
	else
		mpi_placement_end(p);
	free(all);
	return err;
}
