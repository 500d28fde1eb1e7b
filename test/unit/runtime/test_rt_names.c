/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Published names: found until they are taken back, or their owner has ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/rt_names.h"

static char name[64];

static int make_name(void **state)
{
	(void)state;
	snprintf(name, sizeof(name), "a/name: of %d", (int)getpid());
	return 0;
}

static int take_back(void **state)
{
	(void)state;
	rt_names_unpublish(name);
	return 0;
}

static void is_found_until_taken_back(void **state)
{
	char value[32];

	(void)state;
	assert_int_equal(rt_names_lookup(name, value, sizeof(value)), -ENOENT);
	assert_int_equal(rt_names_publish(name, "one value", getpid()), 0);
	assert_int_equal(rt_names_publish(name, "another", getpid()), -EEXIST);
	assert_int_equal(rt_names_lookup(name, value, sizeof(value)), 0);
	assert_string_equal(value, "one value");
	assert_int_equal(rt_names_lookup(name, value, sizeof("one value") - 1), -ERANGE);
	assert_int_equal(rt_names_unpublish(name), 0);
	assert_int_equal(rt_names_unpublish(name), -ENOENT);
}

static void goes_with_its_owner(void **state)
{
	char value[32];
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(rt_names_publish(name, "of the dead", getpid()) ? 1 : 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(rt_names_lookup(name, value, sizeof(value)), -ENOENT);
	assert_int_equal(rt_names_publish(name, "of the living", getpid()), 0);
	assert_int_equal(rt_names_lookup(name, value, sizeof(value)), 0);
	assert_string_equal(value, "of the living");
	rt_names_forget(getpid());
	assert_int_equal(rt_names_lookup(name, value, sizeof(value)), -ENOENT);
}

static void too_long_is_refused(void **state)
{
	char value[32], text[8192];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(rt_names_publish(name, text, getpid()), -E2BIG);
	assert_int_equal(rt_names_publish(text, "value", getpid()), -E2BIG);
	assert_int_equal(rt_names_lookup(text, value, sizeof(value)), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(is_found_until_taken_back, take_back),
		cmocka_unit_test_teardown(goes_with_its_owner, take_back),
		cmocka_unit_test_teardown(too_long_is_refused, take_back),
	};

	return cmocka_run_group_tests(tests, make_name, NULL);
}
