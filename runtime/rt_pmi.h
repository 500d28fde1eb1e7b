/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The socket of PMI_FD, over which both versions of PMI are spoken.
 */
#ifndef RUNTIME_RT_PMI_H
#define RUNTIME_RT_PMI_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/rt.h"

/* As rt_backend.h has it, for either version. */
bool rt_pmi_visible(char *text, size_t size);

/* Are PMI_FD, PMI_RANK and PMI_SIZE set, and is PMI_FD a socket? */
bool rt_pmi_connected(void);

/* Has a rank that joined by PMI_FD started this process? */
bool rt_pmi_is_taken(void);

/*
 * Check the socket and fill in rank and size. Returns as rt_backend.h's join. A second call, for
 * the other version, gives the same result, without the warning.
 */
int rt_pmi_socket(struct rt_job *job, int *fd);

/* The connection has broken: rt_pmi_socket gives this error from now on. */
void rt_pmi_give_up(int err);

/* The answer to "cmd=init" at the other end of a link that was just opened: 0, -EPROTONOSUPPORT
 * without a warning if the launcher does not speak this version, or -errno after a warning. */
struct rt_link;
int rt_pmi_ask_version(struct rt_link *link, int version);

#endif
