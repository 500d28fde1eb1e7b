/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory that processes of one node share: one offers it, the others join with the note that
 * they were sent. It has no name in any file system and is gone with the last process that has
 * it mapped.
 */
#ifndef MPI_SHIM_NODE_SEGMENT_H
#define MPI_SHIM_NODE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the others must know; plain bytes, to be sent. */
struct mpi_node_segment_key {
	uint64_t token; /* the first word of the memory; 0: there is none */
	int32_t pid, fd;
};

/*
 * `bytes` of zeroes but for the token in the first word, and the note for the others. The
 * descriptor stays open until mpi_node_segment_settle. NULL: there is none to be had, and the
 * note says so; mpi_node_segment_why tells why.
 */
void *mpi_node_segment_offer(size_t bytes, struct mpi_node_segment_key *note);
/* All have joined or tried to. */
void mpi_node_segment_settle(const struct mpi_node_segment_key *note);
/* The memory of a note of this node; NULL: it cannot be reached from here; mpi_node_segment_why
 * tells why. */
void *mpi_node_segment_join(size_t bytes, const struct mpi_node_segment_key *note);
/* Why this thread's last offer or attempt to join failed; "": it did not. */
const char *mpi_node_segment_why(void);
void mpi_node_segment_leave(void *memory, size_t bytes);

#endif
