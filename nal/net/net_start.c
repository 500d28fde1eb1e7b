/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The initiator: operations become messages. Answers, replies and the carrier's own reports
 * end them.
 *
 * A put whose bytes are copied is over for us when it is queued, except for its ack. Any other
 * put has a record until the carrier is done with its bytes. It ends then, or with the answer,
 * if one is wanted and comes later.
 */
#include <string.h>

#include "nal/net/net.h"
#include "portals/engine/atomic.h"

ptl_ni_fail_t net_fail(enum net_status s)
{
	switch (s) {
	case NET_OK:
		return PTL_NI_OK;
	case NET_UNREACHABLE:
		return PTL_NI_UNREACHABLE;
	case NET_DEAD:
	case NET_RESTARTED:
	case NET_CLOSED:
		return PTL_NI_PEER_DEAD;
	default:
		return PTL_NI_FAIL;
	}
}

/* `plain`: a constant, true for a put that is not atomic and gets no answer. Such a header
 * needs little work. */
static inline __attribute__((always_inline)) uint32_t encode(uint8_t *header,
							     const struct ptl_ni *ni,
							     const struct ptl_start *s, uint32_t op,
							     bool plain)
{
	static const uint8_t kinds[] = {
		[PTL_REQ_PUT] = NET_PUT,
		[PTL_REQ_GET] = NET_GET,
		[PTL_REQ_GETPUT] = NET_GETPUT,
	};
	bool answered = !plain && op != PTL_NIL && (s->ack || s->kind != PTL_REQ_PUT);
	struct net_msg m = {
		.kind = plain ? NET_PUT : kinds[s->kind],
		.ack = !plain && s->ack,
		.atomic = plain ? 0 : s->atomic,
		.element = plain ? 0 : s->element,
		.pt_index = ptl_clip_index(s->pt_index),
		.ac_index = ptl_clip_index(s->ac_index),
		.op = answered ? op : PTL_NIL,
		.op_gen = answered ? ni->view.op[op].gen : 0,
		.match_bits = s->match_bits,
		.remote_offset = s->remote_offset,
		.length = s->length,
		.span = s->span,
		.hdr_data = s->hdr_data,
	};

	return net_msg_encode(header, &m);
}

/* Send a put that is not atomic and gets no answer, as most messages are; its bytes are
 * copied. */
static inline __attribute__((always_inline)) int send_plain(struct net *n, uint32_t peer,
							    const struct ptl_start *s,
							    struct net_mem body)
{
	uint8_t header[NET_HEADER_MAX];
	struct net_out o = { .header = header, .body = body, .body_len = s->length, .copy = true };

	o.header_len = encode(header, n->ni, s, PTL_NIL, true);
	return n->carrier->send(n, peer, &o) == 0 ? PTL_OK : PTL_NO_SPACE;
}

static int inject_put(struct net *n, uint32_t peer, const struct ptl_start *s)
{
	uint64_t *sr = n->ni->view.r->stat.sr;
	int err;

	if (s->length > NET_COPY_MOST || (s->length && !net_may_copy(n, peer)))
		return PTL_NO_SPACE;
	err = send_plain(n, peer, s, (struct net_mem){ .base = (void *)(uintptr_t)s->inject });
	if (err == PTL_OK) {
		sr[PTL_SR_SEND_COUNT]++;
		sr[PTL_SR_SEND_LENGTH] += s->length;
	}
	return err;
}

/* Keep a record of a body that is sent from where it is. */
static int keep_body(struct net *n, uint32_t peer, const struct ptl_start *s, uint32_t op,
		     struct net_out *o)
{
	struct net_body *b = net_body_get(n, peer);

	if (!b)
		return PTL_NO_SPACE;
	b->op = op;
	b->op_gen = n->ni->view.op[op].gen;
	b->acked = !s->ack;
	b->word = (struct net_msg){ .what = PTL_ANSWER_QUIET };
	n->body_of[op] = b;
	b->span = (struct net_span){ .md = s->md, .offset = s->offset };
	o->cookie = b;
	o->body = net_mem(n, b);
	return PTL_OK;
}

/* Are the bytes of a put copied when it is sent? Not before the connection stands: until then
 * it is unknown whether the peer exists. */
static inline bool copies(const struct net *n, uint32_t peer, uint64_t len)
{
	return len <= NET_COPY_MOST && n->stat[peer].state == 1 && net_may_copy(n, peer);
}

static int __attribute__((noinline))
start_net_message(struct net *n, uint32_t peer, const struct ptl_start *s)
{
	struct ptl_engine *e = &n->ni->engine;
	struct net_span span = { .md = s->md, .offset = s->offset };
	uint8_t header[NET_HEADER_MAX];
	struct net_out o = { .header = header };
	uint32_t op = PTL_NIL, flags = s->ack ? PTL_OP_ACK : 0;
	bool is_long;
	int err = PTL_OK;

	if (s->kind != PTL_REQ_GET)
		o.body_len = s->atomic ? s->operand : s->length;
	is_long = s->kind == PTL_REQ_PUT && !copies(n, peer, o.body_len);
	if (is_long)
		flags |= PTL_OP_LONG | PTL_OP_UNLISTED;
	if (s->kind != PTL_REQ_PUT || flags) {
		op = ptl_op_alloc(e, s, ptl_net_peer(n->ni, n->slot, peer), flags);
		if (op == PTL_NIL)
			return PTL_NO_SPACE;
	}
	o.header_len = encode(header, n->ni, s, op, false);
	if (is_long) {
		err = keep_body(n, peer, s, op, &o);
	} else if (o.body_len) {
		o.copy = true;
		o.body = net_mem_of(n, &span);
	}
	if (err == PTL_OK && n->carrier->send(n, peer, &o) != 0)
		err = PTL_NO_SPACE;
	if (err != PTL_OK) {
		if (o.cookie) {
			n->body_of[op] = NULL;
			net_body_put(n, o.cookie);
		}
		if (op != PTL_NIL)
			ptl_op_free(e, op);
		return err;
	}
	ptl_engine_send(e, s, is_long, PTL_NI_OK, op);
	if (s->kind != PTL_REQ_PUT || s->ack)
		net_expect(n, peer, 1);
	return PTL_OK;
}

