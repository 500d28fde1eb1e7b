/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The tuner finds the fastest of several paths by their costs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/tuner.h"

enum { MOST = 3 };

/* Does it `n` times and returns what that costs; gone[] counts how often each way. */
static uint64_t do_it(struct base_tuner *w, const uint64_t *cost, unsigned int n,
		      unsigned int *gone)
{
	uint64_t took = 0;

	for (unsigned int i = 0; i < MOST; i++)
		gone[i] = 0;
	while (n--) {
		assert_in_range(w->now, 0, w->paths - 1);
		gone[w->now]++;
		took += cost[w->now];
		base_tuner_ended(w, base_tuner_timed(w) ? cost[w->now] : 0);
	}
	return took;
}

static const uint64_t costs[][MOST] = {
	{ 100, 200, 300 }, { 100, 300, 200 }, { 200, 100, 300 },
	{ 300, 100, 200 }, { 200, 300, 100 }, { 300, 200, 100 },
};

static void the_fastest_is_found_from_everywhere(void **state)
{
	unsigned int gone[MOST];
	struct base_tuner w;

	(void)state;
	for (unsigned int ways = 2; ways <= MOST; ways++)
		for (unsigned int now = 0; now < ways; now++)
			for (size_t k = 0; k < sizeof(costs) / sizeof(*costs); k++) {
				unsigned int best = 0;

				for (unsigned int i = 1; i < ways; i++)
					if (costs[k][i] < costs[k][best])
						best = i;
				base_tuner_init(&w, ways, now);
				assert_int_equal(w.now, now);
				do_it(&w, costs[k], 2000, gone);
				/* the others are tried, which costs one part in sixty-four of
				 * the time, or one trial more */
				assert_in_range(do_it(&w, costs[k], 100000, gone), 100000 * 100,
						100000 * costs[k][best] / 64 * 65 + 9 * 200);
				for (unsigned int i = 0; i < ways; i++)
					assert_in_range(gone[i], 9, 100000);
			}
}

static void what_changes_is_found_again(void **state)
{
	unsigned int gone[MOST];
	struct base_tuner w;

	(void)state;
	base_tuner_init(&w, MOST, 0);
	for (unsigned int best = 0; best < 2 * MOST; best++) {
		uint64_t cost[MOST] = { 300, 300, 300 };

		cost[best % MOST] = 100;
		do_it(&w, cost, 6000, gone);
		do_it(&w, cost, 10000, gone);
		assert_in_range(gone[best % MOST], 9800, 10000);
	}
}

static void what_is_hardly_faster_is_left_alone(void **state)
{
	static const uint64_t cost[MOST] = { 100, 95, 90 };
	unsigned int gone[MOST];
	struct base_tuner w;

	(void)state;
	base_tuner_init(&w, MOST, 0);
	do_it(&w, cost, 10000, gone);
	assert_in_range(gone[0], 8000, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fastest_is_found_from_everywhere),
		cmocka_unit_test(what_changes_is_found_again),
		cmocka_unit_test(what_is_hardly_faster_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
