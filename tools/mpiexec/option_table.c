/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rows, and before them the functions that do what they say.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "tools/mpiexec/option_table.h"

/* ---- plain values ---------------------------------------------------------------------------- */

/* The option as it is typed, for messages: the first name of its row. */
static const char *option_name(const struct option *row, char *buf, size_t size)
{
	snprintf(buf, size, "%.*s", (int)strcspn(row->names, " "), row->names);
	return buf;
}

static bool fail_value(struct parser *parser, const struct option *row, const char *needs,
		       const char *value)
{
	char name[40], text[300];

	snprintf(text, sizeof(text), "%s needs %s", option_name(row, name, sizeof(name)), needs);
	return option_fail(parser, text, value);
}

/* A number from 1 to MAX_RANKS; 0: it is none. */
static int read_number(const char *text)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	return end == text || *end || errno || n < 1 || n > MAX_RANKS ? 0 : (int)n;
}

/* choice: the offset of an int in struct options. */
static bool set_number_option(struct parser *parser, const struct option *row, char **values)
{
	int n = read_number(values[0]);

	if (!n)
		return fail_value(parser, row, "a number from 1 to 16384", values[0]);
	*(int *)(void *)((char *)parser->opt + row->choice) = n;
	return true;
}

static bool set_ranks(struct parser *parser, const struct option *row, char **values)
{
	parser->app->ranks = read_number(values[0]);
	return parser->app->ranks || fail_value(parser, row, "a number from 1 to 16384", values[0]);
}

/* choice: the offset of a bool in struct options. */
static bool set_flag(struct parser *parser, const struct option *row, char **values)
{
	(void)values;
	*(bool *)((char *)parser->opt + row->choice) = true;
	return true;
}

/* choice: the offset of a text in struct options, or in struct app. */
static bool set_text(struct parser *parser, const struct option *row, char **values)
{
	*(const char **)(void *)((char *)parser->opt + row->choice) = values[0];
	return true;
}

static bool set_app_text(struct parser *parser, const struct option *row, char **values)
{
	*(const char **)(void *)((char *)parser->app + row->choice) = values[0];
	return true;
}

/* Keep an allocated text until the end. Returns it, or NULL after option_fail. */
static char *keep_text(struct parser *parser, char *text)
{
	struct options *opt = parser->opt;
	char **more = text ? realloc(opt->texts, ((size_t)opt->n_texts + 1) * sizeof(*more)) : NULL;

	if (!more) {
		free(text);
		option_fail(parser, "out of memory", NULL);
		return NULL;
	}
	opt->texts = more;
	return more[opt->n_texts++] = text;
}

static bool set_timeout(struct parser *parser, const struct option *row, char **values)
{
	char *end;
	double s = strtod(values[0], &end);

	if (end == values[0] || *end || !isfinite(s) || s <= 0 || s > 1e9)
		return fail_value(parser, row, "a number of seconds above 0", values[0]);
	parser->opt->timeout_s = s;
	return true;
}

static bool set_deadlock(struct parser *parser, const struct option *row, char **values)
{
	char *end;
	double s = strtod(values[0], &end);

	if (end == values[0] || *end || !isfinite(s) || s < 0 || s > 1e9)
		return fail_value(parser, row, "a number of seconds, or 0 for never", values[0]);
	parser->opt->deadlock_s = s;
	parser->opt->deadlock_set = true;
	return true;
}

static bool check_arch(struct parser *parser, const struct option *row, char **values)
{
	struct utsname names;

	(void)row;
	if (!uname(&names) && strcmp(values[0], names.machine))
		return option_fail(parser, "-arch does not name what this machine is", values[0]);
	return true;
}

static bool read_configfile(struct parser *parser, const struct option *row, char **values)
{
	struct configfile *file = &parser->opt->file;
	char text[256];
	int err;

	if (*parser->next)
		return fail_value(parser, row, "a file, and nothing may follow", *parser->next);
	if (file->words)
		return option_fail(parser, "a file named by -configfile names another", values[0]);
	err = configfile_read(file, values[0]);
	if (err) {
		snprintf(text, sizeof(text), "cannot read the -configfile %.150s: %s", values[0],
			 err == -EINVAL    ? "a quotation does not end"
			 : err == -ENODATA ? "there is nothing in it"
					   : strerror(-err));
		return option_fail(parser, text, NULL);
	}
	parser->next = file->words;
	return true;
}

/* ---- environment ----------------------------------------------------------------------------- */

static bool add_setting(struct parser *parser, struct settings *env, const char *name,
			const char *value)
{
	return !options_add_env(env, name, value) || option_fail(parser, "out of memory", NULL);
}

