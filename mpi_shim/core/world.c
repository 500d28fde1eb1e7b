/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The state of the process's part in an MPI job, and how it aborts the job. api/startup.c has
 * the rest.
 */
#include "mpi_shim/core/world.h"

#include <portals3_ext.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

struct mpi_world mpi_world = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void set_phase(void)
{
	const int model = atomic_load(&mpi_world.model);

	atomic_store(&mpi_world.phase, mpi_world.sessions ? MPI_PHASE_RUNNING : model);
}

void mpi_world_open(int *sessions)
{
	if (sessions)
		++*sessions;
	else
		atomic_store(&mpi_world.model, MPI_PHASE_RUNNING);
	set_phase();
}

void mpi_world_close(int *sessions)
{
	if (sessions)
		--*sessions;
	else
		atomic_store(&mpi_world.model, MPI_PHASE_AFTER);
	if (!mpi_world.sessions && atomic_load(&mpi_world.model) != MPI_PHASE_RUNNING)
		mpi_world.all_closed();
	set_phase();
}

void mpi_unlock_and_yield(void)
{
	mpi_world.yield_due = false;
	pthread_mutex_unlock(&mpi_world.lock);
	sched_yield();
}

int mpi_world_program(void)
{
	static int number = -1;

	if (number < 0 && PtlJobProgram(&number) != PTL_OK)
		number = 0;
	return number;
}

void mpi_abort_job(int code, const char *message)
{
	int status = code & 0xff ? code & 0xff : 1;

	fflush(stdout);
	PtlJobAbort(status, message);
	_exit(status);
}
