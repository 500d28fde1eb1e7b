/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bare packets: a message that begins as the last one in parts did, and has its length, goes
 * without a header, where that saves a packet. It arrives as what it is whatever came between,
 * late, or before its turn; and a word that does not belong to the connection, or says what
 * cannot be, is found out.
 */
#undef malloc /* that of the machines is scarce_malloc */
#include "rdma_pair.h"

enum { FRAME = 256 }; /* of a link whose packets are longer */

static int set_up_bare(void **state)
{
	set_up(state);
	from.d.limits.frame = PACKET;
	return 0;
}

/* From here on no byte that was put is where it lands. */
static void clear(void)
{
	memset(delivery, 0, sizeof(delivery));
}

static void name(const char *text)
{
	memcpy(header, text, sizeof(header));
}

static void put_and_take(uint64_t len)
{
	clear();
	wanted = len;
	put(len, NULL);
	take(MOST);
	assert_int_equal(to.peer.failure, NET_OK);
	assert_int_equal(delivered, len);
	landed(len);
}

/* How many packets the next message takes, all of them headerless, or with a header in the first
 * one. */
static void goes(uint64_t len, uint32_t packets, uint8_t first)
{
	const uint32_t at = nwire, messages = ndelivered;

	put_and_take(len);
	assert_int_equal(nwire, at + packets);
	assert_int_equal(wire[at].kind, first);
	assert_int_equal(wire[at].headerless, first == RDMA_MORE);
	for (uint32_t i = at + 1; i < nwire; i++)
		assert_true(wire[i].headerless);
	assert_int_equal(ndelivered, messages + 1);
	assert_int_equal(to.peer.consumed, nwire);
	credit();
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void who_begins_as_before_says_no_header(void **state)
{
	for (uint64_t len = FITS + 1; len <= EAGER; len += len < PACKET + 3 ? 1 : 509) {
		uint32_t whole = (uint32_t)((len + PACKET - 1) / PACKET),
			 rest = (uint32_t)((len - FIRST + PACKET - 1) / PACKET);

		tear_down(state);
		set_up_bare(state);
		goes(len, 1 + rest, RDMA_BEGIN);
		goes(len, whole, RDMA_MORE);
		goes(len, whole, RDMA_MORE);
		assert_false(from.carrier->unfinished(&from.d.net));
		assert_false(to.carrier->unfinished(&to.d.net));
	}
}

static void who_begins_otherwise_does(void **state)
{
	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	name("abd");
	goes(PACKET, 2, RDMA_BEGIN);
	goes(PACKET - 1, 2, RDMA_BEGIN);
	goes(PACKET, 2, RDMA_BEGIN);
	goes(PACKET, 1, RDMA_MORE);
	name("abc");
	goes(PACKET, 2, RDMA_BEGIN);
}

static void what_fits_has_its_header_and_is_not_remembered(void **state)
{
	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	name("abd");
	goes(FITS, 1, RDMA_SHORT);
	goes(FITS, 1, RDMA_SHORT);
	goes(8, 1, RDMA_SHORT);
	name("abc");
	goes(PACKET, 1, RDMA_MORE);
}

static void what_takes_a_frame_less_is_one_packet(void **state)
{
	(void)state;
	from.d.limits.frame = FRAME;
	from.d.limits.eager = 0;
	goes(FRAME - 19, 1, RDMA_SHORT);
	goes(FRAME - 18, 1, RDMA_BEGIN); /* all of it */
	goes(FRAME - 18, 1, RDMA_MORE);
	goes(FRAME, 1, RDMA_BEGIN);
	goes(FRAME, 1, RDMA_MORE);
	goes(FRAME + 1, 1, RDMA_SHORT);
	goes(FRAME, 1, RDMA_MORE);
	goes(3 * FRAME, 1, RDMA_BEGIN);
	goes(3 * FRAME, 1, RDMA_MORE);
	goes(PACKET, 2, RDMA_BEGIN);
	goes(PACKET, 1, RDMA_MORE);
	assert_int_equal(nlanded, 1);
}

static void links_that_have_no_word_send_heads(void **state)
{
	(void)state;
	from.d.limits.frame = 0;
	for (int i = 0; i < 2; i++)
		put_and_take(PACKET);
	assert_int_equal(nwire, 4);
	for (uint32_t i = 0; i < nwire; i++)
		assert_false(wire[i].headerless);
}

static void nor_are_there_bare_ones_where_their_numbers_are_too_short(void **state)
{
	struct rdma_limits limits = from.d.limits;
	static const struct nal_job job = { .secret_len = 16 };
	static struct side side;

	(void)state;
	for (limits.credit = 127; limits.credit <= 128; limits.credit++) {
		memset(&side, 0, sizeof(side));
		assert_null(rdma_start(&side.d, from.d.net.ni, NULL, from.d.link, &side, &limits,
				       &job, -1));
		assert_int_equal(side.d.limits.frame, limits.credit == 127 ? PACKET : 0);
		side.peers = &side.peer;
		side.d.peer = &side.peers;
		side.d.npeers = 1;
		rdma_stop(&side.d);
	}
}

static void numbers_go_on_beyond_what_a_word_holds(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++) {
		room = MOST;
		nwire = taken = ndelivered = 0;
		put_and_take(PACKET);
		credit();
	}
	assert_int_equal(to.peer.consumed, 401);
	/* and so does what the receiver took */
	for (uint32_t back = 0; back <= 300; back += 100) {
		from.peer.consumed = 600 + back;
		to.peer.sent = 620 + back;
		to.peer.its_consumed = 590 + back;
		nwire = taken = ndelivered = 0;
		put_and_take(PACKET);
		assert_int_equal(to.peer.its_consumed, 600 + back);
		credit();
	}
}

