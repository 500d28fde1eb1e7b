/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The datagram machine of an interface as a carrier of messages: making it, and moving packets
 * between it and the link.
 */

#include "base/config.h"
#include "base/random.h"
#include "nal/net/net.h"

#define BACKLOG (1u << 20)

/* ---- called by the machine ------------------------------------------------------------------- */

static void *room(void *user, size_t len)
{
	struct net *n = user;

	return n->link->room(n->link_state, len);
}

static void transmit(void *user, const struct dgram_packet *p)
{
	struct net *n = user;

	if (n->fault)
		net_fault_transmit(n, p);
	else
		n->link->transmit(n->link_state, p);
}

static uint32_t connect_by_dgram(struct net *n, net_id_t id)
{
	ptl_process_id_t target = { (ptl_nid_t)(id >> 32), (ptl_pid_t)id };
	struct net_addr addr;
	uint32_t peer;

	if (!n->link->address(n->link_state, target, &addr))
		return NET_NONE;
	peer = dgram_peer(n->m, id, &addr);
	if (n->ranks && net_ranks_find(n->ranks, target))
		dgram_peer_fix(n->m, peer);
	return peer;
}

/* A process with the key belongs to the job, or is trusted by those who shared the key file. */
static bool accept_peer(void *user, const struct net_who *who, const struct net_addr *from)
{
	struct net *n = user;

	if (who->id == net_id(n->ni->id))
		return false;
	/* the process may get the number of a forgotten one */
	n->last_peer = NET_NONE;
	if (n->ranks || !from)
		connect_by_dgram(n, who->id);
	return true;
}

static void report_failed_dgram_peer(void *user, uint32_t peer, enum net_status s)
{
	struct net *n = user;

	net_peer_failed(n, peer, s,
			n->refused
				? "nobody is at its address, says the network: it has ended, or a "
				  "filter rejects packets"
				: NULL);
}

static uint32_t longest(void *user, const struct net_addr *to)
{
	const struct net *n = user;

	return n->link->longest ? n->link->longest(n->link_state, to) : UINT32_MAX;
}

static uint32_t whole(void *user, const struct net_addr *to)
{
	const struct net *n = user;

	return n->link->whole ? n->link->whole(n->link_state, to) : UINT32_MAX;
}

static const struct dgram_ops machine_ops = {
	.longest = longest,
	.whole = whole,
	.room = room,
	.transmit = transmit,
	.seal = net_seal,
	.verify = net_verify,
	.deliver = net_deliver,
	.delivered = net_delivered,
	.sent = net_sent,
	.unsent = net_failover,
	.accept = accept_peer,
	.up = net_up,
	.peer_failed = report_failed_dgram_peer,
	.segments = net_segments,
};

const char *net_dgram_create(struct net *n, uint32_t mtu, uint32_t window)
{
	const struct ptl_ni *ni = n->ni;
	struct dgram_cfg cfg;
	uint64_t random[2];

	if (!base_random(random, sizeof(random)))
		return "the system gives no random numbers";
	dgram_defaults(&cfg);
	cfg.id = net_id(ni->id);
	cfg.incarnation = random[0] | 1;
	cfg.seed = random[1];
	cfg.uid = ni->uid;
	cfg.jid = ni->jid;
	cfg.mtu = mtu;
	cfg.window = window;
	cfg.backlog = BACKLOG;
	cfg.max_peers = NET_PEERS;
	cfg.dead_ns = (uint64_t)base_config()->ptl_net_dead_ms * 1000000ull;
	n->m = dgram_create(&machine_ops, n, &cfg);
	if (!n->m)
		return "out of memory";
	n->fault = net_fault_create(base_config()->ptl_fault);
	return NULL;
}

/* ---- called by net.c and the links ----------------------------------------------------------- */

void net_joined(struct net *n, uint32_t packets)
{
	dgram_joined(n->m, packets);
}

