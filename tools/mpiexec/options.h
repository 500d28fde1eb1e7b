/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The command line: programs, the number of ranks of each, and settings of the whole job.
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
	const char *path;    /* where the program is searched, colons between; NULL: PATH */
	const char *soft;    /* NULL: exactly `ranks` */
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
	bool keep_going;        /* continue whatever happens to one rank */
	double timeout_s;       /* 0: none */
	struct configfile file; /* holds some of the texts */
};

/*
 * Parse the command line; argv is changed (":" becomes NULL). Returns true, or false with
 * *status as the exit status: help or version were printed, or an error message.
 */
bool options_parse(struct options *opt, int argc, char **argv, int *status);
/* Free the memory of options_parse(). */
void options_fini(struct options *opt);

#endif
