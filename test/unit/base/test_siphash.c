/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * SipHash-2-4 with 128 bits gives what its authors' test vectors say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/siphash.h"

/* The key is 0, 1, ... 15; the input is the first bytes of 0, 1, 2, ... */
static void expect(size_t len, const unsigned char *wanted)
{
	unsigned char key[BASE_SIPHASH_BYTES], in[64], out[BASE_SIPHASH_BYTES];

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)i;
	memcpy(key, in, sizeof(key));
	base_siphash(key, in, len, out);
	assert_memory_equal(out, wanted, sizeof(out));
}

static void empty_input(void **state)
{
	(void)state;
	expect(0, (const unsigned char[]){ 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d,
					   0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 });
}

static void one_byte(void **state)
{
	(void)state;
	expect(1, (const unsigned char[]){ 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34,
					   0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45 });
}

/* Every length up to 63 gives another result, and so does every key. */
static void lengths_and_keys_differ(void **state)
{
	unsigned char seen[64][BASE_SIPHASH_BYTES], key[BASE_SIPHASH_BYTES] = { 0 }, in[64] = { 0 };
	unsigned char other[BASE_SIPHASH_BYTES];

	(void)state;
	for (size_t i = 0; i < 64; i++) {
		base_siphash(key, in, i, seen[i]);
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(seen[i], seen[j], sizeof(seen[i]));
	}
	key[15] = 1;
	base_siphash(key, in, 8, other);
	assert_memory_not_equal(other, seen[8], sizeof(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_input),
		cmocka_unit_test(one_byte),
		cmocka_unit_test(lengths_and_keys_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
