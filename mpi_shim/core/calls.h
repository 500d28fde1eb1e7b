/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The record that a communicator keeps of the collectives called on it, and the mark that its
 * messages carry. coll/calls.h says how ranks use them to find out that they disagree.
 */
#ifndef MPI_SHIM_CORE_CALLS_H
#define MPI_SHIM_CORE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define MPI_CALLS_KEPT 4 /* a power of two */

/* The sentence about a disagreement, in the form in which it is sent. */
struct mpi_disagreement {
	int32_t class;
	char text[236];
};

/* The collectives that this rank has called on a communicator. */
struct mpi_calls {
	uint64_t number;               /* of calls so far */
	uint64_t call;                 /* the last call, packed by calls.c */
	uint64_t kept[MPI_CALLS_KEPT]; /* the last calls; index: number % MPI_CALLS_KEPT */
	uint64_t history;              /* hash of all calls */
	uint64_t mark;       /* mark of the last call, as its messages carry it: MPI_MARK_* */
	int64_t compared_ms; /* when this rank last checked what the others call */
	bool nested; /* calls are parts of a larger collective: not counted, with its mark */
	struct mpi_disagreement *found; /* NULL: none */
};

/* The mark of a message lies above the bits of its context. */
#define MPI_MARK_HEADER                                                                            \
	0x0fff0000u /* in the header data of every message: the kind, 7 bits of the history */
#define MPI_MARK_KIND  0x0f800000u
#define MPI_MARK_EXACT 0x10000000u /* the message must be as long as the receive's buffer */
/* From bit 32 on: the last 16 bits of the number, 16 bits of the history. Only the header data
 * of short messages has these. */

#endif
