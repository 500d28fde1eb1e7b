/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bodies that do not go with their message's header. A short body comes in the packets behind
 * it. For a long body, the sender registers the memory and says where it is. The receiver then
 * knows how much of it it wants and where, and reads it straight into place. A body that cannot
 * be read comes in segments that are copied. The reasons are the link, limits on locked memory,
 * or a vector.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/usermem.h"
#include "nal/net/rdma/rdma.h"

#define READS_OWN 4u /* in flight for one body, where the link has no preference */

/* The peer need not be told at once that a message is over. The report can wait under two
 * conditions: another of its messages ends within OVER_BYTES, and at least OVER_TIMES as many
 * bodies are being read as reports wait. */
#define OVER_BYTES (128u << 10)
#define OVER_TIMES 4u

/* ---- memory ---------------------------------------------------------------------------------- */

/* Memory that is not there reads as zeros: nothing else of our memory goes to a peer. */
void rdma_copy_out(struct rdma *d, void *to, const struct net_mem *mem, uint64_t offset,
		   uint64_t len)
{
	struct iovec iov[16];
	char *at = to;

	if (mem->base) {
		base_copy_user(to, (char *)mem->base + offset, len);
		return;
	}
	while (len) {
		int k = net_segments(&d->net, mem->cookie, offset, len, iov, 16);

		if (!k) {
			memset(at, 0, len);
			return;
		}
		for (int i = 0; i < k; i++) {
			base_copy_user(at, iov[i].iov_base, iov[i].iov_len);
			at += iov[i].iov_len;
			offset += iov[i].iov_len;
			len -= iov[i].iov_len;
		}
	}
}

/* False: there is no such memory, or not all of it. */
static bool copy_body_in(struct rdma *d, const struct net_mem *mem, uint64_t offset,
			 const void *from, uint64_t len)
{
	struct iovec iov[16];
	const char *at = from;

	if (mem->base) {
		base_copy_user((char *)mem->base + offset, from, len);
		return true;
	}
	while (len) {
		int k = net_segments(&d->net, mem->cookie, offset, len, iov, 16);

		if (!k)
			return false;
		for (int i = 0; i < k; i++) {
			base_copy_user(iov[i].iov_base, at, iov[i].iov_len);
			at += iov[i].iov_len;
			offset += iov[i].iov_len;
			len -= iov[i].iov_len;
		}
	}
	return true;
}

/* The start of the memory if it is one range, else NULL. A vector is one range if all wanted
 * bytes lie in one entry. */
static void *one_segment(struct rdma *d, const struct net_mem *mem, uint64_t len)
{
	struct iovec iov;

	if (mem->base)
		return mem->base;
	return net_segments(&d->net, mem->cookie, 0, len, &iov, 1) == 1 && iov.iov_len == len
		       ? iov.iov_base
		       : NULL;
}

