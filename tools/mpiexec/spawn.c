/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * From the lines of PMI-1's spawn command to an mpiexec that runs what they say: see spawn.h.
 */
#define _GNU_SOURCE
#include "tools/mpiexec/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "tools/mpiexec/host.h"
#include "tools/mpiexec/loop.h"
#include "tools/mpiexec/output.h"

enum {
	MOST_COMMANDS = 1024,
	MOST_ARGS = 65536,     /* of a command */
	MOST_PAIRS = 1 << 16,  /* bytes of what ranks are told */
	MOST_BYTES = 64 << 20, /* of the lines of all commands */
	FIXED_WORDS = 16       /* of a command line, besides arguments */
};

#define ENV_PAIRS "POSTERN_SPAWN_PAIRS"
#define ENV_PIPE  "POSTERN_SPAWN_PIPE"

/* One command: a program and the number of its processes. */
struct command {
	int ranks;
	char *file, *wdir, *path, *soft;
	char **arg;
	int n_args;
};

/* The commands of a rank, as they come in. */
struct spawning {
	struct command *all;
	int n, total, ended;
	bool begun; /* the last command is not at its end */
	size_t bytes;
	char *pairs, key[64], info[64];
	size_t pairs_len;
	char trouble[256]; /* why nothing will be spawned; no blanks */
};

/* A spawned job. */
struct nested {
	struct nested *next;
	pid_t pid;
	int rank; /* that spawned it; -1: it has its answer */
	bool started;
	struct watch pipe;
};

static const struct options *opt;
static const struct spawn_events *events;
static struct spawning *spawning; /* by rank */
static struct nested *nested;
static int report_fd = -1;

