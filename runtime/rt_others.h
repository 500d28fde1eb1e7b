/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processes that look like ranks but are not: processes whose launcher gave them no connection,
 * and processes that a rank has started.
 */
#ifndef RUNTIME_RT_OTHERS_H
#define RUNTIME_RT_OTHERS_H

#include <stdbool.h>

/*
 * Is this process one of several that a launcher started, although nothing known describes a
 * job? If so, returns -ENOTSUP after a warning that names the launcher and the remedy; else 0.
 */
int rt_check_others(void);

/*
 * Call check, whose trouble all processes of this host, or of the whole job, have as well. One of
 * them prints its warnings, by the rank that launchers' variables give; one without a rank prints
 * them, too. Returns as check.
 */
int rt_say_once(bool whole_job, int (*check)(void));

/* Has rt_say_once kept this process from printing why it failed? */
bool rt_is_silent(void);

/*
 * Has an ancestor of this process joined the job by the connection with this number? Such a
 * process keeps the connection from the processes it starts, so the number here is another
 * file. An ancestor that has ended since is recognized by its process group.
 */
bool rt_is_taken(int fd);

#endif
