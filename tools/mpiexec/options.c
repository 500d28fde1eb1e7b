/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The parser of the command line. Options may be written with one dash or two. Options of the
 * whole job may stand before any of the programs.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "tools/mpiexec/host.h"
#include "tools/mpiexec/options.h"

enum { USAGE_ERROR = 2 };

static const char help[] =
	"usage: mpiexec [OPTION...] [-n N] PROGRAM [ARG...] [: [-n N] PROGRAM [ARG...]]...\n"
	"\n"
	"Starts N processes of each program on this machine as the ranks of one job.\n"
	"\n"
	"for the program that follows\n"
	"  -n N, -np N           start N ranks of it (default 1)\n"
	"  -env NAME VALUE       set an environment variable\n"
	"  -wdir DIR             start it in this directory\n"
	"  -path DIR[:DIR...]    look for it there\n"
	"  -soft SET             the largest number in the set up to N will do: A, A:B, "
	"A:B:STEP,...\n"
	"  -host NAME, -arch NAME\n"
	"                        this machine or kind of machine, as all ranks run here\n"
	"for the whole job\n"
	"  -genv NAME VALUE      set an environment variable for all ranks\n"
	"  --bind-to share|core|none\n"
	"                        give each rank an equal share of the cores, or one core "
	"(wrapping\n"
	"                        round when there are more ranks than cores), or leave them all "
	"to\n"
	"                        all; default share if there are enough cores, else none\n"
	"  -l, -prefix-rank      write \"[rank] \" before every line of output\n"
	"  --keep-going          let the others run on when a rank dies or fails\n"
	"  --timeout SECONDS     end the job after that time, with exit status 124\n"
	"  -configfile FILE      read the rest from a file, where each line is what stands "
	"between\n"
	"                        two colons\n"
	"  --help, --version\n"
	"\n"
	"The exit status is that of the first rank that failed, 128 + N if signal N killed it,\n"
	"127 or 126 if a program could not be started.\n";

/* The rest of the command line. */
struct args {
	char **next; /* ends with NULL */
	int *status;
};

static bool fail_option(struct args *args, const char *text, const char *what)
{
	fprintf(stderr, "mpiexec: %s%s%s; see mpiexec --help\n", text, what ? ": " : "",
		what ? what : "");
	*args->status = USAGE_ERROR;
	return false;
}

static bool show_option(struct args *args, const char *text)
{
	fputs(text, stdout);
	*args->status = fflush(stdout) ? 1 : 0;
	return false;
}

/*
 * Is the next word this option? With `value` the option takes one, from "-name value" or
 * "-name=value". *value stays NULL when there is none.
 */
static bool is_option(struct args *args, const char *name, const char **value)
{
	const char *word = *args->next;
	size_t len = strlen(name);

	word += word[0] == '-' && word[1] == '-' ? 2 : 1;
	if (strncmp(word, name, len) || (word[len] && !(value && word[len] == '=')))
		return false;
	args->next++;
	if (value && word[len])
		*value = word + len + 1;
	else if (value && *args->next)
		*value = *args->next++;
	return true;
}

static bool add_setting(struct args *args, struct setting **env, int *n_env)
{
	char *name = args->next[0];
	char *value = name ? args->next[1] : NULL;
	struct setting *more;

	if (!value || !*name || strchr(name, '='))
		return fail_option(args, "-env and -genv need NAME and VALUE as two words", name);
	more = realloc(*env, ((size_t)*n_env + 1) * sizeof(**env));
	if (!more)
		return fail_option(args, "out of memory", NULL);
	*env = more;
	more[(*n_env)++] = (struct setting){ name, value };
	args->next += 2;
	return true;
}

static bool set_ranks(struct args *args, struct app *app, const char *value)
{
	char *end = NULL;
	long n;

	errno = 0;
	n = value ? strtol(value, &end, 10) : 0;
	if (!end || end == value || *end || errno || n < 1 || n > MAX_RANKS)
		return fail_option(args, "-n needs a number from 1 to 16384", value);
	app->ranks = (int)n;
	return true;
}

static bool set_timeout(struct args *args, struct options *opt, const char *value)
{
	char *end = NULL;
	double s;

	s = value ? strtod(value, &end) : 0;
	if (!end || end == value || *end || !isfinite(s) || s <= 0 || s > 1e9)
		return fail_option(args, "--timeout needs a number of seconds above 0", value);
	opt->timeout_s = s;
	return true;
}

static bool set_bind(struct args *args, struct options *opt, const char *value)
{
	if (value && !strcmp(value, "share"))
		opt->bind = BIND_SHARE;
	else if (value && !strcmp(value, "core"))
		opt->bind = BIND_CORE;
	else if (value && !strcmp(value, "none"))
		opt->bind = BIND_NONE;
	else
		return fail_option(args, "--bind-to needs share, core or none", value);
	return true;
}

