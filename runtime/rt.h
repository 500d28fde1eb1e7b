/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Wire-up: the rank of this process in the parallel job, and a way to exchange small values
 * with the other ranks. The launcher is discovered once: PMIx, else PMI-2, else PMI-1, else the
 * variables of the reference implementation (PTL_MY_RID with PTL_NIDMAP and PTL_PIDMAP), else
 * this process is alone. A launcher that can be seen but not used is an error: N processes never
 * each believe to be alone. PTL_LAUNCHER overrides: none makes a process alone whatever it sees,
 * and pmix, pmi2 or pmi1 makes the lack of such a launcher an error.
 *
 * A process that a rank starts while the rank is in the job does not belong to the job: it is
 * alone. A rank may be a script that runs one program after the other. The programs that all
 * ranks run next then form a job of their own, if the launcher allows it, as ours does.
 *
 * All calls are thread-safe. Only the process that joined a launcher's job may use them. In a
 * child made by fork they return -ECHILD and do not touch the connection to the launcher.
 */
#ifndef RUNTIME_RT_H
#define RUNTIME_RT_H

#include <stdbool.h>
#include <stddef.h>

enum rt_kind { RT_ALONE, RT_ENV, RT_LAUNCHER };

struct rt_job {
	enum rt_kind kind;
	int rank, size;
	/* A get of what another rank put costs no request to a process that all share. */
	bool gets_are_local;
	/* The same in all processes of the job. Different in each job, as far as the launcher
	 * ensures that. */
	char id[64];
};

enum {
	RT_KEY_MAX = 32,           /* characters of a key, of A-Z a-z 0-9 _ . - */
	RT_VALUE_MAX = 1024 * 1024 /* bytes of a value, without its terminator */
};

/* The key of a value that PTL_PMI_DEBUG does not show. */
#define RT_SECRET_KEY "ptl.secret"
/* The message of a process to those that it spawns. MPI's has a port's secret. */
#define RT_MESSAGE_KEY "ptl.message"

/*
 * Find the launcher. May be called again: the result of the first call stays, also a launcher's
 * failure. Returns 0, or -errno after a warning with cause and remedy. May wait for the
 * launcher's answer, at most a minute for each of three.
 */
int rt_init(const struct rt_job **job);

/*
 * put makes a value known to the job. fence waits until all processes have called it. get reads
 * a value that this rank put before the fence. A key is put once in a job, by one rank. A value
 * is any C string.
 * In a process that is alone, they work within it; with RT_ENV they return -EOPNOTSUPP.
 *
 * Other errors: -EINVAL (key), -E2BIG (value), -ENOENT (get: nobody put it), -ERANGE (get:
 * buffer too short), -ESHUTDOWN (after rt_fini), -ECONNRESET (the launcher is gone), -EPROTO,
 * -ECHILD.
 */
int rt_put(const char *key, const char *value);
int rt_fence(void);
int rt_get(int rank, const char *key, char *value, size_t len);

/*
 * The number of the launcher's program that this process runs, counted from 0. It is 0 if there
 * is only one program, without a launcher, and if the launcher does not say. Returns 0, or
 * -errno as rt_init, -ESHUTDOWN or -ECHILD.
 */
int rt_program(int *number);

/*
 * The place of this process among the ranks of its host, and their number, as the launcher sees
 * it. Asks the launcher at each call. Returns 0, -ENOENT or -EPROTO if it does not say,
 * -EOPNOTSUPP with RT_ENV, or -errno as rt_get.
 */
int rt_local(int *rank, int *size);

/* One program of a job that is spawned. NULL in a member but file: the launcher's default. */
struct rt_command {
	const char *file;
	char *const *argv; /* without the program's name; ends with NULL; may be NULL */
	int count;         /* processes */
	const char *wdir, *path, *host, *soft;
};

/*
 * Ask the launcher to start a job of these programs, beside this one. Its processes get `message`
 * by rt_message. Waits until they run. Returns 0, -EOPNOTSUPP if the launcher does not do that,
 * -EINVAL if a text cannot be passed on, -EIO if it could not start them, or -errno as rt_get;
 * *why says more in words, in `size` bytes.
 */
int rt_spawn(const struct rt_command *commands, int n, const char *message, char *why, size_t size);
/* The message of the process that spawned this job. -ENOENT: nobody has spawned it. Else as
 * rt_get. */
int rt_message(char *text, size_t size);

/* The number of processes that the launcher has room for. As rt_local. */
int rt_universe(int *size);

/*
 * Publish a value under a name, find it, and take it back. By the launcher, if it keeps names,
 * else among the processes of this host and user. Returns 0, -EEXIST (is published already),
 * -ENOENT (is not), -ERANGE (size), -E2BIG, or another -errno.
 */
int rt_publish(const char *name, const char *value);
int rt_lookup(const char *name, char *value, size_t size);
int rt_unpublish(const char *name);

/* Show for each way to a launcher its name, the outcome ("used", "refused", "not seen", ...) and
 * why. Call rt_init first. */
void rt_list(void (*show)(const char *name, const char *state, const char *why));

/*
 * Ask the launcher to end the whole job with this exit code, after printing message (may be
 * NULL). Returns, with 0 if a launcher was told: the caller exits by itself. Works while other
 * threads wait in a fence.
 */
int rt_abort(int code, const char *message);

/*
 * Tell the launcher that this process has left the job's wire-up, so that its exit code is no
 * reason to end the job. Repeated calls do nothing. A process that exits with 0 without the call
 * leaves, too, but its exit code still counts. One that exits with another code has failed, which
 * ends the job.
 */
void rt_fini(void);

#endif
