/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The machine from outside: making and ending it, rounds, statistics.
 */
#include "nal/net/dgram/dgram_core.h"

#include <errno.h>
#include <stdlib.h>

/* ---- making and ending ----------------------------------------------------------------------- */

void dgram_defaults(struct dgram_cfg *cfg)
{
	*cfg = (struct dgram_cfg){
		.id = cfg->id,
		.incarnation = cfg->incarnation,
		.seed = cfg->seed,
		.uid = cfg->uid,
		.jid = cfg->jid,
		.mtu = cfg->mtu,
		.mtu_start = DGRAM_MTU_MIN,
		.rto_start_ns = 50 * DGRAM_MS,
		/* RFC 6298 says a second, for the Internet; this is a few scheduling delays */
		.rto_min_ns = 20 * DGRAM_MS,
		.rto_max_ns = 1000 * DGRAM_MS,
		.ack_delay_ns = DGRAM_MS,
		.keepalive_ns = 4000 * DGRAM_MS,
		.dead_ns = 10000 * DGRAM_MS,
		.linger_ns = 200 * DGRAM_MS,
		.push_bytes = 16384,
		.credit = 256,
		.backlog = 4096,
		.congested_bytes = 4u << 20,
		.max_peers = 1u << 20,
		.early_bytes = 64u << 20,
	};
}

/* Replace members that are 0 by the values of dgram_defaults. */
static void fill_in(struct dgram_cfg *cfg)
{
	struct dgram_cfg d = *cfg;

	dgram_defaults(&d);
#define FILL(member)                                                                               \
	if (!cfg->member)                                                                          \
	cfg->member = d.member
	FILL(mtu_start);
	FILL(rto_start_ns);
	FILL(rto_min_ns);
	FILL(rto_max_ns);
	FILL(ack_delay_ns);
	FILL(keepalive_ns);
	FILL(dead_ns);
	FILL(linger_ns);
	FILL(push_bytes);
	FILL(credit);
	FILL(backlog);
	FILL(congested_bytes);
	FILL(max_peers);
	FILL(early_bytes);
#undef FILL
}

static bool sensible(const struct dgram_cfg *cfg)
{
	return cfg->mtu >= DGRAM_MTU_MIN && cfg->mtu <= DGRAM_MTU_MAX &&
	       cfg->mtu_start >= DGRAM_MTU_MIN && cfg->mtu_start <= cfg->mtu &&
	       cfg->credit >= DGRAM_CREDIT_FIRST && cfg->credit <= 1024 &&
	       cfg->rto_min_ns <= cfg->rto_max_ns && cfg->dead_ns / 4 >= cfg->rto_min_ns &&
	       cfg->backlog <= 1u << 24;
}

struct dgram *dgram_create(const struct dgram_ops *ops, void *user, const struct dgram_cfg *cfg)
{
	struct dgram_cfg full = *cfg;
	struct dgram *m;

	fill_in(&full);
	if (!sensible(&full) || !ops->room || !ops->transmit || !ops->deliver)
		return NULL;
	/* rounded down to a power of two, the length of the ring of early messages */
	while (full.credit & (full.credit - 1))
		full.credit &= full.credit - 1;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->ops = *ops;
	m->user = user;
	m->cfg = full;
	m->random = full.seed ^ full.id * 0xd6e8feb86659fd93u ^ full.incarnation;
	m->ready = m->ready_last = NET_NONE;
	m->stats.bytes = sizeof(*m);
	return m;
}

