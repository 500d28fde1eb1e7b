/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The command line: programs, how many ranks of each, and what holds for the whole job.
 */
#ifndef MPIEXEC_OPTIONS_H
#define MPIEXEC_OPTIONS_H

#include <stdbool.h>

#include "tools/mpiexec/configfile.h"

enum { MAX_RANKS = 16384 };

struct setting {
	const char *name, *value;
};

/* One program of the job; texts point into argv. */
struct app {
	int ranks;
	const char *wdir;    /* NULL: the current one */
	const char *path;    /* directories where the program is, parted by colons; NULL: PATH */
	const char *soft;    /* NULL: so many and no other number */
	char **argv;         /* ends with NULL; argv[0] is the program */
	struct setting *env; /* -env, in order */
	int n_env;
};

enum bind { BIND_AUTO, BIND_SHARE, BIND_CORE, BIND_NONE };

struct options {
	struct app *apps;
	int n_apps, ranks;   /* ranks: of all apps together */
	struct setting *env; /* -genv, in order */
	int n_env;
	enum bind bind;
	bool label;             /* "[rank] " before every line */
	bool keep_going;        /* whatever happens to one rank */
	double timeout_s;       /* 0: none */
	struct configfile file; /* in which some of the texts are */
};

/*
 * Parses the command line; argv is changed (":" becomes NULL). Returns true, or false with
 * *status as the exit status: help or version were printed, or an error was said.
 */
bool options_parse(struct options *opt, int argc, char **argv, int *status);
void options_fini(struct options *opt);

#endif
