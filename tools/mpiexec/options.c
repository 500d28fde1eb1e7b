/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The parser of the command line. option_table.c says which options there are. Options may be
 * written with one dash or two, and with a value as "-name value" or "-name=value". Options of the
 * whole job may stand before any of the programs.
 */
#define _GNU_SOURCE /* environ */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/mpiexec/deadlock.h"
#include "tools/mpiexec/option_table.h"
#include "tools/mpiexec/options.h"

enum { VALUES_MOST = 2 };

static const char help[] =
	"usage: mpiexec [OPTION...] [-n N] PROGRAM [ARG...] [: [-n N] PROGRAM [ARG...]]...\n"
	"\n"
	"Starts N processes of each program as the ranks of one job: on this machine by itself,\n"
	"on others by Hydra, prterun or srun, whichever is installed.\n"
	"\n"
	"for the program that follows\n"
	"  -n N, -np N, -c N     start N ranks of it (default 1, or what hosts have room for)\n"
	"  -env NAME VALUE, -x NAME=VALUE\n"
	"                        set an environment variable\n"
	"  -wdir DIR             start it in this directory\n"
	"  -path DIR[:DIR...]    look for it there\n"
	"  -soft SET             the largest number in the set up to N will do: A, A:B, "
	"A:B:STEP,...\n"
	"  -host LIST            on these machines: NAME or NAME:N, with commas between\n"
	"for the whole job\n"
	"  -hostfile FILE, -f FILE\n"
	"                        on the machines of this file: NAME, NAME:N or NAME slots=N a "
	"line\n"
	"  -ppn N                N ranks on each machine\n"
	"  --launcher NAME       embedded, hydra, prterun or srun; or Hydra's remote shell: ssh, "
	"rsh, "
	"...\n"
	"  -genv NAME VALUE      set an environment variable for all ranks\n"
	"  -genvnone, -genvlist NAME,...\n"
	"                        pass on none of mpiexec's own variables, or these\n"
	"  --bind-to share|core|none|hwthread|socket|numa|l3cache|user:CPU,...\n"
	"                        give each rank an equal share of the cores, or one core "
	"(wrapping\n"
	"                        round when there are more ranks than cores), or leave them all "
	"to\n"
	"                        all, ...; default share if there are enough cores, else none\n"
	"  --map-by slot|core|socket|numa|...[:PE=N]\n"
	"                        deal the ranks out over these\n"
	"  --report-bindings     say which processors each rank is bound to\n"
	"  -l, --tag-output      write \"[rank] \" before every line of output\n"
	"  -outfile-pattern FILE, -errfile-pattern FILE\n"
	"                        write output there; %r is the rank, %h the host\n"
	"  -s all|none|RANKS     which ranks read standard input (default 0)\n"
	"  --keep-going          let the others run on when a rank dies or fails\n"
	"  --timeout SECONDS     end the job after that time, with exit status 124\n"
	"  --deadlock SECONDS    say so when all ranks wait and none makes progress for so long "
	"(default\n"
	"                        60; 0: never); with --deadlock-abort end the job then, with "
	"exit\n"
	"                        status 250\n"
	"  --status PID          say what the ranks of a job wait for that another mpiexec has "
	"started\n"
	"  -configfile FILE      read the rest from a file, where each line is what stands "
	"between\n"
	"                        two colons\n"
	"  -q, -v                without hints; say what is started\n"
	"  --help, --version     --help habits lists every option of MPICH's, Open MPI's and "
	"Slurm's\n"
	"                        launchers, and what is done here\n"
	"\n"
	"The exit status is that of the first rank that failed, 128 + N if signal N killed it,\n"
	"127 or 126 if a program could not be started.\n";

bool option_fail(struct parser *parser, const char *text, const char *what)
{
	fprintf(stderr, "mpiexec: %s%s%s; see mpiexec --help\n", text, what ? ": " : "",
		what ? what : "");
	*parser->status = USAGE_ERROR;
	return false;
}

/* ---- help ------------------------------------------------------------------------------------ */

static const char *const before[] = {
	[OPTION_DOES] = "",
	[OPTION_NOTHING] = "accepted: ",
	[OPTION_IGNORED] = "ignored: ",
	[OPTION_REFUSED] = "refused: ",
};

/* A line for each row: "-n N, -np N", a tabulator, what is done here. */
static void print_habits(void)
{
	const struct option *row;

	for (size_t i = 0; (row = option_row(i)); i++) {
		const char *name = row->names;

		while (*name) {
			size_t len = strcspn(name, " ");

			printf("%s%.*s%s%s", name == row->names ? "" : ", ", (int)len, name,
			       *row->args ? " " : "", row->args);
			name += len;
			name += strspn(name, " ");
		}
		printf("\t%s%s\n", before[row->kind], row->text);
	}
}

