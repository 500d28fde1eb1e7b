/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages in several packets that nobody asks for. Their bytes arrive whatever is short: credit,
 * room in the link, packets, or the receiver's time. No byte of a message that is not wanted
 * arrives, and nothing comes between. A peer that does it otherwise loses the connection. Where
 * there is no memory those hear of it who wait.
 */
#undef malloc /* that of the machines is scarce_malloc */
#include "rdma_pair.h"

/* ---- cases ----------------------------------------------------------------------------------- */

static void one_length(uint64_t len)
{
	uint32_t parts = 1 + (uint32_t)((len - FIRST + NEXT - 1) / NEXT);

	tear_down(NULL);
	set_up(NULL);
	wanted = len;
	put(len, NULL);
	if (len <= FITS)
		parts = 1;
	assert_int_equal(nwire, parts);
	assert_int_equal(wire[0].kind, parts == 1 ? RDMA_SHORT : RDMA_BEGIN);
	for (uint32_t i = 1; i < parts; i++) {
		assert_int_equal(wire[i].kind, RDMA_MORE);
		/* none is nearly empty that has to be waited for as long */
		assert_true(wire[i].len + 32 > wire[0].len);
	}
	take(parts - 1);
	assert_int_equal(nlanded, 0);
	assert_int_equal(to.carrier->unfinished(&to.d.net), parts > 1);
	take(1);
	assert_int_equal(ndelivered, 1);
	assert_int_equal(delivered, len);
	if (parts > 1) {
		assert_int_equal(nlanded, 1);
		assert_int_equal(how, NET_OK);
		landed(len);
	}
	assert_false(from.carrier->unfinished(&from.d.net));
	assert_false(to.carrier->unfinished(&to.d.net));
	assert_int_equal(to.peer.consumed, parts);
}

static void every_length_arrives(void **state)
{
	static const uint64_t edges[] = { FIRST, FIRST + NEXT, FIRST + 2 * NEXT, EAGER - 1 };

	(void)state;
	for (uint64_t len = FIRST - 1; len <= EAGER; len += 97)
		one_length(len);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		for (uint64_t len = edges[i] - 2; len <= edges[i] + 9 && len <= EAGER; len++)
			one_length(len);
}

static void what_is_longer_is_asked_for(void **state)
{
	(void)state;
	put(EAGER + 1, NULL);
	assert_int_equal(nwire, 1);
	assert_int_equal(wire[0].kind, RDMA_LONG);
}

static void of_what_is_too_long_the_beginning_lands(void **state)
{
	static const uint64_t most[] = { 1, FIRST, FIRST + 1, EAGER - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
		tear_down(NULL);
		set_up(NULL);
		wanted = most[i];
		put(EAGER, NULL);
		take(nwire - 1);
		assert_int_equal(nlanded, 0);
		take(1);
		assert_int_equal(nlanded, 1);
		landed(most[i]);
	}
}

static void memory_may_be_in_pieces(void **state)
{
	struct net_out o = { .header = "abc",
			     .header_len = HEADER,
			     .body.cookie = source,
			     .body_len = EAGER,
			     .copy = true };

	(void)state;
	assert_int_equal(rdma_send(&from.d.net, 0, &o), 0);
	take(MOST);
	landed(EAGER);
}

static void what_is_not_wanted_lands_nowhere(void **state)
{
	(void)state;
	for (verdict = NET_DONE; verdict <= NET_DROP; verdict++) {
		put(3 * PACKET, NULL);
		put(8, NULL);
		take(MOST);
	}
	assert_int_equal(ndelivered, 4);
	assert_int_equal(nlanded, 0);
	assert_int_equal(to.peer.failure, NET_OK);
	landed(0);
}

/* ... then it is copied, but for what was sent. */
static void no_byte_is_copied_twice(void **state)
{
	struct net_out o = { .header = "abc",
			     .header_len = HEADER,
			     .body.cookie = source,
			     .body_len = EAGER,
			     .copy = true };

	(void)state;
	from.peer.allowed = 5;
	assert_int_equal(rdma_send(&from.d.net, 0, &o), 0);
	assert_int_equal(nwire, 5);
	assert_int_equal(looked, EAGER);
	memset(source, 0, sizeof(source));
	take(5);
	credit();
	take(MOST);
	assert_int_equal(looked, EAGER);
	landed(EAGER);
}

