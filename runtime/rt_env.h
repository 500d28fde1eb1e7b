/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A job described by the variables of the reference implementation. PTL_MY_RID is this
 * process's rank. PTL_NIDMAP and PTL_PIDMAP hold the ids of all ranks as numbers separated by
 * colons.
 */
#ifndef RUNTIME_RT_ENV_H
#define RUNTIME_RT_ENV_H

#include <stdint.h>

enum { RT_ENV_MAX = 65536 }; /* most entries of a map */

struct rt_env {
	int rank, size;
	uint32_t *nids, *pids; /* size entries each */
};

/*
 * Parse the three texts. Entries are decimal or 0x..., nids also dotted (10.0.0.1). A colon at
 * the end is allowed. Returns 0, -EINVAL after a warning that names variable and entry, or
 * -ENOMEM.
 */
int rt_env_parse(const char *rid, const char *nidmap, const char *pidmap, struct rt_env **env);

/*
 * Parse the present environment: clients set the variables themselves before PtlInit or
 * PtlSetRank. Returns as rt_env_parse, or -ENOENT, without a warning, when a variable is
 * missing. *missing is then its name, and *found the name of one that is set, or NULL when none
 * is. With PTL_LAUNCHER=none all count as missing.
 */
int rt_env_read(struct rt_env **env, const char **missing, const char **found);

/* Free it; NULL does nothing. */
void rt_env_destroy(struct rt_env *env);

#endif
