/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets out. The packets that the machine transmits in one round are collected and go to the
 * kernel in one call: packets of one length to one address as one datagram which the kernel, or the
 * card, cuts into segments.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/usermem.h"
#include "nal/udp/udp.h"
#include "nal/udp/udp_call.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SEGMENTS_MOST 64u    /* as the kernel has it */
#define DATAGRAM_MOST 65000u /* of all segments together */
#define COPY_MOST     2048u  /* of a body that is copied behind its head */
#define FULL_WAIT_MS  1 /* for room in the socket's buffer, before packets are given up for lost */

void *udp_room(void *link, size_t len)
{
	struct udp *u = link;
	struct udp_out *o = &u->out;

	if (o->packets == UDP_PACKETS || len > UDP_HEADS - o->used ||
	    o->iovs + 1 + DGRAM_SEGMENTS > UDP_IOVECS)
		return NULL;
	return o->heads + o->used;
}

/* Where there is room for all of the packet. */
static void copy_body(uint8_t *to, const struct dgram_packet *p)
{
	for (int i = 0; i < p->segments; i++) {
		base_copy_user(to, p->body[i].iov_base, p->body[i].iov_len);
		to += p->body[i].iov_len;
	}
}

/* Heads and bodies of short packets in turns are many short parts to the kernel, which it takes
 * longer to gather than we do. */
void udp_transmit(void *link, const struct dgram_packet *p)
{
	struct udp *u = link;
	struct udp_out *o = &u->out;
	struct udp_packet *q = &o->packet[o->packets++];

	q->to = *p->to;
	q->iov = o->iovs;
	q->segments = 1;
	q->len = (uint32_t)(p->head_len + p->body_len);
	q->probe = p->probe;
	q->anywhere = p->anywhere;
	q->cut = q->len > u->mtu && q->len > udp_whole(u, p->to);
	o->iov[o->iovs++] = (struct iovec){ p->head, p->head_len };
	if (p->segments && p->body_len <= COPY_MOST) {
		copy_body(p->head + p->head_len, p);
		o->iov[q->iov].iov_len = q->len;
		o->used += q->len; /* the next one follows it */
		return;
	}
	if (p->segments)
		memcpy(&o->iov[o->iovs], p->body, (size_t)p->segments * sizeof(*p->body));
	q->segments += (uint32_t)p->segments;
	o->iovs += (uint32_t)p->segments;
	o->used += ((uint32_t)p->head_len + 15) & ~15u;
}

uint32_t udp_train(uint32_t mtu)
{
	uint32_t segments = DATAGRAM_MOST / mtu;

	return mtu * (!segments ? 1 : segments > SEGMENTS_MOST ? SEGMENTS_MOST : segments);
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
	uint32_t first;
};

/* How many packets from `first` on can be one datagram: all as long as the first, the last one
 * maybe shorter. */
static uint32_t alike(const struct udp *u, uint32_t first)
{
	const struct udp_packet *p = &u->out.packet[first], *q;
	uint32_t n = 1, total = p->len;

	if (!u->segments_out || p->probe || p->len > u->mtu)
		return 1;
	while (first + n < u->out.packets && n < SEGMENTS_MOST) {
		q = p + n;
		if (q->probe || q->len > p->len || q->len + total > DATAGRAM_MOST ||
		    !udp_addr_same(&q->to, &p->to))
			break;
		total += q->len;
		n++;
		if (q->len < p->len)
			break;
	}
	return n;
}

/* Pieces that follow each other in memory become one; how many there are then. */
static size_t joined(struct iovec *iov, size_t parts)
{
	size_t last = 0;

	for (size_t i = 1; i < parts; i++) {
		if ((char *)iov[last].iov_base + iov[last].iov_len == iov[i].iov_base)
			iov[last].iov_len += iov[i].iov_len;
		else
			iov[++last] = iov[i];
	}
	return last + 1;
}

