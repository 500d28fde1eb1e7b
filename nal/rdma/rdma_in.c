/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Packets in. What carries the token of an open connection comes from the process that has it; all the same nothing
 * it says is used unchecked, and who breaks the rules loses the connection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nal/rdma/rdma.h"

static void __attribute__((noinline))
broke_rules(struct rdma *d, struct rdma_peer *p, enum dgram_drop why, const char *text)
{
	d->stats.drops[why]++;
	rdma_break(d, p, DGRAM_RESTARTED, text);
}

/* Messages that nal/net did not want yet, with the order they came in. */
static void __attribute__((noinline))
put_off(struct rdma *d, struct rdma_peer *p, const void *packet, size_t len)
{
	struct rdma_late *l = malloc(sizeof(*l) + len);

	if (!l) {
		rdma_break(d, p, DGRAM_NO_MEMORY, NULL);
		return;
	}
	l->next = NULL;
	l->len = len;
	memcpy(l->bytes, packet, len);
	if (p->late)
		p->late_end->next = l;
	else
		p->late = l;
	p->late_end = l;
}

/* Of a long message nothing is to be fetched. */
static void __attribute__((noinline))
unwanted(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m, enum dgram_verdict verdict)
{
	struct rdma_msg over = { .kind = RDMA_OVER, .id = m->id };

	over.status = verdict == DGRAM_DROP ? DGRAM_REFUSED : DGRAM_OK;
	if (p->lost == DGRAM_OK)
		rdma_say(d, p, &over);
}

/* False: nal/net does not want it now. */
static bool deliver(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	struct dgram_in in = {
		.header = m->header,
		.header_len = m->header_len,
		.body = m->kind == RDMA_SHORT ? m->body : NULL,
		.body_len = m->length,
	};
	struct dgram_landing landing = { .length = 0 };
	enum dgram_verdict verdict;

	if (p->coming.len) {
		broke_rules(d, p, DGRAM_DROP_OUTSIDE, "it sent a message within another");
		return true;
	}
	verdict = net_deliver(&d->net, p->number, &in, &landing);
	if (verdict == DGRAM_LATER) {
		p->held = true;
		return false;
	}
	p->taken++;
	if (p->taken - p->told >= d->limits.credit / 2)
		rdma_busy(d, p);
	if (m->kind == RDMA_SHORT)
		return true;
	if (m->kind == RDMA_BEGIN)
		rdma_begin(d, p, m, verdict == DGRAM_PULL ? &landing : NULL);
	else if (verdict == DGRAM_PULL)
		rdma_fetch(d, p, m, &landing);
	else
		unwanted(d, p, m, verdict);
	return true;
}

void rdma_take_late(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_late *l;
	struct rdma_msg m;

	while ((l = p->late) && !p->held && p->state == RDMA_UP && p->lost == DGRAM_OK) {
		if (rdma_decode(l->bytes, l->len, &m) == 0) {
			if (m.kind == RDMA_MORE)
				rdma_take_more(d, p, &m);
			else if (!deliver(d, p, &m))
				return;
		}
		p->late = l->next;
		free(l);
	}
}

void rdma_late_free(struct rdma_peer *p)
{
	struct rdma_late *l;

	while ((l = p->late)) {
		p->late = l->next;
		free(l);
	}
}

static void one_over(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	struct rdma_out *o = rdma_long(d, p, m->id);

	if (!o || m->length > o->len)
		broke_rules(d, p, DGRAM_DROP_OUTSIDE, "it ended a message that was not sent");
	else
		rdma_out_over(d, o, m->length,
			      m->status == DGRAM_OK || m->status == DGRAM_REFUSED ? m->status
										  : DGRAM_FAILED);
}

static void over(struct rdma *d, struct rdma_peer *p, struct rdma_msg *m)
{
	one_over(d, p, m);
	for (uint32_t i = 0; i < m->nmore && p->lost == DGRAM_OK; i++) {
		rdma_decode_over(m, i);
		one_over(d, p, m);
	}
}

static void pull(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	struct rdma_out *o = rdma_long(d, p, m->id);

	if (!o || m->length > o->len)
		broke_rules(d, p, DGRAM_DROP_OUTSIDE, "it asked for what was not sent");
	else
		rdma_want_pieces(d, o, m->length);
}

