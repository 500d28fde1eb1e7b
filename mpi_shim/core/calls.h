/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What a communicator keeps of the collectives that were called on it, and their mark in messages:
 * see coll/calls.h.
 */
#ifndef MPI_SHIM_CORE_CALLS_H
#define MPI_SHIM_CORE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define MPI_CALLS_KEPT 4 /* a power of two */

/* What ranks disagree about, as it is sent. */
struct mpi_disagreement {
	int32_t class;
	char text[236];
};

/* What this rank has called on a communicator. */
struct mpi_calls {
	uint64_t number;               /* of calls so far */
	uint64_t call;                 /* the last one: calls.c packs it */
	uint64_t kept[MPI_CALLS_KEPT]; /* the last ones, by number */
	uint64_t history;              /* hash of all */
	uint64_t mark;                 /* of the last one, as its messages have it: MPI_MARK_* */
	int64_t looked_ms;             /* when this rank last looked at what the others call */
	bool nested; /* collectives are part of others, whose mark they have, and are not counted */
	struct mpi_disagreement *found; /* NULL: none */
};

/* A message's mark, above the bits of its context. */
#define MPI_MARK_HEADER                                                                            \
	0x0fff0000u /* in the header data of each: the kind, 7 bits of the history */
#define MPI_MARK_KIND  0x0f800000u
#define MPI_MARK_EXACT 0x10000000u /* what is received has to be as long as its buffer */
/* from bit 32 on: the number's last 16 bits, 16 bits of the history; in the header data of short
 * ones only */

#endif
