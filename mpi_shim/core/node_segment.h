/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Node segments: memory that processes of one node share. One process offers it; the others
 * join with the key that it sends them. The segment has no name in any file system. It is gone
 * when the last process that has it mapped unmaps it or ends.
 */
#ifndef MPI_SHIM_NODE_SEGMENT_H
#define MPI_SHIM_NODE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The data that the others need to join; plain bytes, to be sent. */
struct mpi_node_segment_key {
	uint64_t token; /* the first word of the memory; 0: there is no segment */
	int32_t pid, fd;
};

/*
 * Makes a segment of `bytes` zeroes, with the token in the first word, and fills in the key,
 * `note`. The descriptor stays open until mpi_node_segment_settle. NULL: failed; the key's
 * token is 0, and mpi_node_segment_why has the reason.
 */
void *mpi_node_segment_offer(size_t bytes, struct mpi_node_segment_key *note);
/* Closes the descriptor, once all others have joined or tried to. */
void mpi_node_segment_settle(const struct mpi_node_segment_key *note);
/* Maps the segment of a key from this node. NULL: it cannot be reached from here;
 * mpi_node_segment_why has the reason. */
void *mpi_node_segment_join(size_t bytes, const struct mpi_node_segment_key *note);
/* Why this thread's last offer or attempt to join failed; "" if it did not. */
const char *mpi_node_segment_why(void);
void mpi_node_segment_leave(void *memory, size_t bytes);

#endif
