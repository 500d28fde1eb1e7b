/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A translator for each engine. An option that an engine cannot do is refused, never dropped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/mpiexec/handover.h"

enum { STATUS_FAILED = 126 };

/* The command line of the engine. */
struct command {
	const struct options *opt;
	const char *program;
	struct settings own; /* the variables of this process */
	char **argv;
	int n;
	int status; /* not 0: a message said why there is none */
};

static void fail_command(struct command *cmd, int status, const char *text)
{
	if (!cmd->status)
		fprintf(stderr, "mpiexec: %s\n", text);
	cmd->status = status;
}

/* The engine cannot do what an option asks for. */
static void refuse_for(struct command *cmd, const char *option, const char *remedy)
{
	char text[300];

	snprintf(text, sizeof(text), "%s is not what %s can do; %s", option,
		 strrchr(cmd->program, '/') + 1, remedy);
	fail_command(cmd, USAGE_ERROR, text);
}

/* Add a text that is allocated. */
static void add_own(struct command *cmd, char *text)
{
	char **more = text ? realloc(cmd->argv, ((size_t)cmd->n + 2) * sizeof(*more)) : NULL;

	if (!more) {
		free(text);
		fail_command(cmd, STATUS_FAILED, "out of memory");
		return;
	}
	cmd->argv = more;
	more[cmd->n++] = text;
	more[cmd->n] = NULL;
}

static void __attribute__((format(printf, 2, 3))) add(struct command *cmd, const char *fmt, ...)
{
	char *text;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	add_own(cmd, text);
}

static void add_pair(struct command *cmd, const char *option, const char *value)
{
	add(cmd, "%s", option);
	add(cmd, "%s", value);
}

static void set_variable(struct command *cmd, const char *name, const char *value)
{
	if (setenv(name, value, 1))
		fail_command(cmd, STATUS_FAILED, "out of memory");
}

/* The value of a setting, or NULL: -x names a variable that is not set. */
static const char *setting_value(const struct command *cmd, const struct setting *setting)
{
	for (int i = 0; !setting->value && i < cmd->own.n; i++)
		if (!strcmp(cmd->own.all[i].name, setting->name))
			return cmd->own.all[i].value;
	return setting->value;
}

/* ---- parts that engines share ---------------------------------------------------------------- */

