/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The launcher's end of PMI-1: one connection to each rank, the key-value space, the fence.
 */
#ifndef MPIEXEC_PMI_SERVER_H
#define MPIEXEC_PMI_SERVER_H

#include <stdbool.h>

/* Callbacks to the job. Each may be called from any function below and from the loop. */
struct pmi_events {
	void (*aborted)(int rank, int code);

	/* The rank's connection has ended; its process may be about to end. The job calls
	 * pmi_server_gone when that is known. */
	void (*closed)(int rank);

	/* `waiting` ranks are in a fence that `rank` cannot enter any more. Called once. */
	void (*stuck)(int rank, int waiting);
};

/* name: the job's, without blanks. Returns 0 or -errno. */
int pmi_server_init(int ranks, const char *name, const struct pmi_events *events);

/* Serve the connection of a rank, and close it at its end. appnum: the number of its program.
 * Returns 0 or -errno. */
int pmi_server_attach(int rank, int fd, int appnum);

/* Process what a rank has sent so far. */
void pmi_server_collect(int rank);

/* The rank will enter no fence any more: its process has exited, or lives on without a
 * connection. */
void pmi_server_gone(int rank);

/* Has the rank left the job by itself, so that its exit status is no reason to end it? */
bool pmi_server_finalized(int rank);

#endif
