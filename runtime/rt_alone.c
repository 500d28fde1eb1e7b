/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A process without a launcher. It is a job of one rank, and keeps what it puts in a list.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/rt_backend.h"
#include "runtime/rt_names.h"

struct pair {
	struct pair *next;
	char *value;
	char key[]; /* with its terminator */
};

/* lock guards the variables below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool finished;
static struct pair *pairs; /* what was put */

static bool alone_visible(char *text, size_t size)
{
	snprintf(text, size, "always possible");
	return true;
}

static int alone_join(struct rt_job *job)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	job->kind = RT_ALONE;
	job->rank = 0;
	job->size = 1;
	snprintf(job->id, sizeof(job->id), "alone-%d-%llx", (int)getpid(),
		 (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec);
	return 0;
}

static struct pair *find_published(const char *key)
{
	struct pair *pair = pairs;

	while (pair && strcmp(pair->key, key))
		pair = pair->next;
	return pair;
}

static int alone_put(const char *key, const char *value)
{
	struct pair *pair = malloc(sizeof(*pair) + strlen(key) + 1);
	int err = -ENOMEM;

	if (!pair)
		return err;
	pair->value = strdup(value);
	strcpy(pair->key, key);
	pthread_mutex_lock(&lock);
	if (finished)
		err = -ESHUTDOWN;
	else if (find_published(key))
		err = -EEXIST;
	else if (pair->value)
		err = 0;
	if (!err) {
		pair->next = pairs;
		pairs = pair;
	}
	pthread_mutex_unlock(&lock);
	if (err) {
		free(pair->value);
		free(pair);
	}
	return err;
}

static int alone_get(int rank, const char *key, char *value, size_t len)
{
	struct pair *pair;
	int err = 0;

	pthread_mutex_lock(&lock);
	pair = rank ? NULL : find_published(key);
	if (finished)
		err = -ESHUTDOWN;
	else if (!pair)
		err = -ENOENT;
	else if (strlen(pair->value) >= len)
		err = -ERANGE;
	else
		strcpy(value, pair->value);
	pthread_mutex_unlock(&lock);
	return err;
}

static int alone_fence(void)
{
	int err;

	pthread_mutex_lock(&lock);
	err = finished ? -ESHUTDOWN : 0;
	pthread_mutex_unlock(&lock);
	return err;
}

static int alone_local(int *rank, int *size)
{
	*rank = 0;
	*size = 1;
	return 0;
}

static void alone_fini(int status)
{
	(void)status;
	pthread_mutex_lock(&lock);
	finished = true;
	pthread_mutex_unlock(&lock);
	rt_names_forget(getpid());
}

const struct rt_backend rt_alone_backend = {
	.name = "none",
	.visible = alone_visible,
	.join = alone_join,
	.put = alone_put,
	.fence = alone_fence,
	.get = alone_get,
	.local = alone_local,
	.fini = alone_fini,
};
