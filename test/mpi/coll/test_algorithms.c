/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The values of PTL_MPI_COLL, and the error text for any other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mpi_shim/coll/algorithms.h"

static char said[2000];
static int lines;

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	lines++;
}

static struct mpi_coll_setting parse(const char *value)
{
	lines = 0;
	*said = '\0';
	return mpi_coll_parse(value, say);
}

static void every_word_wants_its_row_and_rules_out_its_kin(void **state)
{
	uint64_t all = 0;

	(void)state;
	for (size_t i = 0; mpi_algorithm_word(i); i++) {
		struct mpi_coll_setting s = parse(mpi_algorithm_word(i));

		assert_int_equal(lines, 0);
		assert_true(s.wanted == UINT64_C(1) << i);
		assert_true((s.ruled_out & s.wanted) == 0);
		all |= s.ruled_out;
		for (size_t j = 0; mpi_algorithm_word(j); j++) {
			size_t n = strcspn(mpi_algorithm_word(i), "=") + 1;
			bool kin =
				!strncmp(mpi_algorithm_word(i), mpi_algorithm_word(j), n) && i != j;

			assert_int_equal(s.ruled_out >> j & 1, kin);
		}
	}
	assert_true(all == (UINT64_C(1) << MPI_COLL_COUNT_) - 1); /* none has no other way */
}

static void the_last_word_on_a_collective_counts(void **state)
{
	struct mpi_coll_setting s =
		parse("rounds,bcast=ring,ALLREDUCE=Parts,messages,bcast=binomial");

	(void)state;
	assert_int_equal(lines, 0);
	assert_int_equal(s.prefer, MPI_COLL_MESSAGES);
	assert_true(s.wanted == (MPI_COLL_BIT(BCAST, BINOMIAL) | MPI_COLL_BIT(ALLREDUCE, PARTS)));
	assert_true(s.ruled_out & MPI_COLL_BIT(BCAST, RING));
	assert_false(s.ruled_out & MPI_COLL_BIT(BCAST, BINOMIAL));
	s = parse("auto");
	assert_true(s.prefer == MPI_COLL_AUTO && s.wanted == 0 && s.ruled_out == 0);
}

static void what_is_no_word_is_passed_over_and_told(void **state)
{
	struct mpi_coll_setting s = parse("bcast=rings,scan=linear");

	(void)state;
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "\"bcast=rings\""));
	assert_non_null(strstr(said, "bcast=ring"));
	assert_null(strstr(said, "barrier"));
	assert_true(s.wanted == MPI_COLL_BIT(SCAN, LINEAR));
	s = parse("reduced=tree");
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "reduce=..., allreduce=..., reduce_scatter=..."));
	assert_true(s.wanted == 0);
	/* reduce is not reduce_scatter */
	parse("reduce=nothing");
	assert_null(strstr(said, "halving"));
}

static void an_old_word_is_good_for_a_release_more(void **state)
{
	struct mpi_coll_setting s = parse("rounds,alltoall=hub");

	(void)state;
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "\"alltoall=hub\" is now \"alltoall=shm\""));
	assert_true(s.wanted == MPI_COLL_BIT(ALLTOALL, SHM));
	s = parse("nothing=hub");
	assert_true(lines == 1 && s.wanted == 0);
	assert_non_null(strstr(said, "none of"));
}

static void what_is_hostile_is_told_in_bounds(void **state)
{
	static const char *const words[] = { "",
					     ",",
					     "=",
					     "bcast",
					     "bcast=",
					     "bcast=rin",
					     "bcast=ringg",
					     "=ring",
					     " auto",
					     "auto ",
					     "bcast==ring",
					     "%s%s%n=%n",
					     "\xff\xfe",
					     "bcast=ring=ring" };
	char *many = malloc(100001);

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct mpi_coll_setting s = parse(words[i]);

		assert_true(lines > 0);
		assert_true(s.wanted == 0 && s.prefer == MPI_COLL_AUTO);
	}
	assert_non_null(many);
	memset(many, 'x', 100000);
	many[100000] = '\0';
	parse(many);
	assert_int_equal(lines, 1);
	assert_true(strlen(said) < 500);
	memset(many, ',', 100000);
	parse(many);
	assert_int_equal(lines, 100001);
	memcpy(many, "bcast=", 6);
	memset(many + 6, '=', 99994);
	parse(many);
	assert_int_equal(lines, 1);
	assert_true(strlen(said) < 500);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_wants_its_row_and_rules_out_its_kin),
		cmocka_unit_test(the_last_word_on_a_collective_counts),
		cmocka_unit_test(what_is_no_word_is_passed_over_and_told),
		cmocka_unit_test(an_old_word_is_good_for_a_release_more),
		cmocka_unit_test(what_is_hostile_is_told_in_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
