/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The guard shares a page of process groups with mpiexec and waits for the end of a pipe that only
 * mpiexec holds open.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/mpiexec/guard.h"
#include "tools/mpiexec/output.h"

enum { MOST_FILES = 1 << 20 };

static struct shared {
	_Atomic bool done;
	int ranks;
	_Atomic pid_t group[];
} * shared;
static int pipe_fd = -1;
static pid_t guard_pid;

/* Close all files from this one on. Old kernels and containers' filters refuse close_range;
 * then close them one by one. */
static void close_from(int first)
{
	struct rlimit limit = { .rlim_cur = 1024 };
	const struct dirent *entry;
	DIR *dir;

#ifdef SYS_close_range
	if (!syscall(SYS_close_range, first, ~0u, 0))
		return;
#endif
	dir = opendir("/proc/self/fd");
	if (!dir) {
		getrlimit(RLIMIT_NOFILE, &limit);
		for (rlim_t fd = (rlim_t)first; fd < limit.rlim_cur && fd < MOST_FILES; fd++)
			close((int)fd);
		return;
	}
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd >= first && fd != dirfd(dir))
			close(fd);
	}
	closedir(dir);
}

static void __attribute__((noreturn)) guard_run(const int fds[2])
{
	char byte;

	/* leave the terminal and the process group of mpiexec; hold nothing open */
	setsid();
	close(fds[1]);
	dup2(fds[0], 0);
	close_from(1);
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
		return say_refused("mmap", errno);
	shared->ranks = ranks;
	if (pipe2(fds, O_CLOEXEC))
		return say_refused("pipe2", errno);
	/* the guard has every signal blocked from its start, also those of the terminal's keys */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	guard_pid = fork();
	if (!guard_pid)
		guard_run(fds);
	if (guard_pid < 0)
		say_refused("fork", errno);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (guard_pid < 0)
		return -1;
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
