/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ways: sockets connected to those few who are written to all the time, for packets that go alone. The kernel looks for
 * the route of every packet of the socket that all others share, which is a good part of what a short message
 * takes; of a connected socket it knows it. Nothing is received there: what comes, comes to the shared socket, so a way
 * has a port of its own, and carries only packets that may come from anywhere. Where something between the hosts lets
 * no such packets pass the machine notices that nothing arrives and says who it is again; then the way is
 * given up for a long while.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "nal/udp/udp.h"
#include "nal/udp/udp_call.h"

#define OFTEN 64u               /* packets before one is worth it */
#define NEVER (UINT32_MAX / 16) /* where it did not work so often */

void udp_ways_init(struct udp *u)
{
	for (uint32_t i = 0; i < UDP_WAYS; i++)
		u->way[i] = (struct udp_way){ .fd = -1, .need = OFTEN };
	/* who says which ports are used may have told a firewall, too */
	u->no_ways = base_config()->ptl_def_portlist != NULL;
}

static void shut(struct udp_way *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->sent = 0;
}

void udp_ways_close(struct udp *u)
{
	for (uint32_t i = 0; i < UDP_WAYS; i++)
		shut(&u->way[i]);
}

static struct udp_way *find(struct udp *u, const struct dgram_addr *to)
{
	for (uint32_t i = 0; i < UDP_WAYS; i++) {
		struct udp_way *w = &u->way[(u->last_way + i) % UDP_WAYS];

		if (!memcmp(&w->to, to, sizeof(*to))) {
			u->last_way = (u->last_way + i) % UDP_WAYS;
			return w;
		}
	}
	return NULL;
}

/* From our address, by whichever port is free. */
static int connected(const struct udp *u, const struct dgram_addr *to)
{
	int fd = socket(u->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), least = 1;
	struct dgram_addr own = u->own;
	union udp_sockaddr s;
	socklen_t len;

	if (fd < 0)
		return -1;
	own.word[0] &= ~(uint64_t)UINT16_MAX;
	len = udp_addr_to(&s, &own);
	if (bind(fd, &s.any, len) == 0) {
		len = udp_addr_to(&s, to);
		if (connect(fd, &s.any, len) == 0) {
			udp_never_fragment(u, fd);
			/* nobody has to say anything there */
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
			return fd;
		}
	}
	close(fd);
	return -1;
}

/* It did not work, or it works no longer. */
static void give_up(struct udp_way *w)
{
	shut(w);
	if (w->need < NEVER)
		w->need *= 16;
}

bool udp_way_send(struct udp *u, const struct udp_packet *p)
{
	const struct iovec *head = &u->out.iov[p->iov];
	struct udp_way *w = u->no_ways ? NULL : find(u, &p->to);
	long result;

	if (u->no_ways)
		return false;
	if (!w) {
		u->last_way = u->next_way++ % UDP_WAYS;
		w = &u->way[u->last_way];
		shut(w);
		w->need = OFTEN;
		w->to = p->to;
	}
	if (!p->anywhere) {
		if (w->fd >= 0)
			give_up(w);
		return false;
	}
	if (w->fd < 0) {
		if (++w->sent < w->need)
			return false;
		w->fd = connected(u, &p->to);
		if (w->fd < 0) {
			give_up(w);
			return false;
		}
	}
	result = udp_call_send(w->fd, head->iov_base, head->iov_len, NULL, 0);
	if (result >= 0)
		return true;
	if (result != -EAGAIN && result != -ENOBUFS && result != -EINTR)
		give_up(w);
	return false;
}
