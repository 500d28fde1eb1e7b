/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Whose silence counts: nal/dgram/dgram_silence.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nal/dgram/dgram_silence.h"

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
		silence_look(&s, now - late, now, DEAD);
	}
	return now - silence_since(&s, since);
}

static void it_counts_while_we_listen(void **state)
{
	(void)state;
	assert_int_equal(looks(10, 0), DEAD);
	assert_int_equal(looks(10, DEAD / 8), 10 * (EVERY + DEAD / 8));
}

static void a_stop_begins_it_anew(void **state)
{
	(void)state;
	looks(3, 0);
	assert_int_equal(looks(1, 10 * DEAD), 0);
	assert_int_equal(looks(5, 0), 5 * EVERY);
	assert_int_equal(looks(1, 10 * DEAD), 0);
}

static void who_is_always_late_finds_out_too(void **state)
{
	(void)state;
	assert_int_equal(looks(10, DEAD / 4), 9 * (EVERY + DEAD / 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(it_counts_while_we_listen, fresh),
		cmocka_unit_test_setup(a_stop_begins_it_anew, fresh),
		cmocka_unit_test_setup(who_is_always_late_finds_out_too, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
