/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Names of sockets in the abstract namespace: the kernel gives a name to one process only, and
 * frees it when that process ends.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "nal/net/net.h"

static socklen_t hold_address(const char *name, struct sockaddr_un *a)
{
	int len;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	len = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

int net_hold(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	struct sockaddr_un a;
	socklen_t len = hold_address(name, &a);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, len) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

bool net_held(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	socklen_t len = hold_address(name, &a);
	bool somebody = fd < 0 || connect(fd, (struct sockaddr *)&a, len) == 0;

	if (fd >= 0)
		close(fd);
	return somebody;
}