static bool set_env_option(struct parser *parser, const struct option *row, char **values)
{
	bool job = !strncmp(row->names, "-genv", 5);

	if (!*values[0] || strchr(values[0], '='))
		return fail_value(parser, row, "NAME and VALUE as two words", values[0]);
	return add_setting(parser, job ? &parser->opt->env : &parser->app->env, values[0],
			   values[1]);
}

/* "NAME=VALUE", or "NAME" for the value that mpiexec has. */
static bool export_env(struct parser *parser, const struct option *row, char **values)
{
	size_t len = strcspn(values[0], "=");
	char *name;

	if (!len)
		return fail_value(parser, row, "NAME or NAME=VALUE", values[0]);
	name = keep_text(parser, strndup(values[0], len));
	return name && add_setting(parser, &parser->app->env, name,
				   values[0][len] ? values[0] + len + 1 : NULL);
}

static bool set_pass(struct parser *parser, const struct option *row, char **values)
{
	bool job = !strncmp(row->names, "-genv", 5);

	*(job ? &parser->opt->pass : &parser->app->pass) = (enum env_pass)row->choice;
	if (row->choice == ENV_LIST)
		*(job ? &parser->opt->pass_list : &parser->app->pass_list) = values[0];
	return true;
}

/* srun's form. */
static bool set_export(struct parser *parser, const struct option *row, char **values)
{
	if (!strcasecmp(values[0], "ALL") || !strcasecmp(values[0], "NONE")) {
		parser->opt->pass = strcasecmp(values[0], "ALL") ? ENV_NONE : ENV_ALL;
		return true;
	}
	return fail_value(parser, row,
			  "ALL or NONE; else write -genvlist NAME,... and -x NAME=VALUE",
			  values[0]);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

/* `why`: what -EINVAL means, or NULL. */
static bool fail_hosts(struct parser *parser, const char *what, int err,
		       const struct hosts_error *why)
{
	char text[700];

	snprintf(text, sizeof(text), "%.200s: %s", what,
		 err == -EINVAL && why ? why->text : strerror(-err));
	return option_fail(parser, text, NULL);
}

static bool add_hosts(struct parser *parser, const struct option *row, char **values)
{
	struct hosts_error why;
	char name[40];
	int err = hosts_add_list(&parser->app->hosts, values[0], strlen(values[0]), &why);

	return !err || fail_hosts(parser, option_name(row, name, sizeof(name)), err, &why);
}

static bool read_hostfile(struct parser *parser, const struct option *row, char **values)
{
	enum { FILE_MOST = 16 << 20 };
	struct hosts *hosts = &parser->opt->hosts;
	FILE *file = fopen(values[0], "re");
	struct hosts_error why;
	char *text = file ? malloc(FILE_MOST) : NULL;
	size_t len;
	int err;

	(void)row;
	if (!file)
		return fail_hosts(parser, values[0], -errno, NULL);
	errno = 0;
	len = text ? fread(text, 1, FILE_MOST, file) : 0;
	err = !text ? -ENOMEM : ferror(file) ? (errno ? -errno : -EIO) : 0;
	fclose(file);
	if (!err && len == FILE_MOST)
		err = -EFBIG;
	hosts_clear(hosts);
	if (!err)
		err = hosts_add_file(hosts, text, len, &why);
	free(text);
	if (err)
		return fail_hosts(parser, values[0], err, &why);
	return hosts->n || option_fail(parser, "there is no host in the file", values[0]);
}

static bool one_per_host(struct parser *parser, const struct option *row, char **values)
{
	(void)row;
	(void)values;
	parser->opt->per_host = 1;
	return true;
}

/* Our names of engines, and those that Hydra has for remote shells. */
static bool set_launcher(struct parser *parser, const struct option *row, char **values)
{
	static const struct {
		const char *name;
		enum launcher launcher;
		bool shell;
	} names[] = {
		{ "auto", LAUNCHER_AUTO, false },
		{ "embedded", LAUNCHER_EMBEDDED, false },
		{ "fork", LAUNCHER_EMBEDDED, false },
		{ "hydra", LAUNCHER_HYDRA, false },
		{ "mpiexec.hydra", LAUNCHER_HYDRA, false },
		{ "prterun", LAUNCHER_PRTERUN, false },
		{ "prte", LAUNCHER_PRTERUN, false },
		{ "srun", LAUNCHER_SRUN, false },
		{ "slurm", LAUNCHER_SRUN, false },
		{ "ssh", LAUNCHER_AUTO, true },
		{ "rsh", LAUNCHER_HYDRA, true },
		{ "ll", LAUNCHER_HYDRA, true },
		{ "lsf", LAUNCHER_HYDRA, true },
		{ "sge", LAUNCHER_HYDRA, true },
		{ "pbs", LAUNCHER_HYDRA, true },
		{ "pbsdsh", LAUNCHER_HYDRA, true },
		{ "manual", LAUNCHER_HYDRA, true },
		{ "persist", LAUNCHER_HYDRA, true },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(values[0], names[i].name))
			continue;
		parser->opt->launcher = names[i].launcher;
		parser->opt->remote_shell = names[i].shell ? names[i].name : NULL;
		return true;
	}
	return fail_value(parser, row,
			  "embedded, hydra, prterun or srun, or one of Hydra's remote shells: ssh, "
			  "rsh, ll, lsf, sge, pbs, pbsdsh, manual, persist",
			  values[0]);
}

