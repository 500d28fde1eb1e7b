/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Connections of the datagram machine: how they are made, who may not make or break them, and
 * how it is noticed that they are gone.
 */
#include "test/dgram/pair.h"

#include <stdlib.h>
#include <string.h>

#include "nal/net/dgram/dgram_core.h"

static struct pair p;
static struct sim_cfg cfg;

static int set_up(void **state)
{
	(void)state;
	pair_settings(&cfg);
	pair_start(&p, &cfg);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pair_end(&p);
	return 0;
}

/* The same with other settings. */
static void again(void)
{
	pair_end(&p);
	pair_start(&p, &cfg);
}

static void the_first_message_makes_a_connection(void **state)
{
	(void)state;
	assert_int_equal(pair_send(&p, 0, 1, 100), 0);
	pair_until(&p, &p.told[0].sent, 1);
	assert_int_equal(p.told[0].sent_status, NET_OK);
	assert_int_equal(p.told[0].sent_length, 100);
	assert_int_equal(p.told[1].delivered, 1);
	assert_int_equal(p.told[0].up, 1);
	assert_int_equal(p.told[1].up, 1);
	assert_int_equal(p.told[0].who.id, 2);
	assert_int_equal(p.told[1].who.id, 1);
	assert_int_equal(p.told[1].who.incarnation, 1);
}

static void two_that_call_each_other_have_one_connection(void **state)
{
	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_send(&p, 1, 0, 10);
	pair_until(&p, &p.told[0].sent, 1);
	pair_until(&p, &p.told[1].sent, 1);
	pair_wait(&p, SECOND);
	assert_int_equal(pair_stats(&p, 0).opened, 1);
	assert_int_equal(pair_stats(&p, 1).opened, 1);
	assert_int_equal(p.told[0].lost + p.told[1].lost, 0);
}

static void a_process_may_talk_to_itself(void **state)
{
	(void)state;
	pair_send(&p, 1, 1, 10);
	pair_send(&p, 1, 1, 100000);
	pair_until(&p, &p.told[1].sent, 2);
	pair_until(&p, &p.told[1].landed, 1);
	assert_int_equal(p.told[1].delivered, 2);
	assert_memory_equal(p.told[1].delivery, p.source, 100000);
}

static void who_is_known_may_call_from_nowhere(void **state)
{
	(void)state;
	cfg.unnamed = true;
	again();
	p.knows_places = true;
	pair_send(&p, 0, 1, 100);
	pair_send(&p, 2, 1, 100000);
	pair_until(&p, &p.told[0].sent, 1);
	pair_until(&p, &p.told[2].sent, 1);
	assert_int_equal(p.told[0].sent_status, NET_OK);
	assert_int_equal(p.told[2].sent_status, NET_OK);
	/* and is called back */
	pair_send(&p, 1, 0, 100);
	pair_until(&p, &p.told[1].sent, 1);
	assert_int_equal(p.told[1].sent_status, NET_OK);
	assert_int_equal(pair_stats(&p, 1).drops[NET_DROP_NOT_ACCEPTED], 0);
}

static bool names_from_now(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	/* HELLO, WELCOME and the CONFIRM after it, and nothing behind that */
	bool names = from == 0 && to == 1 && dgram_packet_names(packet, len);

	q->drop_from += from == 0 && to == 1;
	q->drop_to += names;
	return true;
}

static void packets_say_whether_their_origin_matters(void **state)
{
	(void)state;
	p.keep = names_from_now;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	assert_true(p.drop_to >= 2);
	p.drop_from = p.drop_to = 0;
	for (uint32_t i = 0; i < 10; i++) {
		pair_send(&p, 0, 1, 10);
		pair_until(&p, &p.told[0].sent, 2 + i);
	}
	assert_true(p.drop_from >= 10);
	assert_int_equal(p.drop_to, 0);
}

static void a_stranger_from_nowhere_is_not_let_in(void **state)
{
	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	dgram_open_hello(sim_node(p.s, 1)->m, NULL,
			 &(struct dgram_hello){ .from = 77, .whom = 2, .token = 5 });
	assert_int_equal(pair_stats(&p, 1).drops[NET_DROP_NOT_ACCEPTED], 1);
	assert_int_equal(dgram_peer_find(sim_node(p.s, 1)->m, 77), NET_NONE);
}

static bool loses_first(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	(void)from;
	(void)to;
	(void)packet;
	(void)len;
	return q->packets > q->drop_to;
}

