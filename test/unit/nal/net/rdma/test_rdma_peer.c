/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A peer that is silent is asked, and then given up, but only while something is expected of it;
 * and one that answers a greeting late is not left alone with half a connection. The rest of the
 * machine, and nal/net, are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/rdma/rdma.h"
#include "portals/engine/ni.h"

#define MS      1000000ull
#define DEAD_NS (1000 * MS)

static struct rdma d;
static struct ptl_ni ni;
static struct rdma_peer *peer;
static uint64_t now;
static uint32_t pings, byes, ups;
static uint64_t greeted, token; /* of our last HELLO, */
static uint32_t serial;         /* and of the connection it was to make */

/* ---- stubs ----------------------------------------------------------------------------------- */

static void leave(void *link, void *way)
{
	(void)link;
	(void)way;
}

static void *reach(void *link, net_id_t id, const void *address, size_t len)
{
	(void)link;
	(void)id;
	(void)address;
	(void)len;
	return &peer;
}

static const struct rdma_link fake = { .name = "fake", .reach = reach, .leave = leave };

void net_read_clock(struct net *n)
{
	n->now = now;
	n->now_read = true;
}

void net_tag(const struct net_keys *k, const uint8_t *head, size_t head_len,
	     const struct iovec *body, int pieces, uint8_t tag[NET_TAG_BYTES])
{
	(void)k;
	(void)head;
	(void)head_len;
	(void)body;
	(void)pieces;
	memset(tag, 0, NET_TAG_BYTES);
}

void net_up(void *user, uint32_t number, const struct net_who *who)
{
	(void)user;
	(void)number;
	(void)who;
	ups++;
}

void net_peer_failed(struct net *n, uint32_t number, enum net_status s, const char *why)
{
	(void)n;
	(void)number;
	(void)s;
	(void)why;
}

bool rdma_say(struct rdma *rdma, struct rdma_peer *p, struct rdma_msg *m)
{
	(void)rdma;
	(void)p;
	pings += m->kind == RDMA_PING;
	byes += m->kind == RDMA_BYE;
	return true;
}

void rdma_greet(struct rdma *rdma, struct rdma_peer *p, uint8_t kind, uint64_t greeting)
{
	(void)rdma;
	assert_int_equal(kind, RDMA_HELLO);
	greeted = greeting;
	token = p->own_token;
	serial = p->serial;
}

void rdma_packet_put(struct rdma *rdma, struct rdma_packet *k)
{
	(void)rdma;
	(void)k;
}

void rdma_late_free(struct rdma_peer *p)
{
	(void)p;
}

bool rdma_reads_flying(const struct rdma_peer *p)
{
	(void)p;
	return false;
}

void rdma_outs_end(struct rdma *rdma, struct rdma_peer *p, enum net_status s)
{
	(void)rdma;
	(void)p;
	(void)s;
}

void rdma_bodies_end(struct rdma *rdma, struct rdma_peer *p, enum net_status s)
{
	(void)rdma;
	(void)p;
	(void)s;
}

