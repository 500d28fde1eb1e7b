/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The life of a job:
 *
 *   RUNNING   until all ranks have exited, or something ends the job: a rank that dies or fails
 *             before it has left the job (not with --keep-going), an abort, a fence that cannot
 *             end, the timeout
 *   ENDING    SIGTERM was sent; GRACE_S later SIGKILL
 *   KILLED    SIGKILL was sent; after LAST_S more mpiexec gives up waiting
 *
 * Each rank leads a process group. A job is over when no process is left in any of these
 * groups. mpiexec is a subreaper, so that it also learns when processes that the ranks have
 * started die. The first failure decides the exit status.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "runtime/rt_names.h"
#include "tools/mpiexec/affinity.h"
#include "tools/mpiexec/deadlock.h"
#include "tools/mpiexec/guard.h"
#include "tools/mpiexec/input.h"
#include "tools/mpiexec/job.h"
#include "tools/mpiexec/launch.h"
#include "tools/mpiexec/loop.h"
#include "tools/mpiexec/output.h"
#include "tools/mpiexec/pmi_server.h"
#include "tools/mpiexec/spawn.h"

enum {
	GRACE_S = 2,
	LAST_S = 10,
	CLOSED_S = 1,
	TERM_S = 10,
	STATUS_TIMEOUT = 124,
	STATUS_DEADLOCK = 250
};

/* timeout(1) sends a signal twice; so soon it is one. */
static const double TWICE_S = 0.2;

enum state { RUNNING, ENDING, KILLED, GIVEN_UP };

struct rank {
	const struct app *app;
	pid_t pid;    /* kept after exit, for messages */
	bool started; /* and not yet reaped */
	bool group;   /* its process group has members */
	bool closed;  /* its connection has ended */
};

static const struct options *opt;
static struct rank *ranks;
static int n_running; /* ranks started and not reaped */
static enum state state;
static int exit_status;
static bool draining;        /* no process is left, but some output is not written */
static int forwarded_signal; /* the last forwarded signal that ends a process, 0 for none */
static bool asked_to_end;
static bool asked_before; /* and the next signal is another one */
static char job_name[160];
static char *pairs; /* what the ranks of a spawned job are told */
static char host[65];
static const char *search;
static struct launch_state found;
static struct timer timeout, grace, closed, twice, quit_twice, term;

/* The first failure stays. */
static void set_job_status(int status)
{
	if (!exit_status)
		exit_status = status;
}

/* ---- signals to the ranks -------------------------------------------------------------------- */

static void signal_ranks(int sig)
{
	for (int i = 0; i < opt->ranks; i++)
		if (ranks[i].group)
			kill(-ranks[i].pid, sig);
	spawn_signal(sig);
}

static void grace_over(void);

static void kill_job(void)
{
	if (state >= KILLED)
		return;
	state = KILLED;
	signal_ranks(SIGKILL);
	loop_timer(&grace, LAST_S, grace_over);
}

static void end_job(void)
{
	if (state != RUNNING)
		return;
	state = ENDING;
	signal_ranks(SIGTERM);
	signal_ranks(SIGCONT); /* a stopped process must be able to end */
	loop_timer(&grace, GRACE_S, grace_over);
}

static void grace_over(void)
{
	if (draining)
		return;
	if (state == ENDING) {
		kill_job();
		return;
	}
	for (int i = 0; i < opt->ranks; i++)
		if (ranks[i].group)
			say("process group %d of rank %d does not die of SIGKILL; leaving it",
			    (int)ranks[i].pid, i);
	state = GIVEN_UP;
}

static void timeout_over(void)
{
	if (state != RUNNING || draining)
		return;
	say("%g s are over; ending the job", opt->timeout_s);
	set_job_status(STATUS_TIMEOUT);
	if (!deadlock_report(end_job))
		end_job();
}

static void deadlock_over(void)
{
	if (state != RUNNING || draining)
		return;
	say("--deadlock-abort: ending the job");
	set_job_status(STATUS_DEADLOCK);
	end_job();
}

/* ---- ranks go -------------------------------------------------------------------------------- */

/* "rank 3 (pid 123 on host, ./prog)" */
static const char *describe(int rank)
{
	static char text[256];

	snprintf(text, sizeof(text), "rank %d (pid %d on %s, %.100s)", rank, (int)ranks[rank].pid,
		 host, ranks[rank].app->argv[0]);
	return text;
}