bool rdma_expose(struct rdma *d, struct rdma_out *o)
{
	void *base = d->limits.read ? one_segment(d, &o->mem, o->len) : NULL;

	return base && rdma_reg_body(d, o->cookie, base, o->len, RDMA_REMOTE, &o->mr) == 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static struct rdma_body *body_get(struct rdma *d)
{
	struct rdma_body *b = d->free_bodies, *all;

	if (b) {
		d->free_bodies = b->next;
		all = b->all;
	} else {
		b = malloc(sizeof(*b));
		if (!b)
			return NULL;
		all = d->all_bodies;
		d->all_bodies = b;
	}
	*b = (struct rdma_body){ .all = all };
	return b;
}

static void body_put(struct rdma *d, struct rdma_body *b)
{
	b->next = d->free_bodies;
	d->free_bodies = b;
}

static struct rdma_read *read_get(struct rdma *d)
{
	struct rdma_read *r = d->free_reads;

	if (r) {
		d->free_reads = r->next;
		return r;
	}
	r = malloc(sizeof(*r));
	if (r) {
		r->all = d->all_reads;
		d->all_reads = r;
	}
	return r;
}

static void read_put(struct rdma *d, struct rdma_read *r)
{
	r->next = d->free_reads;
	d->free_reads = r;
}

static void unlist_body(struct rdma_body *b)
{
	struct rdma_body **at = &b->peer->bodies;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct rdma_body *pop_over(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_body *b = p->overs;

	p->overs = b->next;
	p->novers--;
	body_put(d, b);
	return b;
}

void rdma_report_overs(struct rdma *d, struct rdma_peer *p)
{
	uint8_t more[RDMA_OVERS * sizeof(struct rdma_wire_body)];
	struct rdma_body *b = pop_over(d, p);
	struct rdma_msg m = { .kind = RDMA_OVER,
			      .id = b->id,
			      .status = (uint8_t)b->how,
			      .length = b->done,
			      .more = more };
	uint32_t len = 0;

	for (; p->overs; m.nmore++) {
		b = pop_over(d, p);
		len += rdma_encode_over(more + len, b->id, (uint8_t)b->how, b->done);
	}
	rdma_say(d, p, &m);
}

/*
 * Decide whether to report the end of a body later, together with others. In a stream of long
 * messages the sender has others under way. Each OVER packet costs both sides, and wakes the
 * sender. So one packet reports several ends, under three conditions. The sender has enough
 * under way not to notice. The next end is close. And the packet is short enough that the link
 * copies it.
 */
static bool may_report_over_later(const struct rdma *d, const struct rdma_peer *p,
				  const struct rdma_body *b)
{
	const struct rdma_body *next = p->bodies;

	return b->how == NET_OK && p->novers < RDMA_OVERS &&
	       RDMA_BEFORE_SEGMENT + p->novers * sizeof(struct rdma_wire_body) <=
		       d->limits.copied &&
	       p->reading >= OVER_TIMES * p->novers && next && next->reads && next->how == NET_OK &&
	       next->len - next->done <= OVER_BYTES;
}

static void body_over(struct rdma *d, struct rdma_peer *p, struct rdma_body *b, enum net_status s)
{
	b->how = s;
	b->done = s == NET_OK ? b->len : 0;
	b->next = NULL;
	if (p->overs)
		p->overs_end->next = b;
	else
		p->overs = b;
	p->overs_end = b;
	p->novers++;
	if (!may_report_over_later(d, p, b))
		rdma_report_overs(d, p);
}

/* End a body: the sender may reuse its memory, and nal/net is told that the body is there or
 * failed. */
static void finish_body(struct rdma *d, struct rdma_body *b, enum net_status s)
{
	struct rdma_peer *p = b->peer;
	void *cookie = b->cookie;

	unlist_body(b);
	rdma_unreg(d, &b->mr);
	p->reading -= b->reads;
	if (p->failure == NET_OK)
		body_over(d, p, b, s);
	else
		body_put(d, b);
	net_delivered(&d->net, p->number, cookie, s);
}

/* Returns 0, -EAGAIN or -ENOMEM; on another error the connection is marked as failed. */
static int start_read(struct rdma *d, struct rdma_body *b)
{
	uint64_t len = b->len - b->asked;
	struct rdma_read *r = read_get(d);
	struct iovec iov;
	int err;

	if (!r)
		return -ENOMEM;
	len = len < d->limits.read ? len : d->limits.read;
	if (b->mem.base) {
		iov = (struct iovec){ (char *)b->mem.base + b->asked, len };
	} else if (net_segments(&d->net, b->mem.cookie, b->asked, len, &iov, 1) != 1) {
		read_put(d, r);
		b->how = NET_FAILED;
		/* there may be no read under way whose end finishes the body */
		rdma_busy(d, b->peer);
		return 0;
	}
	r->to = iov.iov_base;
	r->len = iov.iov_len;
	r->mr = &b->mr;
	r->from = b->address + b->asked;
	r->key = b->key;
	r->body = b;
	err = d->link->read(d->state, b->peer->path, r);
	if (err < 0) {
		read_put(d, r);
		if (err != -EAGAIN)
			rdma_break(d, b->peer, NET_DEAD, rdma_error(d, err));
		return err;
	}
	b->asked += iov.iov_len;
	b->flying++;
	return 0;
}

/* True: it could not go on. */
static bool read_more(struct rdma *d, struct rdma_body *b)
{
	uint32_t most = d->limits.reads ? d->limits.reads : READS_OWN;

	while (b->asked < b->len && b->flying < most && b->how == NET_OK &&
	       b->peer->failure == NET_OK)
		if (start_read(d, b) < 0)
			return true;
	return false;
}

bool rdma_fetch_more(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_body *b, *next;
	bool more = false;

	if (p->state != RDMA_UP)
		return false;
	for (b = p->bodies; b; b = next) {
		next = b->next;
		if (b->reads && p->failure == NET_OK)
			more |= read_more(d, b);
		if (b->reads && b->how != NET_OK && !b->flying)
			finish_body(d, b, b->how);
	}
	return more && p->failure == NET_OK;
}

void rdma_moved(struct rdma *d, struct rdma_read *r, enum rdma_end end, const char *why)
{
	struct rdma_body *b = r->body;
	struct rdma_peer *p = b->peer;

	b->flying--;
	b->done += r->len;
	read_put(d, r);
	if (!p) { /* given up */
		if (!b->flying) {
			rdma_unreg(d, &b->mr);
			body_put(d, b);
		}
		return;
	}
	rdma_busy(d, p);
	if (end != RDMA_OK)
		b->how = NET_FAILED;
	if (end == RDMA_BROKEN)
		rdma_break(d, p, NET_DEAD, why);
	if (p->state != RDMA_UP || p->failure != NET_OK)
		return;
	p->spoke = true;
	if (b->how == NET_OK && b->done == b->len)
		finish_body(d, b, NET_OK);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Can the body be read to this destination? Registers it if necessary. */
static bool can_read(struct rdma *d, const struct rdma_msg *m, const struct net_delivery *l,
		     struct rdma_mr *mr)
{
	void *base;

	if (!m->readable || !d->limits.read)
		return false;
	if (!d->limits.local_mr)
		return true;
	base = one_segment(d, &l->mem, l->length);
	return base && rdma_reg_body(d, l->cookie, base, l->length, RDMA_LOCAL, mr) == 0;
}

void __attribute__((noinline)) rdma_fetch(struct rdma *d, struct rdma_peer *p,
					  const struct rdma_msg *m, const struct net_delivery *l)
{
	struct rdma_msg pull = { .kind = RDMA_PULL, .id = m->id, .length = l->length };
	struct rdma_msg over = { .kind = RDMA_OVER, .id = m->id, .status = NET_FAILED };
	struct rdma_body *b = body_get(d), **at = &p->bodies;

	if (!b) {
		rdma_say(d, p, &over);
		net_delivered(&d->net, p->number, l->cookie, NET_FAILED);
		return;
	}
	b->peer = p;
	b->id = m->id;
	b->mem = l->mem;
	b->len = l->length;
	b->cookie = l->cookie;
	b->address = m->address;
	b->key = m->key;
	b->reads = can_read(d, m, l, &b->mr);
	p->reading += b->reads;
	while (*at)
		at = &(*at)->next;
	*at = b;
	if (p->failure != NET_OK)
		return;
	rdma_await(d, p);
	if (!b->reads)
		rdma_say(d, p, &pull);
	else if (read_more(d, b))
		rdma_busy(d, p);
}

void rdma_take_segment(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	struct rdma_body *b = p->bodies;

	if (p->consumed - p->advertised >= d->limits.credit / 2)
		rdma_busy(d, p);
	while (b && (b->id != m->id || b->reads))
		b = b->next;
	if (!b || m->offset != b->done || m->length > b->len - b->done) {
		d->stats.drops[b ? NET_DROP_OUTSIDE : NET_DROP_EARLY]++;
		rdma_break(d, p, NET_RESTARTED, "it sent what was not asked for");
		return;
	}
	/* the other segments are under way: the body ends with the last one in any case */
	if (!copy_body_in(d, &b->mem, b->done, m->body, m->length))
		b->how = NET_FAILED;
	b->done += m->length;
	if (b->done == b->len)
		finish_body(d, b, b->how);
}

/* Take the next bytes of the message that is coming. The last ones end it. */
static void take_bytes(struct rdma *d, struct rdma_peer *p, const void *bytes, uint64_t len)
{
	struct rdma_coming *c = &p->coming;
	uint64_t wanted = c->wanted - (c->done < c->wanted ? c->done : c->wanted);

	wanted = len < wanted ? len : wanted;
	if (wanted && !copy_body_in(d, &c->mem, c->done, bytes, wanted))
		c->how = NET_FAILED;
	c->done += len;
	if (c->done < c->len)
		return;
	c->len = 0;
	if (c->has_delivery)
		net_delivered(&d->net, p->number, c->cookie, c->how);
}

void __attribute__((noinline)) rdma_begin(struct rdma *d, struct rdma_peer *p,
					  const struct rdma_msg *m, const struct net_delivery *l)
{
	p->coming = (struct rdma_coming){ .len = m->length, .has_delivery = l };
	if (l) {
		p->coming.mem = l->mem;
		p->coming.wanted = l->length;
		p->coming.cookie = l->cookie;
	}
	rdma_await(d, p);
	take_bytes(d, p, m->body, m->here);
}

void rdma_take_more(struct rdma *d, struct rdma_peer *p, const struct rdma_msg *m)
{
	p->consumed++;
	if (p->consumed - p->advertised >= d->limits.credit / 2)
		rdma_busy(d, p);
	if (p->coming.len && m->length <= p->coming.len - p->coming.done) {
		take_bytes(d, p, m->body, m->length);
		return;
	}
	d->stats.drops[p->coming.len ? NET_DROP_OUTSIDE : NET_DROP_EARLY]++;
	rdma_break(d, p, NET_RESTARTED, "it sent more of a message than there is");
}

bool rdma_reads_flying(const struct rdma_peer *p)
{
	for (const struct rdma_body *b = p->bodies; b; b = b->next)
		if (b->flying)
			return true;
	return false;
}

void rdma_bodies_end(struct rdma *d, struct rdma_peer *p, enum net_status s)
{
	struct rdma_body *b;

	while (p->overs)
		pop_over(d, p);
	if (p->coming.len && p->coming.has_delivery)
		net_delivered(&d->net, p->number, p->coming.cookie, s);
	p->coming.len = 0;
	p->reading = 0;
	while ((b = p->bodies)) {
		void *cookie = b->cookie;

		p->bodies = b->next;
		b->peer = NULL;
		rdma_unreg(d, &b->mr);
		if (!b->flying)
			body_put(d, b);
		net_delivered(&d->net, p->number, cookie, s);
	}
}

void rdma_bodies_unreg(struct rdma *d)
{
	for (struct rdma_body *b = d->all_bodies; b; b = b->all)
		rdma_unreg(d, &b->mr);
}

void rdma_bodies_free(struct rdma *d)
{
	struct rdma_body *b;
	struct rdma_read *r;

	while ((b = d->all_bodies)) {
		d->all_bodies = b->all;
		free(b);
	}
	while ((r = d->all_reads)) {
		d->all_reads = r->all;
		free(r);
	}
}
