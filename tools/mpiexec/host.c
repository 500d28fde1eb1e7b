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

static bool one_is_here(const char *name)
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

bool host_is_here(const char *names)
{
	bool here = true;

	do {
		size_t len = strcspn(names, ",");
		char name[NAME_SIZE];
		char *colon;

		snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : 0), names);
		colon = strchr(name, ':');
		/* an IPv6 address has several */
		if (colon && !strchr(colon + 1, ':'))
			*colon = '\0';
		here = *name && one_is_here(name);
		names += len;
	} while (here && *names++);
	return here;
}
