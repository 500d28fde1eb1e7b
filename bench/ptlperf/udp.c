/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Portals beside bare UDP between the same two processes: the ping-pong of a socket that is polled, and what a socket
 * carries one way when the kernel cuts large datagrams into segments. With PTL_NAL=udp the ratios say what the
 * library costs; by default they say what shared memory saves.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lat.h"
#include "link.h"
#include "peer.h"
#include "report.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO     104
#endif

enum {
	TRIPS = 64,
	SHORT = 64,
	LONG = 1 << 20,
	PIECE = 60 * 1024,
	AHEAD = 1 << 20,
	TELL = 128 << 10
};

struct bare {
	int fd;
	int segment; /* bytes of one datagram on the wire */
	char buf[65536];
};

static void open_socket(struct perf *p, struct bare *b)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(p->self.nid) };
	socklen_t len = sizeof(a);
	int bytes = 8 << 20, one = 1, mtu = 0;

	b->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (b->fd < 0 || bind(b->fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    getsockname(b->fd, (struct sockaddr *)&a, &len) < 0)
		perf_fail("a bare UDP socket: %m");
	if (setsockopt(b->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(b->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(b->fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
	/* each says its port and hears the other's */
	perf_ctl_send(p, a.sin_port);
	a.sin_port = (in_port_t)perf_ctl_recv(p);
	a.sin_addr.s_addr = htonl(p->other.nid);
	if (connect(b->fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		perf_fail("connect of a bare UDP socket: %m");
	len = sizeof(mtu);
	if (getsockopt(b->fd, IPPROTO_IP, IP_MTU, &mtu, &len) < 0 || mtu < 576)
		mtu = 1500;
	b->segment = mtu - 28 < PIECE ? mtu - 28 : PIECE;
}

/* ---- there and back ---- */

static void hear(struct bare *b)
{
	while (recv(b->fd, b->buf, sizeof(b->buf), 0) < 0)
		if (errno != EAGAIN)
			perf_fail("recv of a bare UDP socket: %m");
}

static void say(struct bare *b, size_t len)
{
	while (send(b->fd, b->buf, len, 0) < 0)
		if (errno != EAGAIN && errno != ENOBUFS)
			perf_fail("send of a bare UDP socket: %m");
}

static void ping0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct bare *b = arg;
	uint64_t last = perf_now();

	(void)p;
	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		for (int t = 0; t < TRIPS; t++) {
			say(b, SHORT);
			hear(b);
		}
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

static void ping1(struct perf *p, void *arg, size_t samples)
{
	(void)p;
	for (size_t left = samples * TRIPS; left; left--) {
		hear(arg);
		say(arg, SHORT);
	}
}

/* ---- one way ---- */

static bool piece(struct bare *b)
{
	uint16_t segment = (uint16_t)b->segment;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(segment))];
	} c = { .align = { .cmsg_level = IPPROTO_UDP,
			   .cmsg_type = UDP_SEGMENT,
			   .cmsg_len = CMSG_LEN(sizeof(segment)) } };
	struct iovec iov = { b->buf, (size_t)(PIECE / b->segment * b->segment) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.space,
			    .msg_controllen = sizeof(c.space) };

	if (iov.iov_len == segment)
		m.msg_controllen = 0;
	memcpy(CMSG_DATA(&c.align), &segment, sizeof(segment));
	if (sendmsg(b->fd, &m, 0) >= 0)
		return true;
	if (errno != EAGAIN && errno != ENOBUFS)
		perf_fail("sendmsg with segments: %m");
	return false;
}

/* The receiver says how much it has in all; what is not heard of for a while was lost, and is not sent again. */
static void flow0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct bare *b = arg;
	uint64_t sent = 0, there = 0, lost = 0, edge = LONG, last = perf_now(), heard = last, got;
	size_t i = 0;

	(void)p;
	while (i < samples) {
		uint64_t now;

		if (sent - lost - there < AHEAD && piece(b))
			sent += (uint64_t)(PIECE / b->segment * b->segment);
		if (recv(b->fd, &got, sizeof(got), 0) == sizeof(got)) {
			there = got;
			heard = perf_now();
		}
		now = perf_now();
		if (perf_ns(now - heard) > 5e6) {
			lost = sent - there;
			heard = now;
		}
		for (; there >= edge && i < samples; edge += LONG) {
			ticks[i++] = now - last;
			last = now;
		}
	}
	say(b, 1);
}

static void flow1(struct perf *p, void *arg, size_t samples)
{
	struct bare *b = arg;
	uint64_t total = samples * (uint64_t)LONG, got = 0, told = 0;

	(void)p;
	while (got < total + AHEAD) {
		ssize_t n = recv(b->fd, b->buf, sizeof(b->buf), 0);

		if (n == 1)
			break;
		got += n > 0 ? (uint64_t)n : 0;
		if (got - told >= TELL || (n < 0 && got != told)) {
			(void)!send(b->fd, &got, sizeof(got), 0);
			told = got;
		}
	}
	(void)!send(b->fd, &got, sizeof(got), 0);
}

/* What the last repetition left in the socket. */
static void empty(struct perf *p, void *arg, uint64_t seed)
{
	struct bare *b = arg;

	(void)p;
	(void)seed;
	while (recv(b->fd, b->buf, sizeof(b->buf), 0) >= 0)
		;
}

/* ---- the table ---- */

static void latency(struct perf *p, struct bare *b)
{
	const struct perf_pattern ping = { "the ping-pong of bare UDP", NULL, ping0, ping1, NULL };
	struct perf_point bare = { .test = "udp",
				   .variant = "bare latency",
				   .size = SHORT,
				   .unit = "ns",
				   .scale = 0.5 / TRIPS };
	struct perf_result r;
	struct perf_point pt;
	double floor;

	perf_measure(p, &ping, b, &r);
	floor = perf_values_of(&bare, &r).median;
	perf_record(p, &bare, &r);
	pt = perf_one_way(p, SHORT, &r);
	pt.test = "udp";
	pt.variant = "latency";
	pt.floor = "bare UDP";
	pt.ratio = perf_values_of(&pt, &r).median / floor;
	perf_record(p, &pt, &r);
	perf_say(p, "%-34s %10.1f ns %12.1f ns %8.2f", "64 bytes, half round trip", floor,
		 perf_values_of(&pt, &r).median, pt.ratio);
}

static void bandwidth(struct perf *p, struct bare *b)
{
	const struct perf_pattern flow = { "a stream of bare UDP", empty, flow0, flow1, NULL };
	struct perf_point bare = { .test = "udp",
				   .variant = "bare bandwidth",
				   .size = LONG,
				   .unit = "GB/s",
				   .is_rate = true,
				   .scale = LONG };
	struct perf_result r;
	struct perf_point pt;
	double floor;

	perf_measure(p, &flow, b, &r);
	floor = perf_values_of(&bare, &r).median;
	perf_record(p, &bare, &r);
	pt = perf_stream(p, LONG, &r);
	pt.test = "udp";
	pt.variant = "bandwidth";
	pt.floor = "bare UDP";
	pt.ratio = perf_values_of(&pt, &r).median / floor;
	perf_record(p, &pt, &r);
	perf_say(p, "%-34s %8.3f GB/s %10.3f GB/s %8.2f", "1 MiB, one way", floor,
		 perf_values_of(&pt, &r).median, pt.ratio);
}

void perf_udp(struct perf *p)
{
	static struct bare b;

	perf_title(p, "udp", "Portals beside bare UDP, same two processes");
	if (p->self.nid >> 28 == 0xf || p->other.nid >> 28 == 0xf) {
		perf_say(p, "   not measured: the nodes have no IPv4 address");
		return;
	}
	perf_buffers(p, LONG + 1);
	open_socket(p, &b);
	perf_say(p, "%-34s %13s %15s %8s", "", "bare UDP", "Portals", "ratio");
	latency(p, &b);
	bandwidth(p, &b);
	perf_say(p,
		 "   bare UDP: polled sockets; segments of %d bytes cut and joined by the kernel",
		 b.segment);
	close(b.fd);
}