static void rank_failed(int rank, int status)
{
	const char *ending = state == RUNNING && !opt->keep_going ? "; ending the job" : "";

	if (state >= KILLED || (state == ENDING && exit_status))
		return; /* it died of our signal */
	if (WIFEXITED(status))
		say("%s exited with status %d%s", describe(rank), WEXITSTATUS(status), ending);
	else if (WTERMSIG(status) != forwarded_signal)
		say("%s was killed by signal %d (%s)%s%s", describe(rank), WTERMSIG(status),
		    strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "", ending);
}

/* Note when no process is left in a rank's group. */
static void check_group(int rank)
{
	if (!ranks[rank].group || ranks[rank].started || !kill(-ranks[rank].pid, 0) ||
	    errno != ESRCH)
		return;
	ranks[rank].group = false;
	guard_set(rank, 0);
}

static void rank_exited(int rank, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	bool left;

	ranks[rank].started = false;
	deadlock_rank(rank, 0);
	n_running--;
	output_collect(rank);
	/* its last request may be an abort or a finalize */
	pmi_server_collect(rank);
	left = pmi_server_finalized(rank) && WIFEXITED(status);
	if (code && !left)
		rank_failed(rank, status);
	if (code)
		set_job_status(code);
	if (code && !left && !opt->keep_going)
		end_job();
	pmi_server_gone(rank);
	spawn_forget(rank);
	check_group(rank);
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		int rank = 0;

		if (spawn_reaped(pid, status))
			continue;
		while (rank < opt->ranks && !(ranks[rank].started && ranks[rank].pid == pid))
			rank++;
		if (rank < opt->ranks)
			rank_exited(rank, status);
	}
	/* also for processes that ranks have started and left behind */
	for (int i = 0; i < opt->ranks; i++)
		check_group(i);
}

static bool any_group(void)
{
	for (int i = 0; i < opt->ranks; i++)
		if (ranks[i].group)
			return true;
	return false;
}

/* A job that a rank has spawned failed: its mpiexec has said why. */
static void spawned_ended(int code)
{
	if (!code)
		return;
	set_job_status(code);
	if (!opt->keep_going)
		end_job();
}

static void rank_aborted(int rank, int code)
{
	if (state != RUNNING)
		return;
	output_collect(rank);
	say("%s aborted the job with code %d; ending it", describe(rank), code);
	set_job_status(code & 0xff ? code & 0xff : 1);
	end_job();
}

static void closed_over(void)
{
	for (int i = 0; i < opt->ranks; i++)
		if (ranks[i].closed)
			pmi_server_gone(i);
}

/* A process that dies loses its connection a moment before its death is known. The message
 * should then say what it died of. So wait a little. */
static void rank_closed(int rank)
{
	ranks[rank].closed = true;
	loop_timer(&closed, CLOSED_S, closed_over);
}

static void fence_stuck(int rank, int waiting)
{
	if (state != RUNNING)
		return;
	say("%s has left the job, but %d of %d ranks wait for it in a fence; ending the job",
	    describe(rank), waiting, opt->ranks);
	set_job_status(1);
	end_job();
}

/* ---- signals to mpiexec ---------------------------------------------------------------------- */

static void nothing(void)
{
}

static void twice_over(void)
{
	asked_before = true;
}

static void term_over(void)
{
	if (state != RUNNING || draining)
		return;
	say("ranks are still there %d s after SIGTERM; killing the job", TERM_S);
	set_job_status(128 + SIGTERM);
	kill_job();
}

static void forward_end(int sig)
{
	if (twice.due && sig == forwarded_signal)
		return;
	if (draining) {
		set_job_status(128 + sig);
		state = GIVEN_UP; /* only the reader of our output is waited for */
		return;
	}
	if (sig != SIGHUP && (asked_before || state != RUNNING)) {
		if (state < KILLED)
			say("killing the job");
		set_job_status(128 + sig);
		kill_job();
		return;
	}
	forwarded_signal = sig;
	if (sig != SIGHUP) { /* which may mean "read your files again" */
		asked_to_end = true;
		loop_timer(&twice, TWICE_S, twice_over);
	}
	if (sig == SIGTERM)
		loop_timer(&term, TERM_S, term_over);
	signal_ranks(sig);
	signal_ranks(SIGCONT);
}

static void forward_quit(void)
{
	forward_end(SIGQUIT);
}

/* Say what the ranks wait for, while they are there. */
static void report_and_quit(void)
{
	if (quit_twice.due)
		return;
	loop_timer(&quit_twice, TWICE_S, nothing);
	if (state != RUNNING || draining || !deadlock_report(forward_quit))
		forward_quit();
}

