/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The process's end of a PMI-2 connection. It knows nothing of discovery: it is given the
 * socket.
 */
#ifndef RUNTIME_RT_PMI2_H
#define RUNTIME_RT_PMI2_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/rt_link.h"

enum { RT_PMI2_JOBID_MAX = 256 };

struct rt_pmi2 {
	struct rt_link link;
	/* of this job; constant after rt_pmi2_init */
	int rank, size, program;
	char jobid[RT_PMI2_JOBID_MAX + 1];
};

/*
 * Join the job on this socket as this rank. job_text is the value of PMI_JOBID, NULL if there is
 * none. The caller keeps the socket. Returns 0; -EPROTONOSUPPORT, without a warning, if the
 * launcher does not speak PMI-2 and may speak PMI-1; or -errno after a warning. There is nothing
 * to release then.
 */
int rt_pmi2_init(struct rt_pmi2 *pmi, int fd, int rank, const char *job_text, bool debug);

/* Send finalize and wait for its answer, as far as the connection allows; free the memory of
 * init. */
void rt_pmi2_fini(struct rt_pmi2 *pmi);

/* As in rt.h. The caller has checked key and value. */
int rt_pmi2_put(struct rt_pmi2 *pmi, const char *key, const char *value);
int rt_pmi2_get(struct rt_pmi2 *pmi, const char *key, char *value, size_t len);
int rt_pmi2_fence(struct rt_pmi2 *pmi);
int rt_pmi2_local(struct rt_pmi2 *pmi, int *rank, int *size);
int rt_pmi2_abort(struct rt_pmi2 *pmi, int code, const char *message);

#endif
