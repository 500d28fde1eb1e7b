/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Incoming packets. A packet with the token of an open connection comes from the process that
 * owns it. All the same nothing it says is used unchecked, and a peer that breaks the rules
 * loses the connection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/rdma/rdma.h"

/* Most packets under way, including those without data, as a multiple of the credit. */
#define EARLY_TIMES 2u

static void __attribute__((noinline))
broke_rules(struct rdma *d, struct rdma_peer *p, enum net_drop why, const char *text)
{
	d->stats.drops[why]++;
	rdma_break(d, p, NET_RESTARTED, text);
}

/* Copy a packet. The copy of a headerless one (packet NULL) gets a head. NULL: out of memory;
 * the connection is marked as failed. */
static struct rdma_late *copy_of(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m,
				 const void *packet, size_t len)
{
	const size_t before = packet ? 0 : RDMA_BEFORE_MORE;
	struct rdma_late *l = malloc(sizeof(*l) + before + len);

	if (!l) {
		rdma_break(d, p, NET_NO_MEMORY, NULL);
		return NULL;
	}
	l->next = NULL;
	l->len = before + len;
	if (!packet)
		rdma_encode(l->bytes, m);
	memcpy(l->bytes + before, packet ? packet : m->body, len);
	return l;
}

/* Keep a message that nal/net does not want yet, in order of arrival. */
static void __attribute__((noinline))
put_off(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m, const void *packet,
	size_t len)
{
	struct rdma_late *l = copy_of(d, p, m, packet, len);

	if (!l)
		return;
	if (p->late)
		p->late_end->next = l;
	else
		p->late = l;
	p->late_end = l;
}

/* End a long message of which nothing is to be fetched. */
static void __attribute__((noinline))
unwanted(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m, enum net_verdict verdict)
{
	struct rdma_msg over = { .kind = RDMA_OVER, .id = m->id };

	over.status = verdict == NET_DROP ? NET_REFUSED : NET_OK;
	if (p->failure == NET_OK)
		rdma_say(d, p, &over);
}

static void remember(struct rdma_began *b, const struct rdma_msg *m)
{
	if (m->header == b->header)
		return;
	memcpy(b->header, m->header, m->header_len);
	b->header_len = m->header_len;
	b->length = m->length;
}

/* False: nal/net does not want it now. */
static bool deliver_message(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	const bool whole = m->kind == RDMA_SHORT || m->here == m->length;
	struct net_in in = {
		.header = m->header,
		.header_len = m->header_len,
		.body = whole ? m->body : NULL,
		.body_len = m->length,
	};
	struct net_delivery delivery = { .length = 0 };
	enum net_verdict verdict;

	if (p->coming.len) {
		broke_rules(d, p, NET_DROP_OUTSIDE, "it sent a message within another");
		return true;
	}
	if (m->kind == RDMA_BEGIN)
		remember(&p->began_in, m);
	verdict = net_deliver(&d->net, p->number, &in, &delivery);
	if (verdict == NET_LATER) {
		p->held = true;
		return false;
	}
	p->consumed++;
	if (p->consumed - p->advertised >= d->limits.credit / 2)
		rdma_busy(d, p);
	if (whole)
		return true;
	if (m->kind == RDMA_BEGIN)
		rdma_begin(d, p, m, verdict == NET_PULL ? &delivery : NULL);
	else if (verdict == NET_PULL)
		rdma_fetch(d, p, m, &delivery);
	else
		unwanted(d, p, m, verdict);
	return true;
}

/* Deliver the next bytes of the message that is coming. If there is none, they begin a message
 * with the header and length of the last BEGIN. False: as above. */
static bool deliver_more(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	const struct rdma_began *b = &p->began_in;
	struct rdma_msg first;

	if (p->coming.len || m->length > b->length) {
		rdma_take_more(d, p, m);
		return true;
	}
	first = *m;
	first.kind = RDMA_BEGIN;
	first.header = b->header;
	first.header_len = b->header_len;
	first.here = m->length;
	first.length = b->length;
	return deliver_message(d, p, &first);
}

void rdma_take_late(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_late *l;
	struct rdma_msg m;

	while ((l = p->late) && !p->held && p->state == RDMA_UP && p->failure == NET_OK) {
		if (rdma_decode(l->bytes, l->len, &m) == 0 &&
		    !(m.kind == RDMA_MORE ? deliver_more(d, p, &m) : deliver_message(d, p, &m)))
			return;
		p->late = l->next;
		free(l);
	}
}