static void take_signal(int sig)
{
	switch (sig) {
	case SIGCHLD:
		reap();
		break;
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
		forward_end(sig);
		break;
	case SIGQUIT:
		report_and_quit();
		break;
	case SIGTSTP:
		signal_ranks(SIGTSTP);
		raise(SIGSTOP);
		break;
	case SIGCONT:
		signal_ranks(SIGCONT);
		input_check_again();
		break;
	default:
		signal_ranks(sig);
	}
}

/* ---- starting -------------------------------------------------------------------------------- */

static int fail_start(const char *what, int err)
{
	say("%s: %s", what, strerror(-err));
	return err;
}

static void start_signals(void)
{
	static const int taken[] = { SIGCHLD, SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
				     SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	loop_signals(taken, sizeof(taken) / sizeof(taken[0]), take_signal);
	sigaction(SIGPIPE, &ignore, &found.sigpipe);
	/* here a file that may grow no more is a write error */
	sigaction(SIGXFSZ, &ignore, &found.sigxfsz);
}

/* Every rank costs a connection and up to two pipes, more for files and shared input. False: there
 * is room for the connections only. */
static bool raise_file_limit(void)
{
	rlim_t each = 3 + input_is_shared() + !!opt->outfile + !!opt->errfile;
	rlim_t need = (rlim_t)opt->ranks * each + 64;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &found.files);
	limit = found.files;
	if (limit.rlim_cur >= need)
		return true;
	limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
	setrlimit(RLIMIT_NOFILE, &limit); /* if it is not enough, the rank that fails says so */
	return limit.rlim_cur >= need;
}