void dgram_destroy(struct dgram *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->npeers; i++) {
		struct dgram_rec *r = dgram_rec(m, i);

		/* callbacks that report an end may not start another message now */
		m->ending = true;
		dgram_peer_fail(m, r, NET_ENDED);
	}
	for (uint32_t i = 0; i < m->nchunks; i++)
		dgram_free(m, m->chunk[i], DGRAM_CHUNK * sizeof(struct dgram_rec));
	if (m->nchunks) {
		uint32_t room = 1;

		while (room < m->nchunks)
			room *= 2;
		dgram_free(m, m->chunk, room * sizeof(struct dgram_rec *));
	}
	dgram_free(m, m->bucket, m->nbuckets * sizeof(*m->bucket));
	dgram_free(m, m->heap, m->heap_room * sizeof(*m->heap));
	dgram_pools_drain(m);
	free(m);
}

uint32_t dgram_close(struct dgram *m, uint64_t now)
{
	uint32_t left = 0;

	m->now = now;
	dgram_catch_up(m);
	m->ending = true;
	for (uint32_t i = 0; i < m->npeers; i++) {
		struct dgram_rec *r = dgram_rec(m, i);

		if (r->state != DGRAM_OPEN || r->flags & DGRAM_F_BYE)
			continue;
		if (left || !dgram_output_bye(m, r))
			left++;
		else
			r->flags |= DGRAM_F_BYE;
	}
	return left;
}

/* ---- peers and messages ---------------------------------------------------------------------- */

uint32_t dgram_peer(struct dgram *m, net_id_t id, const struct net_addr *addr)
{
	uint32_t peer = dgram_peer_find(m, id);
	struct dgram_rec *r;

	if (peer != NET_NONE)
		return peer;
	r = dgram_rec_add(m, id, addr);
	return r ? dgram_index(r) : NET_NONE;
}

void dgram_peer_fix(struct dgram *m, uint32_t peer)
{
	if (peer < m->npeers)
		dgram_rec(m, peer)->flags |= DGRAM_F_FIXED;
}

int dgram_send(struct dgram *m, uint64_t now, uint32_t peer, const struct net_out *o)
{
	struct dgram_rec *r;
	int err;

	m->now = now;
	if (peer >= m->npeers || o->header_len > NET_HEADER_MAX || m->ending ||
	    (o->copy && o->body_len > NET_COPY_MAX) ||
	    (o->body_len && !o->body.base && !m->ops.segments))
		return -EINVAL;
	r = dgram_rec(m, peer);
	err = dgram_msg_add(m, r, o);
	if (err)
		return err;
	if (r->state == DGRAM_IDLE)
		dgram_open_start(m, r);
	dgram_ready(m, r);
	return 0;
}

bool dgram_congested(const struct dgram *m, uint32_t peer)
{
	const struct dgram_conn *c = peer < m->npeers ? dgram_rec(m, peer)->conn : NULL;

	return c && c->msg_bytes >= m->cfg.congested_bytes;
}

void dgram_watch(struct dgram *m, uint32_t peer, int change)
{
	struct dgram_rec *r;
	bool idle;

	if (peer >= m->npeers)
		return;
	r = dgram_rec(m, peer);
	idle = !r->watch;
	if (change >= 0)
		r->watch += (uint32_t)change;
	else
		r->watch -= (uint32_t)dgram_min64(r->watch, -(int64_t)change);
	/* the timer may have to move */
	if (idle && r->watch)
		dgram_ready(m, r);
}