/* Of memory that is not there where it should be. The connection is none the worse. */
static void what_cannot_land_has_failed(void **state)
{
	(void)state;
	scattered = true;
	gone = 2000;
	put(EAGER, NULL);
	take(nwire - 1);
	assert_int_equal(nlanded, 0);
	take(1);
	assert_int_equal(nlanded, 1);
	assert_int_equal(how, NET_FAILED);
	landed(gone);
	gone = 0;
	credit();
	put(EAGER, NULL);
	take(MOST);
	assert_int_equal(nlanded, 2);
	assert_int_equal(how, NET_OK);
	landed(EAGER);
}

static void so_have_pieces(void **state)
{
	(void)state;
	answers = scattered = true;
	gone = 2000;
	wanted = EAGER + 1;
	put(EAGER + 1, (void *)COOKIE);
	from.carrier->run(&from.d.net);
	take(1);
	from.carrier->run(&from.d.net);
	assert_int_equal(wire[1].kind, RDMA_SEGMENT);
	while (taken < nwire) {
		assert_int_equal(nlanded, 0);
		take(1);
		rdma_busy(&to.d, &to.peer);
		to.carrier->run(&to.d.net);
	}
	assert_int_equal(nsent, 1);
	assert_int_equal(nlanded, 1);
	assert_int_equal(how, NET_FAILED);
	landed(gone);
	assert_int_equal(to.peer.failure, NET_OK);
	assert_false(from.carrier->unfinished(&from.d.net));
	assert_false(to.carrier->unfinished(&to.d.net));
}

/* ... and what is sent meanwhile waits for its end. */
static void it_goes_on_when_there_is_credit(void **state)
{
	(void)state;
	from.peer.allowed = 2;
	put(EAGER, NULL);
	put(8, NULL);
	memset(source, 0, sizeof(source));
	from.carrier->run(&from.d.net);
	for (uint32_t sent = 2; nlanded == 0; sent += 2) {
		assert_int_equal(nwire, sent);
		take(2);
		credit();
	}
	take(MOST);
	assert_int_equal(ndelivered, 2);
	assert_int_equal(delivered, 8);
	landed(EAGER);
	assert_false(from.carrier->unfinished(&from.d.net));
}

static void the_receiver_gives_it_in_the_middle(void **state)
{
	(void)state;
	answers = true;
	from.peer.allowed = to.d.limits.credit = 4;
	put(EAGER, NULL);
	for (int i = 0; i < EAGER && !nlanded; i++) {
		from.carrier->run(&from.d.net);
		take(MOST);
		to.carrier->run(&to.d.net);
	}
	landed(EAGER);
	assert_int_equal(from.peer.failure, NET_OK);
}

static void and_when_the_link_has_room(void **state)
{
	(void)state;
	room = 0;
	put(EAGER, NULL);
	put(8, NULL);
	memset(source, 0, sizeof(source));
	for (uint32_t i = 0; i < MOST && ndelivered < 2; i++) {
		room = 1;
		rdma_busy(&from.d, &from.peer);
		from.carrier->run(&from.d.net);
		take(1);
	}
	assert_int_equal(ndelivered, 2);
	landed(EAGER);
	assert_false(from.carrier->unfinished(&from.d.net));
}

static void the_link_may_keep_packets(void **state)
{
	(void)state;
	put(EAGER, NULL);
	memset(source, 0, sizeof(source));
	take(MOST);
	assert_int_equal(nlanded, 1);
	landed(EAGER);
	assert_int_equal(nflying, nwire);
	assert_true(from.carrier->unfinished(&from.d.net));
	sent(nflying);
	assert_false(from.carrier->unfinished(&from.d.net));
}

static void it_goes_on_when_they_are_back(void **state)
{
	(void)state;
	from.peer.allowed = MOST;
	unregistered = true;
	for (int i = 0; i < 3; i++)
		put(EAGER, NULL);
	memset(source, 0, sizeof(source));
	from.carrier->run(&from.d.net);
	assert_int_equal(nwire, AT_ONCE);
	take(MOST);
	assert_int_equal(nlanded, 2);
	while (nlanded < 3) {
		assert_true(nflying > 0);
		sent(1);
		from.carrier->run(&from.d.net);
		take(MOST);
	}
	assert_int_equal(from.peer.failure, NET_OK);
	landed(EAGER);
}

/* ... or more of them can be had. */
static void or_there_are_more(void **state)
{
	(void)state;
	from.peer.allowed = MOST;
	for (int i = 0; i < 3; i++)
		put(EAGER, NULL);
	assert_true(nwire > AT_ONCE);
	take(MOST);
	assert_int_equal(nlanded, 3);
	sent(nflying);
	assert_false(from.carrier->unfinished(&from.d.net));
}

