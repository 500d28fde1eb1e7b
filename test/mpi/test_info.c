/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Info objects: order, limits, what is refused, and what MPI_INFO_ENV says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_world.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/info.h"

static int setup(void **state)
{
	(void)state;
	return fake_world(0, 4);
}

static int teardown(void **state)
{
	(void)state;
	fake_world_end();
	assert_int_equal(mpi_pools[MPI_KIND_INFO].in_use, 0);
	mpi_pools_fini();
	return 0;
}

static struct mpi_info *new_info(void)
{
	struct mpi_info *info = NULL;

	assert_int_equal(mpi_info_create(&info), MPI_SUCCESS);
	return info;
}

static void assert_key(struct mpi_info *info, int n, const char *want)
{
	char key[MPI_MAX_INFO_KEY];

	assert_int_equal(mpi_info_get_nthkey(info, n, key), MPI_SUCCESS);
	assert_string_equal(key, want);
}

static void keys_keep_the_order_they_were_first_set_in(void **state)
{
	struct mpi_info *info = new_info(), *copy;
	char value[MPI_MAX_INFO_VAL + 1];
	int n, flag;

	(void)state;
	mpi_info_set(info, "b", "1");
	mpi_info_set(info, "a", "2");
	mpi_info_set(info, "c", "3");
	mpi_info_set(info, "b", "4");
	mpi_info_get_nkeys(info, &n);
	assert_int_equal(n, 3);
	assert_key(info, 0, "b");
	assert_key(info, 1, "a");
	assert_key(info, 2, "c");
	assert_int_equal(mpi_info_dup(info, &copy), MPI_SUCCESS);
	assert_int_equal(mpi_info_delete(info, "a"), MPI_SUCCESS);
	assert_key(info, 1, "c");
	assert_key(copy, 1, "a");
	mpi_info_get(copy, "b", MPI_MAX_INFO_VAL, value, &flag);
	assert_true(flag);
	assert_string_equal(value, "4");
	mpi_info_free(&info);
	mpi_info_free(&copy);
	assert_null(info);
}

static void keys_and_values_may_be_as_long_as_the_limits_say(void **state)
{
	char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1], out[MPI_MAX_INFO_VAL + 1];
	struct mpi_info *info = new_info();
	int flag, length;

	(void)state;
	memset(key, 'k', sizeof(key));
	memset(value, 'v', sizeof(value));
	key[MPI_MAX_INFO_KEY] = value[MPI_MAX_INFO_VAL] = '\0';
	assert_int_equal(mpi_info_set(info, key, "x"), MPI_ERR_INFO_KEY);
	assert_int_equal(mpi_info_set(info, "", "x"), MPI_ERR_INFO_KEY);
	assert_int_equal(mpi_info_set(info, "x", value), MPI_ERR_INFO_VALUE);
	key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL - 1] = '\0';
	assert_int_equal(mpi_info_set(info, key, value), MPI_SUCCESS);
	mpi_info_get_valuelen(info, key, &length, &flag);
	assert_true(flag);
	assert_int_equal(length, MPI_MAX_INFO_VAL - 1);
	mpi_info_get(info, key, MPI_MAX_INFO_VAL, out, &flag);
	assert_string_equal(out, value);
	assert_int_equal(mpi_info_set(info, "empty", ""), MPI_SUCCESS);
	mpi_info_get_valuelen(info, "empty", &length, &flag);
	assert_int_equal(length, 0);
	mpi_info_free(&info);
}

static void get_string_tells_the_length_with_the_terminator(void **state)
{
	struct mpi_info *info = new_info();
	char out[16] = "untouched";
	int length = 0, flag;

	(void)state;
	mpi_info_set(info, "key", "0123456789");
	assert_int_equal(mpi_info_get_string(info, "key", &length, NULL, &flag), MPI_SUCCESS);
	assert_true(flag);
	assert_int_equal(length, 11);
	length = 5;
	mpi_info_get_string(info, "key", &length, out, &flag);
	assert_string_equal(out, "0123");
	assert_int_equal(length, 11);
	mpi_info_get_string(info, "key", &length, out, &flag);
	assert_string_equal(out, "0123456789");
	length = 7;
	mpi_info_get_string(info, "none", &length, out, &flag);
	assert_false(flag);
	assert_int_equal(length, 7);
	assert_string_equal(out, "0123456789");
	length = -1;
	assert_int_equal(mpi_info_get_string(info, "key", &length, out, &flag), MPI_ERR_ARG);
	mpi_info_free(&info);
}