static bool show_help(struct parser *parser)
{
	const char *topic = *parser->next;

	if (topic && !strcmp(topic, "habits"))
		print_habits();
	else
		fputs(help, stdout);
	*parser->status = fflush(stdout) ? 1 : 0;
	return false;
}

static bool show_version(struct parser *parser)
{
	fputs("mpiexec (Postern) " POSTERN_VERSION "\n", stdout);
	*parser->status = fflush(stdout) ? 1 : 0;
	return false;
}

static bool print_job_status(struct parser *parser, const char *pid)
{
	if (!pid)
		return option_fail(parser, "--status needs PID", NULL);
	*parser->status = deadlock_status(pid);
	return false;
}

/* ---- one option ------------------------------------------------------------------------------ */

static const char *without_dashes(const char *word)
{
	return word + (word[0] == '-') + (word[0] == '-' && word[1] == '-');
}

/* How many words follow the option. */
static int arity(const struct option *row)
{
	int words = *row->args != '\0';

	for (const char *c = row->args; *c; c++)
		words += *c == ' ';
	return words;
}

/* Does the word name this option? *value is what follows its name in the same word, or NULL. */
static bool is_spelled(const char *word, const char *name, size_t len, const struct option *row,
		       char **value)
{
	*value = NULL;
	if (strncmp(word, name, len))
		return false;
	if (!word[len])
		return true;
	if (arity(row) != 1)
		return false;
	if (word[len] == '=')
		*value = (char *)word + len + 1;
	else if (!strcmp(row->args, "N") && word[len] >= '0' && word[len] <= '9')
		*value = (char *)word + len;
	return *value;
}

static const struct option *find_option(const char *word, char **value)
{
	const struct option *row;

	for (size_t i = 0; (row = option_row(i)); i++) {
		for (const char *name = row->names; *name; name += strspn(name, " ")) {
			size_t len = strcspn(name, " ");
			size_t dashes = (size_t)(without_dashes(name) - name);

			if (is_spelled(word, name + dashes, len - dashes, row, value))
				return row;
			name += len;
		}
	}
	return NULL;
}

static bool refuse_option(struct parser *parser, const char *word, const struct option *row)
{
	fprintf(stderr, "mpiexec: %s is not done here: %s\n", word, row->text);
	*parser->status = USAGE_ERROR;
	return false;
}

static bool parse_option(struct parser *parser)
{
	char *values[VALUES_MOST + 1] = { NULL };
	char *word = *parser->next++;
	const char *name = without_dashes(word);
	const struct option *row = find_option(name, &values[0]);
	char text[200];

	if (!row && (!strcmp(name, "help") || !strcmp(name, "h")))
		return show_help(parser);
	if (!row && (!strcmp(name, "version") || !strcmp(name, "V") || !strcmp(name, "info")))
		return show_version(parser);
	if (!row && (!strcmp(name, "status") || !strncmp(name, "status=", 7)))
		return print_job_status(parser, name[6] ? name + 7 : *parser->next);
	if (!row)
		return option_fail(parser, "unknown option", word);
	if (row->kind == OPTION_REFUSED)
		return refuse_option(parser, word, row);
	for (int i = values[0] ? 1 : 0; i < arity(row); i++) {
		if (!*parser->next) {
			snprintf(text, sizeof(text), "%.60s needs %s", word, row->args);
			return option_fail(parser, text, NULL);
		}
		values[i] = *parser->next++;
	}
	if (row->apply)
		return row->apply(parser, row, values);
	if (row->kind == OPTION_IGNORED && !parser->opt->quiet)
		fprintf(stderr, "mpiexec: %s is ignored: %s\n", word, row->text);
	return true;
}

/* ---- -soft ----------------------------------------------------------------------------------- */

/* Take "A", "A:B" or "A:B:STEP" off *text. */
static bool take_triplet(const char **text, long *first, long *last, long *step)
{
	long *numbers[] = { first, last, step };
	int n = 0;

	*step = 1;
	do {
		char *end;

		*numbers[n] = strtol(*text, &end, 10);
		if (end == *text || *numbers[n] > 1000000000 || *numbers[n] < -1000000000)
			return false;
		*text = end;
	} while (**text == ':' && ++n < 3 && (*text)++);
	if (!n)
		*last = *first;
	return (!**text || **text == ',') && *step;
}