static void name_job(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (gethostname(host, sizeof(host) - 1))
		strcpy(host, "localhost");
	for (char *c = host; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '=')
			*c = '_';
	snprintf(job_name, sizeof(job_name), "postern_%d_%llx_%s", (int)getpid(),
		 (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec,
		 host);
}

static int prepare_job(void)
{
	static const struct pmi_events pmi_events = {
		.aborted = rank_aborted,
		.closed = rank_closed,
		.stuck = fence_stuck,
		.spawn_line = spawn_line,
		.spawn_end = spawn_command_end,
		.spawn_forget = spawn_forget,
	};
	static const struct spawn_events spawn_events = {
		.answer = pmi_server_spawned,
		.ended = spawned_ended,
	};
	bool room;
	int err;

	name_job();
	ranks = calloc((size_t)opt->ranks, sizeof(*ranks));
	if (!ranks)
		return fail_start("memory for the ranks", -ENOMEM);
	/* before the loop, so that the guard inherits none of its descriptors */
	if (guard_start(opt->ranks))
		return -1;
	err = input_init(opt->input, opt->ranks);
	if (err)
		return fail_start("memory for standard input", err);
	room = raise_file_limit();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	err = loop_init();
	if (err)
		return say_refused("epoll_create1", -err);
	start_signals();
	if (opt->timeout_s > 0)
		loop_timer(&timeout, opt->timeout_s, timeout_over);
	err = output_init(opt, room, host);
	if (!err)
		err = deadlock_watch(opt, deadlock_over);
	if (!err)
		err = pmi_server_init(opt->ranks, job_name, pairs, &pmi_events);
	if (!err)
		err = spawn_init(opt, &spawn_events);
	return err ? fail_start("cannot set up the event loop", err) : 0;
}

/*
 * Find the units to bind to. Returns their number, 0 if ranks are not to be bound, or -1 after a
 * message. If the system does not allow binding, the job runs unbound; a message says so if binding
 * was asked for.
 */
static int choose_binding(void)
{
	enum unit unit = opt->bind == UNIT_AUTO || opt->bind == UNIT_SHARE ? UNIT_CORE : opt->bind;
	bool bind = opt->bind != UNIT_NONE && (opt->bind != UNIT_AUTO || opt->ranks > 1);
	int units;

	if (!bind && !opt->no_oversubscribe)
		return 0;
	units = affinity_init(unit, opt->map);
	if (units < 0) {
		if (opt->bind != UNIT_AUTO)
			say("the ranks run unbound: processors cannot be set here: %s",
			    strerror(-units));
		return 0;
	}
	if (opt->no_oversubscribe && opt->ranks > affinity_processors()) {
		say("%d ranks are more than the %d processors, and -nooversubscribe forbids that",
		    opt->ranks, affinity_processors());
		return -1;
	}
	return !bind || (opt->bind == UNIT_AUTO && units < opt->ranks) ? 0 : units;
}

/* The first core of a rank's equal share. Threads of the program and the library's helper
 * thread have room in the share. */
static int share_of(int rank, int cores)
{
	return (int)((long)rank * cores / opt->ranks);
}

/* Choose the processors of a rank. Returns 0, or -1 after a message. */
static int choose_processors(int rank, int units)
{
	int cores;

	switch (opt->bind) {
	case UNIT_AUTO:
	case UNIT_SHARE:
		cores = share_of(rank + 1, units) - share_of(rank, units);
		/* there may be fewer cores than ranks */
		affinity_choose(share_of(rank, units), cores ? cores : 1);
		return 0;
	case UNIT_USER:
		if (!affinity_choose_listed(opt->bind_list, rank))
			return 0;
		say("--bind-to user:%s: rank %d would have a processor that is not there, or that "
		    "mpiexec may not use",
		    opt->bind_list, rank);
		return -1;
	default:
		affinity_choose_dealt(rank, opt->bind_count);
		return 0;
	}
}

static void report_binding(int rank, bool bound)
{
	char text[256];

	if (bound)
		affinity_text(text, sizeof(text));
	say(bound ? "rank %d is bound to processors %s" : "rank %d is not bound%s", rank,
	    bound ? text : "");
}

/* Returns 0 or the exit status. */
static int start_rank(int rank, const struct app *app, int units)
{
	struct launch what = { .rank = rank,
			       .app = app,
			       .opt = opt,
			       .job_name = job_name,
			       .search = search,
			       .state = &found,
			       .bound = units > 0,
			       .spawned = pairs,
			       .pipes = output_pipes() };
	struct launched got;
	int status, err;

	ranks[rank].app = app;
	if (what.bound && choose_processors(rank, units))
		return USAGE_ERROR;
	if (opt->report_bindings)
		report_binding(rank, what.bound);
	if (output_open(rank))
		return 1;
	err = input_open(rank, &what.stdin_fd);
	if (err)
		return say_refused("pipe2", -err) ? 1 : 0;
	status = launch(&what, &got);
	input_started(rank);
	if (status) {
		guard_set(rank, 0);
		return status;
	}
	ranks[rank] = (struct rank){ .app = app, .pid = got.pid, .started = true, .group = true };
	n_running++;
	deadlock_rank(rank, got.pid);
	err = pmi_server_attach(rank, got.pmi_fd, (int)(app - opt->apps));
	if (!err)
		err = output_attach(rank, got.out_fd, got.err_fd);
	if (err)
		say_refused("epoll_ctl", -err);
	return err ? 1 : 0;
}

/* Ranks are served while others are started: they do not wait for ever for an answer. Returns 0 or
 * the exit status. */
static int start_ranks(void)
{
	int units = choose_binding();
	int status = units < 0 ? USAGE_ERROR : 0;
	int rank = 0;

	for (int i = 0; i < opt->n_apps; i++)
		for (int j = 0;
		     j < opt->apps[i].ranks && !status && state == RUNNING && !asked_to_end; j++) {
			status = start_rank(rank++, &opt->apps[i], units);
			loop_poll();
		}
	input_begin();
	/* those that are there are not the job that was asked for */
	return !status && asked_to_end && rank < opt->ranks ? 128 + forwarded_signal : status;
}

/* Run until no process is left. End the job when the last rank is gone but processes it started
 * are not. */
static int run_job(void)
{
	int err = 0;

	while (!err && state != GIVEN_UP && (n_running || any_group() || spawn_running())) {
		if (!n_running && !spawn_running())
			end_job();
		err = loop_wait();
	}
	output_finish();
	draining = true;
	while (!err && state != GIVEN_UP && !output_idle())
		err = loop_wait();
	return err;
}

int job_run(const struct options *options)
{
	int err;

	opt = options;
	pairs = spawn_pairs();
	if (prepare_job()) {
		guard_stop();
		return 1;
	}
	search = base_config_env("PATH");
	if (opt->verbose)
		say("starting %d rank%s on %s", opt->ranks, opt->ranks == 1 ? "" : "s", host);
	set_job_status(start_ranks());
	if (exit_status)
		end_job();
	else
		spawn_started();
	err = run_job();
	if (err) {
		fail_start("the event loop failed", err);
		signal_ranks(SIGKILL);
		set_job_status(1);
	}
	if (output_lost())
		set_job_status(1);
	/* the rank that has spawned them waits for them */
	if (pairs && !exit_status && !pmi_server_joined()) {
		say("the processes that were spawned have ended without MPI_Init");
		set_job_status(1);
	}
	guard_stop();
	rt_names_forget(getpid());
	free(pairs);
	return exit_status;
}
