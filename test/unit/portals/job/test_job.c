/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rules of the p3rt calls, without a network: the interfaces are numbers published by the test.
 * Jobs under a launcher are tried by test/system/test_p3rt.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include <p3rt/p3rt.h>

#include "portals/job/job.h"

#define ALL_ONES ((unsigned int)-1)

enum { NI0 = 100, NI1 = 101 }; /* handles */

static const ptl_process_id_t own = { 0x0a000002, 22 };

/* Stubs of the core's functions that job.c calls. */
static bool is_init;

bool ptl_is_init(void)
{
	return is_init;
}

static void set_env(const char *rid, const char *nids, const char *pids)
{
	unsetenv("PTL_MY_RID");
	unsetenv("PTL_NIDMAP");
	unsetenv("PTL_PIDMAP");
	if (rid)
		setenv("PTL_MY_RID", rid, 1);
	if (nids)
		setenv("PTL_NIDMAP", nids, 1);
	if (pids)
		setenv("PTL_PIDMAP", pids, 1);
}

/* The environment in which own is rank 1 of 3. */
static void set_good_env(void)
{
	set_env("1", "10.0.0.1:10.0.0.2:10.0.0.3", "21:22:23");
}

static void init(void)
{
	assert_int_equal(ptl_job_setup(), 0);
	is_init = true;
}

static int fini(void **state)
{
	(void)state;
	is_init = false;
	for (ptl_interface_t i = 0; i < PTL_MAX_INTERFACES; i++)
		ptl_job_forget(i);
	ptl_job_fini();
	set_env(NULL, NULL, NULL);
	return 0;
}

static void assert_rank(ptl_handle_ni_t ni, unsigned int rank, unsigned int size)
{
	unsigned int r = 77, s = 77;

	assert_int_equal(PtlGetRank(ni, &r, &s), PTL_OK);
	assert_int_equal(r, rank);
	assert_int_equal(s, size);
}

static void assert_id(ptl_handle_ni_t ni, unsigned int rank, ptl_nid_t nid, ptl_pid_t pid)
{
	ptl_process_id_t id;

	assert_int_equal(PtlGetRankId(ni, rank, &id), PTL_OK);
	assert_int_equal(id.nid, nid);
	assert_int_equal(id.pid, pid);
}

static void before_init_all_calls_say_so(void **state)
{
	unsigned int rank, size;
	ptl_process_id_t id;
	ptl_nid_t nids[1] = { 1 };
	ptl_pid_t pids[1] = { 1 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		ptl_handle_ni_t ni = i ? PTL_INVALID_HANDLE : NI0;

		assert_int_equal(PtlSetRank(ni, 0, 1), PTL_NO_INIT);
		assert_int_equal(PtlSetNIDMap(ni, nids, 1), PTL_NO_INIT);
		assert_int_equal(PtlSetPIDMap(ni, pids, 1), PTL_NO_INIT);
		assert_int_equal(PtlGetRank(ni, &rank, &size), PTL_NO_INIT);
		assert_int_equal(PtlGetRankId(ni, 0, &id), PTL_NO_INIT);
		assert_int_equal(PtlGetNIDMap(ni, nids, 1), PTL_NO_INIT);
		assert_int_equal(PtlGetPIDMap(ni, pids, 1), PTL_NO_INIT);
	}
	assert_int_equal(PtlSetJID(1), PTL_NO_INIT);
}

