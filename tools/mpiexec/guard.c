/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The guard shares a page of process groups with mpiexec and waits for the end of a pipe that only
 * mpiexec holds open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/mpiexec/guard.h"

static struct shared {
	_Atomic bool done;
	int ranks;
	_Atomic pid_t group[];
} * shared;
static int pipe_fd = -1;
static pid_t guard_pid;

static void __attribute__((noreturn)) guard_run(int fd)
{
	char byte;

	/* away from the terminal and whatever is sent to mpiexec's group; hold nothing open */
	setsid();
	dup2(fd, 0);
	close_range(1, ~0u, 0);
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	if (!atomic_load(&shared->done))
		for (int i = 0; i < shared->ranks; i++)
			if (atomic_load(&shared->group[i]) > 0)
				kill(-atomic_load(&shared->group[i]), SIGKILL);
	_exit(0);
}

int guard_start(int ranks)
{
	size_t bytes = sizeof(*shared) + (size_t)ranks * sizeof(shared->group[0]);
	sigset_t all, before;
	int fds[2];

	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	shared->ranks = ranks;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	/* the guard has every signal blocked from its first step on, a key of the terminal's among them */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	guard_pid = fork();
	if (!guard_pid)
		guard_run(fds[0]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (guard_pid < 0)
		return -errno;
	close(fds[0]);
	pipe_fd = fds[1];
	return 0;
}

void guard_set(int rank, pid_t group)
{
	atomic_store(&shared->group[rank], group);
}

void guard_stop(void)
{
	if (pipe_fd < 0)
		return;
	atomic_store(&shared->done, true);
	close(pipe_fd);
	pipe_fd = -1;
	while (waitpid(guard_pid, NULL, 0) < 0 && errno == EINTR)
		;
}
