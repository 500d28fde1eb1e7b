/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * This machine is the embedded launcher's. Others are an engine's, as are several nodes of an
 * allocation of Slurm.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "tools/mpiexec/host.h"
#include "tools/mpiexec/placement.h"
#include "tools/mpiexec/slurm.h"

enum { STATUS_FAILED = 126, STATUS_NO_ENGINE = 127 };

static const struct {
	enum launcher launcher;
	const char *program, *package;
} engines[] = {
	{ LAUNCHER_HYDRA, "mpiexec.hydra", "mpich" },
	{ LAUNCHER_PRTERUN, "prterun", "prrte" },
	{ LAUNCHER_SRUN, "srun", "slurm-client" },
};
enum { N_ENGINES = sizeof(engines) / sizeof(engines[0]) };

static bool __attribute__((format(printf, 3, 4)))
fail_placement(int *status, int code, const char *fmt, ...)
{
	va_list args;

	fputs("mpiexec: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	*status = code;
	return false;
}

/* ---- engines --------------------------------------------------------------------------------- */

/* A program of PATH; allocated, or NULL. */
static char *find_program(const char *name)
{
	const char *path = base_config_env("PATH");

	while (path) {
		size_t len = strcspn(path, ":");
		char *file = NULL;

		if (asprintf(&file, "%.*s/%s", len ? (int)len : 1, len ? path : ".", name) < 0)
			return NULL;
		if (!access(file, X_OK))
			return file;
		free(file);
		path = path[len] ? path + len + 1 : NULL;
	}
	return NULL;
}

/* Can the engine do what the command line asks for, where nobody has chosen it? Slurm starts what
 * it has allocated, and one program. */
static bool engine_fits(const struct options *opt, enum launcher launcher, bool allocated)
{
	if (launcher != LAUNCHER_SRUN)
		return true;
	return allocated && opt->n_apps == 1 && !opt->remote_shell && !opt->remote_exec;
}

/* The reason is a sentence's beginning. */
static bool find_engine(struct options *opt, const char *reason, bool allocated, char **engine,
			int *status)
{
	bool any = opt->launcher == LAUNCHER_AUTO;

	for (int i = 0; i < N_ENGINES; i++) {
		/* in an allocation Slurm's own is asked first */
		int n = allocated ? (i + N_ENGINES - 1) % N_ENGINES : i;

		if (any ? !engine_fits(opt, engines[n].launcher, allocated)
			: opt->launcher != engines[n].launcher)
			continue;
		*engine = find_program(engines[n].program);
		if (*engine) {
			opt->launcher = engines[n].launcher;
			return true;
		}
		if (!any)
			return fail_placement(status, STATUS_NO_ENGINE,
					      "--launcher asks for %s, which is not installed; "
					      "install the package %s, or leave the option out",
					      engines[n].program, engines[n].package);
	}
	return fail_placement(
		status, STATUS_NO_ENGINE,
		"%s, and no engine is installed that starts ranks there: install the "
		"package mpich (Hydra), prrte (prterun) or, under Slurm, slurm-client "
		"(srun)",
		reason);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static const char *other_of(const struct hosts *hosts)
{
	for (int i = 0; i < hosts->n; i++)
		if (!host_is_here(hosts->all[i].name))
			return hosts->all[i].name;
	return NULL;
}

/* The first host of the command line that is another machine, or NULL. */
static const char *other_host(const struct options *opt)
{
	const char *other = other_of(&opt->hosts);

	for (int i = 0; i < opt->n_apps && !other; i++)
		other = other_of(&opt->apps[i].hosts);
	return other;
}

static bool has_hosts(const struct options *opt)
{
	int n = opt->hosts.n;

	for (int i = 0; i < opt->n_apps; i++)
		n += opt->apps[i].hosts.n;
	return n;
}

/* More is refused when it is counted. */
static int clamp_ranks(long ranks)
{
	return ranks > MAX_RANKS ? MAX_RANKS + 1 : (int)ranks;
}

static int room_of(const struct hosts *hosts, int per_host)
{
	return clamp_ranks(per_host ? (long)per_host * hosts->n : hosts_slots(hosts));
}

static bool count_ranks(struct options *opt, const struct allocation *slurm, int *status)
{
	bool allocated = slurm->nodes && opt->n_apps == 1;

	for (int i = 0; i < opt->n_apps; i++) {
		struct app *app = &opt->apps[i];
		const struct hosts *hosts = app->hosts.n ? &app->hosts : &opt->hosts;
		int room = 1;

		if (hosts->n)
			room = room_of(hosts, opt->per_host);
		else if (opt->per_host)
			room = clamp_ranks((long)opt->per_host * (slurm->nodes ? slurm->nodes : 1));
		else if (allocated)
			room = slurm->tasks;
		if (!app->ranks)
			app->ranks = room;
		else if (hosts->n && opt->no_oversubscribe && app->ranks > room)
			return fail_placement(
				status, USAGE_ERROR,
				"%d ranks are more than the %d slots of the hosts, and "
				"-nooversubscribe forbids that",
				app->ranks, room);
	}
	return options_count(opt, status);
}

/* ---- all together ---------------------------------------------------------------------------- */

static bool read_timeout(struct options *opt, int *status)
{
	const char *text = base_config_env("MPIEXEC_TIMEOUT");
	char *end;

	if (!text || opt->timeout_s > 0)
		return true;
	opt->timeout_s = strtod(text, &end);
	if (end == text || *end || !isfinite(opt->timeout_s) || opt->timeout_s < 0 ||
	    opt->timeout_s > 1e9)
		return fail_placement(
			status, USAGE_ERROR,
			"MPIEXEC_TIMEOUT=%s is no number of seconds; correct or unset it", text);
	return true;
}

/* Is a rank of the job among those that read? */
static bool check_readers(const struct options *opt, int *status)
{
	const char *at = opt->input;

	if (!at || *at < '0' || *at > '9')
		return true;
	for (;;) {
		char *end;

		if (strtol(at, &end, 10) < opt->ranks)
			return true;
		at = end + strcspn(end, ",");
		if (!*at++)
			return fail_placement(
				status, USAGE_ERROR,
				"-s %s names no rank of this job, which has %d; write "
				"-s none if none is to read",
				opt->input, opt->ranks);
	}
}

/* Let -iface be a setting of all ranks. One that the command line has itself goes before it. */
static bool give_iface(struct options *opt, int *status)
{
	for (int i = 0; i < opt->env.n; i++)
		if (!strcmp(opt->env.all[i].name, "PTL_IFACE"))
			return true;
	return !opt->iface || !options_add_env(&opt->env, "PTL_IFACE", opt->iface) ||
	       fail_placement(status, STATUS_FAILED, "out of memory");
}

static bool choose_engine(struct options *opt, const struct allocation *slurm, char **engine,
			  int *status)
{
	const char *other = other_host(opt);
	bool nodes = slurm->nodes > 1 && !has_hosts(opt);
	char reason[400] = "";

	if (opt->launcher == LAUNCHER_EMBEDDED && other)
		return fail_placement(
			status, USAGE_ERROR,
			"%s is another machine, and the embedded launcher is for this "
			"one; leave --launcher out",
			other);
	if (other)
		snprintf(reason, sizeof(reason), "%.255s is another machine", other);
	else if (nodes)
		snprintf(reason, sizeof(reason), "the allocation of Slurm has %d nodes",
			 slurm->nodes);
	if (opt->launcher == LAUNCHER_EMBEDDED || (opt->launcher == LAUNCHER_AUTO && !*reason)) {
		opt->launcher = LAUNCHER_EMBEDDED;
		return give_iface(opt, status);
	}
	return find_engine(opt, reason, slurm->nodes > 0, engine, status);
}

bool placement_resolve(struct options *opt, char **engine, int *status)
{
	const char *name, *value;
	struct allocation slurm;

	*engine = NULL;
	if (slurm_allocation(&slurm, &name, &value))
		return fail_placement(status, USAGE_ERROR,
				      "%s=%s is no number of Slurm's; correct or unset it", name,
				      value);
	/* ranks that are dealt out over units are bound to these */
	if (opt->bind == UNIT_AUTO && opt->map != UNIT_MACHINE && opt->map != UNIT_NODE)
		opt->bind = opt->map;
	return read_timeout(opt, status) && choose_engine(opt, &slurm, engine, status) &&
	       count_ranks(opt, &slurm, status) && check_readers(opt, status);
}
