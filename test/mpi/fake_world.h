/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See fake_world.c.
 */
#ifndef TEST_MPI_FAKE_WORLD_H
#define TEST_MPI_FAKE_WORLD_H

#include <setjmp.h>

#include "mpi_shim/core/object.h"
#include "mpi_shim/core/world.h"

extern struct fake_abort {
	jmp_buf back;
	int code;
	char message[1024];
} fake_abort;

/* MPI_SUCCESS, with the predefined objects of a world of `size` processes. */
int fake_world(int rank, int size);
void fake_world_end(void);

#endif
