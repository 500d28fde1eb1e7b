/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets in. Is it a packet of ours, is its tag right, to which connection does it belong,
 * has it arrived before? Then its frames. A packet is acknowledged if everything in it was
 * accepted. If not, it counts as never arrived, and its contents come again. Parts that were
 * accepted already are then recognized by their numbers.
 */
#include "nal/net/dgram/dgram_core.h"

/* Limits on packets without an acknowledgement: one in OWED_SHARE of those in flight, and no
 * more than OWED_MOST. An acknowledgement lets that many packets go at once, and a short queue
 * must hold them. It has held those that arrived joined. */
#define OWED_SHARE 16u
#define OWED_MOST  4u
#define OWED_WHOLE 2u /* times as many as arrived joined */

static bool seen(const struct dgram_conn *c, uint64_t pn)
{
	return c->seen[pn / 64 % DGRAM_ACK_WORDS] >> pn % 64 & 1;
}

/* Move the window so that `pn` is its last position. */
static void advance(struct dgram_rec *r, uint64_t pn)
{
	struct dgram_conn *c = r->conn;

	if (pn - r->rx_pn >= DGRAM_WINDOW) {
		memset(c->seen, 0, sizeof(c->seen));
	} else {
		for (uint64_t n = r->rx_pn + 1; n <= pn; n++)
			c->seen[n / 64 % DGRAM_ACK_WORDS] &= ~(1ull << n % 64);
	}
	r->rx_pn = pn;
}

/* RFC 4303 section 3.4.3: one window against replays and duplicates. Everything that an idle
 * connection received before counts as seen. */
static bool fresh(struct dgram *m, const struct dgram_rec *r, uint64_t pn)
{
	if (pn > r->rx_pn)
		return true;
	if (r->rx_pn - pn >= DGRAM_WINDOW) {
		net_drop(m, NET_DROP_TOO_OLD);
		return false;
	}
	if (!r->conn || seen(r->conn, pn)) {
		net_drop(m, NET_DROP_DUPLICATE);
		return false;
	}
	return true;
}

/* How many packets may wait for an acknowledgement: one, as in RFC 9000 section 13.2.1, or a
 * small share of those in flight. */
static uint64_t may_owe(const struct dgram *m, const struct dgram_head *h)
{
	uint64_t most = dgram_max64(OWED_MOST, OWED_WHOLE * (uint64_t)m->joined);
	uint64_t share = dgram_min64(h->gap / OWED_SHARE, most);

	return share ? share : 1;
}

/* Packet `pn` was accepted: record what to acknowledge, and when. A packet out of order is
 * acknowledged at once. */
static void record_packet(struct dgram *m, struct dgram_rec *r, const struct dgram_head *h,
			  bool asks)
{
	struct dgram_conn *c = r->conn;
	bool in_order = h->pn == r->rx_pn + 1;

	if (h->pn > r->rx_pn) {
		advance(r, h->pn);
		c->newest_at = m->now;
		if (h->gap < h->pn)
			c->floor = dgram_max64(c->floor, h->pn - h->gap);
	}
	c->seen[h->pn / 64 % DGRAM_ACK_WORDS] |= 1ull << h->pn % 64;
	if (!asks)
		return;
	c->unacked++;
	if (!in_order || c->unacked > may_owe(m, h))
		c->ack_at = m->now;
	else
		c->ack_at = dgram_min64(c->ack_at, m->now + m->cfg.ack_delay_ns);
	if (r->rx_number - c->acked_number >= (c->acked_credit + 1) / 2)
		c->ack_at = m->now;
}

void dgram_catch_up(struct dgram *m)
{
	struct dgram_rec *r = m->late.from;
	uint64_t now = m->now;

	if (!r)
		return;
	m->late.from = NULL;
	m->now = m->late.at;
	dgram_acked(m, r, &m->late.ack);
	m->now = now;
	dgram_after(m, r);
}

/* Complete the packet number of which an acknowledgement has the lower half: it is not beyond
 * the last number sent. */
static uint64_t whole_number(const struct dgram_rec *r, uint64_t half)
{
	uint64_t last = r->tx_pn - 1;

	return last - (uint32_t)(last - half);
}

/* May the acknowledgement wait until the message that came with it was answered? */
static bool may_wait(const struct dgram *m, const struct dgram_rec *r)
{
	return dgram_acks_all(r, &m->late.ack) && r->conn->ack_at > m->now;
}

enum outcome { TAKEN, REFUSED, GONE };

static enum outcome frame(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f,
			  bool *asks)
{
	*asks |= f->kind != DGRAM_FRAME_ACK && f->kind != DGRAM_FRAME_CONFIRM;
	switch (f->kind) {
	case DGRAM_FRAME_ACK:
		dgram_acked(m, r, f);
		return TAKEN;
	case DGRAM_FRAME_MSG:
		return dgram_reassembly_msg(m, r, f) ? TAKEN : REFUSED;
	case DGRAM_FRAME_PULL:
		dgram_msg_pulled(m, r, f);
		return TAKEN;
	case DGRAM_FRAME_DATA:
		return dgram_reassembly_data(m, r, f) ? TAKEN : REFUSED;
	case DGRAM_FRAME_BYE:
		dgram_peer_fail(m, r, NET_CLOSED);
		return GONE;
	default:
		return TAKEN;
	}
}

