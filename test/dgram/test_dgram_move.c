/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How the datagram machine moves messages and bodies: losses and how soon they are made good,
 * round-trip times, how much is in flight, what receivers have to keep, and the length of
 * packets.
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

static void again(void)
{
	pair_end(&p);
	pair_start(&p, &cfg);
}

/* A connection between 0 and 1 that has measured its round trip. */
static void warm_up(void)
{
	for (uint32_t i = 1; i <= 4; i++) {
		pair_send(&p, 0, 1, 10);
		pair_until(&p, &p.told[0].sent, i);
	}
	pair_wait(&p, 50 * MS);
	p.packets = 0;
}

/* Loses those packets of 0 to 1 whose turn it is, counted from warm_up. */
static bool drop_some(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	(void)packet;
	(void)len;
	(void)to;
	return from != 0 || q->packets < q->drop_from || q->packets > q->drop_to;
}

static void bodies_of_all_lengths_arrive(void **state)
{
	static const uint64_t some[] = { 0,     1,     999,   1000,  1015,  1016,    1017,     1400,
					 16383, 16384, 16385, 65536, 65537, 1 << 20, PAIR_LONG };
	uint32_t landed = 0;

	(void)state;
	for (uint32_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		memset(p.told[1].delivery, 0, PAIR_LONG);
		assert_int_equal(pair_send(&p, 0, 1, some[i]), 0);
		pair_until(&p, &p.told[0].sent, i + 1);
		assert_int_equal(p.told[0].sent_status, NET_OK);
		assert_int_equal(p.told[0].sent_length, some[i]);
		landed += some[i] > DGRAM_INLINE_MAX;
		assert_int_equal(p.told[1].landed, landed);
		if (some[i] > DGRAM_INLINE_MAX)
			assert_memory_equal(p.told[1].delivery, p.source, some[i]);
	}
	assert_int_equal(pair_stats(&p, 0).lost_packets, 0);
}

static void the_round_trip_is_measured(void **state)
{
	struct dgram_peer_info info;

	(void)state;
	warm_up();
	info = pair_info(&p, 0, 1);
	/* there and back: L and o on both sides, and what the links take */
	assert_in_range(info.min_rtt_ns, 2 * cfg.net.L_ns, 2 * cfg.net.L_ns + 8000 + MS);
	assert_in_range(info.srtt_ns, info.min_rtt_ns / 2, 4 * info.min_rtt_ns + MS);
	assert_in_range(info.rto_ns, cfg.machine.rto_min_ns, cfg.machine.rto_max_ns);
}

static void one_lost_packet_is_sent_again_alone(void **state)
{
	struct net_stats st;

	(void)state;
	warm_up();
	p.keep = drop_some;
	p.drop_from = p.drop_to = 20;
	pair_send(&p, 0, 1, 200000);
	pair_until(&p, &p.told[1].landed, 1);
	pair_wait(&p, 50 * MS);
	st = pair_stats(&p, 0);
	/* but for the probe of a longer MTU nothing else was thought lost, and nobody waited for
	 * a time-out */
	assert_int_equal(st.lost_packets, 1);
	assert_int_equal(st.spurious, 0);
	assert_int_equal(st.timeouts, 0);
	assert_memory_equal(p.told[1].delivery, p.source, 200000);
}

static void a_lost_tail_needs_no_time_out(void **state)
{
	uint64_t start;

	(void)state;
	warm_up();
	p.keep = drop_some;
	p.drop_from = p.drop_to = 1;
	start = sim_now(p.s);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[1].delivered, 5);
	assert_true(sim_now(p.s) - start < cfg.machine.rto_min_ns);
	pair_wait(&p, 50 * MS);
	assert_int_equal(pair_stats(&p, 0).probes, 1);
	assert_int_equal(pair_stats(&p, 0).timeouts, 0);
}