/* Each has a packet that the link had no room for, and no more memory can be registered. */
static void many_may_have_to_wait(void **state)
{
	enum { PEERS = 40, LEN = 500 }; /* registered from the beginning are 32 */
	struct rdma_peer more[PEERS], *all[PEERS];

	(void)state;
	from.d.limits.local_mr = true;
	unregistered = true;
	for (uint32_t i = 0; i < PEERS; i++) {
		more[i] = from.peer;
		all[i] = &more[i];
	}
	from.d.peer = all;
	from.d.npeers = PEERS;
	room = 0;
	for (uint32_t i = 0; i < PEERS; i++) {
		struct net_out o = { .header = "abc",
				     .header_len = HEADER,
				     .body.base = source + i,
				     .body_len = LEN,
				     .copy = true };

		assert_int_equal(rdma_send(&from.d.net, i, &o), 0);
	}
	room = MOST;
	for (uint32_t i = 0; i < PEERS; i++) {
		assert_int_equal(more[i].failure, NET_OK);
		assert_false(rdma_push(&from.d, &more[i]));
		assert_int_equal(nwire, i + 1);
		assert_memory_equal(wire[i].bytes + wire[i].len - LEN, source + i, LEN);
	}
	from.d.peer = &from.peers;
	from.d.npeers = 1;
}

/* The end of a packet is told when there is a new connection already. */
static void what_broke_before_breaks_nothing(void **state)
{
	(void)state;
	put(FITS, NULL);
	assert_int_equal(nflying, 1);
	from.peer.serial++;
	rdma_sent(&from.d, flying[0], RDMA_BROKEN, "late");
	assert_int_equal(from.peer.failure, NET_OK);
	assert_int_equal(from.peer.flying, 0);
	put(FITS, NULL);
	rdma_sent(&from.d, flying[1], RDMA_BROKEN, "now");
	assert_int_equal(from.peer.failure, NET_DEAD);
}

/* ... of a message that was begun there is no end then. */
static void without_memory_it_is_not_sent(void **state)
{
	static const size_t blocks[] = { 1, 4096 }; /* its record, the copy of its bytes */

	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		tear_down(state);
		set_up(state);
		scarce = blocks[i];
		from.peer.allowed = 0;
		assert_int_equal(try_put(EAGER, NULL), -ENOMEM);
		assert_int_equal(from.peer.failure, NET_OK);
		assert_false(from.carrier->unfinished(&from.d.net));
		from.peer.allowed = 3;
		assert_int_equal(try_put(EAGER, NULL), -ENOMEM);
		assert_int_equal(nwire, 3);
		assert_int_equal(from.peer.failure, NET_NO_MEMORY);
		take(MOST);
		assert_int_equal(nlanded, 0);
	}
}

static void nor_kept_for_later(void **state)
{
	(void)state;
	verdict = NET_LATER;
	scarce = 1;
	put(EAGER, NULL);
	take(1);
	assert_int_equal(to.peer.failure, NET_NO_MEMORY);
	assert_null(to.peer.late);
}

static void nor_asked_for(void **state)
{
	(void)state;
	answers = true;
	put(EAGER + 1, (void *)COOKIE);
	from.carrier->run(&from.d.net);
	scarce = 1;
	take(1);
	assert_int_equal(nsent, 1);
	assert_int_equal(nlanded, 1);
	assert_int_equal(how, NET_FAILED);
	assert_int_equal(to.peer.failure, NET_OK);
}

static void who_wants_to_know_hears_when_all_of_it_is_sent(void **state)
{
	(void)state;
	from.peer.allowed = 3;
	put(4 * PACKET, (void *)COOKIE);
	assert_int_equal(nsent, 0);
	from.carrier->run(&from.d.net);
	assert_int_equal(nwire, 3);
	assert_int_equal(nsent, 0);
	take(3);
	credit();
	assert_int_equal(nsent, 1);
	assert_int_equal(how, NET_OK);
	take(MOST);
	landed(4 * PACKET);
}

/* ... not before the call that began it is over, though nothing is in its way. */
static void but_not_at_once(void **state)
{
	(void)state;
	put(4 * PACKET, (void *)COOKIE);
	assert_int_equal(nsent, 0);
	from.carrier->run(&from.d.net);
	assert_int_equal(nsent, 1);
	take(MOST);
	landed(4 * PACKET);
}

/* A peer that sent a beginning, or was asked for bytes, and is silent then, is given up. */
static void what_is_to_come_is_expected(void **state)
{
	(void)state;
	put(EAGER, NULL);
	take(1);
	assert_true(to.peer.awaited);
	tear_down(state);
	set_up(state);
	put(EAGER + 1, NULL);
	take(1);
	assert_true(to.peer.awaited);
}

