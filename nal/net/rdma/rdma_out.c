/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Outgoing packets and messages. A message on an open connection with credit is sent at once:
 * as one packet, as a few, or, if it is long, as the packet that lets the peer fetch it. A
 * short one that the link copies needs no memory of ours. Anything else waits in its peer's
 * queue for run().
 *
 * A packet that was built has its sequence number. So if the link has no room, the packet is
 * kept, and no other passes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nal/net/rdma/rdma.h"

#define SLAB_PACKETS 32u
#define PACKETS_MOST 1024u
#define SPARE        8u             /* the last ones are for packets without data */
#define SMALL        RDMA_HELLO_MAX /* bytes of a packet in memory that is not registered */
#define ID_BITS      20u
#define IDS          ((1u << ID_BITS) - 1)

struct rdma_slab {
	struct rdma_slab *next;
	uint8_t *bytes;
	struct rdma_mr mr;
	struct rdma_packet packet[SLAB_PACKETS];
};

/* ---- packets --------------------------------------------------------------------------------- */

static bool grow_rdma_records(struct rdma *d)
{
	size_t each = ((size_t)d->limits.packet + 63) & ~(size_t)63;
	struct rdma_slab *s = calloc(1, sizeof(*s));

	if (!s)
		return false;
	s->bytes = aligned_alloc(4096, (SLAB_PACKETS * each + 4095) & ~(size_t)4095);
	if (!s->bytes || (d->limits.local_mr &&
			  rdma_reg(d, s->bytes, SLAB_PACKETS * each, RDMA_LOCAL, &s->mr) < 0)) {
		free(s->bytes);
		free(s);
		return false;
	}
	for (uint32_t i = 0; i < SLAB_PACKETS; i++) {
		struct rdma_packet *k = &s->packet[i];

		k->bytes = s->bytes + i * each;
		k->mr = &s->mr;
		k->next = d->free_packets;
		d->free_packets = k;
	}
	s->next = d->slabs;
	d->slabs = s;
	d->packets += SLAB_PACKETS;
	d->free_count += SLAB_PACKETS;
	return true;
}

bool rdma_reserve(struct rdma *d)
{
	return grow_rdma_records(d);
}

static struct rdma_packet *small_new(struct rdma *d, size_t len)
{
	struct rdma_packet *k = calloc(1, sizeof(*k) + (len > SMALL ? len : SMALL));

	if (!k)
		return NULL;
	k->bytes = (uint8_t *)(k + 1);
	k->small = true;
	k->all = d->all_small;
	d->all_small = k;
	return k;
}

/* Packets that the link copies use unregistered memory. The amount that may be registered is
 * limited, and the packets that peers need most must not wait for it. */
static struct rdma_packet *small_get(struct rdma *d)
{
	struct rdma_packet *k = d->free_small;

	if (!k)
		return small_new(d, SMALL);
	d->free_small = k->next;
	return k;
}

static struct rdma_packet *__attribute__((noinline))
new_rdma_packet(struct rdma *d, size_t len, bool data)
{
	struct rdma_packet *k;

	if (len <= d->limits.copied && len <= SMALL)
		return small_get(d);
	if (d->free_count <= SPARE && d->packets < PACKETS_MOST && !d->full)
		d->full = !grow_rdma_records(d);
	if (d->free_count <= (data ? SPARE : 0))
		return NULL;
	k = d->free_packets;
	d->free_packets = k->next;
	d->free_count--;
	return k;
}

void rdma_packet_put(struct rdma *d, struct rdma_packet *k)
{
	struct rdma_packet **list = k->small ? &d->free_small : &d->free_packets;

	d->free_count += !k->small;
	k->next = *list;
	*list = k;
}

/* Get memory for a packet of this length: the scratch packet, if the link will copy it. Overs
 * that were put off go first. */
static struct rdma_packet *packet_for(struct rdma *d, struct rdma_peer *p, size_t len, bool data)
{
	struct rdma_packet *k;

	if (p->novers)
		rdma_report_overs(d, p);
	k = len <= d->limits.copied && !p->stuck ? &d->scratch : new_rdma_packet(d, len, data);
	if (k)
		k->last = k->headerless = false;
	return k;
}