static void what_is_not_wanted_yet_is_kept_as_it_was_meant(void **state)
{
	static const char *const names[] = { "abc", "abc", "xyz", "xyz", "abc", "abc" };
	const uint32_t n = sizeof(names) / sizeof(*names);

	(void)state;
	verdict = NET_LATER;
	for (uint32_t i = 0; i < n; i++) {
		name(names[i]);
		put(PACKET, NULL);
	}
	assert_int_equal(nwire, 9);
	take(MOST);
	assert_int_equal(to.peer.failure, NET_OK);
	assert_int_equal(ndelivered, 0);
	verdict = NET_PULL;
	wanted = PACKET;
	to.peer.held = 0;
	rdma_take_late(&to.d, &to.peer);
	assert_int_equal(ndelivered, n);
	for (uint32_t i = 0; i < n; i++)
		assert_memory_equal(heard[i], names[i], HEADER);
	assert_null(to.peer.late);
	assert_int_equal(to.peer.consumed, 9);
	landed(PACKET);
}

static void nothing_passes_what_is_held(void **state)
{
	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	to.peer.held = 1;
	put(PACKET, NULL);
	take(1);
	assert_int_equal(ndelivered, 1);
	assert_non_null(to.peer.late);
}

static void but_what_has_begun_goes_on(void **state)
{
	(void)state;
	put(2 * PACKET, NULL);
	take(1);
	assert_int_equal(ndelivered, 1);
	to.peer.held = 1;
	take(MOST);
	assert_null(to.peer.late);
	assert_int_equal(nlanded, 1);
	landed(2 * PACKET);
}

static void bare_ones_may_be_overtaken(void **state)
{
	for (uint32_t turn = 0; turn < 3; turn++) {
		tear_down(state);
		set_up_bare(state);
		to.d.limits.any_order = true;
		goes(2 * PACKET, 3, RDMA_BEGIN);
		nwire = taken = 0;
		put(2 * PACKET, NULL);
		put(9, NULL);
		put(2 * PACKET, NULL);
		assert_int_equal(nwire, 5);
		clear();
		for (uint32_t i = 0; i < nwire; i++)
			take_one(turn == 0   ? (i + 1) % nwire
				 : turn == 1 ? nwire - 1 - i
					     : 2 * i % nwire);
		assert_int_equal(to.peer.failure, NET_OK);
		assert_null(to.peer.early);
		assert_int_equal(ndelivered, 4);
		assert_int_equal(nlanded, 3);
		assert_int_equal(to.peer.consumed, 8);
		landed(2 * PACKET);
	}
}

static void the_link_may_have_no_room(void **state)
{
	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	clear();
	room = 0;
	put(PACKET, NULL);
	memset(source, 1, sizeof(source)); /* it was the sender's again */
	room = MOST;
	rdma_push(&from.d, &from.peer);
	assert_true(wire[2].headerless);
	take(MOST);
	landed(PACKET);
	put(8, NULL); /* from its own memory */
	assert_int_equal(source[8], 1);
}

static void a_link_that_copies_little_keeps_them(void **state)
{
	tear_down(state);
	set_up_not_copied(state);
	from.d.limits.frame = PACKET;
	goes(PACKET, 2, RDMA_BEGIN);
	goes(PACKET, 1, RDMA_MORE);
	put(PACKET, NULL);
	assert_false(flying[nflying - 1]->bytes >= source &&
		     flying[nflying - 1]->bytes < source + sizeof(source));
	clear();
	take(MOST);
	landed(PACKET);
	sent(nflying);
}

static void memory_may_be_in_pieces(void **state)
{
	struct net_out o = { .header = header,
			     .header_len = HEADER,
			     .body.cookie = source,
			     .body_len = PACKET,
			     .copy = true };

	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	clear();
	assert_int_equal(rdma_send(&from.d.net, 0, &o), 0);
	assert_true(wire[2].headerless);
	take(MOST);
	landed(PACKET);
}