bool rdma_reg_check(struct rdma *rdma)
{
	(void)rdma;
	return false;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static int start(void **state)
{
	(void)state;
	now = 100 * DEAD_NS;
	pings = byes = ups = 0;
	d = (struct rdma){
		.net.ni = &ni, .link = &fake, .dead_ns = DEAD_NS, .check_at = NET_NEVER
	};
	peer = rdma_peer_add(&d, 1);
	assert_non_null(peer);
	peer->state = RDMA_UP;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	rdma_peers_free(&d);
	return 0;
}

/* Time passes, and what is due is done. */
static void wait_ms(uint64_t ms)
{
	for (uint64_t end = now + ms * MS; now < end; now += MS) {
		d.net.now_read = false;
		d.net.listened = now;
		if (d.check_at <= now)
			rdma_check(&d);
	}
	d.net.now_read = false;
}

static void a_silent_peer_is_asked_and_then_given_up(void **state)
{
	(void)state;
	peer->flying = 1;
	rdma_await(&d, peer);
	wait_ms(900);
	assert_in_range(pings, 1, 3);
	assert_int_equal(peer->failure, NET_OK);
	wait_ms(400);
	assert_int_equal(peer->failure, NET_DEAD);
	rdma_peer_fail(&d, peer);
	assert_int_equal(byes, 1);
	assert_int_equal(peer->state, RDMA_IDLE);
}

static void also_one_that_has_sent_half_a_message(void **state)
{
	(void)state;
	peer->coming.len = 1;
	rdma_await(&d, peer);
	wait_ms(1300);
	assert_int_equal(peer->failure, NET_DEAD);
}

static void one_that_speaks_is_not(void **state)
{
	(void)state;
	peer->flying = 1;
	rdma_await(&d, peer);
	for (int i = 0; i < 50; i++) {
		peer->spoke = true;
		wait_ms(100);
	}
	assert_int_equal(pings, 0);
	assert_int_equal(peer->failure, NET_OK);
}

/* A packet is missing that those behind it wait for. */
static void so_is_one_of_which_a_packet_does_not_come(void **state)
{
	struct rdma_late behind = { .next = NULL };

	(void)state;
	peer->early = &behind;
	peer->gap = now;
	rdma_await(&d, peer);
	for (uint16_t i = 0; i < 8; i++) { /* others come, */
		wait_ms(200);
		peer->spoke = true;
		peer->seq_in++;
		assert_int_equal(peer->failure, NET_OK);
	}
	for (int i = 0; i < 8; i++) { /* then only those behind it */
		wait_ms(100);
		peer->spoke = true;
	}
	assert_int_equal(peer->failure, NET_RESTARTED);
	assert_string_equal(peer->why, "one of its packets did not come");
	peer->early = NULL;
	rdma_peer_fail(&d, peer);
	assert_int_equal(byes, 1);
}

static void one_of_which_nothing_is_expected_any_more_is_left_alone(void **state)
{
	(void)state;
	peer->flying = 1;
	rdma_await(&d, peer);
	wait_ms(100);
	/* what flew is over, and nobody had a reason to look at the peer since */
	peer->flying = 0;
	wait_ms(5000);
	assert_int_equal(pings, 0);
	assert_int_equal(peer->failure, NET_OK);
	assert_true(d.check_at == NET_NEVER);
	/* and silence begins anew when something is */
	peer->flying = 1;
	rdma_await(&d, peer);
	wait_ms(900);
	assert_int_equal(peer->failure, NET_OK);
}

/* An answer to the greeting with that number. */
static void welcome(uint64_t greeting)
{
	static const uint8_t packet[RDMA_HELLO_MAX];
	struct rdma_msg m = {
		.kind = RDMA_WELCOME, .from = 1, .whom = 0, .own_token = 4711, .greeting = greeting
	};

	rdma_greeted(&d, &m, packet, sizeof(packet));
}

/* Nobody answers. */
static void call_in_vain(void)
{
	peer->state = RDMA_IDLE;
	rdma_call(&d, peer);
	assert_int_equal(peer->state, RDMA_CALLING);
	wait_ms(1300);
	assert_int_equal(peer->failure, NET_UNREACHABLE);
}

static void is_up(void)
{
	assert_int_equal(peer->state, RDMA_UP);
	assert_int_equal(peer->failure, NET_OK);
	assert_int_equal(ups, 1);
	assert_int_equal(peer->token, 4711);
	assert_int_equal(peer->own_token, token);
	assert_non_null(peer->path);
	assert_int_not_equal(peer->serial,
			     serial); /* what becomes of the greeting does not matter any more */
	assert_int_equal(d.stats.drops[NET_DROP_STALE_HELLO], 0);
}

static void an_answer_after_it_was_given_up_makes_the_connection(void **state)
{
	(void)state;
	call_in_vain();
	peer->began_out.length = peer->began_in.length = 5;
	rdma_peer_fail(&d, peer);
	assert_int_equal(peer->state, RDMA_IDLE);
	welcome(greeted);
	is_up();
	/* nothing has begun on it yet, so nothing can begin likewise */
	assert_int_equal(peer->began_out.length, 0);
	assert_int_equal(peer->began_in.length, 0);
}

static void so_does_one_before_that_was_told(void **state)
{
	(void)state;
	call_in_vain();
	welcome(greeted);
	is_up();
}

static void so_does_one_while_the_way_is_left_until_the_next_greeting(void **state)
{
	(void)state;
	peer->state = RDMA_IDLE;
	rdma_call(&d, peer);
	rdma_break(&d, peer, NET_DEAD, "the way broke");
	rdma_peer_fail(&d, peer);
	assert_int_equal(peer->state, RDMA_CALLING);
	assert_null(peer->path);
	welcome(greeted);
	is_up();
}

static void no_other_one_does(void **state)
{
	uint64_t used;

	(void)state;
	call_in_vain();
	rdma_peer_fail(&d, peer);
	used = token;
	welcome(greeted + 1);
	assert_int_equal(peer->state, RDMA_IDLE);
	assert_int_equal(d.stats.drops[NET_DROP_STALE_HELLO], 1);
	/* nor the same once more, when the connection that it made is over */
	welcome(greeted);
	rdma_break(&d, peer, NET_CLOSED, NULL);
	rdma_peer_fail(&d, peer);
	welcome(greeted);
	assert_int_equal(peer->state, RDMA_IDLE);
	assert_int_equal(ups, 1);
	assert_int_equal(d.stats.drops[NET_DROP_STALE_HELLO], 2);
	/* and it has another token than the next one */
	rdma_call(&d, peer);
	assert_int_not_equal(token, used);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_silent_peer_is_asked_and_then_given_up, start,
						stop),
		cmocka_unit_test_setup_teardown(also_one_that_has_sent_half_a_message, start, stop),
		cmocka_unit_test_setup_teardown(so_is_one_of_which_a_packet_does_not_come, start,
						stop),
		cmocka_unit_test_setup_teardown(one_that_speaks_is_not, start, stop),
		cmocka_unit_test_setup_teardown(
			one_of_which_nothing_is_expected_any_more_is_left_alone, start, stop),
		cmocka_unit_test_setup_teardown(
			an_answer_after_it_was_given_up_makes_the_connection, start, stop),
		cmocka_unit_test_setup_teardown(so_does_one_before_that_was_told, start, stop),
		cmocka_unit_test_setup_teardown(
			so_does_one_while_the_way_is_left_until_the_next_greeting, start, stop),
		cmocka_unit_test_setup_teardown(no_other_one_does, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
