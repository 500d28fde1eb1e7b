/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A datagram machine in the middle of things, with connections, messages on their way and
 * deliveries, and a peer that knows the key and says what it likes. The input is a sequence of
 * packets, each after three bytes: what is done to it, and its length. Whatever comes, nothing
 * is written outside of deliveries, every message and delivery ends once, and the machine goes to
 * sleep in the end.
 */
#include <stdlib.h>
#include <string.h>

#include "nal/net/dgram/dgram_core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DO_TOKEN   0x01 /* make it one for the connection */
#define DO_NUMBER  0x02 /* give it the next packet number */
#define DO_NEXT    0x04 /* or one for the connection after it */
#define DO_TIME    0x08 /* time passes */
#define DO_SEND    0x10 /* a message is sent */
#define DO_RESUME  0x20
#define DO_VERSION 0x40 /* make version and head_len right */
#define DO_UNNAMED 0x80 /* do not say where it comes from */

enum { LANDINGS = 64, LONG = 5000 };

static struct {
	struct dgram *m;
	uint64_t now;
	uint8_t packet[DGRAM_MTU_MAX];
	uint32_t sent, told, pulled, landed, delivered;
	uint8_t *delivery[LANDINGS];
	uint64_t length[LANDINGS];
	uint8_t source[LONG];
} it;

static void *room(void *user, size_t len)
{
	(void)user;
	if (len > sizeof(it.packet))
		abort();
	return it.packet;
}

static void transmit(void *user, const struct dgram_packet *p)
{
	uint8_t sum = 0;

	(void)user;
	for (int i = 0; i < p->segments; i++)
		for (size_t k = 0; k < p->body[i].iov_len; k++)
			sum ^= ((const uint8_t *)p->body[i].iov_base)[k];
	if (p->head_len + p->body_len > DGRAM_MTU_MAX || (sum && sum != 7))
		abort();
}

static enum net_verdict deliver(void *user, uint32_t peer, const struct net_in *in,
				struct net_delivery *delivery)
{
	static const enum net_verdict verdict[] = { NET_PULL, NET_PULL, NET_DONE, NET_DROP,
						    NET_LATER };
	enum net_verdict v = verdict[it.delivered++ % 5];
	uint64_t len = in->body_len < 100000 ? in->body_len : 100000;

	(void)user;
	(void)peer;
	if (v != NET_PULL || !len || in->body)
		return v == NET_PULL ? NET_DONE : v;
	for (uint32_t i = 0; i < LANDINGS; i++) {
		if (it.delivery[i])
			continue;
		it.pulled++;
		it.delivery[i] = malloc(len);
		if (!it.delivery[i])
			abort();
		it.length[i] = len;
		*delivery = (struct net_delivery){ .mem.base = it.delivery[i],
						   .length = len,
						   .cookie = &it.delivery[i] };
		return NET_PULL;
	}
	return NET_DROP;
}

static void landed(void *user, uint32_t peer, void *cookie, enum net_status s)
{
	uint8_t **delivery = cookie;

	(void)user;
	(void)peer;
	(void)s;
	if (!*delivery)
		abort();
	it.landed++;
	free(*delivery);
	*delivery = NULL;
}

static void sent(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s)
{
	(void)user;
	(void)peer;
	(void)s;
	if (cookie != &it || length > LONG)
		abort();
	it.told++;
}

static void send_one(uint32_t peer, uint64_t len)
{
	const struct net_out o = { .header = "fuzz",
				   .header_len = 4,
				   .body.base = it.source,
				   .body_len = len,
				   .cookie = &it };

	it.sent += !dgram_send(it.m, it.now, peer, &o);
}

/* A peer that is connected; 0 is, 1 is about to be. */
static void open_machine(void)
{
	const struct dgram_ops ops = { .room = room,
				       .transmit = transmit,
				       .deliver = deliver,
				       .delivered = landed,
				       .sent = sent };
	const struct net_addr addr = { { 1, 2, 3 } };
	struct dgram_cfg cfg = { .id = 1, .incarnation = 1, .seed = 1, .mtu = 1472 };
	struct dgram_hello welcome = { .from = 2, .whom = 1, .incarnation = 1, .token = 77 };

	dgram_defaults(&cfg);
	memset(it.source, 7, sizeof(it.source));
	it.sent = it.told = it.pulled = it.landed = it.delivered = 0;
	it.now = 1000000;
	it.m = dgram_create(&ops, NULL, &cfg);
	if (!it.m)
		abort();
	send_one(dgram_peer(it.m, 2, &addr), LONG);
	dgram_open_welcome(it.m, dgram_rec(it.m, 0)->next, &addr, &welcome);
	send_one(0, 100);
	send_one(dgram_peer(it.m, 3, &addr), 10);
	dgram_run(it.m, it.now);
}

/* Gives the machine one packet. */
static void give(uint8_t what, const uint8_t *data, size_t len)
{
	const struct net_addr addr = { { 1, 2, 3 } };
	const struct dgram_rec *r = dgram_rec(it.m, 0);
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, data, len);
	if (len >= sizeof(struct dgram_wire_head)) {
		if (what & DO_VERSION) {
			copy[0] = DGRAM_VERSION;
			if (copy[1] != DGRAM_FRAMES || base_get16(copy + 2) > len)
				base_put16(copy + 2, (uint32_t)len);
		}
		if (what & DO_TOKEN)
			base_put64(copy + 8, r->mine);
		if (what & DO_NEXT)
			base_put64(copy + 8, r->next);
		if (what & DO_NUMBER)
			base_put64(copy + 16, r->rx_pn + 1);
	}
	if (what & DO_TIME)
		it.now += (uint64_t)data[0] * 7 * DGRAM_MS;
	dgram_receive(it.m, it.now, what & DO_UNNAMED ? NULL : &addr, copy, len);
	free(copy);
	if (what & DO_SEND)
		send_one(0, len * 13 % LONG);
	if (what & DO_RESUME)
		dgram_resume(it.m, 0);
	dgram_run(it.m, it.now);
}

/* The peers are silent from now on: the machine gives them up in bounded time, and does not spin
 * until then. */
static void wait_for_the_end(void)
{
	uint64_t limit = it.now + 3600ull * 1000 * DGRAM_MS;

	for (int rounds = 0; dgram_wake(it.m) != NET_NEVER; rounds++) {
		uint64_t wake = dgram_wake(it.m);

		if (rounds > 20000 || wake > limit)
			abort();
		it.now = wake > it.now ? wake : it.now;
		dgram_listened(it.m, it.now);
		dgram_run(it.m, it.now);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	open_machine();
	for (size_t at = 0; at + 4 <= size;) {
		size_t len = base_get16(data + at + 1);

		if (len > size - at - 3)
			len = size - at - 3;
		if (!len)
			break;
		give(data[at], data + at + 3, len);
		at += 3 + len;
	}
	wait_for_the_end();
	if (it.told != it.sent || it.landed != it.pulled)
		abort();
	dgram_destroy(it.m);
	return 0;
}
