/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets out. What the machine transmits in one round is collected and goes to the kernel in one call: packets of
 * one length to one address as one datagram which the kernel, or the card, cuts into segments.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nal/udp/udp.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SEGMENTS_MOST 64u    /* as the kernel has it */
#define DATAGRAM_MOST 65000u /* of all segments together */
#define FULL_WAIT_MS  1 /* for room in the socket's buffer, before packets are given up for lost */

void *udp_room(void *link, size_t len)
{
	struct udp *u = link;
	struct udp_out *o = &u->out;

	if (o->packets == UDP_PACKETS || len > UDP_HEADS - o->used ||
	    o->iovs + 1 + DGRAM_PIECES > UDP_IOVECS)
		return NULL;
	return o->heads + o->used;
}

void udp_transmit(void *link, const struct dgram_packet *p)
{
	struct udp *u = link;
	struct udp_out *o = &u->out;
	struct udp_packet *q = &o->packet[o->packets++];

	q->to = *p->to;
	q->iov = o->iovs;
	q->pieces = 1 + (uint32_t)p->pieces;
	q->len = (uint32_t)(p->head_len + p->body_len);
	q->probe = p->probe;
	q->anywhere = p->anywhere;
	o->iov[o->iovs++] = (struct iovec){ p->head, p->head_len };
	if (p->pieces)
		memcpy(&o->iov[o->iovs], p->body, (size_t)p->pieces * sizeof(*p->body));
	o->iovs += (uint32_t)p->pieces;
	o->used += ((uint32_t)p->head_len + 15) & ~15u;
}

bool udp_can_segment(int fd)
{
	int none = 0;

	return setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0;
}

/* One datagram to be: one packet, or several as segments. */
struct parcel {
	union udp_sockaddr to;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))];
	uint32_t first, count;
};

static bool same_addr(const struct dgram_addr *a, const struct dgram_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* How many packets from `first` on can be one datagram: all as long as the first, the last one maybe shorter. */
static uint32_t alike(const struct udp *u, uint32_t first)
{
	const struct udp_packet *p = &u->out.packet[first], *q;
	uint32_t n = 1, total = p->len;

	if (!u->segments_out || p->probe || p->len > u->mtu)
		return 1;
	while (first + n < u->out.packets && n < SEGMENTS_MOST) {
		q = p + n;
		if (q->probe || q->len > p->len || q->len + total > DATAGRAM_MOST ||
		    !same_addr(&q->to, &p->to))
			break;
		total += q->len;
		n++;
		if (q->len < p->len)
			break;
	}
	return n;
}

static void wrap(struct udp *u, struct parcel *p, struct mmsghdr *m, uint32_t first, uint32_t count)
{
	const struct udp_packet *a = &u->out.packet[first], *z = a + count - 1;

	p->first = first;
	p->count = count;
	memset(m, 0, sizeof(*m));
	m->msg_hdr.msg_name = &p->to;
	m->msg_hdr.msg_namelen = udp_addr_to(&p->to, &a->to);
	m->msg_hdr.msg_iov = &u->out.iov[a->iov];
	m->msg_hdr.msg_iovlen = z->iov + z->pieces - a->iov;
	if (count > 1) {
		uint16_t size = (uint16_t)a->len;
		struct cmsghdr *c;

		m->msg_hdr.msg_control = p->control;
		m->msg_hdr.msg_controllen = sizeof(p->control);
		c = CMSG_FIRSTHDR(&m->msg_hdr);
		c->cmsg_level = IPPROTO_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(size));
		memcpy(CMSG_DATA(c), &size, sizeof(size));
	}
}

/* How many the kernel has taken, or -1. A single packet, as most are where somebody waits for an answer, goes by the
 * plainest call there is (see receive_one). */
static int hand_over(const struct udp *u, struct mmsghdr *m, uint32_t n)
{
	const struct msghdr *h = &m->msg_hdr;

	if (n > 1 || h->msg_iovlen > 1 || h->msg_control)
		return sendmmsg(u->fd, m, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return syscall(SYS_sendto, u->fd, h->msg_iov->iov_base, h->msg_iov->iov_len,
		       MSG_DONTWAIT | MSG_NOSIGNAL, h->msg_name, h->msg_namelen) < 0
		       ? -1
		       : 1;
}

/* Sends parcels from `at` on; how many are gone, one way or another. */
static uint32_t send_some(struct udp *u, struct mmsghdr *m, uint32_t n, bool *waited, bool *again)
{
	int k = hand_over(u, m, n);
	struct pollfd f = { .fd = u->fd, .events = POLLOUT };

	if (k > 0) {
		*again = false;
		return (uint32_t)k;
	}
	if (errno != EAGAIN && errno != EINTR)
		u->told = true;
	switch (errno) {
	case EINTR:
		return 0;
	case EAGAIN:
	case ENOBUFS:
		if (*waited)
			return n; /* lost, as on any network that is full */
		*waited = true;
		poll(&f, 1, FULL_WAIT_MS);
		return 0;
	case EINVAL:
	case EIO:
		/* an interface that cannot do it after all */
		if (m->msg_hdr.msg_control) {
			u->segments_out = false;
			return n;
		}
		return 1;
	default:
		/* of an earlier packet, by whoever says so; this one was not tried then. Else it is too long, or there is
		 * no route: lost, and found out by who waits for an answer */
		*again = !*again;
		return !*again;
	}
}

static void send_all(struct udp *u)
{
	struct parcel parcel[UDP_PACKETS];
	struct mmsghdr m[UDP_PACKETS];
	uint32_t n = 0, at = 0, tries = 0;
	bool waited = false, again = false;

	while (at < u->out.packets) {
		uint32_t k = alike(u, at);

		wrap(u, &parcel[n], &m[n], at, k);
		n++;
		at += k;
	}
	for (at = 0; at < n && tries < 2 * UDP_PACKETS; tries++)
		at += send_some(u, m + at, n - at, &waited, &again);
}

void udp_flush(void *link)
{
	struct udp *u = link;
	struct udp_out *o = &u->out;

	if (!o->packets)
		return;
	if (o->packets > 1 || o->packet[0].pieces > 1 || !udp_way_send(u, &o->packet[0]))
		send_all(u);
	o->packets = o->iovs = o->used = 0;
}
