/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The operations of the UDP NAL: opening and closing, and what ranks tell each other of their
 * sockets.
 */
#define _GNU_SOURCE
#include "nal/udp/udp.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "portals/engine/debug.h"

#define HEADERS_4 28 /* of IPv4 and UDP */
#define HEADERS_6 48
#define USUAL_MTU (1500 - HEADERS_6)

extern const struct nal_ops nal_udp_ops;

static struct udp *udp_of(struct ptl_ni *ni)
{
	return ptl_net_of(ni, &nal_udp_ops)->state;
}

static struct net *net_of_udp(struct ptl_ni *ni)
{
	return &udp_of(ni)->net;
}

static const char *udp_unusable(void)
{
	static char why[128];
	const char *no_seal = net_seal_unusable();
	int fd;

	if (no_seal)
		return no_seal;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		snprintf(why, sizeof(why), "UDP sockets: %m");
		return why;
	}
	close(fd);
	return NULL;
}

static void udp_describe(char *text, size_t len)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool out = fd >= 0 && udp_can_segment(fd), in = fd >= 0 && udp_can_join(fd);

	if (fd >= 0)
		close(fd);
	snprintf(text, len, "segmentation offload %s; %s",
		 out && in ? "both ways"
		 : out     ? "when sending"
			   : "not available",
		 base_config()->ptl_key_file ? "secret from PTL_KEY_FILE outside jobs"
					     : "outside jobs PTL_KEY_FILE is needed");
}

/* ---- the socket ------------------------------------------------------------------------------ */

/* The bytes that fit a datagram; `unknown` if the interface does not say. */
static uint32_t carried_by_interface(const struct udp *u, const char *ifname, uint32_t unknown)
{
	uint32_t headers = u->family == AF_INET6 ? HEADERS_6 : HEADERS_4, mtu = unknown + headers;
	struct ifreq r = { .ifr_mtu = 0 };

	memccpy(r.ifr_name, ifname, 0, sizeof(r.ifr_name));
	if (ioctl(u->fd, SIOCGIFMTU, &r) == 0 && r.ifr_mtu > 0)
		mtu = (uint32_t)r.ifr_mtu;
	mtu = mtu > DGRAM_MTU_MAX + headers ? DGRAM_MTU_MAX : mtu - headers;
	if (base_config()->ptl_udp_mtu && (uint32_t)base_config()->ptl_udp_mtu < mtu)
		mtu = (uint32_t)base_config()->ptl_udp_mtu;
	return mtu < DGRAM_MTU_MIN ? DGRAM_MTU_MIN : mtu;
}

bool udp_narrow(struct udp *u)
{
	uint32_t mtu = carried_by_interface(u, u->net.ni->address.ifname, u->mtu),
		 local = carried_by_interface(u, "lo", u->local_mtu);
	bool less = mtu < u->mtu || local < u->local_mtu;

	u->mtu = mtu < u->mtu ? mtu : u->mtu;
	u->local_mtu = local < u->local_mtu ? local : u->local_mtu;
	u->train = udp_train(u->mtu);
	return less;
}

void udp_never_fragment(const struct udp *u, int fd)
{
	int probe = u->family == AF_INET6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;

	if (u->family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof(probe));
	else
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
}

static void set_options(struct udp *u)
{
	int one = 1;

	net_widen(u->fd, SO_RCVBUFFORCE, SO_RCVBUF);
	net_widen(u->fd, SO_SNDBUFFORCE, SO_SNDBUF);
	udp_never_fragment(u, u->fd);
	/* we want to hear that nothing listens at an address; see drain() */
	if (u->family == AF_INET6)
		setsockopt(u->fd, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof(one));
	else
		setsockopt(u->fd, IPPROTO_IP, IP_RECVERR, &one, sizeof(one));
	if (base_config()->ptl_udp_segments) {
		u->segments_out = udp_can_segment(u->fd);
		u->segments_in = udp_can_join(u->fd);
	}
}

