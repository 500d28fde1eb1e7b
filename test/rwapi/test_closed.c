/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A program that closes Portals before it ends RWAPI: calls fail, and none waits for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <portals3.h>
#include <rwapi.h>

static void closed_too_early(void **state)
{
	enum { LENGTH = 1 << 20 };
	rwapi_small_t small = { .word = { 1, 2 } };
	rwapi_net_t a, b;
	void *block, *other;
	int node;

	(void)state;
	assert_int_equal(rwapi_init(0, NULL), RWAPI_OK);
	block = rwapi_alloc(LENGTH, &a);
	other = rwapi_alloc(LENGTH, &b);
	assert_true(block && other);
	memset(block, 0, LENGTH);
	assert_true(rwapi_write(0, a, b, LENGTH) > 0);
	assert_int_equal(rwapi_send(0, small), RWAPI_OK);
	PtlFini();
	assert_int_equal(rwapi_wait(-1), RWAPI_ENET);
	assert_int_equal(rwapi_receive(&node, &small), RWAPI_ENET);
	assert_int_equal(rwapi_send(0, small), RWAPI_EPEER);
	assert_int_equal(rwapi_write(0, a, b, 1), RWAPI_EPEER);
	assert_int_not_equal(rwapi_issent(1), 0);
	assert_null(rwapi_alloc(1, &a));
	assert_int_equal(rwapi_free(block), RWAPI_OK);
	assert_int_equal(rwapi_finalize(), RWAPI_ENET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_too_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