static void frames(struct dgram *m, struct dgram_rec *r, const struct dgram_head *h,
		   const uint8_t *packet, size_t len)
{
	size_t at = sizeof(struct dgram_wire_head);
	struct dgram_frame f = { 0 };
	enum outcome all = TAKEN;
	bool asks = false, late = false;
	int more;

	while ((more = dgram_frame_decode(packet, len, h, &at, &f)) > 0) {
		enum outcome one;

		if (f.kind == DGRAM_FRAME_ACK)
			f.body_len = whole_number(r, f.body_len);
		/* the receiver of the message need not wait for the acknowledgement */
		if (f.kind == DGRAM_FRAME_ACK && at < h->head_len &&
		    packet[at] == DGRAM_FRAME_MSG && !late) {
			m->late.ack = f;
			late = true;
			continue;
		}
		one = frame(m, r, &f, &asks);
		if (one == GONE)
			return;
		if (one == REFUSED)
			all = REFUSED;
	}
	if (more < 0) {
		net_drop(m, NET_DROP_MALFORMED);
		all = REFUSED;
	} else {
		m->stats.packets_in++;
		m->stats.bytes_in += len;
	}
	if (all == TAKEN)
		record_packet(m, r, h, asks);
	if (late && all == TAKEN && may_wait(m, r)) {
		m->late.from = r;
		m->late.at = m->now;
		return;
	}
	if (late)
		dgram_acked(m, r, &m->late.ack);
	dgram_after(m, r);
}

/* Does the packet begin with a CONFIRM? Decodes it. */
static bool begins_with_confirm(const struct dgram_head *h, const uint8_t *packet, size_t len,
				struct dgram_frame *f)
{
	size_t at = sizeof(struct dgram_wire_head);

	memset(f, 0, sizeof(*f));
	return dgram_frame_decode(packet, len, h, &at, f) > 0 && f->kind == DGRAM_FRAME_CONFIRM;
}

static void receive_frames(struct dgram *m, const struct net_addr *from, const struct dgram_head *h,
			   const uint8_t *packet, size_t len)
{
	uint32_t peer = (uint32_t)h->to;
	struct dgram_rec *r = peer < m->npeers ? dgram_rec(m, peer) : NULL;
	struct dgram_frame f;
	bool confirm = begins_with_confirm(h, packet, len, &f);

	if (r && r->next == h->to && confirm && !dgram_open_confirm(m, r, from, &f))
		return;
	if (!r || r->state != DGRAM_OPEN || r->mine != h->to ||
	    (confirm && r->theirs != f.body_len)) {
		net_drop(m, NET_DROP_UNKNOWN);
		if (confirm)
			dgram_open_unknown(m, from, f.body_len, h->to);
		return;
	}
	if (!fresh(m, r, h->pn))
		return;
	if (!dgram_conn_get(m, r)) {
		net_drop(m, NET_DROP_NO_ROOM);
		return;
	}
	r->heard = m->now;
	r->flags |= DGRAM_F_CONFIRMED;
	frames(m, r, h, packet, len);
}

void dgram_joined(struct dgram *m, uint32_t packets)
{
	m->joined = packets;
}

void dgram_receive(struct dgram *m, uint64_t now, const struct net_addr *from, const void *packet,
		   size_t len)
{
	struct dgram_hello hello;
	struct dgram_head h;
	uint64_t unknown;

	m->now = now;
	dgram_catch_up(m);
	if (dgram_head_decode(packet, len, &h)) {
		net_drop(m, NET_DROP_MALFORMED);
		return;
	}
	if (m->ops.verify && !m->ops.verify(m->user, packet, h.head_len, len)) {
		net_drop(m, NET_DROP_BAD_TAG);
		return;
	}
	if (h.type == DGRAM_FRAMES) {
		receive_frames(m, from, &h, packet, len);
	} else if (h.type == DGRAM_RESET && !dgram_reset_decode(packet, len, &unknown)) {
		dgram_open_reset(m, h.to, unknown);
	} else if (h.type != DGRAM_RESET && !dgram_hello_decode(packet, len, &hello)) {
		if (h.type == DGRAM_HELLO)
			dgram_open_hello(m, from, &hello);
		else
			dgram_open_welcome(m, h.to, from, &hello);
	} else {
		net_drop(m, NET_DROP_MALFORMED);
	}
}

void dgram_refused(struct dgram *m, uint64_t now, const void *packet, size_t len)
{
	struct dgram_hello hello;
	struct dgram_head h;

	m->now = now;
	if (dgram_head_decode(packet, len, &h) || h.type != DGRAM_HELLO ||
	    (m->ops.verify && !m->ops.verify(m->user, packet, h.head_len, len)) ||
	    dgram_hello_decode(packet, len, &hello))
		net_drop(m, NET_DROP_STALE_HELLO);
	else
		dgram_open_refused(m, &hello);
}
