/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PTL_SIM: what each word sets, and that what is no word or no value of one is refused with its
 * text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "nal/sim/sim_link.h"

static void without_rules_it_is_a_gigabit_without_faults(void **state)
{
	static const struct sim_faults none = { .delay_ns = 1000000 };
	struct sim_rules r;
	char text[128];

	(void)state;
	assert_null(sim_rules_take(&r, NULL));
	assert_int_equal(r.net.L_ns, 20000);
	assert_int_equal(r.net.G_ps, 8000);
	assert_int_equal(r.mtu, 1472);
	assert_memory_equal(&r.net.faults, &none, sizeof(none));
	sim_rules_describe(&r, text, sizeof(text));
	assert_string_equal(text, "latency 20 us, 1000 Mbit/s, packets of 1472 bytes, no faults");
}

static void each_word_sets_what_it_names(void **state)
{
	struct sim_rules r;

	(void)state;
	assert_null(sim_rules_take(
		&r,
		"latency=1.5,gap=0.25,rate=25000,last=1000, "
		"queue=200,mtu=8972,path=1472,jitter=0.1,"
		"drop=0.01,dup=0.02,reorder=0.03,delay=0.04:250,corrupt=0.05,truncate=1,seed=77"));
	assert_int_equal(r.net.L_ns, 1500);
	assert_int_equal(r.net.g_ns, 250);
	assert_int_equal(r.net.G_ps, 320);
	assert_int_equal(r.net.last_G_ps, 8000);
	assert_int_equal(r.net.queue_ns, 200000);
	assert_int_equal(r.mtu, 8972);
	assert_int_equal(r.net.path_mtu, 1472);
	assert_int_equal(r.net.jitter, 100);
	assert_int_equal(r.net.faults.loss, 10);
	assert_int_equal(r.net.faults.duplicate, 20);
	assert_int_equal(r.net.faults.reorder, 30);
	assert_int_equal(r.net.faults.delay, 40);
	assert_int_equal(r.net.faults.delay_ns, 250000);
	assert_int_equal(r.net.faults.corrupt, 50);
	assert_int_equal(r.net.faults.truncate, 1000);
	assert_int_equal(r.seed, 77);
}

static void nothing_is_a_value_of_some(void **state)
{
	struct sim_rules r;

	(void)state;
	assert_null(sim_rules_take(&r, "latency=0,rate=0,last=0,path=0,queue=0"));
	assert_int_equal(r.net.L_ns, 0);
	assert_int_equal(r.net.G_ps, 0);
	assert_int_equal(r.net.path_mtu, 0);
}

static void what_is_not_understood_is_refused(void **state)
{
	static const char *const wrong[] = {
		"latency",          "latency=",    "latency=fast", "latency=-1",    "latency=1e8",
		"latency=nan",      "latency=1:2", "speed=3",      "drop=1.5",      "drop=0.1:3",
		"mtu=10",           "mtu=70000",   "mtu=1472.5",   "rate=1e-300",   "last=1e7",
		"path=1",           "rate=0.001",  "delay=0.1:",   "delay=0.1:2:3", "seed=1.5",
		"drop=0.1;dup=0.1", "=1",
	};
	struct sim_rules r;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *why = sim_rules_take(&r, wrong[i]);

		if (!why)
			fail_msg("%s was taken", wrong[i]);
		if (!strstr(why, wrong[i]))
			fail_msg("%s does not name %s", why, wrong[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules_it_is_a_gigabit_without_faults),
		cmocka_unit_test(each_word_sets_what_it_names),
		cmocka_unit_test(nothing_is_a_value_of_some),
		cmocka_unit_test(what_is_not_understood_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
