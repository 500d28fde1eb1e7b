/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Partners: whom an endpoint exchanges messages with, their addresses, and what becomes of what is
 * pending when one is gone. A partner lives as long as its endpoint: statuses carry its address.
 */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "mx_shim/mx_core.h"

#define PARTNER_BUCKETS 256u
#define STALL_MS        500u /* how long an answer may take before the partner is asked for */

/* ---- addresses ------------------------------------------------------------------------------- */

/* Every partner of the process by its index. A part of the table, once made, stays. */
#define PART  4096u
#define PARTS 1024u
static struct mxs_partner *_Atomic *_Atomic part[PARTS];
static uint32_t partners_made;
/* Those of closed endpoints, for new ones. Their memory stays: an address may be looked at while
 * another thread closes the endpoint. */
static struct mxs_partner *spare_partners;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */

static struct mxs_partner *_Atomic *place_of_partner(uint32_t index)
{
	struct mxs_partner *_Atomic *p =
		index / PART < PARTS
			? atomic_load_explicit(&part[index / PART], memory_order_acquire)
			: NULL;

	return p ? &p[index % PART] : NULL;
}

/* Gives a partner its place in the table. False: no memory. */
static bool enter_partner(struct mxs_partner *p)
{
	bool good = true;

	pthread_mutex_lock(&table_lock);
	p->index = partners_made;
	if (p->index / PART >= PARTS) {
		good = false;
	} else if (!place_of_partner(p->index)) {
		struct mxs_partner *_Atomic *more = calloc(PART, sizeof(*more));

		good = more != NULL;
		/* pairs with the acquire of place_of_partner() */
		atomic_store_explicit(&part[p->index / PART], more, memory_order_release);
	}
	if (good)
		partners_made++;
	p->entered = good;
	pthread_mutex_unlock(&table_lock);
	return good;
}

mx_endpoint_addr_t mxs_addr(const struct mxs_partner *p)
{
	mx_endpoint_addr_t addr = { { (uint64_t)p->check << 32 | (p->index + 1),
				      (uint64_t)p->id.nid << 32 | p->eid << 16 | p->tag } };

	return addr;
}

struct mxs_partner *mxs_partner_of(const struct mxs_endpoint *ep, mx_endpoint_addr_t addr)
{
	uint32_t index = (uint32_t)addr.stuff[0] - 1;
	struct mxs_partner *_Atomic *place = place_of_partner(index);
	struct mxs_partner *p;

	p = place ? atomic_load_explicit(place, memory_order_acquire) : NULL;
	if (!p || p->check != addr.stuff[0] >> 32 || (ep && p->ep != ep))
		return NULL;
	return p;
}

/* ---- making ---------------------------------------------------------------------------------- */

static struct mxs_partner **bucket_of_partner(struct mxs_endpoint *ep, ptl_process_id_t id,
					      uint32_t eid)
{
	uint32_t hash = (id.nid ^ id.pid * 0x9e3779b1u ^ eid * 0x85ebca6bu) * 0x9e3779b1u;

	return &ep->partner_bucket[hash >> 24 & (PARTNER_BUCKETS - 1)];
}

static struct mxs_partner *spare_partner(void)
{
	struct mxs_partner *p;
	uint32_t index;

	pthread_mutex_lock(&table_lock);
	p = spare_partners;
	if (p)
		spare_partners = p->next;
	pthread_mutex_unlock(&table_lock);
	if (!p)
		return calloc(1, sizeof(*p));
	index = p->index;
	memset(p, 0, sizeof(*p));
	p->index = index;
	p->entered = true;
	return p;
}

static void free_partner(struct mxs_partner *p)
{
	pthread_mutex_lock(&table_lock);
	p->ep = NULL;
	p->next = spare_partners;
	spare_partners = p;
	pthread_mutex_unlock(&table_lock);
}

