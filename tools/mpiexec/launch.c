/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * fork, the steps between, exec. The child reports which step failed, and why, through a pipe
 * that exec closes. Only the parent prints messages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "tools/mpiexec/affinity.h"
#include "tools/mpiexec/guard.h"
#include "tools/mpiexec/launch.h"
#include "tools/mpiexec/loop.h"

enum step { STEP_FILES, STEP_WDIR, STEP_ENV, STEP_BIND, STEP_EXEC };

struct report {
	enum step step;
	int err;
};

/* Both ends of all files between mpiexec and the child; -1: there is none. */
struct ends {
	int pmi[2], out[2], err[2], report[2]; /* [0] ours, [1] the child's */
};

enum { STATUS_NOT_STARTED = 126, STATUS_NOT_FOUND = 127 };

static void __attribute__((noreturn)) child_fail(const struct ends *ends, enum step step)
{
	struct report report = { step, errno };
	ssize_t n = write(ends->report[1], &report, sizeof(report));

	_exit(n == sizeof(report) ? STATUS_NOT_STARTED : STATUS_NOT_FOUND);
}

static int child_files(const struct launch *what, const struct ends *ends)
{
	int in = what->stdin_fd;

	if (in < 0)
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	/* dup2 to itself would keep close-on-exec; in == 0 can only be the inherited fd 0 */
	if (in < 0 || (in != 0 && dup2(in, 0) < 0))
		return -1;
	if (what->pipes.out && dup2(ends->out[1], 1) < 0)
		return -1;
	if (what->pipes.err && dup2(what->pipes.one ? ends->out[1] : ends->err[1], 2) < 0)
		return -1;
	if (what->opt->merge && dup2(1, 2) < 0)
		return -1;
	return fcntl(ends->pmi[1], F_SETFD, 0);
}

static int set_number(const char *name, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	return setenv(name, text, 1);
}

/* A value of mpiexec's own needs no setting, but where all others are gone. */
static int set_all(const struct settings *env, const struct settings *own)
{
	int err = 0;

	for (int i = 0; i < env->n; i++) {
		const char *value = env->all[i].value;

		for (int j = 0; !value && j < own->n; j++)
			if (!strcmp(own->all[j].name, env->all[i].name))
				value = own->all[j].value;
		if (value)
			err |= setenv(env->all[i].name, value, 1);
	}
	return err;
}

/* Keep variables of ours: all, none, or those of a list. */
static int pass_env(enum env_pass pass, const char *list, const struct settings *own)
{
	int err = 0;

	if (pass != ENV_NONE && pass != ENV_LIST)
		return 0;
	if (clearenv())
		return -1;
	for (int i = 0; pass == ENV_LIST && i < own->n; i++)
		if (options_is_listed(list, own->all[i].name))
			err |= setenv(own->all[i].name, own->all[i].value, 1);
	return err;
}

static int child_env(const struct launch *what, int pmi_fd)
{
	const struct options *opt = what->opt;
	const struct app *app = what->app;
	struct settings own = { .n = 0 };
	int err;

	/* an outer launcher may have set these */
	unsetenv("PMI_PORT");
	unsetenv("PMI_ID");
	unsetenv("PMI_SPAWNED");
	unsetenv("PMIX_NAMESPACE");
	unsetenv("PMIX_RANK");
	unsetenv("MPI_LOCALRANKID");
	if (options_own_env(&own))
		return -1;
	err = app->pass ? pass_env(app->pass, app->pass_list, &own)
			: pass_env(opt->pass, opt->pass_list, &own);
	err |= set_all(&opt->env, &own);
	err |= set_all(&app->env, &own);
	err |= set_number("PMI_FD", pmi_fd);
	err |= set_number("PMI_RANK", what->rank);
	err |= set_number("PMI_SIZE", opt->ranks);
	err |= setenv("PMI_JOBID", what->job_name, 1);
	if (what->spawned)
		err |= setenv("PMI_SPAWNED", "1", 1);
	return err; /* a child's memory goes with it */
}

/* Execute a file. One that is not a binary runs as a shell script, as with execvp. */
static void exec_file(char *file, char **argv)
{
	char **shell;
	int args = 0;

	execv(file, argv);
	if (errno != ENOEXEC)
		return;
	while (argv[args])
		args++;
	shell = calloc((size_t)args + 2, sizeof(*shell));
	if (!shell)
		return;
	shell[0] = (char[]){ "/bin/sh" };
	shell[1] = file;
	for (int i = 1; i < args; i++)
		shell[i + 1] = argv[i];
	execv(shell[0], shell);
	free(shell);
}

/* Search `path` for the program, as execvp does with PATH. */
static void exec_in(const char *path, char **argv)
{
	int err = ENOENT;

	do {
		size_t len = strcspn(path, ":");
		char file[4096];

		if (snprintf(file, sizeof(file), "%.*s/%s", len ? (int)len : 1, len ? path : ".",
			     argv[0]) < (int)sizeof(file)) {
			exec_file(file, argv);
			if (errno != ENOENT && errno != ENOTDIR)
				err = errno;
		}
		path += len;
	} while (*path++);
	errno = err;
}

