/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The effects of a simulated network on packets: times by LogGP, chances that come from the seed
 * alone and are about as many as were asked for, a queue that takes only so much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nal/net/dgram/sim/sim_model.h"

enum { PACKETS = 20000 };

static const struct sim_model lan = { .L_ns = 5000, .g_ns = 100, .G_ps = 8000 };

static void packets_leave_one_after_the_other(void **state)
{
	uint64_t link = 0;

	(void)state;
	assert_int_equal(sim_leave(&lan, &link, 1000, 1000), 9000);
	assert_int_equal(sim_leave(&lan, &link, 1000, 1000), 17000);
	/* short ones no faster than the gap */
	assert_int_equal(sim_leave(&lan, &link, 1000, 1), 17100);
	assert_int_equal(sim_leave(&lan, &link, 50000, 1), 50100);
}

static void they_arrive_one_after_the_other(void **state)
{
	struct sim_counts c = { 0 };
	uint64_t link = 0, random = 1, at;

	(void)state;
	assert_true(sim_travel(&lan, &random, &c, 9000, &at));
	assert_int_equal(at, 14000);
	assert_true(sim_enter(&lan, &link, &c, false, 1000, &at));
	assert_int_equal(at, 22000);
	at = 15000;
	assert_true(sim_enter(&lan, &link, &c, false, 500, &at));
	assert_int_equal(at, 26000);
	/* one that is late waits, but not for it */
	at = 15000;
	assert_true(sim_enter(&lan, &link, &c, true, 500, &at));
	assert_int_equal(at, 30000);
	assert_int_equal(link, 26000);
}

static void a_slower_link_at_the_end_has_a_queue(void **state)
{
	struct sim_model m = { .G_ps = 1000, .last_G_ps = 10000, .queue_ns = 25000 };
	struct sim_counts c = { 0 };
	uint64_t link = 0, at;
	int taken = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		at = 0;
		taken += sim_enter(&m, &link, &c, false, 1000, &at);
	}
	/* behind 0, 10, 20 and not behind 30 microseconds */
	assert_int_equal(taken, 3);
	assert_int_equal(c.overflowed, 7);
}

/* The fates of many packets as one number. */
static uint64_t fates(uint64_t seed, struct sim_counts *c)
{
	const struct sim_model m = {
		.L_ns = 1000,
		.jitter = 100,
		.faults = { .loss = 100,
			    .duplicate = 50,
			    .reorder = 200,
			    .delay = 10,
			    .delay_ns = 100000,
			    .corrupt = 30,
			    .truncate = 20 },
	};
	uint64_t random = seed, sum = 0, at, twin;

	memset(c, 0, sizeof(*c));
	for (uint64_t i = 0; i < PACKETS; i++) {
		uint8_t bytes[64] = { 0 };
		uint32_t len = sizeof(bytes);

		if (sim_doubles(&m, &random, c, i, &twin))
			sum = sum * 31 + twin;
		if (!sim_travel(&m, &random, c, i, &at))
			continue;
		sim_damage(&m, &random, c, bytes, &len);
		sum = (sum * 31 + at) * 31 + len;
		for (uint32_t k = 0; k < len; k++)
			sum = sum * 31 + bytes[k];
	}
	return sum;
}

static void about(uint64_t n, uint64_t of, uint64_t thousandths)
{
	uint64_t wanted = of * thousandths / 1000;

	assert_in_range(n, wanted - wanted / 4, wanted + wanted / 4);
}

static void fates_come_from_the_seed(void **state)
{
	struct sim_counts c, other;
	uint64_t arrived;

	(void)state;
	assert_true(fates(1, &c) == fates(1, &other));
	assert_memory_equal(&c, &other, sizeof(c));
	assert_true(fates(1, &c) != fates(2, &other));
	arrived = PACKETS - c.lost;
	about(c.lost, PACKETS, 100);
	about(c.duplicated, PACKETS, 50);
	about(c.reordered, PACKETS, 200);
	about(c.delayed, PACKETS, 10);
	about(c.corrupted, arrived, 30);
	about(c.truncated, arrived, 20);
}

static void events_come_by_time_then_by_age(void **state)
{
	struct sim_queue q = { 0 };
	uint64_t random = 3, last = 0;
	uint32_t last_node = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(sim_queue_put(&q, sim_draw(&random) % 50, NULL, i));
	for (int i = 0; i < 1000; i++) {
		struct sim_event e = sim_queue_take(&q);

		assert_true(e.at >= last);
		assert_true(!i || e.at > last || e.node > last_node);
		last = e.at;
		last_node = e.node;
	}
	assert_int_equal(q.n, 0);
	free(q.heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_leave_one_after_the_other),
		cmocka_unit_test(they_arrive_one_after_the_other),
		cmocka_unit_test(a_slower_link_at_the_end_has_a_queue),
		cmocka_unit_test(fates_come_from_the_seed),
		cmocka_unit_test(events_come_by_time_then_by_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
