/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * RFC 6298 in numbers: what two machines make of round trips that take what this test says,
 * against values calculated by hand from the RFC's sections 2 to 5. The clock and the wire are
 * the test's: a packet arrives when it says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/dgram/dgram_core.h"

#define MS 1000000ull
#define US 1000ull

enum { PACKETS = 64, ROOM = 2048 };

/* A machine, and the packets that it sent and nobody has received yet. */
struct side {
	struct dgram *m;
	struct net_addr addr;
	uint32_t peer, sent;
	unsigned int packets;
	uint8_t head[ROOM];
	struct {
		uint8_t bytes[ROOM];
		size_t len;
	} packet[PACKETS];
};

static struct side a, b;
static uint64_t now, ack_delay;

static void *room(void *user, size_t len)
{
	struct side *s = user;

	return len <= ROOM ? s->head : NULL;
}

static void transmit(void *user, const struct dgram_packet *p)
{
	struct side *s = user;

	assert_true(s->packets < PACKETS && !p->segments);
	memcpy(s->packet[s->packets].bytes, p->head, p->head_len);
	s->packet[s->packets++].len = p->head_len;
}

static enum net_verdict deliver(void *user, uint32_t peer, const struct net_in *in,
				struct net_delivery *delivery)
{
	(void)user;
	(void)peer;
	(void)in;
	(void)delivery;
	return NET_DONE;
}

static void sent(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s)
{
	(void)peer;
	(void)cookie;
	(void)length;
	((struct side *)user)->sent += s == NET_OK;
}

static bool accept(void *user, const struct net_who *who, const struct net_addr *from)
{
	(void)user;
	(void)who;
	(void)from;
	return true;
}

/* ---- time and the wire ----------------------------------------------------------------------- */

static void run(struct side *s)
{
	while (dgram_run(s->m, now))
		;
}

static void arrives(struct side *from, struct side *to, unsigned int packet)
{
	dgram_receive(to->m, now, &from->addr, from->packet[packet].bytes,
		      from->packet[packet].len);
}

/* All of it, in no time. */
static void pass(struct side *from, struct side *to)
{
	for (unsigned int i = 0; i < from->packets; i++)
		arrives(from, to, i);
	from->packets = 0;
	run(to);
}

/* The other side receives what there is, and what it says to that arrives when `rtt` has passed
 * since now. */
static void round_trip(uint64_t rtt)
{
	uint64_t arrival = now + rtt;

	assert_true(a.packets > 0);
	pass(&a, &b);
	now += ack_delay;
	run(&b);
	assert_true(b.packets > 0);
	now = arrival;
	pass(&b, &a);
	a.packets = 0; /* nothing of it is wanted but the round trip */
}

static void message(void)
{
	const struct net_out o = { .header = "6298", .header_len = 4, .cookie = &a };

	assert_int_equal(dgram_send(a.m, now, a.peer, &o), 0);
	run(&a);
}

/* One more message, whose packet is acknowledged after `rtt`. */
static void measure(uint64_t rtt)
{
	uint32_t before = a.sent;

	message();
	round_trip(rtt);
	assert_int_equal(a.sent, before + 1);
}

static void is(uint64_t srtt, uint64_t rttvar, uint64_t rto)
{
	struct dgram_peer_info info;

	assert_true(dgram_peer_info(a.m, a.peer, &info));
	assert_int_equal(info.srtt_ns, srtt);
	assert_int_equal(info.rttvar_ns, rttvar);
	assert_int_equal(info.rto_ns, rto);
}

/* The next packets that A sends unasked, all of which are lost: when; since what was sent
 * before. */
static uint64_t until_next(void)
{
	uint64_t before = now;

	a.packets = 0;
	while (!a.packets) {
		uint64_t wake = dgram_wake(a.m);

		assert_true(wake != NET_NEVER);
		now = wake > now ? wake : now;
		run(&a);
	}
	return now - before;
}

/* A packet that the network holds. */
struct kept {
	uint8_t bytes[ROOM];
	size_t len;
};

/* The one packet that A has sent. */
static void keep(struct kept *k)
{
	assert_int_equal(a.packets, 1);
	k->len = a.packet[0].len;
	memcpy(k->bytes, a.packet[0].bytes, k->len);
}