static void __attribute__((noreturn))
child_run(const struct launch *what, const struct ends *ends, pid_t parent)
{
	char **argv = what->app->argv;
	const char *path = what->app->path;
	int err;

	/* from here on we die with mpiexec; it may have died before */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(STATUS_NOT_STARTED);
	setpgid(0, 0);
	guard_set(what->rank, getpid());
	if (child_files(what, ends))
		child_fail(ends, STEP_FILES);
	if (what->app->wdir && chdir(what->app->wdir))
		child_fail(ends, STEP_WDIR);
	if (child_env(what, ends->pmi[1]))
		child_fail(ends, STEP_ENV);
	err = what->bound ? affinity_apply() : 0;
	if (err && what->opt->bind != UNIT_AUTO) {
		errno = -err;
		child_fail(ends, STEP_BIND);
	}
	setrlimit(RLIMIT_NOFILE, &what->state->files);
	sigaction(SIGPIPE, &what->state->sigpipe, NULL);
	sigaction(SIGXFSZ, &what->state->sigxfsz, NULL);
	loop_signals_back();
	/* a rank without our variables is found where we would find it */
	if (!path && !base_config_env("PATH"))
		path = what->search;
	if (path && !strchr(argv[0], '/'))
		exec_in(path, argv);
	else
		execvp(argv[0], argv);
	child_fail(ends, STEP_EXEC);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static void close_pair(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	fds[0] = fds[1] = -1;
}

static void close_ends(struct ends *ends)
{
	close_pair(ends->pmi);
	close_pair(ends->out);
	close_pair(ends->err);
	close_pair(ends->report);
}

/* On failure *call is the call that failed. */
static int open_ends(struct ends *ends, const struct output_pipes *pipes, const char **call)
{
	*ends = (struct ends){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends->pmi)) {
		*call = "socketpair";
		return -1;
	}
	*call = "pipe2";
	if (pipe2(ends->report, O_CLOEXEC))
		return -1;
	if (pipes->out && pipe2(ends->out, O_CLOEXEC))
		return -1;
	return pipes->err && !pipes->one ? pipe2(ends->err, O_CLOEXEC) : 0;
}

/* Is the program named by a path, and does the file exist? Then "not found" is about its
 * interpreter. */
static bool is_there(const struct launch *what)
{
	const char *program = what->app->argv[0];
	struct stat st;
	char path[4096];

	if (!strchr(program, '/'))
		return false;
	if (!what->app->wdir || program[0] == '/')
		return !stat(program, &st);
	snprintf(path, sizeof(path), "%s/%s", what->app->wdir, program);
	return !stat(path, &st);
}

static int explain_exec(const struct launch *what, int err)
{
	const char *program = what->app->argv[0];

	errno = err;
	switch (err) {
	case ENOENT:
		if (is_there(what))
			say("cannot start %s: %m, though the file is there; the interpreter it "
			    "names "
			    "in its first line, or its dynamic loader, is missing",
			    program);
		else if (what->app->path && !strchr(program, '/'))
			say("cannot start %s: no such program in -path %s", program,
			    what->app->path);
		else if (strchr(program, '/'))
			say("cannot start %s: %m; give the path of a program", program);
		else
			say("cannot start %s: no such program in PATH; give its path, such as ./%s",
			    program, program);
		return STATUS_NOT_FOUND;
	case EACCES:
		say("cannot start %s: %m; it must be an executable file (chmod +x) in directories "
		    "that "
		    "can be searched, on a file system not mounted noexec",
		    program);
		break;
	case ENOEXEC:
		say("cannot start %s: %m; it is no program for this machine", program);
		break;
	case E2BIG:
		say("cannot start %s: %m; shorten its arguments or the environment", program);
		break;
	default:
		say("cannot start %s: %m", program);
	}
	return STATUS_NOT_STARTED;
}

static int explain(const struct launch *what, const struct report *report)
{
	errno = report->err;
	switch (report->step) {
	case STEP_EXEC:
		return explain_exec(what, report->err);
	case STEP_WDIR:
		say("cannot start %s in the directory %s: %m; correct -wdir", what->app->argv[0],
		    what->app->wdir);
		break;
	case STEP_BIND:
		say("cannot bind rank %d to its cores: %m; try --bind-to none", what->rank);
		break;
	case STEP_ENV:
		say("cannot set the environment of rank %d: %m", what->rank);
		break;
	default:
		say("cannot set up the files of rank %d: %m%s", what->rank,
		    report->err == EMFILE ? "; raise `ulimit -n`" : "");
	}
	return STATUS_NOT_STARTED;
}

/* Wait for exec, which closes the pipe. Returns 0, or the exit status if there was no exec. */
static int await_exec(const struct launch *what, int fd)
{
	struct report report;
	ssize_t n;

	do
		n = read(fd, &report, sizeof(report));
	while (n < 0 && errno == EINTR);
	return n == sizeof(report) ? explain(what, &report) : 0;
}

static int give_launch_up(const struct launch *what, struct ends *ends, const char *call)
{
	if (errno == EPERM || errno == ENOSYS)
		say_refused(call, errno);
	else
		say("cannot start rank %d: %s: %m; start fewer ranks or raise the limit (ulimit "
		    "-n for files, -u for processes)",
		    what->rank, call);
	close_ends(ends);
	return STATUS_NOT_STARTED;
}

int launch(const struct launch *what, struct launched *got)
{
	pid_t parent = getpid();
	const char *call;
	struct ends ends;
	int status;

	if (open_ends(&ends, &what->pipes, &call))
		return give_launch_up(what, &ends, call);
	got->pid = fork();
	if (got->pid < 0)
		return give_launch_up(what, &ends, "fork");
	if (!got->pid)
		child_run(what, &ends, parent);
	/* here as well, so that the group exists whichever process runs first */
	setpgid(got->pid, got->pid);
	close(ends.report[1]);
	ends.report[1] = -1;
	status = await_exec(what, ends.report[0]);
	if (status) {
		close_ends(&ends);
		return status;
	}
	got->pmi_fd = ends.pmi[0];
	got->out_fd = ends.out[0];
	got->err_fd = ends.err[0];
	ends.pmi[0] = ends.out[0] = ends.err[0] = -1;
	close_ends(&ends);
	return 0;
}