static struct mxs_partner *make_partner(struct mxs_endpoint *ep, ptl_process_id_t id, uint32_t eid,
					uint32_t tag)
{
	struct mxs_partner *p = spare_partner();

	if (!p)
		return NULL;
	p->ep = ep;
	p->id = id;
	p->eid = eid;
	p->tag = tag;
	p->life = UINT32_MAX;
	p->share_slots = MXS_NEWCOMER_SLOTS;
	p->share_bytes = MXS_NEWCOMER_BYTES;
	p->said_slots = MXS_NEWCOMER_SLOTS;
	p->said_bytes = MXS_NEWCOMER_BYTES;
	mxs_list_init(&p->queue);
	mxs_list_init(&p->ops);
	mxs_list_init(&p->due);
	mxs_list_init(&p->active);
	if (!base_random(&p->check, sizeof(p->check)))
		p->check = (uint32_t)(uintptr_t)p;
	if (!p->entered && !enter_partner(p)) {
		free(p);
		return NULL;
	}
	atomic_store_explicit(place_of_partner(p->index), p, memory_order_release);
	ep->partners++;
	return p;
}

/* Another life has taken the place of this one: nothing reaches it any more. */
static void replace_partner(struct mxs_partner *p)
{
	p->replaced = true;
	mxs_partner_fail(p, MX_STATUS_BAD_SESSION);
}

struct mxs_partner *mxs_partner_find(struct mxs_endpoint *ep, ptl_process_id_t id, uint32_t eid,
				     uint32_t tag)
{
	struct mxs_partner *p = ep->partner_bucket ? *bucket_of_partner(ep, id, eid) : NULL;

	while (p && (p->id.nid != id.nid || p->id.pid != id.pid || p->eid != eid || p->tag != tag ||
		     p->replaced))
		p = p->next;
	return p;
}

struct mxs_partner *mxs_partner_get(struct mxs_endpoint *ep, ptl_process_id_t id, uint32_t eid,
				    uint32_t tag)
{
	struct mxs_partner **bucket, *p, **at;

	if (!ep->partner_bucket) {
		ep->partner_bucket = calloc(PARTNER_BUCKETS, sizeof(struct mxs_partner *));
		if (!ep->partner_bucket)
			return NULL;
	}
	bucket = bucket_of_partner(ep, id, eid);
	for (at = bucket; (p = *at); at = &p->next) {
		if (p->id.nid != id.nid || p->id.pid != id.pid || p->eid != eid || p->replaced)
			continue;
		if (p->tag == tag)
			return p;
		replace_partner(p);
	}
	p = make_partner(ep, id, eid, tag);
	if (p) {
		p->next = *bucket;
		*bucket = p;
	}
	return p;
}

struct mxs_partner *mxs_partner_of_record(struct mxs_endpoint *ep, ptl_process_id_t id,
					  const struct mxs_record *record)
{
	uint32_t tag = record->session & MXS_TAG_MASK;
	struct mxs_partner *p = mxs_partner_get(ep, id, record->eid, tag);

	if (p && !mxs_partner_has_session(p, record->session)) {
		replace_partner(p);
		p = mxs_partner_get(ep, id, record->eid, tag);
	}
	return p;
}

bool mxs_partner_has_session(const struct mxs_partner *p, uint32_t session)
{
	return (session & MXS_TAG_MASK) == p->tag && (!p->session || p->session == session) &&
	       (p->life == UINT32_MAX || p->life == mxs_life_of(session));
}

struct mxs_partner *mxs_partner_of_message(struct mxs_endpoint *ep, ptl_process_id_t id,
					   const struct mxs_header *h)
{
	struct mxs_partner *p = mxs_partner_get(ep, id, h->eid, h->tag);

	if (!p || h->kind == MXS_PULL || p->life == h->life)
		return p;
	if (p->life != UINT32_MAX) { /* another life with its tag */
		replace_partner(p);
		p = mxs_partner_get(ep, id, h->eid, h->tag);
	}
	if (p)
		p->life = h->life;
	return p;
}

