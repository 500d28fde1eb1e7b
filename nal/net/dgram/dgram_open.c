/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Connections. Each side has a token for the connection that it will have next; HELLO and
 * WELCOME tell it to the other side. The calling side has a connection when the WELCOME brings
 * the other's token. The called side has one when a packet to its token names the sender. A
 * token is used for one connection only, so this packet cannot be a replay. Two sides that
 * call each other at once use the same pair of tokens, whichever packets arrive first. HELLOs
 * have no effect but a WELCOME.
 */
#include "nal/net/dgram/dgram_core.h"

void dgram_open_start(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	r->state = DGRAM_OPENING;
	c->hello_at = c->hello_since = m->now;
	c->hellos = 0;
	dgram_ready(m, r);
}

/* Both sides know the tokens: numbers begin anew. Message numbers began anew when the last
 * connection ended, so messages that were queued since then have theirs already. */
static void establish_conn(struct dgram *m, struct dgram_rec *r, const struct net_addr *addr,
			   uint64_t theirs, const struct net_who *who)
{
	struct dgram_conn *c = r->conn;

	r->mine = r->next;
	r->next = dgram_token(m, dgram_index(r));
	r->theirs = theirs;
	r->incarnation = who->incarnation;
	r->uid = who->uid;
	r->jid = who->jid;
	if (addr && !(r->flags & DGRAM_F_FIXED))
		r->addr = *addr;
	r->state = DGRAM_OPEN;
	r->flags &= (uint8_t)~DGRAM_F_CONFIRMED;
	r->heard = m->now;
	r->tx_pn = 1;
	r->rx_pn = 0;
	r->rx_number = 0;
	memset(c->seen, 0, sizeof(c->seen));
	c->floor = 1;
	c->oldest = 1;
	c->newest_acked = 0;
	c->credit_end = DGRAM_CREDIT_FIRST;
	c->acked_number = 0;
	dgram_cc_open(m, r);
	m->stats.opened++;
	m->stats.open++;
	/* otherwise the other side would not learn that we know it */
	c->ping = c->msg_base == r->tx_number;
	dgram_ready(m, r);
	if (m->ops.up)
		m->ops.up(m->user, dgram_index(r), who);
}

void dgram_open_hello(struct dgram *m, const struct net_addr *from, const struct dgram_hello *h)
{
	struct net_who who = {
		.id = h->from, .incarnation = h->incarnation, .uid = h->uid, .jid = h->jid
	};
	uint32_t peer = dgram_peer_find(m, h->from);
	struct dgram_rec *r;
	struct dgram_conn *c;

	if (h->whom != m->cfg.id) {
		net_drop(m, NET_DROP_NOT_ACCEPTED);
		return;
	}
	if (peer != NET_NONE) {
		r = dgram_rec(m, peer);
	} else {
		/* the callback may have made it known */
		if ((m->ops.accept && !m->ops.accept(m->user, &who, from)) ||
		    (!from && dgram_peer_find(m, h->from) == NET_NONE)) {
			net_drop(m, NET_DROP_NOT_ACCEPTED);
			return;
		}
		peer = dgram_peer(m, h->from, from);
		r = peer != NET_NONE ? dgram_rec(m, peer) : NULL;
	}
	c = r ? dgram_conn_get(m, r) : NULL;
	if (!c) {
		net_drop(m, NET_DROP_NO_ROOM);
		return;
	}
	c->welcome = true;
	c->caller = h->token;
	c->caller_addr = !from || r->flags & DGRAM_F_FIXED ? r->addr : *from;
	dgram_ready(m, r);
	m->stats.packets_in++;
}

void dgram_open_welcome(struct dgram *m, uint64_t to, const struct net_addr *from,
			const struct dgram_hello *h)
{
	struct net_who who = {
		.id = h->from, .incarnation = h->incarnation, .uid = h->uid, .jid = h->jid
	};
	uint32_t peer = (uint32_t)to;
	struct dgram_rec *r = peer < m->npeers ? dgram_rec(m, peer) : NULL;

	if (!r || r->state != DGRAM_OPENING || r->next != to || h->from != r->id ||
	    h->whom != m->cfg.id) {
		net_drop(m, NET_DROP_STALE_HELLO);
		return;
	}
	m->stats.packets_in++;
	establish_conn(m, r, from, h->token, &who);
}