static void free_late(struct rdma_late **list)
{
	struct rdma_late *l;

	while ((l = *list)) {
		*list = l->next;
		free(l);
	}
}

void rdma_late_free(struct rdma_peer *p)
{
	free_late(&p->late);
	free_late(&p->early);
}

static void one_over(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	struct rdma_out *o = rdma_long(d, p, m->id);

	if (!o || m->length > o->len)
		broke_rules(d, p, NET_DROP_OUTSIDE, "it ended a message that was not sent");
	else
		rdma_out_over(d, o, m->length,
			      m->status == NET_OK || m->status == NET_REFUSED ? m->status
									      : NET_FAILED);
}

static void message_over(struct rdma *d, struct rdma_peer *p, struct rdma_msg *m)
{
	one_over(d, p, m);
	for (uint32_t i = 0; i < m->nmore && p->failure == NET_OK; i++) {
		rdma_decode_over(m, i);
		one_over(d, p, m);
	}
}

static void pull_message(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	struct rdma_out *o = rdma_long(d, p, m->id);

	if (!o || m->length > o->len)
		broke_rules(d, p, NET_DROP_OUTSIDE, "it asked for what was not sent");
	else
		rdma_want_segments(d, o, m->length);
}

/* The link to the kept early packet with number `seq`, or to the end of the list. */
static struct rdma_late **early_packet_at(struct rdma_peer *p, uint16_t seq)
{
	struct rdma_late **at = &p->early;

	while (*at && base_get16(((const struct rdma_wire_head *)(*at)->bytes)->seq) != seq)
		at = &(*at)->next;
	return at;
}

/*
 * Handle a packet with another number than the one that is due. On links that promise no order,
 * later packets can overtake a packet of several fragments. So a packet that comes before its
 * turn waits. No more packets wait than may be under way.
 */
static void __attribute__((noinline))
out_of_turn(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m, const void *packet,
	    size_t len)
{
	const uint16_t due = (uint16_t)(p->seq_in + 1), seq = m->seq;
	struct rdma_late **at = early_packet_at(p, seq);

	if (d->limits.any_order && (uint16_t)(seq - due) < EARLY_TIMES * d->limits.credit && !*at) {
		if (!p->early) {
			p->gap_at = p->seq_in;
			p->gap = net_now(&d->net);
		}
		*at = copy_of(d, p, m, packet, len);
		p->spoke = true;
		rdma_await(d, p);
	} else {
		char why[64];

		snprintf(why, sizeof(why), "its packet %u came where %u was due", seq, due);
		broke_rules(d, p, NET_DROP_DUPLICATE, why);
	}
}

/* Check what a packet in its turn acknowledges, and count it. False: the peer broke the rules. */
static bool in_turn(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	const uint16_t newly_consumed = (uint16_t)(m->consumed - p->its_consumed);

	if (newly_consumed > p->sent - p->its_consumed) {
		broke_rules(d, p, NET_DROP_BAD_ACK, "it consumed what was not sent");
		return false;
	}
	p->seq_in = m->seq;
	p->spoke = true;
	if (newly_consumed && (p->queue || p->segments))
		rdma_busy(d, p);
	p->its_consumed += newly_consumed;
	d->stats.packets_in++;
	return true;
}

/* Queue a message behind those that nal/net did not want yet. There are never more of them than
 * the peer had credit for. */
static void __attribute__((noinline))
wait_turn(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m, const void *packet,
	  size_t len)
{
	uint32_t waiting = 0;

	for (const struct rdma_late *l = p->late; l; l = l->next)
		waiting++;
	if (waiting >= d->limits.credit)
		broke_rules(d, p, NET_DROP_NO_CREDIT, "it sent more than it may");
	else
		put_off(d, p, m, packet, len);
}

static inline void take_message(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m,
				const void *packet, size_t len)
{
	if (p->late || p->held || !deliver_message(d, p, m))
		wait_turn(d, p, m, packet, len);
}

/* Continue the message that is coming, unless its beginning still waits. */
static void take_more(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m,
		      const void *packet, size_t len)
{
	if (p->late || (p->held && !p->coming.len) || !deliver_more(d, p, m))
		wait_turn(d, p, m, packet, len);
}

