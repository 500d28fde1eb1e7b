/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The target: messages become requests to the engine. Each request that the engine accepts
 * gets a delivery, a reply or an answer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "nal/net/net.h"
#include "portals/engine/serve.h"

/* ---- answers --------------------------------------------------------------------------------- */

static void __attribute__((noinline))
send_answer(struct net *n, uint32_t peer, uint32_t op, uint32_t gen, enum ptl_answer what,
	    uint64_t length, ptl_ni_fail_t fail)
{
	struct net_msg msg = {
		.kind = NET_ANSWER,
		.what = (uint8_t)what,
		.fail = (uint8_t)fail,
		.op = op,
		.op_gen = gen,
		.length = length,
	};
	uint8_t header[NET_HEADER_MAX];
	struct net_out o = { .header = header };

	o.header_len = net_msg_encode(header, &msg);
	/* if out of memory, the peer learns of it when one of the two processes ends */
	(void)n->carrier->send(n, peer, &o);
}

/* Send the final response, if the initiator waits for one. */
static inline void send_net_response(struct net *n, uint32_t peer, uint32_t op, uint32_t gen,
				     enum ptl_answer what, uint64_t length, ptl_ni_fail_t fail)
{
	if (op != PTL_NIL)
		send_answer(n, peer, op, gen, what, length, fail);
}

static void net_put_done(struct net *n, uint32_t peer, const struct ptl_delivery *l,
			 ptl_ni_fail_t fail)
{
	ptl_engine_done(&n->ni->engine, l, fail);
	send_net_response(n, peer, l->op, l->op_gen, ptl_serve_put_answer(l, fail), l->mlength,
			  fail);
}

/* Send the data of a get or getput, from `bytes` or from where the delivery says. Ends the
 * delivery of a get. */
static void net_reply(struct net *n, uint32_t peer, const struct ptl_delivery *l, const void *bytes)
{
	struct net_msg msg = {
		.kind = NET_REPLY, .op = l->op, .op_gen = l->op_gen, .length = l->mlength
	};
	struct net_span span = { .md = l->md, .offset = l->offset };
	uint8_t header[NET_HEADER_MAX];
	struct net_out o = { .header = header, .body_len = l->mlength, .push = UINT64_MAX };
	struct net_body *b = NULL;

	o.header_len = net_msg_encode(header, &msg);
	o.copy = bytes || (l->mlength <= NET_COPY_MOST && net_may_copy(n, peer));
	if (!o.copy) {
		b = net_body_get(n, peer);
		if (b) {
			b->op = PTL_NIL;
			b->l = *l;
			b->span = span;
			o.cookie = b;
			o.body = net_mem(n, b);
		}
	} else {
		if (bytes)
			o.body = (struct net_mem){ .base = (void *)(uintptr_t)bytes };
		else
			o.body = net_mem_of(n, &span);
	}
	if ((o.copy || b) && n->carrier->send(n, peer, &o) == 0) {
		if (o.copy)
			ptl_engine_done(&n->ni->engine, l, PTL_NI_OK);
		return;
	}
	if (b)
		net_body_put(n, b);
	ptl_engine_done(&n->ni->engine, l, PTL_NI_FAIL);
	send_net_response(n, peer, l->op, l->op_gen, PTL_ANSWER_FAILED, 0, PTL_NI_FAIL);
}

/* ---- swaps ----------------------------------------------------------------------------------- */

static ptl_ni_fail_t read_net_delivery(void *server, const struct ptl_delivery *l, void *bytes)
{
	const struct net_span span = { .md = l->md, .offset = l->offset };

	net_copy_out(server, bytes, &span, l->mlength);
	return PTL_NI_OK;
}

static ptl_ni_fail_t write_net_delivery(void *server, const struct ptl_delivery *l,
					const void *bytes)
{
	const struct net_span span = { .md = l->md, .offset = l->offset };

	net_copy_in(server, &span, bytes, l->mlength);
	return PTL_NI_OK;
}

/* Location of run k of a group. */
static struct net_span run_at(const struct ptl_delivery *l, const ptl_atomic_run_t *g, uint32_t k)
{
	return (struct net_span){ .md = l->md,
				  .offset = l->offset + g->offset + (uint64_t)k * g->stride };
}

