/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Both sides decide under a lock whether the call has ended in time. The side that comes last
 * frees what they share.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/cpu.h"
#include "runtime/rt_bounded.h"

enum { STEP_MS = 100 }; /* longest single wait */

struct bounded {
	void (*call)(void *arg), (*undo)(void *arg);
	void *arg;
	pthread_mutex_t lock; /* guards the next two */
	bool ended, abandoned;
	pthread_cond_t changed; /* ended is set */
};

static struct bounded *make_bounded(void (*call)(void *), void (*undo)(void *), void *arg)
{
	struct bounded *b = malloc(sizeof(*b));
	pthread_condattr_t attr;

	if (!b)
		return NULL;
	*b = (struct bounded){ .call = call, .undo = undo, .arg = arg };
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->changed, &attr);
	pthread_condattr_destroy(&attr);
	return b;
}

static void free_bounded(struct bounded *b)
{
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void *make_call(void *arg)
{
	struct bounded *b = arg;
	bool late;

	b->call(b->arg);
	pthread_mutex_lock(&b->lock);
	b->ended = true;
	late = b->abandoned;
	pthread_cond_signal(&b->changed);
	pthread_mutex_unlock(&b->lock);
	if (late) {
		b->undo(b->arg);
		free_bounded(b);
	}
	return NULL;
}

/* Wait for the call, a step at a time: a step counts for no more than its length. */
static bool ends_in_time(struct bounded *b, int left_ms)
{
	bool ended;

	pthread_mutex_lock(&b->lock);
	while (!b->ended && left_ms > 0) {
		const int step = left_ms < STEP_MS ? left_ms : STEP_MS;
		const uint64_t until = base_now_ns() + (uint64_t)step * 1000000u;
		const struct timespec at = { .tv_sec = (time_t)(until / 1000000000u),
					     .tv_nsec = (long)(until % 1000000000u) };

		if (pthread_cond_timedwait(&b->changed, &b->lock, &at) == ETIMEDOUT)
			left_ms -= step;
	}
	ended = b->ended;
	b->abandoned = !ended;
	pthread_mutex_unlock(&b->lock);
	return ended;
}

int rt_bounded(void (*call)(void *arg), void (*undo)(void *arg), void *arg, int timeout_ms)
{
	struct bounded *b = make_bounded(call, undo, arg);
	sigset_t all, before;
	pthread_t thread;
	int err;

	if (!b)
		return -ENOMEM;
	/* the application's threads handle the application's signals */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, make_call, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		free_bounded(b);
		return -err;
	}
	if (!ends_in_time(b, timeout_ms)) {
		pthread_detach(thread);
		return -ETIMEDOUT;
	}
	pthread_join(thread, NULL);
	free_bounded(b);
	return 0;
}
