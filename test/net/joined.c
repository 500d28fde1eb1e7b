/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets that are longer than what the link carries, and go in segments which arrive joined. They
 * are used where that is so, as the counters of portals-stat say, and their contents are right.
 * That holds also when the link comes to carry less, and when segments arrive one by one from some
 * time on. The link is the loopback interface of a network namespace, with PTL_UDP_MTU.
 */
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/support/ptest.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO     104
#endif

enum { PORTAL = 4, LONG = 16 << 20, BODIES = 4, MTU = 1400, LESS = 1300 };
enum { WORD_PACKETS, WORD_CHANGED, WORD_RATE };

/* Bytes per second from which on the machine is to try it: it does at 0.65e9, and the best
 * moment of a put is faster. */
#define FAST 1000000000u

/* Bytes that a packet carried, so long that it was many segments; or so few that it was one. */
enum { MANY = 4 * MTU, ONE = MTU };

static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static unsigned char bytes[LONG];
static uint64_t seed;

static void begin(void)
{
	pt_open();
	eq = pt_eq(64);
	if (pt_is_target())
		pt_post(PORTAL, 0,
			pt_md(bytes, LONG,
			      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			      eq),
			PTL_RETAIN, NULL);
	else
		md = pt_bind(bytes, LONG, PTL_MD_EVENT_START_DISABLE, eq);
	pt_barrier();
}

/* Packets that came to the target so far. A moment in the library, since the counters are copied
 * now and then. */
static uint64_t packets(void)
{
	ptl_event_t ev;
	int which;

	if (pt_is_target()) {
		pt_code(PtlEQPoll(&eq, 1, 10, &ev, &which), PTL_EQ_EMPTY);
		*pt_word(WORD_PACKETS) = pt_stat(getpid(), "packets received and used");
	}
	pt_barrier();
	return *pt_word(WORD_PACKETS);
}

/* Some long bodies, all of them right; how many bytes of them came with a packet. */
static uint64_t move(void)
{
	uint64_t before = packets(), after;

	for (int i = 0; i < BODIES; i++) {
		seed++;
		if (pt_is_initiator()) {
			double start, rate;

			pt_fill(bytes, LONG, seed, 0);
			start = pt_now();
			pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), PORTAL, 0, 0, 0, 0));
			pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
			rate = LONG / (pt_now() - start);
			if (rate > (double)*pt_word(WORD_RATE))
				*pt_word(WORD_RATE) = (uint64_t)rate;
		} else {
			pt_is(pt_next(eq, PTL_EVENT_PUT_END).mlength, LONG);
			pt_holds(bytes, LONG, seed, 0);
		}
		pt_barrier();
	}
	after = packets();
	pt_barrier();
	return (uint64_t)BODIES * LONG / (after - before);
}

/* Until packets are as long as that. Where puts are too slow for that to be tried, a sanitizer's
 * patience is in vain. */
static bool moved_in_many(double seconds)
{
	double begun = pt_lived(), end = begun + pt_patience(seconds);
	bool done = false, over = false;

	while (!done && !over) {
		done = move() > MANY;
		/* both as one of them sees it */
		if (pt_rank == 0)
			*pt_word(WORD_CHANGED) =
				pt_lived() > (*pt_word(WORD_RATE) < FAST ? begun + seconds : end);
		pt_barrier();
		over = *pt_word(WORD_CHANGED);
		pt_barrier();
	}
	return done;
}

/* They are tried only where packets are a tenth of a millisecond long, or less. */
static void begin_in_many(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), none = 0, one = 1;
	bool can = setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0 &&
		   setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)) == 0;

	close(fd);
	if (!can)
		pt_skip("this kernel does not cut datagrams into segments and join them");
	/* a case before may have left it otherwise */
	if (pt_rank == 0)
		*pt_word(WORD_CHANGED) =
			(uint64_t)system("ip link set lo mtu 65536; "
					 "ethtool -K lo tx-udp-segmentation on") == 0;
	pt_barrier();
	begin();
	if (moved_in_many(20))
		return;
	if (*pt_word(WORD_RATE) < FAST)
		pt_skip("no more than %u MB/s here", (unsigned)(*pt_word(WORD_RATE) / 1000000));
	pt_fail(__FILE__, __LINE__, "never tried, or in vain");
}

/* By one of the two, for both. */
static void change(const char *how)
{
	if (pt_rank == 0)
		*pt_word(WORD_CHANGED) = system(how) == 0;
	pt_barrier();
	if (!*pt_word(WORD_CHANGED))
		pt_skip("not allowed here, or not installed: %s", how);
	pt_barrier();
}

static void segments_that_arrive_joined_are_one_packet(void)
{
	begin_in_many();
	for (int i = 0; i < 4; i++)
		move();
}

/* Other processes of the namespace may have changed it already. */
static void what_the_interface_carries_may_become_less(void)
{
	char how[64];

	begin_in_many();
	snprintf(how, sizeof(how), "ip link set lo mtu %d", LESS);
	change(how);
	/* no packet arrives as long as it would take too much at once; where many were lost it
	 * is tried a minute later */
	pt_true(moved_in_many(80));
	change("ip link set lo mtu 65536");
}

static void segments_may_arrive_one_by_one_from_some_time_on(void)
{
	uint64_t each = MANY;

	begin_in_many();
	change("ethtool -K lo tx-udp-segmentation off");
	for (int i = 0; i < 20 && each >= ONE; i++)
		each = move();
	change("ethtool -K lo tx-udp-segmentation on");
	pt_truef(each < ONE, "%d bytes each", (int)each);
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_LONG(segments_that_arrive_joined_are_one_packet, 2, 120),
		PT_LONG(what_the_interface_carries_may_become_less, 2, 120),
		PT_LONG(segments_may_arrive_one_by_one_from_some_time_on, 2, 120),
	};

	return PT_MAIN(argc, argv, tests);
}
