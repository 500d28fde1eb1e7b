/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets out. A packet is built in the link's memory. First come the frames that are due in
 * any case (CONFIRM, ACK), then PULLs, then messages in order, then one segment of a body,
 * which is not copied here. The contents are recorded, as they may have to be sent again, in
 * another packet with another number.
 */
#include "nal/net/dgram/dgram_core.h"

/* Packets sent to one peer before the next peer's turn, at most: as many as a socket accepts as
 * one segmented buffer. */
#define TURN 64

struct builder {
	uint8_t *head;
	size_t len, max; /* of the head; of the packet */
	struct iovec iov[DGRAM_SEGMENTS];
	int segments;
	size_t body_len;
	struct dgram_sent *sent; /* NULL: only frames that need no acknowledgement may be added */
	bool asks;
	bool named; /* it says who sent it, and the answer goes to its source address */
};

static void transmit(struct dgram *m, uint32_t peer, const struct net_addr *to, struct builder *b,
		     bool probe)
{
	struct dgram_packet p = {
		.peer = peer,
		.to = to,
		.head = b->head,
		.head_len = b->len,
		.body = b->iov,
		.segments = b->segments,
		.body_len = b->body_len,
		.probe = probe,
		.anywhere = b->head[1] == DGRAM_FRAMES && !b->named,
	};

	if (m->ops.seal)
		m->ops.seal(m->user, b->head, b->len, b->iov, b->segments,
			    b->head + NET_TAG_OFFSET);
	m->stats.packets_out++;
	m->stats.bytes_out += b->len + b->body_len;
	m->ops.transmit(m->user, &p);
}

static bool get_room(struct dgram *m, struct builder *b, size_t len)
{
	/* not all of it is zeroed: that takes longer than anything else here */
	b->head = m->ops.room(m->user, len);
	b->max = len;
	b->len = sizeof(struct dgram_wire_head);
	b->segments = 0;
	b->body_len = 0;
	b->sent = NULL;
	b->asks = b->named = false;
	if (!b->head)
		m->full = true;
	return b->head;
}

static void put_head(struct builder *b, enum dgram_type type, uint64_t to, uint64_t pn,
		     uint64_t gap)
{
	struct dgram_head h = {
		.type = (uint8_t)type,
		.head_len = (uint32_t)b->len,
		.gap = gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX,
		.to = to,
		.pn = pn,
	};

	dgram_head_encode(b->head, &h);
}

static void put_frame(struct builder *b, const struct dgram_frame *f)
{
	b->len += dgram_frame_encode(b->head + b->len, f);
}

static bool fits_frame(const struct builder *b, size_t bytes)
{
	return b->len + bytes <= b->max;
}

/* ---- handshake ------------------------------------------------------------------------------- */

bool dgram_output_hello(struct dgram *m, struct dgram_rec *r, enum dgram_type type)
{
	struct dgram_conn *c = r->conn;
	struct dgram_hello hello = {
		.from = m->cfg.id,
		.whom = r->id,
		.incarnation = m->cfg.incarnation,
		.token = r->next,
		.uid = m->cfg.uid,
		.jid = m->cfg.jid,
	};
	struct builder b;

	if (!get_room(m, &b, sizeof(struct dgram_wire_head) + sizeof(struct dgram_wire_hello)))
		return false;
	/* a late HELLO for the connection that exists already */
	if (type == DGRAM_WELCOME && r->state == DGRAM_OPEN && c->caller == r->theirs)
		hello.token = r->mine;
	b.len += dgram_hello_encode(b.head + b.len, &hello);
	put_head(&b, type, type == DGRAM_WELCOME ? c->caller : 0, 0, 0);
	transmit(m, dgram_index(r), type == DGRAM_WELCOME ? &c->caller_addr : &r->addr, &b, false);
	return true;
}