void mxs_partner_learn(struct mxs_partner *p, const struct mxs_record *record)
{
	p->session = record->session;
	p->life = mxs_life_of(record->session);
	p->portal = record->portal;
	p->dead = MX_STATUS_SUCCESS;
	if (p->known)
		return;
	p->known = true;
	p->late = !record->slots;
	if ((int32_t)(record->slots - p->may_slots) > 0)
		p->may_slots = record->slots;
	if ((int32_t)(record->bytes - p->may_bytes) > 0)
		p->may_bytes = record->bytes;
	p->ep->queues_due = true;
}

void mxs_partner_granted(struct mxs_partner *p, const struct mxs_record *record)
{
	if (!p->late || !record->slots || p->sent_slots != p->may_slots)
		return;
	p->may_slots = p->sent_slots + record->slots;
	p->may_bytes = p->sent_bytes + record->bytes;
}

/* ---- what is pending ------------------------------------------------------------------------- */

void mxs_partner_wait(struct mxs_partner *p, struct mxs_link *list, struct mxs_request *r)
{
	mxs_list_append(list, &r->link);
	if (mxs_list_empty(&p->active)) {
		p->checked_ms = mxs_now_ms();
		mxs_list_append(&p->ep->active, &p->active);
	}
}

static void fail_list(struct mxs_link *list, mx_status_code_t code)
{
	struct mxs_link *l = list->next, *next;

	for (; l != list; l = next) {
		next = l->next;
		mxs_doom(MXS_OF(l, struct mxs_request, link), code);
	}
}

void mxs_partner_fail(struct mxs_partner *p, mx_status_code_t code)
{
	p->dead = code;
	mxs_count(p->ep, MXS_PARTNERS_LOST);
	fail_list(&p->queue, code);
	fail_list(&p->ops, code);
}

void mxs_partners_tick(struct mxs_endpoint *ep, uint64_t now)
{
	struct mxs_link *l = ep->active.next, *next;

	for (; l != &ep->active; l = next) {
		struct mxs_partner *p = MXS_OF(l, struct mxs_partner, active);

		next = l->next;
		if (mxs_list_empty(&p->queue) && mxs_list_empty(&p->ops)) {
			mxs_list_remove(&p->active);
			continue;
		}
		if (p->late)
			mxs_queue_run(p);
		if (now - p->checked_ms < STALL_MS)
			continue;
		p->checked_ms = now;
		if (p == ep->self || p->asked)
			continue;
		mxs_count(ep, MXS_CHECKS);
		p->asked = mxs_ask(ep, NULL, p->id, mxs_ask_bits(MXS_ASK_LIFE, p->eid, 0), p);
	}
}