static void the_first_packets_may_be_lost(void **state)
{
	(void)state;
	/* HELLO, WELCOME, the first with frames, in turn */
	for (uint32_t n = 1; n < 8; n++) {
		p.keep = loses_first;
		p.drop_to = n;
		pair_send(&p, 0, 1, 10);
		pair_until(&p, &p.told[0].sent, 1);
		assert_int_equal(p.told[0].sent_status, NET_OK);
		assert_int_equal(p.told[1].delivered, 1);
		again();
	}
}

static void who_does_not_answer_is_unreachable(void **state)
{
	uint64_t start = sim_now(p.s);

	(void)state;
	sim_crash(sim_node(p.s, 1));
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	assert_int_equal(p.told[0].sent_status, NET_UNREACHABLE);
	pair_until(&p, &p.told[0].lost, 1);
	assert_int_equal(p.told[0].lost_status, NET_UNREACHABLE);
	assert_true(sim_now(p.s) - start <= cfg.machine.dead_ns + MS);
}

static void who_is_not_let_in_is_counted(void **state)
{
	(void)state;
	p.told[1].refuse = true;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	assert_int_equal(p.told[0].sent_status, NET_UNREACHABLE);
	assert_true(pair_stats(&p, 1).drops[NET_DROP_NOT_ACCEPTED] > 1);
	assert_int_equal(pair_stats(&p, 1).peers, 0);
}

static void a_restarted_receiver_is_noticed(void **state)
{
	uint64_t start;

	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	assert_true(sim_restart(sim_node(p.s, 1)));
	start = sim_now(p.s);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 2);
	assert_int_equal(p.told[0].sent_status, NET_RESTARTED);
	assert_int_equal(p.told[0].lost_status, NET_RESTARTED);
	/* it says so itself: no need to wait for silence */
	assert_true(sim_now(p.s) - start < SECOND);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 3);
	assert_int_equal(p.told[0].sent_status, NET_OK);
	assert_int_equal(p.told[0].who.incarnation, 2);
	assert_int_equal(p.told[1].delivered, 2);
}

static void a_restarted_sender_is_noticed(void **state)
{
	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	assert_true(sim_restart(sim_node(p.s, 0)));
	p.told[1].order[0] = p.given[0][1] = 0;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 2);
	assert_int_equal(p.told[0].sent_status, NET_OK);
	assert_int_equal(p.told[1].lost, 1);
	assert_int_equal(p.told[1].lost_status, NET_RESTARTED);
	assert_int_equal(p.told[1].who.incarnation, 2);
	assert_int_equal(p.told[1].delivered, 2);
}

static void goodbye_is_heard(void **state)
{
	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_send(&p, 2, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	pair_until(&p, &p.told[2].sent, 1);
	assert_int_equal(dgram_close(sim_node(p.s, 1)->m, sim_now(p.s)), 0);
	pair_until(&p, &p.told[0].lost, 1);
	pair_until(&p, &p.told[2].lost, 1);
	assert_int_equal(p.told[0].lost_status, NET_CLOSED);
	assert_int_equal(p.told[2].lost_status, NET_CLOSED);
}

static void goodbye_says_what_arrived(void **state)
{
	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	pair_wait(&p, 10 * MS);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[1].delivered, 2);
	assert_int_equal(dgram_close(sim_node(p.s, 1)->m, sim_now(p.s)), 0);
	pair_until(&p, &p.told[0].lost, 1);
	assert_int_equal(p.told[0].sent_status, NET_OK);
}

static bool nothing_of_1(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	(void)q;
	(void)to;
	(void)packet;
	(void)len;
	return from != 1;
}

static void who_closes_knows_what_others_have_not_heard(void **state)
{
	(void)state;
	pair_send(&p, 0, 1, 10000);
	while (!p.told[1].landed && sim_step(p.s, NET_NEVER))
		if (p.told[1].delivered)
			p.keep = nothing_of_1;
	assert_int_equal(p.told[1].landed, 1);
	pair_wait(&p, 100 * MS);
	assert_int_equal(p.told[0].sent, 0);
	assert_int_equal(pair_info(&p, 1, 0).queued, 1);
	p.keep = NULL;
	pair_until(&p, &p.told[0].sent, 1);
	pair_wait(&p, 100 * MS);
	assert_int_equal(pair_info(&p, 1, 0).queued, 0);
}