bool dgram_output_resets(struct dgram *m)
{
	while (m->nresets) {
		const struct dgram_reset *reset = &m->resets[m->nresets - 1];
		struct builder b;

		if (!get_room(m, &b,
			      sizeof(struct dgram_wire_head) + sizeof(struct dgram_wire_reset)))
			return false;
		base_put64(b.head + b.len, reset->unknown);
		b.len += sizeof(struct dgram_wire_reset);
		put_head(&b, DGRAM_RESET, reset->token, 0, 0);
		transmit(m, NET_NONE, &reset->to, &b, false);
		m->nresets--;
	}
	return true;
}

static void put_confirm(struct dgram *m, const struct dgram_rec *r, struct builder *b)
{
	b->named = true;
	put_frame(b, &(struct dgram_frame){ .kind = DGRAM_FRAME_CONFIRM,
					    .body_len = r->mine,
					    .incarnation = m->cfg.incarnation,
					    .uid = m->cfg.uid,
					    .jid = m->cfg.jid });
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

/* 64 bits of the circular window from packet `from` on, which may be before the first packet.
 * Packets before the floor are left out: it is not known which of those from before this
 * active part arrived. */
static uint64_t seen_from(const struct dgram_conn *c, uint64_t from)
{
	uint64_t low = c->seen[from / 64 % DGRAM_ACK_WORDS];
	uint64_t high = c->seen[(from / 64 + 1) % DGRAM_ACK_WORDS];
	uint64_t bits = from % 64 ? low >> from % 64 | high << (64 - from % 64) : low;
	int64_t below = (int64_t)(c->floor - from);

	if (below >= 64)
		return 0;
	return below > 0 ? bits >> below << below : bits;
}

static void put_ack(struct dgram *m, struct dgram_rec *r, struct builder *b)
{
	struct dgram_conn *c = r->conn;
	uint64_t newest = r->rx_pn;
	uint64_t span = newest > c->floor ? newest - c->floor : 0;
	size_t space = b->max - b->len - sizeof(struct dgram_wire_ack);
	uint32_t words = (uint32_t)dgram_min64((span + 63) / 64, DGRAM_ACK_WORDS - 1);
	uint64_t delay = (m->now - c->newest_at) / DGRAM_US;
	struct dgram_frame f = { .kind = DGRAM_FRAME_ACK };

	words = (uint32_t)dgram_min64(words, space / 8);
	f.words = words;
	f.credit = dgram_credit(m);
	f.number = r->rx_number;
	f.body_len = newest;
	f.delay_us = delay < UINT32_MAX ? (uint32_t)delay : UINT32_MAX;
	put_frame(b, &f);
	for (uint32_t w = 0; w < words; w++, b->len += 8)
		base_put64(b->head + b->len, seen_from(c, newest - 64ull * words + 64ull * w));
	c->unacked = 0;
	c->ack_at = NET_NEVER;
	c->acked_number = r->rx_number;
	c->acked_credit = f.credit;
}

bool dgram_output_bye(struct dgram *m, struct dgram_rec *r)
{
	struct builder b;

	if (!get_room(m, &b, DGRAM_MTU_MIN))
		return false;
	if (r->conn && r->rx_pn)
		put_ack(m, r, &b);
	put_frame(&b, &(struct dgram_frame){ .kind = DGRAM_FRAME_BYE });
	put_head(&b, DGRAM_FRAMES, r->theirs, r->tx_pn++, 0);
	transmit(m, dgram_index(r), &r->addr, &b, false);
	return true;
}

/* ---- PULLs, messages, bodies ----------------------------------------------------------------- */

static void put_ctls(struct dgram_conn *c, struct builder *b)
{
	uint32_t i = c->ctl_unsent;

	if (c->ctl_lost)
		for (i = c->ctl_base; dgram_ctl_at(c, i)->state != DGRAM_MSG_LOST; i++)
			;
	b->sent->ctl = i;
	for (; i != c->ctl_next && fits_frame(b, sizeof(struct dgram_wire_pull)); i++) {
		struct dgram_ctl *ctl = dgram_ctl_at(c, i);

		if (ctl->state != DGRAM_MSG_LOST && ctl->state != DGRAM_MSG_QUEUED)
			break;
		if (ctl->state == DGRAM_MSG_LOST)
			c->ctl_lost--;
		else
			c->ctl_unsent++;
		ctl->state = DGRAM_MSG_FLIGHT;
		put_frame(b, &(struct dgram_frame){ .kind = DGRAM_FRAME_PULL,
						    .reason = ctl->reason,
						    .number = ctl->number,
						    .body_len = ctl->length });
		b->sent->ctls++;
		b->asks = true;
	}
}

static struct dgram_msg *msg_at(const struct dgram_conn *c, uint32_t number)
{
	return c->msg[number & (c->msg_room - 1)];
}

static void put_msgs(struct dgram *m, struct dgram_rec *r, struct builder *b)
{
	struct dgram_conn *c = r->conn;
	uint32_t n = c->msg_unsent;

	if (c->msg_lost)
		for (n = c->msg_base; msg_at(c, n)->state != DGRAM_MSG_LOST; n++)
			;
	b->sent->msg = n;
	for (; n != r->tx_number; n++) {
		struct dgram_msg *msg = msg_at(c, n);
		uint32_t now = msg->with_body ? (uint32_t)msg->body_len : 0;

		if (!fits_frame(b, sizeof(struct dgram_wire_msg) + msg->header_len + now))
			break;
		if (msg->state == DGRAM_MSG_LOST) {
			c->msg_lost--;
		} else {
			if (msg->state != DGRAM_MSG_QUEUED || !dgram_before(n, c->credit_end))
				break;
			c->msg_unsent++;
		}
		msg->state = DGRAM_MSG_FLIGHT;
		put_frame(b, &(struct dgram_frame){ .kind = DGRAM_FRAME_MSG,
						    .hdr_len = msg->header_len,
						    .body_now = now,
						    .number = n,
						    .body_len = msg->body_len });
		memcpy(b->head + b->len, msg->bytes, msg->header_len);
		b->len += msg->header_len;
		if (now) {
			dgram_copy_mem(m, &msg->body, msg->body_len, b->head + b->len);
			b->len += msg->body_len;
		}
		b->sent->msgs++;
		b->asks = true;
		dgram_msg_flow(c, msg);
	}
}

/* Put a range of a body behind the head: as much as fits and is in few enough iovecs. Zeros
 * are sent for bytes that are not there, as the receiver waits for them. Returns the length. */
static uint32_t put_data(struct dgram *m, struct dgram_msg *msg, uint64_t offset, uint64_t len,
			 struct builder *b)
{
	static uint8_t zeros[1024];
	size_t room = b->max - b->len - sizeof(struct dgram_wire_data);
	uint32_t got = 0;

	len = dgram_min64(len, dgram_min64(room, UINT16_MAX));
	if (msg->body.base) {
		b->iov[0] = (struct iovec){ (uint8_t *)msg->body.base + offset, len };
		b->segments = 1;
		got = (uint32_t)len;
	} else {
		int n = m->ops.segments(m->user, msg->body.cookie, offset, len, b->iov,
					DGRAM_SEGMENTS);

		for (; b->segments < n && got < len; b->segments++) {
			struct iovec *iov = &b->iov[b->segments];

			iov->iov_len = dgram_min64(iov->iov_len, len - got);
			got += (uint32_t)iov->iov_len;
		}
		if (!got) {
			got = (uint32_t)dgram_min64(len, sizeof(zeros));
			b->iov[0] = (struct iovec){ zeros, got };
			b->segments = 1;
		}
	}
	put_frame(b, &(struct dgram_frame){ .kind = DGRAM_FRAME_DATA,
					    .number = msg->number,
					    .body_now = got,
					    .body_len = offset });
	b->body_len = got;
	b->sent->data = msg;
	b->sent->data_offset = offset;
	b->sent->data_len = got;
	msg->refs++;
	b->asks = true;
	return got;
}

/* Bring a segment that may be sent again to the head of the queue. A segment that was pushed
 * and lost must wait until the receiver asks. Until it knows the message it refuses any packet
 * with a segment of it. */
static bool segment_wanted(struct dgram *m, struct dgram_conn *c)
{
	while (c->segment_count) {
		struct dgram_segment *p = dgram_segment_at(c, 0);

		if (p->length && !p->msg->over && p->offset < p->msg->limit)
			break;
		dgram_segment_pop(m, c);
	}
	for (uint32_t i = 0; i < c->segment_count; i++) {
		struct dgram_segment *p = dgram_segment_at(c, i), first = *dgram_segment_at(c, 0);

		if (!p->msg->asked || !p->length || p->msg->over || p->offset >= p->msg->limit)
			continue;
		*dgram_segment_at(c, 0) = *p;
		*p = first;
		return true;
	}
	return false;
}

/* Drop segments and bodies that are not wanted any more. True: there is something to send. */
static bool bodies_wanted(struct dgram *m, struct dgram_conn *c)
{
	if (segment_wanted(m, c))
		return true;
	while (c->flow) {
		if (!c->flow->over && c->flow->next < c->flow->limit)
			return true;
		dgram_msg_unflow(m, c);
	}
	return false;
}

static void put_body(struct dgram *m, struct dgram_conn *c, struct builder *b)
{
	if (!bodies_wanted(m, c) || !fits_frame(b, sizeof(struct dgram_wire_data) + 1))
		return;
	if (segment_wanted(m, c)) {
		struct dgram_segment *p = dgram_segment_at(c, 0);
		uint64_t len = dgram_min64(p->length, p->msg->limit - p->offset);
		uint32_t got = put_data(m, p->msg, p->offset, len, b);

		p->offset += got;
		p->length -= got;
	} else {
		struct dgram_msg *msg = c->flow;

		msg->next += put_data(m, msg, msg->next, msg->limit - msg->next, b);
	}
}

/* ---- one packet ------------------------------------------------------------------------------ */

/* Is there anything to send that asks for acknowledgement? */
static bool has_content(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	if (c->ping || dgram_ctls_due(m, c) || c->msg_lost)
		return true;
	if (c->msg_unsent != r->tx_number) {
		if (dgram_before(c->msg_unsent, c->credit_end))
			return true;
	}
	if (bodies_wanted(m, c))
		return true;
	/* RFC 9293 section 3.8.6.1: nobody else would ask if an ACK with new credit was lost,
	 * or one that says that waiting messages were delivered */
	if (c->msg_base != r->tx_number && !c->flight && c->persist_at == NET_NEVER) {
		c->persist_at =
			m->now + dgram_min64(dgram_rto(m, r) << c->persists, m->cfg.rto_max_ns);
		if (c->persists < 8)
			c->persists++;
	}
	return false;
}

static bool window_open(struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;

	if (c->flight_bytes + r->mtu <= r->cwnd || !c->flight || c->probes)
		return true;
	c->limited = true;
	return false;
}

static void finish_packet(struct dgram *m, struct dgram_rec *r, struct builder *b, bool probe)
{
	struct dgram_conn *c = r->conn;
	uint64_t pn = r->tx_pn++;

	if (b->asks) {
		b->sent->pn = pn;
		b->sent->bytes = (uint32_t)(b->len + b->body_len);
		b->sent->probe = probe;
		dgram_sent_out(m, r, b->sent);
	}
	/* the peer need not report what is older than the oldest in flight, nor what has
	 * arrived */
	put_head(b, DGRAM_FRAMES, r->theirs, pn, pn - c->oldest - (m->late.from == r));
	transmit(m, dgram_index(r), &r->addr, b, probe);
}

static bool output_mtu_probe(struct dgram *m, struct dgram_rec *r, uint32_t size)
{
	struct dgram_sent *sent = dgram_sent_place(m, r);
	struct builder b;

	if (!sent)
		return true;
	if (!get_room(m, &b, size))
		return false;
	b.sent = sent;
	if (!(r->flags & DGRAM_F_CONFIRMED))
		put_confirm(m, r, &b);
	put_frame(&b, &(struct dgram_frame){ .kind = DGRAM_FRAME_PING });
	memset(b.head + b.len, 0, size - b.len);
	b.head[b.len] = DGRAM_FRAME_PAD;
	b.len = size;
	b.asks = true;
	r->conn->mtu_out = true;
	finish_packet(m, r, &b, true);
	return true;
}

static bool messages_wait(const struct dgram_rec *r)
{
	const struct dgram_conn *c = r->conn;

	return c->msg_lost ||
	       (c->msg_unsent != r->tx_number && dgram_before(c->msg_unsent, c->credit_end));
}

static void put_content(struct dgram *m, struct dgram_rec *r, struct builder *b)
{
	struct dgram_conn *c = r->conn;

	if (c->ping) {
		/* alone, so that it is acknowledged even if the peer refuses other frames */
		c->ping = false;
		b->asks = true;
		put_frame(b, &(struct dgram_frame){ .kind = DGRAM_FRAME_PING });
		return;
	}
	if (c->ctl_lost || c->ctl_unsent != c->ctl_next)
		put_ctls(c, b);
	if (messages_wait(r))
		put_msgs(m, r, b);
	/* bodies come behind the last header, or they would be refused */
	if (!messages_wait(r))
		put_body(m, c, b);
}

enum built { NOTHING, SENT, NO_ROOM };

static enum built output_packet(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	bool ack = c->ack_at <= m->now, content = has_content(m, r);
	struct dgram_sent *sent;
	struct builder b;

	if (!content)
		c->limited = false;
	/* the contents of the last lost packet need not be sent again */
	if (!content && !c->flight)
		c->waiting_since = 0;
	sent = content && window_open(r) ? dgram_sent_place(m, r) : NULL;

	if (!ack && !sent)
		return NOTHING;
	if (!get_room(m, &b, r->mtu))
		return NO_ROOM;
	b.sent = sent;
	if (!(r->flags & DGRAM_F_CONFIRMED) || c->backoff > 1)
		put_confirm(m, r, &b);
	ack = r->rx_pn && (ack || c->unacked || r->rx_number != c->acked_number);
	if (ack)
		put_ack(m, r, &b);
	c->ack_at = NET_NEVER;
	if (sent) {
		put_content(m, r, &b);
		if (b.asks && c->probes)
			c->probes--;
	}
	if (!ack && !b.asks)
		return NOTHING;
	finish_packet(m, r, &b, false);
	return SENT;
}

/* Is there certainly nothing for another packet? */
static bool said_all(const struct dgram_rec *r)
{
	const struct dgram_conn *c = r->conn;

	return !c->ping && !c->msg_lost && c->msg_unsent == r->tx_number && !c->ctl_lost &&
	       c->ctl_unsent == c->ctl_next && !c->flow && !c->segment_count && c->flight &&
	       c->ack_at == NET_NEVER;
}

bool dgram_output(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint32_t probe;

	if (!c)
		return false;
	if (c->welcome) {
		if (!dgram_output_hello(m, r, DGRAM_WELCOME))
			return true;
		c->welcome = false;
	}
	if (r->state == DGRAM_OPENING && c->hello_at <= m->now) {
		if (!dgram_output_hello(m, r, DGRAM_HELLO))
			return true;
		/* RFC 6298 section 5.5: each time-out is twice as long as the one before */
		c->hello_at =
			m->now + dgram_min64(m->cfg.rto_start_ns << (c->hellos < 8 ? c->hellos : 8),
					     m->cfg.rto_max_ns);
		c->hellos++;
	}
	if (r->state != DGRAM_OPEN)
		return false;
	if (m->now - c->last_at > dgram_rto(m, r) && !c->flight)
		dgram_cc_idle(m, r);
	probe = dgram_mtu_wanted(m, r);
	if (probe && !output_mtu_probe(m, r, probe))
		return true;
	for (int i = 0; i < TURN; i++) {
		enum built built = output_packet(m, r);

		if (built != SENT)
			return built == NO_ROOM;
		if (said_all(r)) {
			c->limited = false;
			return false;
		}
	}
	return true;
}
