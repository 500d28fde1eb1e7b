/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The ring. A slot's status word says whether the kernel or this process owns it. Acquire and
 * release on the word order the contents of the slot.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <net/ethernet.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/shared.h"
#include "nal/eth/eth.h"

#define BLOCK        65536u /* bytes that the kernel allocates at once */
#define BEFORE       96u    /* most bytes that it writes before a frame */
#define RECEIVE_MOST 64u    /* frames at a time */

static struct tpacket2_hdr *ring_slot_at(const struct eth_ring *r, uint32_t i)
{
	size_t at = (size_t)(i / r->per_block) * BLOCK + (size_t)(i % r->per_block) * r->slot;

	return (struct tpacket2_hdr *)(void *)(r->bytes + at);
}

/* acquire: the kernel is done with the slot; pairs with its own barrier */
static uint32_t status_of(const struct tpacket2_hdr *h)
{
	return atomic_load_explicit((const _Atomic uint32_t *)(const void *)&h->tp_status,
				    memory_order_acquire);
}

/* release: we are done with the slot */
static void set_frame_status(struct tpacket2_hdr *h, uint32_t status)
{
	atomic_store_explicit((_Atomic uint32_t *)(void *)&h->tp_status, status,
			      memory_order_release);
}

/* ---- making it ------------------------------------------------------------------------------- */

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

int eth_ring_make(struct eth *e, size_t bytes)
{
	uint32_t frame = (uint32_t)sizeof(struct eth_wire_frame) + e->mtu;
	struct tpacket_req in = shape(&e->in, frame, bytes);
	size_t len = (size_t)in.tp_block_nr * BLOCK;
	int version = TPACKET_V2;
	void *map;

	if (setsockopt(e->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(e->fd, SOL_PACKET, PACKET_RX_RING, &in, sizeof(in)) < 0)
		return -errno;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	e->in.bytes = map;
	e->in.bytes_len = len;
	/* a child of a fork must not write to it, and has no use for it */
	madvise(map, len, MADV_DONTFORK);
	base_shared_hide(map, len);
	return 0;
}

void eth_ring_free(struct eth *e)
{
	if (e->in.bytes)
		munmap(e->in.bytes, e->in.bytes_len);
	e->in.bytes = NULL;
}

/* ---- in -------------------------------------------------------------------------------------- */

static void take_frame(struct eth *e, struct net *n, const struct tpacket2_hdr *h)
{
	const struct sockaddr_ll *from_if =
		(const void *)((const uint8_t *)h + TPACKET_ALIGN(sizeof(*h)));
	const uint8_t *bytes = (const uint8_t *)h + h->tp_mac;
	struct eth_place p = { .local = from_if->sll_ifindex == e->loopback };
	struct eth_frame f = { .length = 0 };
	struct net_addr from;

	/* a frame longer than the slot comes truncated; it is only counted */
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

	while (got < RECEIVE_MOST) {
		struct tpacket2_hdr *h = ring_slot_at(r, r->next);

		if (!(status_of(h) & TP_STATUS_USER))
			break;
		take_frame(e, n, h);
		set_frame_status(h, TP_STATUS_KERNEL);
		if (++r->next == r->slots)
			r->next = 0;
		got++;
	}
	return got;
}
