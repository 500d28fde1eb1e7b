/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages for people, on stderr. The function that first detects an error reports it: the
 * attempt, its object, the reason (%m), and the remedy.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

/* Print one line "postern[pid]: ..."; nothing if PTL_QUIET is set. Keeps errno. */
void base_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same, whatever PTL_QUIET says: for messages that must be seen, that the user asked for
 * (PTL_REPORT), or that the reader of PTL_QUIET itself prints. */
void base_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* From here to base_hold_warnings(false) this thread's warnings are kept for base_warnings() and
 * not printed: another way is tried, or another process says the same. Such pairs nest. */
void base_hold_warnings(bool hold);

/* The warnings of this thread since base_forget_warnings(), printed or not, as one line; "" if
 * there were none. They carry the cause of a failure to the code that reports it. */
const char *base_warnings(void);
void base_forget_warnings(void);

#endif
