/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Random traffic over a simulated network that does all it can to spoil it: see traffic.h.
 */
#include "test/dgram/traffic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     1000000ull
#define SECOND 1000000000ull
#define GUARD  16 /* bytes behind a delivery that nobody may touch */

enum want { WANT_DONE, WANT_DROP, WANT_PART, WANT_ALL };

/* The state of one message, on both sides. */
struct message {
	struct traffic *t;
	uint32_t index, from, to, order; /* order: of those of this pair */
	uint64_t len, wanted;            /* wanted: what the receiver will take of a long one */
	enum want want;
	bool copy, scattered, later; /* later: the receiver says so the first time */
	uint8_t *source, *delivery;
	uint32_t sent, delivered, landed, pulled; /* how often */
	enum net_status status;
};

struct header {
	uint64_t magic;
	uint32_t index, order;
	uint64_t len;
	uint8_t fill[NET_HEADER_MAX - 24];
};

struct traffic {
	struct sim *s;
	const struct traffic_cfg *cfg;
	struct message *message;
	uint32_t nmessages, nsent, over,
		delivery; /* over: told by sent(); delivery: on their way */
	uint32_t last[TRAFFIC_NODES][TRAFFIC_NODES];
	uint64_t later_at[TRAFFIC_NODES][TRAFFIC_NODES]; /* dgram_resume is due; 0: no */
	char why[256];
};

static void broken(struct traffic *t, const char *format, ...)
{
	va_list args;

	if (t->why[0])
		return;
	va_start(args, format);
	vsnprintf(t->why, sizeof(t->why), format, args);
	va_end(args);
}

/* Bytes that say which message they are of and where in it. */
static uint8_t byte_of(const struct message *x, uint64_t at)
{
	return (uint8_t)((at * 131 + x->index * 2654435761u + (at >> 8) * 7) >> 3);
}

static void fill(const struct message *x, uint8_t *to)
{
	for (uint64_t i = 0; i < x->len; i++)
		to[i] = byte_of(x, i);
}

static bool right(const struct message *x, const uint8_t *b, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		if (b[i] != byte_of(x, i))
			return false;
	return true;
}

static void make_header(const struct message *x, struct header *h)
{
	memset(h, 0, sizeof(*h));
	h->magic = 0x706f737465726e21u ^ x->t->cfg->seed;
	h->index = x->index;
	h->order = x->order;
	h->len = x->len;
	memset(h->fill, (int)x->index, sizeof(h->fill));
}

