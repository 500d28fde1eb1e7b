/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * epoll behind the few calls of loop.h.
 */
#include <errno.h>
#include <unistd.h>

#include "tools/mpiexec/loop.h"

enum { BATCH = 64 };

static int epoll_fd = -1;

int loop_init(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -errno : 0;
}

int loop_add(struct watch *watch, int fd, uint32_t events,
	     void (*ready)(struct watch *watch, uint32_t events))
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	*watch = (struct watch){ .fd = fd, .ready = ready };
	return 0;
}

int loop_change(struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (watch->fd < 0)
		return 0;
	return epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) ? -errno : 0;
}

int loop_remove(struct watch *watch)
{
	int fd = watch->fd;

	if (fd >= 0)
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	watch->fd = -1;
	return fd;
}

void loop_close(struct watch *watch)
{
	int fd = loop_remove(watch);

	if (fd >= 0)
		close(fd);
}

int loop_wait(void)
{
	struct epoll_event events[BATCH];
	int n = epoll_wait(epoll_fd, events, BATCH, -1);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		struct watch *watch = events[i].data.ptr;

		if (watch->fd >= 0)
			watch->ready(watch, events[i].events);
	}
	return 0;
}