static void time_outs_grow(void **state)
{
	uint64_t before;

	(void)state;
	warm_up();
	p.keep = drop_some;
	p.drop_from = 1;
	p.drop_to = UINT32_MAX;
	pair_send(&p, 0, 1, 10);
	pair_wait(&p, 100 * MS);
	before = pair_stats(&p, 0).timeouts;
	assert_in_range(before, 2, 6);
	pair_wait(&p, 100 * MS);
	assert_true(pair_stats(&p, 0).timeouts - before <= 1);
	p.keep = NULL;
	pair_until(&p, &p.told[0].sent, 5);
	assert_int_equal(p.told[0].sent_status, NET_OK);
}

static void a_changed_order_is_learnt(void **state)
{
	struct net_stats st;

	(void)state;
	cfg.net.faults.reorder = 200;
	again();
	pair_send(&p, 0, 1, PAIR_LONG);
	pair_until(&p, &p.told[1].landed, 1);
	st = pair_stats(&p, 0);
	/* a fifth of all are late, by up to two round trips; few of them are sent twice */
	assert_true(st.spurious > 0);
	assert_true(st.spurious < st.packets_out / 10);
}

/* Bytes per second of one long body. */
static uint64_t speed(void)
{
	uint64_t start;

	warm_up();
	start = sim_now(p.s);
	pair_send(&p, 0, 1, PAIR_LONG);
	pair_until(&p, &p.told[1].landed, 1);
	return PAIR_LONG * SECOND / (sim_now(p.s) - start);
}

static void a_path_is_filled(void **state)
{
	(void)state;
	/* 1 Gbit/s, 100 us there, a queue of as much */
	cfg.net.L_ns = 100000;
	cfg.net.G_ps = 8000;
	cfg.net.queue_ns = 400000;
	cfg.machine.mtu_start = 1472;
	again();
	/* of 125 MB/s, 1416 of 1472 bytes are payload */
	assert_true(speed() > 125000000ull * 1416 / 1472 * 90 / 100);
}

/* Is no more in flight than the window allows, whenever a packet goes out? */
static bool within_window(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	(void)packet;
	(void)len;
	if (from == 0 && to == 1)
		assert_true(pair_info(q, 0, 1).in_flight <= cfg.machine.window);
	return true;
}

static void no_more_is_in_flight_than_a_receiver_holds(void **state)
{
	uint64_t window;

	(void)state;
	cfg.net.L_ns = 100000;
	cfg.machine.window = 40000;
	cfg.machine.mtu_start = 1472;
	again();
	p.keep = within_window;
	/* a window per round trip of some 201 us */
	window = speed() * 201 / 1000000;
	assert_in_range(window, 36000, 40000);
}

static void loss_by_chance_costs_little(void **state)
{
	(void)state;
	cfg.net.L_ns = 20000;
	cfg.net.G_ps = 8000;
	cfg.machine.mtu_start = 1472;
	cfg.net.faults.loss = 10;
	again();
	assert_true(speed() > 125000000ull * 70 / 100);
}

static void two_share_a_link_without_collapse(void **state)
{
	uint64_t start, took;

	(void)state;
	cfg.net.L_ns = 20000;
	cfg.net.G_ps = 8000;
	cfg.net.queue_ns = 500000;
	cfg.machine.mtu_start = 1472;
	again();
	start = sim_now(p.s);
	pair_send(&p, 0, 2, PAIR_LONG / 2);
	pair_send(&p, 1, 2, PAIR_LONG / 2);
	pair_until(&p, &p.told[2].landed, 2);
	took = sim_now(p.s) - start;
	assert_true(PAIR_LONG * SECOND / took > 125000000ull * 75 / 100);
}

static void a_receiver_that_waits_stops_its_senders(void **state)
{
	(void)state;
	warm_up();
	p.told[1].later = true;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(pair_send(&p, 0, 1, 500), 0);
	pair_wait(&p, 20 * SECOND);
	/* it is alive, only busy; and has kept what it said it would */
	assert_int_equal(p.told[0].lost, 0);
	assert_int_equal(p.told[0].sent, 4);
	assert_true(sim_node(p.s, 1)->m->early_bytes <= cfg.machine.credit * 1024);
	assert_int_equal(pair_stats(&p, 1).drops[NET_DROP_NO_CREDIT], 0);
	p.told[1].later = false;
	dgram_resume(sim_node(p.s, 1)->m, sim_peer(sim_node(p.s, 1), 0));
	sim_kick(sim_node(p.s, 1));
	pair_until(&p, &p.told[0].sent, 1004);
	assert_int_equal(p.told[1].delivered, 1004);
	assert_int_equal(sim_node(p.s, 1)->m->early_bytes, 0);
}

