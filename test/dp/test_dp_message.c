/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages in the pool: lengths, contents, addresses; a pool that is full; flow control.
 */
#include <fcntl.h>

#include <stdlib.h>
#include <time.h>

#include "dp_test.h"

enum { SENDER = 1, RECEIVER = 2 };

/* Bytes that depend on the message and the place in it. */
static char byte_of(unsigned int message, unsigned int at)
{
	return (char)(message * 31 + at * 7 + at / 251);
}

static void fill(char *bytes, unsigned int message, int length)
{
	for (int i = 0; i < length; i++)
		bytes[i] = byte_of(message, (unsigned int)i);
}

static void check(const char *bytes, unsigned int message, int length)
{
	for (int i = 0; i < length; i++)
		pt_truef(bytes[i] == byte_of(message, (unsigned int)i),
			 "byte %d of %d of message %u", i, length, message);
}

static const int lengths[] = { 0,     1,     2,     7,     8,     9,     15,    16,
			       17,    63,    64,    255,   256,   1000,  1499,  1500,
			       2047,  2048,  4095,  4096,  4097,  8192,  9000,  16384,
			       32767, 32768, 32769, 40000, 65528, 65529, 65535, 65536 };
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static void all_lengths_arrive(void)
{
	static char bytes[DP_MAX_MESSAGE];
	int fd = dp_opened(pt_rank + 1), nid, dpid;
	char *at;

	pt_barrier();
	dp_target(fd, 0, RECEIVER);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < LENGTHS; i++) {
			if (pt_rank == 0) {
				fill(bytes, (unsigned int)i, lengths[i]);
				pt_is(dp_write(fd, bytes, lengths[i]), lengths[i]);
				/* the buffer may be changed at once */
				memset(bytes, 0x55, (size_t)lengths[i]);
			} else {
				pt_is(dp_read(fd, &at), lengths[i]);
				pt_is((uintptr_t)at % 8, 0);
				check(at, (unsigned int)i, lengths[i]);
				pt_is(dp_from(fd, at, &nid, &dpid), 0);
				pt_true(nid == 0 && dpid == SENDER);
				pt_is(dp_fsync(fd, 1), 1);
			}
			if (i % 4 == 3)
				pt_barrier(); /* no more at once than the pool has room for */
		}
	}
	pt_barrier();
}

/* 4000 stay good until they are flushed, in odd steps. */
static void addresses_stay_good(void)
{
	enum { MANY = 4000 };
	static char *at[MANY];
	static int length[MANY];
	int fd = dp_opened_to(1, 1), done = 0, sent = 0;
	char bytes[64];
	uint64_t lost;

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < MANY; i++) {
			length[i] = (i + round) % 57;
			fill(bytes, (unsigned int)i, length[i]);
			pt_is(dp_write(fd, bytes, length[i]), length[i]);
			sent++;
		}
		for (int i = 0; i < MANY; i++)
			pt_is(dp_read(fd, &at[i]), length[i]);
		for (int i = 0; i < MANY; i++)
			check(at[i], (unsigned int)i, length[i]);
		for (int i = 0; i < MANY;) {
			int n = 1 + i % 13, most = MANY - i < n ? MANY - i : n;

			pt_is(dp_fsync(fd, n), most);
			i += most;
			for (int k = i; k < MANY && k < i + 5; k++)
				check(at[k], (unsigned int)k, length[k]);
			done += most;
		}
	}
	pt_is(done, sent);
	pt_is(dp_ctl(fd, DP_LOST, &lost), 0);
	pt_is(lost, 0);
}

/* Messages that find no room are lost and counted; the rest is in order. */
static void fill_pool(int fd, int length, int sends)
{
	static char bytes[DP_MAX_MESSAGE];
	uint64_t lost, number, last = 0;
	int got = 0;
	char *at;

	pt_is(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 1; i <= sends; i++) {
		number = (uint64_t)i;
		memcpy(bytes, &number, sizeof(number));
		pt_is(dp_write(fd, bytes, length), length);
	}
	while (dp_read(fd, &at) == length) {
		memcpy(&number, at, sizeof(number));
		pt_is(number, last + 1); /* the first that found room, without a gap */
		last = number;
		got++;
	}
	pt_true(got > 0 && got < sends);
	pt_is(dp_fsync(fd, got + 1), got);
	number = 0;
	memcpy(bytes, &number, sizeof(number));
	pt_is(dp_write(fd, bytes, length), length);
	pt_until(dp_read(fd, &at) == length, 5);
	memcpy(&number, at, sizeof(number));
	pt_is(number, 0);
	pt_is(dp_ctl(fd, DP_LOST, &lost), 0);
	pt_is(lost, sends - got);
	pt_is(dp_fsync(fd, 1), 1);
}