/* ---- binding --------------------------------------------------------------------------------- */

/* The names of units; the first `len` bytes count. False: there is none of that name. */
static bool find_unit(const char *text, size_t len, enum unit *unit)
{
	static const struct {
		const char *name;
		enum unit unit;
	} names[] = {
		{ "share", UNIT_SHARE },     { "none", UNIT_NONE },
		{ "no", UNIT_NONE },         { "core", UNIT_CORE },
		{ "cores", UNIT_CORE },      { "hwthread", UNIT_HWTHREAD },
		{ "hwt", UNIT_HWTHREAD },    { "threads", UNIT_HWTHREAD },
		{ "rr", UNIT_HWTHREAD },     { "rank", UNIT_HWTHREAD },
		{ "l1cache", UNIT_L1 },      { "l2cache", UNIT_L2 },
		{ "l3cache", UNIT_L3 },      { "numa", UNIT_NUMA },
		{ "ldoms", UNIT_NUMA },      { "numanode", UNIT_NUMA },
		{ "socket", UNIT_SOCKET },   { "sockets", UNIT_SOCKET },
		{ "package", UNIT_SOCKET },  { "board", UNIT_MACHINE },
		{ "machine", UNIT_MACHINE }, { "boards", UNIT_MACHINE },
		{ "slot", UNIT_MACHINE },    { "node", UNIT_NODE },
		{ "user", UNIT_USER },       { "map_cpu", UNIT_USER },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncasecmp(text, names[i].name, len) && !names[i].name[len]) {
			*unit = names[i].unit;
			return true;
		}
	return false;
}

/* Numbers and ranges, with one of these characters between two: "0+1,4-5". */
static bool is_number_list(const char *text, const char *between)
{
	enum { DIGITS_MOST = 6 };

	for (;;) {
		size_t n = strspn(text, "0123456789");
		long first = strtol(text, NULL, 10);

		if (!n || n > DIGITS_MOST)
			return false;
		text += n;
		if (*text == '-') {
			n = strspn(++text, "0123456789");
			if (!n || n > DIGITS_MOST || strtol(text, NULL, 10) < first)
				return false;
			text += n;
		}
		if (!*text)
			return true;
		if (!strchr(between, *text++))
			return false;
	}
}

static bool set_cpus(struct parser *parser, const struct option *row, char **values)
{
	if (!is_number_list(values[0], ",+"))
		return fail_value(
			parser, row,
			"processors, with commas between ranks: 0,1 or 0+4,1+5 or 0-3,4-7",
			values[0]);
	parser->opt->bind = UNIT_USER;
	parser->opt->bind_list = values[0];
	return true;
}

static const char bind_needs[] = "share, core, none, hwthread, socket, numa, l1cache, l2cache, "
				 "l3cache, board or user:CPU,..., with :N for several";

/* "core", "core:2", "socket:overload-allowed", "user:0,1". */
static bool set_bind(struct parser *parser, const struct option *row, char **values)
{
	struct options *opt = parser->opt;
	const char *rest = values[0] + strcspn(values[0], ":");
	enum unit unit;

	if (!find_unit(values[0], (size_t)(rest - values[0]), &unit))
		return fail_value(parser, row, bind_needs, values[0]);
	if (unit == UNIT_USER && *rest)
		return set_cpus(parser, row, &(char *){ (char *)rest + 1 });
	if (unit == UNIT_USER)
		return fail_value(parser, row, "processors: user:0,1,...", values[0]);
	while (*rest) {
		const char *word = ++rest;
		char text[40];

		rest += strcspn(rest, ":");
		snprintf(text, sizeof(text), "%.*s", (int)(rest - word), word);
		if (!strcasecmp(text, "overload-allowed") || !strcasecmp(text, "if-supported") ||
		    !strcasecmp(text, "no-overload"))
			continue; /* more ranks than units begin again with the first */
		opt->bind_count = read_number(text);
		if (!opt->bind_count || unit == UNIT_SHARE || unit == UNIT_NONE)
			return fail_value(parser, row, bind_needs, values[0]);
	}
	/* all there is */
	opt->bind = unit == UNIT_MACHINE || unit == UNIT_NODE ? UNIT_NONE : unit;
	return true;
}