static void the_word_of_new_credit_may_be_lost(void **state)
{
	(void)state;
	warm_up();
	p.told[1].later = true;
	for (int i = 0; i < 1000; i++)
		pair_send(&p, 0, 1, 500);
	pair_wait(&p, SECOND);
	p.told[1].later = false;
	sim_cut(p.s, 1, 0, true);
	dgram_resume(sim_node(p.s, 1)->m, sim_peer(sim_node(p.s, 1), 0));
	sim_kick(sim_node(p.s, 1));
	pair_wait(&p, 50 * MS);
	sim_cut(p.s, 1, 0, false);
	pair_until(&p, &p.told[0].sent, 1004);
	assert_int_equal(p.told[0].sent_status, NET_OK);
}

static void the_queue_of_a_sender_has_an_end(void **state)
{
	int err = 0, n;

	(void)state;
	sim_cut(p.s, 0, 1, true);
	for (n = 0; n < 100000 && !err; n++)
		err = pair_send(&p, 0, 1, 8);
	assert_int_equal(err, -11);
	assert_int_equal(n - 1, cfg.machine.backlog);
	pair_until(&p, &p.told[0].sent, cfg.machine.backlog);
	assert_int_equal(p.told[0].sent_status, NET_UNREACHABLE);
}

static void the_longest_packets_that_pass_are_found(void **state)
{
	static const uint32_t path[] = { 1200, 1280, 1472, 4068, 8972, 0 };
	static const uint32_t found[] = { 1200, 1200, 1472, 4068, 8972, 65000 };

	(void)state;
	cfg.machine.mtu = 65000;
	for (int i = 0; i < 6; i++) {
		cfg.net.path_mtu = path[i];
		again();
		for (uint32_t n = 1; n <= 12; n++) {
			pair_send(&p, 0, 1, PAIR_LONG);
			pair_until(&p, &p.told[0].sent, n);
			assert_int_equal(p.told[0].sent_status, NET_OK);
			if (pair_info(&p, 0, 1).mtu > DGRAM_MTU_MIN)
				break;
		}
		assert_int_equal(pair_info(&p, 0, 1).mtu, found[i]);
		/* looking for them does not look like congestion */
		assert_int_equal(pair_stats(&p, 0).timeouts, 0);
	}
}

static uint32_t shorter_to_1(void *user, const struct net_addr *to)
{
	(void)user;
	return to->word[0] == 1 ? 1452 : 65000;
}

static void what_the_link_carries_may_depend_on_the_peer(void **state)
{
	uint32_t n = 0;

	(void)state;
	cfg.machine.mtu = 9000;
	cfg.ops.longest = shorter_to_1;
	again();
	for (uint32_t to = 1; to <= 2; to++)
		for (int i = 0; i < 12 && pair_info(&p, 0, to).mtu <= DGRAM_MTU_MIN; i++) {
			assert_int_equal(pair_send(&p, 0, to, PAIR_LONG), 0);
			pair_until(&p, &p.told[0].sent, ++n);
			assert_int_equal(p.told[0].sent_status, NET_OK);
		}
	assert_int_equal(pair_info(&p, 0, 1).mtu, 1452);
	assert_int_equal(pair_info(&p, 0, 2).mtu, 9000);
}

static bool only_short(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	(void)from;
	(void)to;
	(void)packet;
	return q->packets < 500 || len <= 1400;
}

