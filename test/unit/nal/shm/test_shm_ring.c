/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rings of shared memory (nal/shm/shm_ring.h), both ends in one thread: what goes in comes
 * out, in order and whole, and how much of the ring is used for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nal/shm/shm.h"

#define LINES      1024
#define MOST_LINES (128 * 1024)
#define LONG       2048u

static struct shm_channel channel;
static _Alignas(4096) char lines[MOST_LINES * SHM_LINE];
static uint64_t dirty[MOST_LINES / 64];
static struct shm_ring out, in;
static uint64_t sent, taken;
static uint32_t sizes[LINES + 1]; /* of messages on their way, by number */
static uint32_t furthest;         /* line that a header was written to */

static int fresh(void **state)
{
	(void)state;
	memset(&channel, 0, sizeof(channel));
	memset(lines, 0, sizeof(lines));
	memset(dirty, 0, sizeof(dirty));
	out = in = (struct shm_ring){
		.ch = &channel, .lines = lines, .dirty = dirty, .count = LINES, .lap = SHM_LAP_LEAST
	};
	sent = taken = 0;
	furthest = 0;
	return 0;
}

static int fresh_alone(void **state)
{
	fresh(state);
	out.lap = SHM_LAP_ALONE;
	return 0;
}

static char byte_of(uint64_t number, uint32_t i)
{
	return (char)(number * 31 + i * 7 + 1);
}

static bool put(uint32_t size)
{
	struct shm_msg *m;
	char *payload;
	uint32_t at;

	if (!shm_ring_room(&out, size))
		return false;
	m = shm_ring_place(&out, size);
	m->kind = SHM_PUT;
	m->flags = 0;
	m->size = (uint16_t)size;
	m->length = size;
	m->match_bits = sent;
	at = (uint32_t)(((char *)m - lines) / SHM_LINE);
	furthest = at > furthest ? at : furthest;
	payload = shm_ring_payload(&out, m);
	for (uint32_t i = 0; i < size; i++)
		payload[i] = byte_of(sent, i);
	shm_ring_publish(&out, m);
	sizes[sent++ % (LINES + 1)] = size;
	return true;
}

/* As drain() in shm_run.c; false: there is none. */
static bool take(void)
{
	while (shm_ring_any(&in)) {
		uint64_t head = channel.head;
		uint32_t at = (uint32_t)(head % in.count), n;
		const struct shm_msg *m = shm_ring_line(&in, head);
		const char *payload;

		assert_true(head < channel.tail);
		n = shm_msg_lines(m, at, in.count);
		assert_int_not_equal(n, 0);
		channel.head = head + n;
		if (m->kind == SHM_PAD)
			continue;
		assert_int_equal(m->match_bits, taken);
		assert_int_equal(m->size, sizes[taken % (LINES + 1)]);
		payload = m->size <= SHM_INLINE ? (const char *)m->data
						: lines + shm_payload_line(at) * SHM_LINE;
		for (uint32_t i = 0; i < m->size; i++)
			assert_int_equal(payload[i], byte_of(taken, i));
		taken++;
		return true;
	}
	assert_int_equal(taken, sent);
	return false;
}

/* Messages that are taken one by one begin the ring again and again. */
static void take_turns(uint32_t size)
{
	for (int i = 0; i < 10000; i++) {
		assert_true(put(size));
		assert_false(shm_ring_filling(&out));
		assert_true(take());
		assert_false(take());
	}
	assert_true(furthest < out.lap + SHM_LAP_ROOM * shm_lines(size, 0));
}

static void turns_stay_at_the_beginning(void **state)
{
	(void)state;
	take_turns(LONG);
}

static void turns_of_headers_alone_do_so_too(void **state)
{
	(void)state;
	take_turns(SHM_INLINE);
}

/* Wherever it has begun again: what was skipped is in nobody's way. */
static void an_empty_ring_has_room_for_some(void **state)
{
	const uint32_t size = out.lap * SHM_LINE;
	const unsigned int some = LINES / shm_lines(size, 0) > SHM_LAP_ROOM
					  ? SHM_LAP_ROOM
					  : LINES / shm_lines(size, 0) - 1;

	(void)state;
	for (int i = 0; i < 100; i++) {
		for (unsigned int k = 0; k < 1 + i % some; k++)
			assert_true(put(size));
		while (take())
			;
	}
	assert_true(furthest < 2 * SHM_LAP_ROOM * shm_lines(size, 0));
}

