/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A program that goes on with Portals after it has ended RWAPI: nothing of RWAPI is left there,
 * so a message to a block is dropped and touches no memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <portals3.h>
#include <rwapi.h>

static ptl_sr_value_t status_of(ptl_handle_ni_t ni, ptl_sr_index_t index)
{
	ptl_sr_value_t value;

	assert_int_equal(PtlNIStatus(ni, index, &value), PTL_OK);
	return value;
}

static void left(void **state)
{
	enum { LENGTH = 4096, WRITES = 58, SHORT = 57 };
	char bytes[LENGTH] = { 0 };
	ptl_md_t md = { .start = bytes, .length = LENGTH, .threshold = PTL_MD_THRESH_INF };
	ptl_sr_value_t dropped;
	ptl_handle_md_t handle;
	ptl_process_id_t id;
	ptl_handle_ni_t ni;
	rwapi_net_t net;
	int n;

	(void)state;
	assert_int_equal(PtlInit(&n), PTL_OK);
	n = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);
	assert_int_equal(n, PTL_OK);
	assert_int_equal(PtlGetId(ni, &id), PTL_OK);
	assert_int_equal(rwapi_init(0, NULL), RWAPI_OK);
	assert_non_null(rwapi_alloc(LENGTH, &net));
	assert_int_equal(rwapi_finalize(), RWAPI_OK);
	dropped = status_of(ni, PTL_SR_DROP_COUNT);
	md.eq_handle = PTL_EQ_NONE;
	assert_int_equal(PtlMDBind(ni, md, PTL_RETAIN, &handle), PTL_OK);
	assert_int_equal(PtlPut(handle, PTL_NOACK_REQ, id, WRITES, 0, net >> 40, 0, 0), PTL_OK);
	assert_int_equal(PtlPutRegion(handle, 0, 0, PTL_NOACK_REQ, id, SHORT, 0, 1, 0, 0), PTL_OK);
	for (int i = 0; i < 100 && status_of(ni, PTL_SR_DROP_COUNT) < dropped + 2; i++)
		PtlProgress(ni, 1);
	assert_int_equal(status_of(ni, PTL_SR_DROP_COUNT), dropped + 2);
	PtlFini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