static void of_half_a_message_its_sender_hears_the_end(void **state)
{
	(void)state;
	from.peer.allowed = 3;
	put(4 * PACKET, (void *)COOKIE);
	from.carrier->run(&from.d.net);
	rdma_break(&from.d, &from.peer, NET_DEAD, NULL);
	from.carrier->run(&from.d.net);
	assert_int_equal(nsent, 1);
	assert_int_equal(how, NET_DEAD);
	assert_false(from.carrier->unfinished(&from.d.net));
}

static void so_does_who_expects_it(void **state)
{
	(void)state;
	put(EAGER, NULL);
	take(3);
	rdma_break(&to.d, &to.peer, NET_DEAD, NULL);
	take(1);
	to.carrier->run(&to.d.net);
	assert_int_equal(nlanded, 1);
	assert_int_equal(how, NET_DEAD);
	assert_false(to.carrier->unfinished(&to.d.net));
	/* it begins anew */
	to.peer.failure = NET_OK;
	to.peer.state = RDMA_UP;
	taken = nwire;
	say(RDMA_SHORT, 0, 8);
	assert_int_equal(ndelivered, 2);
	assert_int_equal(to.peer.failure, NET_OK);
}

static void what_comes_too_early_is_kept_in_order(void **state)
{
	(void)state;
	verdict = NET_LATER;
	put(EAGER, NULL);
	put(8, NULL);
	take(MOST);
	assert_int_equal(ndelivered, 0);
	assert_int_equal(to.peer.consumed, 0);
	verdict = NET_PULL;
	to.carrier->resume(&to.d.net, 0);
	to.carrier->run(&to.d.net);
	assert_int_equal(ndelivered, 2);
	assert_int_equal(delivered, 8);
	assert_int_equal(nlanded, 1);
	assert_int_equal(to.peer.consumed, nwire);
	landed(EAGER);
}

/* ... but no more than there was credit. */
static void not_more_than_it_may_send(void **state)
{
	(void)state;
	verdict = NET_LATER;
	say(RDMA_BEGIN, EAGER, 10);
	for (int i = 1; i < CREDIT; i++)
		say(RDMA_MORE, 0, 10);
	assert_int_equal(to.peer.failure, NET_OK);
	say(RDMA_MORE, 0, 10);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(to.d.stats.drops[NET_DROP_NO_CREDIT], 1);
	to.carrier->run(&to.d.net);
	assert_null(to.peer.late);
}

static void nobody_sends_more_than_there_is(void **state)
{
	(void)state;
	say(RDMA_BEGIN, 30, 10);
	say(RDMA_MORE, 0, 19);
	assert_int_equal(to.peer.failure, NET_OK);
	say(RDMA_MORE, 0, 2);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(to.d.stats.drops[NET_DROP_OUTSIDE], 1);
	to.carrier->run(&to.d.net);
	assert_int_equal(nlanded, 1);
	assert_int_equal(how, NET_RESTARTED);
}

static void nor_what_was_not_begun(void **state)
{
	(void)state;
	say(RDMA_MORE, 0, 1);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(to.d.stats.drops[NET_DROP_EARLY], 1);
}

static void nor_a_message_within_another(void **state)
{
	static const uint8_t kinds[] = { RDMA_SHORT, RDMA_BEGIN, RDMA_LONG };

	for (size_t i = 0; i < sizeof(kinds); i++) {
		tear_down(state);
		set_up(state);
		say(RDMA_BEGIN, 30, 10);
		if (kinds[i] == RDMA_LONG) {
			uint8_t packet[PACKET];
			struct rdma_msg m = {
				.kind = RDMA_LONG, .token = TOKEN, .seq = 2, .length = 1
			};

			rdma_arrived(&to.d, NULL, packet, rdma_encode(packet, &m));
		} else {
			say(kinds[i], 30, 10);
		}
		assert_int_equal(ndelivered, 1);
		assert_int_equal(to.peer.failure, NET_RESTARTED);
		assert_int_equal(to.d.stats.drops[NET_DROP_OUTSIDE], 1);
	}
}

