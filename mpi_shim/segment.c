/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See segment.h: a sealed memfd, reached by the others through /proc. That needs the rights that
 * cross-memory attach needs, too; and a process that sees other numbers of processes (a namespace of its own)
 * finds no memory there, or one that begins with another token.
 */
#include "mpi_shim/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static void *map(int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void *mpi_segment_offer(size_t bytes, struct mpi_segment_note *note)
{
	uint64_t *memory = NULL, token = 0;
	int fd = memfd_create("postern-mpi", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	*note = (struct mpi_segment_note){ .token = 0 };
	if (fd < 0)
		return NULL;
	if (getrandom(&token, sizeof(token), 0) == sizeof(token) && token &&
	    ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		memory = map(fd, bytes);
	if (!memory) {
		close(fd);
		return NULL;
	}
	*memory = token;
	*note = (struct mpi_segment_note){ .token = token, .pid = (int32_t)getpid(), .fd = fd };
	return memory;
}

void mpi_segment_settle(const struct mpi_segment_note *note)
{
	if (note->token)
		close(note->fd);
}

/* What cannot shrink while it is mapped, is long enough, and begins with the token. */
static void *map_if_right(int fd, size_t bytes, uint64_t token)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	uint64_t *memory;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) != 0 ||
	    (uint64_t)st.st_size < bytes)
		return NULL;
	memory = map(fd, bytes);
	if (memory && *memory != token) {
		munmap(memory, bytes);
		return NULL;
	}
	return memory;
}

void *mpi_segment_join(size_t bytes, const struct mpi_segment_note *note)
{
	char path[64];
	void *memory;
	int fd;

	if (!note->token)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)note->pid, (int)note->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	memory = map_if_right(fd, bytes, note->token);
	close(fd);
	return memory;
}

void mpi_segment_leave(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}
