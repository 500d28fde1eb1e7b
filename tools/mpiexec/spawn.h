/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Jobs that ranks spawn. Each is run by an mpiexec of its own, a child of this one, which is
 * told by its command line what to start and by a pipe that its start is awaited. So a spawned
 * job has all that a job has, may spawn others, and ends with this mpiexec. The message of the
 * spawning rank to the new ones (PMI's "preput") comes in the environment.
 */
#ifndef MPIEXEC_SPAWN_H
#define MPIEXEC_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/mpiexec/options.h"

struct spawn_events {
	/* The job that the rank has spawned runs, or why it does not. */
	void (*answer)(int rank, const char *trouble);
	/* A spawned job that ran has ended with this status of mpiexec. */
	void (*ended)(int status);
};

/* Returns 0 or -errno. */
int spawn_init(const struct options *opt, const struct spawn_events *events);

/* A line of a rank's command, without its newline; then the end of the command. An answer
 * follows when the last of the commands that belong together has ended. */
void spawn_line(int rank, const char *line, size_t len);
void spawn_command_end(int rank);
/* The rank ends: forget its commands. */
void spawn_forget(int rank);

/* Send a signal to all spawned jobs. */
void spawn_signal(int sig);
/* Was this process one of them? */
bool spawn_reaped(pid_t pid, int status);
/* Number of spawned jobs that are there. */
int spawn_running(void);

/* In the mpiexec of a spawned job: the pairs "key=value\n" for the ranks, NULL: this is no spawned
 * job. Call it first, and once: the ranks must not see it in the environment. */
char *spawn_pairs(void);
/* All ranks have been started: tell the mpiexec above. */
void spawn_started(void);

#endif
