/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Says what the ranks of a job wait for, as text for people.
 */
#ifndef HANGS_REPORT_H
#define HANGS_REPORT_H

#include <stdio.h>

#include "tools/hangs/job.h"

/* Prints the table of ranks, those that wait in one place, who waits for whom, cycles, the
 * collectives that ranks have not joined, and messages that no receive matches. */
void report_job(FILE *out, const struct job_seen *job);

#endif
