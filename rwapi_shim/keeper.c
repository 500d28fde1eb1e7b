/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The keeper: a thread that sends short messages which were held back, while the program computes.
 * It is made when the first message is held back, and sleeps soon after the last one has left. As
 * long as the program itself calls in, the keeper only checks once in a period. So it neither
 * wakes for each message nor takes the lock's bias away from the program's thread.
 */
#include "rwapi_shim/impl.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#define PERIOD_NS 1000000  /* a program that did not call in for so long computes */
enum { IDLE_PERIODS = 8 }; /* with nothing held back, before it sleeps */

/* Order: rw.lock, then this mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_t thread;
/* Guarded by the mutex. `asleep`: the keeper needs a signal. */
static bool made, wanted, asleep, stopping;

/* Sleep until there is work. False: it is over. */
static bool keeper_sleep(void)
{
	bool go_on;

	pthread_mutex_lock(&mutex);
	asleep = true;
	while (!wanted && !stopping)
		pthread_cond_wait(&changed, &mutex);
	asleep = false;
	wanted = false;
	go_on = !stopping;
	pthread_mutex_unlock(&mutex);
	return go_on;
}

/* Let PERIOD_NS pass. False: it is over. */
static bool keeper_pause(void)
{
	struct timespec end;
	bool go_on;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += PERIOD_NS;
	if (end.tv_nsec >= 1000000000) {
		end.tv_nsec -= 1000000000;
		end.tv_sec++;
	}
	pthread_mutex_lock(&mutex);
	if (!stopping)
		pthread_cond_timedwait(&changed, &mutex, &end);
	go_on = !stopping;
	pthread_mutex_unlock(&mutex);
	return go_on;
}

/* Wait for the end of a write, and send what may go then. */
static void keeper_turn(void)
{
	int which;

	PtlEQAwait(&rw.queue[RW_QUEUE_ENDS], 1, RW_SLICE_MS, &which);
	rw_lock(&rw.lock);
	rw_progress(false);
	rw_unlock(&rw.lock);
}

static bool any_held(void)
{
	bool any;

	rw_lock(&rw.lock);
	any = rw.held != 0;
	rw_unlock(&rw.lock);
	return any;
}

static void *keeper(void *unused)
{
	(void)unused;
	while (keeper_sleep()) {
		for (int idle = 0; idle < IDLE_PERIODS; idle++) {
			uint64_t rounds = atomic_load_explicit(&rw.rounds, memory_order_relaxed);

			if (!keeper_pause())
				return NULL;
			if (!any_held())
				continue;
			idle = 0;
			if (atomic_load_explicit(&rw.rounds, memory_order_relaxed) == rounds)
				keeper_turn();
		}
	}
	return NULL;
}

/* Signals are for the program's threads. */
static void make_keeper(void)
{
	pthread_condattr_t monotonic;
	sigset_t all, before;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* without the thread, messages go at the program's next call */
	made = pthread_create(&thread, NULL, keeper, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void rw_keeper_wake(void)
{
	pthread_mutex_lock(&mutex);
	if (!made)
		make_keeper();
	wanted = true;
	if (asleep)
		pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
}

void rw_keeper_stop(void)
{
	bool was_made;

	pthread_mutex_lock(&mutex);
	stopping = true;
	was_made = made;
	if (made)
		pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
	if (was_made)
		pthread_join(thread, NULL);
}
