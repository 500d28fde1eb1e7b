/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ways: sockets connected to those few who are written to all the time, for what goes to nobody
 * else. The kernel looks for the route of every datagram of the socket that all others share,
 * which is a good part of what a short message takes; of a connected socket it knows it. Nothing
 * is received there: what comes, comes to the shared socket, so a way has a port of its own, and
 * carries only packets that may come from anywhere. Where something between the hosts lets no
 * such packets pass the machine notices that nothing arrives and says who it is again; then the
 * way is given up for a long while, and for a longer one if the next does not work for as long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "nal/udp/udp.h"
#include "nal/udp/udp_call.h"

#define OFTEN 64u               /* times that something was sent before one is worth it */
#define NEVER (UINT32_MAX / 16) /* where it did not work so often */

void udp_paths_init(struct udp *u)
{
	for (uint32_t i = 0; i < UDP_PATHS; i++)
		u->path[i] = (struct udp_path){ .fd = -1, .need = OFTEN };
	/* who says which ports are used may have told a firewall, too */
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

static struct udp_path *find(struct udp *u, const struct net_addr *to)
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

/* From our address, by whichever port is free. */
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
			/* nobody has to say anything there */
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
			return fd;
		}
	}
	close(fd);
	return -1;
}

/* It did not work, or it works no longer. */
static void give_up(struct udp_path *w)
{
	shut(w);
	if (w->need < NEVER)
		w->need *= 16;
}

/* Is all that waits for one peer, which does not look at where it comes from? A peer that is to
 * look has not had what went by its way. */
static bool one_way(struct udp *u)
{
	const struct udp_packet *first = &u->out.packet[0];
	bool one = true;

	for (uint32_t i = 0; i < u->out.packets; i++) {
		const struct udp_packet *p = &first[i];
		struct udp_path *w = p->anywhere ? NULL : find(u, &p->to);

		if (w && w->fd >= 0)
			give_up(w);
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
	w = find(u, &p->to);
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
			give_up(w);
			return NULL;
		}
	}
	/* so it was something else that failed: a peer that had no time to answer */
	if (w->sent >= w->need)
		w->need = OFTEN;
	return w;
}

/* Of this packet at this time, so the way is as good as before. */
static bool passing(long err)
{
	return err == EAGAIN || err == ENOBUFS || err == EINTR || err == EMSGSIZE;
}

bool udp_path_send(struct udp_path *w, const struct iovec *packet)
{
	long result = udp_call_send(w->fd, packet->iov_base, packet->iov_len, NULL, 0);

	if (result < 0 && !passing(-result))
		give_up(w);
	return result >= 0;
}

uint32_t udp_path_send_all(struct udp_path *w, struct mmsghdr *m, uint32_t n)
{
	uint32_t at = 0;

	while (at < n) {
		int k = udp_call_send_many(w->fd, m + at, n - at);

		if (k < 0) {
			if (!passing(errno))
				give_up(w);
			break;
		}
		at += (uint32_t)k;
	}
	return at;
}
