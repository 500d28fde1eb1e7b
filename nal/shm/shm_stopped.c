/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A process that job control has stopped inside another's critical section, a few hundred
 * instructions long, is let run until it has left it. It is traced for that long, not continued
 * and stopped again: who continues or stops it meanwhile is to have the last word, and a traced
 * process runs though its stop is in force, and goes back to it, if it still is, when its tracer
 * ends. The tracer is a process that shares our memory, so that the application sees no child,
 * signal or status that is not its own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "nal/shm/shm.h"

#define THREADS_MOST 1024      /* of the process; who holds a lock is mostly among the first two */
#define LONGEST_NS   100000000 /* where it gets no core sooner, it is let run again */
#define LOOK_US      50
#define STACK_BYTES  (32 * 1024)

struct tracing {
	_Alignas(16) char stack[STACK_BYTES]; /* the tracer's */
	pid_t tid[THREADS_MOST];
	unsigned int n;
	_Atomic uint32_t *word;
	uint32_t mask, value;
};

static bool reached(const struct tracing *x)
{
	return (atomic_load(x->word) & x->mask) != x->value;
}

/* On from what a thread reports: from a stop, or with the signal that it is to get. */
static void fail_over(void)
{
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, tid, NULL, status >> 16 ? 0L : (long)WSTOPSIG(status));
}

/* The tracer: its end is that of all tracing. */
static int trace(void *arg)
{
	struct tracing *x = arg;
	const uint64_t end = base_now_ns() + LONGEST_NS;
	bool any = false;

	for (unsigned int i = 0; i < x->n; i++)
		if (ptrace(PTRACE_SEIZE, x->tid[i], NULL, NULL) == 0)
			any = true;
	while (any && !reached(x) && base_now_ns() < end) {
		fail_over();
		usleep(LOOK_US);
	}
	return 0;
}

static void find_threads(pid_t pid, struct tracing *x)
{
	char path[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && x->n < THREADS_MOST && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			x->tid[x->n++] = (pid_t)strtol(d->d_name, NULL, 10);
	if (dir)
		closedir(dir);
}

bool shm_let_run(pid_t pid, _Atomic uint32_t *word, uint32_t mask, uint32_t value)
{
	struct tracing *x = calloc(1, sizeof(*x));
	sigset_t all, before;
	int cancel;
	pid_t tracer;

	if (!x)
		return false;
	x->word = word;
	x->mask = mask;
	x->value = value;
	find_threads(pid, x);
	/* in the tracer, which has this thread's memory, no handler is to run, nor is the thread
	 * to end */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	tracer = clone(trace, x->stack + sizeof(x->stack), CLONE_VM | CLONE_VFORK, x);
	while (tracer > 0 && waitpid(tracer, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancel, NULL);
	free(x);
	return (atomic_load(word) & mask) != value;
}