/* It arrives now, and nothing that was sent after it. */
static void arrives_late(const struct kept *k)
{
	a.packets = 1;
	a.packet[0].len = k->len;
	memcpy(a.packet[0].bytes, k->bytes, k->len);
}

static void begin_side(struct side *s, uint64_t number, struct dgram_cfg cfg)
{
	static const struct dgram_ops ops = { .room = room,
					      .transmit = transmit,
					      .deliver = deliver,
					      .sent = sent,
					      .accept = accept };

	memset(s, 0, sizeof(*s));
	cfg.id = cfg.incarnation = cfg.seed = s->addr.word[0] = number;
	s->m = dgram_create(&ops, s, &cfg);
	assert_non_null(s->m);
}

/* Two that have a connection over which A's first message is on its way, unmeasured. */
static void begin(uint64_t rto_min, uint64_t rto_max)
{
	struct dgram_cfg cfg = { .mtu = 1472,
				 .rto_start_ns = 70 * MS,
				 .rto_min_ns = rto_min,
				 .rto_max_ns = rto_max,
				 .ack_delay_ns = ack_delay,
				 .dead_ns = 100000 * MS,
				 .keepalive_ns = 50000 * MS };

	now = 1000 * MS;
	begin_side(&a, 1, cfg);
	begin_side(&b, 2, cfg);
	a.peer = dgram_peer(a.m, 2, &b.addr);
	message();
	pass(&a, &b);
	pass(&b, &a);
	assert_int_equal(a.packets, 1);
}

static int set_up(void **state)
{
	(void)state;
	ack_delay = 1; /* as good as none */
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dgram_destroy(a.m);
	dgram_destroy(b.m);
	a.m = b.m = NULL;
	return 0;
}

/* ---- sections 2.1 to 2.3 --------------------------------------------------------------------- */

static void round_trips_are_smoothed(void **state)
{
	(void)state;
	begin(1 * MS, 10000 * MS);
	is(0, 0, 70 * MS); /* 2.1, with our own value */
	round_trip(100 * MS);
	/* 2.2: SRTT = R, RTTVAR = R/2, RTO = R + 4 R/2 */
	is(100 * MS, 50 * MS, 300 * MS);
	/* 2.3: RTTVAR = 3/4 50 + 1/4 |100 - 60|; SRTT = 7/8 100 + 1/8 60 */
	measure(60 * MS);
	is(95 * MS, 47500 * US, 285 * MS);
	/* 3/4 47.5 + 1/4 |95 - 140|; 7/8 95 + 1/8 140 */
	measure(140 * MS);
	is(100625 * US, 46875 * US, 288125 * US);
	/* 3/4 46.875 + 1/4 |100.625 - 100.625| */
	measure(100625 * US);
	is(100625 * US, 35156250, 241250 * US);
	/* 3/4 35.15625 + 1/4 |100.625 - 20.625|; 7/8 100.625 + 1/8 20.625 */
	measure(20625 * US);
	is(90625 * US, 46367187 + 1, 90625 * US + 4 * (46367187 + 1ull));
}

/* 2.4 and 2.5 */
static void the_time_out_has_bounds(void **state)
{
	(void)state;
	begin(20 * MS, 900 * MS);
	round_trip(4 * MS);
	is(4 * MS, 2 * MS, 20 * MS); /* not 12 */
	measure(36 * MS);
	/* 3/4 2 + 1/4 32; 7/8 4 + 1/8 36: within them */
	is(8 * MS, 9500 * US, 46 * MS);
	tear_down(NULL);
	begin(20 * MS, 900 * MS);
	round_trip(400 * MS);
	is(400 * MS, 200 * MS, 900 * MS); /* not 1200 */
}

/* Never less than SRTT and what an acknowledgement may be delayed, however even round trips are
 * (2.3: G). */
static void even_round_trips_leave_some_time(void **state)
{
	struct dgram_peer_info info;

	(void)state;
	ack_delay = 10 * MS;
	begin(1 * MS, 900 * MS);
	round_trip(64 * MS);
	is(64 * MS, 32 * MS, 192 * MS);
	for (int i = 0; i < 200; i++)
		measure(64 * MS);
	assert_true(dgram_peer_info(a.m, a.peer, &info));
	assert_int_equal(info.srtt_ns, 64 * MS);
	assert_in_range(info.rttvar_ns, 0, 4);
	assert_int_equal(info.rto_ns, 74 * MS);
}

