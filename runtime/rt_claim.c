/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The name is that of a socket in the abstract namespace, which the kernel clears when its holder
 * ends. Another process asks by connecting to it: that tells whose it is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "runtime/rt_backend.h"
#include "runtime/rt_claim.h"

enum { CLAIM_MS = 1000 };

/* 0: a process of this user has the socket with this name. Else -errno; -EADDRINUSE: another
 * user's. */
static int ask_holder(const struct sockaddr_un *address, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err = 0;
	struct ucred holder = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(holder);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, len) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &size))
		err = -errno;
	else if (holder.uid != geteuid())
		err = -EADDRINUSE;
	close(fd);
	return err;
}

/* 0: the socket has this name. RT_NOT_A_RANK: that of another process of ours has it. The
 * holder may not listen yet, or may have ended just now, so this tries for a second. */
static int take_name(int fd, const struct sockaddr_un *address, socklen_t len)
{
	int err = 0;

	for (int ms = 0; ms < CLAIM_MS; ms++) {
		if (!bind(fd, (const struct sockaddr *)address, len))
			return listen(fd, SOMAXCONN) ? -errno : 0;
		if (errno != EADDRINUSE)
			return -errno;
		err = ask_holder(address, len);
		if (!err)
			return RT_NOT_A_RANK;
		if (err != -ECONNREFUSED && err != -EAGAIN)
			return err;
		poll(NULL, 0, 1);
	}
	return err;
}

int rt_claim(const char *name, int *out)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;
	uint64_t hash = 0xcbf29ce484222325;
	socklen_t len;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			  (size_t)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
					   "postern-rank-%u-%016llx", (unsigned)geteuid(),
					   (unsigned long long)hash));
	err = fd < 0 ? -errno : take_name(fd, &address, len);
	if (err < 0)
		base_warn("cannot take the socket @%s, which says that this rank has joined: %s; "
			  "end the process that `ss -xlp` shows to have it",
			  address.sun_path + 1, strerror(-err));
	if (!err)
		*out = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

void rt_unclaim(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