static void handles_and_pointers_are_checked(void **state)
{
	static const ptl_handle_ni_t bad[] = { NI1, 0, PTL_HANDLE_NONE, 0xdeadbeef };
	unsigned int rank, size;
	ptl_process_id_t id;
	ptl_nid_t nids[1] = { 1 };
	ptl_pid_t pids[1] = { 1 };

	(void)state;
	init();
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(PtlSetRank(bad[i], 0, 1), PTL_NI_INVALID);
		assert_int_equal(PtlSetRank(bad[i], ALL_ONES, ALL_ONES), PTL_NI_INVALID);
		assert_int_equal(PtlSetNIDMap(bad[i], nids, 1), PTL_NI_INVALID);
		assert_int_equal(PtlSetPIDMap(bad[i], pids, 1), PTL_NI_INVALID);
		assert_int_equal(PtlGetRank(bad[i], &rank, &size), PTL_NI_INVALID);
		assert_int_equal(PtlGetRankId(bad[i], 0, &id), PTL_NI_INVALID);
		assert_int_equal(PtlGetNIDMap(bad[i], nids, 1), PTL_NI_INVALID);
		assert_int_equal(PtlGetPIDMap(bad[i], pids, 1), PTL_NI_INVALID);
	}
	assert_int_equal(PtlGetRank(PTL_INVALID_HANDLE, &rank, &size), PTL_NI_INVALID);
	assert_int_equal(PtlGetRank(NI0, NULL, &size), PTL_SEGV);
	assert_int_equal(PtlGetRank(NI0, &rank, NULL), PTL_SEGV);
	assert_int_equal(PtlGetRankId(NI0, 0, NULL), PTL_SEGV);
	assert_int_equal(PtlGetNIDMap(NI0, NULL, 1), PTL_SEGV);
	assert_int_equal(PtlGetPIDMap(NI0, NULL, 1), PTL_SEGV);
	assert_int_equal(PtlSetNIDMap(NI0, NULL, 1), PTL_SEGV);
	assert_int_equal(PtlSetPIDMap(NI0, NULL, 1), PTL_SEGV);
	ptl_job_forget(0);
	assert_int_equal(PtlGetRank(NI0, &rank, &size), PTL_NI_INVALID);
}

static void alone_is_rank_0_of_1(void **state)
{
	const ptl_process_id_t other = { 0x0a000002, 99 };
	ptl_process_id_t id;

	(void)state;
	init();
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, ALL_ONES, ALL_ONES), PTL_OK);
	assert_int_equal(ptl_job_pid(0), PTL_PID_ANY);
	assert_int_equal(ptl_job_jid(), PTL_JID_ANY);
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
	assert_int_equal(ptl_job_publish(NI1, 1, other, ""), PTL_OK);
	assert_rank(NI0, 0, 1);
	assert_id(NI0, 0, own.nid, own.pid);
	assert_id(NI1, 0, other.nid, other.pid);
	assert_int_equal(PtlGetRankId(NI0, 1, &id), PTL_FAIL);
}

static void the_environment_makes_a_job(void **state)
{
	ptl_nid_t nids[3];
	ptl_pid_t pids[3];

	(void)state;
	set_good_env();
	for (int set = 0; set < 2; set++) {
		init();
		if (set)
			assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, ALL_ONES, ALL_ONES),
					 PTL_OK);
		assert_int_equal(ptl_job_pid(0), 22);
		assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
		assert_rank(NI0, 1, 3);
		assert_id(NI0, 2, 0x0a000003, 23);
		assert_int_equal(PtlGetNIDMap(NI0, nids, 3), PTL_OK);
		assert_int_equal(PtlGetPIDMap(NI0, pids, 3), PTL_OK);
		assert_int_equal(nids[0], 0x0a000001);
		assert_int_equal(pids[1], 22);
		assert_int_equal(PtlGetNIDMap(NI0, nids, 2), PTL_FAIL);
		assert_int_equal(PtlGetPIDMap(NI0, pids, 4), PTL_FAIL);
		assert_int_equal(PtlSetRank(NI0, ALL_ONES, ALL_ONES), PTL_OK);
		assert_rank(NI0, 1, 3);
		assert_true(ptl_job_jid() < PTL_JID_NONE);
		ptl_job_forget(0);
		ptl_job_fini();
	}
}

static void ids_must_fit_the_environment(void **state)
{
	unsigned int rank, size;

	(void)state;
	set_good_env();
	init();
	assert_int_equal(ptl_job_publish(NI0, 0, (ptl_process_id_t){ own.nid + 1, own.pid }, ""),
			 PTL_FAIL);
	assert_int_equal(ptl_job_publish(NI0, 0, (ptl_process_id_t){ own.nid, own.pid + 1 }, ""),
			 PTL_PID_INVALID);
	assert_int_equal(PtlGetRank(NI0, &rank, &size), PTL_NI_INVALID);
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
}

