/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processes for tests of single mechanisms: see pair.h.
 */
#include "test/dgram/pair.h"

#include <stdlib.h>
#include <string.h>

static enum net_verdict deliver(void *user, uint32_t peer, const struct net_in *in,
				struct net_delivery *delivery)
{
	struct sim_node *n = user;
	struct pair *p = n->app;
	struct told *t = &p->told[n->index];
	uint32_t order, from = sim_peer_node(n, peer);

	assert_int_equal(in->header_len, sizeof(order));
	memcpy(&order, in->header, sizeof(order));
	if (t->later)
		return NET_LATER;
	assert_true(order >= t->order[from]);
	t->order[from] = order + 1;
	t->delivered++;
	if (in->body)
		assert_memory_equal(in->body, p->source, in->body_len);
	if (in->body || !in->body_len)
		return NET_DONE;
	delivery->length = in->body_len;
	delivery->mem.base = t->delivery;
	delivery->cookie = t;
	return NET_PULL;
}

static void landed(void *user, uint32_t peer, void *cookie, enum net_status s)
{
	struct told *t = cookie;

	(void)user;
	(void)peer;
	t->landed++;
	t->landed_status = s;
}

static void sent(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s)
{
	struct told *t = cookie;

	(void)user;
	(void)peer;
	t->sent++;
	t->sent_length = length;
	t->sent_status = s;
}

static void up(void *user, uint32_t peer, const struct net_who *who)
{
	struct sim_node *n = user;
	struct pair *p = n->app;

	(void)peer;
	p->told[n->index].up++;
	p->told[n->index].who = *who;
}

static void lost(void *user, uint32_t peer, enum net_status s)
{
	struct sim_node *n = user;
	struct pair *p = n->app;

	(void)peer;
	p->told[n->index].lost++;
	p->told[n->index].lost_status = s;
	p->told[n->index].lost_at = sim_now(p->s);
}

static bool accept(void *user, const struct net_who *who, const struct net_addr *from)
{
	struct sim_node *n = user;
	struct pair *p = n->app;

	if (!p->knows_places) {
		if (from)
			assert_int_equal(who->id, from->word[0] + 1);
	} else {
		dgram_peer_fix(n->m, sim_peer(n, (uint32_t)who->id - 1));
	}
	return !p->told[n->index].refuse;
}

static bool seen(void *arg, uint32_t from, uint32_t to, uint8_t *packet, size_t len)
{
	struct pair *p = arg;

	if (p->recorded + len + 12 > p->record_room) {
		p->record_room = 2 * p->record_room + len + 12;
		p->record = realloc(p->record, p->record_room);
		assert_non_null(p->record);
	}
	base_put32(p->record + p->recorded, from);
	base_put32(p->record + p->recorded + 4, to);
	base_put32(p->record + p->recorded + 8, (uint32_t)len);
	memcpy(p->record + p->recorded + 12, packet, len);
	p->recorded += len + 12;
	p->packets++;
	return !p->keep || p->keep(p, from, to, packet, len);
}

void pair_settings(struct sim_cfg *cfg)
{
	sim_defaults(cfg);
	cfg->nodes = PAIR_NODES;
	cfg->seed = 1;
	cfg->machine.rto_start_ns = 10 * MS;
	cfg->machine.rto_min_ns = 5 * MS;
	cfg->ops = (struct dgram_ops){ .deliver = deliver,
				       .delivered = landed,
				       .sent = sent,
				       .up = up,
				       .peer_failed = lost,
				       .accept = accept };
}

void pair_start(struct pair *p, struct sim_cfg *cfg)
{
	memset(p, 0, sizeof(*p));
	p->source = malloc(PAIR_LONG);
	assert_non_null(p->source);
	for (size_t i = 0; i < PAIR_LONG; i++)
		p->source[i] = (uint8_t)(i * 31 >> 3);
	p->s = sim_create(cfg);
	assert_non_null(p->s);
	for (uint32_t i = 0; i < PAIR_NODES; i++) {
		sim_node(p->s, i)->app = p;
		p->told[i].delivery = calloc(1, PAIR_LONG);
		assert_non_null(p->told[i].delivery);
	}
	sim_watch(p->s, seen, p);
}

void pair_end(struct pair *p)
{
	sim_destroy(p->s);
	for (uint32_t i = 0; i < PAIR_NODES; i++)
		free(p->told[i].delivery);
	free(p->source);
	free(p->record);
}

int pair_send(struct pair *p, uint32_t from, uint32_t to, uint64_t len)
{
	uint32_t order = p->given[from][to]++;
	const struct net_out o = { .header = &order,
				   .header_len = sizeof(order),
				   .body.base = p->source,
				   .body_len = len,
				   .cookie = &p->told[from] };

	return sim_send(sim_node(p->s, from), to, &o);
}

void pair_wait(struct pair *p, uint64_t ns)
{
	uint64_t until = sim_now(p->s) + ns;

	while (sim_step(p->s, until))
		;
}

void pair_until(struct pair *p, const uint32_t *what, uint32_t value)
{
	uint64_t until = sim_now(p->s) + 60 * SECOND;

	while (*what != value && sim_step(p->s, until))
		;
	assert_int_equal(*what, value);
}

struct net_stats pair_stats(struct pair *p, uint32_t node)
{
	struct net_stats st;

	dgram_stats(sim_node(p->s, node)->m, &st);
	return st;
}

struct dgram_peer_info pair_info(struct pair *p, uint32_t node, uint32_t peer)
{
	struct sim_node *n = sim_node(p->s, node);
	struct dgram_peer_info info;

	assert_true(dgram_peer_info(n->m, sim_peer(n, peer), &info));
	return info;
}

void pair_replay(struct pair *p)
{
	size_t end = p->recorded;

	for (size_t at = 0; at < end;) {
		uint32_t len = base_get32(p->record + at + 8);
		uint8_t *copy = malloc(len);

		/* what is sent meanwhile is recorded, too, which may move all of it */
		assert_non_null(copy);
		memcpy(copy, p->record + at + 12, len);
		sim_inject(sim_node(p->s, base_get32(p->record + at + 4)),
			   base_get32(p->record + at), copy, len);
		free(copy);
		at += len + 12;
	}
}
