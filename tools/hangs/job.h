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

/* Reads the ranks of a job: `pid` is one of them, or a launcher that they descend from. With
 * `family` only those are read that descend from it. False: no such rank is found, or memory
 * has run out; errno says which. */
bool job_read(pid_t pid, bool family, struct job_seen *job);
void job_free(struct job_seen *job);

/* Whether the rank was in a wait when it was read, as far as is known. */
bool rank_waits(const struct job_seen *job, const struct rank_seen *r);

/*
 * Whether all ranks that have a pid wait, and nothing has changed for `ms` milliseconds. Each
 * must have looked for messages after the last of them has begun its wait, and `ms` later. So a
 * rank that computes, sleeps, reads or is stopped is not taken for one that waits.
 */
bool job_is_stuck(const struct job_seen *job, int64_t ms);

/* The state of a process as a letter of ps(1), '?' if unknown. */
char process_state(pid_t pid);

#endif