static void the_maps_are_about_the_interface_opened_first(void **state)
{
	const ptl_process_id_t other = { 0x0a000007, 77 };
	ptl_process_id_t id;
	ptl_nid_t nids[3];

	(void)state;
	set_good_env();
	init();
	assert_int_equal(ptl_job_publish(NI1, 1, own, ""), PTL_OK);
	assert_int_equal(ptl_job_pid(0), PTL_PID_ANY);
	assert_int_equal(ptl_job_publish(NI0, 0, other, ""), PTL_OK);
	assert_id(NI1, 0, 0x0a000001, 21);
	assert_rank(NI0, 1, 3);
	assert_int_equal(PtlGetRankId(NI0, 0, &id), PTL_NO_INIT);
	assert_int_equal(PtlGetNIDMap(NI0, nids, 3), PTL_NO_INIT);
	ptl_job_forget(1);
	assert_int_equal(ptl_job_pid(0), 22);
}

static void the_rank_may_become_known_after_init(void **state)
{
	(void)state;
	set_env(NULL, "10.0.0.1:10.0.0.2:10.0.0.3", "21:22:23");
	init();
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, ALL_ONES, ALL_ONES), PTL_NO_INIT);
	set_good_env();
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, ALL_ONES, ALL_ONES), PTL_OK);
	assert_int_equal(ptl_job_pid(0), 22);
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
	assert_rank(NI0, 1, 3);
}

static void the_rank_may_become_known_after_the_interface_stands(void **state)
{
	(void)state;
	init();
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
	assert_rank(NI0, 0, 1);
	set_env("0", "10.0.0.1:10.0.0.2:10.0.0.3", "21:22:23");
	assert_int_equal(PtlSetRank(NI0, ALL_ONES, ALL_ONES), PTL_FAIL); /* another nid */
	set_env("0", "10.0.0.2:10.0.0.2", "21:22");
	assert_int_equal(PtlSetRank(NI0, ALL_ONES, ALL_ONES), PTL_PID_INVALID);
	assert_rank(NI0, 0, 1);
	set_good_env();
	assert_int_equal(PtlSetRank(NI0, ALL_ONES, ALL_ONES), PTL_OK);
	assert_rank(NI0, 1, 3);
	assert_id(NI0, 0, 0x0a000001, 21);
}

static void a_wrong_environment_is_an_error_until_it_is_put_right(void **state)
{
	(void)state;
	set_env("1", "10.0.0.1:10.0.0.2:x", "21:22:23");
	assert_int_equal(ptl_job_setup(), -EINVAL);
	is_init = true;
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, ALL_ONES, ALL_ONES), PTL_FAIL);
	set_good_env();
	init();
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
	assert_rank(NI0, 1, 3);
}

static void a_client_may_bring_its_own_maps(void **state)
{
	ptl_nid_t nids[] = { 5, own.nid };
	ptl_pid_t pids[] = { 6, own.pid };
	unsigned int r, s;

	(void)state;
	init();
	assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 2), PTL_NO_INIT); /* no rank */
	assert_int_equal(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 2), PTL_NO_INIT);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 2, 2), PTL_FAIL);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, 0), PTL_FAIL);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, ALL_ONES), PTL_FAIL);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, ALL_ONES, 2), PTL_FAIL);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, 4), PTL_OK);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 1, 2), PTL_OK);
	assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 3), PTL_FAIL);
	assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 2), PTL_OK);
	assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 2), PTL_FAIL);
	assert_int_equal(ptl_job_pid(0), PTL_PID_ANY);
	assert_int_equal(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 2), PTL_OK);
	assert_int_equal(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 2), PTL_PID_INVALID);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, 2), PTL_FAIL);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 1, 2), PTL_OK);
	assert_int_equal(ptl_job_pid(0), own.pid);
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
	assert_rank(NI0, 1, 2);
	assert_id(NI0, 0, 5, 6);
	assert_id(NI0, 1, own.nid, own.pid);
	/* used up: the next interface knows nothing of it */
	assert_int_equal(ptl_job_publish(NI1, 1, own, ""), PTL_OK);
	assert_int_equal(PtlGetRank(NI1, &r, &s), PTL_OK);
	assert_int_equal(s, 1);
}

