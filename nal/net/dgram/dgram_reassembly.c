/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages in: their order, messages that wait for an earlier one, and deliveries. Bodies are
 * copied to their deliveries segment by segment.
 */
#include "base/usermem.h"
#include "nal/net/dgram/dgram_core.h"

/* Number of messages that we are ready to keep of one peer before they are in order. Less when
 * memory for them gets short. */
uint32_t dgram_credit(const struct dgram *m)
{
	uint64_t left =
		m->cfg.early_bytes > m->early_bytes ? m->cfg.early_bytes - m->early_bytes : 0;
	uint64_t credit = m->cfg.credit;

	if (2 * left < m->cfg.early_bytes)
		credit = credit * left / (m->cfg.early_bytes / 2 + 1);
	return credit ? (uint32_t)credit : 1;
}

/* ---- deliveries ------------------------------------------------------------------------------ */

static void delivery_free(struct dgram *m, struct dgram_reassembly *l)
{
	dgram_free(m, l->range, l->range_room * sizeof(*l->range));
	dgram_free(m, l, sizeof(*l));
}

static void begin_reassembly(struct dgram *m, struct dgram_rec *r, uint32_t number,
			     const struct net_delivery *delivery)
{
	struct dgram_reassembly *l = dgram_alloc(m, sizeof(*l));

	if (l) {
		*l = (struct dgram_reassembly){
			.number = number,
			.length = delivery->length,
			.mem = delivery->mem,
			.cookie = delivery->cookie,
		};
		if (dgram_map_put(m, &r->conn->reassemblies, number, l)) {
			dgram_ctl_add(m, r, number, l->length, DGRAM_PULL_ACCEPT);
			return;
		}
		dgram_free(m, l, sizeof(*l));
	}
	r->flags |= DGRAM_F_FAILED;
	dgram_ready(m, r);
	if (m->ops.delivered)
		m->ops.delivered(m->user, dgram_index(r), delivery->cookie, NET_NO_MEMORY);
}

void dgram_reassembly_fail(struct dgram *m, uint32_t peer, struct dgram_conn *c, enum net_status s)
{
	for (uint32_t i = 0; i < c->reassemblies.size; i++) {
		struct dgram_reassembly *l = c->reassemblies.slot[i].value;

		if (!l)
			continue;
		if (m->ops.delivered)
			m->ops.delivered(m->user, peer, l->cookie, s);
		delivery_free(m, l);
	}
	for (uint32_t i = 0; c->early && i < m->cfg.credit; i++)
		if (c->early[i]) {
			m->early_bytes -= c->early[i]->room;
			dgram_free(m, c->early[i], c->early[i]->room);
		}
}

static bool range_insert(struct dgram *m, struct dgram_reassembly *l, uint32_t at, uint64_t from,
			 uint64_t to)
{
	if (l->nranges == l->range_room) {
		uint32_t room = l->range_room ? 2 * l->range_room : 8;
		struct dgram_range *more;

		if (room > DGRAM_RANGES)
			return false;
		more = dgram_regrow(m, l->range, l->range_room * sizeof(*more),
				    room * sizeof(*more));
		if (!more)
			return false;
		l->range = more;
		l->range_room = room;
	}
	memmove(&l->range[at + 1], &l->range[at], (l->nranges - at) * sizeof(*l->range));
	l->range[at] = (struct dgram_range){ from, to };
	l->nranges++;
	return true;
}

/* Record that [from, to) is there. False: no room for another gap. */
static bool range_add(struct dgram *m, struct dgram_reassembly *l, uint64_t from, uint64_t to)
{
	uint32_t low = 0, high = l->nranges, last;

	if (from <= l->done) {
		l->done = dgram_max64(l->done, to);
	} else {
		/* the first range that does not end before it */
		while (low < high) {
			uint32_t mid = (low + high) / 2;

			if (l->range[mid].to < from)
				low = mid + 1;
			else
				high = mid;
		}
		if (low == l->nranges || l->range[low].from > to)
			return range_insert(m, l, low, from, to);
		l->range[low].from = dgram_min64(l->range[low].from, from);
		l->range[low].to = dgram_max64(l->range[low].to, to);
		for (last = low + 1; last < l->nranges && l->range[last].from <= l->range[low].to;
		     last++)
			l->range[low].to = dgram_max64(l->range[low].to, l->range[last].to);
		memmove(&l->range[low + 1], &l->range[last],
			(l->nranges - last) * sizeof(*l->range));
		l->nranges -= last - low - 1;
		return true;
	}
	for (last = 0; last < l->nranges && l->range[last].from <= l->done; last++)
		l->done = dgram_max64(l->done, l->range[last].to);
	if (last) {
		memmove(l->range, l->range + last, (l->nranges - last) * sizeof(*l->range));
		l->nranges -= last;
	}
	return true;
}

static void place_bytes(struct dgram *m, const struct dgram_reassembly *l, uint64_t offset,
			const uint8_t *bytes, uint64_t len)
{
	if (l->mem.base) {
		base_copy_user((uint8_t *)l->mem.base + offset, bytes, len);
		return;
	}
	while (len) {
		struct iovec iov[DGRAM_SEGMENTS];
		int n = m->ops.segments(m->user, l->mem.cookie, offset, len, iov, DGRAM_SEGMENTS);

		for (int i = 0; i < n && len; i++) {
			size_t part = dgram_min64(iov[i].iov_len, len);

			base_copy_user(iov[i].iov_base, bytes, part);
			bytes += part;
			offset += part;
			len -= part;
		}
		if (n < 1)
			return;
	}
}

