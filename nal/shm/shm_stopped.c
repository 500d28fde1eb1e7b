/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Lets a process run that job control has stopped inside another process's critical section, a
 * few hundred instructions long, until it has left it. The process is traced meanwhile, not
 * continued and stopped again. So a user who continues or stops it meanwhile has the last
 * word. A traced process runs although its stop is in force. When its tracer ends it returns
 * to the stop if that is still in force. The tracer is a process that shares our memory, so
 * the application sees no child, signal or status that is not its own.
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

#define THREADS_MOST  1024      /* of the process; a lock holder is mostly among the first two */
#define LONGEST_NS    100000000 /* if it gets no core sooner, it is let run again */
#define STOP_CHECK_US 50
#define STACK_BYTES   (32 * 1024)

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

/* Continue all threads that report: from a stop, or with the signal that they are to get. */
static void fail_over(void)
{
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, tid, NULL, status >> 16 ? 0L : (long)WSTOPSIG(status));
}

/* The tracer: when it ends, all tracing ends. */
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
		usleep(STOP_CHECK_US);
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
	/* The tracer has this thread's memory: no handler may run in it, and the thread must
	 * not end. */
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
