/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The command line: programs, the number of ranks of each, and settings of the whole job.
 */
#ifndef MPIEXEC_OPTIONS_H
#define MPIEXEC_OPTIONS_H

#include <stdbool.h>

#include "tools/mpiexec/configfile.h"
#include "tools/mpiexec/hosts.h"

enum { MAX_RANKS = 16384, USAGE_ERROR = 2 };

struct setting {
	const char *name, *value; /* value NULL: the one that mpiexec has itself */
};

/* Settings in order. */
struct settings {
	struct setting *all;
	int n;
};

/* Which variables of mpiexec's own a rank gets; DEFAULT: what the whole job has, else all. */
enum env_pass { ENV_DEFAULT, ENV_ALL, ENV_NONE, ENV_LIST };

/* One program of the job; texts point into argv. */
struct app {
	int ranks;           /* 0: the command line does not say */
	const char *wdir;    /* NULL: the current one */
	const char *path;    /* where the program is searched, colons between; NULL: PATH */
	const char *soft;    /* NULL: exactly `ranks` */
	char **argv;         /* ends with NULL; argv[0] is the program */
	struct settings env; /* -env and -x */
	enum env_pass pass;
	const char *pass_list; /* names with commas between */
	struct hosts hosts;    /* -host; empty: those of the job */
};

/* Hardware that ranks are bound to, and dealt out over. */
enum unit {
	UNIT_AUTO, /* a share, if there are enough cores */
	UNIT_SHARE,
	UNIT_NONE,
	UNIT_USER, /* a list of processors for each rank */
	UNIT_HWTHREAD,
	UNIT_CORE,
	UNIT_L1,
	UNIT_L2,
	UNIT_L3,
	UNIT_NUMA,
	UNIT_SOCKET,
	UNIT_MACHINE, /* of the map: one rank after the other */
	UNIT_NODE,    /* of the map: one rank to each host in turn */
};

enum launcher {
	LAUNCHER_AUTO,
	LAUNCHER_EMBEDDED,
	LAUNCHER_HYDRA,
	LAUNCHER_PRTERUN,
	LAUNCHER_SRUN,
};

struct options {
	struct app *apps;
	int n_apps, ranks;   /* ranks: of all apps together */
	struct settings env; /* -genv */
	enum env_pass pass;
	const char *pass_list;

	struct hosts hosts; /* of the job: -hostfile */
	int per_host;       /* ranks on each host; 0: not said */
	bool oversubscribe, no_oversubscribe;
	enum launcher launcher;
	const char *remote_shell; /* -launcher ssh: Hydra's name of it */
	const char *remote_exec;  /* the program in its place */
	const char *iface;

	enum unit bind, map;
	const char *bind_list; /* UNIT_USER: "0+1,2+3" */
	int bind_count;        /* units for each rank */
	bool report_bindings;

	bool label; /* "[rank] " before every line */
	bool merge; /* standard error goes where standard output goes */
	const char *outfile, *errfile;
	const char *input; /* which ranks read standard input; NULL: 0 */
	bool keep_going;   /* continue whatever happens to one rank */
	double timeout_s;  /* 0: none */
	double deadlock_s; /* how long no rank makes progress before that is said; 0: never */
	bool deadlock_set, deadlock_abort;
	bool quiet, verbose;
	struct configfile file; /* holds some of the texts */
	char **texts;           /* allocated ones, freed at the end */
	int n_texts;
};

/*
 * Parse the command line; argv is changed (":" becomes NULL). Returns true, or false with
 * *status as the exit status: help or version were printed, or an error message. How many ranks a
 * program has may be open after it.
 */
bool options_parse(struct options *opt, int argc, char **argv, int *status);

/* Use the numbers that -soft allows, and add the ranks up. False as above. */
bool options_count(struct options *opt, int *status);

/* Add one behind the others, whose texts stay with the caller. Returns 0 or -ENOMEM. */
int options_add_env(struct settings *env, const char *name, const char *value);
/* The variables of this process. Returns 0 or -ENOMEM; free them in either case. */
int options_own_env(struct settings *own);
void options_free_env(struct settings *own);
/* Is the name in "NAME,NAME,..."? */
bool options_is_listed(const char *list, const char *name);

/* Free the memory of options_parse(). */
void options_fini(struct options *opt);

#endif