/* The peer that a packet is from, if the packet is in its turn. NULL: do not use the packet. */
static inline struct rdma_peer *sender(struct rdma *d, const struct rdma_msg *m, const void *packet,
				       size_t len)
{
	struct rdma_peer *p = m->to < d->npeers ? d->peer[m->to] : NULL;

	if (!p || p->state != RDMA_UP || m->token != p->own_token || p->failure != NET_OK) {
		d->stats.drops[NET_DROP_UNKNOWN]++;
		return NULL;
	}
	if (m->seq == (uint16_t)(p->seq_in + 1))
		return in_turn(d, p, m) ? p : NULL;
	out_of_turn(d, p, m, packet, len);
	return NULL;
}

/* Handle a packet that is not SHORT. Returns its peer, if the packet was in its turn. */
static struct rdma_peer *__attribute__((noinline))
take_other_packet(struct rdma *d, const void *packet, size_t len)
{
	struct rdma_peer *p;
	struct rdma_msg m;

	if (rdma_decode(packet, len, &m) < 0) {
		d->stats.drops[NET_DROP_MALFORMED]++;
		return NULL;
	}
	if (m.kind == RDMA_HELLO || m.kind == RDMA_WELCOME) {
		rdma_greeted(d, &m, packet, len);
		return NULL;
	}
	p = sender(d, &m, packet, len);
	if (!p)
		return NULL;
	switch (m.kind) {
	case RDMA_LONG:
	case RDMA_BEGIN:
		take_message(d, p, &m, packet, len);
		break;
	case RDMA_MORE:
		take_more(d, p, &m, packet, len);
		break;
	case RDMA_SEGMENT:
		p->consumed++;
		rdma_take_segment(d, p, &m);
		break;
	case RDMA_PULL:
		pull_message(d, p, &m);
		break;
	case RDMA_OVER:
		message_over(d, p, &m);
		break;
	case RDMA_PING:
		p->want_note = true;
		rdma_busy(d, p);
		break;
	case RDMA_BYE:
		rdma_break(d, p, NET_CLOSED, NULL);
		break;
	}
	return p;
}

/* Take the early packets whose turn it is now. */
static void __attribute__((noinline)) take_early(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_late **at, *l;

	while (p->failure == NET_OK &&
	       (l = *(at = early_packet_at(p, (uint16_t)(p->seq_in + 1))))) {
		struct rdma_msg m;

		*at = l->next;
		/* take_other_packet() handles all kinds but this one */
		if (!rdma_is_short(l->bytes, l->len))
			take_other_packet(d, l->bytes, l->len);
		else if (rdma_decode(l->bytes, l->len, &m) == 0 && in_turn(d, p, &m))
			take_message(d, p, &m, l->bytes, l->len);
		free(l);
	}
}

/* Most packets are short messages: flatten inlines everything up to nal/net into one function. */
__attribute__((flatten)) void rdma_arrived(struct rdma *d, void *path, const void *packet,
					   size_t len)
{
	struct rdma_peer *p;
	struct rdma_msg m;

	(void)path;
	if (!rdma_is_short(packet, len)) {
		p = take_other_packet(d, packet, len);
		if (p && p->early)
			take_early(d, p);
		return;
	}
	if (rdma_decode(packet, len, &m) < 0) {
		d->stats.drops[NET_DROP_MALFORMED]++;
		return;
	}
	p = sender(d, &m, packet, len);
	if (!p)
		return;
	take_message(d, p, &m, packet, len);
	if (p->early)
		take_early(d, p);
}

void rdma_arrived_headerless(struct rdma *d, void *path, uint64_t word, const void *bytes,
			     size_t len)
{
	const uint16_t to = rdma_word_to(word);
	struct rdma_peer *p = to < d->npeers ? d->peer[to] : NULL;
	struct rdma_msg m = { .kind = RDMA_MORE, .to = to, .body = bytes, .length = len };

	if (!p || !len || !(path ? path == p->path : rdma_word_fits(word, p->own_token))) {
		d->stats.drops[len ? NET_DROP_UNKNOWN : NET_DROP_MALFORMED]++;
		return;
	}
	m.token = p->own_token;
	m.seq = rdma_word_seq(word, (uint16_t)(p->seq_in + 1));
	m.consumed = rdma_word_consumed(word, (uint16_t)p->its_consumed);
	if (!sender(d, &m, NULL, len))
		return;
	take_more(d, p, &m, NULL, len);
	if (p->early)
		take_early(d, p);
}
