/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Warnings and requested messages. Each line is put together first and written by one
 * write(2), so lines of several processes on one terminal do not mix.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"

static _Thread_local char warned[2048]; /* the warnings, one after another */
static _Thread_local int held;          /* by as many */

static void write_line(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));

static void write_line(const char *fmt, va_list args)
{
	int saved = errno;
	char brief[1024], *line = brief;
	size_t room = sizeof(brief) - 1; /* leaves room for the newline */
	size_t len = (size_t)snprintf(line, room, "postern[%ld]: ", (long)getpid()), whole;
	va_list again;

	va_copy(again, args);
	errno = saved; /* fmt may say %m */
	whole = len + (size_t)vsnprintf(line + len, room - len, fmt, args);
	/* the remedy stands at the end, behind paths of any length */
	if (whole >= room && (line = malloc(whole + 2))) {
		memcpy(line, brief, len);
		errno = saved;
		vsnprintf(line + len, whole + 1 - len, fmt, again);
	}
	va_end(again);
	if (!line)
		line = brief;
	len = strlen(line);
	line[len++] = '\n';
	/* if stderr is gone, there is nobody to tell */
	if (write(STDERR_FILENO, line, len) < 0)
		errno = saved;
	if (line != brief)
		free(line);
	errno = saved;
}

void base_say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(fmt, args);
	va_end(args);
}

static void keep(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));

static void keep(const char *fmt, va_list args)
{
	int saved = errno;
	size_t len = strlen(warned);

	if (len)
		len += (size_t)snprintf(warned + len, sizeof(warned) - len, "; ");
	errno = saved;
	if (len < sizeof(warned))
		vsnprintf(warned + len, sizeof(warned) - len, fmt, args);
	errno = saved;
}

void base_warn(const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	keep(fmt, args);
	va_end(args);
	if (held > 0 || base_config()->ptl_quiet)
		return;
	errno = saved;
	va_start(args, fmt);
	write_line(fmt, args);
	va_end(args);
}

void base_hold_warnings(bool hold)
{
	held += hold ? 1 : -1;
}

void base_forget_warnings(void)
{
	warned[0] = '\0';
}

const char *base_warnings(void)
{
	return warned;
}