static ptl_ni_fail_t read_net_runs(void *server, const struct ptl_delivery *l,
				   const ptl_atomic_runs_t *runs, char *bytes)
{
	for (uint32_t i = 0; i < runs->groups; i++) {
		const ptl_atomic_run_t *g = &ptl_runs_groups(runs)[i];

		for (uint32_t k = 0; k < g->count; k++, bytes += g->bytes) {
			const struct net_span at = run_at(l, g, k);

			net_copy_out(server, bytes, &at, g->bytes);
		}
	}
	return PTL_NI_OK;
}

static ptl_ni_fail_t write_net_runs(void *server, const struct ptl_delivery *l,
				    const ptl_atomic_runs_t *runs, const char *bytes)
{
	for (uint32_t i = 0; i < runs->groups; i++) {
		const ptl_atomic_run_t *g = &ptl_runs_groups(runs)[i];

		for (uint32_t k = 0; k < g->count; k++, bytes += g->bytes) {
			const struct net_span at = run_at(l, g, k);

			net_copy_in(server, &at, bytes, g->bytes);
		}
	}
	return PTL_NI_OK;
}

static_assert(NET_SWAP_MOST <= PTL_SERVE_SWAP_MOST, "what this NAL takes can be served");

static const struct ptl_serve_memory memory = { read_net_delivery, write_net_delivery,
						read_net_runs, write_net_runs };

/* PTL_NI_PROTOCOL: the list does not match the header, and nothing was done. */
static ptl_ni_fail_t swap_runs(struct net *n, const struct ptl_delivery *l,
			       const struct net_swap *w, const void *body, char *old)
{
	_Alignas(ptl_atomic_runs_t) char list[NET_SWAP_MOST];
	const ptl_atomic_runs_t *runs = (const ptl_atomic_runs_t *)(const void *)list;

	if (!body) /* the request has no bytes */
		return PTL_NI_PROTOCOL;
	memcpy(list, body, w->body_len);
	if (!ptl_runs_valid(runs, w->body_len, w->atomic, w->element, l->rlength) ||
	    runs->span != w->span)
		return PTL_NI_PROTOCOL;
	return l->mlength ? ptl_serve_swap_runs(&memory, n, l, w->atomic, w->element, runs, old)
			  : PTL_NI_OK;
}

static void serve_swap(struct net *n, uint32_t peer, const struct ptl_delivery *l,
		       const struct net_swap *w, const void *body)
{
	char old[NET_SWAP_MOST];
	ptl_ni_fail_t fail =
		ptl_atomic_on_runs(w->atomic)
			? swap_runs(n, l, w, body, old)
			: ptl_serve_swap(&memory, n, l, w->atomic, w->element, body, old);

	if (l->kind == PTL_REQ_PUT || fail != PTL_NI_OK)
		net_put_done(n, peer, l, fail);
	else
		net_reply(n, peer, l, old);
}

/* ---- the line of puts ------------------------------------------------------------------------ */

/* The bytes of a put that does not fit in one packet come behind its header, and behind the
 * headers of later puts. An application that orders short messages by their PUT_END events
 * would see them in another order than they were matched in. So a put of up to LINE_MOST bytes
 * ends after those before it, as it does in shared memory. Longer puts end when they are
 * complete: nobody expects an order from them. Swaps and atomics wait for their turn, as
 * operations on the same elements must be done in the order they were started in. */
#define LINE_MOST 65536u

static void line_up(struct net *n, struct net_body *b)
{
	struct net_peer *p = &n->peer[b->peer];

	b->in_line = true;
	b->next = NULL;
	if (p->line)
		p->line_end->next = b;
	else
		p->line = b;
	p->line_end = b;
}

/* End a delivery. If the connection has failed, send no answer: it would go to the next process
 * there. */
static void ends(struct net *n, struct net_body *b, bool stands)
{
	bool swaps = b->span.staged;

	if (stands && b->how == NET_OK && swaps)
		serve_swap(n, b->peer, &b->l, &b->swap, b->span.staged);
	else if (stands)
		net_put_done(n, b->peer, &b->l, net_fail(b->how));
	else
		ptl_engine_done(&n->ni->engine, &b->l,
				swaps && b->how == NET_OK ? PTL_NI_PEER_DEAD : net_fail(b->how));
	free(b->span.staged);
	net_body_put(n, b);
}

/* The body is complete, or will never be. */
static void __attribute__((noinline))
complete_body(struct net *n, struct net_body *b, enum net_status how)
{
	struct net_peer *p = &n->peer[b->peer];
	bool stands = how == NET_OK || how == NET_FAILED;

	b->done = true;
	b->how = how;
	if (!b->in_line) {
		ends(n, b, stands);
		return;
	}
	while ((b = p->line) && b->done) {
		p->line = b->next;
		ends(n, b, stands);
	}
}

