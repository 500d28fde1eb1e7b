/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The UDP link's near socket: who gets it, what still comes to the shared one, and that nothing
 * is lost when it comes and goes. Packets are numbers, of each of two peers from 1 on.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "nal/udp/udp.h"

enum { ENOUGH = 500, BURST = 20 };

static struct udp *u;
static int peer[2];
static uint32_t sent[2], came[2];
static uint32_t by_near; /* of those that came */

static int listener(struct net_addr *a)
{
	union udp_sockaddr s = { .in4 = { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(s.in4);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &s.any, len), 0);
	assert_int_equal(getsockname(fd, &s.any, &len), 0);
	udp_addr_from(a, &s);
	return fd;
}

static int set_up(void **state)
{
	struct net_addr a;

	(void)state;
	u = calloc(1, sizeof(*u));
	assert_non_null(u);
	u->family = AF_INET;
	udp_near_init(u);
	u->fd = listener(&u->own);
	for (int i = 0; i < 2; i++) {
		peer[i] = listener(&a);
		sent[i] = came[i] = 0;
	}
	by_near = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	udp_near_close(u);
	close(u->fd);
	free(u);
	for (int i = 0; i < 2; i++)
		close(peer[i]);
	return 0;
}

/* Something is there when it returns. */
static void give(int who, int packets)
{
	struct pollfd there[] = { { u->fd, POLLIN, 0 }, { u->near.fd, POLLIN, 0 } };
	union udp_sockaddr s;
	socklen_t len = udp_addr_to(&s, &u->own);

	for (int i = 0; i < packets; i++) {
		uint32_t what[] = { (uint32_t)who, ++sent[who] };

		assert_int_equal(sendto(peer[who], what, sizeof(what), 0, &s.any, len),
				 sizeof(what));
	}
	assert_true(poll(there, 2, 10000) > 0);
}

/* A look as udp_receive() has it. */
static bool look_at(bool near)
{
	union udp_sockaddr s = { .any.sa_family = AF_INET };
	socklen_t len = sizeof(s);
	struct net_addr from;
	uint32_t what[2];
	ssize_t n = recvfrom(near ? u->near.fd : u->fd, what, sizeof(what), 0, &s.any, &len);

	if (n < 0 && errno == EAGAIN) {
		udp_near_vain(u, near);
		return false;
	}
	if (n < 0) {
		assert_true(near);
		udp_near_turn_away(u);
		return true;
	}
	assert_int_equal(n, sizeof(what));
	assert_true(what[0] < 2);
	assert_int_equal(what[1], ++came[what[0]]);
	by_near += near;
	udp_addr_from(&from, &s);
	if (udp_near_asks(u))
		udp_near_from(u, &from);
	udp_near_count(u, near, 1);
	return true;
}

static bool look(void)
{
	bool got = false;

	if (u->near.fd < 0 || udp_near_shared_first(u))
		got = look_at(false);
	if (!got && u->near.fd >= 0)
		got = look_at(true);
	return got;
}

/* All that was given comes, in order. */
static void take_all(void)
{
	for (int i = 0; i < 100000 && (came[0] < sent[0] || came[1] < sent[1]); i++)
		look();
	for (int i = 0; i < 2; i++)
		assert_int_equal(came[i], sent[i]);
}

/* A peer writes all the time; with how many of its packets there is a socket for it. */
static uint32_t make_near(int who)
{
	uint32_t before = sent[who];

	while (u->near.fd < 0 && sent[who] - before < ENOUGH) {
		give(who, BURST);
		take_all();
	}
	assert_true(u->near.fd >= 0);
	by_near = 0;
	give(who, BURST);
	take_all();
	assert_int_equal(by_near, BURST);
	return sent[who] - before;
}

static void who_writes_all_the_time_gets_a_socket(void **state)
{
	(void)state;
	assert_true(make_near(0) > 100);
}

static void others_come_to_the_shared_one(void **state)
{
	(void)state;
	make_near(0);
	for (int i = 0; i < 10; i++) {
		by_near = 0;
		give(1, 1);
		give(0, 10 * BURST);
		take_all();
		assert_int_equal(by_near, 10 * BURST);
	}
	assert_true(u->near.fd >= 0);
}

