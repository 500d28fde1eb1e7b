/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two machines side by side: see packets.h. Each round of a machine fills a box of packets that
 * the other one then takes in, as a link does with what one system call brings. Bodies are not
 * moved, which a link would do with its own means: what is measured is the protocol, and the
 * copy to the delivery.
 */
#include "bench/scale/packets.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nal/net/dgram/dgram.h"

#define BOX  64u   /* packets that one system call brings */
#define ROOM 9000u /* bytes of one */

struct side {
	struct dgram *m;
	struct side *other;
	uint8_t *box;
	uint32_t len[BOX];
	uint32_t n;
	uint8_t *memory;
	uint64_t messages, bytes;
};

static uint64_t now = 1; /* of the machines; a round is as long as on a fast network */

static uint64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *room(void *user, size_t len)
{
	struct side *s = user;

	(void)len;
	return s->n < BOX ? s->box + s->n * ROOM : NULL;
}

static void transmit(void *user, const struct dgram_packet *p)
{
	struct side *s = user;
	uint8_t *at = s->box + s->n * ROOM + p->head_len;

	for (int i = 0; i < p->segments; i++) {
		memcpy(at, p->body[i].iov_base, p->body[i].iov_len);
		at += p->body[i].iov_len;
	}
	s->len[s->n++] = (uint32_t)(p->head_len + p->body_len);
}

static enum net_verdict deliver(void *user, uint32_t peer, const struct net_in *in,
				struct net_delivery *delivery)
{
	struct side *s = user;

	(void)peer;
	s->messages++;
	if (!in->body_len || in->body)
		return NET_DONE;
	delivery->length = in->body_len;
	delivery->mem.base = s->memory;
	delivery->cookie = s;
	return NET_PULL;
}

static void landed(void *user, uint32_t peer, void *cookie, enum net_status status)
{
	struct side *s = user;

	(void)peer;
	(void)cookie;
	s->bytes += status == NET_OK;
}

static bool make(struct side *s, struct side *other, uint64_t id, size_t memory)
{
	const struct dgram_ops ops = {
		.room = room, .transmit = transmit, .deliver = deliver, .delivered = landed
	};
	struct dgram_cfg cfg;

	dgram_defaults(&cfg);
	cfg.id = id;
	cfg.incarnation = cfg.seed = id;
	cfg.uid = cfg.jid = 0;
	cfg.mtu = cfg.mtu_start = 1472;
	*s = (struct side){ .other = other };
	s->box = malloc((size_t)BOX * ROOM);
	s->memory = calloc(1, memory);
	s->m = dgram_create(&ops, s, &cfg);
	return s->m && s->box && s->memory;
}

static void drop(struct side *s)
{
	dgram_destroy(s->m);
	free(s->box);
	free(s->memory);
}

/* The packets in the box of one arrive at the other. */
static void hand_over(struct side *s)
{
	static const struct net_addr nowhere;

	for (uint32_t i = 0; i < s->n; i++)
		dgram_receive(s->other->m, now, &nowhere, s->box + i * ROOM, s->len[i]);
	s->n = 0;
}

static void round_of(struct side *a, struct side *b)
{
	now += 2000;
	dgram_run(a->m, now);
	hand_over(a);
	now += 2000;
	dgram_run(b->m, now);
	hand_over(b);
}

/* `count` messages of `len` bytes, `ahead` of them not delivered yet. */
static bool stream(const char *what, uint64_t count, uint64_t len, uint64_t ahead)
{
	static const struct net_addr nowhere;
	const uint8_t header[64] = { 0 };
	struct side a, b;
	bool long_ones = len > DGRAM_INLINE_MAX;
	uint64_t given = 0, from = 0, took;
	struct net_out o = { .header = header, .header_len = sizeof(header), .body_len = len };
	struct net_stats sa, sb, sa0 = { 0 }, sb0 = { 0 };
	bool fine = make(&a, &b, 1, len) && make(&b, &a, 2, len);
	uint32_t peer;

	if (!fine)
		return false;
	o.body.base = a.memory;
	peer = dgram_peer(a.m, 2, &nowhere);
	for (uint64_t i = 0; (long_ones ? b.bytes : b.messages) < count && i < 1000 * count; i++) {
		/* the first tenth warms up */
		if (!from && b.messages > count / 10) {
			dgram_stats(a.m, &sa0);
			dgram_stats(b.m, &sb0);
			from = wall_ns();
		}
		while (given < count && given - (long_ones ? b.bytes : b.messages) < ahead &&
		       !dgram_send(a.m, now, peer, &o))
			given++;
		round_of(&a, &b);
	}
	took = wall_ns() - from;
	fine = b.messages == count;
	dgram_stats(a.m, &sa);
	dgram_stats(b.m, &sb);
	sa.packets_out += sb.packets_out - sa0.packets_out - sb0.packets_out;
	count -= count / 10;
	printf("  %-34s %8.0f ns a packet, %8.0f ns a message\n", what,
	       (double)took / (double)sa.packets_out, (double)took / (double)count);
	drop(&a);
	drop(&b);
	return fine;
}

bool packets_measure(void)
{
	printf("the machine itself, out and in:\n");
	return stream("one message of 8 bytes at a time", 200000, 8, 1) &&
	       stream("messages of 8 bytes, many at once", 2000000, 8, 64) &&
	       stream("messages of 1000 bytes", 500000, 1000, 64) &&
	       stream("bodies of 1 MiB, copied twice", 500, 1 << 20, 4);
}
