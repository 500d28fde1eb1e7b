/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets in. Where the kernel joins segments of one sender a buffer holds many packets, and says how long each is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "nal/udp/udp.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define FEW 2 /* rounds that found something before more than one datagram is asked for at once */

bool udp_can_join(int fd)
{
	int one = 1;

	return setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)) == 0;
}

static void ready(struct udp *u, uint32_t i)
{
	struct msghdr *h = &u->in.msg[i].msg_hdr;

	h->msg_namelen = sizeof(u->in.from[i]);
	h->msg_controllen = u->segments_in ? sizeof(u->in.control[i].space) : 0;
	h->msg_flags = 0;
}

void udp_recv_init(struct udp *u)
{
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
	return len ? len : 1;
}

static void take(struct udp *u, struct net *n, uint32_t i, size_t len)
{
	size_t size = segment(&u->in.msg[i].msg_hdr, len);
	const uint8_t *bytes = u->in.iov[i].iov_base;
	struct dgram_addr from;

	udp_addr_from(&from, &u->in.from[i]);
	for (size_t at = 0; at < len; at += size)
		net_packet(n, &from, bytes + at, len - at < size ? len - at : size);
}

unsigned int udp_receive(void *link, struct net *n)
{
	struct udp *u = link;
	ssize_t len;
	int k;

	if (n->hits < FEW) {
		ready(u, 0);
		len = recvmsg(u->fd, &u->in.msg[0].msg_hdr, MSG_DONTWAIT);
		if (len < 0)
			return errno ==
			       ECONNREFUSED; /* somebody is not there: a reason to look again */
		take(u, n, 0, (size_t)len);
		return 1;
	}
	for (uint32_t i = 0; i < UDP_BUFFERS; i++)
		ready(u, i);
	k = recvmmsg(u->fd, u->in.msg, UDP_BUFFERS, MSG_DONTWAIT, NULL);
	for (int i = 0; i < k; i++)
		take(u, n, (uint32_t)i, u->in.msg[i].msg_len);
	return k > 0 ? (unsigned int)k : 0;
}