static void maps_may_be_set_on_an_interface(void **state)
{
	ptl_nid_t nids[] = { 5, own.nid }, wrong_nids[] = { 5, own.nid + 1 };
	ptl_pid_t pids[] = { 6, own.pid }, wrong_pids[] = { 6, own.pid + 1 };
	ptl_process_id_t id;

	(void)state;
	init();
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
	assert_int_equal(PtlSetRank(NI0, 1, 2), PTL_OK);
	assert_rank(NI0, 1, 2);
	assert_int_equal(PtlGetRankId(NI0, 1, &id), PTL_NO_INIT); /* it was about another group */
	assert_int_equal(PtlSetNIDMap(NI0, wrong_nids, 2), PTL_FAIL);
	assert_int_equal(PtlSetNIDMap(NI0, nids, 2), PTL_OK);
	assert_int_equal(PtlGetRankId(NI0, 1, &id), PTL_NO_INIT); /* no pids yet */
	assert_int_equal(PtlSetPIDMap(NI0, wrong_pids, 2), PTL_PID_INVALID);
	assert_int_equal(PtlSetPIDMap(NI0, pids, 2), PTL_OK);
	assert_id(NI0, 0, 5, 6);
	assert_int_equal(PtlSetNIDMap(NI0, nids, 2), PTL_FAIL);
	assert_int_equal(PtlSetPIDMap(NI0, pids, 2), PTL_PID_INVALID);
}

static void a_contradiction_shows_when_the_interface_opens(void **state)
{
	ptl_nid_t nids[] = { own.nid + 1 };
	ptl_pid_t pids[] = { own.pid + 1 };

	(void)state;
	init();
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, 1), PTL_OK);
	assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 1), PTL_OK);
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_FAIL);
	assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, 1), PTL_OK);
	assert_int_equal(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 1), PTL_OK);
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_PID_INVALID);
	assert_int_equal(ptl_job_publish(NI0, 0, own, ""), PTL_OK);
}

static void the_jid_can_be_set(void **state)
{
	(void)state;
	init();
	assert_int_equal(PtlSetJID(42), PTL_OK);
	assert_int_equal(ptl_job_jid(), 42);
	assert_int_equal(PtlSetJID(PTL_JID_ANY), PTL_OK); /* forgets it */
	assert_int_equal(ptl_job_jid(), PTL_JID_ANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(before_init_all_calls_say_so, fini),
		cmocka_unit_test_teardown(handles_and_pointers_are_checked, fini),
		cmocka_unit_test_teardown(alone_is_rank_0_of_1, fini),
		cmocka_unit_test_teardown(the_environment_makes_a_job, fini),
		cmocka_unit_test_teardown(ids_must_fit_the_environment, fini),
		cmocka_unit_test_teardown(the_maps_are_about_the_interface_opened_first, fini),
		cmocka_unit_test_teardown(the_rank_may_become_known_after_init, fini),
		cmocka_unit_test_teardown(the_rank_may_become_known_after_the_interface_stands,
					  fini),
		cmocka_unit_test_teardown(a_wrong_environment_is_an_error_until_it_is_put_right,
					  fini),
		cmocka_unit_test_teardown(a_client_may_bring_its_own_maps, fini),
		cmocka_unit_test_teardown(maps_may_be_set_on_an_interface, fini),
		cmocka_unit_test_teardown(a_contradiction_shows_when_the_interface_opens, fini),
		cmocka_unit_test_teardown(the_jid_can_be_set, fini),
	};

	setenv("PTL_QUIET", "1", 1);
	set_env(NULL, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