/* Several options with a name of their own: "-bind-to-core"; choice: the unit. */
static bool set_bind_unit(struct parser *parser, const struct option *row, char **values)
{
	(void)values;
	parser->opt->bind = (enum unit)row->choice;
	return true;
}

/* Each rank has so many cores. */
static bool set_cores_each(struct parser *parser, const struct option *row, char **values)
{
	struct options *opt = parser->opt;

	opt->bind_count = read_number(values[0]);
	if (!opt->bind_count)
		return fail_value(parser, row, "a number from 1 to 16384", values[0]);
	if (opt->bind == UNIT_AUTO || opt->bind == UNIT_SHARE)
		opt->bind = UNIT_CORE;
	return true;
}

static const char map_needs[] = "slot, node, core, hwthread, socket, numa, l1cache, l2cache, "
				"l3cache or ppr:N:node, with :PE=N or :OVERSUBSCRIBE behind it";

static bool set_map_modifier(struct parser *parser, const struct option *row, char *word)
{
	static const char *const same[] = { "span", "inherit", "noinherit", "corecpus", "ordered" };
	struct options *opt = parser->opt;

	if (!strncasecmp(word, "pe=", 3))
		return set_cores_each(parser, row, &(char *){ word + 3 });
	if (!strcasecmp(word, "oversubscribe"))
		return opt->oversubscribe = true;
	if (!strcasecmp(word, "nooversubscribe"))
		return opt->no_oversubscribe = true;
	if (!strcasecmp(word, "hwtcpus")) {
		opt->bind = UNIT_HWTHREAD;
		return true;
	}
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (!strcasecmp(word, same[i]))
			return true;
	return fail_value(parser, row, map_needs, word);
}

/* "ppr:2:node": so many ranks on each host. Returns the rest of the text, NULL if it is wrong. */
static char *take_per_host(struct options *opt, char *text)
{
	size_t digits = strspn(text, "0123456789");
	char number[8];
	char *rest = text + digits;

	if (digits >= sizeof(number) || strncasecmp(rest, ":node", 5) ||
	    (rest[5] && rest[5] != ':'))
		return NULL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	opt->per_host = read_number(number);
	return opt->per_host ? rest + 5 : NULL;
}

static bool set_map(struct parser *parser, const struct option *row, char **values)
{
	char *rest = values[0] + strcspn(values[0], ":");
	enum unit unit;

	if (!strncasecmp(values[0], "ppr:", 4)) {
		rest = take_per_host(parser->opt, rest + 1);
		if (!rest)
			return fail_value(
				parser, row,
				"ppr:N:node; for other objects write -n N --map-by OBJECT",
				values[0]);
	} else if (rest != values[0]) {
		if (!find_unit(values[0], (size_t)(rest - values[0]), &unit) ||
		    unit == UNIT_SHARE || unit == UNIT_NONE || unit == UNIT_USER)
			return fail_value(parser, row, map_needs, values[0]);
		parser->opt->map = unit;
	}
	while (*rest) {
		char *word = ++rest;
		size_t len = strcspn(rest, ":,");
		char text[40];

		rest += len;
		snprintf(text, sizeof(text), "%.*s", (int)len, word);
		if (!set_map_modifier(parser, row, text))
			return false;
	}
	return true;
}

static bool set_map_unit(struct parser *parser, const struct option *row, char **values)
{
	(void)values;
	parser->opt->map = (enum unit)row->choice;
	return true;
}

/* Ranks are numbered in the order in which they are dealt out. */
static bool check_rank_by(struct parser *parser, const struct option *row, char **values)
{
	static const char *const same[] = { "slot", "fill", "span", "node" };

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (!strcasecmp(values[0], same[i]))
			return true;
	return fail_value(parser, row,
			  "slot; ranks are numbered as --map-by deals them out, core after core "
			  "with --map-by slot",
			  values[0]);
}

/* ---- input and output ------------------------------------------------------------------------ */

static bool check_file_pattern(struct parser *parser, const struct option *row, const char *pattern)
{
	for (const char *c = strchr(pattern, '%'); c; c = strchr(c + 1 + (c[1] == '%'), '%'))
		if (!c[1] || !strchr("%rthNgp", c[1]))
			return fail_value(parser, row,
					  "a file, with %r for the rank and %h for the host",
					  pattern);
	return *pattern || fail_value(parser, row, "a file", pattern);
}