/* Finish a put whose bytes are in place. */
static void put_complete(struct net *n, uint32_t peer, const struct ptl_delivery *l)
{
	struct net_body *b = n->peer[peer].line ? net_body_get(n, peer) : NULL;

	if (!b) {
		net_put_done(n, peer, l, PTL_NI_OK);
		return;
	}
	b->l = *l;
	line_up(n, b);
	complete_body(n, b, NET_OK);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* True: accepted. Otherwise the initiator was told, if it wants an answer. */
static bool match_net_request(struct net *n, uint32_t peer, const struct ptl_request *q,
			      struct ptl_delivery *l)
{
	if (!ptl_serve_match(n->ni, &n->ni->engine, q, l, NULL))
		return true;
	send_net_response(n, peer, q->op, q->op_gen, PTL_ANSWER_QUIET, 0, PTL_NI_OK);
	return false;
}

/* Have a body moved to the delivery, or to `staged`. */
static enum net_verdict pull_body(struct net *n, uint32_t peer, const struct ptl_delivery *l,
				  uint64_t length, void *staged, struct net_delivery *delivery)
{
	struct net_body *b = net_body_get(n, peer);

	if (!b) {
		net_put_done(n, peer, l, PTL_NI_FAIL);
		free(staged);
		return NET_DROP;
	}
	b->l = *l;
	b->span = (struct net_span){ .md = l->md, .offset = l->offset, .staged = staged };
	delivery->mem = net_mem(n, b);
	delivery->length = length;
	delivery->cookie = b;
	return NET_PULL;
}

/* The put's bytes are still with the sender. */
static enum net_verdict __attribute__((noinline))
pull_put(struct net *n, uint32_t peer, const struct ptl_delivery *l, struct net_delivery *delivery)
{
	enum net_verdict verdict = pull_body(n, peer, l, l->mlength, NULL, delivery);

	if (verdict == NET_PULL && l->mlength <= LINE_MOST)
		line_up(n, delivery->cookie);
	return verdict;
}

static void serve_get(struct net *n, uint32_t peer, const struct ptl_request *q)
{
	struct ptl_delivery l;

	if (match_net_request(n, peer, q, &l))
		net_reply(n, peer, &l, NULL);
}

/* Hold a swap whose body is still to come, or that must wait for others. */
static enum net_verdict stage(struct net *n, uint32_t peer, const struct ptl_delivery *l,
			      const struct net_swap *w, const struct net_in *in,
			      struct net_delivery *delivery)
{
	const bool here = in->body || !in->body_len;
	void *staged = malloc(in->body_len + 1);
	struct net_delivery own = { 0 };

	delivery = here ? &own : delivery;
	if (!staged)
		net_put_done(n, peer, l, PTL_NI_FAIL);
	if (!staged || pull_body(n, peer, l, in->body_len, staged, delivery) == NET_DROP)
		return here ? NET_DONE : NET_DROP;
	((struct net_body *)delivery->cookie)->swap = *w;
	line_up(n, delivery->cookie);
	if (!here)
		return NET_PULL;
	if (in->body_len)
		memcpy(staged, in->body, in->body_len);
	complete_body(n, delivery->cookie, NET_OK);
	return NET_DONE;
}

static enum net_verdict take_swap(struct net *n, uint32_t peer, struct ptl_request *q,
				  const struct net_swap *w, const struct net_in *in,
				  struct net_delivery *delivery)
{
	const uint64_t length = q->rlength;
	struct ptl_delivery l;

	if (ptl_atomic_on_runs(w->atomic))
		q->rlength = w->span;
	if (!match_net_request(n, peer, q, &l))
		return in->body || !in->body_len ? NET_DONE : NET_DROP;
	if (ptl_atomic_on_runs(w->atomic)) { /* all of them, or none */
		l.mlength = l.mlength == w->span ? length : 0;
		l.rlength = length;
	}
	if ((in->body || !in->body_len) && !n->peer[peer].line) {
		serve_swap(n, peer, &l, w, in->body);
		return NET_DONE;
	}
	return stage(n, peer, &l, w, in, delivery);
}

static inline struct ptl_request net_request_of(struct net *n, uint32_t peer,
						const struct net_msg *m)
{
	static const uint8_t kinds[] = {
		[NET_PUT] = PTL_REQ_PUT,
		[NET_GET] = PTL_REQ_GET,
		[NET_GETPUT] = PTL_REQ_GETPUT,
	};
	struct ptl_answerer who = net_who(n, peer);

	return (struct ptl_request){
		.kind = kinds[m->kind],
		.ack = m->ack,
		.atomic = m->atomic,
		.element = m->element,
		.pt_index = m->pt_index,
		.ac_index = m->ac_index,
		.peer = ptl_net_peer(n->ni, n->slot, peer),
		.op = m->op,
		.op_gen = m->op_gen,
		.initiator = who.id,
		.uid = who.uid,
		.jid = who.jid,
		.match_bits = m->match_bits,
		.remote_offset = m->remote_offset,
		.rlength = m->length,
		.hdr_data = m->hdr_data,
	};
}

/* ---- called by the carrier ------------------------------------------------------------------- */

static enum net_verdict nonsense(struct net *n, const struct net_in *in)
{
	ptl_count_drop(&n->ni->engine, PTL_DROP_BAD_MESSAGE, 0);
	return in->body || !in->body_len ? NET_DONE : NET_DROP;
}

static enum net_verdict __attribute__((noinline))
serve_other(struct net *n, uint32_t peer, const struct net_in *in, struct net_delivery *delivery)
{
	struct ptl_request q;
	struct net_swap swap;
	struct net_msg m;

	if (net_msg_decode(in->header, in->header_len, in->body_len, &m) < 0)
		return nonsense(n, in);
	if (m.kind == NET_REPLY)
		return net_take_reply(n, peer, &m, in, delivery);
	if (m.kind == NET_ANSWER) {
		net_take_answer(n, peer, &m);
		return NET_DONE;
	}
	q = net_request_of(n, peer, &m);
	if (m.kind == NET_GET) {
		serve_get(n, peer, &q);
		return NET_DONE;
	}
	swap = (struct net_swap){ m.atomic, m.element, m.span, in->body_len };
	return take_swap(n, peer, &q, &swap, in, delivery);
}

/* A plain put, as most messages are. Everything it passes through is inlined into one
 * function. Else a third of the work is to fill records that the next function reads back. */
static inline __attribute__((flatten)) enum net_verdict serve_put(struct net *n, uint32_t peer,
								  const struct net_in *in,
								  struct net_delivery *delivery)
{
	struct ptl_request q;
	struct ptl_delivery l;
	struct net_msg m;

	if (net_msg_decode(in->header, in->header_len, in->body_len, &m) < 0)
		return nonsense(n, in);
	q = net_request_of(n, peer, &m);
	/* not before those that wait in the line */
	q.data = m.op == PTL_NIL && !n->peer[peer].line ? in->body : NULL;
	if (!match_net_request(n, peer, &q, &l))
		return in->body || !in->body_len ? NET_DONE : NET_DROP;
	if (!in->body && l.mlength)
		return pull_put(n, peer, &l, delivery);
	net_copy_in(n, &(struct net_span){ .md = l.md, .offset = l.offset }, in->body, l.mlength);
	put_complete(n, peer, &l);
	return NET_DONE;
}

enum net_verdict net_deliver(void *user, uint32_t peer, const struct net_in *in,
			     struct net_delivery *delivery)
{
	struct net *n = user;

	if (ptl_handlers_behind(n->ni)) {
		n->nheld += !n->peer[peer].held;
		n->peer[peer].held = true;
		return NET_LATER;
	}
	n->stat[peer].received++;
	return net_is_put(in->header, in->header_len) ? serve_put(n, peer, in, delivery)
						      : serve_other(n, peer, in, delivery);
}

void net_delivered(void *user, uint32_t peer, void *cookie, enum net_status s)
{
	struct net_body *b = cookie;
	struct net *n = user;

	(void)peer;
	if (b->l.kind == PTL_DELIVERY_REPLY) {
		net_reply_delivered(n, b, s);
		return;
	}
	complete_body(n, b, s);
}

void net_sent(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s)
{
	struct net_body *b = cookie;
	struct net *n = user;

	(void)peer;
	(void)length;
	if (b->op != PTL_NIL) {
		net_put_sent(n, b, s);
		return;
	}
	ptl_engine_done(&n->ni->engine, &b->l, s == NET_REFUSED ? PTL_NI_OK : net_fail(s));
	net_body_put(n, b);
}