void net_packet(struct net *n, const struct net_addr *from, const void *packet, size_t len)
{
	dgram_receive(n->m, n->now, from, packet, len);
}

void net_refused(struct net *n, const void *packet, size_t len)
{
	/* processes of a job that were not started together may only be late */
	n->refused = true;
	if (!n->ni->nawaited)
		dgram_refused(n->m, n->now, packet, len);
	n->refused = false;
}

static uint32_t find(const struct net *n, net_id_t id)
{
	return dgram_peer_find(n->m, id);
}

static int send_message(struct net *n, uint32_t peer, const struct net_out *o)
{
	return dgram_send(n->m, n->now, peer, o);
}

static bool congested(const struct net *n, uint32_t peer)
{
	return dgram_congested(n->m, peer);
}

static void watch(struct net *n, uint32_t peer, int change)
{
	dgram_watch(n->m, peer, change);
}

static void resume(struct net *n, uint32_t peer)
{
	dgram_resume(n->m, peer);
}

static unsigned int receive(struct net *n)
{
	return n->link->receive(n->link_state, n);
}

static void net_rounds(struct net *n, bool (*one)(struct dgram *m, uint64_t now))
{
	bool more;

	dgram_listened(n->m, n->listened);
	do {
		more = one(n->m, n->now);
		if (n->fault)
			net_fault_release(n);
		n->link->flush(n->link_state);
	} while (more);
}

static uint64_t wake_at(const struct net *n)
{
	uint64_t wake = dgram_wake(n->m), fault = net_fault_wake(n);

	return wake < fault ? wake : fault;
}

static void run(struct net *n)
{
	if (wake_at(n) <= n->now)
		net_rounds(n, dgram_run);
}

static bool arm(struct net *n, uint64_t *wake)
{
	net_rounds(n, dgram_settle);
	*wake = wake_at(n);
	return true;
}

static bool unfinished(const struct net *n)
{
	struct dgram_peer_info info;

	for (uint32_t i = 0; i < n->npeers; i++)
		if (dgram_peer_info(n->m, i, &info) && (info.queued || info.deliveries))
			return true;
	return false;
}

/* The order of both enums is the same. */
static_assert(PTL_COUNT_DGRAM_OUTSIDE - PTL_COUNT_DGRAM_MALFORMED + 1 == (int)NET_DROP_COUNT,
	      "one counter for each reason");

static void count(struct net *n)
{
	uint64_t *c = n->ni->view.r->stat.counts;
	struct net_stats s;

	/* other links of the interface count there, too */
	dgram_stats(n->m, &s);
	c[PTL_COUNT_PACKETS_OUT] += s.packets_out - n->shown.packets_out;
	c[PTL_COUNT_PACKETS_IN] += s.packets_in - n->shown.packets_in;
	c[PTL_COUNT_PACKETS_LOST] += s.lost_packets - n->shown.lost_packets;
	c[PTL_COUNT_TIMEOUTS] += s.timeouts - n->shown.timeouts;
	for (int i = 0; i < NET_DROP_COUNT; i++)
		c[PTL_COUNT_DGRAM_MALFORMED + i] += s.drops[i] - n->shown.drops[i];
	n->shown = s;
}

static void goodbye(struct net *n)
{
	uint32_t left;

	net_fault_destroy(n->fault);
	n->fault = NULL;
	do {
		left = dgram_close(n->m, n->now);
		n->link->flush(n->link_state);
	} while (left);
}

static void destroy(struct net *n)
{
	dgram_destroy(n->m);
	net_fault_destroy(n->fault);
	n->fault = NULL;
	n->m = NULL;
}

const struct net_carrier net_dgram_carrier = {
	.find = find,
	.connect = connect_by_dgram,
	.send = send_message,
	.congested = congested,
	.watch = watch,
	.resume = resume,
	.receive = receive,
	.run = run,
	.wake = wake_at,
	.arm = arm,
	.unfinished = unfinished,
	.count = count,
	.goodbye = goodbye,
	.destroy = destroy,
};
