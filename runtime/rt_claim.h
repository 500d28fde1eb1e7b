/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A rank's name on its host. The first of its processes that joins the job takes it, and the
 * processes that this one starts see that they are no ranks.
 */
#ifndef RUNTIME_RT_CLAIM_H
#define RUNTIME_RT_CLAIM_H

#include <pthread.h>
#include <stdbool.h>

struct rt_claim {
	int fd; /* the socket that has the name; -1: none */
	/* The thread that accepts those that ask. Without it there is room for 4,096 of them. */
	pthread_t thread;
	bool accepts;
	_Atomic bool ends;
};

/*
 * Take a name for this process among those of this user and host, until rt_unclaim or its end.
 * The processes that it starts do not have it. 0, and the claim stays where it is; RT_NOT_A_RANK if
 * another process has the name; or -errno after a warning.
 */
int rt_claim(const char *name, struct rt_claim *claim);
void rt_unclaim(struct rt_claim *claim);

#endif
