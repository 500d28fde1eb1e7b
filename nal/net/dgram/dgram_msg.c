/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages out: the queue of a peer, bodies that the receiver fetches, and PULLs, which report
 * on messages in. Each is found again by its number when a packet that carried it arrived or
 * was lost.
 */
#include "nal/net/dgram/dgram_core.h"

#include <errno.h>

static struct dgram_msg **slot(const struct dgram_conn *c, uint32_t number)
{
	return &c->msg[number & (c->msg_room - 1)];
}

void dgram_msg_unref(struct dgram *m, struct dgram_msg *msg)
{
	if (!--msg->refs)
		dgram_free(m, msg, msg->room);
}

/* Report the end of a message to the owner, once. */
static void end(struct dgram *m, uint32_t peer, struct dgram_conn *c, struct dgram_msg *msg,
		uint64_t length, enum net_status s)
{
	if (msg->over)
		return;
	msg->over = true;
	c->msg_bytes -= msg->room;
	if (msg->cookie && m->ops.sent)
		m->ops.sent(m->user, peer, msg->cookie, length, s);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static bool room_in_ring(struct dgram *m, struct dgram_rec *r)
{
	struct dgram_conn *c = r->conn;
	uint32_t room = c->msg_room ? 2 * c->msg_room : 16;
	struct dgram_msg **ring;

	if (r->tx_number - c->msg_base < c->msg_room)
		return true;
	ring = dgram_alloc(m, room * sizeof(struct dgram_msg *));
	if (!ring)
		return false;
	for (uint32_t n = c->msg_base; n != r->tx_number; n++)
		ring[n & (room - 1)] = *slot(c, n);
	dgram_free(m, c->msg, c->msg_room * sizeof(struct dgram_msg *));
	c->msg = ring;
	c->msg_room = room;
	return true;
}

void dgram_copy_mem(struct dgram *m, const struct net_mem *mem, uint64_t len, uint8_t *to)
{
	uint64_t at = 0;

	if (mem->base) {
		memcpy(to, mem->base, len);
		return;
	}
	while (at < len) {
		struct iovec iov[DGRAM_SEGMENTS];
		int n = m->ops.segments(m->user, mem->cookie, at, len - at, iov, DGRAM_SEGMENTS);

		if (n < 1) {
			memset(to + at, 0, len - at);
			return;
		}
		for (int i = 0; i < n && at < len; i++) {
			size_t k = dgram_min64(iov[i].iov_len, len - at);

			memcpy(to + at, iov[i].iov_base, k);
			at += k;
		}
	}
}

static struct dgram_msg *new_msg(struct dgram *m, const struct net_out *o)
{
	size_t room = sizeof(struct dgram_msg) + o->header_len + (o->copy ? o->body_len : 0);
	struct dgram_msg *msg = dgram_alloc(m, room);

	if (!msg)
		return NULL;
	*msg = (struct dgram_msg){
		.header_len = (uint8_t)o->header_len,
		.with_body = o->body_len <= DGRAM_INLINE_MAX,
		.refs = 1,
		.room = (uint32_t)room,
		.body_len = o->body_len,
		.limit = dgram_min64(o->body_len, dgram_max64(o->push, m->cfg.push_bytes)),
		.body = o->body,
		.cookie = o->cookie,
	};
	if (o->header_len)
		memcpy(msg->bytes, o->header, o->header_len);
	if (o->copy && o->body_len) {
		dgram_copy_mem(m, &o->body, o->body_len, msg->bytes + o->header_len);
		msg->body.base = msg->bytes + o->header_len;
	}
	return msg;
}

int dgram_msg_add(struct dgram *m, struct dgram_rec *r, const struct net_out *o)
{
	struct dgram_conn *c = dgram_conn_get(m, r);
	struct dgram_msg *msg;

	if (!c)
		return -ENOMEM;
	if (r->tx_number - c->msg_base >= m->cfg.backlog || c->bodies.used >= m->cfg.backlog)
		return -EAGAIN;
	if (!room_in_ring(m, r))
		return -ENOMEM;
	msg = new_msg(m, o);
	if (!msg)
		return -ENOMEM;
	msg->number = r->tx_number;
	if (!msg->with_body) {
		if (!dgram_map_put(m, &c->bodies, msg->number, msg)) {
			dgram_msg_unref(m, msg);
			return -ENOMEM;
		}
		msg->refs++;
	}
	*slot(c, r->tx_number++) = msg;
	c->msg_bytes += msg->room;
	m->stats.messages_out++;
	return 0;
}

void dgram_msg_acked(struct dgram_conn *c, uint32_t number)
{
	struct dgram_msg *msg;

	if (number - c->msg_base >= c->msg_unsent - c->msg_base)
		return;
	msg = *slot(c, number);
	if (msg->state == DGRAM_MSG_LOST)
		c->msg_lost--;
	msg->state = DGRAM_MSG_ACKED;
}

void dgram_msg_delivered(struct dgram *m, struct dgram_rec *r, uint32_t number)
{
	struct dgram_conn *c = r->conn;

	/* a delivered message has arrived, even if the ACK of its packet did not */
	while (dgram_before(c->msg_base, number)) {
		struct dgram_msg *msg = *slot(c, c->msg_base);

		dgram_msg_acked(c, c->msg_base);
		c->msg_base++;
		if (msg->with_body)
			end(m, dgram_index(r), c, msg, msg->body_len, NET_OK);
		dgram_msg_unref(m, msg);
	}
}

/* ---- bodies ---------------------------------------------------------------------------------- */

void dgram_msg_flow(struct dgram_conn *c, struct dgram_msg *msg)
{
	if (msg->flowing || msg->over || msg->with_body || msg->next >= msg->limit)
		return;
	msg->flowing = true;
	msg->refs++;
	msg->flow = NULL;
	*c->flow_end = msg;
	c->flow_end = &msg->flow;
}

void dgram_msg_unflow(struct dgram *m, struct dgram_conn *c)
{
	struct dgram_msg *msg = c->flow;

	c->flow = msg->flow;
	if (!c->flow)
		c->flow_end = &c->flow;
	msg->flowing = false;
	dgram_msg_unref(m, msg);
}

void dgram_msg_pulled(struct dgram *m, struct dgram_rec *r, const struct dgram_frame *f)
{
	static const enum net_status status[] = {
		[DGRAM_PULL_DONE] = NET_OK,
		[DGRAM_PULL_REFUSE] = NET_REFUSED,
	};
	struct dgram_conn *c = r->conn;
	struct dgram_msg *msg = dgram_map_get(&c->bodies, f->number);

	/* over already, or the peer cannot know it yet */
	if (!msg || msg->state == DGRAM_MSG_QUEUED)
		return;
	if (f->reason == DGRAM_PULL_ACCEPT) {
		if (!msg->asked) {
			msg->asked = true;
			msg->limit = dgram_min64(f->body_len, msg->body_len);
			dgram_msg_flow(c, msg);
		}
		return;
	}
	dgram_map_remove(&c->bodies, f->number);
	dgram_msg_acked(c, f->number);
	end(m, dgram_index(r), c, msg, dgram_min64(f->body_len, msg->body_len), status[f->reason]);
	dgram_msg_unref(m, msg);
}

/* ---- segments to be sent again --------------------------------------------------------------- */

void dgram_segment_add(struct dgram *m, struct dgram_rec *r, struct dgram_msg *msg, uint64_t offset,
		       uint32_t length)
{
	struct dgram_conn *c = r->conn;

	if (msg->over || offset >= msg->limit)
		return;
	if (c->segment_count == c->segment_room) {
		uint32_t room = c->segment_room ? 2 * c->segment_room : 16;
		struct dgram_segment *ring = dgram_alloc(m, room * sizeof(*ring));

		if (!ring) {
			r->flags |= DGRAM_F_FAILED;
			dgram_ready(m, r);
			return;
		}
		for (uint32_t i = 0; i < c->segment_count; i++)
			ring[i] = *dgram_segment_at(c, i);
		dgram_free(m, c->segment, c->segment_room * sizeof(*c->segment));
		c->segment = ring;
		c->segment_room = room;
		c->segment_head = 0;
	}
	msg->refs++;
	*dgram_segment_at(c, c->segment_count++) =
		(struct dgram_segment){ .msg = msg, .offset = offset, .length = length };
}

void dgram_segment_forget(struct dgram_conn *c, const struct dgram_sent *s)
{
	for (uint32_t i = 0; i < c->segment_count; i++) {
		struct dgram_segment *p = dgram_segment_at(c, i);

		if (p->msg == s->data && p->offset == s->data_offset && p->length <= s->data_len) {
			p->length = 0; /* dropped at the head of the queue */
			return;
		}
	}
}

void dgram_segment_pop(struct dgram *m, struct dgram_conn *c)
{
	struct dgram_msg *msg = dgram_segment_at(c, 0)->msg;

	c->segment_head = (c->segment_head + 1) & (c->segment_room - 1);
	c->segment_count--;
	dgram_msg_unref(m, msg);
}

/* ---- the end of a connection ----------------------------------------------------------------- */

/* Give the message back to the owner, if that can send it another way. */
static bool msg_taken_back(struct dgram *m, uint32_t peer, struct dgram_conn *c,
			   struct dgram_msg *msg)
{
	struct net_out o = {
		.header = msg->bytes,
		.header_len = msg->header_len,
		.body = msg->body,
		.body_len = msg->body_len,
		.copy = msg->body.base == msg->bytes + msg->header_len,
		.push = msg->limit,
		.cookie = msg->cookie,
	};

	if (!m->ops.unsent || !m->ops.unsent(m->user, peer, &o))
		return false;
	msg->over = true;
	c->msg_bytes -= msg->room;
	return true;
}

void dgram_msg_fail(struct dgram *m, uint32_t peer, struct dgram_conn *c, uint32_t last,
		    enum net_status s)
{
	/* in the order they were given; first those that wait only for their bodies */
	for (uint32_t i = 0; i < c->bodies.size; i++) {
		struct dgram_msg *msg = c->bodies.slot[i].value;

		if (!msg)
			continue;
		if (msg->state == DGRAM_MSG_ACKED)
			end(m, peer, c, msg, 0, s);
	}
	for (; c->msg_base != last; c->msg_base++) {
		struct dgram_msg *msg = *slot(c, c->msg_base);

		if (s != NET_UNREACHABLE || !msg_taken_back(m, peer, c, msg))
			end(m, peer, c, msg, 0, s);
		dgram_msg_unref(m, msg);
	}
	for (uint32_t i = 0; i < c->bodies.size; i++)
		if (c->bodies.slot[i].value)
			dgram_msg_unref(m, c->bodies.slot[i].value);
}

/* ---- PULLs ----------------------------------------------------------------------------------- */

void dgram_ctl_add(struct dgram *m, struct dgram_rec *r, uint32_t number, uint64_t length,
		   enum dgram_pull_reason reason)
{
	struct dgram_conn *c = r->conn;
	/* a sender of so little rarely waits for it */
	bool later = reason == DGRAM_PULL_DONE && length <= m->cfg.push_bytes;
	uint64_t due = m->now + (later ? DGRAM_GATHER_NS : 0);

	dgram_ready(m, r);
	/* an end replaces an unsent PULL of the same message */
	for (uint32_t i = c->ctl_unsent; i != c->ctl_next; i++) {
		struct dgram_ctl *ctl = dgram_ctl_at(c, i);

		if (ctl->number == number) {
			if (c->ctl_next - c->ctl_unsent == 1)
				c->ctl_at = due;
			ctl->reason = (uint8_t)reason;
			ctl->length = length;
			return;
		}
	}
	if (c->ctl_next - c->ctl_base == c->ctl_room) {
		uint32_t room = c->ctl_room ? 2 * c->ctl_room : 16;
		struct dgram_ctl *ring = dgram_alloc(m, room * sizeof(*ring));

		if (!ring) {
			r->flags |= DGRAM_F_FAILED;
			return;
		}
		for (uint32_t i = c->ctl_base; i != c->ctl_next; i++)
			ring[i & (room - 1)] = *dgram_ctl_at(c, i);
		dgram_free(m, c->ctl, c->ctl_room * sizeof(*c->ctl));
		c->ctl = ring;
		c->ctl_room = room;
	}
	if (c->ctl_unsent == c->ctl_next || due < c->ctl_at)
		c->ctl_at = due;
	*dgram_ctl_at(c, c->ctl_next++) =
		(struct dgram_ctl){ .number = number, .length = length, .reason = (uint8_t)reason };
}

void dgram_ctl_acked(struct dgram_conn *c, uint32_t index)
{
	struct dgram_ctl *ctl;

	if (index - c->ctl_base >= c->ctl_unsent - c->ctl_base)
		return;
	ctl = dgram_ctl_at(c, index);
	if (ctl->state == DGRAM_MSG_LOST)
		c->ctl_lost--;
	ctl->state = DGRAM_MSG_ACKED;
	while (c->ctl_base != c->ctl_unsent &&
	       dgram_ctl_at(c, c->ctl_base)->state == DGRAM_MSG_ACKED)
		c->ctl_base++;
}