static void a_path_that_narrows_is_noticed(void **state)
{
	(void)state;
	cfg.machine.mtu = 8972;
	again();
	p.keep = only_short;
	pair_send(&p, 0, 1, PAIR_LONG);
	pair_until(&p, &p.told[0].sent, 1);
	assert_int_equal(p.told[0].sent_status, NET_OK);
	assert_memory_equal(p.told[1].delivery, p.source, PAIR_LONG);
	assert_true(pair_info(&p, 0, 1).mtu <= 1400);
}

enum { AS_ONE = 1472, CUT = 44 * AS_ONE };

static uint32_t as_one(void *user, const struct net_addr *to)
{
	(void)user;
	(void)to;
	return AS_ONE;
}

static uint32_t cut_packets;

static bool all_joined(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	(void)q;
	(void)from;
	(void)to;
	(void)packet;
	cut_packets += len > AS_ONE;
	return true;
}

static bool none_joined(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	return all_joined(q, from, to, packet, len) && len <= AS_ONE;
}

static bool some_joined(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	return all_joined(q, from, to, packet, len) && (len <= AS_ONE || cut_packets % 4);
}

static bool joined_for_a_while(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet,
			       size_t len)
{
	return all_joined(q, from, to, packet, len) && (len <= AS_ONE || cut_packets < 40);
}

static bool few_lost(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	return all_joined(q, from, to, packet, len) && (len <= AS_ONE || cut_packets % 100 != 50);
}

/* So many bodies of that length from 0 to 1, over a path that keeps what `keep` says. */
static void bodies_in_segments(int count, uint64_t len,
			       bool (*keep)(struct pair *q, uint32_t from, uint32_t to,
					    uint8_t *packet, size_t len))
{
	cfg.machine.mtu = CUT;
	cfg.ops.whole = as_one;
	again();
	cut_packets = 0;
	p.keep = keep;
	for (int i = 1; i <= count; i++) {
		assert_int_equal(pair_send(&p, 0, 1, len), 0);
		pair_until(&p, &p.told[0].sent, (uint32_t)i);
		assert_int_equal(p.told[0].sent_status, NET_OK);
		assert_memory_equal(p.told[1].delivery, p.source, len);
	}
	assert_int_equal(p.told[0].lost + p.told[1].lost, 0);
}

static void segments_that_arrive_joined_are_one_packet(void **state)
{
	(void)state;
	bodies_in_segments(3, PAIR_LONG, all_joined);
	assert_int_equal(pair_info(&p, 0, 1).mtu, CUT);
	assert_int_equal(pair_stats(&p, 0).timeouts, 0);
	/* a lost one now and then is no reason to do without */
	bodies_in_segments(6, PAIR_LONG, few_lost);
	assert_int_equal(pair_info(&p, 0, 1).mtu, CUT);
}

static void segments_that_are_not_joined_cost_two_packets(void **state)
{
	(void)state;
	bodies_in_segments(4, PAIR_LONG, none_joined);
	assert_int_equal(pair_info(&p, 0, 1).mtu, AS_ONE);
	assert_int_equal(cut_packets, 2);
	assert_int_equal(pair_stats(&p, 0).timeouts, 0);
}

static void segments_are_not_tried_for_little(void **state)
{
	(void)state;
	bodies_in_segments(40, 4 * CUT, all_joined);
	assert_int_equal(pair_info(&p, 0, 1).mtu, AS_ONE);
	assert_int_equal(cut_packets, 0);
}

static void segments_are_not_tried_where_the_wire_is_slow(void **state)
{
	(void)state;
	cfg.net.G_ps = 8000; /* 1 Gbit/s */
	bodies_in_segments(3, PAIR_LONG, all_joined);
	assert_int_equal(pair_info(&p, 0, 1).mtu, AS_ONE);
	assert_int_equal(cut_packets, 0);
}

