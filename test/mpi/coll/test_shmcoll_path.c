/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which way long blocks of two ranks go, by what was observed: mpi_shim/coll/shm/path.c, with two
 * ranks that tell each other as in their flags, a clock that is ours, and pages and reads that
 * take as long as a case says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"

static uint64_t clock_ns = 1;

static uint64_t our_now(void)
{
	return clock_ns;
}

#define base_now_ns our_now
#include "base/tuner.c"             /* NOLINT(bugprone-suspicious-include) */
#include "mpi_shim/coll/shm/path.c" /* NOLINT(bugprone-suspicious-include) */

enum { BYTES = 65536 };

static struct mpi_shmcoll rank[2];
static uint64_t pages_ns, read_ns; /* that BYTES take now */
static uint64_t late_ns;           /* the other rank comes later by so much */
static unsigned int timed_ones;
static bool to_all;

static void oversubscribed(bool is)
{
	for (int i = 0; i < 2; i++) {
		rank[i] = (struct mpi_shmcoll){ .n = 2, .me = i, .oversubscribed = is };
		mpi_shmcoll_path_init(&rank[i]);
	}
}

static int fresh(void **state)
{
	(void)state;
	oversubscribed(false);
	late_ns = 0;
	to_all = true;
	timed_ones = 0;
	return 0;
}

/* Both say the same. */
static bool reads(size_t bytes)
{
	bool is = mpi_shmcoll_path_reads(&rank[0], bytes, to_all);

	assert_int_equal(mpi_shmcoll_path_reads(&rank[1], bytes, to_all), is);
	return is;
}

static bool one(size_t bytes)
{
	const bool read = reads(bytes);
	const uint64_t told = rank[0].paths.next;

	timed_ones += rank[0].paths.since != 0;
	clock_ns += (read ? read_ns : pages_ns) * bytes / BYTES + late_ns;
	rank[0].paths.waited += late_ns;
	/* as of flags that are seen before either goes on */
	rank[0].paths.now = rank[1].paths.now = told;
	for (int i = 0; i < 2; i++)
		mpi_shmcoll_path_ended(&rank[i], bytes);
	return read;
}

/* How many were read. */
static unsigned int several(unsigned int n, size_t bytes)
{
	unsigned int read = 0;

	while (n--)
		read += one(bytes);
	return read;
}

static bool now(size_t bytes)
{
	return rank[1].paths.now >> class_of_length(bytes, to_all) & 1;
}

static void reading_is_found_where_it_is_faster(void **state)
{
	(void)state;
	pages_ns = 25000;
	read_ns = 12000;
	several(40, BYTES);
	assert_true(now(BYTES));
	/* trials take little */
	assert_in_range(20000 - several(20000, BYTES), 1, 20000 / usual.share);
	assert_true(timed_ones < 20000 / 20);
}

static void and_pages_stay_where_they_are(void **state)
{
	(void)state;
	pages_ns = 12000;
	read_ns = 70000;
	several(40, BYTES);
	assert_false(now(BYTES));
	assert_in_range(several(20000, BYTES), 1, 20000 * 12 / 58 / usual.share);
}

static void what_is_hardly_faster_changes_nothing(void **state)
{
	(void)state;
	pages_ns = 12000;
	read_ns = 11000;
	for (int i = 0; i < 50; i++) {
		several(100, BYTES);
		/* but for a trial under way */
		if (rank[0].paths.of[class_of_length(BYTES, to_all)].phase == BASE_TUNER_RESTS)
			several(SETTLES_IN, BYTES);
	}
	for (int i = 0; i < 2 * (SETTLES_IN + BASE_TUNER_RUNS) && now(BYTES); i++)
		one(BYTES);
	assert_false(now(BYTES));
}

static void a_machine_that_changes_is_followed(void **state)
{
	(void)state;
	pages_ns = 10000;
	read_ns = 25000;
	for (int turn = 0; turn < 6; turn++) {
		uint64_t was = pages_ns;

		several(2 * usual.most, BYTES);
		assert_in_range(several(100, BYTES), turn % 2 ? 80 : 0, turn % 2 ? 100 : 20);
		pages_ns = read_ns;
		read_ns = was;
	}
}