/* All but the address. */
static void wrap_packets(struct udp *u, struct parcel *p, struct mmsghdr *m, uint32_t first,
			 uint32_t count)
{
	const struct udp_packet *a = &u->out.packet[first], *z = a + count - 1;

	p->first = first;
	memset(m, 0, sizeof(*m));
	m->msg_hdr.msg_iov = &u->out.iov[a->iov];
	m->msg_hdr.msg_iovlen = joined(m->msg_hdr.msg_iov, z->iov + z->segments - a->iov);
	if (count > 1 || a->cut) {
		uint16_t size = (uint16_t)(a->cut ? u->mtu : a->len);
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

/* How many the kernel has taken, or -1. A single packet, as most are where somebody waits for an
 * answer, goes by the plainest call there is (see receive_one). */
static int send_messages(const struct udp *u, struct mmsghdr *m, uint32_t n)
{
	const struct msghdr *h = &m->msg_hdr;

	if (n > 1 || h->msg_iovlen > 1 || h->msg_control)
		return udp_call_send_many(u->fd, m, n);
	return syscall(SYS_sendto, u->fd, h->msg_iov->iov_base, h->msg_iov->iov_len,
		       MSG_DONTWAIT | MSG_NOSIGNAL, h->msg_name, h->msg_namelen) < 0
		       ? -1
		       : 1;
}

/* Is it in segments that were not too long when the interface was looked at first? */
static bool too_long(const struct udp *u, struct msghdr *h)
{
	const struct cmsghdr *c = h->msg_control ? CMSG_FIRSTHDR(h) : NULL;
	uint16_t size = 0;

	if (c)
		memcpy(&size, CMSG_DATA(c), sizeof(size));
	return size > u->mtu && size <= u->mtu_once;
}

/* Sends parcels from `at` on; how many are gone, one way or another. */
static uint32_t send_some_datagrams(struct udp *u, struct mmsghdr *m, uint32_t n, bool *waited,
				    bool *again)
{
	int k = send_messages(u, m, n);
	struct pollfd f = { .fd = u->fd, .events = POLLOUT };

	if (k > 0) {
		*again = false;
		return (uint32_t)k;
	}
	if (errno != EAGAIN && errno != EINTR)
		u->errors_pending = true;
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
		/* some kernels say it so of a segment that the interface has carried */
		udp_narrow(u);
		if (too_long(u, &m->msg_hdr))
			return 1;
		/* an interface that cannot do it after all */
		if (m->msg_hdr.msg_control && u->segments_out) {
			u->segments_out = false;
			return n;
		}
		return 1;
	case EMSGSIZE:
		if (udp_narrow(u))
			return 1;
		/* fall through */
	default:
		/* of an earlier packet, by whoever says so; this one was not tried then. Else it
		 * is too long, or there is no route: lost, and found out by who waits for an
		 * answer */
		*again = !*again;
		return !*again;
	}
}

static void address_parcel(const struct udp *u, struct parcel *p, struct mmsghdr *m)
{
	m->msg_hdr.msg_name = &p->to;
	m->msg_hdr.msg_namelen = udp_addr_to(&p->to, &u->out.packet[p->first].to);
}

/* By `way`, if there is one; what does not get through there by the shared socket. */
static void send_all(struct udp *u, struct udp_path *path)
{
	struct parcel parcel[UDP_PACKETS];
	struct mmsghdr m[UDP_PACKETS];
	uint32_t n = 0, at = 0, tries = 0;
	bool waited = false, again = false;

	while (at < u->out.packets) {
		uint32_t k = alike(u, at);

		wrap_packets(u, &parcel[n], &m[n], at, k);
		n++;
		at += k;
	}
	at = path ? udp_path_send_all(path, m, n) : 0;
	for (uint32_t i = at; i < n; i++)
		address_parcel(u, &parcel[i], &m[i]);
	for (; at < n && tries < 2 * UDP_PACKETS; tries++)
		at += send_some_datagrams(u, m + at, n - at, &waited, &again);
}

void udp_flush(void *link)
{
	struct udp *u = link;
	struct udp_out *o = &u->out;
	struct udp_path *path;

	if (!o->packets)
		return;
	path = udp_path_of(u);
	if (!path || o->packets > 1 || o->packet[0].segments > 1 || o->packet[0].cut)
		send_all(u, path);
	else if (!udp_path_send(path, &o->iov[0]))
		send_all(u, NULL);
	o->packets = o->iovs = o->used = 0;
}