static void segments_that_are_joined_no_longer_are_given_up(void **state)
{
	uint32_t after;

	(void)state;
	bodies_in_segments(3, PAIR_LONG, some_joined);
	assert_int_equal(pair_info(&p, 0, 1).mtu, AS_ONE);
	after = cut_packets;
	assert_true(after > 2 && after < 60);
	assert_int_equal(pair_send(&p, 0, 1, PAIR_LONG), 0);
	pair_until(&p, &p.told[0].sent, 4);
	assert_int_equal(cut_packets, after);
	bodies_in_segments(3, PAIR_LONG, joined_for_a_while);
	assert_int_equal(pair_info(&p, 0, 1).mtu, AS_ONE);
}

static uint32_t carried = CUT; /* by the link, now */

static uint32_t as_carried(void *user, const struct net_addr *to)
{
	(void)user;
	(void)to;
	return carried;
}

/* From the hundredth packet in segments on the link carries half as much. */
static bool less_carried(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	if (all_joined(q, from, to, packet, len) && cut_packets > 100)
		carried = CUT / 2;
	return len <= carried;
}

/* The packets in flight then are lost. The sender knows at the first loss that the rest need not
 * be. */
static void a_link_that_carries_less_is_believed_at_once(void **state)
{
	(void)state;
	carried = CUT;
	cfg.ops.longest = as_carried;
	bodies_in_segments(3, PAIR_LONG, less_carried);
	assert_true(pair_info(&p, 0, 1).mtu > AS_ONE);
	assert_true(pair_info(&p, 0, 1).mtu <= CUT / 2);
	assert_int_equal(pair_stats(&p, 0).timeouts, 0);
}

static void replies_need_no_second_round_trip(void **state)
{
	const struct net_out o = { .header = &p.given[0][1],
				   .header_len = 4,
				   .body.base = p.source,
				   .body_len = 1 << 20,
				   .cookie = &p.told[0],
				   .push = UINT64_MAX };

	(void)state;
	warm_up();
	p.given[0][1] = 4;
	assert_int_equal(sim_send(sim_node(p.s, 0), 1, &o), 0);
	pair_until(&p, &p.told[1].landed, 1);
	assert_memory_equal(p.told[1].delivery, p.source, 1 << 20);
	assert_int_equal(pair_stats(&p, 0).spurious, 0);
}

/* The first bytes of a body are there, for its sender. */
enum { THERE = 300 };

static int no_more(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		   int max)
{
	(void)user;
	(void)cookie;
	(void)max;
	if (offset >= THERE)
		return 0;
	iov[0] = (struct iovec){ p.source + offset, len < THERE - offset ? len : THERE - offset };
	return 1;
}

static void what_is_not_there_is_sent_as_zeros(void **state)
{
	static const struct {
		uint64_t len;
		bool copy;
	} how[] = { { 1000, false }, { 1000, true }, { 50000, true }, { 1 << 20, false } };
	struct net_out o = { .header = &p.given[0][1], .header_len = 4, .cookie = &p.told[0] };

	(void)state;
	cfg.ops.segments = no_more;
	again();
	memset(p.source + THERE, 0, PAIR_LONG - THERE);
	memset(p.told[1].delivery, 0xff, PAIR_LONG);
	for (uint32_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		o.body_len = how[i].len;
		o.copy = how[i].copy;
		p.given[0][1] = i;
		assert_int_equal(sim_send(sim_node(p.s, 0), 1, &o), 0);
		pair_until(&p, &p.told[0].sent, i + 1);
		assert_int_equal(p.told[0].sent_status, NET_OK);
		assert_int_equal(p.told[0].sent_length, how[i].len);
		/* of those that come with their headers deliver() has looked at the bytes */
		if (how[i].len > 1000)
			assert_memory_equal(p.told[1].delivery, p.source, how[i].len);
	}
	assert_int_equal(p.told[1].delivered, 4);
	assert_int_equal(p.told[1].landed, 2);
}

/* 0 has heard of all it sent but for packets that tried a longer MTU, which nobody waits for;
 * and then it only listens. */