static void who_is_watched_is_asked_sooner(void **state)
{
	struct dgram *m = sim_node(p.s, 0)->m;
	uint32_t peer = sim_peer(sim_node(p.s, 0), 1);

	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	pair_wait(&p, SECOND);
	p.packets = 0;
	dgram_watch(m, peer, 3);
	sim_kick(sim_node(p.s, 0));
	pair_wait(&p, 3 * SECOND);
	assert_true(p.packets > 0);
	/* no longer: the next is due only after the whole time */
	dgram_watch(m, peer, -3);
	p.packets = 0;
	pair_wait(&p, 2 * SECOND);
	assert_int_equal(p.packets, 0);
	dgram_watch(m, peer, -1);
	assert_int_equal(dgram_rec(m, peer)->watch, 0);
}

static void silence_is_noticed_in_bounded_time(void **state)
{
	uint64_t start, bound = cfg.machine.keepalive_ns + cfg.machine.dead_ns + SECOND;

	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	pair_wait(&p, SECOND);
	sim_crash(sim_node(p.s, 1));
	start = sim_now(p.s);
	pair_until(&p, &p.told[0].lost, 1);
	assert_int_equal(p.told[0].lost_status, NET_DEAD);
	assert_true(p.told[0].lost_at - start <= bound);
	assert_true(p.told[0].lost_at - start >= cfg.machine.dead_ns);
}

static void who_was_stopped_listens_first(void **state)
{
	struct dgram *m = sim_node(p.s, 0)->m;
	uint64_t later;

	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	sim_cut(p.s, 1, 0, true);
	pair_send(&p, 0, 1, 10);
	pair_send(&p, 0, 2, 10);
	pair_wait(&p, 1);
	/* both wait for answers, and a minute passes */
	later = sim_now(p.s) + 60 * SECOND;
	dgram_listened(m, later);
	dgram_run(m, later);
	assert_int_equal(p.told[0].lost, 0);
	/* and as long again as anybody may be silent */
	for (; !p.told[0].lost && later < sim_now(p.s) + 90 * SECOND; later += SECOND) {
		dgram_listened(m, later);
		dgram_run(m, later);
	}
	assert_in_range(later - sim_now(p.s), 70 * SECOND, 72 * SECOND);
}

/* A process that gets the processor now and then runs its timers in time, and finds no time to
 * read: the answers of its peer lie unread meanwhile. */
static void an_answer_that_is_not_read_is_no_silence(void **state)
{
	struct dgram *m = sim_node(p.s, 0)->m;
	uint64_t start, later;

	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	sim_cut(p.s, 1, 0, true);
	pair_send(&p, 0, 1, 10);
	pair_wait(&p, 1);
	start = sim_now(p.s);
	for (later = start; later < start + 60 * SECOND; later += SECOND)
		dgram_run(m, later);
	assert_int_equal(p.told[0].lost, 0);
	/* nothing had come: now it is silence */
	dgram_listened(m, later);
	dgram_run(m, later);
	assert_int_equal(p.told[0].lost, 1);
}

static void a_partition_in_one_direction_ends_both(void **state)
{
	uint64_t start = sim_now(p.s);

	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	sim_cut(p.s, 1, 0, true);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 2);
	assert_int_equal(p.told[0].sent_status, NET_DEAD);
	pair_until(&p, &p.told[1].lost, 1);
	assert_true(sim_now(p.s) - start <= 2 * (cfg.machine.dead_ns + cfg.machine.keepalive_ns));
	/* what was given up may have been delivered, once; and all is well when it is over */
	assert_true(p.told[1].delivered <= 2);
	sim_cut(p.s, 1, 0, false);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 3);
	assert_int_equal(p.told[0].sent_status, NET_OK);
}

static void what_is_sent_again_later_does_nothing(void **state)
{
	struct net_stats before, after;
	uint64_t dropped = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		pair_send(&p, 0, 1, 50);
	pair_send(&p, 1, 0, 50000);
	pair_until(&p, &p.told[0].sent, 20);
	pair_until(&p, &p.told[1].sent, 1);
	pair_wait(&p, 100 * MS);
	before = pair_stats(&p, 1);
	pair_replay(&p);
	pair_wait(&p, 100 * MS);
	after = pair_stats(&p, 1);
	assert_int_equal(p.told[1].delivered, 20);
	assert_int_equal(p.told[0].delivered, 1);
	assert_int_equal(p.told[0].landed, 1);
	assert_int_equal(p.told[0].lost + p.told[1].lost, 0);
	for (int i = 0; i < NET_DROP_COUNT; i++)
		dropped += after.drops[i] - before.drops[i];
	assert_true(dropped >= 3);
	/* and the connection is as good as before */
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 21);
	assert_int_equal(p.told[0].sent_status, NET_OK);
}