static bool check_host(struct args *args, const char *value)
{
	if (!value)
		return fail_option(args, "-host needs the name of this machine", NULL);
	return host_is_here(value) ||
	       fail_option(args,
			   "all ranks run on this machine, for others use "
			   "mpiexec.hydra or srun --mpi=pmi2; -host names another",
			   value);
}

static bool check_arch(struct args *args, const char *value)
{
	struct utsname names;

	if (value && !uname(&names) && strcmp(value, names.machine))
		return fail_option(args, "-arch does not name what this machine is", value);
	return value ? true : fail_option(args, "-arch needs a kind of machine", NULL);
}

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
static bool apply_soft(struct args *args, struct app *app)
{
	const char *text = app->soft;
	long best = 0;

	do {
		long first = 0, last = 0, step = 1, top;

		if (!take_triplet(&text, &first, &last, &step))
			return fail_option(
				args, "-soft needs numbers or A:B or A:B:STEP, with commas between",
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
		return fail_option(args, "-soft has no number of ranks up to -n", app->soft);
	app->ranks = (int)best;
	return true;
}

static bool read_configfile(struct args *args, struct options *opt, const char *value)
{
	char text[256];
	int err;

	if (!value || *args->next)
		return fail_option(args, "-configfile needs a file, and nothing may follow",
				   *args->next);
	if (opt->file.words)
		return fail_option(args, "a file named by -configfile names another", value);
	err = configfile_read(&opt->file, value);
	if (err) {
		snprintf(text, sizeof(text), "cannot read the -configfile %.150s: %s", value,
			 err == -EINVAL    ? "a quotation does not end"
			 : err == -ENODATA ? "there is nothing in it"
					   : strerror(-err));
		return fail_option(args, text, NULL);
	}
	args->next = opt->file.words;
	return true;
}

static bool parse_option(struct args *args, struct options *opt, struct app *app)
{
	const char *value = NULL;

	if (is_option(args, "n", &value) || is_option(args, "np", &value))
		return set_ranks(args, app, value);
	if (is_option(args, "wdir", &value)) {
		app->wdir = value;
		return value ? true : fail_option(args, "-wdir needs a directory", NULL);
	}
	if (is_option(args, "path", &value)) {
		app->path = value;
		return value ? true : fail_option(args, "-path needs directories", NULL);
	}
	if (is_option(args, "soft", &value)) {
		app->soft = value;
		return value ? true : fail_option(args, "-soft needs a set of numbers", NULL);
	}
	if (is_option(args, "host", &value))
		return check_host(args, value);
	if (is_option(args, "arch", &value))
		return check_arch(args, value);
	if (is_option(args, "configfile", &value))
		return read_configfile(args, opt, value);
	if (is_option(args, "env", NULL))
		return add_setting(args, &app->env, &app->n_env);
	if (is_option(args, "genv", NULL))
		return add_setting(args, &opt->env, &opt->n_env);
	if (is_option(args, "bind-to", &value))
		return set_bind(args, opt, value);
	if (is_option(args, "timeout", &value))
		return set_timeout(args, opt, value);
	if (is_option(args, "l", NULL) || is_option(args, "prefix-rank", NULL))
		return opt->label = true;
	if (is_option(args, "keep-going", NULL))
		return opt->keep_going = true;
	if (is_option(args, "help", NULL) || is_option(args, "h", NULL))
		return show_option(args, help);
	if (is_option(args, "version", NULL))
		return show_option(args, "mpiexec (Postern) " POSTERN_VERSION "\n");
	return fail_option(args, "unknown option", *args->next);
}

static bool parse_app(struct args *args, struct options *opt)
{
	struct app *more = realloc(opt->apps, ((size_t)opt->n_apps + 1) * sizeof(*more));
	struct app *app;

	if (!more)
		return fail_option(args, "out of memory", NULL);
	opt->apps = more;
	app = &more[opt->n_apps++];
	*app = (struct app){ .ranks = 1 };
	while (*args->next && args->next[0][0] == '-' && args->next[0][1])
		if (!parse_option(args, opt, app))
			return false;
	if (!*args->next || !strcmp(*args->next, ":"))
		return fail_option(args, "no program to start", NULL);
	app->argv = args->next;
	while (*args->next && strcmp(*args->next, ":"))
		args->next++;
	if (app->soft && !apply_soft(args, app))
		return false;
	opt->ranks += app->ranks;
	if (opt->ranks > MAX_RANKS)
		return fail_option(args, "more than 16384 ranks", NULL);
	return true;
}

bool options_parse(struct options *opt, int argc, char **argv, int *status)
{
	struct args args = { .next = argv + (argc > 0), .status = status };

	*opt = (struct options){ .bind = BIND_AUTO };
	while (parse_app(&args, opt)) {
		if (!*args.next)
			return true;
		*args.next++ = NULL; /* the colon */
	}
	options_fini(opt);
	return false;
}

void options_fini(struct options *opt)
{
	for (int i = 0; i < opt->n_apps; i++)
		free(opt->apps[i].env);
	free(opt->apps);
	free(opt->env);
	configfile_free(&opt->file);
	*opt = (struct options){ .ranks = 0 };
}
