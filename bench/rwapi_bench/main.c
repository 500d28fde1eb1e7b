/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * rwapi_bench: the three benchmarks of the paper on RWAPI (Ben Fredj, Renault: RWAPI over
 * InfiniBand: Design and Performance), by its own definitions, and some that its claims need.
 */
#include "bench.h"

static const char *const what[TESTS] = {
	[TEST_PING_PONG] = "one way of a message there and one back",
	[TEST_BIDIRECTIONAL] = "both send, then both receive",
	[TEST_BURST] = "one direction, a notice with each write",
	[TEST_STREAM] = "one direction, one notice behind all writes",
	[TEST_LOOK] = "one way, without notice",
	[TEST_MANY] = "short messages of several ranks to one",
	[TEST_BLOCKS] = "10000 blocks",
};

static size_t longest_of(const struct bench_options *o)
{
	size_t longest = SHORT_BYTES;

	for (int i = 0; i < o->sizes; i++)
		if (o->size[i] > longest)
			longest = o->size[i];
	return longest;
}

static void run_pair(enum bench_test test, const struct bench_options *o)
{
	if (bench_rank > 1)
		return;
	if (test <= TEST_BURST)
		bench_pair(test, SHORT_BYTES, true, o);
	for (int i = 0; i < o->sizes; i++)
		bench_pair(test, o->size[i], false, o);
}

static void run_test(enum bench_test test, const struct bench_options *o)
{
	if (!bench_rank)
		bench_title(bench_test_name[test], what[test]);
	if (test == TEST_MANY)
		bench_many(o);
	else if (test == TEST_BLOCKS)
		bench_blocks(o);
	else
		run_pair(test, o);
}

int main(int argc, char **argv)
{
	struct bench_options o;
	int err;

	bench_options(argc, argv, &o);
	err = rwapi_init(argc, argv);
	if (err)
		bench_fail("rwapi_init: %s", rwapi_strerror(err));
	bench_rank = rwapi_rank();
	bench_size = rwapi_size();
	if (bench_size < 2)
		bench_fail("two ranks or more are needed; start it with mpiexec -n 2");
	if (!bench_rank)
		bench_report_begin(&o);
	bench_areas(longest_of(&o));
	for (int i = 0; i < TESTS; i++)
		if (o.test[i])
			run_test(i, &o);
	err = rwapi_finalize();
	if (err)
		bench_fail("rwapi_finalize: %s", rwapi_strerror(err));
	return bench_rank ? 0 : bench_report_end();
}
