/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Compares names, then addresses: a socket can be bound only to an address of this machine.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/mpiexec/host.h"

enum { NAME_SIZE = 256 };

static bool is_ours(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool bound = fd >= 0 && !bind(fd, address->ai_addr, address->ai_addrlen);

	if (fd >= 0)
		close(fd);
	return bound;
}

bool host_is_here(const char *name)
{
	const struct addrinfo wanted = { .ai_socktype = SOCK_DGRAM };
	struct addrinfo *found = NULL;
	char ours[NAME_SIZE] = "";
	bool here = false;

	if (!strcmp(name, "localhost"))
		return true;
	if (!gethostname(ours, sizeof(ours) - 1) && !strcmp(name, ours))
		return true;
	ours[strcspn(ours, ".")] = '\0';
	if (!strcmp(name, ours))
		return true;
	if (getaddrinfo(name, NULL, &wanted, &found))
		return false;
	for (const struct addrinfo *a = found; a && !here; a = a->ai_next)
		here = is_ours(a);
	freeaddrinfo(found);
	return here;
}
