/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every few seconds the files in which ranks say what they wait for are read (tools/hangs/). The
 * report is made in a child process: it reads programs and their debugging information, which
 * takes a while, and may be anything. The child has a time limit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cpu.h"
#include "tools/hangs/report.h"
#include "tools/mpiexec/deadlock.h"
#include "tools/mpiexec/loop.h"
#include "tools/mpiexec/output.h"

enum { REPORT_S = 20, SEARCHES_LEAST = 4, SEARCHES_MOST = 256 };

static const struct options *opt;
static void (*abort_job)(void);
static struct job_seen
	job; /* by rank; a pid is that of the rank's first process, or of the one that is MPI's */
static struct record_file *files;
static struct timer tick;
static int search_in, searches; /* ticks until the next search, and between two */

static struct {
	struct watch watch;
	void (*after)(void);
	char line[1024];
	size_t len;
	bool making;
} report = { .watch.fd = -1 };

/* ---- the report ------------------------------------------------------------------------------ */

static void __attribute__((noreturn)) make_report(int fd, pid_t parent)
{
	FILE *out = fdopen(fd, "w");
	struct job_seen seen;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!out || getppid() != parent)
		_exit(1);
	loop_signals_back();
	signal(SIGALRM, SIG_DFL);
	alarm(REPORT_S);
	if (job_read(parent, true, &seen))
		report_job(out, &seen);
	fflush(out);
	_exit(0);
}

static void end_line(void)
{
	report.line[report.len] = '\0';
	if (report.len)
		say("%s", report.line);
	report.len = 0;
}

static void take_report_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' || report.len == sizeof(report.line) - 1)
			end_line();
		if (text[i] != '\n')
			report.line[report.len++] = text[i];
	}
}

static void report_ready(struct watch *watch, uint32_t events)
{
	char text[4096];
	ssize_t n = read(watch->fd, text, sizeof(text));

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		take_report_text(text, (size_t)n);
		return;
	}
	end_line();
	loop_close(watch);
	report.making = false;
	report.after();
}

bool deadlock_report(void (*after)(void))
{
	const pid_t parent = getpid();
	int fds[2];
	pid_t pid;

	if (report.making || pipe2(fds, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		close(fds[0]);
		make_report(fds[1], parent);
	}
	close(fds[1]);
	if (pid < 0 || loop_add(&report.watch, fds[0], EPOLLIN, report_ready)) {
		close(fds[0]);
		return false;
	}
	report.after = after;
	report.making = true;
	return true;
}

int deadlock_status(const char *text)
{
	struct job_seen seen;
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (errno || *end || end == text || pid <= 0) {
		fprintf(stderr, "mpiexec: --status %s: not a process id\n", text);
		return USAGE_ERROR;
	}
	if (!job_read((pid_t)pid, false, &seen)) {
		fprintf(stderr,
			errno == ENOMEM ? "mpiexec: out of memory\n"
					: "mpiexec: process %ld is no rank of an MPI job that is "
					  "within reach, and has started none\n",
			pid);
		return 1;
	}
	report_job(stdout, &seen);
	job_free(&seen);
	return fflush(stdout) ? 1 : 0;
}

/* ---- the watch ------------------------------------------------------------------------------- */

/* Finds the files of the ranks: a rank may be a script whose child is the MPI process. The less
 * often, the longer none is found: programs need not be MPI's. */
static void search_files(void)
{
	struct job_seen seen;

	if (search_in-- > 0)
		return;
	search_in = searches;
	searches = searches < SEARCHES_MOST ? 2 * searches : SEARCHES_MOST;
	if (!job_read(getpid(), true, &seen))
		return;
	for (int i = 0; i < seen.size && i < job.size; i++)
		if (seen.size == job.size && seen.ranks[i].pid && job.ranks[i].pid &&
		    record_find(seen.ranks[i].pid, &files[i]))
			job.ranks[i].pid = seen.ranks[i].pid;
	job_free(&seen);
}

/* Reads the records of all ranks. False: some rank has none. */
static bool read_records(void)
{
	bool all = true;

	for (int i = 0; i < job.size; i++) {
		struct rank_seen *r = &job.ranks[i];

		if (!r->pid)
			continue;
		if (!files[i].path[0] || !record_read(&files[i], &r->record) ||
		    r->record.rank != i || r->record.size != job.size) {
			files[i].path[0] = '\0';
			all = false;
		}
	}
	job.now_ms = (int64_t)base_now_ms();
	return all;
}

static void report_made(void)
{
	if (opt->deadlock_abort)
		abort_job();
}

static double tick_seconds(void)
{
	const double s = opt->deadlock_s / 4;

	return s > 5 ? 5 : s < 0.1 ? 0.1 : s;
}

static void check_ranks(void)
{
	const int64_t ms = (int64_t)(opt->deadlock_s * 1000);

	if (!read_records()) {
		search_files();
	} else if (job_is_stuck(&job, ms)) {
		say("all ranks wait, and none has made progress for %g s", opt->deadlock_s);
		if (!deadlock_report(report_made))
			report_made();
		return; /* once */
	}
	loop_timer(&tick, tick_seconds(), check_ranks);
}

int deadlock_watch(const struct options *options, void (*aborts)(void))
{
	opt = options;
	abort_job = aborts;
	job.size = opt->ranks;
	job.ranks = calloc((size_t)job.size, sizeof(*job.ranks));
	files = calloc((size_t)job.size, sizeof(*files));
	if (!job.ranks || !files)
		return -ENOMEM;
	searches = SEARCHES_LEAST;
	if (opt->deadlock_s > 0)
		loop_timer(&tick, tick_seconds(), check_ranks);
	return 0;
}

void deadlock_rank(int rank, pid_t pid)
{
	job.ranks[rank].pid = pid;
}
