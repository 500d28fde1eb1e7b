/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * SipHash-2-4, after Aumasson and Bernstein, with the result of 128 bits.
 */
#include "base/siphash.h"

#include <stdint.h>
#include <string.h>

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t turn(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void mix_rounds(struct state *s, int n)
{
	while (n-- > 0) {
		s->v0 += s->v1;
		s->v1 = turn(s->v1, 13) ^ s->v0;
		s->v0 = turn(s->v0, 32);
		s->v2 += s->v3;
		s->v3 = turn(s->v3, 16) ^ s->v2;
		s->v0 += s->v3;
		s->v3 = turn(s->v3, 21) ^ s->v0;
		s->v2 += s->v1;
		s->v1 = turn(s->v1, 17) ^ s->v2;
		s->v2 = turn(s->v2, 32);
	}
}

static uint64_t load_little(const unsigned char *p, size_t n)
{
	uint64_t word = 0;

	while (n-- > 0)
		word = word << 8 | p[n];
	return word;
}

static void absorb(struct state *s, uint64_t word)
{
	s->v3 ^= word;
	mix_rounds(s, 2);
	s->v0 ^= word;
}

static void squeeze(struct state *s, unsigned char *out)
{
	uint64_t word;

	mix_rounds(s, 4);
	word = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
	for (int i = 0; i < 8; i++)
		out[i] = (unsigned char)(word >> 8 * i);
}

void base_siphash(const unsigned char key[BASE_SIPHASH_BYTES], const void *data, size_t len,
		  unsigned char out[BASE_SIPHASH_BYTES])
{
	const uint64_t k0 = load_little(key, 8), k1 = load_little(key + 8, 8);
	const unsigned char *p = data;
	struct state s = { k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
			   k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573 };
	size_t left = len;

	for (; left >= 8; p += 8, left -= 8)
		absorb(&s, load_little(p, 8));
	absorb(&s, load_little(p, left) | (uint64_t)len << 56);
	s.v2 ^= 0xee;
	squeeze(&s, out);
	s.v1 ^= 0xdd;
	squeeze(&s, out + 8);
}
