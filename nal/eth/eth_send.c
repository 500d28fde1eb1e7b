/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Outgoing frames. The packets of one round are collected and go to the kernel in one call:
 * heads from here and bodies from where they are. The kernel's copy is the only one.
 *
 * A send ring would save that copy on a card that reads memory itself, but then we copy to the
 * ring. Frames that stay on the host use the loopback interface or a virtual one. For these the
 * kernel copies out of the ring to pages that it must allocate first.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nal/eth/eth.h"

#define ALIGN        16u
#define BEFORE       ((uint32_t)(sizeof(struct eth_wire_frame) + ALIGN - 1) & ~(ALIGN - 1))
#define FULL_WAIT_MS 1 /* for room, before packets are dropped */

/* The frame's own head lies before the packet's, which is aligned. */
static struct eth_wire_frame *frame_before(uint8_t *packet)
{
	return (struct eth_wire_frame *)(void *)(packet - sizeof(struct eth_wire_frame));
}

void *eth_room(void *link, size_t len)
{
	struct eth *e = link;
	struct eth_out *o = &e->out;

	if (len > e->mtu || o->frames == ETH_FRAMES || BEFORE + len > sizeof(o->heads) - o->used)
		return NULL;
	return o->heads + o->used + BEFORE;
}

static bool address_frame(const struct eth *e, struct eth_wire_frame *w, const struct net_addr *to,
			  uint32_t length)
{
	struct eth_frame f = { .type = e->type, .from = e->endpoint, .length = length };
	struct eth_place p;

	eth_addr_to(&p, to);
	f.to = p.endpoint;
	/* frames to processes of this host carry no hardware address */
	if (!p.local) {
		memcpy(f.destination, p.mac, sizeof(f.destination));
		memcpy(f.source, e->mac, sizeof(f.source));
	}
	eth_frame_encode(w, &f);
	return p.local;
}

void eth_transmit(void *link, const struct dgram_packet *p)
{
	struct eth *e = link;
	struct eth_out *o = &e->out;
	struct eth_wire_frame *w = frame_before(o->heads + o->used + BEFORE);
	struct iovec *iov = o->iov[o->frames];
	size_t len = p->head_len + p->body_len, n = 0;
	bool local;

	if (len > e->mtu)
		return;
	local = address_frame(e, w, p->to, (uint32_t)len);
	iov[n++] = (struct iovec){ w, sizeof(*w) };
	o->used += BEFORE;
	if (p->head == (uint8_t *)(w + 1)) {
		iov[0].iov_len += p->head_len;
		o->used += ((uint32_t)p->head_len + ALIGN - 1) & ~(ALIGN - 1);
	} else {
		/* it was held back, and stays where it is until it is sent */
		iov[n++] = (struct iovec){ p->head, p->head_len };
	}
	for (int i = 0; i < p->segments; i++)
		iov[n++] = p->body[i];
	o->msg[o->frames++].msg_hdr = (struct msghdr){
		.msg_name = &o->to[local],
		.msg_namelen = sizeof(o->to[local]),
		.msg_iov = iov,
		.msg_iovlen = n,
	};
}

void eth_send_init(struct eth *e)
{
	for (int local = 0; local < 2; local++)
		e->out.to[local] = (struct sockaddr_ll){
			.sll_family = AF_PACKET,
			.sll_protocol = htons(e->type),
			.sll_ifindex = local ? e->loopback : e->ifindex,
		};
}

/* Returns how many frames the kernel has taken, or -1. Uses raw system calls: a thread must not
 * be cancelled here, because it holds the lock. */
static long send_frames(const struct eth *e, struct mmsghdr *m, uint32_t n)
{
	const struct msghdr *h = &m->msg_hdr;

	if (n > 1 || h->msg_iovlen > 1) {
		long k = syscall(SYS_sendmmsg, e->fd, m, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		/* a container's filter may refuse it */
		if (k >= 0 || (errno != ENOSYS && errno != EPERM))
			return k;
		return syscall(SYS_sendmsg, e->fd, h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 1;
	}
	return syscall(SYS_sendto, e->fd, h->msg_iov->iov_base, h->msg_iov->iov_len,
		       MSG_DONTWAIT | MSG_NOSIGNAL, h->msg_name, h->msg_namelen) < 0
		       ? -1
		       : 1;
}

/* Send some of the first frames. Returns how many are sent or dropped. */
static uint32_t send_some_frames(struct eth *e, struct mmsghdr *m, uint32_t n, bool *waited)
{
	struct pollfd f = { .fd = e->fd, .events = POLLOUT };
	long k = send_frames(e, m, n);

	if (k > 0)
		return (uint32_t)k;
	switch (errno) {
	case EINTR:
		return 0;
	case EAGAIN:
	case ENOBUFS:
		if (*waited)
			return n; /* dropped, as on any network that is full */
		*waited = true;
		poll(&f, 1, FULL_WAIT_MS);
		return 0;
	default:
		/* too long, or no interface for the moment: dropped; the sender's timeout
		 * notices it */
		return 1;
	}
}

void eth_flush(void *link)
{
	struct eth *e = link;
	struct eth_out *o = &e->out;
	bool waited = false;

	for (uint32_t at = 0, tries = 0; at < o->frames && tries < 2 * ETH_FRAMES; tries++)
		at += send_some_frames(e, &o->msg[at], o->frames - at, &waited);
	o->frames = o->used = 0;
}