/* "a:2,b:2"; IPv6 addresses are in brackets. Allocated. */
static char *hosts_text(const struct hosts *hosts, int per_host)
{
	size_t size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	for (int i = 0; out && i < hosts->n; i++) {
		const struct host *host = &hosts->all[i];
		bool ip6 = strchr(host->name, ':');

		fprintf(out, "%s%s%s%s:%d", i ? "," : "", ip6 ? "[" : "", host->name,
			ip6 ? "]" : "",
			per_host      ? per_host
			: host->slots ? host->slots
				      : 1);
	}
	if (!out || fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* The ranks of each host that the job has. --map-by node deals one rank to each in turn. */
static int per_host_of(const struct options *opt)
{
	return opt->map == UNIT_NODE ? 1 : opt->per_host;
}

/* Add hosts, with the ranks for each that the job has. */
static int copy_hosts(const struct options *opt, const struct hosts *from, struct hosts *to)
{
	int err = 0;

	for (int i = 0; i < from->n && !err; i++)
		err = hosts_add(to, from->all[i].name, strlen(from->all[i].name),
				per_host_of(opt) ? per_host_of(opt) : from->all[i].slots);
	return err;
}

/* The hosts of all programs, one after the other, as many slots as each has ranks; those of one
 * program, or of a file, as they are. Empty: nothing is said of hosts. */
static void all_hosts(struct command *cmd, struct hosts *hosts)
{
	const struct options *opt = cmd->opt;
	bool by_program = false;
	int err = 0;

	for (int i = 0; i < opt->n_apps; i++)
		by_program |= opt->apps[i].hosts.n > 0;
	if (opt->n_apps == 1 || !by_program)
		err = copy_hosts(opt, by_program ? &opt->apps[0].hosts : &opt->hosts, hosts);
	for (int i = 0; opt->n_apps > 1 && by_program && i < opt->n_apps && !err; i++) {
		const struct app *app = &opt->apps[i];
		struct hosts from = { .n = 0 };

		err = copy_hosts(opt, app->hosts.n ? &app->hosts : &opt->hosts, &from);
		if (!err && !from.n)
			fail_command(
				cmd, USAGE_ERROR,
				"one program has -host and another has not; write it for each, "
				"or a -hostfile for all");
		if (!err)
			err = hosts_deal(&from, app->ranks, hosts);
		hosts_clear(&from);
	}
	if (err)
		fail_command(cmd, STATUS_FAILED, strerror(-err));
}

/* The program, found by -path, and its arguments. */
static void add_program(struct command *cmd, const struct app *app)
{
	const char *path = app->path;
	char *file = NULL;

	while (path && !strchr(app->argv[0], '/')) {
		size_t len = strcspn(path, ":");

		if (asprintf(&file, "%.*s/%s", len ? (int)len : 1, len ? path : ".", app->argv[0]) <
		    0)
			file = NULL;
		if (file && !access(file, X_OK))
			break;
		free(file);
		file = NULL;
		path = path[len] ? path + len + 1 : NULL;
	}
	if (app->path && !file && !strchr(app->argv[0], '/'))
		fail_command(cmd, 127, "no such program in -path");
	add(cmd, "%s", file ? file : app->argv[0]);
	free(file);
	for (char **arg = app->argv + 1; *arg; arg++)
		add(cmd, "%s", *arg);
}

/* The pattern with the letters that an engine has for rank and host. Allocated, or NULL. */
static char *pattern_with(const char *pattern, char rank, char host)
{
	char *text = strdup(pattern);

	for (char *c = text ? strchr(text, '%') : NULL; c; c = strchr(c + 2, '%')) {
		if (c[1] == 'r' || c[1] == 't')
			c[1] = rank;
		else if (c[1] == 'h' || c[1] == 'N')
			c[1] = host;
	}
	return text;
}

static void add_pattern(struct command *cmd, const char *option, const char *pattern, char rank,
			char host)
{
	if (!pattern)
		return;
	add(cmd, "%s", option);
	add_own(cmd, pattern_with(pattern, rank, host));
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

static const char *unit_name(enum unit unit)
{
	static const char *const names[] = {
		[UNIT_NONE] = "none",  [UNIT_HWTHREAD] = "hwthread", [UNIT_CORE] = "core",
		[UNIT_L1] = "l1cache", [UNIT_L2] = "l2cache",        [UNIT_L3] = "l3cache",
		[UNIT_NUMA] = "numa",  [UNIT_SOCKET] = "socket",     [UNIT_MACHINE] = "slot",
		[UNIT_NODE] = "node",
	};

	return names[unit];
}

/* The timeout, rounded up. */
static long whole_seconds(const struct options *opt)
{
	long s = (long)opt->timeout_s;

	return s + ((double)s < opt->timeout_s);
}

static bool is_bound(const struct options *opt)
{
	return opt->bind != UNIT_AUTO;
}

/* Units for each rank, where there are several. */
static bool has_several(const struct options *opt)
{
	return opt->bind_count > 1 && opt->bind != UNIT_NONE;
}

static void refuse_share(struct command *cmd)
{
	if (cmd->opt->bind == UNIT_SHARE)
		refuse_for(cmd, "--bind-to share", "write core, socket, numa or none");
}

static void refuse_iface(struct command *cmd)
{
	if (cmd->opt->iface)
		refuse_for(cmd, "-iface", "set PTL_IFACE for the ranks, or write --launcher hydra");
}

static void use_no_input(struct command *cmd)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, 0) < 0)
		fail_command(cmd, STATUS_FAILED, "cannot open /dev/null");
	if (fd > 0)
		close(fd);
}

/* ---- Hydra ----------------------------------------------------------------------------------- */

static void add_hydra_env(struct command *cmd, const struct settings *env, const char *option)
{
	for (int i = 0; i < env->n; i++) {
		const char *value = setting_value(cmd, &env->all[i]);

		if (!value)
			continue;
		add(cmd, "%s", option);
		add_pair(cmd, env->all[i].name, value);
	}
}

static void add_hydra_pass(struct command *cmd, const char *prefix, enum env_pass pass,
			   const char *list)
{
	if (pass == ENV_ALL || pass == ENV_NONE)
		add(cmd, "%s%s", prefix, pass == ENV_ALL ? "all" : "none");
	if (pass == ENV_LIST) {
		add(cmd, "%slist", prefix);
		add(cmd, "%s", list);
	}
}

