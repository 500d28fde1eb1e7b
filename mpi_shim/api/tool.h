/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The MPI tool interface (MPI-4 §15.3), between its files. Control variables are the rows of
 * base/config.h. Performance variables are the counters of world.h, collectives by algorithm,
 * and the status registers of Portals.
 *
 * The interface works before MPI_Init and after MPI_Finalize. It returns its errors and never
 * runs an error handler. It has a lock of its own, which is held when the functions that end
 * variables (_fini) are called. The lock is recursive: it is also held while a callback of an
 * event runs inside of the library. Where both are needed the library's lock is taken first.
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
/* Take the lock, whether or not the interface is initialized. */
void mpi_tool_lock(void);
/* Take the library's lock, unless this thread has it as it runs a callback. */
void mpi_tool_enter_library(void);
void mpi_tool_leave_library(void);
/* Whether this thread runs a callback of an event. */
bool mpi_tool_in_callback(void);

/* Store a string result and its length; `len` is both input and output (MPI-4 §15.3.3). Does
 * nothing if `len` is NULL. */
void mpi_tool_string(const char *text, char *buf, int *len);
static inline void mpi_tool_int(int value, int *out)
{
	if (out)
		*out = value;
}

/* An enumeration; only its address is used. */
struct MPI_T_enum_t {
	char unused;
};

/* ---- control variables: rows of the configuration table -------------------------------------- */

int mpi_tool_cvar_count(void);
/* The enumeration of an ENUM row; MPI_T_ENUM_NULL for other rows. */
MPI_T_enum mpi_tool_cvar_enum(int index);
void mpi_tool_cvars_fini(void);

/* ---- performance variables ------------------------------------------------------------------- */

int mpi_tool_pvar_count(void);
/* How many of them, counted from the first, are the shim's own. */
int mpi_tool_pvar_shim_count(void);
/* How many, counted from the last, are bound to an object. */
int mpi_tool_pvar_bound_count(void);
void mpi_tool_pvars_fini(void);

/* ---- events ---------------------------------------------------------------------------------- */

/* The number of elements of an event type, whose names are this enumeration, and its name; -1:
 * another enumeration. */
int mpi_tool_elements(MPI_T_enum e, const char **name);
const char *mpi_tool_element(MPI_T_enum e, int i);
/* Needs the library's lock, too. */
void mpi_tool_events_fini(void);

#endif