static void a_full_pool_loses_and_counts(void)
{
	int fd = dp_opened_to(1, 1), odd = dp_opened_to(2, 2);
	dpmmap_t shape = { .max_message = 4096, .size = 64 * 1024, .messages = 100 };

	fill_pool(fd, 30000, 60);
	pt_is(dp_mmap(odd, &shape), 0);
	fill_pool(odd, 4096, 60);
}

/* The number of messages is the limit here, not their bytes. */
static void short_messages_run_into_their_limit(void)
{
	int fd = dp_opened_to(1, 1);
	char *at, byte;
	uint64_t lost;
	int got;

	pt_is(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 5000; i++) {
			byte = (char)i;
			pt_is(dp_write(fd, &byte, 1), 1);
		}
		for (got = 0; dp_read(fd, &at) == 1; got++)
			pt_is(*at, (char)got);
		pt_is(got, 4000);
		pt_is(dp_fsync(fd, 5000), 4000);
	}
	byte = 1;
	pt_is(dp_write(fd, &byte, 1), 1);
	pt_until(dp_read(fd, &at) == 1, 5);
	pt_is(dp_ctl(fd, DP_LOST, &lost), 0);
	pt_is(lost, 5 * 1000);
}

/* A sender that is too fast: order, contents, and every loss counted. */
static void a_fast_sender_loses_in_order(void)
{
	enum { MANY = 20000 };
	static char bytes[4096];
	dpmmap_t shape = { .size = 256 * 1024, .messages = 400, .max_message = 8192 };
	const uint64_t last = UINT64_MAX;
	int fd = dp_opened(pt_rank + 1), length;
	uint64_t number = 0, before = 0, got = 0, lost = 0, rounds = pt_rounds(MANY);
	char *at;

	pt_is(dp_mmap(fd, &shape), 0);
	pt_barrier();
	if (pt_rank == 0) {
		dp_target(fd, 0, RECEIVER);
		for (uint64_t i = 1; i <= rounds; i++) {
			fill(bytes, (unsigned int)i, (int)(i * 37 % 4088) + 8);
			memcpy(bytes, &i, sizeof(i));
			pt_is(dp_write(fd, bytes, (int)(i * 37 % 4088) + 8),
			      (int)(i * 37 % 4088) + 8);
		}
		/* until one finds room */
		while (!*pt_word(0)) {
			pt_is(dp_write(fd, &last, 8), 8);
			++*pt_word(1);
			pt_pause();
		}
	} else {
		while (number != last) {
			length = dp_read(fd, &at);
			pt_true(length >= 8);
			memcpy(&number, at, sizeof(number));
			if (number != last) {
				pt_true(number > before);
				pt_is(length, (int)(number * 37 % 4088) + 8);
				for (int i = 8; i < length; i++)
					pt_is(at[i],
					      byte_of((unsigned int)number, (unsigned int)i));
				before = number;
				got++;
			}
			pt_is(dp_fsync(fd, 1), 1);
		}
		pt_is(dp_ctl(fd, DP_LOST, &lost), 0);
		*pt_word(0) = 1;
		pt_truef(got + lost >= rounds && got + lost <= rounds + *pt_word(1) + 1,
			 "%llu got, %llu lost of %llu", (unsigned long long)got,
			 (unsigned long long)lost, (unsigned long long)rounds);
	}
	pt_barrier();
}

/* With flow control nothing is lost, though the receiver sleeps meanwhile. */
static void flow_control_loses_nothing(void)
{
	enum { MANY = 3000 };
	static char bytes[DP_MAX_MESSAGE];
	dpmmap_t shape = { .size = 512 * 1024, .messages = 100 };
	const struct timespec nap = { 0, 300000000 };
	int fd = dp_opened(pt_rank + 1), on = 1;
	uint64_t lost = 1, rounds = pt_rounds(MANY);
	char *at;

	pt_is(dp_mmap(fd, &shape), 0);
	pt_is(dp_ctl(fd, DP_FLOW, &on), 0);
	pt_barrier();
	if (pt_rank == 0) {
		dp_target(fd, 0, RECEIVER);
		for (uint64_t i = 0; i < rounds; i++) {
			int length = (int)(i * 7919 % (i % 16 ? 3000 : DP_MAX_MESSAGE));

			fill(bytes, (unsigned int)i, length);
			pt_is(dp_write(fd, bytes, length), length);
		}
	} else {
		nanosleep(&nap, NULL);
		for (uint64_t i = 0; i < rounds; i++) {
			int length = (int)(i * 7919 % (i % 16 ? 3000 : DP_MAX_MESSAGE));

			pt_is(dp_read(fd, &at), length);
			check(at, (unsigned int)i, length);
			if (i == rounds / 2)
				nanosleep(&nap, NULL);
			if (i % 3 == 2)
				pt_is(dp_fsync(fd, 3), 3);
		}
		pt_is(dp_ctl(fd, DP_LOST, &lost), 0);
		pt_is(lost, 0);
	}
	pt_barrier();
}

