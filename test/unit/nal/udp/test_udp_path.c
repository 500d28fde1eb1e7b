/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets of the UDP link on their way out: which socket they leave by, the shared one or one
 * connected to a peer that is written to all the time, and how they are put together. Seen from
 * the peer's socket.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nal/udp/udp.h"

enum { ENOUGH = 200, HEAD = 5, LONGEST = 9000 };

static struct udp *u;
static struct net_addr peer;
static int far_end;
static uint8_t head[] = "what is sent";

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
	(void)state;
	u = calloc(1, sizeof(*u));
	assert_non_null(u);
	u->family = AF_INET;
	udp_paths_init(u);
	u->out.heads = malloc(UDP_HEADS);
	assert_non_null(u->out.heads);
	u->mtu = LONGEST;
	far_end = listener(&peer);
	u->fd = listener(&u->own);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	udp_paths_close(u);
	close(u->fd);
	free(u->out.heads);
	free(u);
	close(far_end);
	return 0;
}

static struct udp_packet packet(const struct net_addr *to, bool anywhere)
{
	return (struct udp_packet){
		.to = *to, .segments = 1, .len = sizeof(head), .anywhere = anywhere
	};
}

static bool by_way(const struct net_addr *to, bool anywhere)
{
	const struct iovec bytes = { head, sizeof(head) };
	struct udp_path *way;

	u->out.packets = 1;
	u->out.packet[0] = packet(to, anywhere);
	way = udp_path_of(u);
	return way && udp_path_send(way, &bytes);
}

/* Packets until one has a way of its own, that one included; 0: none had. */
static int until_way(const struct net_addr *to, int most)
{
	for (int i = 1; i <= most; i++)
		if (by_way(to, true))
			return i;
	return 0;
}

static void who_is_written_to_often_gets_a_way_of_its_own(void **state)
{
	union udp_sockaddr s = { .any.sa_family = AF_INET };
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
		assert_int_not_equal(ntohs(s.in4.sin_port), (uint16_t)u->own.word[0]);
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
	struct net_addr to[UDP_PATHS + 1];
	int fd[UDP_PATHS + 1], used = 0;

	(void)state;
	for (uint32_t i = 0; i <= UDP_PATHS; i++) {
		fd[i] = listener(&to[i]);
		assert_true(until_way(&to[i], ENOUGH) > 0);
	}
	for (uint32_t i = 0; i < UDP_PATHS; i++)
		used += u->path[i].fd >= 0;
	assert_int_equal(used, UDP_PATHS);
	/* the last one's is there, the first one's was taken for it */
	assert_true(by_way(&to[UDP_PATHS], true));
	assert_false(by_way(&to[0], true));
	for (uint32_t i = 0; i <= UDP_PATHS; i++)
		close(fd[i]);
}

/* A packet with a body in two parts, of bytes that count from `first`. */
static void give(const struct net_addr *to, uint32_t first, size_t len)
{
	static uint8_t bytes[UDP_PACKETS][LONGEST];
	uint8_t *body = bytes[u->out.packets], *at = udp_room(u, LONGEST);
	const struct iovec parts[] = { { body, len / 3 }, { body + len / 3, len - len / 3 } };

	assert_non_null(at);
	memset(at, (int)first, HEAD);
	for (size_t i = 0; i < len; i++)
		body[i] = (uint8_t)(first + i);
	udp_transmit(u, &(struct dgram_packet){ .to = to,
						.head = at,
						.head_len = HEAD,
						.body = parts,
						.segments = len ? 2 : 0,
						.body_len = len,
						.anywhere = true });
}

/* That packet arrives; from which port. */
static uint16_t take(uint32_t first, size_t len)
{
	struct pollfd there = { .fd = far_end, .events = POLLIN };
	uint8_t bytes[LONGEST + 1];
	union udp_sockaddr s = { .any.sa_family = AF_INET };
	socklen_t size = sizeof(s);

	assert_int_equal(poll(&there, 1, 10000), 1);
	assert_int_equal(recvfrom(far_end, bytes, sizeof(bytes), 0, &s.any, &size), HEAD + len);
	for (size_t i = 0; i < HEAD; i++)
		assert_int_equal(bytes[i], (uint8_t)first);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[HEAD + i], (uint8_t)(first + i));
	return ntohs(s.in4.sin_port);
}

/* Short ones and long ones, alike and not; from which port they come, all from the same. */
static uint16_t mixture(void)
{
	static const size_t len[] = { 1400, 1400, 1400, 1399, 1400, 3000, 3000, 0, 2048, 2049, 17 };
	const uint32_t n = sizeof(len) / sizeof(len[0]);
	uint16_t port;

	for (uint32_t i = 0; i < n; i++)
		give(&peer, i, len[i]);
	udp_flush(u);
	port = take(0, len[0]);
	for (uint32_t i = 1; i < n; i++)
		assert_int_equal(take(i, len[i]), port);
	return port;
}

static void many_packets_go_by_ways_too(void **state)
{
	uint16_t shared = (uint16_t)u->own.word[0], way;

	for (int segments = 0; segments < 2; segments++) {
		int i = 0;

		u->segments_out = segments && udp_can_segment(u->fd);
		for (way = shared; i < ENOUGH && way == shared; i++)
			way = mixture();
		assert_int_not_equal(way, shared);
		assert_int_equal(mixture(), way);
		udp_paths_close(u);
		udp_paths_init(u);
	}
	(void)state;
}

static void what_is_for_several_goes_by_the_shared_socket(void **state)
{
	struct net_addr other;
	int fd = listener(&other);

	(void)state;
	for (uint32_t i = 0; i < ENOUGH; i++) {
		give(&peer, i, 1400);
		give(&other, i, 1400);
		udp_flush(u);
		assert_int_equal(take(i, 1400), (uint16_t)u->own.word[0]);
	}
	close(fd);
}

static void what_does_not_get_through_goes_by_the_shared_socket(void **state)
{
	uint16_t shared = (uint16_t)u->own.word[0];
	int none = open("/dev/null", O_WRONLY);

	(void)state;
	u->segments_out = udp_can_segment(u->fd);
	for (int i = 0; i < ENOUGH; i++)
		mixture();
	assert_int_not_equal(mixture(), shared);
	assert_true(none >= 0);
	assert_true(dup2(none, u->path[u->last_path].fd) >= 0);
	assert_int_equal(mixture(), shared);
	assert_int_equal(mixture(), shared);
	close(none);
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
		TEST(many_packets_go_by_ways_too),
		TEST(what_is_for_several_goes_by_the_shared_socket),
		TEST(what_does_not_get_through_goes_by_the_shared_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