bool dgram_open_confirm(struct dgram *m, struct dgram_rec *r, const struct net_addr *from,
			const struct dgram_frame *f)
{
	struct net_who who = {
		.id = r->id, .incarnation = f->incarnation, .uid = f->uid, .jid = f->jid
	};
	struct net_addr caller;

	/* the link did not ask for the source of this packet, but for that of its HELLO */
	if (!from && r->conn && r->conn->caller == f->body_len) {
		caller = r->conn->caller_addr;
		from = &caller;
	}
	/* the other side would not ask for another connection if it had this one */
	if (r->state == DGRAM_OPEN)
		dgram_peer_fail(m, r, NET_RESTARTED);
	if (!dgram_conn_get(m, r)) {
		net_drop(m, NET_DROP_NO_ROOM);
		return false;
	}
	establish_conn(m, r, from, f->body_len, &who);
	return true;
}

void dgram_open_unknown(struct dgram *m, const struct net_addr *to, uint64_t token,
			uint64_t unknown)
{
	/* the peer asks again if there is no room, or the source is unknown */
	if (to && m->nresets < DGRAM_RESETS)
		m->resets[m->nresets++] =
			(struct dgram_reset){ .to = *to, .token = token, .unknown = unknown };
}

/* A process that can return the HELLO of a current attempt has seen it. It could also have
 * kept it from arriving, so it gains nothing by a forgery. */
void dgram_open_refused(struct dgram *m, const struct dgram_hello *h)
{
	uint32_t peer = (uint32_t)h->token;
	struct dgram_rec *r = peer < m->npeers ? dgram_rec(m, peer) : NULL;

	if (!r || r->state != DGRAM_OPENING || r->next != h->token || h->whom != r->id ||
	    h->from != m->cfg.id) {
		net_drop(m, NET_DROP_STALE_HELLO);
		return;
	}
	/* late returns of this attempt say nothing about the next one */
	r->next = dgram_token(m, peer);
	dgram_peer_fail(m, r, NET_UNREACHABLE);
}

void dgram_open_reset(struct dgram *m, uint64_t to, uint64_t unknown)
{
	uint32_t peer = (uint32_t)to;
	struct dgram_rec *r = peer < m->npeers ? dgram_rec(m, peer) : NULL;

	if (!r || r->state != DGRAM_OPEN || r->mine != to || r->theirs != unknown) {
		net_drop(m, NET_DROP_UNKNOWN);
		return;
	}
	m->stats.packets_in++;
	dgram_peer_fail(m, r, NET_RESTARTED);
}

void dgram_peer_fail(struct dgram *m, struct dgram_rec *r, enum net_status s)
{
	struct dgram_conn *c = r->conn;
	uint32_t end = r->tx_number, peer = dgram_index(r);
	uint8_t was = r->state;

	if (m->late.from == r)
		m->late.from = NULL;
	if (was == DGRAM_OPEN)
		m->stats.open--;
	if (was != DGRAM_IDLE)
		m->stats.resets++;
	/* reset the record before any callback, as callbacks may send again */
	r->conn = NULL;
	r->state = DGRAM_IDLE;
	r->mine = r->theirs = 0;
	r->flags &= DGRAM_F_READY | DGRAM_F_FIXED;
	r->tx_pn = r->rx_pn = 0;
	r->tx_number = r->rx_number = 0;
	if (c) {
		dgram_reassembly_fail(m, peer, c, s);
		dgram_msg_fail(m, peer, c, end, s);
		dgram_conn_free(m, c);
	}
	if (was != DGRAM_IDLE && s != NET_ENDED && m->ops.peer_failed)
		m->ops.peer_failed(m->user, peer, s);
}
