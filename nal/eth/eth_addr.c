/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Addresses. To the machine an address is three words: the interface (local or not) and the
 * endpoint, then the hardware address. A process whose hardware address is not known is called
 * by broadcast. It answers only if the call names it, and the answer says where it is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "nal/eth/eth.h"

#define TRIES 64 /* to find a free endpoint */
#define NAME  32

void eth_addr_from(struct net_addr *a, const struct eth_place *p)
{
	memset(a, 0, sizeof(*a));
	a->word[0] = (uint64_t)p->local << 32 | p->endpoint;
	memcpy(&a->word[1], p->mac, sizeof(p->mac));
}

void eth_addr_to(struct eth_place *p, const struct net_addr *a)
{
	p->local = a->word[0] >> 32 & 1;
	p->endpoint = (uint32_t)a->word[0];
	memcpy(p->mac, &a->word[1], sizeof(p->mac));
}

bool eth_parse_card(const void *link, const char *card, size_t len, struct net_addr *addr)
{
	static const uint8_t nobody[ETH_MAC_BYTES];
	const struct eth *e = link;
	struct eth_place p = { .local = false };
	struct eth_card c;

	if (eth_card_decode(card, len, &c) < 0)
		return false;
	p.local = !memcmp(c.mac, e->mac, sizeof(c.mac));
	/* a process that uses another EtherType, or the loopback interface of another host,
	 * cannot hear us */
	if (c.type != e->type || (!p.local && !memcmp(c.mac, nobody, sizeof(nobody))))
		return false;
	p.endpoint = c.endpoint;
	if (!p.local)
		memcpy(p.mac, c.mac, sizeof(p.mac));
	eth_addr_from(addr, &p);
	return true;
}

/* The name under which a process of this network namespace holds an endpoint. */
static const char *name_of(const struct eth *e, uint32_t endpoint, char name[NAME])
{
	snprintf(name, NAME, "postern-eth-%04x-%08x", e->type, endpoint);
	return name;
}

static bool held(const struct eth *e, uint32_t endpoint)
{
	char name[NAME];

	return net_held(name_of(e, endpoint, name));
}

bool eth_address(void *link, ptl_process_id_t id, struct net_addr *addr)
{
	const struct eth *e = link;
	const struct net_addr *found = net_ranks_find(&e->ranks, id);
	struct eth_place p = { .local = id.nid == e->own_nid, .endpoint = id.pid };

	if (found) {
		*addr = *found;
		return true;
	}
	if (!e->by_id || !id.pid || id.pid > ETH_PID_MOST)
		return false;
	/* nobody is there; for another host only silence shows that, and a rank of a job may
	 * only be late */
	if (p.local && !e->net.ni->nawaited && !held(e, id.pid))
		return false;
	if (!p.local)
		memset(p.mac, 0xff, sizeof(p.mac));
	eth_addr_from(addr, &p);
	return true;
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static int hold_endpoint(struct eth *e, uint32_t endpoint)
{
	char name[NAME];
	int fd = net_hold(name_of(e, endpoint, name));

	if (fd < 0)
		return fd;
	e->name_fd = fd;
	e->endpoint = endpoint;
	return 0;
}

int eth_take_endpoint(struct eth *e, uint32_t want)
{
	int err = -EADDRINUSE;

	if (want)
		return hold_endpoint(e, want);
	for (int i = 0; i < TRIES && err == -EADDRINUSE; i++) {
		uint16_t random = 0;

		if (!base_random(&random, sizeof(random)))
			return -errno;
		/* it may also become our pid: stay above the numbers that people ask for */
		err = hold_endpoint(e, 0x4000u | random);
	}
	return err;
}

/* ---- the filter ------------------------------------------------------------------------------ */

int eth_filter(const struct eth *e)
{
	const uint32_t to = offsetof(struct eth_wire_frame, to);
	const uint32_t us = __builtin_bswap32(e->endpoint); /* the filter reads big-endian */
	/* a jump counts the instructions to skip; the last but one accepts the frame, the last
	 * one drops it */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, e->type, 0, 9),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_HOST, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_BROADCAST, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)e->ifindex, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)e->loopback, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, to),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, us, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (setsockopt(e->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
		return -errno;
	/* nobody, this process included, can replace the filter */
	return setsockopt(e->fd, SOL_SOCKET, SO_LOCK_FILTER, &(int){ 1 }, sizeof(int)) < 0 ? -errno
											   : 0;
}
