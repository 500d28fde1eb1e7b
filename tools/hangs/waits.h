/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The waits of a job's ranks: in words, and whom each one waits for.
 */
#ifndef HANGS_WAITS_H
#define HANGS_WAITS_H

#include "tools/hangs/job.h"
#include "tools/hangs/symbols.h"

enum { RANK_NONE = -1 };

/* The wait of one rank. */
struct wait_row {
	bool waits;
	struct place place;
	char what[200]; /* "from 1 tag 5"; without the call */
	/* The communicator that it is in a collective of; NULL: it is in none. */
	const struct base_wait_comm *collective;
	int next; /* a rank that it waits for, or RANK_NONE */
};

struct wait_rows {
	const struct job_seen *job;
	struct wait_row *row; /* by rank */
};

/* Allocates and fills in the rows. False: out of memory. */
bool waits_read(struct wait_rows *rows, const struct job_seen *job);
void waits_free(struct wait_rows *rows);

/* The communicator with this context that the rank has listed; NULL: it has not. */
const struct base_wait_comm *comm_of(const struct record *record, uint32_t context);
/* Writes its name, or its size. */
const char *comm_text(const struct record *record, uint32_t context, char *text, size_t size);

/* Whether the rank waits, and has called fewer collectives of that communicator. */
bool is_behind(const struct wait_rows *rows, int rank, const struct base_wait_comm *comm);

/* "MPI_Recv from 1 tag 5 (solver.c:88)" */
const char *wait_text(const struct wait_row *row, char *text, size_t size);
/* " tag 5", or " any tag" */
const char *tag_text(int tag, char *text, size_t size);

#endif
