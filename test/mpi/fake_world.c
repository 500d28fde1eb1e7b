/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A world for tests of parts that only need to know their rank and how many there are. A job
 * that ends jumps back into the test that expects it.
 */
#include "fake_world.h"

#include <portals3_ext.h>
#include <stdio.h>

struct mpi_world mpi_world;
struct fake_abort fake_abort;

void mpi_abort_job(int code, const char *message)
{
	fake_abort.code = code;
	snprintf(fake_abort.message, sizeof(fake_abort.message), "%s", message);
	longjmp(fake_abort.back, 1);
}

int mpi_world_program(void)
{
	return 0;
}

/* No launcher is here. */
int PtlJobUniverse(int *size)
{
	(void)size;
	return PTL_FAIL;
}

/* Nobody here has other threads. */
void mpi_unlock_and_yield(void)
{
}

/* Nobody tells here what collectives are called. */
void mpi_calls_forget(uint32_t context)
{
	(void)context;
}

/* No process here is of another job. */
void mpi_others_count(const struct mpi_comm *comm, int change)
{
	(void)comm;
	(void)change;
}

void fake_world_end(void)
{
	mpi_world_objects_fini();
	mpi_objects_fini();
}

int fake_world(int rank, int size)
{
	mpi_world.rank = rank;
	mpi_world.size = mpi_world.processes = size;
	mpi_world.level = MPI_THREAD_SINGLE;
	return mpi_objects_init() || mpi_world_objects_init();
}
