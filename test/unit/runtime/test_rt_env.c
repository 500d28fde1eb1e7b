/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP as texts: what is taken, what is refused. The messages are
 * seen by test/system/test_rt.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt_env.h"

static void maps_are_read(void **state)
{
	struct rt_env *env;

	(void)state;
	assert_int_equal(
		rt_env_parse("1", "0:0x0A000002:192.0.2.7", "7:0XfffffffE:4294967294", &env), 0);
	assert_int_equal(env->rank, 1);
	assert_int_equal(env->size, 3);
	assert_int_equal(env->nids[0], 0);
	assert_int_equal(env->nids[1], 0x0a000002);
	assert_int_equal(env->nids[2], 0xc0000207);
	assert_int_equal(env->pids[0], 7);
	assert_int_equal(env->pids[1], 0xfffffffe);
	assert_int_equal(env->pids[2], 0xfffffffe);
	rt_env_destroy(env);
}

/* Launchers that append "nid:" for each rank leave one at the end. */
static void a_colon_at_the_end_is_no_entry(void **state)
{
	struct rt_env *env;

	(void)state;
	assert_int_equal(rt_env_parse("0", "1:2:", "3:4:", &env), 0);
	assert_int_equal(env->size, 2);
	rt_env_destroy(env);
	assert_int_equal(rt_env_parse("0", "1:", "2", &env), 0);
	assert_int_equal(env->size, 1);
	rt_env_destroy(env);
}

static void wrong_texts_are_refused(void **state)
{
	static const char *const texts[][3] = {
		{ "0", "", "1" },
		{ "0", ":", "1" },
		{ "0", "1::", "1:2" },
		{ "0", ":1", "1:2" },
		{ "0", "1:2", "1" },
		{ "0", "1", "1:2" },
		{ "2", "1:2", "1:2" },
		{ "-1", "1:2", "1:2" },
		{ "", "1:2", "1:2" },
		{ "0 ", "1:2", "1:2" },
		{ "99999999999", "1:2", "1:2" },
		{ "0", "1 :2", "1:2" },
		{ "0", "+1:2", "1:2" },
		{ "0", "-1:2", "1:2" },
		{ "0", "0x:2", "1:2" },
		{ "0", "0xg:2", "1:2" },
		{ "0", "4294967295:2", "1:2" },
		{ "0", "255.255.255.255:2", "1:2" },
		{ "0", "1.2.3:2", "1:2" },
		{ "0", "1.2.3.4.5:2", "1:2" },
		{ "0", "1.2.3.256:2", "1:2" },
		{ "0", "1:2", "1.2.3.4:2" },
		{ "0", "1:2", "18446744073709551616:2" },
		{ "0", "1:2", "0x100000000:2" },
		{ "0", "1;2", "1;2" },
		{ "0", "1\n:2", "1:2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct rt_env *env = (struct rt_env *)&texts; /* must stay */

		if (rt_env_parse(texts[i][0], texts[i][1], texts[i][2], &env) != -EINVAL)
			fail_msg("taken: %s %s %s", texts[i][0], texts[i][1], texts[i][2]);
		assert_ptr_equal(env, &texts);
	}
}

/* n entries "1". */
static char *long_map(size_t n)
{
	char *map = malloc(2 * n + 1);

	assert_non_null(map);
	for (size_t i = 0; i < n; i++)
		memcpy(map + 2 * i, "1:", 2);
	map[2 * n] = '\0';
	return map;
}

static void the_length_is_limited(void **state)
{
	char *most = long_map(RT_ENV_MAX), *more = long_map(RT_ENV_MAX + 1);
	struct rt_env *env;

	(void)state;
	assert_int_equal(rt_env_parse("65535", most, most, &env), 0);
	assert_int_equal(env->size, RT_ENV_MAX);
	assert_int_equal(env->rank, RT_ENV_MAX - 1);
	rt_env_destroy(env);
	assert_int_equal(rt_env_parse("0", more, more, &env), -EINVAL);
	assert_int_equal(rt_env_parse("0", most, more, &env), -EINVAL);
	free(most);
	free(more);
}

static void the_environment_is_read_as_it_is_now(void **state)
{
	const char *missing, *found;
	struct rt_env *env;

	(void)state;
	unsetenv("PTL_MY_RID");
	unsetenv("PTL_NIDMAP");
	unsetenv("PTL_PIDMAP");
	assert_int_equal(rt_env_read(&env, &missing, &found), -ENOENT);
	assert_null(found);
	setenv("PTL_NIDMAP", "1:2", 1);
	setenv("PTL_PIDMAP", "3:4", 1);
	assert_int_equal(rt_env_read(&env, &missing, &found), -ENOENT);
	assert_string_equal(missing, "PTL_MY_RID");
	assert_non_null(found);
	setenv("PTL_MY_RID", "1", 1);
	assert_int_equal(rt_env_read(&env, &missing, &found), 0);
	assert_int_equal(env->rank, 1);
	rt_env_destroy(env);
	setenv("PTL_MY_RID", "2", 1);
	assert_int_equal(rt_env_read(&env, &missing, &found), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_are_read),
		cmocka_unit_test(a_colon_at_the_end_is_no_entry),
		cmocka_unit_test(wrong_texts_are_refused),
		cmocka_unit_test(the_length_is_limited),
		cmocka_unit_test(the_environment_is_read_as_it_is_now),
	};

	setenv("PTL_QUIET", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
