/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The table of processes: see process.h. Those of other jobs are also in a hash table by
 * address. When another process has got the address of one that ended, the table leads to the
 * new one.
 */
#include "mpi_shim/core/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"

static struct {
	struct mpi_process_name *name; /* of the processes of other jobs, from mpi_world.size on */
	int room;
	int *slot; /* numbers by hash of the address; 0: free, as rank 0 is never in it */
	uint32_t slots;
} others;

int mpi_processes_room(void)
{
	return mpi_world.size < MPI_PROCESSES_MOST - MPI_OTHERS_EVER
		       ? mpi_world.size + MPI_OTHERS_EVER
		       : MPI_PROCESSES_MOST;
}

int mpi_processes_init(void)
{
	/* pages that are not used take no memory, and the array never moves */
	mpi_world.id = calloc((size_t)mpi_processes_room(), sizeof(*mpi_world.id));
	mpi_world.processes = mpi_world.size;
	return mpi_world.id ? MPI_SUCCESS : mpi_fail_memory("the addresses of all ranks");
}

void mpi_processes_fini(void)
{
	free(others.name);
	free(others.slot);
	memset(&others, 0, sizeof(others));
	free(mpi_world.id);
	mpi_world.id = NULL;
}

static bool has_address(int world, ptl_process_id_t id)
{
	return mpi_world.id[world].nid == id.nid && mpi_world.id[world].pid == id.pid;
}

/* Returns the slot of an address: that of its process, or a free one. */
static int *slot_of(ptl_process_id_t id)
{
	uint32_t i = (id.nid * 0x9e3779b1u ^ id.pid * 0x85ebca6bu) >> 8;

	for (;; i++) {
		int *slot = &others.slot[i & (others.slots - 1)];

		if (!*slot || has_address(*slot, id))
			return slot;
	}
}

int mpi_process_find(ptl_process_id_t id)
{
	const int world = others.slots ? *slot_of(id) : 0;

	return world ? world : -1;
}

struct mpi_process_name mpi_process_name(int world)
{
	if (mpi_is_other_job(world))
		return others.name[world - mpi_world.size];
	return (struct mpi_process_name){ mpi_world.id[world].nid, mpi_world.id[world].pid,
					  mpi_world.jid, (uint32_t)world };
}

static bool is_process_named(int world, const struct mpi_process_name *name)
{
	const struct mpi_process_name known = mpi_process_name(world);

	return memcmp(&known, name, sizeof(known)) == 0;
}

/* Makes room for one more process. False: out of memory. */
static bool have_room(void)
{
	const int n = mpi_world.processes - mpi_world.size;
	const int room = others.room ? 2 * others.room : 16;
	struct mpi_process_name *name;
	int *slot;

	if (n < others.room)
		return true;
	name = realloc(others.name, (size_t)room * sizeof(*name));
	if (!name)
		return false;
	others.name = name;
	slot = calloc((size_t)room * 2, sizeof(*slot));
	if (!slot)
		return false;
	free(others.slot);
	others.slot = slot;
	others.slots = (uint32_t)room * 2;
	others.room = room;
	for (int world = mpi_world.size; world < mpi_world.processes; world++)
		*slot_of(mpi_world.id[world]) = world;
	return true;
}

int mpi_process_add(const struct mpi_process_name *name)
{
	const ptl_process_id_t id = { .nid = name->nid, .pid = name->pid };
	int world = mpi_process_find(id);

	if (world >= 0 && is_process_named(world, name))
		return world;
	if (name->rank < (uint32_t)mpi_world.size && is_process_named((int)name->rank, name))
		return (int)name->rank;
	if (mpi_world.processes == mpi_processes_room() || !have_room())
		return -1;
	world = mpi_world.processes++;
	mpi_world.id[world] = id;
	others.name[world - mpi_world.size] = *name;
	*slot_of(id) = world;
	return world;
}

const char *mpi_process_text(int world)
{
	static char text[64];

	snprintf(text, sizeof(text), "rank %u of %s", mpi_process_name(world).rank,
		 mpi_is_other_job(world) ? "another job" : "MPI_COMM_WORLD");
	return text;
}

bool mpi_process_before(int a, int b)
{
	const struct mpi_process_name x = mpi_process_name(a), y = mpi_process_name(b);

	if (x.jid != y.jid)
		return x.jid < y.jid;
	if (x.rank != y.rank)
		return x.rank < y.rank;
	return x.nid != y.nid ? x.nid < y.nid : x.pid < y.pid;
}
