/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Portals beside bare sockets between the same two processes: the ping-pong of a socket that is
 * polled, and what a socket carries one way, over UDP, where the kernel cuts large datagrams
 * into segments, or in Ethernet frames. With PTL_NAL=udp or eth the ratios say what the library
 * costs; by default they say what shared memory saves.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <p3nal_utcp.h>
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
	SEGMENT = 60 * 1024,
	AHEAD = 1 << 20,
	TELL = 128 << 10,
	FRAME_TYPE = 0x88b6, /* the second of the two for local experiments */
	FRAMES = 32          /* sent by one call */
};

struct bare {
	const char *test, *floor;
	int fd;
	int segment;        /* bytes of one datagram, or of a frame's payload, on the wire */
	size_t head;        /* bytes before each payload: of Ethernet */
	double most, least; /* wanted of the ratios of latency and bandwidth; 0: nothing is */
	char out[65536], buf[65536];
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
	b->segment = mtu - 28 < SEGMENT ? mtu - 28 : SEGMENT;
}

/* The interface whose node id is ours; 0: there is none. */
static int own_interface(struct perf *p, int fd, struct ifreq *r)
{
	struct if_nameindex *all = if_nameindex();
	int found = 0;

	for (int i = 0; all && all[i].if_index && !found; i++) {
		unsigned int nid;

		if (p3tcp_my_nid(all[i].if_name, &nid) != 0 || nid != p->self.nid)
			continue;
		found = (int)all[i].if_index;
		memccpy(r->ifr_name, all[i].if_name, 0, sizeof(r->ifr_name));
	}
	if_freenameindex(all);
	return found && ioctl(fd, SIOCGIFMTU, r) == 0 ? found : 0;
}

/* A packet socket at each end, and the head of our frames. False: not here, or not to the other
 * one. */
static bool open_frames(struct perf *p, struct bare *b)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(FRAME_TYPE) };
	struct ether_header *head = (struct ether_header *)(void *)b->out;
	struct ifreq r = { .ifr_mtu = 0 };
	uint64_t mac = 0;

	b->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	a.sll_ifindex = b->fd >= 0 ? own_interface(p, b->fd, &r) : 0;
	if (a.sll_ifindex && bind(b->fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
		b->segment = r.ifr_mtu < SEGMENT ? r.ifr_mtu : SEGMENT;
		if (ioctl(b->fd, SIOCGIFHWADDR, &r) == 0)
			memcpy(&mac, r.ifr_hwaddr.sa_data, ETH_ALEN);
	}
	memcpy(head->ether_shost, &mac, ETH_ALEN);
	perf_ctl_send(p, mac);
	mac = mac ? perf_ctl_recv(p) : (perf_ctl_recv(p), 0);
	memcpy(head->ether_dhost, &mac, ETH_ALEN);
	head->ether_type = htons(FRAME_TYPE);
	b->head = sizeof(*head);
	/* what leaves by an interface does not come in by it */
	return mac && memcmp(head->ether_dhost, head->ether_shost, ETH_ALEN) != 0;
}

/* ---- there and back ---- */

static ssize_t take(struct bare *b)
{
	ssize_t n = recv(b->fd, b->buf, sizeof(b->buf), 0);

	return n < 0 ? n : n - (ssize_t)b->head;
}

static bool give(struct bare *b, size_t len)
{
	return send(b->fd, b->out, b->head + len, 0) >= 0;
}

static void hear(struct bare *b)
{
	while (take(b) < 0)
		if (errno != EAGAIN)
			perf_fail("recv of a bare socket: %m");
}