/* More senders than shares, and some that have sent their part and keep silent. */
static void flow_control_has_shares_for_many(void)
{
	enum { EACH = 40 };
	dpmmap_t shape = { .size = 512 * 1024, .messages = 400 };
	static char bytes[20000];
	int fd = dp_opened(pt_rank + 1), on = 1, senders = pt_size - 1, dpid;
	uint64_t next[PT_MAX_PROCS] = { 0 }, value, lost;
	char *at;

	pt_is(dp_ctl(fd, DP_FLOW, &on), 0);
	if (pt_rank == 0)
		pt_is(dp_mmap(fd, &shape), 0);
	pt_barrier();
	if (pt_rank > 0) {
		dp_target(fd, 0, 1);
		for (uint64_t i = 0; i < EACH; i++) {
			memcpy(bytes, &i, sizeof(i));
			pt_is(dp_write(fd, bytes, sizeof(bytes)), sizeof(bytes));
		}
	} else {
		for (int i = 0; i < EACH * senders; i++) {
			pt_is(dp_read(fd, &at), sizeof(bytes));
			memcpy(&value, at, sizeof(value));
			pt_is(dp_from(fd, at, NULL, &dpid), 0);
			pt_is(value, next[dpid - 2]++);
			pt_is(dp_fsync(fd, 1), 1);
		}
		pt_is(dp_ctl(fd, DP_LOST, &lost), 0);
		pt_is(lost, 0);
	}
	pt_barrier();
}

static void a_sender_without_credit_can_be_told_so(void)
{
	static char bytes[DP_MAX_MESSAGE];
	int a = dp_opened_to(1, 2), b = dp_opened(2), on = 1, sent = 0;
	uint64_t lost;
	char *at;

	pt_is(dp_ctl(a, DP_FLOW, &on), 0);
	pt_is(dp_ctl(b, DP_FLOW, &on), 0);
	pt_is(dp_write(a, bytes, sizeof(bytes)), sizeof(bytes));
	pt_is(fcntl(a, F_SETFL, O_NONBLOCK), 0);
	for (sent = 1; dp_write(a, bytes, sizeof(bytes)) > 0; sent++)
		pt_true(sent < 1000);
	pt_is(errno, EAGAIN);
	for (int i = 0; i < sent; i++)
		pt_is(dp_read(b, &at), sizeof(bytes));
	dp_fails(dp_write(a, bytes, sizeof(bytes)), EAGAIN);
	pt_is(dp_fsync(b, sent), sent);
	pt_until(dp_write(a, bytes, sizeof(bytes)) > 0, 10);
	pt_is(dp_ctl(b, DP_LOST, &lost), 0);
	pt_is(lost, 0);
}

/* Credit of a sender that closes is for others. */
static void credit_comes_back_with_a_close(void)
{
	static char bytes[DP_MAX_MESSAGE];
	int a = dp_opened_to(1, 3), b = dp_opened_to(2, 3), c = dp_opened(3), on = 1;
	char *at;

	pt_is(dp_ctl(a, DP_FLOW, &on), 0);
	pt_is(dp_ctl(b, DP_FLOW, &on), 0);
	pt_is(dp_ctl(c, DP_FLOW, &on), 0);
	dp_send_value(a, 5);
	dp_next_value(c, 5);
	dp_close(a);
	pt_is(fcntl(b, F_SETFL, O_NONBLOCK), 0);
	pt_until(dp_write(b, bytes, sizeof(bytes)) == sizeof(bytes), 5);
	pt_is(dp_read(c, &at), sizeof(bytes));
}

static void flow_control_takes_both(void)
{
	int a = dp_opened_to(1, 2), b = dp_opened(2), on = 1, got = 0;
	uint64_t lost;
	char *at;

	pt_is(dp_ctl(a, DP_FLOW, &on), 0);
	pt_is(fcntl(b, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 5000; i++)
		dp_send_value(a, (uint64_t)i);
	while (dp_read(b, &at) == 8)
		got++;
	pt_is(got, 4000);
	dp_fsync(b, got);
	dp_send_value(a, 1);
	pt_until(dp_read(b, &at) == 8, 5);
	pt_is(dp_ctl(b, DP_LOST, &lost), 0);
	pt_is(lost, 1000);
}

static const struct pt_test tests[] = {
	PT_CASE(all_lengths_arrive, 2),
	PT_CASE(addresses_stay_good, 1),
	PT_CASE(a_full_pool_loses_and_counts, 1),
	PT_CASE(short_messages_run_into_their_limit, 1),
	PT_CASE(a_fast_sender_loses_in_order, 2),
	PT_CASE(flow_control_loses_nothing, 2),
	PT_CASE(flow_control_has_shares_for_many, 12),
	PT_CASE(a_sender_without_credit_can_be_told_so, 1),
	PT_CASE(credit_comes_back_with_a_close, 1),
	PT_CASE(flow_control_takes_both, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