/* Hydra knows no ranges: "0-2,4+6" becomes "0+1+2,4+6". Allocated, or NULL. */
static char *without_ranges(const char *list)
{
	size_t size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	while (out && *list) {
		char *end;
		long first = strtol(list, &end, 10);
		long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

		for (long cpu = first; cpu <= last; cpu++)
			fprintf(out, "%s%ld", cpu > first ? "+" : "", cpu);
		if (*end)
			fputc(*end++, out);
		list = end;
	}
	if (!out || fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void add_hydra_user(struct command *cmd)
{
	char *list = without_ranges(cmd->opt->bind_list);

	add(cmd, "user:%s", list ? list : "");
	if (!list)
		fail_command(cmd, STATUS_FAILED, "out of memory");
	free(list);
}

static void add_hydra_binding(struct command *cmd)
{
	const struct options *opt = cmd->opt;

	refuse_share(cmd);
	if (is_bound(opt) && !cmd->status) {
		add(cmd, "-bind-to");
		if (opt->bind == UNIT_USER)
			add_hydra_user(cmd);
		else if (has_several(opt))
			add(cmd, "%s:%d", unit_name(opt->bind), opt->bind_count);
		else
			add(cmd, "%s", unit_name(opt->bind));
	}
	if (opt->map != UNIT_MACHINE && opt->map != UNIT_NODE)
		add_pair(cmd, "-map-by", unit_name(opt->map));
	if (opt->report_bindings)
		set_variable(cmd, "HYDRA_TOPO_DEBUG", "1");
}

static void add_hydra_output(struct command *cmd)
{
	const struct options *opt = cmd->opt;

	if (opt->label)
		add(cmd, "-prepend-rank");
	if (opt->merge)
		refuse_for(cmd, "-merge-stderr-to-stdout", "write a script with 2>&1 in it");
	add_pattern(cmd, "-outfile-pattern", opt->outfile, 'r', 'h');
	add_pattern(cmd, "-errfile-pattern", opt->errfile, 'r', 'h');
	if (opt->input && !strcmp(opt->input, "none"))
		use_no_input(cmd);
	else if (opt->input && strcmp(opt->input, "0"))
		refuse_for(cmd, "-s", "rank 0 reads standard input");
}

static void translate_hydra(struct command *cmd)
{
	const struct options *opt = cmd->opt;
	struct hosts hosts = { .n = 0 };
	char seconds[32];

	if (opt->remote_shell || opt->remote_exec)
		add_pair(cmd, "-launcher", opt->remote_shell ? opt->remote_shell : "ssh");
	if (opt->remote_exec)
		add_pair(cmd, "-launcher-exec", opt->remote_exec);
	if (opt->iface)
		add_pair(cmd, "-iface", opt->iface);
	all_hosts(cmd, &hosts);
	for (int i = 0; i < hosts.n; i++)
		if (strchr(hosts.all[i].name, ':'))
			refuse_for(cmd, "a host's IPv6 address", "write its name");
	if (hosts.n) {
		add(cmd, "-hosts");
		add_own(cmd, hosts_text(&hosts, 0));
	} else if (per_host_of(opt)) {
		add(cmd, "-ppn");
		add(cmd, "%d", per_host_of(opt));
	}
	hosts_clear(&hosts);
	if (opt->keep_going)
		add(cmd, "-disable-auto-cleanup");
	add_hydra_output(cmd);
	add_hydra_binding(cmd);
	if (opt->timeout_s > 0) {
		snprintf(seconds, sizeof(seconds), "%ld", whole_seconds(opt));
		set_variable(cmd, "MPIEXEC_TIMEOUT", seconds);
	}
	add_hydra_pass(cmd, "-genv", opt->pass, opt->pass_list);
	add_hydra_env(cmd, &opt->env, "-genv");
	for (int i = 0; i < opt->n_apps; i++) {
		const struct app *app = &opt->apps[i];

		if (i)
			add(cmd, ":");
		add(cmd, "-n");
		add(cmd, "%d", app->ranks);
		if (app->wdir)
			add_pair(cmd, "-wdir", app->wdir);
		add_hydra_pass(cmd, "-env", app->pass, app->pass_list);
		add_hydra_env(cmd, &app->env, "-env");
		add_program(cmd, app);
	}
}

/* ---- prterun --------------------------------------------------------------------------------- */

/* prterun passes on nothing of ours by itself. Without a word the ranks get what this library and
 * its loader read. */
static void add_prte_pass(struct command *cmd, enum env_pass pass, const char *list)
{
	for (int i = 0; i < cmd->own.n && pass != ENV_NONE; i++) {
		const char *name = cmd->own.all[i].name;
		bool wanted = pass == ENV_ALL    ? !strchr(name, '%')
			      : pass == ENV_LIST ? options_is_listed(list, name)
						 : !strncmp(name, "PTL_", 4) ||
							   !strcmp(name, "LD_LIBRARY_PATH");

		if (wanted)
			add_pair(cmd, "-x", name);
	}
}

static void add_prte_env(struct command *cmd, const struct settings *env)
{
	for (int i = 0; i < env->n; i++) {
		const char *value = setting_value(cmd, &env->all[i]);

		if (!value)
			continue;
		add(cmd, "-x");
		add(cmd, "%s=%s", env->all[i].name, value);
	}
}

static void add_prte_placing(struct command *cmd)
{
	const struct options *opt = cmd->opt;
	char base[64];

	snprintf(base, sizeof(base), "%s", unit_name(opt->map));
	if (opt->per_host)
		snprintf(base, sizeof(base), "ppr:%d:node", opt->per_host);
	if (opt->per_host || opt->map != UNIT_MACHINE || has_several(opt) || opt->oversubscribe ||
	    opt->no_oversubscribe) {
		char count[32] = "";

		if (has_several(opt))
			snprintf(count, sizeof(count), ":PE=%d", opt->bind_count);
		add(cmd, "--map-by");
		add(cmd, "%s%s%s", base, count,
		    opt->oversubscribe      ? ":OVERSUBSCRIBE"
		    : opt->no_oversubscribe ? ":NOOVERSUBSCRIBE"
					    : "");
	}
	refuse_share(cmd);
	if (opt->bind == UNIT_USER)
		refuse_for(cmd, "--bind-to user", "write --bind-to core");
	else if (is_bound(opt) && !cmd->status)
		add_pair(cmd, "--bind-to", unit_name(opt->bind));
	if (opt->report_bindings)
		add_pair(cmd, "--display", "bind");
}

static void add_prte_output(struct command *cmd)
{
	const struct options *opt = cmd->opt;
	size_t len = opt->outfile ? strlen(opt->outfile) : 0;
	/* its files have the rank behind their names */
	bool file = opt->outfile && opt->errfile && !strcmp(opt->outfile, opt->errfile) &&
		    len > 3 && !strcmp(opt->outfile + len - 3, ".%r");
	char words[40];

	if ((opt->outfile || opt->errfile) && !file)
		refuse_for(cmd, "a pattern for files of output", "write --output-filename FILE");
	/* one option, of which the file's name is the end */
	snprintf(words, sizeof(words), "%s%s", opt->label ? "tag," : "",
		 opt->merge ? "merge-stderr-to-stdout," : "");
	if (file || *words)
		add(cmd, "--output");
	if (file)
		add(cmd, "%sfile=%.*s", words, (int)len - 3, opt->outfile);
	else if (*words)
		add(cmd, "%.*s", (int)strlen(words) - 1, words);
	if (opt->input && strcmp(opt->input, "all") && strcmp(opt->input, "none") &&
	    !is_number(opt->input))
		refuse_for(cmd, "a list of ranks that read", "write -s all, none or one rank");
	else if (opt->input)
		add_pair(cmd, "--stdin", opt->input);
}

static void translate_prterun(struct command *cmd)
{
	const struct options *opt = cmd->opt;

	refuse_iface(cmd);
	if (!geteuid())
		add(cmd, "--allow-run-as-root");
	if (opt->remote_shell || opt->remote_exec) {
		add(cmd, "--prtemca");
		add_pair(cmd, "plm_ssh_agent",
			 opt->remote_exec ? opt->remote_exec : opt->remote_shell);
	}
	if (opt->keep_going)
		add_pair(cmd, "--runtime-options", "continuous");
	if (opt->timeout_s > 0) {
		add(cmd, "--timeout");
		add(cmd, "%ld", whole_seconds(opt));
	}
	add_prte_placing(cmd);
	add_prte_output(cmd);
	for (int i = 0; i < opt->n_apps; i++) {
		const struct app *app = &opt->apps[i];
		const struct hosts *hosts = app->hosts.n ? &app->hosts : &opt->hosts;

		if (i)
			add(cmd, ":");
		if (hosts->n) {
			add(cmd, "--host");
			add_own(cmd, hosts_text(hosts, opt->per_host));
		}
		add(cmd, "-n");
		add(cmd, "%d", app->ranks);
		if (app->wdir)
			add_pair(cmd, "--wdir", app->wdir);
		add_prte_pass(cmd, app->pass ? app->pass : opt->pass,
			      app->pass ? app->pass_list : opt->pass_list);
		add_prte_env(cmd, &opt->env);
		add_prte_env(cmd, &app->env);
		add_program(cmd, app);
	}
}

/* ---- srun ------------------------------------------------------------------------------------ */

/* A host for each rank; srun takes "a*2" for "a,a". */
static void add_slurm_hosts(struct command *cmd)
{
	const struct options *opt = cmd->opt;
	struct hosts hosts = { .n = 0 }, dealt = { .n = 0 };
	size_t size = 0;
	char *text = NULL;
	FILE *out = NULL;

	all_hosts(cmd, &hosts);
	if (hosts.n && !hosts_deal(&hosts, opt->ranks, &dealt))
		out = open_memstream(&text, &size);
	for (int i = 0; out && i < dealt.n; i++) {
		fprintf(out, "%s%s", i ? "," : "", dealt.all[i].name);
		if (dealt.all[i].slots > 1)
			fprintf(out, "*%d", dealt.all[i].slots);
	}
	if (hosts.n && (!out || fclose(out))) {
		free(text);
		text = NULL;
	}
	if (hosts.n) {
		add_pair(cmd, "--distribution", "arbitrary");
		add(cmd, "--nodelist");
		add_own(cmd, text);
	} else {
		if (opt->per_host)
			add(cmd, "--ntasks-per-node=%d", opt->per_host);
		if (opt->map == UNIT_NODE)
			add_pair(cmd, "--distribution", "cyclic");
	}
	hosts_clear(&hosts);
	hosts_clear(&dealt);
}

static void add_slurm_binding(struct command *cmd)
{
	const struct options *opt = cmd->opt;
	const char *report = opt->report_bindings ? "verbose," : "";
	const char *what = NULL;

	refuse_share(cmd);
	if (opt->bind == UNIT_NONE)
		what = "none";
	else if (opt->bind == UNIT_HWTHREAD)
		what = "threads";
	else if (opt->bind == UNIT_CORE)
		what = "cores";
	else if (opt->bind == UNIT_SOCKET)
		what = "sockets";
	else if (opt->bind == UNIT_NUMA)
		what = "ldoms";
	if (opt->bind == UNIT_USER && strpbrk(opt->bind_list, "+-"))
		refuse_for(cmd, "--bind-to user with several processors a rank",
			   "write one for each");
	else if (opt->bind == UNIT_USER)
		add(cmd, "--cpu-bind=%smap_cpu:%s", report, opt->bind_list);
	else if (what)
		add(cmd, "--cpu-bind=%s%s", report, what);
	else if (is_bound(opt))
		refuse_for(cmd, "--bind-to a cache", "write core, hwthread, socket, numa or none");
	else if (*report)
		add(cmd, "--cpu-bind=verbose");
	if (opt->bind_count > 1)
		add(cmd, "--cpus-per-task=%d", opt->bind_count);
	if (opt->map != UNIT_MACHINE && opt->map != UNIT_NODE)
		refuse_for(cmd, "--map-by of parts of a node", "write --map-by slot or node");
}

/* Names in one list; the values are in our own environment, where commas do no harm. */
static void add_slurm_env(struct command *cmd)
{
	const struct options *opt = cmd->opt;
	const struct app *app = &opt->apps[0];
	enum env_pass pass = app->pass ? app->pass : opt->pass;
	const struct settings *const both[] = { &opt->env, &app->env };
	size_t size = 0;
	char *names = NULL;
	FILE *out = open_memstream(&names, &size);

	if (!out) {
		fail_command(cmd, STATUS_FAILED, "out of memory");
		return;
	}
	if (pass == ENV_LIST)
		fputs(app->pass ? app->pass_list : opt->pass_list, out);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < both[i]->n; j++) {
			const char *value = setting_value(cmd, &both[i]->all[j]);

			if (!value)
				continue;
			set_variable(cmd, both[i]->all[j].name, value);
			fprintf(out, "%s%s", ftell(out) > 0 ? "," : "", both[i]->all[j].name);
		}
	if (fclose(out)) {
		free(names);
		fail_command(cmd, STATUS_FAILED, "out of memory");
		return;
	}
	/* a variable of Slurm may say something else */
	if (pass == ENV_NONE || pass == ENV_LIST)
		add(cmd, "--export=%s", *names ? names : "NONE");
	else if (pass == ENV_ALL || *names)
		add(cmd, "--export=ALL%s%s", *names ? "," : "", names);
	free(names);
}

static void add_slurm_output(struct command *cmd)
{
	const struct options *opt = cmd->opt;

	if (opt->label)
		add(cmd, "--label");
	if (opt->merge)
		refuse_for(cmd, "-merge-stderr-to-stdout", "write a script with 2>&1 in it");
	add_pattern(cmd, "--output", opt->outfile, 't', 'N');
	add_pattern(cmd, "--error", opt->errfile, 't', 'N');
	/* without it error goes where the output goes */
	if (opt->outfile && !opt->errfile)
		add_pair(cmd, "--error", "all");
	/* srun itself would give it to all */
	if (opt->input && strcmp(opt->input, "all") && strcmp(opt->input, "none") &&
	    !is_number(opt->input))
		refuse_for(cmd, "a list of ranks that read", "write -s all, none or one rank");
	else
		add_pair(cmd, "--input", opt->input ? opt->input : "0");
}

static void translate_srun(struct command *cmd)
{
	const struct options *opt = cmd->opt;
	const struct app *app = &opt->apps[0];

	if (opt->n_apps > 1)
		refuse_for(cmd, "a colon between programs", "write --launcher hydra");
	if (opt->remote_exec)
		refuse_for(cmd, "-launcher-exec", "write --launcher hydra as well");
	refuse_iface(cmd);
	add(cmd, "--mpi=pmi2");
	add(cmd, "--ntasks=%d", opt->ranks);
	add_slurm_hosts(cmd);
	if (opt->oversubscribe)
		add(cmd, "--overcommit");
	add(cmd, "--kill-on-bad-exit=%d", !opt->keep_going);
	if (opt->timeout_s > 0) {
		long s = whole_seconds(opt);

		add(cmd, "--time=%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
	}
	add_slurm_output(cmd);
	add_slurm_binding(cmd);
	add_slurm_env(cmd);
	if (app->wdir)
		add_pair(cmd, "--chdir", app->wdir);
	add_program(cmd, app);
}

/* ---- all together ---------------------------------------------------------------------------- */

/* As a shell would read it. */
static void print_command(const struct command *cmd)
{
	fputs("mpiexec: running", stderr);
	for (int i = 0; i < cmd->n; i++) {
		const char *arg = cmd->argv[i];

		if (*arg && !arg[strspn(arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					     "0123456789-_=+:,./@%")]) {
			fprintf(stderr, " %s", arg);
			continue;
		}
		fputs(" '", stderr);
		for (; *arg; arg++) {
			if (*arg == '\'')
				fputs("'\\'", stderr);
			fputc(*arg, stderr);
		}
		fputc('\'', stderr);
	}
	fputc('\n', stderr);
}

static void free_command(struct command *cmd)
{
	for (int i = 0; i < cmd->n; i++)
		free(cmd->argv[i]);
	free(cmd->argv);
	options_free_env(&cmd->own);
}

int handover(const struct options *opt, const char *program)
{
	struct command cmd = { .opt = opt, .program = program };

	if (options_own_env(&cmd.own))
		fail_command(&cmd, STATUS_FAILED, "out of memory");
	add(&cmd, "%s", program);
	if (opt->launcher == LAUNCHER_HYDRA)
		translate_hydra(&cmd);
	else if (opt->launcher == LAUNCHER_PRTERUN)
		translate_prterun(&cmd);
	else
		translate_srun(&cmd);
	if (opt->deadlock_set || opt->deadlock_abort)
		refuse_for(&cmd, "--deadlock", "run portals-stat --job on the node");
	if (!cmd.status && opt->verbose)
		print_command(&cmd);
	if (!cmd.status) {
		execv(program, cmd.argv);
		fprintf(stderr, "mpiexec: cannot start %s: %m\n", program);
		cmd.status = STATUS_FAILED;
	}
	free_command(&cmd);
	return cmd.status;
}
