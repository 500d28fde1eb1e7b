/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Mounts whose locks do not reach other nodes, as /proc/self/mountinfo shows them.
 */
#include <stdio.h>
#include <string.h>

#include "mpi_shim/io/io.h"

/* Whether a comma-separated list of options has this one. */
static bool has_option(const char *options, const char *option)
{
	size_t n = strlen(option);

	for (const char *o = strstr(options, option); o; o = strstr(o + n, option))
		if ((o == options || o[-1] == ',' || o[-1] == ' ') && strchr(",\n", o[n]))
			return true;
	return false;
}

bool mpi_locks_stay_here(const char *mount, unsigned int major, unsigned int minor)
{
	const char *type = strstr(mount, " - "), *options = NULL;
	unsigned int its_major, its_minor;

	if (sscanf(mount, "%*d %*d %u:%u", &its_major, &its_minor) != 2 || its_major != major ||
	    its_minor != minor || !type || strncmp(type, " - nfs", 6) != 0)
		return false;
	options = strchr(type + 3, ' ');
	options = options ? strchr(options + 1, ' ') : NULL;
	return options && (has_option(options, "nolock") || has_option(options, "local_lock=all") ||
			   has_option(options, "local_lock=posix"));
}
