/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See node_segment.h. A node segment is a file without a name (base/shared.h). The others reach
 * it through /proc, or where that is not mounted by pidfd_getfd(2). Both need the rights that
 * cross-memory attach needs. A process in a PID namespace of its own finds no memory there, or
 * memory that begins with another token.
 */
#include "mpi_shim/core/node_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"
#include "base/shared.h"

static _Thread_local char why[320];

const char *mpi_node_segment_why(void)
{
	return why;
}

static void *segment_failed(const char *what, int err)
{
	snprintf(why, sizeof(why), "%s: %s%s", what, strerror(err),
		 err == ENOMEM   ? "; raise `ulimit -v`"
		 : err == EMFILE ? "; raise `ulimit -n`"
				 : "");
	return NULL;
}

void *mpi_node_segment_offer(size_t bytes, struct mpi_node_segment_key *note)
{
	const struct base_shared_span all = { 0, bytes };
	uint64_t *memory, token = 0;
	int fd;

	*note = (struct mpi_node_segment_key){ .token = 0 };
	why[0] = 0;
	fd = base_shared_make("postern-mpi", bytes, &all, 1, why, sizeof(why));
	if (fd < 0)
		return NULL;
	memory = base_shared_map(fd, 0, bytes);
	if (!memory)
		segment_failed("mapping shared memory", errno);
	if (memory && !base_random(&token, sizeof(token))) {
		mpi_node_segment_leave(memory, bytes);
		memory = segment_failed("random numbers", errno);
	}
	if (!memory) {
		close(fd);
		return NULL;
	}
	token |= 1; /* 0 means that there is no segment */
	*memory = token;
	*note = (struct mpi_node_segment_key){ .token = token, .pid = (int32_t)getpid(), .fd = fd };
	return memory;
}

void mpi_node_segment_settle(const struct mpi_node_segment_key *note)
{
	if (note->token)
		close(note->fd);
}

#define OTHER_PIDS "; where ranks have PID namespaces of their own (containers), start them in one"

/* Returns a descriptor of another process. -1: errno and `why` have the reason. */
static int descriptor_of(pid_t pid, int theirs)
{
	char path[64];
	int fd, pidfd, err;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, theirs);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	err = errno;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0) {
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
		close(pidfd);
	}
	if (fd >= 0)
		return fd;
	if (access("/proc/self", F_OK) < 0)
		snprintf(why, sizeof(why),
			 "the memory of process %d cannot be reached: /proc is not mounted, and "
			 "pidfd_getfd: %s",
			 (int)pid, strerror(errno));
	else
		snprintf(why, sizeof(why), "the memory of process %d cannot be reached: %s: %s%s",
			 (int)pid, path, strerror(err),
			 err == EMFILE || err == ENFILE || err == ENOMEM ? "" : OTHER_PIDS);
	return -1;
}

void *mpi_node_segment_join(size_t bytes, const struct mpi_node_segment_key *note)
{
	uint64_t *memory = NULL;
	int fd;

	why[0] = 0;
	if (!note->token) {
		snprintf(why, sizeof(why), "the first rank of the node has no memory to share");
		return NULL;
	}
	fd = descriptor_of(note->pid, note->fd);
	if (fd < 0)
		return NULL;
	if (!base_shared_sound(fd, bytes))
		snprintf(why, sizeof(why), "process %d offers other memory than it said" OTHER_PIDS,
			 (int)note->pid);
	else if (!(memory = base_shared_map(fd, 0, bytes)))
		segment_failed("mapping shared memory", errno);
	if (memory && *memory != note->token) {
		mpi_node_segment_leave(memory, bytes);
		memory = NULL;
		snprintf(why, sizeof(why), "process %d is another one than was meant" OTHER_PIDS,
			 (int)note->pid);
	}
	close(fd);
	return memory;
}

void mpi_node_segment_leave(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}