static void who_waits_for_its_end_hears_of_it(void **state)
{
	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	put(PACKET, (void *)COOKIE);
	from.carrier->run(&from.d.net);
	assert_int_equal(nsent, 1);
	assert_int_equal(nwire, 3);
	assert_true(wire[2].headerless);
}

/* ---- what strangers and liars say ------------------------------------------------------------ */

static void hear(uint64_t word, size_t len)
{
	static uint8_t bytes[2 * PACKET];

	rdma_arrived_headerless(&to.d, NULL, word, bytes, len);
}

static uint64_t next_word(void)
{
	return rdma_word(0, (uint16_t)(to.peer.seq_in + 1), 0, TOKEN);
}

static void words_of_others_are_not_heard(void **state)
{
	static int other;

	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	hear(next_word() ^ 1ull << 32, PACKET);
	hear(next_word() ^ 1ull << 63, PACKET);
	hear(next_word() | 1, PACKET);
	hear(next_word() | 0xffff, PACKET);
	rdma_arrived_headerless(&to.d, &other, next_word(), source, PACKET);
	assert_int_equal(to.d.stats.drops[NET_DROP_UNKNOWN], 5);
	hear(next_word(), 0);
	assert_int_equal(to.d.stats.drops[NET_DROP_MALFORMED], 1);
	assert_int_equal(to.peer.failure, NET_OK);
	assert_int_equal(ndelivered, 1);
	to.peer.state = RDMA_CALLING;
	hear(next_word(), PACKET);
	assert_int_equal(to.d.stats.drops[NET_DROP_UNKNOWN], 6);
	assert_int_equal(ndelivered, 1);
}

static void where_the_way_is_known_the_token_is_not_needed(void **state)
{
	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	rdma_arrived_headerless(&to.d, &to, next_word() & UINT32_MAX, source, PACKET);
	assert_int_equal(to.peer.failure, NET_OK);
	assert_int_equal(ndelivered, 2);
}

static void nobody_begins_as_what_was_not(void **state)
{
	(void)state;
	hear(next_word(), 1);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(to.d.stats.drops[NET_DROP_EARLY], 1);
}

static void nor_sends_more_of_it_than_there_was(void **state)
{
	(void)state;
	goes(FITS + 1, 2, RDMA_BEGIN);
	hear(next_word(), FITS + 2);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(ndelivered, 1);
}

static void nor_more_of_what_goes_on(void **state)
{
	(void)state;
	goes(2 * PACKET, 3, RDMA_BEGIN);
	hear(next_word(), 2 * PACKET - 1);
	assert_int_equal(ndelivered, 2);
	hear(next_word(), 2);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(to.d.stats.drops[NET_DROP_OUTSIDE], 1);
}

static void nor_out_of_turn(void **state)
{
	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	hear(rdma_word(0, 4, 0, TOKEN), PACKET);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(to.d.stats.drops[NET_DROP_DUPLICATE], 1);
}

static void nor_took_what_was_not_sent(void **state)
{
	(void)state;
	goes(PACKET, 2, RDMA_BEGIN);
	to.peer.sent = 4;
	hear(rdma_word(0, 3, 5, TOKEN), PACKET);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(to.d.stats.drops[NET_DROP_BAD_ACK], 1);
}

#define BARE(name) cmocka_unit_test_setup_teardown(name, set_up_bare, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BARE(who_begins_as_before_says_no_header),
		BARE(who_begins_otherwise_does),
		BARE(what_fits_has_its_header_and_is_not_remembered),
		BARE(what_takes_a_frame_less_is_one_packet),
		BARE(links_that_have_no_word_send_heads),
		BARE(nor_are_there_bare_ones_where_their_numbers_are_too_short),
		BARE(numbers_go_on_beyond_what_a_word_holds),
		BARE(what_is_not_wanted_yet_is_kept_as_it_was_meant),
		BARE(nothing_passes_what_is_held),
		BARE(but_what_has_begun_goes_on),
		BARE(bare_ones_may_be_overtaken),
		BARE(the_link_may_have_no_room),
		BARE(a_link_that_copies_little_keeps_them),
		BARE(memory_may_be_in_pieces),
		BARE(who_waits_for_its_end_hears_of_it),
		BARE(words_of_others_are_not_heard),
		BARE(where_the_way_is_known_the_token_is_not_needed),
		BARE(nobody_begins_as_what_was_not),
		BARE(nor_sends_more_of_it_than_there_was),
		BARE(nor_more_of_what_goes_on),
		BARE(nor_out_of_turn),
		BARE(nor_took_what_was_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