static void nor_does_it_after_a_restart(void **state)
{
	(void)state;
	pair_send(&p, 0, 1, 50);
	pair_send(&p, 1, 0, 50000);
	pair_until(&p, &p.told[0].sent, 1);
	pair_until(&p, &p.told[1].sent, 1);
	assert_true(sim_restart(sim_node(p.s, 1)));
	pair_replay(&p);
	pair_wait(&p, SECOND);
	pair_replay(&p);
	pair_wait(&p, SECOND);
	assert_int_equal(p.told[1].delivered, 1);
	assert_int_equal(p.told[0].delivered, 1);
}

static void garbage_is_only_counted(void **state)
{
	uint8_t junk[1500];
	struct net_stats st;
	uint64_t dropped = 0;

	(void)state;
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	for (int i = 0; i < 10000; i++) {
		size_t len = sim_random(p.s) % sizeof(junk);

		for (size_t k = 0; k < len; k++)
			junk[k] = (uint8_t)sim_random(p.s);
		/* half of it looks like ours at first */
		if (i & 1 && len > 4) {
			junk[0] = DGRAM_VERSION;
			junk[1] = (uint8_t)(1 + i / 2 % 4);
			base_put16(junk + 2, (uint32_t)(len < 40 ? len : 40 + len % 40));
		}
		sim_inject(sim_node(p.s, 1), 2, junk, len);
	}
	st = pair_stats(&p, 1);
	for (int i = 0; i < NET_DROP_COUNT; i++)
		dropped += st.drops[i];
	assert_int_equal(dropped, 10000);
	assert_true(st.drops[NET_DROP_MALFORMED] > 100);
	assert_true(st.drops[NET_DROP_BAD_TAG] > 100);
	assert_int_equal(st.peers, 1);
	assert_int_equal(p.told[1].lost, 0);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 2);
}

/* The first HELLO of process 0, which arrives only if drop_to says so. */
static uint8_t greeting[256];
static size_t greeting_len;

static bool keeps_greeting(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	(void)to;
	if (!from && packet[1] == DGRAM_HELLO && !greeting_len && len <= sizeof(greeting)) {
		memcpy(greeting, packet, len);
		greeting_len = len;
	}
	return q->drop_to;
}

static void refuse(const uint8_t *packet, size_t len)
{
	dgram_refused(sim_node(p.s, 0)->m, sim_now(p.s), packet, len);
}

static void greet(bool arrives)
{
	greeting_len = 0;
	p.keep = keeps_greeting;
	p.drop_to = arrives;
	assert_int_equal(pair_send(&p, 0, 1, 100), 0);
	pair_wait(&p, SECOND / 4);
	assert_true(greeting_len);
}

static void who_is_not_there_by_the_networks_word_is_unreachable(void **state)
{
	(void)state;
	greet(false);
	assert_int_equal(p.told[0].lost, 0);
	refuse(greeting, greeting_len);
	assert_int_equal(p.told[0].lost, 1);
	assert_int_equal(p.told[0].lost_status, NET_UNREACHABLE);
	assert_int_equal(p.told[0].sent_status, NET_UNREACHABLE);
	/* the same word again is about nothing any more; and the next attempt is one of its own */
	refuse(greeting, greeting_len);
	assert_int_equal(p.told[0].lost, 1);
	p.keep = NULL;
	pair_send(&p, 0, 1, 100);
	refuse(greeting, greeting_len);
	pair_until(&p, &p.told[0].up, 1);
}

static void who_has_not_seen_the_greeting_cannot_refuse_it(void **state)
{
	uint64_t before;

	(void)state;
	greet(false);
	before = pair_stats(&p, 0).drops[NET_DROP_STALE_HELLO];
	for (size_t i = 0; i < greeting_len; i++) {
		greeting[i] ^= 4;
		refuse(greeting, greeting_len);
		greeting[i] ^= 4;
		refuse(greeting, i);
	}
	assert_int_equal(p.told[0].lost, 0);
	assert_int_equal(pair_stats(&p, 0).drops[NET_DROP_STALE_HELLO], before + 2 * greeting_len);
}

