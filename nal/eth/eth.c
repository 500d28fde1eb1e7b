/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The operations of the Ethernet NAL: opening and closing, and how ranks publish where they
 * are.
 */
#define _GNU_SOURCE
#include "nal/eth/eth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"

extern const struct nal_ops nal_eth_ops;

static struct eth *eth_of(struct ptl_ni *ni)
{
	return ptl_net_of(ni, &nal_eth_ops)->state;
}

static struct net *net_of_eth(struct ptl_ni *ni)
{
	return &eth_of(ni)->net;
}

static const char *eth_unusable(void)
{
	static char why[192];
	const char *no_seal = net_seal_unusable();
	int fd;

	if (no_seal)
		return no_seal;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	if (errno == EPERM)
		return "packet sockets need CAP_NET_RAW: run as root, or give the program that "
		       "capability (setcap cap_net_raw+ep PROGRAM)";
	snprintf(why, sizeof(why), "packet sockets: %m");
	return why;
}

static void eth_describe(char *text, size_t len)
{
	snprintf(text, len, "used only if PTL_NAL names it; EtherType 0x%04lx; %s",
		 base_config()->ptl_eth_type,
		 base_config()->ptl_key_file ? "secret from PTL_KEY_FILE outside jobs"
					     : "outside jobs PTL_KEY_FILE is needed");
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Check the interface: it must be Ethernet or look like it, with frames that are long enough.
 * Returns 0, or -errno after a warning. */
static int take_interface(struct eth *e, const char *name)
{
	struct ifreq r = { .ifr_mtu = 0 };
	long most = base_config()->ptl_eth_mtu, mtu;
	int kind;

	memccpy(r.ifr_name, name, 0, sizeof(r.ifr_name));
	if (ioctl(e->fd, SIOCGIFINDEX, &r) < 0)
		return -errno;
	e->ifindex = r.ifr_ifindex;
	e->loopback = (int)if_nametoindex("lo");
	if (ioctl(e->fd, SIOCGIFHWADDR, &r) < 0)
		return -errno;
	kind = r.ifr_hwaddr.sa_family;
	memcpy(e->mac, r.ifr_hwaddr.sa_data, sizeof(e->mac));
	if (kind != ARPHRD_ETHER && kind != ARPHRD_LOOPBACK) {
		base_warn("%s is no Ethernet interface; name one that is in PTL_IFACE", name);
		return -EPROTONOSUPPORT;
	}
	if (ioctl(e->fd, SIOCGIFMTU, &r) < 0)
		return -errno;
	mtu = r.ifr_mtu > (int)ETH_MTU_MOST ? (int)ETH_MTU_MOST : r.ifr_mtu;
	if (most && most < mtu)
		mtu = most;
	if (mtu < (long)(DGRAM_MTU_MIN + ETH_OURS)) {
		base_warn("%s carries frames of %ld bytes, and %u are needed; raise its MTU", name,
			  mtu, DGRAM_MTU_MIN + ETH_OURS);
		return -EMSGSIZE;
	}
	e->mtu = (uint32_t)mtu - ETH_OURS;
	return 0;
}

/* The filter is set before the first frame can come. */
static int begin_ring(struct eth *e, size_t bytes)
{
	struct sockaddr_ll all = { .sll_family = AF_PACKET, .sll_protocol = htons(e->type) };
	int buffer = (int)bytes, err;

	err = eth_filter(e);
	if (!err)
		err = eth_ring_make(e, bytes);
	if (err)
		return err;
	eth_send_init(e);
	if (setsockopt(e->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) < 0)
		setsockopt(e->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	return bind(e->fd, (struct sockaddr *)&all, sizeof(all)) < 0 ? -errno : 0;
}

static void eth_free(struct eth *e)
{
	eth_ring_free(e);
	if (e->fd >= 0)
		close(e->fd);
	if (e->name_fd >= 0)
		close(e->name_fd);
	net_ranks_free(&e->ranks);
	free(e);
}

/* Outside a job with cards the pid is the endpoint, so that others find us. */
static int take_endpoint(struct eth *e, struct ptl_ni *ni, ptl_pid_t want)
{
	bool ours = !ni->cards && want != PTL_PID_ANY && want <= ETH_PID_MOST;
	int err = eth_take_endpoint(e, ours ? want : 0);

	if (err == -EADDRINUSE) {
		base_warn("endpoint %u for frames of type 0x%04x is taken by another process of "
			  "this host; ask for another pid",
			  want, e->type);
		return PTL_PID_INVALID;
	}
	if (err < 0) {
		base_warn("no endpoint for Ethernet frames: %s", strerror(-err));
		return PTL_FAIL;
	}
	if (want == PTL_PID_ANY && !ni->cards)
		ni->id.pid = e->endpoint;
	return PTL_OK;
}

static int eth_open(struct ptl_ni *ni, ptl_pid_t want)
{
	struct eth *e = aligned_alloc(64, (sizeof(*e) + 63) & ~(size_t)63);
	int err;

	if (!e)
		return PTL_NO_SPACE;
	memset(e, 0, sizeof(*e));
	e->name_fd = -1;
	e->type = (uint16_t)base_config()->ptl_eth_type;
	e->own_nid = ni->id.nid;
	e->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = e->fd < 0 ? -errno : take_interface(e, ni->address.ifname);
	if (!err) {
		err = take_endpoint(e, ni, want);
		if (err != PTL_OK) {
			eth_free(e);
			return err;
		}
		err = begin_ring(e, (size_t)base_config()->ptl_eth_ring_kib * 1024);
	}
	if (err < 0) {
		base_warn("cannot use Ethernet frames on %s: %s", ni->address.ifname,
			  strerror(-err));
		eth_free(e);
		return PTL_FAIL;
	}
	ptl_net_of(ni, &nal_eth_ops)->state = e;
	return PTL_OK;
}

/* ---- the job --------------------------------------------------------------------------------- */

static void eth_card(struct ptl_ni *ni, char *text, size_t len)
{
	const struct eth *e = eth_of(ni);
	struct eth_card c = { .type = e->type, .endpoint = e->endpoint };

	memcpy(c.mac, e->mac, sizeof(c.mac));
	eth_card_encode(&c, text, len);
}

static const struct net_link eth_link = {
	.name = "eth",
	.address = eth_address,
	.room = eth_room,
	.transmit = eth_transmit,
	.flush = eth_flush,
	.receive = eth_receive,
};

static const char *eth_join(struct ptl_ni *ni, const struct nal_job *job)
{
	struct eth *e = eth_of(ni);

	e->by_id = !job->card;
	if (job->card && !net_ranks_take(&e->ranks, job, nal_eth_ops.name, eth_parse_card, e))
		return "out of memory";
	e->net.ni = ni;
	e->net.slot = ptl_net_of(ni, &nal_eth_ops);
	e->net.link = &eth_link;
	e->net.link_state = e;
	e->net.ranks = &e->ranks;
	/* short packets take a slot each, too */
	return net_start(&e->net, job, e->fd, e->mtu, e->in.slots / 2 * e->mtu);
}

static void eth_close(struct ptl_ni *ni)
{
	struct eth *e = eth_of(ni);

	if (e->net.ni)
		net_stop(&e->net);
	eth_free(e);
	ptl_net_of(ni, &nal_eth_ops)->state = NULL;
}

static void eth_forked(struct ptl_ni *ni)
{
	struct eth *e = eth_of(ni);

	if (!e)
		return;
	close(e->fd);
	close(e->name_fd);
	if (e->net.ni)
		net_forked(&e->net);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static unsigned long eth_distance(struct ptl_ni *ni, ptl_process_id_t id)
{
	if (!net_lives(net_of_eth(ni), id))
		return ULONG_MAX;
	return id.nid == ni->id.nid ? 1 : 2;
}

static bool eth_knows(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_knows(net_of_eth(ni), target);
}

static bool eth_connect(struct ptl_ni *ni, ptl_process_id_t target)
{
	return net_connect(net_of_eth(ni), target);
}

static int eth_send(struct ptl_ni *ni, const struct ptl_start *s)
{
	return net_send(net_of_eth(ni), s);
}

static bool eth_progress(struct ptl_ni *ni)
{
	return net_progress(net_of_eth(ni));
}

static uint64_t eth_arm(struct ptl_ni *ni)
{
	return net_arm(net_of_eth(ni));
}

static const char *eth_failed_over(struct ptl_ni *ni, ptl_process_id_t id)
{
	return net_failed_over(net_of_eth(ni), id);
}

const struct nal_ops nal_eth_ops = {
	.name = "eth",
	.needs_secret = true,
	.by_name = true,
	.unusable = eth_unusable,
	.region_bytes = net_region_bytes,
	.open = eth_open,
	.card = eth_card,
	.join = eth_join,
	.close = eth_close,
	.distance = eth_distance,
	.knows = eth_knows,
	.connect = eth_connect,
	.send = eth_send,
	.progress = eth_progress,
	.arm = eth_arm,
	.failed_over = eth_failed_over,
	.forked = eth_forked,
	.describe = eth_describe,
};
