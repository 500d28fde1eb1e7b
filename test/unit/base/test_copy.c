/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Copies into memory that another core has, and into such that this one has: all of it and nothing
 * else, at any place, in segments or not, by vectors or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/copy.h"

#define MOST (2 * BASE_COPY_WIDE_MOST + 600)

static unsigned char from[MOST + 128], to[MOST + 128], want[MOST + 128];

static void copy(uint64_t len, uint64_t source, uint64_t target)
{
	memset(to, 0xee, sizeof(to));
	memset(want, 0xee, sizeof(want));
	memcpy(want + target, from + source, len);
	base_copy_over(to + target, from + source, len);
	assert_memory_equal(to, want, sizeof(to));
}

static void lengths_about_a_piece_are_copied(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 3; n++)
		for (uint64_t len = n * BASE_COPY_SEGMENT - 40; len <= n * BASE_COPY_SEGMENT + 40;
		     len++)
			copy(len, len % 64, 64 - len % 61);
}

static void short_ones_are_copied(void **state)
{
	(void)state;
	for (uint64_t len = 0; len < 200; len++)
		copy(len, 3, 1);
}

static void pieces_are_copied_with_and_without_the_instruction(void **state)
{
#if defined(__x86_64__)
	const bool has = base_short_rep;

	base_short_rep = !has; /* any such processor knows it, and copies the same */
	lengths_about_a_piece_are_copied(state);
	base_short_rep = has;
#endif
	lengths_about_a_piece_are_copied(state);
}

/* Within one buffer. */
static void move(uint64_t len, uint64_t source, uint64_t target)
{
	memcpy(to, from, sizeof(to));
	memcpy(want, from, sizeof(want));
	memmove(want + target, want + source, len);
	base_move_back(to + target, to + source, len);
	assert_memory_equal(to, want, sizeof(to));
}

static void moves(void)
{
	static const uint64_t about[] = { BASE_COPY_WIDE_LEAST, BASE_COPY_WIDE_LEAST + 256,
					  BASE_COPY_WIDE_MOST };

	for (int i = 0; i < 3; i++)
		for (uint64_t len = about[i] - 4; len <= about[i] + 260; len++) {
			move(len, len % 64, len + 64 + len % 61); /* apart */
			move(len, sizeof(to) - len, len % 7);
			move(len, len % 64, len % 64 + len); /* they touch */
			move(len, len, 0);
			move(len, len % 64, len % 64 + len - 1); /* they overlap */
			move(len, len % 61 + 100, len % 61);
			move(len, 5, 5);
		}
}

static void what_this_core_has_is_moved_with_and_without_vectors(void **state)
{
	(void)state;
	moves();
#if defined(__x86_64__)
	if (base_wide) {
		base_wide = false;
		moves();
		base_wide = true;
	}
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_about_a_piece_are_copied),
		cmocka_unit_test(short_ones_are_copied),
		cmocka_unit_test(pieces_are_copied_with_and_without_the_instruction),
		cmocka_unit_test(what_this_core_has_is_moved_with_and_without_vectors),
	};

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 31 + i / 251);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