static void who_only_listens_does_not_take_the_other_for_dead(void **state)
{
	(void)state;
	cfg.machine.mtu = 8972;
	cfg.net.path_mtu = 1472;
	cfg.net.G_ps = 100000;
	cfg.machine.dead_ns = 100 * MS;
	cfg.machine.window = 100000;
	for (uint64_t len = 1100; len < 20000; len += 1100) {
		again();
		pair_send(&p, 1, 0, PAIR_LONG / 4);
		pair_send(&p, 0, 1, len);
		pair_until(&p, &p.told[0].sent, 1);
		pair_until(&p, &p.told[1].sent, 1);
		assert_int_equal(p.told[1].sent_status, NET_OK);
		assert_int_equal(p.told[0].lost + p.told[1].lost, 0);
	}
}

/* The answer to a message goes out before what came with the message is looked at. */
static void what_an_acknowledgement_says_waits_for_the_answer(void **state)
{
	uint64_t out;

	(void)state;
	warm_up();
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[1].delivered, 5);
	pair_send(&p, 1, 0, 10);
	pair_until(&p, &p.told[0].delivered, 1);
	assert_int_equal(p.told[0].sent, 4);
	out = pair_stats(&p, 0).packets_out;
	pair_send(&p, 0, 1, 10);
	assert_int_equal(p.told[0].sent, 4);
	pair_until(&p, &p.told[0].sent, 5);
	assert_int_equal(pair_stats(&p, 0).packets_out, out + 1);
	assert_int_equal(p.told[1].delivered, 5);
	/* the round trip is what it was, and all is well */
	pair_until(&p, &p.told[0].sent, 6);
	assert_int_equal(pair_info(&p, 0, 1).in_flight, 0);
	assert_int_equal(pair_stats(&p, 0).lost_packets + pair_stats(&p, 1).lost_packets, 0);
}

/* Also when nobody answers. */
static void what_an_acknowledgement_says_waits_no_longer(void **state)
{
	(void)state;
	warm_up();
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[1].delivered, 5);
	pair_send(&p, 1, 0, 10);
	pair_until(&p, &p.told[0].delivered, 1);
	pair_wait(&p, 10);
	assert_int_equal(p.told[0].sent, 5);
}

static struct dgram_rec *rec(uint32_t node, uint32_t peer)
{
	struct sim_node *n = sim_node(p.s, node);

	return dgram_rec(n->m, sim_peer(n, peer));
}

/* Packets of the receiver, one for each of so many of the sender's, when these come in bursts of so
 * many. */
static double packets_for_one_back(uint32_t joined)
{
	double there;

	again();
	warm_up();
	there = (double)pair_stats(&p, 0).packets_out;
	dgram_joined(sim_node(p.s, 1)->m, joined);
	pair_send(&p, 0, 1, PAIR_LONG);
	pair_until(&p, &p.told[0].sent, 5);
	assert_int_equal(p.told[1].landed, 1);
	assert_int_equal(pair_stats(&p, 0).lost_packets, 0);
	there = (double)pair_stats(&p, 0).packets_out - there;
	return there / (double)(p.packets - there);
}

static void what_comes_in_one_piece_is_acknowledged_less_often(void **state)
{
	(void)state;
	cfg.net.L_ns = 1 * MS; /* hundreds of packets are in flight */
	cfg.machine.mtu_start = 1472;
	assert_true(packets_for_one_back(1) < 6);
	assert_true(packets_for_one_back(16) > 15);
	/* few in flight: of all but some of these something is to be heard soon */
	cfg.machine.window = 20 * 1472;
	assert_true(packets_for_one_back(16) < 3);
}

/* Of packet numbers the lower half travels in acknowledgements. */
static void packet_numbers_outgrow_their_lower_half(void **state)
{
	const uint64_t next = (1ull << 32) - 5;

	(void)state;
	warm_up();
	pair_wait(&p, SECOND);
	rec(0, 1)->tx_pn = next;
	rec(1, 0)->rx_pn = next - 1;
	for (uint32_t i = 5; i < 25; i++) {
		pair_send(&p, 0, 1, 10);
		pair_until(&p, &p.told[0].sent, i);
	}
	assert_true(rec(0, 1)->tx_pn > 1ull << 32);
	assert_int_equal(pair_stats(&p, 0).drops[NET_DROP_BAD_ACK], 0);
	assert_int_equal(pair_stats(&p, 0).lost_packets, 0);
}

