/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Starts the process of one rank: files, environment, directory, core, program.
 */
#ifndef MPIEXEC_LAUNCH_H
#define MPIEXEC_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "tools/mpiexec/options.h"
#include "tools/mpiexec/output.h"

/* State of mpiexec at its start that ranks get back. */
struct launch_state {
	struct sigaction sigpipe, sigxfsz;
	struct rlimit files;
};

struct launch {
	int rank;
	const struct app *app;
	const struct options *opt;
	const char *job_name;
	const char *search; /* the PATH of mpiexec */
	const struct launch_state *state;
	bool bound;   /* to what affinity_choose() and the like chose */
	bool spawned; /* by a rank of another job */
	int stdin_fd; /* -1: /dev/null */
	struct output_pipes pipes;
};

/* The started process, and our ends of its files. */
struct launched {
	pid_t pid; /* also its process group */
	int pmi_fd;
	int out_fd, err_fd; /* -1 without a pipe */
};

/*
 * Start the process and wait until its program runs. Returns 0, or the exit status for mpiexec
 * after an error message: 127 no such program, 126 it could not be started.
 */
int launch(const struct launch *what, struct launched *got);

#endif
