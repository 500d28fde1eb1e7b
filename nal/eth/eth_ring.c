/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rings. A slot's status word says whose it is, the kernel's or ours; acquire and release on it order what is in
 * the slot. The machine writes heads into the slot they leave from; bodies are copied behind them, which is the only
 * copy on our side: the kernel sends from the slot.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/usermem.h"
#include "nal/eth/eth.h"

#define BLOCK        65536u /* bytes that the kernel takes in one piece */
#define BEFORE       96u    /* and what it writes before a frame, at most */
#define RECEIVE_MOST 64u    /* frames at a time */
#define FULL_WAIT_MS 1      /* for room, before packets are given up for lost */

/* Where a frame to be sent begins, as the kernel has it. */
#define SEND_AT (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))

static struct tpacket2_hdr *slot_at(const struct eth_ring *r, uint32_t i)
{
	size_t at = (size_t)(i / r->per_block) * BLOCK + (size_t)(i % r->per_block) * r->slot;

	return (struct tpacket2_hdr *)(void *)(r->bytes + at);
}

/* acquire: the kernel is done with the slot; partner of its own barrier */
static uint32_t status_of(const struct tpacket2_hdr *h)
{
	return atomic_load_explicit((const _Atomic uint32_t *)(const void *)&h->tp_status,
				    memory_order_acquire);
}

/* release: we are */
static void set_status(struct tpacket2_hdr *h, uint32_t status)
{
	atomic_store_explicit((_Atomic uint32_t *)(void *)&h->tp_status, status,
			      memory_order_release);
}

/* ---- making them ------------------------------------------------------------------------------ */

static struct tpacket_req shape(struct eth_ring *r, uint32_t frame, size_t bytes)
{
	uint32_t blocks = bytes < 2 * (size_t)BLOCK ? 2 : (uint32_t)(bytes / BLOCK);

	r->slot = (BEFORE + frame + 63) & ~63u;
	r->per_block = BLOCK / r->slot;
	r->slots = blocks * r->per_block;
	r->next = 0;
	return (struct tpacket_req){
		.tp_block_size = BLOCK,
		.tp_block_nr = blocks,
		.tp_frame_size = r->slot,
		.tp_frame_nr = r->slots,
	};
}

