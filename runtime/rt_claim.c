/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The name is that of a socket in the abstract namespace, which the kernel clears when its holder
 * ends. Another process asks by connecting to it: that tells whose it is. A connection stays in the
 * holder's queue until it is accepted, also after its other end has gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
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

enum { CLAIM_MS = 1000, ACCEPT_AGAIN_MS = 100 };

/* ---- the name -------------------------------------------------------------------------------- */

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

/* ---- those that ask -------------------------------------------------------------------------- */

/* Can accept work later, although it failed? */
static bool may_accept_later(int err)
{
	return err == EINTR || err == ECONNABORTED || err == EMFILE || err == ENFILE ||
	       err == ENOBUFS || err == ENOMEM;
}

static void *accept_all(void *arg)
{
	struct rt_claim *claim = arg;

	for (;;) {
		int fd = accept4(claim->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			close(fd);
		else if (atomic_load(&claim->ends) || !may_accept_later(errno))
			return NULL;
		else
			poll(NULL, 0, ACCEPT_AGAIN_MS);
	}
}

/* A rank may start any number of programs. */
static void start_accepting(struct rt_claim *claim)
{
	sigset_t all, before;

	/* the application's threads handle the application's signals */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	claim->accepts = !pthread_create(&claim->thread, NULL, accept_all, claim);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- for others ------------------------------------------------------------------------------ */

/* The address of a name; returns its length. */
static socklen_t name_address(const char *name, struct sockaddr_un *address)
{
	uint64_t hash = 0xcbf29ce484222325;
	const size_t most = sizeof(address->sun_path) - 1;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(address->sun_path + 1, most, "postern-rank-%u-%016llx",
					    (unsigned)geteuid(), (unsigned long long)hash));
}

int rt_claim(const char *name, struct rt_claim *claim)
{
	struct sockaddr_un address;
	const socklen_t len = name_address(name, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : take_name(fd, &address, len);

	*claim = (struct rt_claim){ .fd = err ? -1 : fd };
	if (err < 0)
		base_warn("cannot take the socket @%s, which says that this rank has joined: %s; "
			  "end the process that `ss -xlp` shows to have it",
			  address.sun_path + 1, strerror(-err));
	if (!err)
		start_accepting(claim);
	else if (fd >= 0)
		close(fd);
	return err;
}

void rt_unclaim(struct rt_claim *claim)
{
	if (claim->fd < 0)
		return;
	if (claim->accepts) {
		atomic_store(&claim->ends, true);
		shutdown(claim->fd, SHUT_RD); /* ends accept */
		pthread_join(claim->thread, NULL);
	}
	close(claim->fd);
	claim->fd = -1;
}