void mxs_partners_free(struct mxs_endpoint *ep)
{
	for (uint32_t i = 0; ep->partner_bucket && i < PARTNER_BUCKETS; i++) {
		struct mxs_partner *p = ep->partner_bucket[i], *next;

		for (; p; p = next) {
			next = p->next;
			atomic_store_explicit(place_of_partner(p->index), NULL,
					      memory_order_release);
			free_partner(p);
		}
	}
	free(ep->partner_bucket);
	ep->partner_bucket = NULL;
	ep->partners = 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Finds the partner of an address for a call that is given no endpoint; locks its endpoint. */
static struct mxs_partner *enter_partner_of(mx_endpoint_addr_t addr)
{
	for (uint32_t i = 0; i < MXS_SLOTS; i++) {
		struct mxs_endpoint *ep =
			atomic_load_explicit(&mxs.endpoint[i], memory_order_acquire);
		struct mxs_partner *p;

		if (!ep || !mxs_enter(mxs_endpoint_handle(ep)))
			continue;
		p = mxs_partner_of(ep, addr);
		if (p)
			return p;
		mxs_leave(ep);
	}
	return NULL;
}

mx_return_t mx_decompose_endpoint_addr2(mx_endpoint_addr_t endpoint_addr, uint64_t *nic_id,
					uint32_t *endpoint_id, uint32_t *session_id)
{
	struct mxs_partner *p = enter_partner_of(endpoint_addr);
	struct mxs_endpoint *ep;

	if (!p)
		return mxs_no_endpoint("mx_decompose_endpoint_addr");
	ep = p->ep;
	if (nic_id)
		*nic_id = mxs_nic_id(ep->board_number, p->id.nid);
	if (endpoint_id)
		*endpoint_id = p->eid;
	if (session_id)
		*session_id = p->tag; /* of a sender no more is known at first */
	mxs_leave(ep);
	return MX_SUCCESS;
}

mx_return_t mx_decompose_endpoint_addr(mx_endpoint_addr_t endpoint_addr, uint64_t *nic_id,
				       uint32_t *endpoint_id)
{
	return mx_decompose_endpoint_addr2(endpoint_addr, nic_id, endpoint_id, NULL);
}

mx_return_t mx_set_endpoint_addr_context(mx_endpoint_addr_t endpoint_addr, void *context)
{
	struct mxs_partner *p = enter_partner_of(endpoint_addr);

	if (!p)
		return mxs_no_endpoint("mx_set_endpoint_addr_context");
	p->context = context;
	mxs_leave(p->ep);
	return MX_SUCCESS;
}

mx_return_t mx_get_endpoint_addr_context(mx_endpoint_addr_t endpoint_addr, void **context)
{
	struct mxs_partner *p = enter_partner_of(endpoint_addr);

	if (!p)
		return mxs_no_endpoint("mx_get_endpoint_addr_context");
	if (context)
		*context = p->context;
	mxs_leave(p->ep);
	return MX_SUCCESS;
}

/* Forgets messages of a partner that no receive has matched. */
static void forget_messages(struct mxs_endpoint *ep, const struct mxs_partner *p)
{
	struct mxs_link *l = ep->unexpected.next, *next;

	for (; l != &ep->unexpected; l = next) {
		struct mxs_unexp *u = MXS_OF(l, struct mxs_unexp, all);

		next = l->next;
		if (u->partner == p) {
			mxs_unexp_remove(ep, u);
			mxs_unexp_free(ep, u);
		}
	}
	/* the first one is shown to the handler now, perhaps */
	l = ep->arrived.next;
	if (ep->in_handler && l != &ep->arrived)
		l = l->next;
	for (; l != &ep->arrived; l = next) {
		struct mxs_unexp *u = MXS_OF(l, struct mxs_unexp, all);

		next = l->next;
		if (u->partner == p) {
			mxs_list_remove(&u->all);
			mxs_unexp_free(ep, u);
		}
	}
}

mx_return_t mx_disconnect(mx_endpoint_t endpoint, mx_endpoint_addr_t addr)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct mxs_partner *p;
	mx_error_handler_t handler;

	if (!ep)
		return mxs_no_endpoint("mx_disconnect");
	p = mxs_partner_of(ep, addr);
	if (p && p != ep->self) {
		struct mxs_link *l, *next;

		mxs_partner_fail(p, MX_STATUS_ENDPOINT_UNREACHABLE);
		forget_messages(ep, p);
		for (l = ep->pending.next; l != &ep->pending; l = next) {
			struct mxs_request *r = MXS_OF(l, struct mxs_request, all);

			next = l->next;
			if (r->type == MXS_CONNECT && r->to.nid == p->id.nid && r->eid == p->eid)
				mxs_doom(r, MX_STATUS_ENDPOINT_UNREACHABLE);
		}
	}
	handler = ep->handler;
	mxs_leave(ep);
	return p ? MX_SUCCESS : mxs_fail(handler, "mx_disconnect", MX_BAD_ENDPOINT);
}