static void a_ring_is_used_to_its_last_line(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < LINES; i++)
			assert_true(put(0));
		assert_false(put(0));
		while (take())
			;
		assert_true(put(0));
		assert_true(take());
	}
}

static void a_ring_that_is_never_empty_is_used_up(void **state)
{
	(void)state;
	assert_true(put(LONG));
	for (int i = 0; i < 1000; i++) {
		assert_true(put(LONG));
		assert_true(take());
	}
	assert_true(furthest > LINES - 2 * shm_lines(LONG, 0));
}

static void what_was_not_taken_is_not_overtaken(void **state)
{
	int room = 0;

	(void)state;
	while (put(LONG))
		room++;
	assert_true(room >= (int)(LINES / shm_lines(LONG, 0)) - 1);
	assert_true(shm_ring_filling(&out));
	while (take())
		;
}

/* The mark of skipped lines is a message like any other: a ring that is full up to it leaves it
 * alone. */
static void what_is_skipped_is_not_overtaken(void **state)
{
	(void)state;
	assert_true(put(0));
	while (channel.tail < LINES - 3) {
		assert_true(put(0));
		assert_true(take());
	}
	assert_true(put(LONG));
	assert_true(channel.pad_to == LINES);
	assert_true(take());
	assert_int_equal(channel.head, channel.pad_from);
	while (put(0))
		;
	assert_int_equal(channel.tail - channel.head, LINES);
	while (take())
		;
}

static void any_mixture_arrives(void **state)
{
	(void)state;
	srand(1);
	for (int i = 0; i < 300000; i++) {
		int what = rand() % 8;

		if (what < 4)
			put((uint32_t)(what < 2 ? rand() % 64 : rand() % 16384));
		else if (what < 7)
			take();
		else
			while (take())
				;
	}
	while (take())
		;
	assert_true(sent > 10000);
}

/* Numbers of lines come again after 2^32 lines; what was skipped all that time is no message. */
static void old_headers_are_no_messages(void **state)
{
	uint64_t lap;

	(void)state;
	while (put(0)) /* a header in every line */
		;
	while (take())
		;
	for (int i = 0; i < 18; i++) {
		assert_true(put(LONG));
		assert_true(take());
	}
	assert_true(channel.tail > 2ull * LINES);
	/* as if that had gone on */
	lap = channel.tail / LINES;
	channel.tail = channel.head = channel.tail - lap * LINES + (1ull << 32);
	channel.head_seen = channel.head_read_at = channel.tail;
	assert_true(put(0));
	for (int i = 0; i < LINES; i++) {
		assert_int_not_equal(shm_ring_line(&in, channel.tail)->seq,
				     (uint32_t)channel.tail + 1);
		assert_true(put(0));
		assert_true(take());
	}
}

/* A header has 16 bits for the lines that are skipped. */
static void the_line_asked_for_is_the_next_header_s(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		const struct shm_msg *m = shm_ring_ask(&out, 64);
		uint64_t tail = channel.tail;

		assert_true(put(i % 2 ? 64 : 0));
		assert_int_equal(m->seq, (uint32_t)tail + 1);
		assert_int_equal(m->match_bits, i);
		assert_true(take());
	}
}

static void a_long_ring_goes_round(void **state)
{
	(void)state;
	out.count = in.count = MOST_LINES;
	for (uint32_t i = 0; i < 2 * MOST_LINES / shm_lines(LONG, 0); i++) {
		assert_true(put(LONG));
		assert_true(take());
		assert_int_equal(channel.head, channel.tail);
	}
}

/* With the lap of processes that share cores, and with that of those that do not. */
#define BOTH(f) cmocka_unit_test_setup(f, fresh), cmocka_unit_test_setup(f, fresh_alone)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		BOTH(turns_stay_at_the_beginning),
		BOTH(turns_of_headers_alone_do_so_too),
		BOTH(an_empty_ring_has_room_for_some),
		BOTH(a_ring_is_used_to_its_last_line),
		BOTH(a_ring_that_is_never_empty_is_used_up),
		BOTH(what_was_not_taken_is_not_overtaken),
		BOTH(what_is_skipped_is_not_overtaken),
		BOTH(any_mixture_arrives),
		BOTH(old_headers_are_no_messages),
		BOTH(the_line_asked_for_is_the_next_header_s),
		BOTH(a_long_ring_goes_round),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
