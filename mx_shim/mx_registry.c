/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which endpoint ids are open on this host, and by which processes: names of sockets in the
 * abstract namespace, which nobody listens on. The kernel gives a name to one socket only and takes
 * it back when the process ends, however it ends. One name is the claim, a second one tells the
 * process.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mx_shim/mx_core.h"

#define NAMES "/proc/net/unix"

/* The beginning of all names of this user's endpoints with the same base of pids. */
static int name_prefix(char *name, size_t room, uint32_t board, ptl_nid_t nid)
{
	return snprintf(name, room, "postern-mx-%u-%u-%u-%08x-", (unsigned int)geteuid(),
			mxs.first_pid, board, nid);
}

/* Binds a socket to a name. -1: another one has it; -2: that is refused. */
static int bind_name(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -2;
	memcpy(a.sun_path + 1, name, length);
	if (bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0)
		return fd;
	length = errno == EADDRINUSE ? 1 : 2;
	close(fd);
	return -(int)length;
}

/* A child holds no names of its parent: they would outlive the parent's endpoints. */
static void release_in_child(void)
{
	for (uint32_t i = 0; i < MXS_SLOTS; i++) {
		struct mxs_endpoint *ep =
			atomic_load_explicit(&mxs.endpoint[i], memory_order_acquire);

		if (ep)
			mxs_registry_release(ep->registry);
	}
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, release_in_child);
}

/* Has an open endpoint of this process the id? With the process's lock. */
static bool is_own_id(uint32_t board, uint32_t eid)
{
	for (uint32_t i = 0; i < MXS_SLOTS; i++) {
		struct mxs_endpoint *ep =
			atomic_load_explicit(&mxs.endpoint[i], memory_order_acquire);

		if (ep && (atomic_load_explicit(&ep->gen, memory_order_acquire) & 1) &&
		    ep->board_number == board && ep->eid == eid)
			return true;
	}
	return false;
}

bool mxs_registry_claim(uint32_t board, ptl_process_id_t id, uint32_t eid, int fd[2])
{
	char name[100];
	int n = name_prefix(name, sizeof(name), board, id.nid);
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	fd[1] = -1;
	if (is_own_id(board, eid))
		return false;
	snprintf(name + n, sizeof(name) - (size_t)n, "%u", eid);
	fd[0] = bind_name(name);
	if (fd[0] == -1)
		return false;
	snprintf(name + n, sizeof(name) - (size_t)n, "%u=%u", eid, id.pid);
	fd[1] = bind_name(name);
	return true;
}

void mxs_registry_release(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

int mxs_registry_find(uint32_t board, ptl_nid_t nid, uint32_t eid, ptl_pid_t *pid)
{
	char prefix[100], line[512];
	int n = name_prefix(prefix, sizeof(prefix), board, nid);
	FILE *f = fopen(NAMES, "re");
	int found = 0;

	if (!f)
		return -1;
	while (found != 1 && fgets(line, sizeof(line), f)) {
		const char *at = strchr(line, '@');
		unsigned int its_eid, its_pid;
		int fields;

		if (!at || strncmp(at + 1, prefix, (size_t)n))
			continue;
		fields = sscanf(at + 1 + n, "%u=%u", &its_eid, &its_pid);
		if (fields < 1 || its_eid != eid)
			continue;
		found = fields == 2 ? 1 : -1;
		if (fields == 2)
			*pid = its_pid;
	}
	fclose(f);
	return found;
}

uint64_t mxs_registry_pids(uint32_t board, ptl_nid_t nid)
{
	char prefix[100], line[512];
	int n = name_prefix(prefix, sizeof(prefix), board, nid);
	FILE *f = fopen(NAMES, "re");
	uint64_t used = 0;

	while (f && fgets(line, sizeof(line), f)) {
		const char *at = strchr(line, '@');
		unsigned int eid, pid;

		if (at && !strncmp(at + 1, prefix, (size_t)n) &&
		    sscanf(at + 1 + n, "%u=%u", &eid, &pid) == 2 && pid - mxs.first_pid < MXS_PIDS)
			used |= UINT64_C(1) << (pid - mxs.first_pid);
	}
	if (f)
		fclose(f);
	return used;
}
