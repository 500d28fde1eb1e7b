/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Wire-up: who am I in the parallel job, and a way to tell the others something small. The launcher
 * is discovered once: PMI-1, else the variables of the reference implementation (PTL_MY_RID with
 * PTL_NIDMAP and PTL_PIDMAP), else this process is alone. A launcher that can be seen but not used
 * is an error; it never makes N processes that each believe to be alone. What a rank starts while
 * it is in the job is not of the job, and alone. A rank may be a script that runs one program after
 * the other: those that all ranks run next make a job of their own, where the launcher allows it,
 * as ours does.
 *
 * All calls are thread-safe. Only the process that joined a launcher's job may use them: in a child
 * made by fork they return -ECHILD and leave the connection to the launcher alone.
 */
#ifndef RUNTIME_RT_H
#define RUNTIME_RT_H

#include <stddef.h>

enum rt_kind { RT_ALONE, RT_ENV, RT_PMI1 };

struct rt_job {
	enum rt_kind kind;
	int rank, size;
	char id[64]; /* the same in all processes of the job; another one in each job, as far as the
		      * launcher sees to it */
};

enum {
	RT_KEY_MAX = 32,           /* characters of a key, of A-Z a-z 0-9 _ . - */
	RT_VALUE_MAX = 1024 * 1024 /* bytes of a value, without its terminator */
};

/*
 * Finds the launcher. May be called again: what the first call found stays, and so does a
 * launcher's failure. Returns 0, or -errno after a warning with cause and remedy. May wait for
 * the launcher's answer, a minute at most for each of three.
 */
int rt_init(const struct rt_job **job);

/*
 * put makes a value known to the job, fence waits until all processes have called it, get reads
 * what was put before the fence. A key is put once in a job. Any value that is a C string is
 * possible. Alone they work within the process; with RT_ENV they return -EOPNOTSUPP. Other
 * errors: -EINVAL (key), -E2BIG (value), -ENOENT (get: nobody put it), -ERANGE (get: buffer too
 * short), -ESHUTDOWN (after rt_fini), -ECONNRESET (the launcher is gone), -EPROTO, -ECHILD.
 */
int rt_put(const char *key, const char *value);
int rt_fence(void);
int rt_get(const char *key, char *value, size_t len);

/*
 * Which of the programs that the launcher was given this process runs, counted from 0: 0 where
 * there is only one, without PMI-1, and where the launcher does not say. -errno: as rt_init;
 * -ESHUTDOWN, -ECHILD.
 */
int rt_program(int *number);

/*
 * Asks the launcher to end the whole job with this exit code, after printing message (may be
 * NULL). Returns, with 0 if a launcher was told: the caller exits by itself. Works while other
 * threads wait in a fence.
 */
int rt_abort(int code, const char *message);

/*
 * Tells the launcher that this process takes no part in the job's wire-up any more, so that its
 * exit code is no reason to end the job. Once; repeated calls do nothing. Happens at exit by
 * itself.
 */
void rt_fini(void);

#endif
