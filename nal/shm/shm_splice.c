/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Pipes of the kernel, for long messages both ways at once: the source gives its pages to a pipe
 * (vmsplice(2), a few microseconds for a megabyte), the destination reads them, and each core
 * copies what comes to it. Cross-memory attach does the same copies, but looks up each page of
 * the other process by the way.
 *
 * The source makes the pipe and keeps both its ends, so that it is never told of a reader that
 * died; the destination opens it by the source's descriptor. Either may find that it cannot be
 * had, and then there is none to this peer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nal/shm/shm.h"

/* A pipe. Returns its descriptor, of both ends, or -1. */
static int make(uint64_t *inode)
{
	int ends[2], fd = -1;
	struct stat st;
	char name[32];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[1]);
	if (fcntl(ends[1], F_SETPIPE_SZ, SHM_SPLICE_BYTES) >= SHM_SPLICE_BYTES)
		fd = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	close(ends[0]);
	close(ends[1]);
	if (fd >= 0 && fstat(fd, &st) < 0) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		*inode = st.st_ino;
	return fd;
}

/* No more to p. */
static void stop(struct shm_peer *p)
{
	p->no_give = true;
	if (p->give_fd >= 0)
		close(p->give_fd);
	p->give_fd = -1;
}

bool shm_splice_agreed(struct shm_peer *p)
{
	struct shm_spliced *x = &p->out.ch->spliced;
	/* acquire: partner of the release in shm_splice_accept */
	uint32_t answer = atomic_load_explicit(&x->answer, memory_order_acquire);

	if (answer == SHM_SPLICE_AGREED)
		return p->give_fd >= 0 && !p->no_give;
	if (answer == SHM_SPLICE_UNASKED && p->give_fd < 0 && !p->no_give) {
		p->give_fd = make(&x->inode);
		p->no_give = p->give_fd < 0;
		/* release: partner of the acquire in shm_splice_accept */
		if (p->give_fd >= 0)
			atomic_store_explicit(&x->offer, (uint32_t)p->give_fd + 1,
					      memory_order_release);
	}
	if (answer == SHM_SPLICE_REFUSED)
		stop(p);
	return false;
}

bool shm_splice_accept(struct shm_peer *p)
{
	struct shm_spliced *x = &p->in.ch->spliced;
	uint32_t offer = atomic_load_explicit(&x->offer, memory_order_acquire);
	bool good = false;
	struct stat st;
	char name[48];

	if (!offer || p->take_fd >= 0 || p->no_take)
		return p->take_fd >= 0;
	snprintf(name, sizeof(name), "/proc/%d/fd/%u", (int)p->pid, offer - 1);
	p->take_fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	/* by the same number there may be another process in the /proc that we see */
	good = p->take_fd >= 0 && fstat(p->take_fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
	       st.st_ino == x->inode;
	if (!good && p->take_fd >= 0)
		close(p->take_fd);
	if (!good)
		p->take_fd = -1;
	p->no_take = !good;
	atomic_store_explicit(&x->answer, good ? SHM_SPLICE_AGREED : SHM_SPLICE_REFUSED,
			      memory_order_release);
	return good;
}

void shm_splice_empty(int fd)
{
	char nowhere[4096];
	ssize_t n;

	/* no more than fits: a writer that goes on is not waited for */
	for (size_t left = SHM_SPLICE_BYTES; left; left -= (size_t)n) {
		n = read(fd, nowhere, left < sizeof(nowhere) ? left : sizeof(nowhere));
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return;
	}
}

void shm_splice_close(struct shm_peer *p)
{
	stop(p);
	p->no_take = true;
	if (p->take_fd >= 0)
		close(p->take_fd);
	p->take_fd = -1;
}
