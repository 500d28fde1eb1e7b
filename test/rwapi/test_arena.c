/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The arena alone: parts never overlap, are aligned, and join again, in any order of frees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rwapi_shim/arena.h"

enum { PARTS = 500, STEPS = 60000 };
#define MIB ((uint64_t)1 << 20)

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t most)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % most;
}

/* The parts cover the arena without a gap, and no two free ones are neighbours. */
static void assert_whole(const struct rw_part *part, uint64_t length)
{
	uint64_t at = 0;

	while (part->prev)
		part = part->prev;
	for (; part; part = part->next) {
		assert_true(part->at == at);
		assert_true(part->length > 0);
		assert_false(part->is_free && part->next && part->next->is_free);
		at += part->length;
	}
	assert_true(at == length);
}

static void parts_in_any_order(void **state)
{
	static struct rw_part *part[PARTS];
	static uint64_t size[PARTS];
	struct rw_arena a;

	(void)state;
	assert_true(rw_arena_init(&a, 256 * MIB));
	for (int step = 0; step < STEPS; step++) {
		uint32_t i = random_below(PARTS);
		unsigned char *start;

		if (part[i]) {
			start = rw_part_start(&a, part[i]);
			assert_int_equal(start[0], i & 255);
			assert_int_equal(start[size[i] - 1], i & 255);
			rw_arena_free(&a, part[i]);
			part[i] = NULL;
			continue;
		}
		size[i] = 1 + random_below(step % 16 ? 600 : step % 256 ? 30000 : 3000000);
		part[i] = rw_arena_alloc(&a, size[i]);
		if (!part[i])
			continue; /* it may be full */
		assert_true(part[i]->length >= size[i]);
		assert_int_equal(part[i]->at % (size[i] >= 4096 ? 4096 : 64), 0);
		start = rw_part_start(&a, part[i]);
		start[0] = start[size[i] - 1] = (unsigned char)i;
		if (step % 500 == 0)
			assert_whole(part[i], a.length);
	}
	for (uint32_t i = 0; i < PARTS; i++)
		if (part[i])
			rw_arena_free(&a, part[i]);
	/* all is one part again */
	part[0] = rw_arena_alloc(&a, a.length);
	assert_non_null(part[0]);
	assert_true(part[0]->length == a.length);
	assert_null(rw_arena_alloc(&a, 1));
	rw_arena_free(&a, part[0]);
	rw_arena_fini(&a);
}

static void too_long(void **state)
{
	struct rw_arena a;

	(void)state;
	assert_true(rw_arena_init(&a, 64 * MIB));
	assert_null(rw_arena_alloc(&a, 64 * MIB + 1));
	assert_null(rw_arena_alloc(&a, UINT64_MAX));
	rw_arena_fini(&a);
	/* less address space than is worth it */
	assert_false(rw_arena_init(&a, MIB));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_in_any_order),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
