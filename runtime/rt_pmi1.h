/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The process's end of a PMI-1 connection. It knows nothing of discovery: it is given the
 * socket.
 */
#ifndef RUNTIME_RT_PMI1_H
#define RUNTIME_RT_PMI1_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/rt_link.h"

enum { RT_PMI1_KVSNAME_MAX = 256 };

struct rt_pmi1 {
	struct rt_link link;
	char kvsname[RT_PMI1_KVSNAME_MAX + 1]; /* of this job; constant after rt_pmi1_init */
	int key_max, value_max;                /* characters the launcher stores; also constant */
	_Atomic int program; /* the launcher's number of this program; 0 if it does not say */
	bool asks_program;   /* sent, without an answer yet; under link.call */
	bool at_exit;        /* the process ends and has not left the job by itself */
};

/*
 * Join the job on this socket: init, limits, program, name. The caller keeps the socket.
 * Returns 0, or -errno after a warning; there is nothing to release then.
 */
int rt_pmi1_init(struct rt_pmi1 *pmi, int fd, bool debug);

/* Send finalize and wait for its answer, as far as the connection allows; free the memory of
 * init. */
void rt_pmi1_fini(struct rt_pmi1 *pmi);

/* As in rt.h. The caller has checked key and value. */
int rt_pmi1_put(struct rt_pmi1 *pmi, const char *key, const char *value);
int rt_pmi1_get(struct rt_pmi1 *pmi, const char *key, char *value, size_t len);
int rt_pmi1_fence(struct rt_pmi1 *pmi);
int rt_pmi1_abort(struct rt_pmi1 *pmi, int code);

#endif
