/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Published names of this host and user: a file for each, in a folder that nobody else can read.
 * They are for mpiexec, and for processes whose launcher keeps no names. A name goes when its
 * owner unpublishes it. That of an owner that has ended counts as gone.
 */
#ifndef RUNTIME_RT_NAMES_H
#define RUNTIME_RT_NAMES_H

#include <stddef.h>
#include <sys/types.h>

/* Any text for both, without a newline in the value. Results: 0; -EEXIST, the name is published;
 * -ENOENT, it is not; -E2BIG, it is too long; -ERANGE, `size` is too little; another -errno, the
 * folder cannot be used. */
int rt_names_publish(const char *name, const char *value, pid_t owner);
int rt_names_lookup(const char *name, char *value, size_t size);
int rt_names_unpublish(const char *name);
/* Unpublish what this owner has published. */
void rt_names_forget(pid_t owner);

#endif