static void by_some_links_one_may_overtake_another(void **state)
{
	(void)state;
	for (uint32_t turn = 0; turn < 3; turn++) {
		tear_down(NULL);
		set_up(NULL);
		to.d.limits.any_order = true;
		put(EAGER, NULL);
		put(8, NULL);
		put(9, NULL);
		/* the first one last, from the last one on, or every other one first */
		if (turn == 0)
			for (uint32_t i = 1; i <= nwire; i++)
				take_one(i % nwire);
		else if (turn == 1)
			for (uint32_t i = nwire; i; i--)
				take_one(i - 1);
		else
			for (uint32_t i = 0; i < nwire; i++)
				take_one(2 * i < nwire ? 2 * i : 2 * (i - (nwire + 1) / 2) + 1);
		assert_int_equal(to.peer.failure, NET_OK);
		assert_null(to.peer.early);
		assert_int_equal(ndelivered, 3);
		assert_int_equal(delivered, 9);
		assert_int_equal(nlanded, 1);
		assert_int_equal(to.peer.consumed, nwire);
		landed(EAGER);
	}
}

static void what_waits_for_its_turn_goes_with_the_connection(void **state)
{
	(void)state;
	to.d.limits.any_order = true;
	put(8, NULL);
	put(8, NULL);
	take_one(1);
	assert_non_null(to.peer.early);
	rdma_break(&to.d, &to.peer, NET_DEAD, NULL);
	to.carrier->run(&to.d.net);
	assert_null(to.peer.early);
	assert_int_equal(ndelivered, 0);
}

static void nor_one_that_was_there(void **state)
{
	(void)state;
	for (uint32_t again = 0; again < 2; again++) {
		tear_down(NULL);
		set_up(NULL);
		to.d.limits.any_order = true;
		put(8, NULL);
		put(8, NULL);
		take_one(again);
		take_one(again);
		assert_int_equal(to.peer.failure, NET_RESTARTED);
		assert_int_equal(to.d.stats.drops[NET_DROP_DUPLICATE], 1);
		assert_int_equal(ndelivered, 1 - again);
	}
}

static void nor_more_ahead_than_may_be_under_way(void **state)
{
	(void)state;
	to.d.limits.any_order = true;
	to.peer.seq_in = (uint16_t)(0 - 2 * CREDIT);
	put(8, NULL);
	take_one(0);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_null(to.peer.early);
}

static void nor_out_of_turn_where_links_keep_it(void **state)
{
	(void)state;
	put(8, NULL);
	put(8, NULL);
	take_one(1);
	assert_int_equal(to.peer.failure, NET_RESTARTED);
	assert_int_equal(to.d.stats.drops[NET_DROP_DUPLICATE], 1);
}

/* A beginning has some bytes, and no more than there are. */
static void nor_nonsense(void **state)
{
	(void)state;
	say(RDMA_BEGIN, 30, 0);
	say(RDMA_BEGIN, 30, 31);
	say(RDMA_BEGIN, 0, 1);
	say(RDMA_BEGIN, RDMA_PARTS_MOST + 1, 30);
	say(RDMA_MORE, 0, 0);
	assert_int_equal(to.d.stats.drops[NET_DROP_MALFORMED], 5);
	assert_int_equal(ndelivered, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_length_arrives),
		CASE(what_is_longer_is_asked_for),
		CASE(of_what_is_too_long_the_beginning_lands),
		CASE(memory_may_be_in_pieces),
		CASE(what_is_not_wanted_lands_nowhere),
		CASE(no_byte_is_copied_twice),
		CASE(what_cannot_land_has_failed),
		CASE(so_have_pieces),
		CASE(it_goes_on_when_there_is_credit),
		CASE(the_receiver_gives_it_in_the_middle),
		CASE(and_when_the_link_has_room),
		NOT_COPIED(the_link_may_keep_packets),
		NOT_COPIED(it_goes_on_when_they_are_back),
		NOT_COPIED(or_there_are_more),
		CASE(many_may_have_to_wait),
		NOT_COPIED(what_broke_before_breaks_nothing),
		CASE(without_memory_it_is_not_sent),
		CASE(nor_kept_for_later),
		CASE(nor_asked_for),
		CASE(who_wants_to_know_hears_when_all_of_it_is_sent),
		CASE(but_not_at_once),
		CASE(what_is_to_come_is_expected),
		CASE(of_half_a_message_its_sender_hears_the_end),
		CASE(so_does_who_expects_it),
		CASE(what_comes_too_early_is_kept_in_order),
		CASE(by_some_links_one_may_overtake_another),
		CASE(what_waits_for_its_turn_goes_with_the_connection),
		CASE(not_more_than_it_may_send),
		CASE(nobody_sends_more_than_there_is),
		CASE(nor_what_was_not_begun),
		CASE(nor_a_message_within_another),
		CASE(nor_one_that_was_there),
		CASE(nor_more_ahead_than_may_be_under_way),
		CASE(nor_out_of_turn_where_links_keep_it),
		CASE(nor_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
