/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Flow control by credit: what has been granted to all senders and is not free again always
 * fits into three of the four blocks. The fourth may be held by a message that is not flushed.
 *
 * A sender asks when it has no credit for its message. The receiver grants equal shares, and
 * grants again when half of one is free. A word in the sender's memory says how much that is in
 * all. When others wait, it asks for what is not spent; a sender tells the total of what it
 * has given back, so repeating either does no harm. The watching threads of both handle this.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dp_shim/core.h"

enum {
	ASK_AGAIN_MS = 100,
	CREDIT_QUEUE = 64,
};

void dp_control_send(ptl_process_id_t to, const struct dp_control *c)
{
	PtlPutInject(dp_lib.ni, NULL, 0, PTL_INJECT_NOW, to, DP_PORTAL_CONTROL, 0,
		     dp_wire_control_bits(c), 0, dp_wire_control_data(c));
}

/* The cost of a message of so many bytes. */
static struct dp_total cost_of(uint64_t bytes)
{
	return (struct dp_total){ bytes ? (bytes + DP_ALIGN - 1) / DP_ALIGN : 1, 1 };
}

/* ---- the sender ------------------------------------------------------------------------------ */

static size_t words_bytes(void)
{
	return DP_WORDS * sizeof(uint64_t);
}

/* Memory that receivers write their grants to. */
static int open_words(struct dp_ep *ep)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .length = words_bytes(),
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE |
				   PTL_MD_EVENT_START_DISABLE };

	if (PtlEQAlloc(dp_lib.ni, CREDIT_QUEUE, PTL_EQ_HANDLER_NONE, &ep->words_eq) != PTL_OK) {
		ep->words_eq = PTL_EQ_NONE;
		return ENOMEM;
	}
	ep->words = mmap(NULL, words_bytes(), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	md.start = ep->words;
	md.eq_handle = ep->words_eq;
	if (ep->words != MAP_FAILED &&
	    PtlMEMDAttach(dp_lib.ni, DP_PORTAL_CREDIT, any, ep->dpid, DP_IGNORED_BITS, PTL_RETAIN,
			  PTL_INS_AFTER, md, PTL_RETAIN, &ep->words_me, NULL) == PTL_OK)
		return 0;
	if (ep->words == MAP_FAILED)
		ep->words = NULL;
	ep->words_me = PTL_INVALID_HANDLE;
	dp_credit_close(ep);
	return ENOMEM;
}

int dp_credit_open(struct dp_ep *ep, struct dp_edge *e)
{
	if (e->word)
		return 0;
	if (ep->words_me == PTL_INVALID_HANDLE) {
		int err = open_words(ep);

		if (err)
			return err;
		ep->words_used = 0;
	}
	/* Each pair of instances has a word of its own, and word 0 is nobody's: a late grant of
	 * an earlier pair does no harm. */
	if (ep->words_used == DP_WORDS - 1)
		return ENOBUFS;
	e->word = ++ep->words_used;
	return 0;
}

static struct dp_total share_left(const struct dp_ep *ep, const struct dp_edge *e)
{
	struct dp_total left = { 0, 0 };
	/* acquire: what the receiver had read before is of no interest; it is a counter */
	uint64_t word = __atomic_load_n(&ep->words[e->word], __ATOMIC_ACQUIRE);

	dp_wire_share(word, e->spent, &left);
	return left;
}

/* Give back all that is left. */
static void give_back(const struct dp_ep *ep, struct dp_edge *e)
{
	const struct dp_total left = share_left(ep, e);
	struct dp_control c = { .kind = DP_CONTROL_BACK,
				.to = e->dpid,
				.target = (uint32_t)e->instance,
				.word = e->word };

	e->spent = dp_total_plus(e->spent, left);
	e->returned = dp_total_plus(e->returned, left);
	c.total = e->returned;
	dp_control_send(e->process, &c);
}

/* Credit that a sender has left when it closes is for others. */
static void give_all_back(const struct dp_ep *ep)
{
	for (int i = 0; ep->words && i < DP_EDGES; i++)
		for (struct dp_edge *e = ep->edge[i]; e; e = e->next)
			if (e->word)
				give_back(ep, e);
}

void dp_credit_close(struct dp_ep *ep)
{
	if (ep->words_me != PTL_INVALID_HANDLE)
		while (PtlMEUnlink(ep->words_me) == PTL_ME_IN_USE)
			PtlProgress(dp_lib.ni, 1);
	give_all_back(ep);
	if (ep->words_eq != PTL_EQ_NONE)
		PtlEQFree(ep->words_eq);
	if (ep->words)
		munmap(ep->words, words_bytes());
	ep->words_me = PTL_INVALID_HANDLE;
	ep->words_eq = PTL_EQ_NONE;
	ep->words = NULL;
	ep->words_used = 0;
}