/* Numbers of a packet are right, and what it says of ours is possible. */
static bool in_turn(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	const uint16_t due = (uint16_t)(p->seq_in + 1);
	const uint16_t took = (uint16_t)(m->taken - p->its_taken);

	if (m->seq != due) {
		char why[64];

		snprintf(why, sizeof(why), "its packet %u came where %u was due", m->seq, due);
		broke_rules(d, p, DGRAM_DROP_DUPLICATE, why);
		return false;
	}
	if (took > p->sent - p->its_taken) {
		broke_rules(d, p, DGRAM_DROP_BAD_ACK, "it took what was not sent");
		return false;
	}
	p->seq_in = due;
	p->spoke = true;
	if (took && (p->queue || p->pieces))
		rdma_busy(d, p);
	p->its_taken += took;
	d->stats.packets_in++;
	return true;
}

/* Behind those that nal/net did not want yet, of which there are no more than there was credit. */
static void __attribute__((noinline))
wait_turn(struct rdma *d, struct rdma_peer *p, const void *packet, size_t len)
{
	uint32_t waiting = 0;

	for (const struct rdma_late *l = p->late; l; l = l->next)
		waiting++;
	if (waiting >= d->limits.credit)
		broke_rules(d, p, DGRAM_DROP_NO_CREDIT, "it sent more than it may");
	else
		put_off(d, p, packet, len);
}

static inline void message(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m,
			   const void *packet, size_t len)
{
	if (p->late || p->held || !deliver(d, p, m))
		wait_turn(d, p, packet, len);
}

/* Whose packet it is, whose turn it is. NULL: of no use. */
static inline struct rdma_peer *sender(struct rdma *d, const struct rdma_msg *m)
{
	struct rdma_peer *p = m->to < d->npeers ? d->peer[m->to] : NULL;

	if (!p || p->state != RDMA_UP || m->token != p->own_token || p->lost != DGRAM_OK) {
		d->stats.drops[DGRAM_DROP_UNKNOWN]++;
		return NULL;
	}
	return in_turn(d, p, m) ? p : NULL;
}

static void __attribute__((noinline)) take_other(struct rdma *d, const void *packet, size_t len)
{
	struct rdma_peer *p;
	struct rdma_msg m;

	if (rdma_decode(packet, len, &m) < 0) {
		d->stats.drops[DGRAM_DROP_MALFORMED]++;
		return;
	}
	if (m.kind == RDMA_HELLO || m.kind == RDMA_WELCOME) {
		rdma_greeted(d, &m, packet, len);
		return;
	}
	p = sender(d, &m);
	if (!p)
		return;
	switch (m.kind) {
	case RDMA_LONG:
	case RDMA_BEGIN:
		message(d, p, &m, packet, len);
		break;
	case RDMA_MORE:
		if (p->late) /* so is its beginning */
			wait_turn(d, p, packet, len);
		else
			rdma_take_more(d, p, &m);
		break;
	case RDMA_PIECE:
		p->taken++;
		rdma_take_piece(d, p, &m);
		break;
	case RDMA_PULL:
		pull(d, p, &m);
		break;
	case RDMA_OVER:
		over(d, p, &m);
		break;
	case RDMA_PING:
		p->want_note = true;
		rdma_busy(d, p);
		break;
	case RDMA_BYE:
		rdma_break(d, p, DGRAM_CLOSED, NULL);
		break;
	}
}

/* Most packets are short messages: what is done with one is made one function, up to nal/net. */
__attribute__((flatten)) void rdma_arrived(struct rdma *d, void *way, const void *packet,
					   size_t len)
{
	struct rdma_peer *p;
	struct rdma_msg m;

	(void)way;
	if (!rdma_is_short(packet, len)) {
		take_other(d, packet, len);
		return;
	}
	if (rdma_decode(packet, len, &m) < 0) {
		d->stats.drops[DGRAM_DROP_MALFORMED]++;
		return;
	}
	p = sender(d, &m);
	if (p)
		message(d, p, &m, packet, len);
}
