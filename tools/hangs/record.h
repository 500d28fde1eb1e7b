/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reads the file in which a process writes what it waits for (base/waits.h). The process may
 * write anything there at any time: it is read, checked, and only then used.
 */
#ifndef HANGS_RECORD_H
#define HANGS_RECORD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/waits.h"

/* The checked copy: counts are within their arrays, indices and kinds valid, texts end. */
struct record {
	int32_t pid, rank, size;
	bool threaded;
	uint64_t job;
	bool ever; /* the process has waited long, some time */
	struct base_waits_body body;
};

/* Checks the bytes of a file. False: it is none of ours. */
bool record_decode(const struct base_waits *file, struct record *to);

/* The file of a process: its path in /proc. */
struct record_file {
	char path[48]; /* empty: none */
};

/* Finds the file of a process. False: it has none, or it cannot be reached. */
bool record_find(pid_t pid, struct record_file *file);
/* Reads it. The file is never mapped, for a process that makes it shorter would end this one.
 * False: it is gone or none of ours, or it was being written all the time. */
bool record_read(const struct record_file *file, struct record *to);

#endif
