/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Attacks on a datagram machine: strangers who have no key and send again what they have heard, and
 * peers that have the key and went mad.
 */
#include "test/dgram/pair.h"

#include <string.h>

#include "nal/net/dgram/dgram_core.h"

static struct pair p;
static struct sim_cfg cfg;

static int set_up(void **state)
{
	(void)state;
	pair_settings(&cfg);
	cfg.tags = false; /* whatever is sent is sealed */
	pair_start(&p, &cfg);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	/* nothing is going on any more */
	pair_wait(&p, 2 * SECOND);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pair_end(&p);
	return 0;
}

static struct dgram_rec *rec(uint32_t node, uint32_t peer)
{
	struct sim_node *n = sim_node(p.s, node);

	return dgram_rec(n->m, sim_peer(n, peer));
}

/* A packet of 0's to 1 with one frame, whatever 0's machine thinks of it. */
static void say(uint64_t pn, const struct dgram_frame *f)
{
	uint8_t packet[DGRAM_MTU_MIN];
	struct dgram_head h = { .type = DGRAM_FRAMES, .to = rec(1, 0)->mine, .pn = pn };
	size_t len = sizeof(struct dgram_wire_head);

	memset(packet, 0, sizeof(packet));
	len += dgram_frame_encode(packet + len, f);
	if (f->hdr_len)
		memcpy(packet + len, f->bytes, f->hdr_len);
	len += f->hdr_len;
	h.head_len = (uint32_t)len;
	dgram_head_encode(packet, &h);
	sim_inject(sim_node(p.s, 1), 0, packet, len);
}

static void replays_are_neither_answered_nor_signs_of_life(void **state)
{
	uint64_t heard = rec(1, 0)->heard;
	struct net_stats st = pair_stats(&p, 1);
	size_t end = p.recorded, at = 0, len;
	uint32_t packets, again = 0;

	(void)state;
	assert_int_equal(st.active, 0);
	packets = p.packets;
	for (; at < end; at += len + 12) {
		const uint8_t *packet = p.record + at + 12;
		uint8_t copy[2048];

		len = base_get32(p.record + at + 8);
		if (base_get32(p.record + at + 4) != 1 || packet[1] != DGRAM_FRAMES)
			continue;
		memcpy(copy, packet, len);
		sim_inject(sim_node(p.s, 1), 0, copy, len);
		again++;
	}
	pair_wait(&p, 100 * MS);
	assert_true(again > 0);
	assert_int_equal(pair_stats(&p, 1).drops[NET_DROP_DUPLICATE] - st.drops[NET_DROP_DUPLICATE],
			 again);
	assert_int_equal(p.packets, packets);
	assert_int_equal(pair_stats(&p, 1).active, 0);
	assert_int_equal(rec(1, 0)->heard, heard);
}

static void packet_numbers_do_not_wrap(void **state)
{
	const struct dgram_frame ping = { .kind = DGRAM_FRAME_PING };
	struct net_stats st = pair_stats(&p, 1);

	(void)state;
	say(UINT64_MAX - 5, &ping);
	say(UINT64_MAX, &ping);
	assert_int_equal(pair_stats(&p, 1).drops[NET_DROP_MALFORMED] - st.drops[NET_DROP_MALFORMED],
			 2);
}

/* A packet from 0 to 1 arrives, but before that 2, which has heard it, sends it. Counts what goes
 * there. */
static bool overtaken(struct pair *q, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	q->drop_to += to == 2;
	if (from == 0 && to == 1)
		sim_inject(sim_node(q->s, 1), 2, packet, len);
	return true;
}

static void who_hears_all_cannot_have_answers_sent_to_him(void **state)
{
	(void)state;
	pair_end(&p);
	pair_start(&p, &cfg);
	p.knows_places = true;
	p.keep = overtaken;
	pair_send(&p, 0, 1, 10);
	pair_send(&p, 0, 1, 100000);
	pair_until(&p, &p.told[0].sent, 2);
	assert_int_equal(p.told[0].sent_status, NET_OK);
	assert_int_equal(p.drop_to, 0);
	pair_send(&p, 1, 0, 100000);
	pair_until(&p, &p.told[1].sent, 1);
	assert_int_equal(p.told[1].sent_status, NET_OK);
	assert_int_equal(p.drop_to, 0);
}

/* Headers of long messages, and nothing else of them; and whatever is said about that is not
 * acknowledged. */
static void landings_have_an_end(void **state)
{
	struct dgram_frame msg = { .kind = DGRAM_FRAME_MSG, .hdr_len = 4, .body_len = 5000 };
	uint64_t pn;

	(void)state;
	cfg.machine.backlog = 64;
	pair_end(&p);
	pair_start(&p, &cfg);
	pair_send(&p, 0, 1, 10);
	pair_until(&p, &p.told[0].sent, 1);
	pn = rec(1, 0)->rx_pn;
	for (uint32_t i = 1; i < 1000; i++) {
		msg.number = rec(1, 0)->rx_number;
		msg.bytes = (const uint8_t *)&i;
		say(++pn, &msg);
	}
	assert_in_range(p.told[1].delivered, 65, 129);
	assert_true(pair_stats(&p, 1).drops[NET_DROP_NO_ROOM] > 800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(replays_are_neither_answered_nor_signs_of_life),
		TEST(packet_numbers_do_not_wrap),
		TEST(who_hears_all_cannot_have_answers_sent_to_him),
		TEST(landings_have_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