/* The length in a packet, alone and with others of its length, or a shorter one, behind it. */
static void check_length(const uint8_t *packet, size_t len)
{
	static uint8_t joined[65536];

	assert_int_equal(dgram_packet_length(packet, len), len);
	memcpy(joined, packet, len);
	memcpy(joined + len, packet, len);
	assert_int_equal(dgram_packet_length(joined, 2 * len), len);
	assert_int_equal(dgram_packet_length(joined, len + len / 2), len);
	/* cut short it makes no sense, and is one */
	assert_int_equal(dgram_packet_length(packet, len - 1), len - 1);
}

static void packets_say_how_long_they_are(void **state)
{
	size_t at = 0, len, checked = 0;

	(void)state;
	for (uint32_t i = 1; i <= 100; i++)
		pair_send(&p, 0, 1, i % 10 ? i : 3000 * i);
	pair_until(&p, &p.told[0].sent, 100);
	for (; at < p.recorded; at += len + 12) {
		len = base_get32(p.record + at + 8);
		if (2 * len > 65536)
			continue;
		check_length(p.record + at + 12, len);
		checked++;
	}
	assert_true(checked > 100);
}

/* A short message whose last bytes look like a segment of a long one. */
static void what_looks_like_a_piece_is_none(void **state)
{
	struct dgram_frame msg = {
		.kind = DGRAM_FRAME_MSG, .hdr_len = 4, .body_now = 16, .body_len = 16
	};
	struct dgram_frame data = { .kind = DGRAM_FRAME_DATA, .body_now = 50 };
	struct dgram_head h = { .type = DGRAM_FRAMES, .to = 1, .pn = 1 };
	size_t len = sizeof(struct dgram_wire_head);
	uint8_t packet[256] = { 0 };

	(void)state;
	len += dgram_frame_encode(packet + len, &msg) + msg.hdr_len;
	len += dgram_frame_encode(packet + len, &data);
	h.head_len = (uint32_t)len;
	dgram_head_encode(packet, &h);
	check_length(packet, len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(bodies_of_all_lengths_arrive),
		TEST(the_round_trip_is_measured),
		TEST(one_lost_packet_is_sent_again_alone),
		TEST(a_lost_tail_needs_no_time_out),
		TEST(time_outs_grow),
		TEST(a_changed_order_is_learnt),
		TEST(a_path_is_filled),
		TEST(no_more_is_in_flight_than_a_receiver_holds),
		TEST(loss_by_chance_costs_little),
		TEST(two_share_a_link_without_collapse),
		TEST(a_receiver_that_waits_stops_its_senders),
		TEST(the_word_of_new_credit_may_be_lost),
		TEST(the_queue_of_a_sender_has_an_end),
		TEST(the_longest_packets_that_pass_are_found),
		TEST(what_the_link_carries_may_depend_on_the_peer),
		TEST(a_path_that_narrows_is_noticed),
		TEST(segments_that_arrive_joined_are_one_packet),
		TEST(segments_that_are_not_joined_cost_two_packets),
		TEST(segments_are_not_tried_for_little),
		TEST(segments_are_not_tried_where_the_wire_is_slow),
		TEST(segments_that_are_joined_no_longer_are_given_up),
		TEST(a_link_that_carries_less_is_believed_at_once),
		TEST(replies_need_no_second_round_trip),
		TEST(packets_say_how_long_they_are),
		TEST(what_looks_like_a_piece_is_none),
		TEST(what_is_not_there_is_sent_as_zeros),
		TEST(who_only_listens_does_not_take_the_other_for_dead),
		TEST(what_an_acknowledgement_says_waits_for_the_answer),
		TEST(what_an_acknowledgement_says_waits_no_longer),
		TEST(what_comes_in_one_piece_is_acknowledged_less_often),
		TEST(packet_numbers_outgrow_their_lower_half),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
