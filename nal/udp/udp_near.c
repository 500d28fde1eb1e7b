/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The near socket. What arrives at a connected socket the kernel delivers without looking for a
 * route first, which is a twentieth of what a short message takes. So while nearly all packets
 * come from one address there is a second socket at our port, connected to there, which gets
 * them; all others still come to the shared one. The near one is looked at each time, and the
 * shared one now and then: when something was sent, since no answer can be there yet, and after
 * some looks.
 *
 * Only who looks all the time has it. The helper thread is told of what comes to the shared
 * socket alone, so before that begins the near one is turned away from its peer and emptied.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "nal/udp/udp.h"

#define SAMPLE 32u /* packets, of one of which it is asked where it came from */
#define ALIKE  8u  /* such answers in a row before it is worth a socket */
#define LOOKS  16u /* of which one is at the shared socket */
#define OTHER_COST                                                                                 \
	32u /* one packet by the shared one is as bad as so many by the near one are good, */
#define OTHER_MOST 128u /* and it goes when all is as bad as that */

void udp_near_init(struct udp *u)
{
	u->near = (struct udp_near){ .fd = -1 };
}

void udp_near_close(struct udp *u)
{
	if (u->near.fd >= 0)
		close(u->near.fd);
	u->near = (struct udp_near){ .fd = -1, .never = u->near.never };
}

/* Two sockets may share a port if both say so, and are of one user, at the time when the second
 * one takes it. */
static bool share_port(int fd, int share)
{
	return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof(share)) == 0;
}

static bool bind_again(const struct udp *u, int fd)
{
	union udp_sockaddr s;
	socklen_t len = udp_addr_to(&s, &u->own);
	bool done = share_port(u->fd, 1) && share_port(fd, 1) && bind(fd, &s.any, len) == 0;

	share_port(u->fd, 0);
	share_port(fd, 0);
	return done;
}

static bool connected_to(int fd, const struct net_addr *to)
{
	union udp_sockaddr s;
	socklen_t len = udp_addr_to(&s, to);

	return connect(fd, &s.any, len) == 0;
}

/* What comes between the two steps may come to either socket. */
static bool open_to(struct udp *u, const struct net_addr *peer)
{
	int fd = socket(u->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	net_widen(fd, SO_RCVBUFFORCE, SO_RCVBUF);
	if ((u->segments_in && !udp_can_join(fd)) || !bind_again(u, fd) ||
	    !connected_to(fd, peer)) {
		close(fd);
		return false;
	}
	u->near = (struct udp_near){ .fd = fd, .behind = true };
	return true;
}

bool udp_near_asks(const struct udp *u)
{
	return u->near.packets >= SAMPLE && u->near.fd < 0 && !u->near.never &&
	       !u->net.thread.listed;
}

void udp_near_from(struct udp *u, const struct net_addr *from)
{
	struct udp_near *near = &u->near;

	near->packets = 0;
	near->alike = udp_addr_same(&near->peer, from) ? near->alike + 1 : 0;
	near->peer = *from;
	if (near->alike >= ALIKE && !open_to(u, from))
		near->never = true;
}

void udp_near_count(struct udp *u, bool by_near, uint32_t packets)
{
	struct udp_near *near = &u->near;

	if (near->fd < 0) {
		near->packets += packets;
	} else if (by_near) {
		near->others -= packets < near->others ? packets : near->others;
	} else if (near->behind) {
		/* not all of them are the peer's: there are not that many for ever */
		near->behind = (near->others += packets) <= OTHER_MOST;
	} else {
		near->others += OTHER_COST * packets;
		if (near->others > OTHER_MOST)
			udp_near_turn_away(u);
	}
}

bool udp_near_shared_first(struct udp *u)
{
	/* what came before it was there is in the other one */
	return !u->near.away && (u->near.behind || u->near.looks++ % LOOKS == 0);
}

void udp_near_vain(struct udp *u, bool by_near)
{
	if (by_near) {
		if (u->near.away)
			udp_near_close(u);
	} else if (u->near.behind) {
		u->near.behind = false;
		u->near.others = 0;
	}
}

void udp_near_turn_away(struct udp *u)
{
	if (u->near.fd < 0 || u->near.away)
		return;
	/* to nobody but ourselves, and we do not write to us */
	u->near.away = connected_to(u->near.fd, &u->own);
	if (!u->near.away) /* what is in it is lost, as on any network */
		udp_near_close(u);
}

bool udp_near_arm(void *link)
{
	struct udp *u = link;
	uint8_t byte;

	udp_near_turn_away(u);
	if (u->near.fd < 0)
		return true;
	/* behind an error there may be something */
	if (recv(u->near.fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		return false;
	/* what the kernel is giving it at this moment is lost, as on any network */
	udp_near_close(u);
	return true;
}
