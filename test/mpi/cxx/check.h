/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Cases that all ranks judge and rank 0 reports, as TAP.
 */
#ifndef TEST_MPI_CXX_CHECK_H
#define TEST_MPI_CXX_CHECK_H

#include <mpi.h>

void check(bool good, const char *what);

/* the cases of each file */
void check_messages();
void check_collectives();
void check_objects();
void check_callbacks();

#endif