bool dgram_reassembly_data(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f)
{
	struct dgram_reassembly *l = dgram_map_get(&r->conn->reassemblies, f->number);
	uint64_t offset = f->body_len, len = f->body_now;

	if (!l) {
		/* for a message that is over, or was never wanted: do not ask for it again */
		if (dgram_before(f->number, r->rx_number))
			return true;
		net_drop(m, NET_DROP_EARLY);
		return false;
	}
	if (offset >= l->length) {
		/* pushed before we said how little we accept */
		net_drop(m, NET_DROP_OUTSIDE);
		return true;
	}
	len = dgram_min64(len, l->length - offset);
	if (!range_add(m, l, offset, offset + len)) {
		net_drop(m, NET_DROP_NO_ROOM);
		return false;
	}
	place_bytes(m, l, offset, f->bytes, len);
	if (l->done < l->length)
		return true;
	dgram_map_remove(&r->conn->reassemblies, l->number);
	dgram_ctl_add(m, r, l->number, l->length, DGRAM_PULL_DONE);
	if (m->ops.delivered)
		m->ops.delivered(m->user, dgram_index(r), l->cookie, NET_OK);
	delivery_free(m, l);
	return true;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Give the next message to the owner. False: not now. */
static bool deliver_in_order(struct dgram *m, struct dgram_rec *r, const struct net_in *in)
{
	struct net_delivery delivery = { .length = 0 };
	uint32_t number = r->rx_number;
	enum net_verdict v = m->ops.deliver(m->user, dgram_index(r), in, &delivery);

	if (v == NET_LATER)
		return false;
	r->rx_number++;
	m->stats.messages_in++;
	if (!in->body_len || in->body)
		return true;
	if (v == NET_PULL && delivery.length) {
		delivery.length = dgram_min64(delivery.length, in->body_len);
		begin_reassembly(m, r, number, &delivery);
	} else {
		dgram_ctl_add(m, r, number, 0, v == NET_DROP ? DGRAM_PULL_REFUSE : DGRAM_PULL_DONE);
	}
	return true;
}

static struct dgram_early **early_dgram_at(struct dgram *m, struct dgram_conn *c, uint32_t number)
{
	return &c->early[number & (m->cfg.credit - 1)];
}

/* Deliver messages that waited, until one is missing or is not accepted. */
static void deliver_early(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	struct dgram_early *e;

	while (c->nearly && (e = *early_dgram_at(m, c, r->rx_number))) {
		struct dgram_early **at = early_dgram_at(m, c, r->rx_number);
		struct net_in in = {
			.header = e->bytes,
			.header_len = e->header_len,
			.body = e->body_now ? e->bytes + e->header_len : NULL,
			.body_len = e->body_len,
		};

		if (!deliver_in_order(m, r, &in)) {
			r->flags |= DGRAM_F_BLOCKED;
			return;
		}
		*at = NULL;
		c->nearly--;
		m->early_bytes -= e->room;
		dgram_free(m, e, e->room);
	}
}

/* Keep a message for later. */
static bool keep_early(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f)
{
	struct dgram_conn *c = r->conn;
	size_t room = sizeof(struct dgram_early) + f->hdr_len + f->body_now;
	struct dgram_early *e = NULL;

	if (!c->early) {
		c->early = dgram_alloc(m, m->cfg.credit * sizeof(struct dgram_early *));
		if (c->early)
			memset(c->early, 0, m->cfg.credit * sizeof(struct dgram_early *));
	}
	if (c->early && *early_dgram_at(m, c, f->number))
		return true;
	/* always keep the next in order, or no peer might ever go on */
	if (c->early && (m->early_bytes + room <= m->cfg.early_bytes || f->number == r->rx_number))
		e = dgram_alloc(m, room);
	if (!e) {
		net_drop(m, NET_DROP_NO_ROOM);
		return false;
	}
	e->room = (uint32_t)room;
	e->header_len = (uint8_t)f->hdr_len;
	e->body_now = f->body_now;
	e->body_len = f->body_len;
	memcpy(e->bytes, f->bytes, f->hdr_len + f->body_now);
	m->early_bytes += room;
	*early_dgram_at(m, c, f->number) = e;
	c->nearly++;
	return true;
}

bool dgram_reassembly_msg(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f)
{
	struct net_in in = {
		.header = f->bytes,
		.header_len = f->hdr_len,
		.body = f->body_now ? f->bytes + f->hdr_len : NULL,
		.body_len = f->body_len,
	};

	if (dgram_before(f->number, r->rx_number))
		return true;
	if (f->number - r->rx_number >= m->cfg.credit) {
		net_drop(m, NET_DROP_NO_CREDIT);
		return false;
	}
	/* twice as many as we would send ourselves, so only a faulty peer is refused */
	if (!f->body_now && f->body_len &&
	    r->conn->reassemblies.used + r->conn->ctl_next - r->conn->ctl_base >=
		    2 * m->cfg.backlog) {
		net_drop(m, NET_DROP_NO_ROOM);
		return false;
	}
	if (f->number != r->rx_number || r->flags & DGRAM_F_BLOCKED)
		return keep_early(m, r, f);
	if (!deliver_in_order(m, r, &in)) {
		if (!keep_early(m, r, f))
			return false;
		r->flags |= DGRAM_F_BLOCKED;
		return true;
	}
	deliver_early(m, r);
	return true;
}

void dgram_reassembly_resume(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	r->flags &= (uint8_t) ~(DGRAM_F_RESUME | DGRAM_F_BLOCKED);
	if (!c)
		return;
	deliver_early(m, r);
	/* the peer may be out of credit */
	if (r->rx_number != c->acked_number)
		c->ack_at = m->now;
}