static int bind_udp(struct udp *u, const struct ptl_address *a, uint16_t port)
{
	union udp_sockaddr s = { .any.sa_family = (sa_family_t)u->family };
	socklen_t len = u->family == AF_INET6 ? sizeof(s.in6) : sizeof(s.in4);

	if (u->family == AF_INET6) {
		memcpy(&s.in6.sin6_addr, a->bytes, 16);
		s.in6.sin6_port = htons(port);
		if (IN6_IS_ADDR_LINKLOCAL(&s.in6.sin6_addr))
			s.in6.sin6_scope_id = a->scope;
	} else {
		memcpy(&s.in4.sin_addr, a->bytes, 4);
		s.in4.sin_port = htons(port);
	}
	if (bind(u->fd, &s.any, len) < 0)
		return -errno;
	if (getsockname(u->fd, &s.any, &len) < 0)
		return -errno;
	udp_addr_from(&u->own, &s);
	u->port = ntohs(u->family == AF_INET6 ? s.in6.sin6_port : s.in4.sin_port);
	return 0;
}

/* One of PTL_DEF_PORTLIST, or whichever is free. */
static int bind_any(struct udp *u, const struct ptl_address *a)
{
	const char *list = base_config()->ptl_def_portlist;
	char *end;

	while (list && *list) {
		unsigned long port = strtoul(list, &end, 10);

		if (end == list)
			break;
		if (port && port <= 65535 && bind_udp(u, a, (uint16_t)port) == 0)
			return 0;
		list = *end == ':' ? end + 1 : end;
	}
	return bind_udp(u, a, 0);
}

/* Outside a job with cards the pid says what the port is, so that others find us. */
static int take_udp_port(struct udp *u, struct ptl_ni *ni, ptl_pid_t want)
{
	uint16_t port = ni->cards || want == PTL_PID_ANY ? 0 : net_port_of(want);
	int err = port ? bind_udp(u, &ni->address, port) : bind_any(u, &ni->address);

	if (err == -EADDRINUSE) {
		base_warn("UDP port %u, which is that of pid %u, is taken by another program; ask "
			  "for another pid, or give it another port in PTL_PID2PORT_FILE",
			  port, want);
		return PTL_PID_INVALID;
	}
	if (err < 0) {
		base_warn("cannot bind a UDP socket on %s: %s", ni->address.ifname, strerror(-err));
		return PTL_FAIL;
	}
	if (want == PTL_PID_ANY && !ni->cards)
		ni->id.pid = u->port;
	return PTL_OK;
}

static void udp_free(struct udp *u)
{
	if (u->fd >= 0)
		close(u->fd);
	udp_paths_close(u);
	net_ranks_free(&u->ranks);
	free(u->in.bytes);
	free(u->out.heads);
	free(u);
}

static int udp_open(struct ptl_ni *ni, ptl_pid_t want)
{
	struct udp *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return PTL_NO_SPACE;
	udp_paths_init(u);
	u->family = ni->address.family;
	u->scope = ni->address.scope;
	if (u->family != AF_INET && u->family != AF_INET6) {
		base_warn("UDP cannot be used: %s has no IP address; name another interface in "
			  "PTL_IFACE, or another transport in PTL_NAL",
			  ni->address.ifname);
		free(u);
		return PTL_FAIL;
	}
	u->own_nid = ni->id.nid;
	u->in.bytes = malloc((size_t)UDP_BUFFERS * UDP_BUFFER);
	u->out.heads = malloc(UDP_HEADS);
	u->fd = socket(u->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0 || !u->in.bytes || !u->out.heads) {
		base_warn("UDP cannot be used: %s: %m",
			  u->fd < 0 ? "a socket" : "memory for packets");
		udp_free(u);
		return PTL_NO_SPACE;
	}
	set_options(u);
	u->mtu = u->mtu_once = carried_by_interface(u, ni->address.ifname, USUAL_MTU);
	u->local_mtu = carried_by_interface(u, "lo", USUAL_MTU);
	u->train = udp_train(u->mtu);
	udp_recv_init(u);
	err = take_udp_port(u, ni, want);
	if (err != PTL_OK) {
		udp_free(u);
		return err;
	}
	ptl_net_of(ni, &nal_udp_ops)->state = u;
	return PTL_OK;
}

/* ---- the job --------------------------------------------------------------------------------- */