/* Headers are of different lengths, some empty but for what has to be known. */
static uint32_t header_len(const struct message *x)
{
	return x->index % 3 ? (uint32_t)sizeof(struct header) : 24;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static enum net_verdict take_long(struct message *x, const struct net_in *in,
				  struct net_delivery *delivery)
{
	if (in->body) {
		broken(x->t, "message %u: a body of %llu bytes came with its header", x->index,
		       (unsigned long long)x->len);
		return NET_DROP;
	}
	if (x->want == WANT_DONE)
		return NET_DONE;
	if (x->want == WANT_DROP)
		return NET_DROP;
	x->pulled++;
	x->t->delivery++;
	x->delivery = malloc(x->wanted + GUARD);
	memset(x->delivery, 0xa5, x->wanted + GUARD);
	delivery->length = x->wanted;
	delivery->cookie = x;
	delivery->mem.cookie = x->delivery;
	delivery->mem.base = x->scattered ? NULL : x->delivery;
	return NET_PULL;
}

static enum net_verdict deliver(void *user, uint32_t peer, const struct net_in *in,
				struct net_delivery *delivery)
{
	struct sim_node *n = user;
	struct traffic *t = n->app;
	uint32_t from = sim_peer_node(n, peer);
	struct header h, expected;
	struct message *x;

	memcpy(&h, in->header, in->header_len < sizeof(h) ? in->header_len : sizeof(h));
	if (in->header_len < 24 || h.index >= t->nsent) {
		broken(t, "a message nobody sent");
		return NET_DROP;
	}
	x = &t->message[h.index];
	make_header(x, &expected);
	if (in->header_len != header_len(x) || memcmp(in->header, &expected, in->header_len) ||
	    x->to != n->index || x->from != from || in->body_len != x->len) {
		broken(t, "message %u: damaged header, or a wrong address", h.index);
		return NET_DROP;
	}
	if (x->later) {
		x->later = false;
		t->later_at[from][n->index] = sim_now(t->s) + 1 + sim_random(t->s) % (5 * MS);
		return NET_LATER;
	}
	if (x->delivered++)
		broken(t, "message %u: delivered twice", h.index);
	if (x->order < t->last[from][n->index])
		broken(t, "message %u: number %u of its pair comes after number %u", h.index,
		       x->order, t->last[from][n->index] - 1);
	t->last[from][n->index] = x->order + 1;
	if (in->body_len > DGRAM_INLINE_MAX)
		return take_long(x, in, delivery);
	if (in->body_len && (!in->body || !right(x, in->body, in->body_len)))
		broken(t, "message %u: its %llu bytes are wrong", h.index,
		       (unsigned long long)x->len);
	return NET_DONE;
}

static void landed(void *user, uint32_t peer, void *cookie, enum net_status s)
{
	struct message *x = cookie;
	struct traffic *t = x->t;

	(void)user;
	(void)peer;
	t->delivery--;
	if (x->landed++)
		broken(t, "message %u: landed twice", x->index);
	if (s == NET_OK && !right(x, x->delivery, x->wanted))
		broken(t, "message %u: wrong bytes of %llu landed", x->index,
		       (unsigned long long)x->wanted);
	for (int i = 0; i < GUARD; i++)
		if (x->delivery[x->wanted + i] != 0xa5)
			broken(t, "message %u: written behind its delivery", x->index);
	/* whoever writes there now meets the sanitizer */
	free(x->delivery);
	x->delivery = NULL;
}

static void sent(void *user, uint32_t peer, void *cookie, uint64_t length, enum net_status s)
{
	struct message *x = cookie;
	struct traffic *t = x->t;

	(void)user;
	(void)peer;
	t->over++;
	x->status = s;
	if (x->sent++)
		broken(t, "message %u: told to be over twice", x->index);
	if (s == NET_OK && length != (x->len <= DGRAM_INLINE_MAX ? x->len : x->wanted))
		broken(t, "message %u: %llu bytes taken", x->index, (unsigned long long)length);
	if (s == NET_REFUSED && x->want != WANT_DROP)
		broken(t, "message %u: refused by nobody", x->index);
	/* whoever reads there now meets the sanitizer, or wrong bytes */
	if (x->source)
		memset(x->source, 0x5a, x->len);
	free(x->source);
	x->source = NULL;
}

/* Memory in odd segments. */
static int pieces(void *user, void *cookie, uint64_t offset, uint64_t len, struct iovec *iov,
		  int max)
{
	uint8_t *base = cookie;
	int n = 0;

	(void)user;
	while (len && n < max) {
		uint64_t part = 1 + (offset * 7 + 311) % 2000;

		if (part > len)
			part = len;
		iov[n++] = (struct iovec){ base + offset, part };
		offset += part;
		len -= part;
	}
	return n;
}

/* ---- one run --------------------------------------------------------------------------------- */

static uint64_t below(struct traffic *t, uint64_t n)
{
	return n ? sim_random(t->s) % n : 0;
}

static uint64_t some_length(struct traffic *t)
{
	switch (below(t, 8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return below(t, 100);
	case 3:
		return DGRAM_INLINE_MAX - 2 + below(t, 5);
	case 4:
		return below(t, DGRAM_INLINE_MAX);
	case 5:
		return below(t, 40000);
	default:
		return below(t, t->cfg->long_bytes);
	}
}

static void make_message(struct traffic *t, struct message *x, uint32_t index)
{
	*x = (struct message){
		.t = t,
		.index = index,
		.from = (uint32_t)below(t, t->cfg->nodes),
		.to = (uint32_t)below(t, t->cfg->nodes),
		.len = some_length(t),
		.want = (enum want)below(t, 8),
		.copy = below(t, 3) == 0,
		.scattered = below(t, 3) == 0,
		.later = below(t, 20) == 0,
	};
	if (x->want > WANT_ALL)
		x->want = WANT_ALL;
	if (x->len > NET_COPY_MAX)
		x->copy = false;
	x->wanted = x->want == WANT_ALL ? x->len : x->want == WANT_PART ? 1 + below(t, x->len) : 0;
	for (uint32_t i = 0; i < index; i++)
		x->order += t->message[i].from == x->from && t->message[i].to == x->to;
}

static void send_one(struct traffic *t)
{
	struct message *x = &t->message[t->nsent];
	struct header h;
	struct net_out o = { .header = &h, .header_len = header_len(x), .body_len = x->len };
	uint8_t *bytes = malloc(x->len ? x->len : 1);
	struct sim_node *n = sim_node(t->s, x->from);

	t->nsent++;
	make_header(x, &h);
	fill(x, bytes);
	x->source = bytes;
	o.body.cookie = bytes;
	o.body.base = x->scattered ? NULL : bytes;
	o.copy = x->copy;
	o.cookie = x;
	o.push = below(t, 3) == 0 ? UINT64_MAX : 0;
	if (!n->m || sim_send(n, x->to, &o)) {
		/* not begun: nobody will be told */
		x->sent = 1;
		x->status = NET_ENDED;
		t->over++;
		free(bytes);
		x->source = NULL;
	} else if (x->copy && !x->sent) {
		/* it is ours again */
		memset(bytes, 0x5a, x->len);
		free(bytes);
		x->source = NULL;
	}
}

static void crash_or_restart(struct traffic *t)
{
	struct sim_node *n = sim_node(t->s, (uint32_t)below(t, t->cfg->nodes));

	/* what it had asked to be told later is forgotten with it */
	for (uint32_t i = 0; i < t->cfg->nodes; i++)
		t->later_at[i][n->index] = 0;
	if (n->m && below(t, 2))
		sim_crash(n);
	else if (!sim_restart(n))
		broken(t, "no memory");
}

static void cut_or_heal(struct traffic *t)
{
	uint32_t a = (uint32_t)below(t, t->cfg->nodes), b = (uint32_t)below(t, t->cfg->nodes);

	sim_cut(t->s, a, b, below(t, 2));
}

static void resume(struct traffic *t)
{
	for (uint32_t a = 0; a < t->cfg->nodes; a++)
		for (uint32_t b = 0; b < t->cfg->nodes; b++) {
			struct sim_node *n = sim_node(t->s, b);

			if (!t->later_at[a][b] || t->later_at[a][b] > sim_now(t->s))
				continue;
			t->later_at[a][b] = 0;
			if (n->m) {
				dgram_resume(n->m, sim_peer(n, a));
				sim_kick(n);
			}
		}
}

/* Every message is over on both sides. */
static bool all_over(const struct traffic *t)
{
	return t->over == t->nmessages && !t->delivery;
}

static void heal(struct traffic *t)
{
	for (uint32_t a = 0; a < t->cfg->nodes; a++)
		for (uint32_t b = 0; b < t->cfg->nodes; b++)
			sim_cut(t->s, a, b, false);
}

static void check_message(struct traffic *t, const struct message *x)
{
	if (x->sent != 1)
		broken(t, "message %u: told to be over %u times", x->index, x->sent);
	if (x->pulled != x->landed)
		broken(t, "message %u: %u deliveries, %u ends", x->index, x->pulled, x->landed);
	if (x->status == NET_OK && x->delivered != 1)
		broken(t, "message %u: over, but delivered %u times", x->index, x->delivered);
	if (t->cfg->must_arrive && x->status != NET_OK && x->status != NET_REFUSED)
		broken(t, "message %u: %s", x->index, net_status_text(x->status));
}

/* Nothing may be left of it when all is quiet. */
static void check_quiet(struct traffic *t)
{
	const struct sim_faults none = { 0 };
	uint64_t until = sim_now(t->s) + 30 * SECOND;

	heal(t);
	sim_set_faults(t->s, &none);
	while (sim_step(t->s, until))
		resume(t);
	for (uint32_t i = 0; i < t->cfg->nodes; i++) {
		struct sim_node *n = sim_node(t->s, i);
		struct dgram_peer_info info;

		for (uint32_t p = 0; n->m && dgram_peer_info(n->m, p, &info); p++)
			if (info.queued || info.deliveries)
				broken(t, "node %u keeps %u messages, %u deliveries", i,
				       info.queued, info.deliveries);
	}
}

static void go(struct traffic *t)
{
	uint64_t end = sim_now(t->s) + 120 * SECOND, next = sim_now(t->s), trouble = next;

	while (!all_over(t) && !t->why[0]) {
		uint64_t now = sim_now(t->s);

		if (now >= end) {
			broken(t, "hangs: %u of %u messages are over, %u deliveries are not",
			       t->over, t->nmessages, t->delivery);
			return;
		}
		if (t->nsent < t->nmessages && now >= next) {
			send_one(t);
			next = now + below(t, below(t, 4) ? 20000 : t->cfg->pause_ns);
		}
		if ((t->cfg->crashes || t->cfg->partitions) && now >= trouble) {
			if (t->cfg->crashes && below(t, 2))
				crash_or_restart(t);
			else if (t->cfg->partitions)
				cut_or_heal(t);
			trouble = now + below(t, t->cfg->trouble_ns);
		}
		resume(t);
		sim_step(t->s, t->nsent < t->nmessages ? next : now + MS);
	}
}

/* Longer packets go in segments. */
static uint32_t whole(void *user, const struct net_addr *to)
{
	(void)user;
	(void)to;
	return 1472;
}

static void settings(const struct traffic_cfg *cfg, struct sim_cfg *sc)
{
	uint64_t x = cfg->seed * 0x9e3779b97f4a7c15u;

	sim_defaults(sc);
	sc->seed = cfg->seed;
	sc->nodes = cfg->nodes;
	sc->net.faults = cfg->faults;
	sc->net.jitter = x >> 8 & 1 ? 200 : 0;
	sc->net.queue_ns = x >> 9 & 1 ? 200000 : 0;
	sc->machine.mtu = x >> 10 & 1 ? 1472 : 8972;
	sc->net.path_mtu = x >> 11 & 1 ? 1472 : 0;
	sc->machine.credit = x >> 12 & 1 ? 16 : 256;
	sc->machine.push_bytes = x >> 13 & 1 ? 1 : 16384;
	sc->machine.early_bytes = x >> 14 & 1 ? 4096 : 1 << 20;
	sc->machine.dead_ns = cfg->dead_ns ? cfg->dead_ns : 10 * SECOND;
	sc->machine.rto_start_ns = 5 * MS;
	sc->machine.rto_min_ns = 2 * MS;
	sc->machine.rto_max_ns = 200 * MS;
	sc->machine.keepalive_ns = 500 * MS;
	sc->ops = (struct dgram_ops){ .deliver = deliver,
				      .delivered = landed,
				      .sent = sent,
				      .segments = pieces,
				      .whole = x >> 15 & 1 ? whole : NULL };
}

bool traffic_run(const struct traffic_cfg *cfg, struct traffic_result *result)
{
	struct traffic t = { .cfg = cfg, .nmessages = cfg->messages };
	struct sim_cfg sc;

	settings(cfg, &sc);
	t.s = sim_create(&sc);
	t.message = calloc(cfg->messages, sizeof(*t.message));
	for (uint32_t i = 0; i < cfg->nodes; i++)
		sim_node(t.s, i)->app = &t;
	for (uint32_t i = 0; i < cfg->messages; i++)
		make_message(&t, &t.message[i], i);
	go(&t);
	if (!t.why[0])
		check_quiet(&t);
	for (uint32_t i = 0; i < cfg->messages && !t.why[0]; i++)
		check_message(&t, &t.message[i]);
	memset(result, 0, sizeof(*result));
	for (uint32_t i = 0; i < cfg->messages; i++) {
		if (t.message[i].status == NET_OK || t.message[i].status == NET_REFUSED)
			result->done++;
		else
			result->failed++;
	}
	result->net = *sim_stats(t.s);
	sim_destroy(t.s);
	for (uint32_t i = 0; i < cfg->messages; i++)
		free(t.message[i].source);
	free(t.message);
	memcpy(result->why, t.why, sizeof(result->why));
	return !t.why[0];
}
