/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The path of long messages in shared memory, by what was observed: the machine of
 * nal/shm/shm_path.c, with a clock that is ours and a pipe and claims that take as long as a case
 * says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cpu.h"

static uint64_t clock_ns = 1;

static uint64_t our_now(void)
{
	return clock_ns;
}

#define base_now_ns our_now
#include "nal/shm/shm_path.c" /* NOLINT(bugprone-suspicious-include) */

#define LENGTH     (16u << 10)
#define REST_FIRST 8 /* messages before the first trial, and at most between two */
#define REST_MOST  8192

static struct ptl_region region;
static struct ptl_ni ni;
static struct shm s;
static struct shm_channel channel;
static struct shm_peer peer;
static uint64_t pipe_ns, claims_ns; /* that LENGTH bytes take now */
static unsigned int under_way;

static int fresh(void **state)
{
	(void)state;
	memset(&region.stat, 0, sizeof(region.stat));
	memset(region.flow, 0, sizeof(region.flow));
	memset(&channel, 0, sizeof(channel));
	peer = (struct shm_peer){ .index = 1, .cma = true, .in = { .ch = &channel } };
	ni = (struct ptl_ni){ .view = { .r = &region }, .spin_ns = 100000 };
	s = (struct shm){ .ni = &ni };
	for (int k = 0; k < SHM_LENGTH_CLASSES; k++)
		base_tuner_init(&s.in_turns[k], 2, 0);
	under_way = 0;
	shm_path_init(&peer);
	return 0;
}

static bool by_claims(uint64_t length)
{
	return atomic_load(&channel.claims[shm_path_of(length)]);
}

/* The peer's deliveries, of which only these two numbers are looked at. */
static void list(void)
{
	region.flow[peer.index].delivery[PTL_LIST_PUT] =
		(struct ptl_list){ .first = under_way ? 1 : 0, .last = under_way };
}

static void begin(void)
{
	under_way++;
	list();
	shm_path_began(&s, &peer);
}

static void end(uint64_t length)
{
	clock_ns += (by_claims(length) ? claims_ns : pipe_ns) * length / LENGTH;
	under_way--;
	list();
	shm_path_ended(&s, &peer, length);
}

/* Messages one by one, with a pause after each that is the program's own; returns how many went
 * by claims. */
static unsigned int stream(unsigned int n, uint64_t length)
{
	unsigned int claimed = 0;

	while (n--) {
		claimed += by_claims(length);
		begin();
		end(length);
		clock_ns += 1000000;
	}
	return claimed;
}

/* The same taken in by ourselves, where processors are short. */
static unsigned int stream_in_turns(unsigned int n, uint64_t length)
{
	unsigned int claimed = 0;
	uint64_t since;
	bool claims;

	while (n--) {
		shm_path_advertise(&s, &peer, length);
		claims = by_claims(length);
		claimed += claims;
		since = shm_path_moving(&s, length);
		clock_ns += (claims ? claims_ns : pipe_ns) * length / LENGTH;
		shm_path_moved(&s, length, since, length, !claims);
		clock_ns += 1000000;
	}
	return claimed;
}

static void the_faster_way_is_found(void **state)
{
	(void)state;
	pipe_ns = 30000;
	claims_ns = 12000;
	stream(100, LENGTH);
	assert_true(by_claims(LENGTH));
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 1);
	/* trials cost little: two parts in a hundred at most of the time */
	assert_in_range(20000 - stream(20000, LENGTH), 1, 20000 * 2 / 100 * 12 / 18);
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 1);
}

static void copies_count_where_processors_are_short(void **state)
{
	(void)state;
	ni.spin_ns = 0;
	claims_ns = 12000;
	pipe_ns = 5500; /* and as much at the source */
	assert_in_range(5000 - stream_in_turns(5000, LENGTH), 1, 5000 / 7);
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 0);
	pipe_ns = 4000;
	stream_in_turns(200, LENGTH);
	assert_in_range(stream_in_turns(20000, LENGTH), 1, 20000 / 30);
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 1);
	/* what was observed of deliveries counts as soon as they are not */
	ni.spin_ns = 100000;
	peer.path[shm_path_of(LENGTH)].of.now = 1;
	shm_path_advertise(&s, &peer, LENGTH);
	assert_true(by_claims(LENGTH));
}

static void the_way_is_kept_that_is_as_fast(void **state)
{
	(void)state;
	pipe_ns = 12000;
	claims_ns = 11500;
	stream(5000, LENGTH);
	assert_false(by_claims(LENGTH));
	assert_in_range(region.stat.counts[PTL_COUNT_WAY_TRIED], 2, 5000);
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 0);
}

static void a_machine_that_changes_is_followed(void **state)
{
	(void)state;
	pipe_ns = 5000;
	claims_ns = 15000;
	for (int turn = 0; turn < 6; turn++) {
		uint64_t was = pipe_ns;

		assert_int_equal(by_claims(LENGTH), turn % 2);
		pipe_ns = claims_ns;
		claims_ns = was;
		stream(2 * REST_MOST, LENGTH);
	}
}

static void many_under_way_count_as_they_end(void **state)
{
	(void)state;
	pipe_ns = 30000;
	claims_ns = 12000;
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 16; k++)
			begin();
		while (under_way)
			end(LENGTH);
		clock_ns += 50000000;
	}
	assert_true(by_claims(LENGTH));
}

