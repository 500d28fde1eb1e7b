/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A rank's name on its host. The first of its processes that joins the job takes it, and the
 * processes that this one starts see that they are no ranks.
 */
#ifndef RUNTIME_RT_CLAIM_H
#define RUNTIME_RT_CLAIM_H

/*
 * Take a name for this process among those of this user and host, until rt_unclaim or its end.
 * The processes that it starts do not have it. 0; RT_NOT_A_RANK if another process has it; or
 * -errno after a warning.
 */
int rt_claim(const char *name, int *fd);
void rt_unclaim(int *fd);

#endif