static void a_connection_cannot_be_refused(void **state)
{
	(void)state;
	greet(true);
	pair_until(&p, &p.told[0].sent, 1);
	refuse(greeting, greeting_len);
	assert_int_equal(p.told[0].lost, 0);
	pair_send(&p, 0, 1, 100);
	pair_until(&p, &p.told[0].sent, 2);
	assert_int_equal(p.told[0].sent_status, NET_OK);
}

static void an_idle_peer_keeps_its_record_only(void **state)
{
	(void)state;
	assert_true(sizeof(struct dgram_rec) <= 256);
	pair_send(&p, 0, 1, 10);
	pair_send(&p, 0, 1, 100000);
	pair_until(&p, &p.told[0].sent, 2);
	assert_int_equal(pair_stats(&p, 0).active, 1);
	/* before the first keep-alive */
	pair_wait(&p, 2 * SECOND);
	assert_int_equal(pair_stats(&p, 0).active, 0);
	assert_int_equal(pair_stats(&p, 1).active, 0);
	assert_int_equal(pair_stats(&p, 0).open, 1);
	assert_int_equal(p.told[0].lost, 0);
	/* keep-alive packets come and go for minutes, and it is still there */
	pair_wait(&p, 120 * SECOND);
	pair_send(&p, 1, 0, 10);
	pair_until(&p, &p.told[1].sent, 1);
	assert_int_equal(p.told[0].delivered, 1);
	assert_int_equal(pair_stats(&p, 0).opened, 1);
}

static void who_is_gone_makes_room_for_others(void **state)
{
	(void)state;
	cfg.machine.max_peers = 1;
	again();
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	/* not as long as it is there */
	pair_send(&p, 2, 1, 10);
	pair_until(&p, &p.told[2].sent, 1);
	assert_int_equal(p.told[2].sent_status, NET_UNREACHABLE);
	dgram_close(sim_node(p.s, 0)->m, sim_now(p.s));
	pair_until(&p, &p.told[1].lost, 1);
	pair_send(&p, 2, 1, 10);
	pair_until(&p, &p.told[2].sent, 2);
	assert_int_equal(p.told[2].sent_status, NET_OK);
	assert_int_equal(p.told[1].who.id, 3);
	assert_int_equal(pair_stats(&p, 1).peers, 1);
	assert_int_equal(dgram_peer_find(sim_node(p.s, 1)->m, 1), NET_NONE);
	assert_int_equal(dgram_peer_find(sim_node(p.s, 1)->m, 3), 0);
}

static void settings_that_make_no_sense_are_refused(void **state)
{
	struct dgram_cfg c = cfg.machine;

	(void)state;
	c.mtu = DGRAM_MTU_MIN - 1;
	assert_null(dgram_create(&cfg.ops, NULL, &c));
	c.mtu = DGRAM_MTU_MAX + 1;
	assert_null(dgram_create(&cfg.ops, NULL, &c));
	c = cfg.machine;
	c.credit = 1;
	assert_null(dgram_create(&cfg.ops, NULL, &c));
	/* no way out for packets */
	assert_null(dgram_create(&cfg.ops, NULL, &cfg.machine));
	dgram_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(the_first_message_makes_a_connection),
		TEST(two_that_call_each_other_have_one_connection),
		TEST(a_process_may_talk_to_itself),
		TEST(who_is_known_may_call_from_nowhere),
		TEST(packets_say_whether_their_origin_matters),
		TEST(a_stranger_from_nowhere_is_not_let_in),
		TEST(the_first_packets_may_be_lost),
		TEST(who_does_not_answer_is_unreachable),
		TEST(who_is_not_let_in_is_counted),
		TEST(a_restarted_receiver_is_noticed),
		TEST(a_restarted_sender_is_noticed),
		TEST(goodbye_is_heard),
		TEST(goodbye_says_what_arrived),
		TEST(who_closes_knows_what_others_have_not_heard),
		TEST(who_is_watched_is_asked_sooner),
		TEST(silence_is_noticed_in_bounded_time),
		TEST(who_was_stopped_listens_first),
		TEST(an_answer_that_is_not_read_is_no_silence),
		TEST(a_partition_in_one_direction_ends_both),
		TEST(what_is_sent_again_later_does_nothing),
		TEST(nor_does_it_after_a_restart),
		TEST(garbage_is_only_counted),
		TEST(who_is_not_there_by_the_networks_word_is_unreachable),
		TEST(who_has_not_seen_the_greeting_cannot_refuse_it),
		TEST(a_connection_cannot_be_refused),
		TEST(an_idle_peer_keeps_its_record_only),
		TEST(who_is_gone_makes_room_for_others),
		TEST(settings_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
