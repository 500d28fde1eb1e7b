/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How ptlperf fails: with one line that says what it was doing. The timed loops wait inside the
 * library without a time limit, as applications do, so an alarm that is restarted between
 * measurements notices when nothing moves any more; the death of a process that ptlperf started
 * is noticed at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"

/* Read by signal handlers: written while SIGALRM cannot come. */
static char activity[160] = "starting";
static unsigned deadline_s;
static int my_rank;
static pid_t my_child;

static void say(const char *text)
{
	ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

	(void)ignored;
}

static void on_alarm(int sig)
{
	(void)sig;
	say(my_rank ? "ptlperf: rank 1: " : "ptlperf: rank 0: ");
	say("nothing moved within the deadline (--deadline) while ");
	say(activity);
	say("; is the other rank alive? portals-stat shows what it waits for\n");
	if (my_child > 0)
		kill(my_child, SIGKILL);
	_exit(3);
}

static void on_child(int sig)
{
	int saved = errno, status;

	(void)sig;
	if (my_child > 0 && waitpid(my_child, &status, WNOHANG) == my_child &&
	    !(WIFEXITED(status) && !WEXITSTATUS(status))) {
		say("ptlperf: rank 1 ended early while rank 0 was ");
		say(activity);
		say(WIFSIGNALED(status) ? " (killed by a signal)\n" : "\n");
		_exit(1);
	}
	errno = saved;
}

void perf_watch_start(struct perf *p)
{
	struct sigaction sa = { .sa_handler = on_alarm };

	deadline_s = p->opt.deadline_s;
	my_rank = p->rank;
	my_child = p->child;
	sigaction(SIGALRM, &sa, NULL);
	if (p->child > 0) {
		sa.sa_handler = on_child;
		sa.sa_flags = SA_RESTART | SA_NOCLDSTOP;
		sigaction(SIGCHLD, &sa, NULL);
	}
	alarm(deadline_s);
}

void perf_watch(const char *fmt, ...)
{
	va_list ap;

	alarm(0);
	va_start(ap, fmt);
	vsnprintf(activity, sizeof(activity), fmt, ap);
	va_end(ap);
	alarm(deadline_s);
}

void perf_watch_stop(void)
{
	alarm(0);
	my_child = 0;
}

void perf_fail(const char *fmt, ...)
{
	va_list ap;

	alarm(0);
	fflush(stdout);
	fprintf(stderr, "ptlperf: rank %d: %s: ", my_rank, activity);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (my_child > 0)
		kill(my_child, SIGKILL);
	exit(1);
}

void perf_fail_code(int code, const char *what)
{
	if (code == PTL_EQ_DROPPED)
		perf_fail("%s: the event queue overflowed", what);
	perf_fail("%s: %s", what, PtlErrorStr((unsigned)code));
}
