/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The MPI tool interface (MPI-4 §15.3), between its files. Control variables are the rows of
 * base/config.h. Performance variables are the counters of world.h, collectives by algorithm,
 * and the status registers of Portals.
 *
 * The interface works before MPI_Init and after MPI_Finalize. It returns its errors and never
 * runs an error handler. It has a lock of its own, which is held when the functions that end
 * variables (_fini) are called.
 */
#ifndef MPI_SHIM_TOOL_H
#define MPI_SHIM_TOOL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"

/* Take the lock. MPI_T_ERR_NOT_INITIALIZED: called outside of MPI_T_init_thread and
 * MPI_T_finalize, and the lock is not held. */
int mpi_tool_enter(void);
/* Release the lock and return `rc`. */
int mpi_tool_leave(int rc);

/* Store a string result and its length; `len` is both input and output (MPI-4 §15.3.3). Does
 * nothing if `len` is NULL. */
void mpi_tool_string(const char *text, char *buf, int *len);
static inline void mpi_tool_int(int value, int *out)
{
	if (out)
		*out = value;
}

/* ---- control variables: rows of the configuration table -------------------------------------- */

int mpi_tool_cvar_count(void);
/* The enumeration of an ENUM row; MPI_T_ENUM_NULL for other rows. */
MPI_T_enum mpi_tool_cvar_enum(int index);
void mpi_tool_cvars_fini(void);

/* ---- performance variables ------------------------------------------------------------------- */

int mpi_tool_pvar_count(void);
/* How many of them, counted from the first, are the shim's own. */
int mpi_tool_pvar_shim_count(void);
void mpi_tool_pvars_fini(void);

#endif
