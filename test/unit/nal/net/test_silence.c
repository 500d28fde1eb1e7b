/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Whose silence counts: nal/net/silence.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nal/net/silence.h"

enum { DEAD = 1000, EVERY = 100 };

static struct silence s;
static uint64_t now;

static int fresh(void **state)
{
	(void)state;
	s = (struct silence){ 0 };
	now = 5000;
	return 0;
}

/* n looks, each `late` after it was due; how long a peer has been silent then. */
static uint64_t looks(int n, uint64_t late)
{
	const uint64_t since = now;

	while (n--) {
		now += EVERY + late;
		silence_check(&s, now - late, now, DEAD);
	}
	return now - silence_since(&s, since);
}

static void it_counts_while_we_listen(void **state)
{
	(void)state;
	assert_int_equal(looks(10, 0), DEAD);
	assert_int_equal(looks(10, DEAD / 8), 10 * (EVERY + DEAD / 8));
}

static void a_stop_is_left_out(void **state)
{
	(void)state;
	looks(3, 0);
	assert_int_equal(looks(1, 10 * DEAD), EVERY);
	assert_int_equal(looks(5, 0), 5 * EVERY);
	assert_int_equal(looks(1, 10 * DEAD), EVERY);
}

/* As of a packet that is taken in before the timers are looked at. */
static void what_was_heard_after_a_stop_is_not_older(void **state)
{
	uint64_t heard;

	(void)state;
	now += 10 * DEAD;
	heard = now - 1;
	silence_check(&s, now - 10 * DEAD, now, DEAD);
	assert_int_equal(silence_since(&s, heard), now);
}

static void who_is_stopped_again_and_again_finds_out_too(void **state)
{
	const uint64_t since = now;

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_in_range(now - silence_since(&s, since), 0, DEAD - 1);
		looks(1, 0);
		looks(1, DEAD / 4);
	}
	assert_in_range(now - silence_since(&s, since), DEAD, 2 * DEAD);
}

static void who_is_always_late_finds_out_too(void **state)
{
	(void)state;
	assert_int_equal(looks(10, DEAD / 4), 10 * EVERY + 6 * DEAD / 4);
}

static void silence_ends_where_listening_ends(void **state)
{
	const uint64_t since = now;

	(void)state;
	looks(10, 0);
	assert_int_equal(silence_so_far(&s, since), 0);
	silence_listened(&s, since + DEAD / 2);
	assert_int_equal(silence_so_far(&s, since), DEAD / 2);
	silence_listened(&s, since); /* an older one changes nothing */
	assert_int_equal(silence_so_far(&s, since), DEAD / 2);
	assert_int_equal(silence_so_far(&s, since + DEAD), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(it_counts_while_we_listen, fresh),
		cmocka_unit_test_setup(a_stop_is_left_out, fresh),
		cmocka_unit_test_setup(silence_ends_where_listening_ends, fresh),
		cmocka_unit_test_setup(what_was_heard_after_a_stop_is_not_older, fresh),
		cmocka_unit_test_setup(who_is_stopped_again_and_again_finds_out_too, fresh),
		cmocka_unit_test_setup(who_is_always_late_finds_out_too, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