/* ---- section 5 ------------------------------------------------------------------------------- */

/* 5.5: each is twice the one before, up to the bound; the first packet is the probe of RFC 8985
 * section 7.2, after two round trips. */
static void time_outs_double(void **state)
{
	(void)state;
	begin(20 * MS, 1000 * MS);
	round_trip(50 * MS); /* RTO 150 */
	message();
	assert_in_range(until_next(), 100 * MS, 101 * MS + 1);
	assert_int_equal(until_next(), 150 * MS);
	assert_int_equal(until_next(), 300 * MS);
	assert_int_equal(until_next(), 600 * MS);
	assert_int_equal(until_next(), 1000 * MS);
	assert_int_equal(until_next(), 1000 * MS);
	/* what arrives ends it: the next loss begins anew, with the RTO of 50 and 50 */
	round_trip(50 * MS);
	assert_int_equal(a.sent, 2);
	is(50 * MS, 18750 * US, 125 * MS);
	message();
	assert_in_range(until_next(), 100 * MS, 101 * MS + 1);
	assert_int_equal(until_next(), 125 * MS);
	assert_int_equal(until_next(), 250 * MS);
}

/* ---- section 3: Karn ------------------------------------------------------------------------- */

/* A packet that is sent again has another number: its acknowledgement measures from when it was
 * sent itself. */
static void what_was_sent_again_is_measured_by_itself(void **state)
{
	(void)state;
	begin(20 * MS, 1000 * MS);
	round_trip(50 * MS);
	message();
	until_next();
	until_next();
	assert_int_equal(a.sent, 1);
	round_trip(50 * MS); /* 300 since the message was sent first */
	assert_int_equal(a.sent, 2);
	is(50 * MS, 18750 * US, 125 * MS);
}

/* The number of a packet is its own, so it measures even if it was taken for lost before. */
static void what_was_taken_for_lost_is_measured(void **state)
{
	struct kept first;
	uint64_t waited, rtt;

	(void)state;
	begin(20 * MS, 1000 * MS);
	round_trip(50 * MS);
	message();
	keep(&first);
	waited = until_next();
	assert_in_range(waited, 100 * MS, 101 * MS);
	/* the first one arrives, late, and not what was sent after it */
	arrives_late(&first);
	round_trip(30 * MS);
	assert_int_equal(a.sent, 2);
	rtt = waited + 30 * MS;
	is(50 * MS - 6250 * US + rtt / 8, 18750 * US + (rtt - 50 * MS) / 4,
	   50 * MS - 6250 * US + rtt / 8 + 4 * (18750 * US + (rtt - 50 * MS) / 4));
}

/* A round trip longer than the first time-out: each packet is sent again before its
 * acknowledgement can be there, and still the first acknowledgement ends that. */
static void long_round_trips_are_measured(void **state)
{
	struct kept first;
	uint64_t waited = 0;

	(void)state;
	begin(20 * MS, 1000 * MS);
	keep(&first);
	while (waited < 200 * MS)
		waited += until_next();
	arrives_late(&first);
	round_trip(20 * MS);
	assert_int_equal(a.sent, 1);
	waited += 20 * MS;
	is(waited, waited / 2, dgram_min64(3 * waited, 1000 * MS));
	/* nothing more is sent too early but what acknowledges the other side's packet */
	now += ack_delay;
	run(&a);
	message();
	assert_true(until_next() > waited);
}

/* 2.5: the bound on the time-out is above the round trip, or every packet would be sent twice. */
static void the_bound_is_above_the_round_trip(void **state)
{
	(void)state;
	begin(20 * MS, 900 * MS);
	round_trip(1500 * MS);
	is(1500 * MS, 750 * MS, 3000 * MS);
	message();
	assert_int_equal(until_next(), 3000 * MS);
	assert_int_equal(until_next(), 3000 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(round_trips_are_smoothed),
		TEST(the_time_out_has_bounds),
		TEST(even_round_trips_leave_some_time),
		TEST(time_outs_double),
		TEST(what_was_sent_again_is_measured_by_itself),
		TEST(what_was_taken_for_lost_is_measured),
		TEST(long_round_trips_are_measured),
		TEST(the_bound_is_above_the_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