static void __attribute__((noinline))
keep_packet(struct rdma *d, struct rdma_peer *p, struct rdma_packet *k)
{
	if (k == &d->scratch) {
		/* the link copies it: many peers may each keep one, and need no registered
		 * memory */
		k = new_rdma_packet(d, d->scratch.len, true);
		if (!k)
			k = small_new(d, d->scratch.len);
		if (!k) {
			rdma_break(d, p, NET_NO_MEMORY, NULL);
			return;
		}
		memcpy(k->bytes, d->scratch.bytes, d->scratch.len);
		k->len = d->scratch.len;
		k->last = d->scratch.last;
		k->headerless = d->scratch.headerless;
		k->word = d->scratch.word;
		k->peer = p;
	}
	k->next = NULL;
	if (p->stuck)
		p->stuck_end->next = k;
	else
		p->stuck = k;
	p->stuck_end = k;
	rdma_busy(d, p);
}

/* -EAGAIN: the packet is still ours. 0: the packet is gone, or the connection failed. */
static int hand_packet_over(struct rdma *d, struct rdma_peer *p, struct rdma_packet *k)
{
	bool copied = k->len <= d->limits.copied && !(k->last && d->limits.ends_last);
	int err;

	k->serial = p->serial;
	err = d->link->send(d->state, p->path, k);
	if (err == -EAGAIN)
		return err;
	if (err < 0)
		rdma_break(d, p, NET_DEAD, rdma_error(d, err));
	else
		d->stats.packets_out++;
	if (err == 0 && !copied)
		p->flying++;
	else if (k != &d->scratch)
		rdma_packet_put(d, k);
	return 0;
}

static void send_packet(struct rdma *d, struct rdma_peer *p, struct rdma_packet *k)
{
	k->peer = p;
	if (p->stuck || hand_packet_over(d, p, k) == -EAGAIN)
		keep_packet(d, p, k);
}

void rdma_sent(struct rdma *d, struct rdma_packet *k, enum rdma_end end, const char *why)
{
	struct rdma_peer *p = k->peer;

	p->flying--;
	/* the failure of an earlier connection is known already */
	if (end != RDMA_OK && k->serial == p->serial)
		rdma_break(d, p, NET_DEAD, why);
	rdma_packet_put(d, k);
}

void rdma_broken(struct rdma *d, void *path, const char *why)
{
	for (uint32_t i = 0; i < d->npeers; i++)
		if (d->peer[i]->path == path)
			rdma_break(d, d->peer[i], NET_DEAD, why);
}

/* ---- what packets say ------------------------------------------------------------------------ */

/* Fill in the head of a packet on an open connection. */
static void head(struct rdma_peer *p, struct rdma_msg *m)
{
	m->to = p->to;
	m->token = p->token;
	m->seq = ++p->seq_out;
	m->consumed = (uint16_t)p->consumed;
	p->advertised = p->consumed;
}

bool rdma_say(struct rdma *d, struct rdma_peer *p, struct rdma_msg *m)
{
	uint32_t more = m->nmore * (uint32_t)sizeof(struct rdma_wire_body);
	struct rdma_packet *k = packet_for(d, p, RDMA_BEFORE_SEGMENT + more, false);

	/* it needs memory that stays valid until it is over */
	if (k == &d->scratch && m->kind == RDMA_BYE && d->limits.ends_last) {
		k = small_get(d);
		if (k)
			k->headerless = false;
	}
	if (!p->path || !k) {
		rdma_break(d, p, NET_NO_MEMORY, NULL);
		return false;
	}
	head(p, m);
	k->len = rdma_encode(k->bytes, m);
	if (more)
		memcpy(k->bytes + k->len, m->more, more);
	k->len += more;
	k->last = m->kind == RDMA_BYE;
	send_packet(d, p, k);
	return true;
}

