/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * If a NAL cannot reach a peer, whatever the peer's card says, the peer fails over to another
 * NAL: the next network NAL in the order of PTL_NAL that knows an address of it. Messages that
 * were queued for the peer go along, and the peer stays with that NAL.
 *
 * No message arrives twice thereby, or in another order. A carrier sends messages on a
 * connection only. When the connection fails, all messages that were given to it end.
 * Without a connection (`met`), messages given to the carrier since are still in its queue.
 * They move to the other carrier's queue in their order, before any later message. From then
 * on this NAL does not find the peer (net.c), so no message goes by it even if it comes to
 * reach the peer. Only when the last NAL cannot reach the peer either, all NALs begin anew.
 *
 * The peer may still send to us by this NAL, which may work in that direction. Such messages
 * have their own order, and are answered by the same NAL: an answer does not fail over.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nal/net/net.h"
#include "portals/engine/debug.h"

/* The peer's number with another NAL, if that has an address of it; else NET_NONE. */
static uint32_t number_with(struct net *to, ptl_process_id_t id)
{
	uint32_t there = net_peer_of(to, id);

	return there == NET_NONE && net_connect(to, id) ? net_peer_of(to, id) : there;
}

/* The NAL that the peer fails over to; chosen now if it was not before. *there is the peer's
 * number there. NULL: there is none. */
static struct net *failed_over_to(struct net *n, uint32_t peer, uint32_t *there)
{
	ptl_process_id_t id = net_who(n, peer).id;
	struct net_peer *p = &n->peer[peer];
	struct ptl_ni *ni = n->ni;
	uint32_t k = 0;

	*there = NET_NONE;
	if (p->to) {
		*there = number_with(p->to, id);
		return p->to;
	}
	while (ni->order[k] && ni->order[k] != n->slot->nal)
		k++;
	while (!p->to && ni->order[k] && ni->order[++k]) {
		struct net *to = ptl_net_of(ni, ni->order[k])->net;

		if (ni->order[k]->idle || !to)
			continue;
		*there = number_with(to, id);
		if (*there == NET_NONE)
			continue;
		p->to = to;
		to->peer[*there].from = n;
	}
	n->last_peer = NET_NONE;
	return p->to;
}

/* Hand the operation of a message, if there is one, to the other NAL. */
static void hand_to_next_nal(struct net *n, uint32_t peer, struct net *to, uint32_t there,
			     const struct net_out *o)
{
	struct net_body *b = o->cookie;
	struct net_msg m;
	bool answered =
		net_msg_decode(o->header, o->header_len, o->body_len, &m) == 0 && m.op != PTL_NIL;
	uint32_t op = b ? b->op : answered ? m.op : PTL_NIL;

	n->stat[peer].sent--;
	to->stat[there].sent++;
	if (op == PTL_NIL)
		return;
	n->ni->view.op[op].peer = ptl_net_peer(n->ni, to->slot, there);
	if (b) {
		b->peer = there;
		n->body_of[op] = NULL;
		to->body_of[op] = b;
	}
	if (answered) {
		net_expect(n, peer, -1);
		net_expect(to, there, 1);
	}
}

bool net_failover(void *user, uint32_t peer, const struct net_out *o)
{
	struct net *n = user, *to;
	uint32_t there;

	/* in an answer, or a reply, `op` is the peer's */
	if (n->peer[peer].stays || !net_is_request(o->header, o->header_len))
		return false;
	to = failed_over_to(n, peer, &there);
	if (!to || there == NET_NONE || to->carrier->send(to, there, o) != 0) {
		n->peer[peer].stays = true;
		return false;
	}
	hand_to_next_nal(n, peer, to, there, o);
	return true;
}

/* No NAL could reach it: NALs from which it failed over, until it came to `n`, may try again. */
static void take_back(struct net *n, net_id_t id)
{
	struct ptl_ni *ni = n->ni;

	for (uint32_t k = 0; k < ni->nnets; k++) {
		struct net *from = ni->net[k].net;
		uint32_t peer = from ? from->carrier->find(from, id) : NET_NONE;

		if (peer == NET_NONE || from->peer[peer].to != n)
			continue;
		net_forget_passing(&from->peer[peer]);
		take_back(from, id);
	}
}

void net_forget_passing(struct net_peer *p)
{
	free(p->why);
	p->why = NULL;
	p->to = NULL;
}

void net_forget_path(struct net *n)
{
	struct ptl_ni *ni = n->ni;

	for (uint32_t k = 0; k < ni->nnets; k++) {
		struct net *other = ni->net[k].net;

		for (uint32_t i = 0; other && i < other->npeers; i++) {
			if (other->peer[i].to == n)
				net_forget_passing(&other->peer[i]);
			if (other->peer[i].from == n)
				other->peer[i].from = NULL;
		}
	}
}

void net_unreached(struct net *n, uint32_t peer, const char *why)
{
	struct net_peer *p = &n->peer[peer];
	uint32_t there;
	struct net *to;

	p->stays = false;
	to = failed_over_to(n, peer, &there);
	if (!to) {
		take_back(n, p->who.id);
		return;
	}
	free(p->why);
	p->why = strdup(why);
	n->stat[peer].state = 0;
	if (there != NET_NONE && to->peer[there].met)
		net_reached(to, there);
	to->carrier->run(to);
}

void net_reached(struct net *n, uint32_t peer)
{
	struct net_peer *p = &n->peer[peer];
	ptl_process_id_t id = net_who(n, peer).id;
	struct net *from = p->from;
	const char *why = from ? net_failed_over(from, id) : NULL;

	p->met = true;
	p->from = NULL;
	if (why && !from->warned)
		base_warn("%s does not lead to nid 0x%08x pid %u: %s. %s is used for it",
			  from->name, id.nid, id.pid, why, n->name);
	if (why)
		from->warned = true;
}

const char *net_failed_over(const struct net *n, ptl_process_id_t id)
{
	uint32_t peer = n->carrier->find(n, net_id(id));

	if (peer == NET_NONE || n->peer[peer].who.id != net_id(id) || !n->peer[peer].to)
		return NULL;
	return n->peer[peer].why ? n->peer[peer].why : "no connection";
}
