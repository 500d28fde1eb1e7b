/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets in. Where the kernel joins segments of one sender a buffer holds many packets, and
 * says how long each is. While little comes it is not asked for that: a look that finds nothing
 * is what a waiting process does most, and the plainest call is the fastest. Packets say
 * themselves how long they are, too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h> /* needs time.h before it */

#include "base/cpu.h"
#include "nal/udp/udp.h"
#include "nal/udp/udp_call.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define ERRORS_MOST 64 /* taken at a time */
/* rounds that found something before more than one datagram is asked for at once */
#define FEW 2
/* How long the sender of packets is asked for after one of which it may matter: greetings come
 * again sooner. */
#define NAMED_NS 250000000ull

bool udp_can_join(int fd)
{
	int one = 1;

	return setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)) == 0;
}

static void ready_datagram(struct udp *u, uint32_t i)
{
	struct msghdr *h = &u->in.msg[i].msg_hdr;

	h->msg_namelen = sizeof(u->in.from[i]);
	h->msg_controllen = u->segments_in ? sizeof(u->in.control[i].space) : 0;
	h->msg_flags = 0;
}

static void ask_for_senders(struct udp *u)
{
	u->in.named_until = base_now_ns() + NAMED_NS;
}

/* Is it still time? */
static bool asks_for_senders(struct udp *u)
{
	if (u->in.named_until && base_now_ns() > u->in.named_until)
		u->in.named_until = 0;
	return u->in.named_until;
}

void udp_recv_init(struct udp *u)
{
	ask_for_senders(u);
	for (uint32_t i = 0; i < UDP_BUFFERS; i++) {
		struct msghdr *h = &u->in.msg[i].msg_hdr;

		u->in.iov[i] = (struct iovec){ u->in.bytes + (size_t)i * UDP_BUFFER, UDP_BUFFER };
		h->msg_name = &u->in.from[i];
		h->msg_iov = &u->in.iov[i];
		h->msg_iovlen = 1;
		h->msg_control = u->in.control[i].space;
	}
}

/* How long each segment is; the whole, if it is one. */
static size_t segment(struct msghdr *h, size_t len)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		int size;

		if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO)
			continue;
		memcpy(&size, CMSG_DATA(c), sizeof(size));
		if (size > 0 && (size_t)size < len)
			return (size_t)size;
	}
	return len;
}

/* Where the packet at `bytes` ends: after a segment, or after as many as it says it is. */
static size_t step_at(const uint8_t *bytes, size_t left, size_t size)
{
	size_t whole = size < left ? dgram_packet_length(bytes, left) : left;

	whole = whole > size ? whole : size;
	return whole < left ? whole : left;
}

/* A buffer with packets of `size` bytes, of which the last may be shorter, or with one that went
 * in segments of so many; `from` NULL: it was not asked. */
static void take_datagram(struct udp *u, struct net *n, uint32_t i, const union udp_sockaddr *from,
			  size_t len, size_t size)
{
	const uint8_t *bytes = u->in.iov[i].iov_base;
	struct net_addr addr;
	size_t step;

	if (!len) { /* nobody's, and counted as such */
		net_packet(n, NULL, bytes, 0);
		return;
	}
	if (dgram_packet_names(bytes, len))
		ask_for_senders(u);
	if (from)
		udp_addr_from(&addr, from);
	step = step_at(bytes, len, size);
	net_joined(n, (uint32_t)((len + step - 1) / step));
	for (size_t at = 0; at < len; at += step) {
		step = step_at(bytes + at, len - at, size);
		net_packet(n, from ? &addr : NULL, bytes + at, step);
	}
}

/* Does this message of the queue of errors say that nothing listens where a packet went? */
static bool says_refused(struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		struct sock_extended_err e;

		if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
		    !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			continue;
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		return (e.ee_origin == SO_EE_ORIGIN_ICMP && e.ee_type == ICMP_DEST_UNREACH &&
			e.ee_code == ICMP_PORT_UNREACH) ||
		       (e.ee_origin == SO_EE_ORIGIN_ICMP6 && e.ee_type == ICMP6_DST_UNREACH &&
			e.ee_code == ICMP6_DST_UNREACH_NOPORT);
	}
	return false;
}

/* Takes what the network says of our packets. Anybody can say it, so it is up to the machine
 * whether it means anything. */
static void drain(struct udp *u, struct net *n)
{
	uint8_t bytes[256]; /* greetings are shorter */
	union {
		struct cmsghdr align;
		char space[256];
	} control;

	u->errors_pending = false;
	for (int i = 0; i < ERRORS_MOST; i++) {
		struct iovec iov = { bytes, sizeof(bytes) };
		struct msghdr h = {
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.space,
			.msg_controllen = sizeof(control.space),
		};
		ssize_t len = recvmsg(u->fd, &h, MSG_ERRQUEUE | MSG_DONTWAIT);

		if (len < 0)
			return;
		if (says_refused(&h))
			net_refused(n, bytes, (size_t)len);
	}
	u->errors_pending = true;
}

/* The kernel has something to say that is no datagram. */
static bool erred(long err)
{
	return err != EAGAIN && err != EINTR;
}

/*
 * One datagram, without what the kernel knows of it. Not even who sent it, while connections go
 * on and nobody greets: for that the kernel has to look at the packet's header, which is on its
 * way from the sender's cache. The greeting that comes then goes by what the job told of its
 * sender, or comes again when it is asked. Not by the function of the C library, in which a
 * thread may be cancelled: it would be with the lock held, and where there are threads the way
 * there and back takes time.
 */
static int receive_one(struct udp *u, struct net *n)
{
	union udp_sockaddr *from = asks_for_senders(u) ? &u->in.from[0] : NULL;
	socklen_t size = sizeof(*from);
	long len = udp_call_recv(u->fd, u->in.bytes, UDP_BUFFER, from, from ? &size : NULL);

	if (len < 0)
		return (int)len;
	take_datagram(u, n, 0, from, (size_t)len, dgram_packet_length(u->in.bytes, (size_t)len));
	return 1;
}

static int receive_many(struct udp *u, struct net *n)
{
	int k;

	for (uint32_t i = 0; i < UDP_BUFFERS; i++)
		ready_datagram(u, i);
	k = recvmmsg(u->fd, u->in.msg, UDP_BUFFERS, MSG_DONTWAIT, NULL);
	if (k < 0 && udp_call_refused(errno))
		return receive_one(u, n);
	for (int i = 0; i < k; i++) {
		size_t len = u->in.msg[i].msg_len;

		take_datagram(u, n, (uint32_t)i, &u->in.from[i], len,
			      segment(&u->in.msg[i].msg_hdr, len));
	}
	return k < 0 ? -errno : k;
}

unsigned int udp_receive(void *link, struct net *n)
{
	struct udp *u = link;
	int k;

	if (u->errors_pending)
		drain(u, n);
	k = n->hits < FEW ? receive_one(u, n) : receive_many(u, n);
	if (k >= 0)
		return (unsigned int)k;
	if (!erred(-k))
		return 0;
	drain(u, n);
	return 1;
}
