/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Records of peers, their active parts, and the timers: a heap of peers by the time when each
 * must be serviced. A timer that moves to a later time, as those of packets in flight do all
 * the time, stays where it is in the heap. It is then serviced too early once, which costs
 * less than moving it each time.
 */
#include "nal/net/dgram/dgram_core.h"

/* splitmix64: the step of a Weyl sequence, mixed. Tokens must differ. They need be
 * unpredictable only where there is no key, and nothing is guaranteed there. */
uint64_t dgram_random(struct dgram *m)
{
	uint64_t z = m->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t dgram_token(struct dgram *m, uint32_t index)
{
	uint64_t high = dgram_random(m) >> 32;

	return (high ? high : 1) << 32 | index;
}

/* ---- peers ----------------------------------------------------------------------------------- */

static uint32_t hash(const struct dgram *m, net_id_t id)
{
	return (uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32) & (m->nbuckets - 1);
}

uint32_t dgram_peer_find(const struct dgram *m, net_id_t id)
{
	uint32_t i;

	if (!m->nbuckets)
		return NET_NONE;
	for (i = m->bucket[hash(m, id)]; i; i = dgram_rec(m, i - 1)->hash_next)
		if (dgram_rec(m, i - 1)->id == id)
			return i - 1;
	return NET_NONE;
}

static void hash_in(struct dgram *m, uint32_t index)
{
	struct dgram_rec *r = dgram_rec(m, index);
	uint32_t b = hash(m, r->id);

	r->hash_next = m->bucket[b];
	m->bucket[b] = index + 1;
}

static bool rehash(struct dgram *m, uint32_t nbuckets)
{
	uint32_t *bucket = dgram_alloc(m, nbuckets * sizeof(*bucket));

	if (!bucket)
		return false;
	memset(bucket, 0, nbuckets * sizeof(*bucket));
	dgram_free(m, m->bucket, m->nbuckets * sizeof(*m->bucket));
	m->bucket = bucket;
	m->nbuckets = nbuckets;
	for (uint32_t i = 0; i < m->npeers; i++)
		hash_in(m, i);
	return true;
}

/* Make room for one more record and its timer. */
static bool room_for_record(struct dgram *m)
{
	struct dgram_rec **chunk, *recs;
	uint32_t *heap;

	if (m->npeers == m->nbuckets && !rehash(m, m->nbuckets ? 2 * m->nbuckets : 16))
		return false;
	if (m->npeers == m->heap_room) {
		uint32_t room = m->heap_room ? 2 * m->heap_room : 16;

		heap = dgram_regrow(m, m->heap, m->heap_room * sizeof(*heap), room * sizeof(*heap));
		if (!heap)
			return false;
		m->heap = heap;
		m->heap_room = room;
	}
	if (m->npeers < m->nchunks * DGRAM_CHUNK)
		return true;
	recs = dgram_alloc(m, DGRAM_CHUNK * sizeof(*recs));
	if (!recs)
		return false;
	if (!(m->nchunks & (m->nchunks - 1))) {
		uint32_t room = m->nchunks ? 2 * m->nchunks : 1;

		chunk = dgram_regrow(m, m->chunk, m->nchunks * sizeof(struct dgram_rec *),
				     room * sizeof(struct dgram_rec *));
		if (!chunk) {
			dgram_free(m, recs, DGRAM_CHUNK * sizeof(*recs));
			return false;
		}
		m->chunk = chunk;
	}
	m->chunk[m->nchunks++] = recs;
	return true;
}

static void hash_out(struct dgram *m, uint32_t index)
{
	uint32_t *at = &m->bucket[hash(m, dgram_rec(m, index)->id)];

	while (*at != index + 1)
		at = &dgram_rec(m, *at - 1)->hash_next;
	*at = dgram_rec(m, index)->hash_next;
}

/* Find a record that can be reused. Records are tried in the order of their numbers, so that
 * each stays for some time. NULL: none can. */
static struct dgram_rec *forgettable(struct dgram *m)
{
	for (uint32_t i = 0; i < m->npeers; i++) {
		struct dgram_rec *r = dgram_rec(m, m->forget++ % m->npeers);

		if (r->state == DGRAM_IDLE && !r->conn && !r->watch && !(r->flags & DGRAM_F_READY))
			return r;
	}
	return NULL;
}

struct dgram_rec *dgram_rec_add(struct dgram *m, net_id_t id, const struct net_addr *addr)
{
	uint32_t index = m->npeers;
	struct dgram_rec *r;

	if (m->npeers < m->cfg.max_peers) {
		if (!room_for_record(m))
			return NULL;
		r = dgram_rec(m, m->npeers++);
		*r = (struct dgram_rec){ .due = NET_NEVER };
		m->stats.peers++;
	} else {
		r = forgettable(m);
		if (!r)
			return NULL;
		index = dgram_index(r);
		hash_out(m, index);
	}
	/* its timer may still be in the heap */
	*r = (struct dgram_rec){
		.id = id,
		.addr = *addr,
		.next = dgram_token(m, index),
		.due = r->due,
		.heap = r->heap,
		.ready_next = NET_NONE,
		.mtu = m->cfg.mtu_start,
	};
	hash_in(m, index);
	return r;
}

/* ---- active parts ---------------------------------------------------------------------------- */

struct dgram_conn *dgram_conn_get(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	if (c)
		return c;
	c = dgram_alloc(m, sizeof(*c));
	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	/* everything until now is over on both sides: late copies are duplicates */
	memset(c->seen, 0xff, sizeof(c->seen));
	c->floor = r->rx_pn + 1;
	c->oldest = r->tx_pn;
	c->newest_acked = r->tx_pn ? r->tx_pn - 1 : 0;
	c->reo_mult = 1;
	c->loss_at = c->ack_at = c->persist_at = NET_NEVER;
	c->msg_base = c->msg_unsent = r->tx_number;
	c->credit_end = r->tx_number + DGRAM_CREDIT_FIRST;
	c->acked_number = r->rx_number;
	c->acked_credit = dgram_credit(m);
	c->flow_end = &c->flow;
	c->idle_since = m->now;
	c->rate_since = m->now;
	c->rate_best[1] = r->rate;
	c->least_rtt[0] = c->least_rtt[1] = UINT64_MAX;
	r->conn = c;
	m->stats.active++;
	return c;
}

void dgram_conn_free(struct dgram *m, struct dgram_conn *c)
{
	/* remains of messages that are over */
	dgram_sent_forget(m, c);
	while (c->flow)
		dgram_msg_unflow(m, c);
	while (c->segment_count)
		dgram_segment_pop(m, c);
	dgram_free(m, c->sent, c->sent_room * sizeof(*c->sent));
	dgram_free(m, c->msg, c->msg_room * sizeof(struct dgram_msg *));
	dgram_free(m, c->ctl, c->ctl_room * sizeof(*c->ctl));
	dgram_free(m, c->segment, c->segment_room * sizeof(*c->segment));
	dgram_free(m, c->early, m->cfg.credit * sizeof(struct dgram_early *));
	dgram_map_fini(m, &c->bodies);
	dgram_map_fini(m, &c->reassemblies);
	dgram_free(m, c, sizeof(*c));
	m->stats.active--;
}

/* Is nothing going on that needs the active part? */
static bool idle(const struct dgram_rec *r)
{
	const struct dgram_conn *c = r->conn;

	return r->state != DGRAM_OPENING && !c->welcome && !c->flight && !c->ping &&
	       c->msg_base == r->tx_number && c->ctl_base == c->ctl_next && !c->bodies.used &&
	       !c->reassemblies.used && !c->nearly && !c->unacked && c->ack_at == NET_NEVER &&
	       !(r->flags & (DGRAM_F_BLOCKED | DGRAM_F_RESUME));
}

/* Is there nothing to send, now or again, and nothing that may have to be sent? */
static bool satisfied(const struct dgram *m, const struct dgram_rec *r)
{
	const struct dgram_conn *c = r->conn;

	return r->state == DGRAM_OPEN && !c->welcome && !c->flight && !c->ping &&
	       c->msg_base == r->tx_number && c->ctl_base == c->ctl_next && !c->flow &&
	       !c->segment_count && c->persist_at == NET_NEVER && c->ack_at > m->now &&
	       !(r->flags & (DGRAM_F_RESUME | DGRAM_F_READY | DGRAM_F_FAILED));
}

void dgram_after(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	if (!satisfied(m, r)) {
		dgram_ready(m, r);
		return;
	}
	/* as dgram_run would leave it */
	c->limited = false;
	c->waiting_since = 0;
	c->idle_since = m->now;
	dgram_due(m, r, dgram_min64(c->ack_at, dgram_keepalive_at(m, r)));
}

/* ---- peers that dgram_run services ----------------------------------------------------------- */

void dgram_ready(struct dgram *m, struct dgram_rec *r)
{
	uint32_t index = dgram_index(r);

	if (r->flags & DGRAM_F_READY)
		return;
	r->flags |= DGRAM_F_READY;
	r->ready_next = NET_NONE;
	if (m->ready == NET_NONE)
		m->ready = index;
	else
		dgram_rec(m, m->ready_last)->ready_next = index;
	m->ready_last = index;
}

/* ---- timers ---------------------------------------------------------------------------------- */

static uint64_t due_at(const struct dgram *m, uint32_t place)
{
	return dgram_rec(m, m->heap[place])->due;
}

static void place_index(struct dgram *m, uint32_t at, uint32_t index)
{
	m->heap[at] = index;
	dgram_rec(m, index)->heap = at + 1;
}

static void sift_up(struct dgram *m, uint32_t at)
{
	uint32_t index = m->heap[at];
	uint64_t due = dgram_rec(m, index)->due;

	while (at && due < due_at(m, (at - 1) / 2)) {
		place_index(m, at, m->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	place_index(m, at, index);
}

static void sift_down(struct dgram *m, uint32_t at)
{
	uint32_t index = m->heap[at], child;
	uint64_t due = dgram_rec(m, index)->due;

	for (; (child = 2 * at + 1) < m->heap_n; at = child) {
		if (child + 1 < m->heap_n && due_at(m, child + 1) < due_at(m, child))
			child++;
		if (due <= due_at(m, child))
			break;
		place_index(m, at, m->heap[child]);
	}
	place_index(m, at, index);
}

void dgram_due(struct dgram *m, struct dgram_rec *r, uint64_t at)
{
	if (r->heap ? at >= r->due : at == NET_NEVER)
		return;
	r->due = at;
	if (!r->heap) {
		m->heap[m->heap_n] = dgram_index(r);
		r->heap = ++m->heap_n;
	}
	sift_up(m, r->heap - 1);
}

struct dgram_rec *dgram_due_next(struct dgram *m, uint64_t now)
{
	struct dgram_rec *r;

	if (!m->heap_n || due_at(m, 0) > now)
		return NULL;
	r = dgram_rec(m, m->heap[0]);
	r->heap = 0;
	r->due = NET_NEVER;
	if (--m->heap_n) {
		place_index(m, 0, m->heap[m->heap_n]);
		sift_down(m, 0);
	}
	return r;
}

uint64_t dgram_keepalive_at(const struct dgram *m, const struct dgram_rec *r)
{
	uint64_t every = m->cfg.keepalive_ns;

	/* sooner if something is expected of it */
	if (r->watch || (r->conn && (r->conn->reassemblies.used || r->conn->bodies.used)))
		every = dgram_min64(every, m->cfg.dead_ns / 4);
	return r->heard + every;
}

void dgram_rearm(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint64_t at = NET_NEVER;

	if (r->state == DGRAM_OPEN && !(c && (c->flight || c->ping)))
		at = dgram_keepalive_at(m, r);
	if (c && idle(r)) {
		if (m->now - c->idle_since >= m->cfg.linger_ns) {
			r->conn = NULL;
			dgram_conn_free(m, c);
			if (!m->stats.active)
				dgram_pools_drain(m);
		} else {
			at = dgram_min64(at, c->idle_since + m->cfg.linger_ns);
		}
	} else if (c) {
		c->idle_since = m->now;
		if (r->state == DGRAM_OPENING) {
			at = dgram_min64(c->hello_at, silence_since(&m->silence, c->hello_since) +
							      m->cfg.dead_ns);
		} else {
			at = dgram_min64(at, dgram_min64(c->ack_at, c->persist_at));
			at = dgram_min64(at, dgram_loss_due(m, r));
			/* PULLs that are due wait for the window */
			if (c->ctl_unsent != c->ctl_next && c->ctl_at > m->now)
				at = dgram_min64(at, c->ctl_at);
		}
	}
	dgram_due(m, r, at);
}
