/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rule of order: when a short message is received, all data of the writes that its sender
 * started before it to this process are in place. Each rank writes to the next one, in windows of
 * a few writes of random lengths around every limit of the transports, with a notice after each.
 *
 * order [ROUNDS [LONGEST [SEED]]]
 */
#include "check.h"

#include <string.h>

enum { SLOTS = 4, AROUND = 3 };

static size_t longest = (size_t)8 << 20;
static rwapi_net_t local, mine, theirs;
static unsigned char *from, *to;
static uint64_t seed = 1;

/* Lengths near those at which a transport changes its means, often; any length, sometimes. */
static size_t random_length(void)
{
	static const size_t limit[] = { 0,     1,      8,      64,     1200,    1472,
					2048,  4096,   8192,   16384,  32768,   65000,
					65536, 131072, 262144, 524288, 1u << 20 };
	uint64_t r = next_random(&seed);
	size_t length;

	if (r % 16 == 0)
		length = (size_t)(next_random(&seed) % (longest + 1));
	else
		length = limit[r / 16 % (sizeof(limit) / sizeof(limit[0]))] +
			 (size_t)(next_random(&seed) % (2 * AROUND + 1));
	length = length > AROUND ? length - AROUND : length;
	return length < longest ? length : longest;
}

/* The notice tells the length and the seed of the content. */
static void write_one(int node, uint32_t number)
{
	size_t at = (size_t)(number % SLOTS) * longest, length = random_length();
	uint64_t content = next_random(&seed) >> 24;
	rwapi_sid_t sid;

	fill(from + at, length, content);
	sid = rwapi_write(node, local + at, theirs + at, length);
	check(sid > 0);
	send_kind(node, KIND_NOTICE, (uint32_t)length, content);
	/* the next write from here must not change what is on its way */
	check(until_sent(sid) == 1);
	memset(from + at, 0xee, length < 64 ? length : 64);
}

static void check_one(int node, uint32_t number)
{
	size_t at = (size_t)(number % SLOTS) * longest, wrong;
	uint64_t content;
	uint32_t length;

	expect_kind(node, KIND_NOTICE, &length, &content);
	wrong = first_wrong(to + at, length, content);
	if (wrong != length)
		fprintf(stderr, "rank %d: write %u of %u bytes: wrong from byte %zu on\n", rank,
			number, length, wrong);
	check(wrong == length);
}

static void exchange_windows(uint32_t rounds)
{
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;

	send_kind(previous, KIND_NET, 0, mine);
	expect_kind(next, KIND_NET, NULL, &theirs);
	for (uint32_t n = 0; n < rounds; n += SLOTS) {
		for (uint32_t i = 0; i < SLOTS; i++)
			write_one(next, n + i);
		for (uint32_t i = 0; i < SLOTS; i++)
			check_one(previous, n + i);
		/* the slots may be written again */
		send_kind(previous, KIND_GO, 0, 0);
		expect_kind(next, KIND_GO, NULL, NULL);
	}
}

/* A notice behind many writes, long and short in turn, of which nothing is waited for. */
static void one_notice_for_many(void)
{
	enum { WRITES = 600 };
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	const size_t each = longest * SLOTS / WRITES;
	uint64_t content;

	barrier();
	fill(from, each * WRITES, 17 + (uint64_t)rank);
	memset(to, 0, each * WRITES);
	barrier();
	for (size_t i = 0; i < WRITES; i++) {
		/* whole parts, and parts of three writes */
		size_t at = i * each, third = each / 3;

		check(rwapi_write(next, local + at, theirs + at, i % 2 ? each : third) > 0);
		if (i % 2)
			continue;
		check(rwapi_write(next, local + at + third, theirs + at + third, third) > 0);
		check(rwapi_write(next, local + at + 2 * third, theirs + at + 2 * third,
				  each - 2 * third) > 0);
	}
	send_kind(next, KIND_NOTICE, 0, 17 + (uint64_t)rank);
	expect_kind(previous, KIND_NOTICE, NULL, &content);
	check(first_wrong(to, each * WRITES, content) == each * WRITES);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 400;

	if (argc > 2)
		longest = (size_t)atoll(argv[2]);
	begin(2);
	seed = (argc > 3 ? (uint64_t)atoll(argv[3]) : 1) * 1000 + (uint64_t)rank;
	from = rwapi_alloc(longest * SLOTS, &local);
	to = rwapi_alloc(longest * SLOTS, &mine);
	check(from && to);
	exchange_windows(rounds);
	passed("data of a write are in place when its notice is received");
	one_notice_for_many();
	passed("one notice is enough for many writes");
	return end(RWAPI_OK);
}
