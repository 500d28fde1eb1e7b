/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See wake.h: an eventfd, or a pipe where a container's filter refuses that.
 */
#define _GNU_SOURCE
#include "base/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int base_wake_open(struct base_wake *w)
{
	int ends[2];

	w->fd = w->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd >= 0)
		return 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	w->fd = ends[0];
	w->call = ends[1];
	return 0;
}

/* A full pipe already wakes the thread, so an error is ignored. */
void base_wake_call(const struct base_wake *w)
{
	uint64_t one = 1;

	(void)!write(w->call, &one, sizeof(one));
}

void base_wake_heard(const struct base_wake *w)
{
	uint64_t calls[64];

	while (read(w->fd, calls, sizeof(calls)) == sizeof(calls))
		;
}

void base_wake_close(struct base_wake *w)
{
	if (w->call >= 0 && w->call != w->fd)
		close(w->call);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = w->call = -1;
}