int spawn_init(const struct options *options, const struct spawn_events *what)
{
	opt = options;
	events = what;
	spawning = calloc((size_t)options->ranks, sizeof(*spawning));
	return spawning ? 0 : -ENOMEM;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void set_trouble(struct spawning *s, const char *text)
{
	if (*s->trouble)
		return;
	snprintf(s->trouble, sizeof(s->trouble), "%s", text);
	for (char *c = s->trouble; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '_';
}

static void free_spawned(struct command *c)
{
	for (int i = 0; i < c->n_args; i++)
		free(c->arg[i]);
	free(c->arg);
	free(c->file);
	free(c->wdir);
	free(c->path);
	free(c->soft);
}

void spawn_forget(int rank)
{
	struct spawning *s = &spawning[rank];

	for (int i = 0; i < s->n; i++)
		free_spawned(&s->all[i]);
	free(s->all);
	free(s->pairs);
	*s = (struct spawning){ .n = 0 };
}

static struct command *present_command(struct spawning *s)
{
	struct command *more;

	if (s->begun)
		return &s->all[s->n - 1];
	more = s->n < MOST_COMMANDS ? realloc(s->all, ((size_t)s->n + 1) * sizeof(*more)) : NULL;
	if (!more)
		return NULL;
	s->all = more;
	s->begun = true;
	s->all[s->n] = (struct command){ .ranks = 0 };
	return &s->all[s->n++];
}

static void replace_text(struct spawning *s, char **text, const char *value)
{
	free(*text);
	*text = strdup(value);
	if (!*text)
		set_trouble(s, "out of memory");
}

static void add_arg(struct spawning *s, struct command *c, const char *value)
{
	char **more = c->n_args < MOST_ARGS
			      ? realloc(c->arg, ((size_t)c->n_args + 1) * sizeof(*more))
			      : NULL;

	if (!more) {
		set_trouble(s, "too many arguments");
		return;
	}
	c->arg = more;
	c->arg[c->n_args] = NULL;
	replace_text(s, &c->arg[c->n_args], value);
	c->n_args += c->arg[c->n_args] != NULL;
	if (!strcmp(value, ":"))
		set_trouble(s, "an argument that is a colon alone cannot be passed on");
}

/* Pairs that ranks are told become lines "key=value". */
static void add_preput(struct spawning *s, const char *value)
{
	size_t len = strlen(s->key) + strlen(value) + 2;
	char *more =
		s->pairs_len + len < MOST_PAIRS ? realloc(s->pairs, s->pairs_len + len + 1) : NULL;

	if (!more) {
		set_trouble(s, "too much to tell the new processes");
		return;
	}
	s->pairs = more;
	s->pairs_len += (size_t)sprintf(s->pairs + s->pairs_len, "%s=%s\n", s->key, value);
}

static void add_info(struct spawning *s, struct command *c, const char *value)
{
	if (!strcmp(s->info, "wdir"))
		replace_text(s, &c->wdir, value);
	else if (!strcmp(s->info, "path"))
		replace_text(s, &c->path, value);
	else if (!strcmp(s->info, "soft"))
		replace_text(s, &c->soft, value);
	else if (!strcmp(s->info, "host") && !host_is_here(value))
		set_trouble(s, "this mpiexec starts processes on its own host only");
}

static void take_number(struct spawning *s, int *number, const char *value, int most)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (end == value || *end || n < 1 || n > most)
		set_trouble(s, "a number of processes is none");
	else
		*number = (int)n;
}

static void keep_key(char key[64], const char *value)
{
	snprintf(key, 64, "%s", value);
}

static void take_pair(struct spawning *s, struct command *c, const char *name, const char *value)
{
	if (!strcmp(name, "nprocs"))
		take_number(s, &c->ranks, value, MAX_RANKS);
	else if (!strcmp(name, "totspawns"))
		take_number(s, &s->total, value, MOST_COMMANDS);
	else if (!strcmp(name, "execname"))
		replace_text(s, &c->file, value);
	else if (!strncmp(name, "preput_key_", 11))
		keep_key(s->key, value);
	else if (!strncmp(name, "preput_val_", 11))
		add_preput(s, value);
	else if (!strncmp(name, "info_key_", 9))
		keep_key(s->info, value);
	else if (!strncmp(name, "info_val_", 9))
		add_info(s, c, value);
	else if (!strncmp(name, "arg", 3) && name[3] >= '0' && name[3] <= '9')
		add_arg(s, c, value);
}

void spawn_line(int rank, const char *line, size_t len)
{
	struct spawning *s = &spawning[rank];
	struct command *c = present_command(s);
	char *copy, *equals;

	s->bytes += len;
	if (!c || s->bytes > MOST_BYTES || memchr(line, '\0', len)) {
		set_trouble(s, "the command is too long");
		return;
	}
	copy = strndup(line, len);
	equals = copy ? strchr(copy, '=') : NULL;
	if (equals) {
		*equals = '\0';
		take_pair(s, c, copy, equals + 1);
	} else {
		set_trouble(s, "a line of the command is none");
	}
	free(copy);
}

/* ---- the mpiexec of a job -------------------------------------------------------------------- */

/* Its command line, which ends with NULL. The words are those of the commands. */
static char **make_words(const struct spawning *s)
{
	size_t most = FIXED_WORDS;
	char **words;
	int n = 0;

	for (int i = 0; i < s->n; i++)
		most += FIXED_WORDS + (size_t)s->all[i].n_args;
	words = calloc(most, sizeof(*words));
	if (!words)
		return NULL;
	words[n++] = (char *)(uintptr_t) "mpiexec";
	words[n++] = (char *)(uintptr_t) "--launcher";
	words[n++] = (char *)(uintptr_t) "embedded";
	words[n++] = (char *)(uintptr_t) "-s";
	words[n++] = (char *)(uintptr_t) "none";
	if (opt->label)
		words[n++] = (char *)(uintptr_t) "-l";
	if (opt->keep_going)
		words[n++] = (char *)(uintptr_t) "--keep-going";
	for (int i = 0; i < s->n; i++) {
		const struct command *c = &s->all[i];
		const struct {
			const char *option;
			char *value;
		} with[] = { { "-wdir", c->wdir }, { "-path", c->path }, { "-soft", c->soft } };

		if (i)
			words[n++] = (char *)(uintptr_t) ":";
		words[n++] = (char *)(uintptr_t) "-n";
		if (asprintf(&words[n], "%d", c->ranks) < 0)
			words[n] = (char *)(uintptr_t) "0";
		n++;
		for (size_t j = 0; j < sizeof(with) / sizeof(with[0]); j++)
			if (with[j].value) {
				words[n++] = (char *)(uintptr_t)with[j].option;
				words[n++] = with[j].value;
			}
		words[n++] = c->file;
		for (int j = 0; j < c->n_args; j++)
			words[n++] = c->arg[j];
	}
	return words;
}

/* In the child: become the mpiexec of the job. */
static void __attribute__((noreturn))
run_nested(const struct spawning *s, int pipe_end, pid_t parent)
{
	char number[16], **words = make_words(s);
	int null = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!words || getppid() != parent)
		_exit(1);
	setpgid(0, 0);
	dup2(null, 0);
	fcntl(pipe_end, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", pipe_end);
	setenv(ENV_PIPE, number, 1);
	setenv(ENV_PAIRS, s->pairs ? s->pairs : "", 1);
	for (int i = 0; i < opt->env.n; i++)
		if (opt->env.all[i].value)
			setenv(opt->env.all[i].name, opt->env.all[i].value, 1);
	loop_signals_back();
	execv("/proc/self/exe", words);
	_exit(1);
}

static void answer_once(struct nested *job, const char *trouble)
{
	int rank = job->rank;

	job->rank = -1;
	if (rank >= 0)
		events->answer(rank, trouble);
}

/* The job has been started; or its mpiexec ends, and says why by itself. */
static void pipe_ready(struct watch *watch, uint32_t flags)
{
	struct nested *job = watch_of(watch, struct nested, pipe);
	char byte;

	(void)flags;
	job->started = read(watch->fd, &byte, 1) == 1;
	loop_close(watch);
	answer_once(job, job->started ? NULL : "the_processes_could_not_be_started");
}

/* Returns NULL, or why there is no job. */
static const char *start_nested(int rank, const struct spawning *s)
{
	struct nested *job = calloc(1, sizeof(*job));
	pid_t parent = getpid();
	int fds[2];

	if (!job)
		return "out_of_memory";
	if (pipe2(fds, O_CLOEXEC)) {
		free(job);
		return "no_descriptors_are_left";
	}
	job->rank = rank;
	job->pid = fork();
	if (!job->pid)
		run_nested(s, fds[1], parent);
	close(fds[1]);
	if (job->pid < 0 || loop_add(&job->pipe, fds[0], EPOLLIN, pipe_ready)) {
		if (job->pid > 0)
			kill(job->pid, SIGKILL);
		close(fds[0]);
		free(job);
		return "no_process_can_be_started";
	}
	setpgid(job->pid, job->pid);
	job->next = nested;
	nested = job;
	return NULL;
}

void spawn_command_end(int rank)
{
	struct spawning *s = &spawning[rank];
	const char *trouble = NULL;

	if (!s->begun || !s->all[s->n - 1].file || !s->all[s->n - 1].ranks)
		set_trouble(s, "the command names no program or no number");
	else if (s->all[s->n - 1].file[0] == '-')
		set_trouble(s, "the program's name begins with a minus sign");
	s->begun = false;
	if (++s->ended < s->total)
		return; /* further ones belong to it; one answer is for all, in trouble as well */
	if (*s->trouble)
		trouble = s->trouble;
	else
		trouble = start_nested(rank, s);
	if (trouble)
		events->answer(rank, trouble);
	spawn_forget(rank);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

void spawn_signal(int sig)
{
	for (const struct nested *job = nested; job; job = job->next)
		kill(job->pid, sig);
}

bool spawn_reaped(pid_t pid, int status)
{
	struct nested **at = &nested, *job;
	bool started;

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	job = *at;
	if (!job)
		return false;
	if (job->pipe.fd >= 0)
		pipe_ready(&job->pipe, EPOLLIN);
	*at = job->next;
	started = job->started;
	free(job);
	if (started)
		events->ended(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return true;
}

int spawn_running(void)
{
	int n = 0;

	for (const struct nested *job = nested; job; job = job->next)
		n++;
	return n;
}

/* ---- in a spawned job ------------------------------------------------------------------------ */

char *spawn_pairs(void)
{
	const char *number = base_config_env(ENV_PIPE), *pairs;
	char *copy;

	if (!number)
		return NULL;
	report_fd = atoi(number);
	fcntl(report_fd, F_SETFD, FD_CLOEXEC);
	pairs = base_config_env(ENV_PAIRS);
	copy = strdup(pairs ? pairs : "");
	unsetenv(ENV_PIPE);
	unsetenv(ENV_PAIRS);
	return copy;
}

void spawn_started(void)
{
	if (report_fd < 0)
		return;
	if (write(report_fd, "+", 1) != 1)
		say("cannot tell the mpiexec above: %m");
	close(report_fd);
	report_fd = -1;
}
