/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The exchange of ids with a launcher that fails a rank: the rank still meets the others, who
 * would wait for it for ever. The launcher is played by the functions below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "portals/job/job.h"
#include "runtime/rt.h"

static struct rt_job the_job = { .kind = RT_LAUNCHER, .size = 2, .id = "test" };
static const char *refused; /* puts of this key fail */
static int fences;

bool ptl_is_init(void)
{
	return true;
}

int rt_init(const struct rt_job **job)
{
	*job = &the_job;
	return 0;
}

int rt_put(const char *key, const char *value)
{
	(void)value;
	return strcmp(key, refused) ? 0 : -EIO;
}

int rt_fence(void)
{
	fences++;
	return 0;
}

int rt_get(int rank, const char *key, char *value, size_t len)
{
	(void)rank;
	(void)key;
	(void)value;
	(void)len;
	return -ENOENT;
}

void rt_fini(void)
{
}

static void fails_after(const char *key, int rank, int met)
{
	const ptl_process_id_t own = { 0x0a000002, 22 };

	refused = key;
	fences = 0;
	the_job.rank = rank;
	assert_int_equal(ptl_job_setup(), 0);
	assert_int_equal(ptl_job_publish(100, 0, own, "card"), PTL_FAIL);
	assert_int_equal(fences, met);
}

static void a_rank_that_cannot_put_meets_the_others(void **state)
{
	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		const char *own = rank ? "ptl.id.1" : "ptl.id.0";

		the_job.gets_are_local = true;
		fails_after(own, rank, 1);
		the_job.gets_are_local = false;
		fails_after(own, rank, 2);
	}
}

static void rank_0_without_a_secret_meets_the_others(void **state)
{
	(void)state;
	the_job.gets_are_local = true;
	fails_after(RT_SECRET_KEY, 0, 1);
	the_job.gets_are_local = false;
	fails_after("ptl.ids", 0, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_cannot_put_meets_the_others),
		cmocka_unit_test(rank_0_without_a_secret_meets_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
