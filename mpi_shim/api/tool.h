/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The MPI tool interface (MPI-4 §15.3) between its files. Control variables are the rows of
 * base/config.h, performance variables the counters of world.h and the status registers of
 * Portals. It works before MPI_Init and after MPI_Finalize, has a lock of its own, and returns
 * its errors: no error handler runs.
 */
#ifndef MPI_SHIM_TOOL_H
#define MPI_SHIM_TOOL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"

/* Takes the lock. MPI_T_ERR_NOT_INITIALIZED, and the lock is not taken, outside of
 * MPI_T_init_thread and MPI_T_finalize. */
int mpi_tool_enter(void);
/* Lets the lock go, and returns `rc`. */
int mpi_tool_leave(int rc);

/* A string result with its length, both in and out (MPI-4 §15.3.3). */
void mpi_tool_string(const char *text, char *buf, int *len);
static inline void mpi_tool_int(int value, int *out)
{
	if (out)
		*out = value;
}

/* ---- control variables: rows of the configuration table -------------------------------------- */

int mpi_tool_cvar_count(void);
/* The enumeration of an ENUM row, MPI_T_ENUM_NULL for others. */
MPI_T_enum mpi_tool_cvar_enum(int index);
void mpi_tool_cvars_fini(void);

/* ---- performance variables ------------------------------------------------------------------- */

int mpi_tool_pvar_count(void);
/* How many of them, the first ones, are the shim's own. */
int mpi_tool_pvar_shim_count(void);
void mpi_tool_pvars_fini(void);

#endif
