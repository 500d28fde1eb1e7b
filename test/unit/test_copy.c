/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Copies into memory that another core has: all of it and nothing else, at any place, in pieces or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/copy.h"

#define MOST (3 * BASE_COPY_PIECE)

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
		for (uint64_t len = n * BASE_COPY_PIECE - 40; len <= n * BASE_COPY_PIECE + 40;
		     len++)
			if (len <= MOST)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_about_a_piece_are_copied),
		cmocka_unit_test(short_ones_are_copied),
		cmocka_unit_test(pieces_are_copied_with_and_without_the_instruction),
	};

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 31 + i / 251);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
