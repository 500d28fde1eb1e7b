/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Lines for people, on stderr. The function that first knows an error says it: what was tried, on
 * what, why (%m), and what to do.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/* One line "postern[pid]: ...", nothing when PTL_QUIET is set. Keeps errno. */
void base_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same whatever PTL_QUIET says. For what must be seen, for what was asked for (PTL_REPORT), and
 * for the reader of PTL_QUIET itself. */
void base_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What this thread warned of since it forgot that, printed or not, as one line; "" if there was
 * nothing. So the cause of a failure reaches who reports it. */
const char *base_warnings(void);
void base_forget_warnings(void);

#endif