static void say(struct bare *b, size_t len)
{
	while (!give(b, len))
		if (errno != EAGAIN && errno != ENOBUFS)
			perf_fail("send of a bare socket: %m");
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

/* Bytes that are gone. */
static size_t frames(struct bare *b)
{
	struct iovec iov = { b->out, b->head + (size_t)b->segment };
	struct mmsghdr m[FRAMES];
	int n;

	for (int i = 0; i < FRAMES; i++)
		m[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	n = sendmmsg(b->fd, m, FRAMES, 0);
	if (n < 0 && errno != EAGAIN && errno != ENOBUFS)
		perf_fail("sendmmsg of frames: %m");
	return n > 0 ? (size_t)n * (size_t)b->segment : 0;
}

static size_t segments(struct bare *b)
{
	uint16_t segment = (uint16_t)b->segment;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(segment))];
	} c = { .align = { .cmsg_level = IPPROTO_UDP,
			   .cmsg_type = UDP_SEGMENT,
			   .cmsg_len = CMSG_LEN(sizeof(segment)) } };
	struct iovec iov = { b->out, (size_t)(SEGMENT / b->segment * b->segment) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.space,
			    .msg_controllen = sizeof(c.space) };

	if (iov.iov_len == segment)
		m.msg_controllen = 0;
	memcpy(CMSG_DATA(&c.align), &segment, sizeof(segment));
	if (sendmsg(b->fd, &m, 0) >= 0)
		return iov.iov_len;
	if (errno != EAGAIN && errno != ENOBUFS)
		perf_fail("sendmsg with segments: %m");
	return 0;
}

/* Says that it was all until that is heard: the receiver may have no room just then. */
static void end_flow(struct bare *b)
{
	uint64_t start = perf_now(), said = 0;

	while (take(b) != 1 && perf_ns(perf_now() - start) < 1e8)
		if (!said || perf_ns(perf_now() - said) > 1e6) {
			say(b, 1);
			said = perf_now();
		}
}

/* The receiver says how much it has in all; what is not heard of for a while was lost, and is
 * not sent again. */
static void flow0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct bare *b = arg;
	uint64_t sent = 0, there = 0, lost = 0, edge = LONG, last = perf_now(), heard = last, got;
	uint64_t parts;
	size_t i = 0;

	(void)p;
	while (i < samples) {
		uint64_t now;

		if (sent - lost - there < AHEAD)
			sent += b->head ? frames(b) : segments(b);
		if (take(b) == sizeof(got)) {
			memcpy(&got, b->buf + b->head, sizeof(got));
			there = got;
			heard = perf_now();
			if (lost > sent - there) /* some of it was only late */
				lost = sent - there;
		}
		now = perf_now();
		if (perf_ns(now - heard) > 5e6) {
			lost = sent - there;
			heard = now;
		}
		/* what is heard of at once has shared the time */
		for (parts = there >= edge ? (there - edge) / LONG + 1 : 0; parts && i < samples;
		     parts--, edge += LONG) {
			ticks[i] = (now - last) / parts;
			last += ticks[i++];
		}
	}
	end_flow(b);
}

static void tell(struct bare *b, uint64_t got)
{
	memcpy(b->out + b->head, &got, sizeof(got));
	(void)give(b, sizeof(got));
}

static void flow1(struct perf *p, void *arg, size_t samples)
{
	struct bare *b = arg;
	uint64_t got = 0, told = 0;

	(void)p;
	(void)samples;
	for (;;) {
		ssize_t n = take(b);

		if (n == 1) {
			say(b, 1);
			return;
		}
		got += n > 0 ? (uint64_t)n : 0;
		if (got - told >= TELL || (n < 0 && got != told)) {
			tell(b, got);
			told = got;
		}
	}
}

/* Drop what the last repetition left in the socket. */
static void empty(struct perf *p, void *arg, uint64_t seed)
{
	struct bare *b = arg;

	(void)p;
	(void)seed;
	while (recv(b->fd, b->buf, sizeof(b->buf), 0) >= 0)
		;
}

/* ---- the table ---- */

/* The end of a row: the ratio, and its limit from above or below. */
static const char *verdict(char text[static 40], double ratio, double most, double least)
{
	bool met = most > 0 ? ratio <= most : ratio >= least;

	text[0] = 0;
	if (most > 0 || least > 0)
		snprintf(text, 40, "  at %s %.2f: %s", most > 0 ? "most" : "least",
			 most > 0 ? most : least, met ? "met" : "missed");
	return text;
}