/* A sender that asks has nothing left, so that those that wait hold nothing that others need. */
static void ask_for_credit(const struct dp_ep *ep, struct dp_edge *e, uint64_t need)
{
	const uint64_t now = base_now_ms();
	const struct dp_control c = { .kind = DP_CONTROL_ASK,
				      .to = e->dpid,
				      .target = (uint32_t)e->instance,
				      .word = e->word,
				      .nid = (uint32_t)dp_lib.nid,
				      .dpid = ep->dpid,
				      .sender = (uint32_t)ep->instance,
				      .need = (uint32_t)need };

	if (e->asked && now - e->asked_at < ASK_AGAIN_MS)
		return;
	e->asked = true;
	e->asked_at = now;
	give_back(ep, e);
	dp_control_send(e->process, &c);
}

bool dp_credit_spend(struct dp_ep *ep, struct dp_edge *e, uint64_t bytes)
{
	const struct dp_total cost = cost_of(bytes);
	struct dp_total left = share_left(ep, e);

	if (left.units < cost.units || left.messages < cost.messages) {
		ptl_event_t event[8];
		int n;

		/* grants that come from now on end the wait; those before are in the word */
		do {
			PtlEQPollMany(&ep->words_eq, 1, PTL_TIME_LOOK, NULL, event, 8, &n);
		} while (n == 8);
		left = share_left(ep, e);
	}
	if (left.units < cost.units || left.messages < cost.messages) {
		ask_for_credit(ep, e, cost.units);
		return false;
	}
	e->asked = false;
	e->spent = dp_total_plus(e->spent, cost);
	return true;
}

void dp_credit_unspend(struct dp_edge *e, uint64_t bytes)
{
	e->spent = dp_total_minus(e->spent, cost_of(bytes));
}

