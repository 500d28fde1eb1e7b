/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Peers. A connection is two tokens, exchanged in greetings that only a process with the job's
 * secret can make. It ends if the link says so, or if a peer from which something is expected
 * is silent too long. run() reports ends to nal/net, never a call from nal/net itself. An end
 * is not reported before the link has released the destinations of reads, within the time
 * limit.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "nal/net/rdma/rdma.h"
#include "portals/engine/debug.h"

#define HASH_FIRST 64u
#define CALL_NS    500000000ull /* between greetings */
#define CHECK_MOST 250000000ull /* between checks for silence */
#define TAG_END    (NET_TAG_OFFSET + NET_TAG_BYTES)

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t place_peer(const struct rdma *d, net_id_t id)
{
	return (uint32_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & (d->hash_room - 1);
}

struct rdma_peer *rdma_peer_find(const struct rdma *d, net_id_t id)
{
	struct rdma_peer *p = d->hash_room ? d->hash[place_peer(d, id)] : NULL;

	while (p && p->who.id != id)
		p = p->next_id;
	return p;
}

static bool make_peer_room(struct rdma *d)
{
	uint32_t room = d->peer_room ? 2 * d->peer_room : HASH_FIRST;
	struct rdma_peer **more, **hash;

	if (d->npeers < d->peer_room)
		return true;
	more = realloc(d->peer, room * sizeof(*more));
	if (!more)
		return false;
	d->peer = more;
	hash = calloc(room, sizeof(struct rdma_peer *));
	if (!hash)
		return false;
	free(d->hash);
	d->hash = hash;
	d->hash_room = d->peer_room = room;
	for (uint32_t i = 0; i < d->npeers; i++) {
		struct rdma_peer *p = d->peer[i], **at = &hash[place_peer(d, p->who.id)];

		p->next_id = *at;
		*at = p;
	}
	return true;
}

struct rdma_peer *rdma_peer_add(struct rdma *d, net_id_t id)
{
	struct rdma_peer *p, **at;

	static_assert(NET_PEERS - 1 <= UINT16_MAX, "packets have room for its number");
	if (d->npeers >= NET_PEERS || !make_peer_room(d))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->number = d->npeers;
	p->who = (struct net_who){ .id = id, .uid = PTL_UID_ANY, .jid = PTL_JID_ANY };
	d->peer[d->npeers++] = p;
	at = &d->hash[place_peer(d, id)];
	p->next_id = *at;
	*at = p;
	return p;
}

void rdma_peers_free(struct rdma *d)
{
	for (uint32_t i = 0; i < d->npeers; i++) {
		rdma_late_free(d->peer[i]);
		free(d->peer[i]);
	}
	free(d->peer);
	free(d->hash);
}

void rdma_busy(struct rdma *d, struct rdma_peer *p)
{
	if (p->busy)
		return;
	p->busy = true;
	p->next_busy = NULL;
	d->retry_at = 0; /* it is due; if it cannot go on in its turn, run() sets the next time */
	if (d->busy)
		d->busy_end->next_busy = p;
	else
		d->busy = p;
	d->busy_end = p;
}

/* ---- silence --------------------------------------------------------------------------------- */

static uint64_t silence(const struct rdma *d, uint64_t since)
{
	return silence_so_far(&d->silence, since);
}

static uint64_t check_every(const struct rdma *d)
{
	return d->dead_ns / 8 < CHECK_MOST ? d->dead_ns / 8 : CHECK_MOST;
}

void rdma_check_soon(struct rdma *d)
{
	if (d->check_at == NET_NEVER)
		d->check_at = net_now(&d->net) + check_every(d);
}

void rdma_await(struct rdma *d, struct rdma_peer *p)
{
	bool awaited = p->state == RDMA_CALLING || p->state == RDMA_ENDING || p->watch ||
		       p->queue || p->longs || p->bodies || p->coming.len || p->early || p->stuck ||
		       p->flying;

	/* its silence counts from the next check on: no clock is read for each message */
	if (awaited && !p->awaited)
		p->spoke = true;
	p->awaited = awaited;
	if (awaited)
		rdma_check_soon(d);
}

/* Has a packet been missing for too long while those behind it waited? */
static bool is_missing(struct rdma *d, struct rdma_peer *p)
{
	if (p->early && p->gap_at == p->seq_in)
		return silence(d, p->gap) > d->dead_ns / 4;
	p->gap_at = p->seq_in; /* another packet is missing, if any */
	p->gap = net_now(&d->net);
	return false;
}

static void check_rdma_peer(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_msg ping = { .kind = RDMA_PING };
	uint64_t now = net_now(&d->net);

	if (p->spoke)
		p->heard = now;
	p->spoke = false;
	switch (p->state) {
	case RDMA_CALLING:
		if (silence(d, p->since) > d->dead_ns)
			rdma_break(d, p, NET_UNREACHABLE, p->why[0] ? p->why : NULL);
		else if (now - p->called > CALL_NS)
			rdma_call(d, p);
		break;
	case RDMA_UP:
		if (silence(d, p->heard) > d->dead_ns) {
			rdma_break(d, p, NET_DEAD, NULL);
		} else if (is_missing(d, p)) {
			d->stats.drops[NET_DROP_DUPLICATE]++;
			rdma_break(d, p, NET_RESTARTED, "one of its packets did not come");
		} else if (silence(d, p->heard) > d->dead_ns / 4 &&
			   now - p->pinged > d->dead_ns / 4) {
			p->pinged = now;
			rdma_say(d, p, &ping);
		}
		break;
	case RDMA_ENDING:
		rdma_busy(d, p);
		break;
	case RDMA_IDLE:
		break;
	}
}

void rdma_check(struct rdma *d)
{
	bool any = rdma_reg_check(d);

	silence_check(&d->silence, d->check_at, net_now(&d->net), d->dead_ns);
	silence_listened(&d->silence, d->net.listened);
	for (uint32_t i = 0; i < d->npeers; i++) {
		if (d->peer[i]->awaited)
			rdma_await(d, d->peer[i]); /* still? */
		if (!d->peer[i]->awaited)
			continue;
		any = true;
		check_rdma_peer(d, d->peer[i]);
	}
	d->check_at = any ? net_now(&d->net) + check_every(d) : NET_NEVER;
}

/* ---- loss ------------------------------------------------------------------------------------ */

void __attribute__((noinline))
rdma_break(struct rdma *d, struct rdma_peer *p, enum net_status s, const char *why)
{
	if (p->failure != NET_OK || p->state == RDMA_IDLE || p->state == RDMA_ENDING)
		return;
	if (why && why != p->why)
		snprintf(p->why, sizeof(p->why), "%s", why);
	p->failure = s;
	rdma_busy(d, p);
}

static void drop_stuck(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_packet *k;

	while ((k = p->stuck)) {
		p->stuck = k->next;
		rdma_packet_put(d, k);
	}
}

static void leave_peer(struct rdma *d, struct rdma_peer *p)
{
	if (p->path)
		d->link->leave(d->state, p->path);
	p->path = NULL;
	p->serial++;
}

/* The call failed, but there is time left: the next greeting will try again. */
static void try_again(struct rdma *d, struct rdma_peer *p)
{
	p->failure = NET_OK;
	drop_stuck(d, p);
	leave_peer(d, p);
}

/*
 * End a failed connection. First leave the path. Then wait until no read writes to our memory
 * any more, or until that takes too long. Then end everything under way with the peer,
 * including messages that were sent meanwhile.
 */
void rdma_peer_fail(struct rdma *d, struct rdma_peer *p)
{
	enum net_status s = p->failure;
	struct rdma_msg bye = { .kind = RDMA_BYE };
	bool was_up = p->state == RDMA_UP;

	if (p->state == RDMA_CALLING && s != NET_UNREACHABLE) {
		try_again(d, p);
		return;
	}
	if (p->state != RDMA_ENDING) {
		/* a peer that does not know would go on sending for a while */
		if (was_up && s != NET_CLOSED)
			rdma_say(d, p, &bye);
		drop_stuck(d, p);
		leave_peer(d, p);
		rdma_late_free(p);
		p->state = RDMA_ENDING;
		p->since = net_now(&d->net);
	}
	if (rdma_reads_flying(p) && silence(d, p->since) < d->dead_ns)
		return;
	/* without a connection it was not used; a peer may read our greeting late and then use
	 * it */
	if (s != NET_UNREACHABLE)
		p->own_token = 0;
	p->held = false;
	rdma_outs_end(d, p, s);
	rdma_bodies_end(d, p, s);
	p->failure = NET_OK;
	p->state = RDMA_IDLE;
	p->awaited = false;
	net_peer_failed(&d->net, p->number, s, p->why[0] ? p->why : NULL);
	p->why[0] = '\0';
	if (p->watch)
		rdma_call(d, p);
}

/* ---- greetings ------------------------------------------------------------------------------- */

static bool new_token(struct rdma_peer *p)
{
	while (!p->own_token)
		if (!base_random(&p->own_token, sizeof(p->own_token)))
			return false;
	return true;
}

void rdma_call(struct rdma *d, struct rdma_peer *p)
{
	if (p->state == RDMA_UP || p->state == RDMA_ENDING || p->failure != NET_OK)
		return;
	if (p->state == RDMA_IDLE)
		p->since = net_now(&d->net);
	p->state = RDMA_CALLING;
	p->called = net_now(&d->net);
	rdma_await(d, p);
	if (!p->path)
		p->path = d->link->reach(d->state, p->who.id, NULL, 0);
	if (!p->path) {
		rdma_break(d, p, NET_UNREACHABLE, "its address is not known");
		return;
	}
	if (!new_token(p) || (!p->greeting && !base_random(&p->greeting, sizeof(p->greeting))))
		return;
	if (!p->stuck)
		rdma_greet(d, p, RDMA_HELLO, p->greeting);
}

static bool sealed(struct rdma *d, const void *packet, size_t len)
{
	uint8_t tag[NET_TAG_BYTES];

	net_tag(&d->net.keys, packet, len, NULL, 0, tag);
	return len >= TAG_END &&
	       sodium_memcmp(tag, (const uint8_t *)packet + NET_TAG_OFFSET, sizeof(tag)) == 0;
}

/* Mark the connection as open. */
static void peer_up(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	p->who = (struct net_who){
		.id = m->from, .incarnation = m->incarnation, .uid = m->uid, .jid = m->jid
	};
	p->to = m->number;
	p->token = m->own_token;
	p->allowed = m->allowed;
	p->seq_out = p->seq_in = 0;
	p->consumed = p->advertised = 0;
	p->sent = p->its_consumed = 0;
	p->began_out.length = p->began_in.length = 0;
	p->heard = net_now(&d->net);
	p->state = RDMA_UP;
	p->serial++;
	p->greeting = 0;
	p->why[0] = '\0';
	d->stats.opened++;
	net_up(&d->net, p->number, &p->who);
	rdma_busy(d, p);
}

static void hello(struct rdma *d, const struct rdma_msg *m)
{
	struct rdma_peer *p = rdma_peer_find(d, m->from);
	void *path;

	if (!p)
		p = rdma_peer_add(d, m->from);
	if (!p || p->failure != NET_OK || p->state == RDMA_ENDING)
		return;
	if (p->state == RDMA_UP) {
		if (p->token == m->own_token && p->who.incarnation == m->incarnation)
			rdma_greet(d, p, RDMA_WELCOME, m->greeting);
		else
			rdma_break(d, p, NET_RESTARTED, NULL); /* it will greet again */
		return;
	}
	path = d->link->reach(d->state, m->from, m->link_address, m->link_address_len);
	if (!path || !new_token(p))
		return;
	drop_stuck(d, p);
	leave_peer(d, p);
	p->path = path;
	peer_up(d, p, m);
	rdma_greet(d, p, RDMA_WELCOME, m->greeting);
}

/* Is it the answer to our last greeting? It may come late. The peer then has a connection with
 * the token of that greeting, and must not be left alone with it. */
static bool answer_awaited(const struct rdma_peer *p, const struct rdma_msg *m)
{
	return (p->state == RDMA_CALLING || p->state == RDMA_IDLE) && p->own_token &&
	       m->greeting == p->greeting &&
	       (p->failure == NET_OK || p->failure == NET_UNREACHABLE);
}

static void welcome(struct rdma *d, const struct rdma_msg *m)
{
	struct rdma_peer *p = rdma_peer_find(d, m->from);

	if (!p || !answer_awaited(p, m)) {
		if (!p || p->state != RDMA_UP || p->token != m->own_token)
			d->stats.drops[NET_DROP_STALE_HELLO]++;
		return;
	}
	if (!p->path)
		p->path = d->link->reach(d->state, m->from, m->link_address, m->link_address_len);
	if (!p->path)
		return;
	p->failure = NET_OK;
	peer_up(d, p, m);
}

void rdma_greeted(struct rdma *d, const struct rdma_msg *m, const void *packet, size_t len)
{
	if (!sealed(d, packet, len)) {
		d->stats.drops[NET_DROP_BAD_TAG]++;
	} else if (m->whom != net_id(d->net.ni->id) || m->from == m->whom || d->quitting) {
		d->stats.drops[NET_DROP_NOT_ACCEPTED]++;
	} else if (m->kind == RDMA_HELLO) {
		d->stats.packets_in++;
		hello(d, m);
	} else {
		d->stats.packets_in++;
		welcome(d, m);
	}
}