static int start_plain(struct net *n, uint32_t peer, const struct ptl_start *s)
{
	struct net_span span = { .md = s->md, .offset = s->offset };
	struct net_mem none = { .base = NULL };
	int err = send_plain(n, peer, s, s->length ? net_mem_of(n, &span) : none);

	if (err == PTL_OK)
		ptl_engine_send(&n->ni->engine, s, false, PTL_NI_OK, PTL_NIL);
	return err;
}

/* The path of a short message to the carrier is inlined into one function. */
__attribute__((flatten)) int net_send(struct net *n, const struct ptl_start *s)
{
	uint32_t peer = net_peer_of(n, s->target);
	int err;

	if (peer == NET_NONE)
		return NAL_ELSEWHERE;
	if (s->inject)
		err = inject_put(n, peer, s);
	else if (s->kind == PTL_REQ_PUT && !s->ack && !s->atomic && copies(n, peer, s->length))
		err = start_plain(n, peer, s);
	else
		err = start_net_message(n, peer, s);
	if (err == PTL_OK) {
		n->stat[peer].sent++;
		n->carrier->run(n);
	}
	return err;
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Is this peer to answer the operation? */
static bool op_known(struct net *n, uint32_t peer, const struct net_msg *m)
{
	const struct ptl_view *v = &n->ni->view;

	if (ptl_op_valid(v, m->op, m->op_gen) &&
	    v->op[m->op].peer == ptl_net_peer(n->ni, n->slot, peer))
		return true;
	ptl_count_drop(&n->ni->engine, PTL_DROP_STALE, m->length);
	return false;
}

void net_put_sent(struct net *n, struct net_body *b, enum net_status s)
{
	struct ptl_answerer who = net_who(n, b->peer);

	n->body_of[b->op] = NULL;
	if (s != NET_OK && s != NET_REFUSED) {
		if (!b->acked)
			net_expect(n, b->peer, -1);
		b->acked = true;
		b->word = (struct net_msg){ .what = PTL_ANSWER_FAILED, .fail = net_fail(s) };
	}
	if (b->acked)
		ptl_engine_answer(&n->ni->engine, b->op, b->op_gen, b->word.what, b->word.length,
				  b->word.fail, &who);
	net_body_put(n, b);
}

void net_take_answer(struct net *n, uint32_t peer, const struct net_msg *m)
{
	struct ptl_answerer who = net_who(n, peer);
	struct net_body *b;

	if (!op_known(n, peer, m))
		return;
	b = n->body_of[m->op];
	/* a second answer, or one to a get whose reply is being moved, ends nothing */
	if ((b && b->acked) || n->ni->view.op[m->op].flags & PTL_OP_GRANTED) {
		ptl_count_drop(&n->ni->engine, PTL_DROP_STALE, 0);
		return;
	}
	net_expect(n, peer, -1);
	if (b) {
		b->acked = true;
		b->word = *m;
	} else {
		ptl_engine_answer(&n->ni->engine, m->op, m->op_gen, m->what, m->length, m->fail,
				  &who);
	}
}

static void reply_over(struct net *n, const struct ptl_delivery *l, ptl_ni_fail_t fail)
{
	struct ptl_engine *e = &n->ni->engine;
	uint32_t op = l->op;

	ptl_engine_done(e, l, fail);
	ptl_op_free(e, op);
}

void net_reply_delivered(struct net *n, struct net_body *b, enum net_status s)
{
	reply_over(n, &b->l, net_fail(s));
	net_expect(n, b->peer, -1);
	net_body_put(n, b);
}

enum net_verdict net_take_reply(struct net *n, uint32_t peer, const struct net_msg *m,
				const struct net_in *in, struct net_delivery *delivery)
{
	enum net_verdict no = in->body || !in->body_len ? NET_DONE : NET_DROP;
	struct ptl_answerer who = net_who(n, peer);
	struct ptl_engine *e = &n->ni->engine;
	struct ptl_delivery l;
	struct net_body *b;

	if (!op_known(n, peer, m))
		return no;
	if (!ptl_engine_reply(e, m->op, m->op_gen, m->length, false, &who, &l)) {
		/* a second reply to a get that is being answered, or one to a put, ends
		 * nothing */
		if (!(e->v->op[m->op].flags & PTL_OP_GRANTED) &&
		    e->v->op[m->op].kind != PTL_REQ_PUT) {
			ptl_op_free(e, m->op);
			net_expect(n, peer, -1);
		}
		return no;
	}
	if (in->body || !l.mlength) {
		net_copy_in(n, &(struct net_span){ .md = l.md, .offset = l.offset }, in->body,
			    l.mlength);
		reply_over(n, &l, PTL_NI_OK);
		net_expect(n, peer, -1);
		return in->body || !in->body_len ? NET_DONE : NET_DROP;
	}
	b = net_body_get(n, peer);
	if (!b) {
		reply_over(n, &l, PTL_NI_FAIL);
		net_expect(n, peer, -1);
		return NET_DROP;
	}
	ptl_engine_reply_keep(e, m->op, &l);
	b->l = l;
	b->span = (struct net_span){ .md = l.md, .offset = l.offset };
	delivery->mem = net_mem(n, b);
	delivery->length = l.mlength;
	delivery->cookie = b;
	return NET_PULL;
}
