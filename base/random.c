/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Random bytes: see random.h.
 */
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"

#define DEVICE "/dev/urandom"

/* For a container whose filter refuses getrandom. */
static bool from_device(void *bytes, size_t len)
{
	int fd = open(DEVICE, O_RDONLY | O_CLOEXEC);
	bool all = fd >= 0 && read(fd, bytes, len) == (ssize_t)len;

	if (fd >= 0)
		close(fd);
	return all;
}

bool base_random(void *bytes, size_t len)
{
	int refused;

	if (getrandom(bytes, len, 0) == (ssize_t)len)
		return true;
	refused = errno;
	if (from_device(bytes, len))
		return true;
	base_warn("no random numbers: getrandom: %s, and " DEVICE
		  ": %m; the container's profile has to "
		  "allow one of them",
		  strerror(refused));
	return false;
}
