/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Many short messages: nothing is lost or repeated, those of one sender come in order, and
 * processes that send to each other before they receive do not wait for each other.
 *
 * flood [MESSAGES [SLEEP_MS]]
 */
#include "check.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static uint32_t messages = 20000;
static long sleep_ms = 300;

/* Receive all messages of so many senders; each counts its own. */
static void receive_all(int senders, uint32_t each)
{
	uint32_t *next = calloc((size_t)size, sizeof(*next));
	uint64_t left = (uint64_t)senders * each;

	check(next);
	while (left--) {
		uint64_t word;
		uint32_t number;
		int node = expect_kind(-1, KIND_COUNT, &number, &word);

		check(number == next[node]);
		check(word == ~(uint64_t)number);
		next[node]++;
	}
	check(!has_kind(-1, KIND_COUNT));
	free(next);
}

static void send_all(int node, uint32_t each)
{
	for (uint32_t i = 0; i < each; i++)
		send_kind(node, KIND_COUNT, i, ~(uint64_t)i);
}

/* Each sends everything to its partner before it receives anything. */
static void both_send_first(void)
{
	int partner = rank ^ 1;

	if (partner < size) {
		send_all(partner, messages);
		receive_all(1, messages);
	}
}

static void all_to_one(void)
{
	if (rank)
		send_all(0, messages / 4);
	else
		receive_all(size - 1, messages / 4);
}

static void one_to_all(void)
{
	for (uint32_t i = 0; rank == 0 && i < messages / 8; i++)
		for (int node = 1; node < size; node++)
			send_kind(node, KIND_COUNT, i, ~(uint64_t)i);
	if (rank)
		receive_all(1, messages / 8);
}

/* The receiver is outside of the library: senders have their shares, then wait. */
static void receiver_sleeps(void)
{
	const struct timespec t = { sleep_ms / 1000, sleep_ms % 1000 * 1000000 };

	barrier();
	if (rank) {
		send_all(0, 1000);
	} else {
		nanosleep(&t, NULL);
		receive_all(size - 1, 1000);
	}
}

static void to_oneself(void)
{
	send_all(rank, 1000);
	receive_all(1, 1000);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		messages = (uint32_t)atoi(argv[1]);
	if (argc > 2)
		sleep_ms = atol(argv[2]);
	begin(5);
	both_send_first();
	passed("two that send to each other before they receive");
	all_to_one();
	passed("all to one: per-sender order, nothing lost or repeated");
	one_to_all();
	passed("one to all");
	receiver_sleeps();
	passed("a receiver that sleeps meanwhile");
	to_oneself();
	passed("messages to oneself");
	return end(RWAPI_OK);
}