static void get_cuts_at_the_length_given(void **state)
{
	struct mpi_info *info = new_info();
	char out[8];
	int flag;

	(void)state;
	mpi_info_set(info, "key", "0123456789");
	memset(out, 'x', sizeof(out));
	assert_int_equal(mpi_info_get(info, "key", 4, out, &flag), MPI_SUCCESS);
	assert_string_equal(out, "0123");
	assert_int_equal(out[5], 'x');
	mpi_info_free(&info);
}

static void wrong_uses_have_their_error_class(void **state)
{
	struct mpi_info *info = new_info(), *env = &mpi_info_env;
	char key[MPI_MAX_INFO_KEY];
	int n;

	(void)state;
	assert_int_equal(mpi_info_delete(info, "none"), MPI_ERR_INFO_NOKEY);
	assert_int_equal(mpi_info_get_nthkey(info, 0, key), MPI_ERR_ARG);
	assert_int_equal(mpi_info_get_nthkey(info, -1, key), MPI_ERR_ARG);
	assert_int_equal(mpi_info_get_nkeys(NULL, &n), MPI_ERR_INFO);
	assert_int_equal(mpi_info_set(NULL, "a", "b"), MPI_ERR_INFO);
	assert_int_equal(mpi_info_set(env, "a", "b"), MPI_ERR_INFO);
	assert_int_equal(mpi_info_free(&env), MPI_ERR_INFO);
	assert_non_null(strstr(mpi_fail_text(), "MPI_INFO_ENV"));
	mpi_info_free(&info);
}

static void the_environment_is_told(void **state)
{
	char value[MPI_MAX_INFO_VAL + 1], *argv[] = { "prog", "one", "two words", NULL };
	struct mpi_info *info = NULL;
	int flag;

	(void)state;
	mpi_info_get(&mpi_info_env, "maxprocs", MPI_MAX_INFO_VAL, value, &flag);
	assert_true(flag);
	assert_string_equal(value, "4");
	mpi_info_get(&mpi_info_env, "thread_level", MPI_MAX_INFO_VAL, value, &flag);
	assert_string_equal(value, "MPI_THREAD_SINGLE");
	mpi_info_get(&mpi_info_env, "command", MPI_MAX_INFO_VAL, value, &flag);
	assert_true(flag);
	assert_non_null(strstr(value, "test_mpi_info"));
	assert_int_equal(mpi_info_create_env(3, argv, &info), MPI_SUCCESS);
	mpi_info_get(info, "command", MPI_MAX_INFO_VAL, value, &flag);
	assert_string_equal(value, "prog");
	mpi_info_get(info, "argv", MPI_MAX_INFO_VAL, value, &flag);
	assert_string_equal(value, "one two words");
	mpi_info_get(info, "wdir", MPI_MAX_INFO_VAL, value, &flag);
	assert_true(flag);
	mpi_info_free(&info);
}

static void thousands_of_keys_are_no_problem(void **state)
{
	struct mpi_info *info = new_info();
	char key[32];
	int n;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		assert_int_equal(mpi_info_set(info, key, key), MPI_SUCCESS);
	}
	for (int i = 1999; i >= 0; i -= 2) {
		snprintf(key, sizeof(key), "key %d", i);
		assert_int_equal(mpi_info_delete(info, key), MPI_SUCCESS);
	}
	mpi_info_get_nkeys(info, &n);
	assert_int_equal(n, 1000);
	assert_key(info, 999, "key 1998");
	mpi_info_free(&info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_keep_the_order_they_were_first_set_in),
		cmocka_unit_test(keys_and_values_may_be_as_long_as_the_limits_say),
		cmocka_unit_test(get_string_tells_the_length_with_the_terminator),
		cmocka_unit_test(get_cuts_at_the_length_given),
		cmocka_unit_test(wrong_uses_have_their_error_class),
		cmocka_unit_test(the_environment_is_told),
		cmocka_unit_test(thousands_of_keys_are_no_problem),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
