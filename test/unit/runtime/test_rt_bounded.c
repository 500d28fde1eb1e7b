/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A call with a bound: it ends in time, or its result is undone when it ends later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "runtime/rt_bounded.h"

static sem_t may_end, undone;
static pthread_t caller;
static sigset_t mask;

static void answer(void *arg)
{
	*(int *)arg = 1;
	caller = pthread_self();
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
}

static void answer_late(void *arg)
{
	(void)arg;
	while (sem_wait(&may_end))
		;
}

static void undo(void *arg)
{
	sem_post(arg);
}

static void a_call_that_ends_is_not_undone(void **state)
{
	int count, answered = 0;

	(void)state;
	assert_int_equal(rt_bounded(answer, undo, &answered, 60000), 0);
	assert_int_equal(answered, 1);
	assert_false(pthread_equal(caller, pthread_self()));
	assert_true(sigismember(&mask, SIGTERM)); /* handlers run in the program's threads */
	assert_int_equal(sem_getvalue(&undone, &count), 0);
	assert_int_equal(count, 0);
}

static void a_call_that_ends_late_is_undone(void **state)
{
	struct timespec deadline;

	(void)state;
	assert_int_equal(rt_bounded(answer_late, undo, &undone, 20), -ETIMEDOUT);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += 60;
	sem_post(&may_end);
	while (sem_timedwait(&undone, &deadline))
		assert_int_equal(errno, EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_ends_is_not_undone),
		cmocka_unit_test(a_call_that_ends_late_is_undone),
	};

	sem_init(&may_end, 0, 0);
	sem_init(&undone, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