void rdma_greet(struct rdma *d, struct rdma_peer *p, uint8_t kind, uint64_t greeting)
{
	struct rdma_packet *k = packet_for(d, p, RDMA_HELLO_MAX, false);
	const struct ptl_ni *ni = d->net.ni;
	struct rdma_msg m = {
		.kind = kind,
		.from = net_id(ni->id),
		.whom = p->who.id,
		.incarnation = d->incarnation,
		.own_token = p->own_token,
		.greeting = greeting,
		.uid = ni->uid,
		.jid = ni->jid,
		.number = (uint16_t)p->number,
		.allowed = (uint16_t)d->limits.credit,
	};
	uint8_t address[RDMA_ADDRESS_MAX];

	if (!k)
		return;
	m.link_address_len = d->link->own_address(d->state, address);
	k->len = rdma_encode(k->bytes, &m);
	memcpy(k->bytes + k->len, address, m.link_address_len);
	k->len += (uint32_t)m.link_address_len;
	net_tag(&d->net.keys, k->bytes, k->len, NULL, 0, k->bytes + NET_TAG_OFFSET);
	send_packet(d, p, k);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool has_credit(const struct rdma_peer *p)
{
	return p->sent - p->its_consumed < p->allowed;
}

/* Would the body alone need fewer frames than the packet with head and header? */
static inline bool is_better_headerless(const struct rdma *d, uint64_t before, uint64_t len)
{
	const uint32_t frame = d->limits.frame;

	return frame && before + len > frame && (before + len - 1) / frame > (len - 1) / frame;
}

/* Does it go in one packet, with its header? */
static inline bool fits_packet(const struct rdma *d, size_t header_len, uint64_t len)
{
	const size_t before = RDMA_BEFORE_SHORT + header_len;

	return len <= d->limits.packet - before && !is_better_headerless(d, before, len);
}

/* Does it go in several packets without being asked for, or without its header if the peer
 * knows that? */
static bool goes_in_parts(const struct rdma *d, size_t header_len, uint64_t len)
{
	return !fits_packet(d, header_len, len) &&
	       (len <= d->limits.eager || (d->limits.frame && len <= d->limits.packet));
}

static bool begins_again(const struct rdma_began *b, const void *header, uint32_t header_len,
			 uint64_t len)
{
	return b->length == len && b->header_len == header_len &&
	       memcmp(b->header, header, header_len) == 0;
}

/* False: no packet for now. */
static bool send_short_message(struct rdma *d, struct rdma_peer *p, const void *header,
			       uint32_t header_len, const struct net_mem *mem, uint64_t len)
{
	struct rdma_packet *k = packet_for(d, p, RDMA_BEFORE_SHORT + header_len + len, true);
	struct rdma_msg m;

	if (!k)
		return false;
	m.header_len = header_len;
	head(p, &m);
	k->len = rdma_encode_short(k->bytes, &m);
	memcpy(k->bytes + k->len, header, header_len);
	k->len += header_len;
	if (len)
		rdma_copy_out(d, k->bytes + k->len, mem, 0, len);
	k->len += (uint32_t)len;
	p->sent++;
	send_packet(d, p, k);
	return true;
}

/* Write the header of a message in parts. Later messages may begin with the same one. */
static void put_header(struct rdma_peer *p, struct rdma_packet *k, const void *header,
		       uint32_t header_len, uint64_t len)
{
	memcpy(k->bytes + k->len, header, header_len);
	k->len += header_len;
	memcpy(p->began_out.header, header, header_len);
	p->began_out.header_len = header_len;
	p->began_out.length = len;
}

/* Add bytes of the body. A headerless packet that the link copies points to them where they are. */
static void put_bytes(struct rdma *d, struct rdma_packet *k, const struct net_mem *mem, uint64_t at,
		      uint64_t bytes)
{
	if (k->headerless && k == &d->scratch && mem->base)
		k->bytes = (uint8_t *)mem->base + at;
	else
		rdma_copy_out(d, k->bytes + k->len, mem, at, bytes);
	k->len += (uint32_t)bytes;
}

/* How many bytes go in a message's next packet, which has room for `most`. Packets get about
 * equal sizes, so that one is received while the next is sent. With headerless ones full
 * packets are the cheapest. */
static uint64_t part_length(const struct rdma *d, uint64_t left, uint64_t most)
{
	const uint64_t next = d->limits.packet - RDMA_BEFORE_MORE;
	uint64_t even;

	if (left <= most)
		return left;
	if (d->limits.frame)
		return most;
	even = left / (1 + (left - most + next - 1) / next) + 1;
	return even < most ? even : most;
}

/* Send the next packet of a message that takes several, or that needs no header. The bytes up
 * to `at` were sent. Returns up to where they are sent now; `at` again if there is no packet
 * for now. */
static uint64_t send_part(struct rdma *d, struct rdma_peer *p, const void *header,
			  uint32_t header_len, const struct net_mem *mem, uint64_t len, uint64_t at)
{
	const bool headerless =
		d->limits.frame && (at || begins_again(&p->began_out, header, header_len, len));
	const size_t before = headerless ? 0
			      : at       ? RDMA_BEFORE_MORE
					 : RDMA_BEFORE_BEGIN + header_len;
	const uint64_t most = d->limits.packet - before;
	const uint64_t bytes = part_length(d, len - at, most);
	struct rdma_packet *k = packet_for(d, p, before + bytes, true);
	struct rdma_msg m;
	uint8_t *own;

	if (!k)
		return at;
	own = k->bytes;
	m.kind = at ? RDMA_MORE : RDMA_BEGIN;
	m.header_len = header_len;
	m.length = len;
	head(p, &m);
	k->headerless = headerless;
	k->word = rdma_word(m.to, m.seq, m.consumed, m.token);
	k->len = headerless ? 0 : rdma_encode(k->bytes, &m);
	if (!headerless && !at)
		put_header(p, k, header, header_len, len);
	put_bytes(d, k, mem, at, bytes);
	p->sent++;
	send_packet(d, p, k);
	k->bytes = own;
	return at + bytes;
}

static struct rdma_out *out_get(struct rdma *d)
{
	struct rdma_out *o = d->free_outs;

	if (o) {
		d->free_outs = o->next;
	} else {
		o = malloc(sizeof(*o));
		if (!o)
			return NULL;
		o->all = d->all_outs;
		d->all_outs = o;
	}
	o->next = NULL;
	o->id = RDMA_NO_ID;
	o->copy = NULL;
	o->mr = (struct rdma_mr){ .handle = NULL };
	o->segment_at = o->segment_end = 0;
	return o;
}

static void out_put(struct rdma *d, struct rdma_out *o)
{
	free(o->copy);
	o->next = d->free_outs;
	d->free_outs = o;
}

/* ---- long ones ------------------------------------------------------------------------------- */

static bool give_id(struct rdma *d, struct rdma_out *o)
{
	uint32_t i = d->longs_free, room = d->longs_room ? 2 * d->longs_room : 64;
	struct rdma_slot *more;

	if (i == RDMA_NO_ID) {
		if (d->longs_room >= IDS)
			return false;
		room = room > IDS ? IDS : room;
		more = realloc(d->longs, room * sizeof(*more));
		if (!more)
			return false;
		for (i = d->longs_room; i < room; i++)
			more[i] = (struct rdma_slot){ .next_free =
							      i + 1 < room ? i + 1 : RDMA_NO_ID };
		i = d->longs_room;
		d->longs = more;
		d->longs_room = room;
	}
	d->longs_free = d->longs[i].next_free;
	d->longs[i].out = o;
	o->id = (d->longs[i].gen & 0xfffu) << ID_BITS | i;
	return true;
}

struct rdma_out *rdma_long(const struct rdma *d, const struct rdma_peer *p, uint32_t id)
{
	uint32_t i = id & IDS;
	struct rdma_out *o = i < d->longs_room ? d->longs[i].out : NULL;

	return o && o->id == id && o->peer == p ? o : NULL;
}

/* Remove it from the list of messages with wanted segments. */
static void forget_segments(struct rdma_peer *p, struct rdma_out *o)
{
	struct rdma_out **at = &p->segments, *before = NULL;

	while (*at && *at != o) {
		before = *at;
		at = &(*at)->next;
	}
	if (!*at)
		return;
	*at = o->next;
	if (p->segments_end == o)
		p->segments_end = before;
}

void rdma_out_over(struct rdma *d, struct rdma_out *o, uint64_t length, enum net_status s)
{
	struct rdma_peer *p = o->peer;
	void *cookie = o->cookie;

	if (o->id != RDMA_NO_ID) {
		struct rdma_slot *slot = &d->longs[o->id & IDS];

		slot->out = NULL;
		slot->gen++;
		slot->next_free = d->longs_free;
		d->longs_free = o->id & IDS;
		p->longs--;
		if (o->segment_end)
			forget_segments(p, o);
	}
	rdma_unreg(d, &o->mr);
	out_put(d, o);
	if (cookie)
		net_sent(&d->net, p->number, cookie, length, s);
}

static bool send_long_message(struct rdma *d, struct rdma_peer *p, struct rdma_out *o)
{
	struct rdma_packet *k = packet_for(
		d, p, sizeof(struct rdma_wire_head) + sizeof(struct rdma_wire_long) + o->header_len,
		true);
	struct rdma_msg m = { .kind = RDMA_LONG, .header_len = o->header_len, .length = o->len };

	if (!k)
		return false;
	if (!give_id(d, o)) {
		if (k != &d->scratch)
			rdma_packet_put(d, k);
		return false;
	}
	m.readable = rdma_expose(d, o);
	if (m.readable) {
		m.address = o->mr.addr;
		m.key = o->mr.key;
	}
	m.id = o->id;
	head(p, &m);
	k->len = rdma_encode(k->bytes, &m);
	memcpy(k->bytes + k->len, o->header, o->header_len);
	k->len += o->header_len;
	p->sent++;
	p->longs++;
	send_packet(d, p, k);
	return true;
}

void rdma_want_segments(struct rdma *d, struct rdma_out *o, uint64_t length)
{
	struct rdma_peer *p = o->peer;

	if (o->segment_end)
		return;
	o->segment_end = length;
	o->next = NULL;
	if (p->segments)
		p->segments_end->next = o;
	else
		p->segments = o;
	p->segments_end = o;
	rdma_busy(d, p);
}

static bool send_segment(struct rdma *d, struct rdma_peer *p, struct rdma_out *o)
{
	uint64_t len = o->segment_end - o->segment_at,
		 most = d->limits.packet - RDMA_BEFORE_SEGMENT;
	struct rdma_msg m = { .kind = RDMA_SEGMENT, .id = o->id, .offset = o->segment_at };
	struct rdma_packet *k;

	len = len < most ? len : most;
	m.length = len;
	k = packet_for(d, p, RDMA_BEFORE_SEGMENT + len, true);
	if (!k)
		return false;
	head(p, &m);
	k->len = rdma_encode(k->bytes, &m);
	rdma_copy_out(d, k->bytes + k->len, &o->mem, o->segment_at, len);
	k->len += (uint32_t)len;
	o->segment_at += len;
	p->sent++;
	send_packet(d, p, k);
	if (o->segment_at == o->segment_end)
		forget_segments(p, o);
	return true;
}

/* ---- what nal/net sends ---------------------------------------------------------------------- */

/* The record of a message whose bytes up to `at` were sent. NULL: out of memory. */
static struct rdma_out *new_record(struct rdma *d, struct rdma_peer *p, const struct net_out *from,
				   uint64_t at)
{
	const uint64_t rest = from->body_len - at;
	struct rdma_out *o = out_get(d);

	if (!o)
		return NULL;
	if (from->copy && rest) {
		o->copy = malloc(rest);
		if (!o->copy) {
			out_put(d, o);
			return NULL;
		}
		rdma_copy_out(d, o->copy, &from->body, at, rest);
	}
	o->peer = p;
	memcpy(o->header, from->header, from->header_len);
	o->header_len = from->header_len;
	o->mem = from->body;
	if (o->copy) /* mem.base is where the bytes already sent would start */
		o->mem = (struct net_mem){ .base = (void *)((uintptr_t)o->copy - at) };
	o->segment_at = at;
	o->len = from->body_len;
	o->cookie = from->cookie;
	o->parts = goes_in_parts(d, o->header_len, o->len);
	o->is_long = !fits_packet(d, o->header_len, o->len) && !o->parts;
	return o;
}

static void queue_out(struct rdma *d, struct rdma_peer *p, struct rdma_out *o)
{
	if (p->queue)
		p->queue_end->next = o;
	else
		p->queue = o;
	p->queue_end = o;
	rdma_busy(d, p);
	if (p->state == RDMA_IDLE)
		rdma_call(d, p);
}

/* Does nothing go before it? */
static inline bool goes_now(const struct rdma_peer *p)
{
	return p->state == RDMA_UP && p->failure == NET_OK && !p->queue && !p->stuck &&
	       has_credit(p);
}

/* Send the parts of a message that can go now. A message whose bytes are copied needs no record
 * if all of it can go. Returns how many bytes went. */
static uint64_t send_parts(struct rdma *d, struct rdma_peer *p, const struct net_out *o)
{
	uint64_t at = 0, next;

	while (at < o->body_len && goes_now(p)) {
		next = send_part(d, p, o->header, o->header_len, &o->body, o->body_len, at);
		if (next == at)
			break;
		at = next;
	}
	return at;
}

/* Send or queue a message that needs a record. A long one keeps it until the peer says that it
 * is over. Others keep it while they wait. */
static int __attribute__((noinline))
keep_record(struct rdma *d, struct rdma_peer *p, const struct net_out *from)
{
	uint64_t at = 0;
	struct rdma_out *o;

	if (!from->cookie && goes_now(p) && goes_in_parts(d, from->header_len, from->body_len))
		at = send_parts(d, p, from);
	if (at && at == from->body_len)
		return 0;
	o = new_record(d, p, from, at);
	if (!o) {
		if (at)
			rdma_break(d, p, NET_NO_MEMORY, NULL);
		return -ENOMEM;
	}
	if (o->is_long && goes_now(p) && send_long_message(d, p, o))
		rdma_await(d, p);
	else
		queue_out(d, p, o);
	return 0;
}

/* flatten makes a short message's code down to the link one function. */
__attribute__((flatten)) int rdma_send(struct net *n, uint32_t peer, const struct net_out *o)
{
	struct rdma *d = rdma_of(n);
	struct rdma_peer *p;

	if (peer >= d->npeers || o->header_len > NET_HEADER_MAX ||
	    (o->copy && o->body_len > NET_COPY_MAX))
		return -EINVAL;
	p = d->peer[peer];
	/* a short message with a cookie is reported in the next run */
	if (!o->cookie && goes_now(p) && fits_packet(d, o->header_len, o->body_len) &&
	    send_short_message(d, p, o->header, o->header_len, &o->body, o->body_len))
		return 0;
	return keep_record(d, p, o);
}

/* ---- a peer's turn --------------------------------------------------------------------------- */

/* True: the link takes no more. */
static bool stuck(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_packet *k;

	while ((k = p->stuck) && p->failure == NET_OK) {
		struct rdma_packet *next = k->next;

		if (hand_packet_over(d, p, k) == -EAGAIN)
			return true;
		p->stuck = next;
	}
	return false;
}

static bool push_message(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_out *o = p->queue;
	uint64_t at;

	if (o->parts) {
		at = send_part(d, p, o->header, o->header_len, &o->mem, o->len, o->segment_at);
		if (at == o->segment_at)
			return false;
		o->segment_at = at;
		if (at < o->len)
			return true;
	} else if (o->is_long
			   ? !send_long_message(d, p, o)
			   : !send_short_message(d, p, o->header, o->header_len, &o->mem, o->len)) {
		return false;
	}
	p->queue = o->next;
	o->next = NULL;
	if (!o->is_long)
		rdma_out_over(d, o, o->len, NET_OK);
	return true;
}

bool rdma_push(struct rdma *d, struct rdma_peer *p)
{
	struct rdma_msg note = { .kind = RDMA_NOTE };

	if (stuck(d, p))
		return true;
	if (p->state != RDMA_UP)
		return false;
	while (p->failure == NET_OK && !p->stuck && p->queue && has_credit(p))
		if (!push_message(d, p))
			return true;
	while (p->failure == NET_OK && !p->stuck && p->segments && has_credit(p))
		if (!send_segment(d, p, p->segments))
			return true;
	if (p->failure == NET_OK &&
	    (p->want_note || p->consumed - p->advertised >= d->limits.credit / 2)) {
		p->want_note = false;
		rdma_say(d, p, &note);
	}
	return p->stuck;
}

/* Offer a waiting message to nal/net for failover. This is for a peer to which no connection
 * ever existed. */
static bool out_taken_back(struct rdma_peer *p, const struct rdma_out *o, struct net *n)
{
	struct net_out out = {
		.header = o->header,
		.header_len = o->header_len,
		.body = o->mem,
		.body_len = o->len,
		.copy = o->copy,
		.cookie = o->cookie,
	};

	return net_failover(n, p->number, &out);
}

void rdma_outs_end(struct rdma *d, struct rdma_peer *p, enum net_status s)
{
	struct rdma_out *o;

	while ((o = p->queue)) {
		p->queue = o->next;
		if (s == NET_UNREACHABLE && out_taken_back(p, o, &d->net))
			out_put(d, o);
		else
			rdma_out_over(d, o, 0, s);
	}
	for (uint32_t i = 0; p->longs && i < d->longs_room; i++)
		if (d->longs[i].out && d->longs[i].out->peer == p)
			rdma_out_over(d, d->longs[i].out, 0, s);
}

void rdma_outs_unreg(struct rdma *d)
{
	for (struct rdma_out *o = d->all_outs; o; o = o->all)
		rdma_unreg(d, &o->mr);
	for (struct rdma_slab *slab = d->slabs; slab; slab = slab->next)
		rdma_unreg(d, &slab->mr);
}

void rdma_outs_free(struct rdma *d)
{
	struct rdma_slab *slab;
	struct rdma_packet *k;
	struct rdma_out *o;

	while ((o = d->all_outs)) {
		d->all_outs = o->all;
		free(o);
	}
	while ((k = d->all_small)) {
		d->all_small = k->all;
		free(k);
	}
	while ((slab = d->slabs)) {
		d->slabs = slab->next;
		rdma_unreg(d, &slab->mr);
		free(slab->bytes);
		free(slab);
	}
	free(d->longs);
}
