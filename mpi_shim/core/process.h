/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The processes that this one knows, by number. The numbers below mpi_world.size are the ranks
 * of MPI_COMM_WORLD. The processes of other jobs follow, in the order in which this process was
 * connected to them. So the same process has other numbers in other processes, and no number
 * travels between jobs: names do.
 *
 * A parameter or member `world` is such a number. Groups are arrays of them. A process keeps
 * its number after it was disconnected, and has it again when it is connected again.
 *
 * All functions need the global lock.
 */
#ifndef MPI_SHIM_PROCESS_H
#define MPI_SHIM_PROCESS_H

#include <portals3.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi_shim/core/world.h"

/* The number of a message's sender fits 16 bits. The last one says that the sender is of another
 * job: the receiver looks its address up. */
#define MPI_PROCESSES_MOST 0xffff
/* Processes of other jobs that a process can know in its life: their numbers are not used again. */
#define MPI_OTHERS_EVER   8192
#define MPI_PROCESS_OTHER 0xffff

/* The same in every process: its address, its job's Portals id, its rank there. Plain words, to
 * be sent. */
struct mpi_process_name {
	uint32_t nid, pid, jid, rank;
};

/* How many processes of this job and others there is room for. */
int mpi_processes_room(void);

/* Makes room for the addresses of all processes. MPI_SUCCESS or an error with a text kept. */
int mpi_processes_init(void);
void mpi_processes_fini(void);

struct mpi_process_name mpi_process_name(int world);
/* Returns the number of a process of another job with this address, or -1. */
int mpi_process_find(ptl_process_id_t id);
/* Returns the number of a process; one that is new gets one. -1: out of memory or numbers. */
int mpi_process_add(const struct mpi_process_name *name);
/* Returns the process in words: its rank and job. Valid until the next call. */
const char *mpi_process_text(int world);
/* An order that all processes agree on. In one job it is that of the ranks. */
bool mpi_process_before(int a, int b);

static inline bool mpi_is_other_job(int world)
{
	return world >= mpi_world.size;
}

/* Returns the number by which a receiver knows this process. */
static inline int mpi_own_number_at(int world)
{
	return mpi_is_other_job(world) ? MPI_PROCESS_OTHER : mpi_world.rank;
}

/* Returns the sender of a message, given the number in it; -1: it is not connected. */
static inline int mpi_process_of(int number, ptl_process_id_t from)
{
	if (__builtin_expect(number != MPI_PROCESS_OTHER, 1))
		return number < mpi_world.size ? number : -1;
	return mpi_process_find(from);
}

#endif