void dp_credit_give_back(struct dp_ep *ep, const struct dp_control *c, ptl_process_id_t from)
{
	struct dp_edge *e = NULL;

	for (int i = 0; i < DP_EDGES && !e; i++)
		for (e = ep->edge[i]; e && (e->word != c->word || !e->word); e = e->next)
			;
	if (e && ep->words && e->process.nid == from.nid && e->process.pid == from.pid)
		give_back(ep, e);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

/* A block is full by its messages, or by its bytes but for less than a longest message. So three
 * blocks are full with half of this many messages and half of this many bytes at the least. */
static struct dp_total capacity_of(const struct dp_pool *pool)
{
	const size_t longest = (pool->longest + DP_ALIGN - 1) / DP_ALIGN * DP_ALIGN;
	const unsigned int blocks = DP_BLOCKS - 1;

	return (struct dp_total){ blocks * (pool->block_bytes - longest) / 2 / DP_ALIGN,
				  blocks * (uint32_t)pool->threshold / 2 };
}

/* Credit that a sender has, or has spent on messages that are not free. */
static struct dp_total held_by(const struct dp_sender *s)
{
	return dp_total_minus(dp_total_minus(s->granted, s->returned), s->freed);
}

/* An equal share, and at least one longest message. */
static struct dp_total equal_share(const struct dp_ep *ep)
{
	struct dp_total c = capacity_of(&ep->pool);
	uint64_t least = (ep->pool.longest + DP_ALIGN - 1) / DP_ALIGN;
	unsigned int n = 0;

	for (const struct dp_sender *s = ep->flows; s; s = s->next_flow)
		n += s->asking || held_by(s).units;
	if (n > 1) {
		c.units /= n;
		c.messages /= n;
	}
	if (c.units < least)
		c.units = least;
	if (c.messages < 1)
		c.messages = 1;
	return c;
}

static struct dp_total smaller(struct dp_total a, struct dp_total b)
{
	return (struct dp_total){ a.units < b.units ? a.units : b.units,
				  a.messages < b.messages ? a.messages : b.messages };
}

/* Credit that could still be granted. */
static struct dp_total left_to_grant(const struct dp_ep *ep)
{
	const struct dp_total c = capacity_of(&ep->pool);

	if (ep->allowed.units >= c.units || ep->allowed.messages >= c.messages)
		return (struct dp_total){ 0, 0 };
	return dp_total_minus(c, ep->allowed);
}

/* False: Portals has no room for that now. */
static bool grant(struct dp_ep *ep, struct dp_sender *s, struct dp_total t)
{
	const struct dp_total granted = dp_total_plus(s->granted, t);
	const uint64_t word = dp_wire_put_total(granted);

	if (PtlPutInject(dp_lib.ni, &word, sizeof(word), PTL_INJECT_NOW, s->process,
			 DP_PORTAL_CREDIT, 0, s->dpid, s->word * sizeof(word), 0) == PTL_NO_SPACE)
		return false;
	s->granted = granted;
	ep->allowed = dp_total_plus(ep->allowed, t);
	s->asking = false;
	return true;
}

static void forget_flow(struct dp_ep *ep, struct dp_sender *s)
{
	ep->allowed = dp_total_minus(ep->allowed, held_by(s));
	s->granted = s->freed = s->returned = (struct dp_total){ 0, 0 };
	s->asking = false;
}

/* Others wait: what is not spent shall come back, and what dead senders have. */
static void ask_back(struct dp_ep *ep)
{
	const uint64_t now = base_now_ms();

	for (struct dp_sender *s = ep->flows; s; s = s->next_flow) {
		const struct dp_control c = { .kind = DP_CONTROL_TAKE,
					      .to = s->dpid,
					      .target = s->flow_instance,
					      .word = s->word };
		ptl_ni_fail_t why = PTL_NI_OK;
		char text[128];

		/* one that asks may have been granted credit before its question came */
		if (!held_by(s).units || now - s->taken_at < ASK_AGAIN_MS)
			continue;
		s->taken_at = now;
		PtlPeerReason(dp_lib.ni, s->process, &why, text, sizeof(text));
		if (why == PTL_NI_PEER_DEAD)
			forget_flow(ep, s);
		else
			dp_control_send(s->process, &c);
	}
}

static struct dp_sender *first_asking(const struct dp_ep *ep)
{
	struct dp_sender *first = NULL;

	for (struct dp_sender *s = ep->flows; s; s = s->next_flow)
		if (s->asking && (!first || s->asked_at < first->asked_at))
			first = s;
	return first;
}

/* Credit that a sender may have in addition. False: nothing worth telling. */
static bool more_for(const struct dp_ep *ep, const struct dp_sender *s, struct dp_total *more)
{
	const struct dp_total share = equal_share(ep), held = held_by(s);

	if (held.units >= share.units || held.messages >= share.messages)
		return false;
	*more = smaller(dp_total_minus(share, held), left_to_grant(ep));
	return more->units && more->messages;
}

bool dp_flow_serve(struct dp_ep *ep)
{
	struct dp_sender *s;
	struct dp_total more;

	while ((s = first_asking(ep))) {
		if (!more_for(ep, s, &more) || more.units < s->need) {
			ask_back(ep);
			return true;
		}
		if (!grant(ep, s, more))
			return true; /* the watching thread tries again */
	}
	return false;
}

void dp_flow_freed(struct dp_ep *ep, struct dp_sender *s, uint64_t bytes)
{
	const struct dp_total freed = cost_of(bytes);
	struct dp_total more, share;

	if (!s->flows || held_by(s).units < freed.units)
		return;
	s->freed = dp_total_plus(s->freed, freed);
	ep->allowed = dp_total_minus(ep->allowed, freed);
	if (ep->nasking && !dp_flow_serve(ep))
		ep->nasking = false;
	if (ep->nasking || !more_for(ep, s, &more))
		return;
	share = equal_share(ep);
	if (more.units >= share.units / 2 || more.messages >= share.messages / 2)
		grant(ep, s, more);
}

void dp_flow_asked(struct dp_ep *ep, const struct dp_control *c, ptl_process_id_t from)
{
	struct dp_sender *s;

	if (!ep->flow || c->target != (ep->instance & DP_TARGET_MASK))
		return;
	s = dp_sender_of(ep, c->nid, c->dpid);
	if (!s)
		return;
	if (!s->flows) {
		s->flows = true;
		s->next_flow = ep->flows;
		ep->flows = s;
	}
	if (s->word != c->word || s->flow_instance != c->sender || s->process.nid != from.nid ||
	    s->process.pid != from.pid) {
		/* another instance, whose messages are not here yet */
		forget_flow(ep, s);
		s->word = c->word;
		s->flow_instance = c->sender;
		s->process = from;
	}
	if (!s->asking)
		s->asked_at = ep->asks++;
	s->asking = true;
	s->need = c->need;
	ep->nasking = dp_flow_serve(ep);
}

void dp_flow_returned(struct dp_ep *ep, const struct dp_control *c, ptl_process_id_t from)
{
	struct dp_sender *s = ep->flows;
	struct dp_total more;

	if (c->target != (ep->instance & DP_TARGET_MASK))
		return;
	while (s &&
	       (s->word != c->word || s->process.nid != from.nid || s->process.pid != from.pid))
		s = s->next_flow;
	if (!s)
		return;
	more = dp_total_minus(c->total, s->returned);
	if (more.units > held_by(s).units || more.messages > held_by(s).messages)
		return;
	s->returned = c->total;
	ep->allowed = dp_total_minus(ep->allowed, more);
	ep->nasking = ep->flow && dp_flow_serve(ep);
}
