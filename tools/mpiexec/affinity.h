/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The processors that this process may use, the units that they make up, and binding to some of
 * them. One of the functions that choose is followed by affinity_apply(), in a child.
 */
#ifndef MPIEXEC_AFFINITY_H
#define MPIEXEC_AFFINITY_H

#include <stddef.h>

#include "tools/mpiexec/options.h"

/* Find the units to bind to and those to deal out over. Returns the number of the former, or
 * -errno if processes cannot be bound. */
int affinity_init(enum unit bind, enum unit map);

/* How many processors this process may use. After affinity_init(). */
int affinity_processors(void);

/* Choose `count` units from `first` on, modulo their number. */
void affinity_choose(int first, int count);

/* Choose `count` units for a rank: ranks go round the units of the map, and inside of each from one
 * unit to the next. */
void affinity_choose_dealt(int rank, int count);

/* Choose what a list has for a rank; the list begins again at its end. Returns 0, or -EINVAL if it
 * has a processor that this process may not use. */
int affinity_choose_listed(const char *list, int rank);

/* The choice as the kernel writes it: "0-3,8". */
void affinity_text(char *buf, size_t size);

/* Bind the calling process to what was chosen. Returns 0 or -errno. */
int affinity_apply(void);

#endif