static void an_answer_of_others_is_not_waited_for_long(void **state)
{
	int looks = 0;

	(void)state;
	make_near(0);
	for (int i = 0; i < 100; i++)
		look();
	give(1, 1);
	for (; came[1] < sent[1]; looks++)
		look();
	assert_true(looks <= 16);
	for (int i = 0; i < 5; i++)
		look();
	/* none of the peer's can be there yet */
	udp_near_sent(u);
	give(1, 1);
	assert_true(look());
	take_all();
}

static void it_goes_when_others_write_as_well(void **state)
{
	(void)state;
	make_near(0);
	for (int i = 0; i < 10; i++) {
		give(0, BURST);
		give(1, BURST);
		take_all();
	}
	/* and who writes to an end does not get it back */
	assert_int_equal(u->near.fd, -1);
	make_near(1);
}

static void two_who_write_alike_have_none(void **state)
{
	(void)state;
	for (int i = 0; i < ENOUGH; i++) {
		give(0, 1 + i % 7);
		give(1, 1 + i % 5);
		take_all();
		assert_int_equal(u->near.fd, -1);
	}
}

static void all_is_taken_from_it_before_it_goes(void **state)
{
	int in_vain = 0;

	(void)state;
	for (int round = 0; round < 10; round++) {
		make_near(0);
		give(0, BURST);
		by_near = 0;
		for (; !udp_near_arm(u); in_vain++) {
			give(0, 1); /* to the shared one */
			assert_true(look());
		}
		assert_int_equal(by_near, BURST);
		assert_int_equal(in_vain, BURST);
		in_vain = 0;
		assert_int_equal(u->near.fd, -1);
		take_all();
		assert_int_equal(by_near, BURST);
		assert_true(udp_near_arm(u));
	}
}

/* What the network says of our packets comes to the near one, before what is in it. */
static void nothing_is_lost_behind_an_error(void **state)
{
	union udp_sockaddr to;
	socklen_t len = sizeof(to);

	(void)state;
	for (int armed = 0; armed < 2; armed++) {
		make_near(armed);
		assert_int_equal(getsockname(peer[armed], &to.any, &len), 0);
		give(armed, BURST);
		close(peer[armed]);
		assert_int_equal(sendto(u->fd, "?", 1, 0, &to.any, len), 1);
		usleep(1000);
		if (armed)
			assert_false(udp_near_arm(u));
		take_all();
		for (int i = 0; i < 40; i++)
			look();
		assert_int_equal(u->near.fd, -1);
		peer[armed] = -1;
	}
}

static void there_is_none_while_the_shared_one_is_slept_on(void **state)
{
	(void)state;
	u->net.thread.listed = true;
	for (int i = 0; i < ENOUGH; i++) {
		give(0, BURST);
		take_all();
	}
	assert_int_equal(u->near.fd, -1);
	u->net.thread.listed = false;
	make_near(0);
}

/* The port may be taken again for a moment only. */
static void nobody_else_shares_the_port(void **state)
{
	union udp_sockaddr s;
	socklen_t len = udp_addr_to(&s, &u->own);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1;

	(void)state;
	make_near(0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, &s.any, len), -1);
	udp_near_close(u);
	assert_int_equal(bind(fd, &s.any, len), -1);
	close(fd);
}

static void where_it_cannot_be_it_is_not_tried_again(void **state)
{
	int shared = u->fd;
	struct net_addr own = u->own, other;
	int fd = listener(&other);

	(void)state;
	u->own = other; /* somebody else's port */
	for (int i = 0; i < ENOUGH; i++) {
		union udp_sockaddr s;
		socklen_t len = udp_addr_to(&s, &own);
		uint32_t what[] = { 0, ++sent[0] };

		assert_true(sendto(peer[0], what, sizeof(what), 0, &s.any, len) > 0);
		take_all();
	}
	assert_int_equal(u->near.fd, -1);
	assert_true(u->near.never);
	assert_false(udp_near_asks(u));
	assert_int_equal(u->fd, shared);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(who_writes_all_the_time_gets_a_socket),
		TEST(others_come_to_the_shared_one),
		TEST(an_answer_of_others_is_not_waited_for_long),
		TEST(it_goes_when_others_write_as_well),
		TEST(two_who_write_alike_have_none),
		TEST(all_is_taken_from_it_before_it_goes),
		TEST(nothing_is_lost_behind_an_error),
		TEST(there_is_none_while_the_shared_one_is_slept_on),
		TEST(nobody_else_shares_the_port),
		TEST(where_it_cannot_be_it_is_not_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