/* choice: the offset of the pattern in struct options. */
static bool set_pattern(struct parser *parser, const struct option *row, char **values)
{
	return check_file_pattern(parser, row, values[0]) && set_text(parser, row, values);
}

/* Both streams to "FILE.RANK". */
static bool set_file_each(struct parser *parser, const struct option *row, char **values)
{
	char *text = NULL;

	if (!check_file_pattern(parser, row, values[0]))
		return false;
	if (asprintf(&text, "%s.%%r", values[0]) < 0)
		text = NULL;
	text = keep_text(parser, text);
	parser->opt->outfile = parser->opt->errfile = text;
	return text;
}

/* Open MPI's list of words, "tag,merge"; or the file of srun. */
static bool set_output(struct parser *parser, const struct option *row, char **values)
{
	struct options *opt = parser->opt;
	char *word = values[0];
	bool file = false;

	while (!file && *word) {
		size_t len = strcspn(word, ",:");
		char text[4096];

		snprintf(text, sizeof(text), "%.*s", (int)len, word);
		if (!strcasecmp(text, "tag") || !strcasecmp(text, "rank"))
			opt->label = true;
		else if (!strcasecmp(text, "merge") || !strcasecmp(text, "merge-stderr-to-stdout"))
			opt->merge = true;
		else if (!strncasecmp(text, "file=", 5) || !strncasecmp(text, "filename=", 9)) {
			char *name = strchr(word, '=') + 1;

			/* up to the comma */
			len = strcspn(word, ",");
			name = keep_text(parser, strndup(name, (size_t)(word + len - name)));
			if (!name || !set_file_each(parser, row, &name))
				return false;
		} else if (!strcasecmp(text, "timestamp") || !strcasecmp(text, "xml") ||
			   !strncasecmp(text, "tag-", 4) || !strncasecmp(text, "dir=", 4) ||
			   !strncasecmp(text, "directory=", 10))
			return fail_value(
				parser, row,
				"tag, merge or file=NAME; for times use | ts of moreutils",
				values[0]);
		else
			file = true;
		word += len;
		word += *word != '\0';
	}
	return !file || (check_file_pattern(parser, row, values[0]) && (opt->outfile = values[0]));
}

/* "all", "none", or ranks: "0", "1,3-5". */
static bool set_input(struct parser *parser, const struct option *row, char **values)
{
	const char *text = values[0];

	if (strcmp(text, "all") && strcmp(text, "none") && !is_number_list(text, ","))
		return fail_value(parser, row, "all, none or ranks: 0 or 1,3-5", text);
	parser->opt->input = text;
	return true;
}

/* ---- what is ignored ------------------------------------------------------------------------- */

/* Parameters of Open MPI, with what does the like here. */
static bool ignore_parameter(struct parser *parser, const struct option *row, char **values)
{
	static const struct {
		const char *start, *text;
	} hints[] = {
		{ "btl_tcp_if", "PTL_IFACE names the network interface" },
		{ "oob_tcp_if", "PTL_IFACE names the network interface" },
		{ "plm_", "-launcher-exec names the remote shell" },
		{ "btl", "PTL_NAL names the transports, see portals-info" },
		{ "pml", "PTL_NAL names the transports, see portals-info" },
		{ "mtl", "PTL_NAL names the transports, see portals-info" },
		{ "coll", "PTL_MPI_COLL names the algorithms" },
		{ "rmaps", "write --map-by or -ppn" },
		{ "hwloc", "write --bind-to" },
		{ "orte_tag_output", "write -l" },
	};
	const char *hint = row->text;
	char name[40];

	for (size_t i = sizeof(hints) / sizeof(hints[0]); i--;)
		if (!strncmp(values[0], hints[i].start, strlen(hints[i].start)))
			hint = hints[i].text;
	if (!parser->opt->quiet)
		fprintf(stderr, "mpiexec: %s %s is ignored: %s\n",
			option_name(row, name, sizeof(name)), values[0], hint);
	return true;
}

/* ---- the rows -------------------------------------------------------------------------------- */

#define IN_JOB(field) offsetof(struct options, field)
#define IN_APP(field) offsetof(struct app, field)
#define FLAG(field)   OPTION_DOES, .apply = set_flag, .choice = IN_JOB(field)
#define DOES(f, c)    OPTION_DOES, .apply = (f), .choice = (int)(c)

static const char per_host_text[] = "so many ranks on each host, and without -n on this one";
static const char bind_text[] = "the same as --bind-to";
static const char debugger[] = "write mpiexec -n N xterm -e gdb PROGRAM";
static const char batch[] = "it is for sbatch and salloc; write it there";

