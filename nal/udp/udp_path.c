/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Paths: connected sockets for the few peers to which messages go all the time. For each
 * datagram on the shared socket the kernel looks up the route, which is a good part of the
 * cost of a short message. For a connected socket it knows the route. Nothing is received on a
 * path, as peers send to the shared socket. So a path has a port of its own, and carries only
 * packets that may come from anywhere.
 *
 * If something between the hosts blocks such packets, the machine notices that nothing arrives
 * and sends its identity (CONFIRM) again. Then the path is given up for a long while, and for
 * a longer one if the next path does not work for as long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "nal/udp/udp.h"
#include "nal/udp/udp_call.h"

#define OFTEN 64u               /* rounds of sending to a peer before a path is worth it */
#define NEVER (UINT32_MAX / 16) /* limit on `need` after repeated failures */

void udp_paths_init(struct udp *u)
{
	for (uint32_t i = 0; i < UDP_PATHS; i++)
		u->path[i] = (struct udp_path){ .fd = -1, .need = OFTEN };
	/* a user who chooses the ports may have told a firewall about them, too */
	u->no_paths = base_config()->ptl_def_portlist != NULL;
}

static void shut(struct udp_path *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->sent = 0;
}

void udp_paths_close(struct udp *u)
{
	for (uint32_t i = 0; i < UDP_PATHS; i++)
		shut(&u->path[i]);
}

static struct udp_path *find_udp_path(struct udp *u, const struct net_addr *to)
{
	for (uint32_t i = 0; i < UDP_PATHS; i++) {
		struct udp_path *w = &u->path[(u->last_path + i) % UDP_PATHS];

		if (udp_addr_same(&w->to, to)) {
			u->last_path = (u->last_path + i) % UDP_PATHS;
			return w;
		}
	}
	return NULL;
}

/* A socket connected to `to`, from our address and any free port. -1: none. */
static int connected(const struct udp *u, const struct net_addr *to)
{
	int fd = socket(u->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), least = 1;
	struct net_addr own = u->own;
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
			net_widen(fd, SO_SNDBUFFORCE, SO_SNDBUF);
			/* nothing is received there */
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
			return fd;
		}
	}
	close(fd);
	return -1;
}

/* The path did not work, or works no longer. */
static void give_path_up(struct udp_path *w)
{
	shut(w);
	if (w->need < NEVER)
		w->need *= 16;
}

/* Do all queued packets go to one peer that ignores their source address? Gives up the paths
 * of peers for which the source matters now: they did not get what went by their path. */
static bool one_way(struct udp *u)
{
	const struct udp_packet *first = &u->out.packet[0];
	bool one = true;

	for (uint32_t i = 0; i < u->out.packets; i++) {
		const struct udp_packet *p = &first[i];
		struct udp_path *w = p->anywhere ? NULL : find_udp_path(u, &p->to);

		if (w && w->fd >= 0)
			give_path_up(w);
		one = one && p->anywhere && !p->probe && udp_addr_same(&p->to, &first->to);
	}
	return one;
}

struct udp_path *udp_path_of(struct udp *u)
{
	const struct udp_packet *p = &u->out.packet[0];
	struct udp_path *w;

	if (u->no_paths || !one_way(u))
		return NULL;
	w = find_udp_path(u, &p->to);
	if (!w) {
		u->last_path = u->next_path++ % UDP_PATHS;
		w = &u->path[u->last_path];
		shut(w);
		w->need = OFTEN;
		w->to = p->to;
	}
	w->sent++;
	if (w->fd < 0) {
		if (w->sent < w->need)
			return NULL;
		w->fd = connected(u, &p->to);
		w->sent = 0;
		if (w->fd < 0) {
			give_path_up(w);
			return NULL;
		}
	}
	/* an earlier failure had another cause: the peer had no time to answer */
	if (w->sent >= w->need)
		w->need = OFTEN;
	return w;
}

/* Is the error about this packet at this time only? Then the path is as good as before. */
static bool passing(long err)
{
	return err == EAGAIN || err == ENOBUFS || err == EINTR || err == EMSGSIZE;
}

bool udp_path_send(struct udp_path *w, const struct iovec *packet)
{
	long result = udp_call_send(w->fd, packet->iov_base, packet->iov_len, NULL, 0);

	if (result < 0 && !passing(-result))
		give_path_up(w);
	return result >= 0;
}

uint32_t udp_path_send_all(struct udp_path *w, struct mmsghdr *m, uint32_t n)
{
	uint32_t at = 0;

	while (at < n) {
		int k = udp_call_send_many(w->fd, m + at, n - at);

		if (k < 0) {
			if (!passing(errno))
				give_path_up(w);
			break;
		}
		at += (uint32_t)k;
	}
	return at;
}
