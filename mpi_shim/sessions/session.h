/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Sessions (MPI-4 §11.3): each opens the library for its user, beside the world model of MPI_Init.
 * core/world.h counts what is open. All functions need the global lock.
 */
#ifndef MPI_SHIM_SESSION_H
#define MPI_SHIM_SESSION_H

#include "mpi_shim/core/object.h"

void mpi_sessions_init(void);

/* Makes the object of a session that is open already. `handler` NULL: the default one. */
int mpi_session_make(const struct mpi_info *info, struct mpi_errhandler *handler,
		     struct mpi_session **out);

/* Ends an entry point that failed: as mpi_raise, with the session's error handler. */
int mpi_raise_session(struct mpi_session *session, const char *function, int code)
	__attribute__((cold));

#endif