static void latency(struct perf *p, struct bare *b)
{
	const struct perf_pattern ping = { "the ping-pong of bare sockets", NULL, ping0, ping1,
					   NULL };
	struct perf_point bare = { .test = b->test,
				   .variant = "bare latency",
				   .size = SHORT,
				   .unit = "ns",
				   .scale = 0.5 / TRIPS };
	struct perf_result r, bare_r;
	struct perf_point pt;
	char said[40];
	double floor;

	perf_measure(p, &ping, b, &bare_r);
	floor = perf_values_of(&bare, &bare_r).median;
	perf_record(p, &bare, &bare_r);
	pt = perf_one_way(p, SHORT, &r);
	pt.test = b->test;
	pt.variant = "latency";
	pt.floor = b->floor;
	pt.ratio = perf_values_of(&pt, &r).median / floor;
	perf_record(p, &pt, &r);
	perf_say(p, "%-34s %10.1f ns %12.1f ns %8.2f%s%s", "64 bytes, half round trip", floor,
		 perf_values_of(&pt, &r).median, pt.ratio, perf_mark_both(p, &bare_r, &r),
		 verdict(said, pt.ratio, b->most, 0));
}

static void bandwidth(struct perf *p, struct bare *b)
{
	const struct perf_pattern flow = { "a stream of bare sockets", empty, flow0, flow1, NULL };
	struct perf_point bare = { .test = b->test,
				   .variant = "bare bandwidth",
				   .size = LONG,
				   .unit = "GB/s",
				   .is_rate = true,
				   .scale = LONG };
	struct perf_result r, bare_r;
	struct perf_point pt;
	char said[40];
	double floor;

	perf_measure(p, &flow, b, &bare_r);
	floor = perf_values_of(&bare, &bare_r).median;
	perf_record(p, &bare, &bare_r);
	pt = perf_stream(p, LONG, &r);
	pt.test = b->test;
	pt.variant = "bandwidth";
	pt.floor = b->floor;
	pt.ratio = perf_values_of(&pt, &r).median / floor;
	perf_record(p, &pt, &r);
	perf_say(p, "%-34s %8.3f GB/s %10.3f GB/s %8.2f%s%s", "1 MiB, one way", floor,
		 perf_values_of(&pt, &r).median, pt.ratio, perf_mark_both(p, &bare_r, &r),
		 verdict(said, pt.ratio, 0, b->least));
}

static void both(struct perf *p, struct bare *b)
{
	perf_buffers(p, LONG + 1);
	perf_say(p, "%-34s %13s %15s %8s", "", b->floor, "Portals", "ratio");
	latency(p, b);
	bandwidth(p, b);
}

void perf_udp(struct perf *p)
{
	static struct bare b = { .test = "udp", .floor = "bare UDP", .most = 1.25, .least = 0.9 };

	perf_title(p, "udp", "Portals beside bare UDP, same two processes");
	if (p->self.nid >> 28 == 0xf || p->other.nid >> 28 == 0xf) {
		perf_say(p, "   not measured: the nodes have no IPv4 address");
		return;
	}
	open_socket(p, &b);
	both(p, &b);
	perf_say(p,
		 "   bare UDP: polled sockets; segments of %d bytes cut and joined by the kernel;\n"
		 "   what is wanted at most and at least is meant for PTL_NAL=udp",
		 b.segment);
	close(b.fd);
}

void perf_eth(struct perf *p)
{
	static struct bare b = { .test = "eth", .floor = "bare frames" };

	perf_title(p, "eth", "Portals beside bare Ethernet frames, same two processes");
	if (!open_frames(p, &b)) {
		perf_say(p, "   not measured: it needs CAP_NET_RAW, and a node id each of an "
			    "Ethernet interface of its own");
	} else {
		both(p, &b);
		perf_say(p,
			 "   bare frames: polled packet sockets; frames of %d bytes, %d by a call",
			 b.segment, FRAMES);
	}
	if (b.fd >= 0)
		close(b.fd);
}