static void a_core_lost_for_once_decides_nothing(void **state)
{
	(void)state;
	pipe_ns = 10000;
	claims_ns = 12000;
	for (unsigned int i = 0; i < 5000; i++) {
		begin();
		if (i % 64 == 20)
			clock_ns += 4000000;
		end(LENGTH);
	}
	assert_in_range(region.stat.counts[PTL_COUNT_WAY_TRIED], 2, 5000);
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 0);
}

/* Its first messages are slow by the pipe for once, so that claims win the first trial. */
static void a_cold_beginning_does_not_choose_for_long(void **state)
{
	(void)state;
	pipe_ns = 60000;
	claims_ns = 20000;
	stream(88, LENGTH);
	assert_true(by_claims(LENGTH));
	pipe_ns = 10000;
	stream(200, LENGTH);
	assert_false(by_claims(LENGTH));
}

/* Whatever happens, so that each trial changes something: trials become rare. */
static void changes_without_end_become_rare(void **state)
{
	const struct shm_path *w = &peer.path[shm_path_of(LENGTH)];

	(void)state;
	for (int i = 0; i < 100 * REST_MOST; i++) {
		/* the other path is always better, until it is taken */
		pipe_ns = claims_ns = w->of.phase == BASE_TUNER_OTHER ? 5000 : 20000;
		stream(1, LENGTH);
	}
	assert_true(region.stat.counts[PTL_COUNT_WAY_CHANGED] > 50);
	assert_in_range(region.stat.counts[PTL_COUNT_WAY_TRIED], 2, 130);
}

/* Short ones that are faster by the pipe and long ones by claims, in turn. */
static void lengths_have_ways_of_their_own(void **state)
{
	const uint64_t is_short = 32u << 10, is_long = 4u << 20;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		pipe_ns = 10000;
		claims_ns = 14000;
		stream(1, is_short);
		claims_ns = 6000;
		stream(1, is_long);
	}
	assert_false(by_claims(is_short));
	assert_true(by_claims(is_long));
}

static void all_lengths_begin_by_the_pipe(void **state)
{
	(void)state;
	pipe_ns = 10000;
	claims_ns = 14000;
	for (uint64_t length = LENGTH; length <= 4u << 20; length *= 4) {
		assert_int_equal(stream(REST_FIRST, length), 0);
		assert_true(stream(100, length)); /* claims have been tried */
		assert_false(by_claims(length));
	}
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 0);
}

/* A message that a peer begins and ends while we compute has no beginning that we know of. */
static void what_began_unseen_is_not_timed(void **state)
{
	(void)state;
	pipe_ns = 10000;
	claims_ns = 12000;
	for (int i = 0; i < 20000; i++) {
		if (i % 3) {
			begin();
			end(LENGTH);
		} else {
			under_way++;
			clock_ns += by_claims(LENGTH) ? 0 : 77000000;
			end(LENGTH);
		}
	}
	assert_in_range(region.stat.counts[PTL_COUNT_WAY_TRIED], 2, 20000);
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 0);
}

/* A message that a peer ends while we compute was over long before the next one begins. */
static void what_ended_unseen_is_not_timed(void **state)
{
	(void)state;
	pipe_ns = 10000;
	claims_ns = 12000;
	for (int i = 0; i < 20000; i++) {
		if (i % 5 == 0 && !by_claims(LENGTH)) {
			begin();
			under_way--;
			list();
			clock_ns += 77000000;
		}
		begin();
		end(LENGTH);
	}
	assert_in_range(region.stat.counts[PTL_COUNT_WAY_TRIED], 2, 20000);
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_CHANGED], 0);
}

static void without_a_choice_nothing_is_tried(void **state)
{
	(void)state;
	pipe_ns = 30000;
	claims_ns = 12000;
	peer.cma = false; /* the pipe alone */
	stream(1000, LENGTH);
	peer.cma = true;
	ni.spin_ns = 0; /* claims alone */
	stream(1000, LENGTH);
	assert_int_equal(region.stat.counts[PTL_COUNT_WAY_TRIED], 0);
	assert_false(by_claims(LENGTH));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_faster_way_is_found, fresh),
		cmocka_unit_test_setup(copies_count_where_processors_are_short, fresh),
		cmocka_unit_test_setup(the_way_is_kept_that_is_as_fast, fresh),
		cmocka_unit_test_setup(a_machine_that_changes_is_followed, fresh),
		cmocka_unit_test_setup(many_under_way_count_as_they_end, fresh),
		cmocka_unit_test_setup(a_core_lost_for_once_decides_nothing, fresh),
		cmocka_unit_test_setup(a_cold_beginning_does_not_choose_for_long, fresh),
		cmocka_unit_test_setup(changes_without_end_become_rare, fresh),
		cmocka_unit_test_setup(lengths_have_ways_of_their_own, fresh),
		cmocka_unit_test_setup(all_lengths_begin_by_the_pipe, fresh),
		cmocka_unit_test_setup(what_began_unseen_is_not_timed, fresh),
		cmocka_unit_test_setup(what_ended_unseen_is_not_timed, fresh),
		cmocka_unit_test_setup(without_a_choice_nothing_is_tried, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
