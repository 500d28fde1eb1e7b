/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Yields end for a while once one came back late. The test's own sched_yield() decides how late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "base/yield.h"

static long turn_ns; /* how long the others run */
static int yields;

int sched_yield(void)
{
	struct timespec t = { .tv_nsec = turn_ns };

	yields++;
	if (turn_ns)
		nanosleep(&t, NULL);
	return 0;
}

/* A turn may come late beside other work: then the pause has to end first. */
static void wait_until_it_helps(void)
{
	struct timespec t = { .tv_nsec = 1000000 };

	while (!base_yield_helps())
		nanosleep(&t, NULL);
}

static void prompt_turns_go_on(void **state)
{
	int prompt = 0;

	(void)state;
	turn_ns = 0;
	for (int i = 0; i < 1000 && prompt < 10; i++) {
		wait_until_it_helps();
		yields = 0;
		base_yield();
		prompt += yields == 1 && base_yield_helps();
	}
	assert_int_equal(prompt, 10);
}

static void a_late_turn_ends_them(void **state)
{
	(void)state;
	wait_until_it_helps();
	turn_ns = 50000000;
	yields = 0;
	assert_true(base_yield());
	/* the pause is twenty turns, a second, and nothing here takes as long */
	assert_false(base_yield_helps());
	assert_false(base_yield());
	assert_int_equal(yields, 1);
}

static void they_begin_again(void **state)
{
	(void)state;
	turn_ns = 0;
	wait_until_it_helps();
	yields = 0;
	assert_true(base_yield());
	assert_int_equal(yields, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prompt_turns_go_on),
		cmocka_unit_test(a_late_turn_ends_them),
		cmocka_unit_test(they_begin_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
