/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The ranks of a job that run on this node, found in /proc.
 */
#ifndef HANGS_JOB_H
#define HANGS_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/hangs/record.h"

struct rank_seen {
	pid_t pid; /* 0: not found on this node */
	struct record record;
};

struct job_seen {
	int size;                /* of the whole job */
	int here;                /* ranks found on this node */
	struct rank_seen *ranks; /* by rank; `size` of them */
	int64_t now_ms;          /* when they were read; CLOCK_MONOTONIC */
	char program[64];        /* of the first one */
};

/* Reads the ranks of a job: `pid` is one of them, or a launcher that they descend from. False:
 * no such rank is found, or memory has run out; errno says which. */
bool job_read(pid_t pid, struct job_seen *job);
void job_free(struct job_seen *job);

/* Whether the rank has been in the same wait, as far as it could see, for the last two beats. */
bool rank_waits(const struct job_seen *job, const struct rank_seen *r);

/* Threads of a process without those of the library; 0 if that cannot be known. */
int program_threads(pid_t pid);

/* The state of a process as a letter of ps(1), '?' if unknown. */
char process_state(pid_t pid);

#endif