static void udp_card(struct ptl_ni *ni, char *text, size_t len)
{
	union udp_sockaddr s;
	socklen_t size = sizeof(s);

	if (getsockname(udp_of(ni)->fd, &s.any, &size) == 0)
		udp_addr_format(&s, text, len);
}

static bool parse_udp_card(const void *link, const char *card, size_t len, struct net_addr *addr)
{
	const struct udp *u = link;

	return udp_addr_parse(card, len, u->scope, addr) &&
	       addr->word[0] >> 48 == (uint64_t)u->family;
}

/* A packet for an address of this host does not leave by its interface. */
uint32_t udp_whole(const struct udp *u, const struct net_addr *to)
{
	bool local = to->word[1] == u->own.word[1] && to->word[2] == u->own.word[2];

	return local && u->local_mtu > u->mtu ? u->local_mtu : u->mtu;
}

static uint32_t whole(void *link, const struct net_addr *to)
{
	return udp_whole(link, to);
}

/* Where only kernels are on the way, as between containers of a host, segments travel and arrive
 * as one, so that one packet may be as long as all of them: built, tagged, remembered and
 * acknowledged once. */
static uint32_t longest(void *link, const struct net_addr *to)
{
	const struct udp *u = link;
	uint32_t as_one = udp_whole(u, to);

	return as_one == u->mtu && u->segments_out && u->segments_in ? u->train : as_one;
}

static const struct net_link udp_link = {
	.longest = longest,
	.whole = whole,
	.name = "udp",
	.address = udp_address,
	.room = udp_room,
	.transmit = udp_transmit,
	.flush = udp_flush,
	.receive = udp_receive,
};

static const char *udp_join(struct ptl_ni *ni, const struct nal_job *job)
{
	struct udp *u = udp_of(ni);

	u->by_id = !job->card;
	if (job->card && !net_ranks_take(&u->ranks, job, nal_udp_ops.name, parse_udp_card, u))
		return "out of memory";
	u->net.ni = ni;
	u->net.slot = ptl_net_of(ni, &nal_udp_ops);
	u->net.link = &udp_link;
	u->net.link_state = u;
	u->net.ranks = &u->ranks;
	return net_start(&u->net, job, u->fd, u->local_mtu > u->train ? u->local_mtu : u->train,
			 net_window(u->fd));
}

static void udp_close(struct ptl_ni *ni)
{
	struct udp *u = udp_of(ni);

	if (u->net.ni)
		net_stop(&u->net);
	udp_free(u);
	ptl_net_of(ni, &nal_udp_ops)->state = NULL;
}

static void udp_forked(struct ptl_ni *ni)
{
	struct udp *u = udp_of(ni);

	if (!u)
		return;
	close(u->fd);
	udp_paths_close(u);
	if (u->net.ni)
		net_forked(&u->net);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static unsigned long udp_distance(struct ptl_ni *ni, ptl_process_id_t id)
{
	if (!net_lives(net_of_udp(ni), id))
		return ULONG_MAX;
	return id.nid == ni->id.nid ? 1 : 2;
}

static bool udp_knows(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_knows(net_of_udp(ni), target);
}

static bool udp_connect(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_connect(net_of_udp(ni), target);
}

static int udp_send(struct ptl_ni *ni, const struct ptl_start *s)
{
	return net_send(net_of_udp(ni), s);
}

static bool udp_progress(struct ptl_ni *ni)
{
	return net_progress(net_of_udp(ni));
}

static uint64_t udp_arm(struct ptl_ni *ni)
{
	return net_arm(net_of_udp(ni));
}

static const char *udp_failed_over(struct ptl_ni *ni, ptl_process_id_t id)
{
	return net_failed_over(net_of_udp(ni), id);
}

const struct nal_ops nal_udp_ops = {
	.name = "udp",
	.needs_secret = true,
	.unusable = udp_unusable,
	.region_bytes = net_region_bytes,
	.open = udp_open,
	.card = udp_card,
	.join = udp_join,
	.close = udp_close,
	.distance = udp_distance,
	.knows = udp_knows,
	.connect = udp_connect,
	.send = udp_send,
	.progress = udp_progress,
	.arm = udp_arm,
	.failed_over = udp_failed_over,
	.forked = udp_forked,
	.describe = udp_describe,
};