void dgram_resume(struct dgram *m, uint32_t peer)
{
	if (peer >= m->npeers)
		return;
	dgram_rec(m, peer)->flags |= DGRAM_F_RESUME;
	dgram_ready(m, dgram_rec(m, peer));
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* False: the peer needs nothing more. */
static bool timers(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	if (r->state == DGRAM_OPENING &&
	    silence_so_far(&m->silence, c->hello_since) >= m->cfg.dead_ns) {
		dgram_peer_fail(m, r, NET_UNREACHABLE);
		return false;
	}
	if (r->state != DGRAM_OPEN)
		return true;
	if (c && !dgram_loss_timers(m, r))
		return false;
	if (!(c && (c->flight || c->ping)) && dgram_keepalive_at(m, r) <= m->now) {
		c = dgram_conn_get(m, r);
		if (c)
			c->ping = true;
	}
	return true;
}

static void service(struct dgram *m, struct dgram_rec *r)
{
	if (r->flags & DGRAM_F_FAILED)
		dgram_peer_fail(m, r, NET_NO_MEMORY);
	else if ((m->late.from == r || timers(m, r)) && r->flags & DGRAM_F_RESUME)
		dgram_reassembly_resume(m, r);
	if (dgram_output(m, r))
		dgram_ready(m, r);
	if (m->late.from != r)
		dgram_rearm(m, r);
}

/* When the first timer is due. */
static uint64_t first_due(const struct dgram *m)
{
	return m->heap_n ? dgram_rec(m, m->heap[0])->due : NET_NEVER;
}

void dgram_listened(struct dgram *m, uint64_t at)
{
	silence_listened(&m->silence, at);
}

bool dgram_run(struct dgram *m, uint64_t now)
{
	uint64_t due = first_due(m);
	struct dgram_rec *r;
	bool answered;

	if (due <= now)
		silence_check(&m->silence, due, now, m->cfg.dead_ns);
	m->now = now;
	m->full = false;
	if ((m->ready == NET_NONE && now > m->late.at) || m->ahead ||
	    now - m->late.at > DGRAM_GATHER_NS)
		dgram_catch_up(m);
	dgram_output_resets(m);
	while ((r = dgram_due_next(m, now + m->ahead)))
		dgram_ready(m, r);
	answered = m->ready != NET_NONE;
	while (m->ready != NET_NONE && !m->full) {
		r = dgram_rec(m, m->ready);
		m->ready = r->ready_next;
		r->ready_next = NET_NONE;
		r->flags &= (uint8_t)~DGRAM_F_READY;
		service(m, r);
	}
	return m->full || (answered && m->late.from && now > m->late.at);
}

bool dgram_settle(struct dgram *m, uint64_t now)
{
	bool more;

	m->ahead = DGRAM_GATHER_NS;
	more = dgram_run(m, now);
	m->ahead = 0;
	return more;
}

uint64_t dgram_wake(const struct dgram *m)
{
	uint64_t due = first_due(m);

	if ((m->ready != NET_NONE || m->nresets) && !m->full)
		return 0;
	/* not in the call in which it arrived, but in the next */
	return m->late.from ? dgram_min64(due, m->late.at + 1) : due;
}

/* ---- statistics ------------------------------------------------------------------------------ */

void dgram_stats(const struct dgram *m, struct net_stats *s)
{
	*s = m->stats;
}

bool dgram_peer_info(const struct dgram *m, uint32_t peer, struct dgram_peer_info *info)
{
	const struct dgram_rec *r;
	const struct dgram_conn *c;

	if (peer >= m->npeers)
		return false;
	r = dgram_rec(m, peer);
	c = r->conn;
	*info = (struct dgram_peer_info){
		.who = { .id = r->id, .incarnation = r->incarnation, .uid = r->uid, .jid = r->jid },
		.addr = r->addr,
		.open = r->state == DGRAM_OPEN,
		.srtt_ns = r->srtt,
		.rttvar_ns = r->rttvar,
		.min_rtt_ns = r->min_rtt,
		.rto_ns = dgram_rto(m, r),
		.cwnd = r->cwnd,
		.mtu = r->mtu,
		.lost_packets = r->lost_packets,
		.heard_ns = r->heard,
	};
	if (c) {
		info->in_flight = c->flight_bytes;
		info->queued = r->tx_number - c->msg_base + c->ctl_next - c->ctl_base;
		for (uint32_t i = 0; i < c->bodies.size; i++) {
			const struct dgram_msg *msg = c->bodies.slot[i].value;

			info->queued += msg && msg->state == DGRAM_MSG_ACKED;
		}
		info->deliveries = c->reassemblies.used;
	}
	return true;
}