/* Use the largest number of the set up to the requested one (MPI-4 §11.8.4). */
static bool apply_soft(struct parser *parser, struct app *app)
{
	const char *text = app->soft;
	long best = 0;

	do {
		long first = 0, last = 0, step = 1, top;

		if (!take_triplet(&text, &first, &last, &step))
			return option_fail(
				parser,
				"-soft needs numbers or A:B or A:B:STEP, with commas between",
				app->soft);
		if (step < 0) {
			long count = last > first ? -1 : (first - last) / -step;

			/* the same numbers from below */
			if (count < 0)
				continue;
			last = first;
			first = first + count * step;
			step = -step;
		}
		top = last < app->ranks ? last : app->ranks;
		if (top >= first && top - (top - first) % step > best)
			best = top - (top - first) % step;
	} while (*text++);
	if (!best)
		return option_fail(parser, "-soft has no number of ranks up to -n", app->soft);
	app->ranks = (int)best;
	return true;
}

bool options_count(struct options *opt, int *status)
{
	struct parser parser = { .opt = opt, .status = status };

	opt->ranks = 0;
	for (int i = 0; i < opt->n_apps; i++) {
		if (opt->apps[i].soft && !apply_soft(&parser, &opt->apps[i]))
			return false;
		opt->ranks += opt->apps[i].ranks;
		if (opt->ranks > MAX_RANKS)
			return option_fail(&parser, "more than 16384 ranks", NULL);
	}
	return true;
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool parse_app(struct parser *parser)
{
	struct options *opt = parser->opt;
	struct app *more = realloc(opt->apps, ((size_t)opt->n_apps + 1) * sizeof(*more));

	if (!more)
		return option_fail(parser, "out of memory", NULL);
	opt->apps = more;
	parser->app = &more[opt->n_apps++];
	*parser->app = (struct app){ .ranks = 0 };
	while (*parser->next && parser->next[0][0] == '-' && parser->next[0][1]) {
		if (!strcmp(*parser->next, "--")) {
			parser->next++;
			break;
		}
		if (!parse_option(parser))
			return false;
	}
	if (!*parser->next || !strcmp(*parser->next, ":"))
		return option_fail(parser, "no program to start", NULL);
	parser->app->argv = parser->next;
	while (*parser->next && strcmp(*parser->next, ":"))
		parser->next++;
	return true;
}

static bool check_together(struct parser *parser)
{
	const struct options *opt = parser->opt;

	if (opt->merge && opt->errfile && !(opt->outfile && !strcmp(opt->outfile, opt->errfile)))
		return option_fail(parser,
				   "-merge-stderr-to-stdout and -errfile-pattern exclude each "
				   "other; leave one out",
				   NULL);
	return true;
}

bool options_parse(struct options *opt, int argc, char **argv, int *status)
{
	struct parser parser = { .opt = opt, .next = argv + (argc > 0), .status = status };

	*opt = (struct options){
		.bind = UNIT_AUTO, .map = UNIT_MACHINE, .bind_count = 1, .deadlock_s = 60
	};
	while (parse_app(&parser)) {
		if (!*parser.next) {
			if (check_together(&parser))
				return true;
			break;
		}
		*parser.next++ = NULL; /* the colon */
	}
	options_fini(opt);
	return false;
}

int options_add_env(struct settings *env, const char *name, const char *value)
{
	struct setting *more = realloc(env->all, ((size_t)env->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	env->all = more;
	more[env->n++] = (struct setting){ name, value };
	return 0;
}

int options_own_env(struct settings *own)
{
	int n = 0;

	while (environ && environ[n])
		n++;
	own->all = calloc((size_t)n + 1, sizeof(*own->all));
	for (int i = 0; own->all && i < n; i++) {
		const char *equals = strchr(environ[i], '=');
		char *name = equals ? strndup(environ[i], (size_t)(equals - environ[i])) : NULL;
		char *value = name ? strdup(equals + 1) : NULL;

		if (equals && !value) {
			free(name);
			return -ENOMEM;
		}
		if (equals)
			own->all[own->n++] = (struct setting){ name, value };
	}
	return own->all ? 0 : -ENOMEM;
}

void options_free_env(struct settings *own)
{
	for (int i = 0; i < own->n; i++) {
		free((char *)(uintptr_t)own->all[i].name);
		free((char *)(uintptr_t)own->all[i].value);
	}
	free(own->all);
	*own = (struct settings){ .n = 0 };
}

bool options_is_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, len) && (!at[len] || at[len] == ','))
			return true;
	}
	return false;
}

void options_fini(struct options *opt)
{
	for (int i = 0; i < opt->n_apps; i++) {
		free(opt->apps[i].env.all);
		hosts_clear(&opt->apps[i].hosts);
	}
	free(opt->apps);
	free(opt->env.all);
	hosts_clear(&opt->hosts);
	for (int i = 0; i < opt->n_texts; i++)
		free(opt->texts[i]);
	free(opt->texts);
	configfile_free(&opt->file);
	*opt = (struct options){ .ranks = 0 };
}
