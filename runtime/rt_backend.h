/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The contract between rt.c and the ways to reach a launcher. Each way is a table of functions in
 * a file of its own. rt.c tries those whose launcher can be seen, in the order of its list, and
 * uses the first that lets this process join.
 *
 * rt.c calls visible and join under its lock, and the others only after a join that gave 0.
 * All others may run in several threads at once. A NULL member is one that the way does not have.
 */
#ifndef RUNTIME_RT_BACKEND_H
#define RUNTIME_RT_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/rt.h"

enum { RT_NOT_A_RANK = 1, RT_LEAVES = -1 };

struct rt_backend {
	const char *name; /* a choice of PTL_LAUNCHER */
	/* Store in text the sign of such a launcher ("PMI_FD is set"), or why none can be seen. */
	bool (*visible)(char *text, size_t size);
	/*
	 * Join the job and fill in rank, size and id. Returns 0; or -errno after a warning with
	 * cause and remedy; or RT_NOT_A_RANK if another process of this rank is in the job, so
	 * that this one is alone. May wait for the launcher, at most a minute for an answer.
	 */
	int (*join)(struct rt_job *job);
	/* As rt_put and so on. The key and the length of the value have been checked. */
	int (*put)(const char *key, const char *value);
	int (*fence)(void);
	int (*get)(int rank, const char *key, char *value, size_t len);
	int (*program)(void);
	int (*local)(int *rank, int *size);
	int (*abort)(int code, const char *message);
	/* As rt_spawn and so on. */
	int (*spawn)(const struct rt_command *commands, int n, const char *message, char *why,
		     size_t size);
	int (*message)(char *text, size_t size);
	int (*universe)(int *size);
	int (*publish)(const char *name, const char *value);
	int (*lookup)(const char *name, char *value, size_t size);
	int (*unpublish)(const char *name);
	/*
	 * Leave the job; once. status: that of exit, or RT_LEAVES by rt_fini. A rank that ends
	 * with another status than 0 has failed: the launcher is to end the job. Ours has a word
	 * for that. Others take who leaves for done, but see the connection's end.
	 */
	void (*fini)(int status);
};

/* The job's id is this name if it fits, else its start and a hash of the whole name. */
void rt_set_id(struct rt_job *job, const char *name);

/* Is this the key of a value, or of a part of one, that no message may show? */
bool rt_is_secret(const char *key);

extern const struct rt_backend rt_pmix_backend, rt_pmi2_backend, rt_pmi1_backend, rt_alone_backend;

#endif
