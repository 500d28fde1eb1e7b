/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which socket a packet of the UDP link leaves by: the shared one, or one connected to a peer that is written to all
 * the time. Seen from the peer's socket.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nal/udp/udp.h"

enum { SHARED_PORT = 9, ENOUGH = 200 };

static struct udp *u;
static struct dgram_addr peer;
static int far_end;
static uint8_t head[] = "what is sent";

static int listener(struct dgram_addr *a)
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
	(void)state;
	u = calloc(1, sizeof(*u));
	assert_non_null(u);
	u->family = AF_INET;
	udp_ways_init(u);
	far_end = listener(&peer);
	u->own = peer;
	u->own.word[0] = (u->own.word[0] & ~(uint64_t)UINT16_MAX) | SHARED_PORT;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	udp_ways_close(u);
	free(u);
	close(far_end);
	return 0;
}

static bool by_way(const struct dgram_addr *to, bool anywhere)
{
	const struct udp_packet p = {
		.to = *to, .pieces = 1, .len = sizeof(head), .anywhere = anywhere
	};

	u->out.iov[0] = (struct iovec){ head, sizeof(head) };
	return udp_way_send(u, &p);
}

/* Packets until one has a way of its own, that one included; 0: none had. */
static int until_way(const struct dgram_addr *to, int most)
{
	for (int i = 1; i <= most; i++)
		if (by_way(to, true))
			return i;
	return 0;
}

static void who_is_written_to_often_gets_a_way_of_its_own(void **state)
{
	union udp_sockaddr s;
	socklen_t len = sizeof(s);
	char bytes[64];

	(void)state;
	assert_true(until_way(&peer, ENOUGH) > 10);
	assert_true(by_way(&peer, true));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(recvfrom(far_end, bytes, sizeof(bytes), 0, &s.any, &len),
				 sizeof(head));
		assert_memory_equal(bytes, head, sizeof(head));
		assert_int_equal(s.in4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
		assert_int_not_equal(ntohs(s.in4.sin_port), SHARED_PORT);
	}
	assert_true(recv(far_end, bytes, sizeof(bytes), 0) < 0);
}

static void what_says_where_we_are_goes_by_the_shared_socket(void **state)
{
	(void)state;
	for (int i = 0; i < ENOUGH; i++)
		assert_false(by_way(&peer, false));
}

static void a_way_that_may_not_lead_there_is_given_up(void **state)
{
	(void)state;
	assert_true(until_way(&peer, ENOUGH) > 0);
	/* the machine says who it is again, since nothing arrives */
	assert_false(by_way(&peer, false));
	assert_int_equal(until_way(&peer, ENOUGH), 0);
	assert_true(until_way(&peer, 16 * ENOUGH) > 0);
}

static void a_way_to_nobody_is_given_up(void **state)
{
	(void)state;
	assert_true(until_way(&peer, ENOUGH) > 0);
	close(far_end);
	far_end = -1;
	by_way(&peer, true); /* refused, as the next call is told */
	assert_false(by_way(&peer, true));
	assert_int_equal(until_way(&peer, ENOUGH), 0);
}

static void there_are_few_ways(void **state)
{
	struct dgram_addr to[UDP_WAYS + 1];
	int fd[UDP_WAYS + 1], used = 0;

	(void)state;
	for (uint32_t i = 0; i <= UDP_WAYS; i++) {
		fd[i] = listener(&to[i]);
		assert_true(until_way(&to[i], ENOUGH) > 0);
	}
	for (uint32_t i = 0; i < UDP_WAYS; i++)
		used += u->way[i].fd >= 0;
	assert_int_equal(used, UDP_WAYS);
	/* the last one's is there, the first one's was taken for it */
	assert_true(by_way(&to[UDP_WAYS], true));
	assert_false(by_way(&to[0], true));
	for (uint32_t i = 0; i <= UDP_WAYS; i++)
		close(fd[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(who_is_written_to_often_gets_a_way_of_its_own),
		TEST(what_says_where_we_are_goes_by_the_shared_socket),
		TEST(a_way_that_may_not_lead_there_is_given_up),
		TEST(a_way_to_nobody_is_given_up),
		TEST(there_are_few_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
