/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processes that look like ranks and are none: those of a launcher that gave them no connection,
 * and those that a rank has started.
 */
#ifndef RUNTIME_RT_OTHERS_H
#define RUNTIME_RT_OTHERS_H

#include <stdbool.h>

/*
 * Is this process, to which nothing known describes a job, one of several that a launcher started?
 * 0, or -ENOTSUP after a warning that names the launcher and the remedy.
 */
int rt_check_others(void);

/*
 * Has the process that started this one, or started its parent, and so on, joined the job by the
 * connection with this number? It has kept the connection from what it starts then, and what has
 * the number here is another file. One that has ended since is known by the group that it has left.
 */
bool rt_is_taken(int fd);

#endif