static void waiting_for_the_other_rank_does_not_count(void **state)
{
	(void)state;
	pages_ns = 25000;
	read_ns = 12000;
	for (int i = 0; i < 200; i++) {
		late_ns = now(BYTES) ? 1000000 : 0;
		one(BYTES);
	}
	assert_in_range(several(100, BYTES), 80, 100);
}

static void one_slow_operation_does_not_count(void **state)
{
	(void)state;
	pages_ns = 12000;
	read_ns = 13000;
	for (int i = 0; i < 400; i++) {
		const struct base_tuner *w = &rank[0].paths.of[class_of_length(BYTES, to_all)];

		pages_ns = w->phase == BASE_TUNER_PRESENT && w->left == 2 ? 9000000 : 12000;
		one(BYTES);
	}
	assert_in_range(several(100, BYTES), 0, 20);
}

static void each_length_has_a_way_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(class_of_length(MPI_SHMCOLL_READ_BYTES, to_all), 0);
	assert_int_equal(class_of_length(2 * MPI_SHMCOLL_READ_BYTES - 1, to_all), 0);
	assert_int_equal(class_of_length(2 * MPI_SHMCOLL_READ_BYTES, to_all), 1);
	assert_int_equal(class_of_length(SIZE_MAX, to_all), MPI_SHMCOLL_PATH_LENGTHS - 1);
	for (int i = 0; i < 40; i++) {
		pages_ns = 25000;
		read_ns = 12000;
		one(MPI_SHMCOLL_READ_BYTES);
		pages_ns = 12000;
		read_ns = 25000;
		one(16 * MPI_SHMCOLL_READ_BYTES);
	}
	assert_true(now(MPI_SHMCOLL_READ_BYTES));
	assert_false(now(16 * MPI_SHMCOLL_READ_BYTES));
}

static void so_have_allgathers_and_alltoalls(void **state)
{
	(void)state;
	assert_int_equal(class_of_length(SIZE_MAX, false), MPI_SHMCOLL_PATHS - 1);
	for (int i = 0; i < 80; i++) {
		to_all = i % 2;
		pages_ns = 20000;
		read_ns = to_all ? 30000 : 12000;
		one(BYTES);
	}
	to_all = true;
	assert_false(now(BYTES));
	to_all = false;
	assert_true(now(BYTES));
}

/* Where processors are short the others work while this rank waits. */
static void waiting_counts_where_the_others_need_the_processor(void **state)
{
	(void)state;
	oversubscribed(true);
	assert_false(now(BYTES));
	pages_ns = 25000;
	read_ns = 12000;
	for (int i = 0; i < 200; i++) {
		late_ns = now(BYTES) ? 1000000 : 0;
		one(BYTES);
	}
	assert_in_range(several(100, BYTES), 0, 20);
}

/* One that had no choice, such as one in place. */
static void what_was_not_chosen_is_not_counted(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++)
		mpi_shmcoll_path_ended(&rank[0], BYTES);
	assert_int_equal(rank[0].paths.of[class_of_length(BYTES, to_all)].left, usual.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(reading_is_found_where_it_is_faster, fresh),
		cmocka_unit_test_setup(and_pages_stay_where_they_are, fresh),
		cmocka_unit_test_setup(what_is_hardly_faster_changes_nothing, fresh),
		cmocka_unit_test_setup(a_machine_that_changes_is_followed, fresh),
		cmocka_unit_test_setup(waiting_for_the_other_rank_does_not_count, fresh),
		cmocka_unit_test_setup(one_slow_operation_does_not_count, fresh),
		cmocka_unit_test_setup(each_length_has_a_way_of_its_own, fresh),
		cmocka_unit_test_setup(so_have_allgathers_and_alltoalls, fresh),
		cmocka_unit_test_setup(waiting_counts_where_the_others_need_the_processor, fresh),
		cmocka_unit_test_setup(what_was_not_chosen_is_not_counted, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