int eth_rings_make(struct eth *e, size_t bytes)
{
	uint32_t frame = (uint32_t)sizeof(struct eth_wire_frame) + e->mtu;
	struct tpacket_req in = shape(&e->in, frame, bytes),
			   out = shape(&e->out.ring, frame, bytes);
	size_t in_len = (size_t)in.tp_block_nr * BLOCK, out_len = (size_t)out.tp_block_nr * BLOCK;
	int version = TPACKET_V2, one = 1;
	void *map;

	if (setsockopt(e->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    /* a frame that cannot be sent does not stop those behind it */
	    setsockopt(e->fd, SOL_PACKET, PACKET_LOSS, &one, sizeof(one)) < 0 ||
	    setsockopt(e->fd, SOL_PACKET, PACKET_RX_RING, &in, sizeof(in)) < 0 ||
	    setsockopt(e->fd, SOL_PACKET, PACKET_TX_RING, &out, sizeof(out)) < 0)
		return -errno;
	map = mmap(NULL, in_len + out_len, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	e->map = map;
	e->map_len = in_len + out_len;
	e->in.bytes = e->map;
	e->out.ring.bytes = e->map + in_len;
	/* a child of a fork has no use for them, and must not write to them */
	madvise(e->map, e->map_len, MADV_DONTFORK);
	return 0;
}

void eth_rings_free(struct eth *e)
{
	if (e->map)
		munmap(e->map, e->map_len);
	e->map = NULL;
}

/* ---- out -------------------------------------------------------------------------------------- */

static struct eth_wire_frame *frame_in(struct tpacket2_hdr *h)
{
	return (struct eth_wire_frame *)(void *)((uint8_t *)h + SEND_AT);
}

static bool is_free(const struct tpacket2_hdr *h)
{
	return !(status_of(h) & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING));
}

static bool has_room(const struct eth_out *o)
{
	return o->filled < o->ring.slots && is_free(slot_at(&o->ring, o->ring.next));
}

void *eth_room(void *link, size_t len)
{
	struct eth *e = link;
	struct eth_out *o = &e->out;

	if (len > e->mtu)
		return NULL;
	if (has_room(o)) {
		o->lost = false;
		return frame_in(slot_at(&o->ring, o->ring.next)) + 1;
	}
	return o->lost ? o->nowhere : NULL;
}

static void address_frame(const struct eth *e, struct eth_wire_frame *w,
			  const struct dgram_addr *to, uint32_t length)
{
	struct eth_frame f = { .type = e->type, .from = e->endpoint, .length = length };
	struct eth_place p;

	eth_addr_to(&p, to);
	f.to = p.endpoint;
	if (!p.local) {
		memcpy(f.destination, p.mac, sizeof(f.destination));
		memcpy(f.source, e->mac, sizeof(f.source));
	}
	eth_frame_encode(w, &f);
}

void eth_transmit(void *link, const struct dgram_packet *p)
{
	struct eth *e = link;
	struct eth_out *o = &e->out;
	struct tpacket2_hdr *h = slot_at(&o->ring, o->ring.next);
	struct eth_wire_frame *w = frame_in(h);
	size_t len = p->head_len + p->body_len;
	uint8_t *to = (uint8_t *)(w + 1);

	if (p->head == o->nowhere || len > e->mtu || !has_room(o))
		return;
	if (p->head != to)
		memcpy(to, p->head, p->head_len);
	to += p->head_len;
	for (int i = 0; i < p->pieces; i++) {
		base_copy_user(to, p->body[i].iov_base, p->body[i].iov_len);
		to += p->body[i].iov_len;
	}
	address_frame(e, w, p->to, (uint32_t)len);
	h->tp_len = (uint32_t)(sizeof(*w) + len);
	if (++o->ring.next == o->ring.slots)
		o->ring.next = 0;
	o->filled++;
}

/* Frames to processes of this host have no hardware address in them. */
static bool is_local(struct tpacket2_hdr *h)
{
	static const uint8_t nobody[ETH_MAC_BYTES];

	return !memcmp(frame_in(h)->destination, nobody, sizeof(nobody));
}

/* Of the first slots those that leave by the same interface are made the kernel's. How many. */
static uint32_t offer(struct eth *e, bool *local)
{
	struct eth_out *o = &e->out;
	uint32_t i = o->first, n = 0;

	*local = is_local(slot_at(&o->ring, i));
	while (n < o->filled && is_local(slot_at(&o->ring, i)) == *local) {
		set_status(slot_at(&o->ring, i), TP_STATUS_SEND_REQUEST);
		i = i + 1 == o->ring.slots ? 0 : i + 1;
		n++;
	}
	return n;
}

/* True: the kernel has taken all that was filled. It sends what is offered by the interface it is told, so what is for
 * another one waits until nothing is left of that. */
static bool hand_over(struct eth *e)
{
	struct eth_out *o = &e->out;

	while (o->filled) {
		struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(e->type) };
		bool local;
		uint32_t n = offer(e, &local), taken = 0;

		to.sll_ifindex = local ? e->loopback : e->ifindex;
		(void)!sendto(e->fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
			      sizeof(to));
		while (taken < n &&
		       !(status_of(slot_at(&o->ring, o->first)) & TP_STATUS_SEND_REQUEST)) {
			o->first = o->first + 1 == o->ring.slots ? 0 : o->first + 1;
			o->filled--;
			taken++;
		}
		if (!taken)
			return false;
	}
	return true;
}

void eth_flush(void *link)
{
	struct eth *e = link;
	struct eth_out *o = &e->out;
	struct pollfd f = { .fd = e->fd, .events = POLLOUT };

	if (hand_over(e) && has_room(o))
		return;
	/* the packets of a network that is full are given up in the end, as on any other */
	if (!o->lost)
		poll(&f, 1, FULL_WAIT_MS);
	hand_over(e);
	o->lost = !has_room(o);
}

/* ---- in --------------------------------------------------------------------------------------- */

static void take(struct eth *e, struct net *n, const struct tpacket2_hdr *h)
{
	const struct sockaddr_ll *from_if =
		(const void *)((const uint8_t *)h + TPACKET_ALIGN(sizeof(*h)));
	const uint8_t *bytes = (const uint8_t *)h + h->tp_mac;
	struct eth_place p = { .local = from_if->sll_ifindex == e->loopback };
	struct eth_frame f = { .length = 0 };
	struct dgram_addr from;

	/* one that is longer than the slot comes as its beginning; nothing is made of it but a count */
	if (h->tp_len != h->tp_snaplen || eth_frame_decode(bytes, h->tp_snaplen, &f) < 0 ||
	    f.to != e->endpoint)
		f.length = 0;
	p.endpoint = f.from;
	if (!p.local)
		memcpy(p.mac, f.source, sizeof(p.mac));
	eth_addr_from(&from, &p);
	net_packet(n, &from, f.length ? f.packet : bytes, f.length);
}

unsigned int eth_receive(void *link, struct net *n)
{
	struct eth *e = link;
	struct eth_ring *r = &e->in;
	unsigned int got = 0;

	if (e->out.filled)
		hand_over(e);
	while (got < RECEIVE_MOST) {
		struct tpacket2_hdr *h = slot_at(r, r->next);

		if (!(status_of(h) & TP_STATUS_USER))
			break;
		take(e, n, h);
		set_status(h, TP_STATUS_KERNEL);
		if (++r->next == r->slots)
			r->next = 0;
		got++;
	}
	return got;
}