static const struct option rows[] = {
	/* how many, and what */
	{ "-n -np -c --n --ntasks", "N", DOES(set_ranks, 0),
	  .text = "so many ranks; -n4 is the same" },
	{ "-env", "NAME VALUE", DOES(set_env_option, 0),
	  .text = "set a variable for this program" },
	{ "-genv", "NAME VALUE", DOES(set_env_option, 0), .text = "set a variable for all" },
	{ "-x", "NAME[=VALUE]", DOES(export_env, 0),
	  .text = "set a variable for this program, or pass on the one that is set" },
	{ "-envall", "", DOES(set_pass, ENV_ALL), .text = "this program has all variables" },
	{ "-envnone", "", DOES(set_pass, ENV_NONE), .text = "this program has none of ours" },
	{ "-envlist", "NAME,...", DOES(set_pass, ENV_LIST), .text = "this program has these" },
	{ "-genvall", "", DOES(set_pass, ENV_ALL), .text = "all variables, as without it" },
	{ "-genvnone", "", DOES(set_pass, ENV_NONE), .text = "none of our variables" },
	{ "-genvlist", "NAME,...", DOES(set_pass, ENV_LIST), .text = "these variables" },
	{ "--export", "ALL|NONE", DOES(set_export, 0), .text = "as -genvall or -genvnone" },
	{ "-wdir -wd --working-dir -D --chdir", "DIR", DOES(set_app_text, IN_APP(wdir)),
	  .text = "start in this directory" },
	{ "-path", "DIR:...", DOES(set_app_text, IN_APP(path)),
	  .text = "look for the program there, on this machine" },
	{ "-soft", "SET", DOES(set_app_text, IN_APP(soft)),
	  .text = "the largest number of the set up to -n" },
	{ "-arch", "NAME", DOES(check_arch, 0), .text = "the kind of this machine" },
	{ "-configfile --app", "FILE", DOES(read_configfile, 0),
	  .text = "the rest of the command line, a program a line" },
	{ "--multi-prog", "", OPTION_REFUSED,
	  .text = "write the programs with colons between: -n 1 A : -n 3 B" },
	{ "--preload-binary", "", OPTION_REFUSED,
	  .text = "copy the program to the hosts yourself" },
	{ "--preload-files --preload-files-dest-dir", "FILE", OPTION_REFUSED,
	  .text = "copy the files to the hosts yourself" },
	{ "--set-cwd-to-session-dir", "", OPTION_REFUSED, .text = "write -wdir DIR" },

	/* hosts */
	{ "-host -H -hosts -w --nodelist", "HOST[:N],...", DOES(add_hosts, 0),
	  .text = "on these machines; others are an engine's, see --launcher" },
	{ "-hostfile -machinefile -f --machine-file --default-hostfile", "FILE",
	  DOES(read_hostfile, 0),
	  .text = "on the machines of the file: HOST, HOST:N or HOST slots=N" },
	{ "-ppn -N -perhost -npernode --ntasks-per-node", "N",
	  DOES(set_number_option, IN_JOB(per_host)), .text = per_host_text },
	{ "-pernode", "", DOES(one_per_host, 0), .text = "as -ppn 1" },
	{ "-npersocket", "N", OPTION_REFUSED, .text = "write -n N --map-by socket" },
	{ "--nodes", "N", OPTION_REFUSED, .text = "write -n and -ppn, or -host" },
	{ "-rmk", "NAME", OPTION_IGNORED, .text = "Slurm's allocation is seen without it" },
	{ "-launcher -bootstrap", "NAME", DOES(set_launcher, 0),
	  .text = "embedded, hydra, prterun or srun; or Hydra's remote shell: ssh, rsh, ..." },
	{ "-launcher-exec -bootstrap-exec", "FILE", DOES(set_text, IN_JOB(remote_exec)),
	  .text = "the program that reaches other hosts, in the place of ssh" },
	{ "-iface", "NAME", DOES(set_text, IN_JOB(iface)),
	  .text = "PTL_IFACE of ranks on this machine; with other hosts Hydra's own interface" },
	{ "-oversubscribe --overcommit -O", "", FLAG(oversubscribe),
	  .text = "more ranks than cores, which is always allowed on this machine" },
	{ "-nooversubscribe", "", FLAG(no_oversubscribe),
	  .text = "an error if there are more ranks than processors or slots" },
	{ "-nolocal -skip-launch-node", "", OPTION_REFUSED,
	  .text = "write -host or -hostfile without this machine" },
	{ "-allow-run-as-root", "", OPTION_NOTHING, .text = "root may always start jobs" },
	{ "-prefix", "DIR", OPTION_IGNORED, .text = "programs have the library's path in them" },
	{ "-noprefix", "", OPTION_NOTHING, .text = "it is always so" },
	{ "-personality", "NAME", OPTION_NOTHING, .text = "there is one" },
	{ "-localhost", "NAME", OPTION_IGNORED, .text = "write -iface" },
	{ "-order-nodes", "HOW", OPTION_IGNORED, .text = "hosts are used in their order" },
	{ "-disable-hostname-propagation", "", OPTION_NOTHING, .text = "it is always so" },
	{ "-enable-x -disable-x", "", OPTION_IGNORED,
	  .text = "DISPLAY is passed on; ssh has a setting, ForwardX11" },
	{ "--mpi", "NAME", OPTION_IGNORED, .text = "the launcher and its ranks speak PMI" },
	{ "--partition -p --account -A --qos --constraint -C --mem "
	  "--mem-per-cpu --gres --gpus --gpus-per-node --reservation --time -t --job-name -J",
	  "VALUE", OPTION_REFUSED, .text = batch },
	{ "--exclusive --overlap", "", OPTION_REFUSED, .text = batch },
	{ "-dvm -hnp --dvm-uri", "URI", OPTION_REFUSED, .text = "write prterun or prun" },
	{ "-novm", "", OPTION_NOTHING, .text = "there is no such machine here" },

	/* binding */
	{ "-bind-to --cpu-bind -binding", "WHAT", DOES(set_bind, 0),
	  .text = "share, core, none, hwthread, socket, numa, l1cache to l3cache, board or "
		  "user:CPU,...; with :N for several" },
	{ "-bind-to-core", "", DOES(set_bind_unit, UNIT_CORE), .text = bind_text },
	{ "-bind-to-socket", "", DOES(set_bind_unit, UNIT_SOCKET), .text = bind_text },
	{ "-bind-to-none", "", DOES(set_bind_unit, UNIT_NONE), .text = bind_text },
	{ "-use-hwthread-cpus", "", DOES(set_bind_unit, UNIT_HWTHREAD),
	  .text = "as --bind-to hwthread" },
	{ "-cpu-list", "CPU,...", DOES(set_cpus, 0), .text = "as --bind-to user:CPU,..." },
	{ "-cpu-set", "CPU,...", OPTION_REFUSED, .text = "write taskset -c CPU,... mpiexec" },
	{ "-cpus-per-rank -cpus-per-proc --cpus-per-task", "N", DOES(set_cores_each, 0),
	  .text = "so many cores for each rank" },
	{ "-map-by", "WHAT", DOES(set_map, 0),
	  .text = "deal ranks out over slot, node, core, socket, numa, ...; ppr:N:node as -ppn; "
		  ":PE=N "
		  "as -cpus-per-rank" },
	{ "-byslot", "", DOES(set_map_unit, UNIT_MACHINE), .text = "as --map-by slot" },
	{ "-bynode", "", DOES(set_map_unit, UNIT_NODE), .text = "as --map-by node" },
	{ "-bycore", "", DOES(set_map_unit, UNIT_CORE), .text = "as --map-by core" },
	{ "-bysocket", "", DOES(set_map_unit, UNIT_SOCKET), .text = "as --map-by socket" },
	{ "-rank-by", "WHAT", DOES(check_rank_by, 0), .text = "slot: the order of --map-by" },
	{ "-rankfile -rf", "FILE", OPTION_REFUSED,
	  .text = "write --bind-to user:CPU,..., a CPU for each rank" },
	{ "-report-bindings", "", FLAG(report_bindings),
	  .text = "say which processors ranks have" },
	{ "-membind", "WHAT", OPTION_IGNORED, .text = "memory is taken where a rank runs" },
	{ "-topolib", "NAME", OPTION_NOTHING, .text = "the kernel is asked" },
	{ "-gpus-per-proc --gpus-per-task", "N", OPTION_REFUSED,
	  .text = "set CUDA_VISIBLE_DEVICES in a script that starts the program" },

	/* input and output */
	{ "-l -prefix-rank -prepend-rank -tag-output --label", "", FLAG(label),
	  .text = "\"[rank] \" before every line" },
	{ "-prepend-pattern", "PATTERN", OPTION_REFUSED, .text = "write -l" },
	{ "-timestamp-output", "", OPTION_REFUSED, .text = "write mpiexec ... | ts, of moreutils" },
	{ "-s -stdin --input -i", "RANKS", DOES(set_input, 0),
	  .text = "all, none or the ranks that read standard input; without it 0" },
	{ "-outfile-pattern -o", "FILE", DOES(set_pattern, IN_JOB(outfile)),
	  .text = "standard output to this file; %r is the rank, %h the host" },
	{ "-errfile-pattern --error -e", "FILE", DOES(set_pattern, IN_JOB(errfile)),
	  .text = "standard error to this file" },
	{ "-output-filename", "FILE", DOES(set_file_each, 0), .text = "both to FILE.RANK" },
	{ "--output", "WHAT", DOES(set_output, 0),
	  .text = "tag, merge or file=FILE, with commas between; else as -outfile-pattern" },
	{ "-merge-stderr-to-stdout", "", FLAG(merge), .text = "standard error goes to the output" },
	{ "-xml", "", OPTION_REFUSED, .text = "write -l, which programs can read as well" },
	{ "-xml-file", "FILE", OPTION_REFUSED, .text = "write -l and -outfile-pattern" },
	{ "-xterm", "RANKS", OPTION_REFUSED, .text = "write mpiexec -n N xterm -e PROGRAM" },
	{ "-stream-buffering", "N", OPTION_NOTHING, .text = "output comes line by line" },
	{ "--unbuffered -u", "", OPTION_NOTHING, .text = "output comes line by line" },
	{ "-demux", "NAME", OPTION_NOTHING, .text = "epoll is used" },

	/* life and death */
	{ "--timeout", "SECONDS", DOES(set_timeout, 0),
	  .text = "end the job then; so does the variable MPIEXEC_TIMEOUT" },
	{ "--deadlock", "SECONDS", DOES(set_deadlock, 0),
	  .text = "when all ranks wait for so long, say for what; 0: never" },
	{ "--deadlock-abort", "", FLAG(deadlock_abort), .text = "end the job then" },
	{ "--keep-going -disable-auto-cleanup -enable-recovery -continuous", "", FLAG(keep_going),
	  .text = "the others run on when a rank dies" },
	{ "--kill-on-bad-exit -K", "", OPTION_NOTHING, .text = "it is always so" },
	{ "-forward-signals", "SIGNALS", OPTION_IGNORED,
	  .text = "mpiexec(1) lists those that are forwarded" },
	{ "-max-restarts", "N", OPTION_REFUSED, .text = "write a loop around mpiexec" },
	{ "-ckpointlib -ckpoint-prefix -ckpoint-num -ckpoint-interval", "VALUE", OPTION_REFUSED,
	  .text = "let the program save its state itself" },
	{ "-with-ft", "NAME", OPTION_IGNORED, .text = "write --keep-going" },
	{ "-usize", "N", OPTION_IGNORED, .text = "there are no dynamic processes" },
	{ "-nameserver --ompi-server", "URI", OPTION_REFUSED,
	  .text = "there is no name server, as there are no dynamic processes" },
	{ "-gdb -gdba", "", OPTION_REFUSED, .text = debugger },
	{ "-debug -tv --debugger", "", OPTION_REFUSED, .text = debugger },
	{ "-get-stack-traces -report-state-on-timeout", "", OPTION_NOTHING,
	  .text = "--timeout says what ranks wait for" },

	/* hints and messages */
	{ "-q --quiet -Q", "", FLAG(quiet), .text = "no hints about what is ignored" },
	{ "-v -verbose -d", "", FLAG(verbose), .text = "say what is started, and by which engine" },
	{ "-print-all-exitcodes", "", OPTION_IGNORED, .text = "the first that is not 0 is said" },
	{ "-display-map --display-devel-map --display-allocation --display-topo", "",
	  OPTION_IGNORED, .text = "write -v and --report-bindings" },
	{ "-display", "WHAT", OPTION_IGNORED, .text = "write -v and --report-bindings" },
	{ "-do-not-launch -do-not-resolve", "", OPTION_REFUSED,
	  .text = "write -v to see what is started" },
	{ "-output-proctable", "", OPTION_IGNORED,
	  .text = "write -l with a program that says its pid" },
	{ "-report-pid -report-uri", "FILE", OPTION_REFUSED,
	  .text = "write mpiexec ... & echo $!" },
	{ "-profile -show-progress", "", OPTION_IGNORED, .text = "set PTL_REPORT=1" },

	/* parameters of others */
	{ "-mca -gmca -omca -gomca -prtemca -gprtemca -pmixmca -gpmixmca", "NAME VALUE",
	  OPTION_IGNORED, .apply = ignore_parameter, .text = "portals(7) lists the settings here" },
	{ "-am -tune", "FILE", OPTION_IGNORED, .text = "portals(7) lists the settings here" },
	{ "-tmpdir", "DIR", OPTION_IGNORED, .text = "set TMPDIR" },
	{ "-pmi-port", "", OPTION_NOTHING, .text = "ranks inherit their connection" },
};

const struct option *option_row(size_t i)
{
	return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}
