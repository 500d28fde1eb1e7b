/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The launcher's end of PMI-1: one connection to each rank, the key-value space, the fence.
 */
#ifndef MPIEXEC_PMI_SERVER_H
#define MPIEXEC_PMI_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* Callbacks to the job. Each may be called from any function below and from the loop. */
struct pmi_events {
	void (*aborted)(int rank, int code);

	/* The rank's connection has ended; its process may be about to end. The job calls
	 * pmi_server_gone when that is known. */
	void (*closed)(int rank);

	/* A line of a rank's spawn command, without its newline; then the end of the command. The
	 * job calls pmi_server_spawned when it is carried out. */
	void (*spawn_line)(int rank, const char *line, size_t len);
	void (*spawn_end)(int rank);
	/* The program ended inside of the command: what came of it counts for nothing. */
	void (*spawn_forget)(int rank);

	/* `waiting` ranks are in a fence that `rank` cannot enter any more. Called once. */
	void (*stuck)(int rank, int waiting);
};

/* name: the job's, without blanks. pairs: "key=value\n" for each value that is in the store from
 * the start; NULL: none. Returns 0 or -errno. */
int pmi_server_init(int ranks, const char *name, const char *pairs,
		    const struct pmi_events *events);

/* Serve the connection of a rank, and close it at its end. appnum: the number of its program.
 * Returns 0 or -errno. */
int pmi_server_attach(int rank, int fd, int appnum);

/* The processes that a rank wanted to spawn run, or why they do not (a word). */
void pmi_server_spawned(int rank, const char *trouble);

/* Process what a rank has sent so far. */
void pmi_server_collect(int rank);

/* The rank will enter no fence any more: its process has exited, or lives on without a
 * connection. */
void pmi_server_gone(int rank);

/* Has any rank ever joined? */
bool pmi_server_joined(void);

/* Has the rank left the job by itself, so that its exit status is no reason to end it? */
bool pmi_server_finalized(int rank);

#endif
