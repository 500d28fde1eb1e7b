/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See debug.h.
 */
#include "portals/engine/debug.h"

#include <stdarg.h>
#include <unistd.h>

FILE *p3_out;

FILE *ptl_debug_file(void)
{
	return p3_out ? p3_out : stderr;
}

void ptl_debug(const struct ptl_ni *ni, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the line before */
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(ptl_debug_file(), "postern[%d] pid %u: %s\n", (int)getpid(), ni->id.pid, line);
}
