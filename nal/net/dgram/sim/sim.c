/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The simulated network: see sim.h. Events are packets that arrive and machines that have to be
 * woken.
 */
#include "nal/net/dgram/sim/sim.h"

#include <stdlib.h>
#include <string.h>

struct packet {
	struct packet *next; /* in the pool */
	uint32_t from, to;
	uint32_t len, room;
	bool turn; /* the receiver's processor has time for it now */
	uint8_t bytes[];
};

#define POOLS 4

static const uint32_t pool_room[POOLS] = { 256, 1536, 9216, DGRAM_MTU_MAX };

struct sim {
	struct sim_cfg cfg;
	struct sim_node *node;
	struct sim_queue queue;
	uint64_t now, random;
	struct packet *pool[POOLS];
	struct packet *out; /* what room() gave */
	size_t out_room;
	struct {
		uint32_t from, to;
	} * cut;
	uint32_t ncuts;
	sim_seen *seen;
	void *seen_arg;
	struct sim_stats stats;
};

void sim_defaults(struct sim_cfg *cfg)
{
	*cfg = (struct sim_cfg){
		.net = { .L_ns = 5000, .o_ns = 500, .g_ns = 100, .G_ps = 320 },
		.tags = true,
	};
	cfg->machine.mtu = 1472;
	dgram_defaults(&cfg->machine);
	cfg->machine.mtu = 1472;
}

/* ---- chance ---------------------------------------------------------------------------------- */

uint64_t sim_random(struct sim *s)
{
	return sim_draw(&s->random);
}

bool sim_chance(struct sim *s, uint32_t n)
{
	return sim_happens(&s->random, n);
}

/* ---- packets --------------------------------------------------------------------------------- */

static int sim_pool_of(size_t len)
{
	int i = 0;

	while (i < POOLS - 1 && len > pool_room[i])
		i++;
	return i;
}

static struct packet *new_sim_packet(struct sim *s, size_t len)
{
	int i = sim_pool_of(len);
	struct packet *p = s->pool[i];

	if (p) {
		s->pool[i] = p->next;
		return p;
	}
	p = malloc(sizeof(*p) + pool_room[i]);
	if (p)
		p->room = pool_room[i];
	return p;
}

/* Memory for packets is given back at the end. */
static void packet_put(struct sim *s, struct packet *p)
{
	int i = sim_pool_of(p->room);

	p->next = s->pool[i];
	s->pool[i] = p;
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* Words mixed one by one: nobody lies in here, bytes only change by chance. A body may be in
 * other pieces on the other side, so words are made of bytes wherever pieces end. */
struct digest {
	uint64_t h, word;
	uint32_t have; /* bytes in word */
};

static void digest_word(struct digest *d, uint64_t word)
{
	d->h = (d->h ^ word) * 0x9fb21c651e98df25u;
	d->h ^= d->h >> 29;
}

static void digest_bytes(struct digest *d, const uint8_t *b, size_t len)
{
	uint64_t word;

	while (len) {
		if (!d->have && len >= 8) {
			memcpy(&word, b, 8);
			digest_word(d, word);
			b += 8;
			len -= 8;
			continue;
		}
		d->word |= (uint64_t)*b++ << 8 * d->have;
		len--;
		if (++d->have == 8) {
			digest_word(d, d->word);
			d->word = d->have = 0;
		}
	}
}

static void seal(void *user, const uint8_t *head, size_t head_len, const struct iovec *body,
		 int segments, uint8_t tag[NET_TAG_BYTES])
{
	const size_t behind = NET_TAG_OFFSET + NET_TAG_BYTES;
	const struct sim_node *n = user;
	struct digest d = { .h = n->sim->cfg.seed };

	digest_bytes(&d, head, NET_TAG_OFFSET);
	digest_bytes(&d, head + behind, head_len - behind);
	for (int i = 0; i < segments; i++)
		digest_bytes(&d, body[i].iov_base, body[i].iov_len);
	digest_word(&d, d.word ^ (uint64_t)d.have << 56);
	base_put64(tag, d.h);
	digest_word(&d, d.h);
	base_put64(tag + 8, d.h);
}

static bool verify(void *user, const uint8_t *packet, size_t head_len, size_t len)
{
	const struct sim_node *n = user;
	struct iovec body = { (uint8_t *)(uintptr_t)packet + head_len, len - head_len };
	uint8_t tag[NET_TAG_BYTES];

	seal((void *)(uintptr_t)n, packet, head_len, &body, 1, tag);
	return !memcmp(tag, packet + NET_TAG_OFFSET, sizeof(tag));
}

/* ---- the network ----------------------------------------------------------------------------- */

static bool is_cut(const struct sim *s, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < s->ncuts; i++)
		if (s->cut[i].from == from && s->cut[i].to == to)
			return true;
	return false;
}

/* The packet enters the network when it has left its sender's link. */
static void carry_packet(struct sim *s, struct packet *p, uint64_t left)
{
	const struct sim_model *m = &s->cfg.net;
	struct sim_counts *c = &s->stats.faults;
	uint64_t at;

	/* one that is late keeps nobody waiting */
	if (!sim_travel(m, &s->random, c, left, &at) ||
	    !sim_enter(m, &s->node[p->to].link_in, c, at > left + 2 * m->L_ns, p->len, &at)) {
		packet_put(s, p);
		return;
	}
	sim_damage(m, &s->random, c, p->bytes, &p->len);
	if (!sim_queue_put(&s->queue, at, p, p->to))
		packet_put(s, p);
}

static void packet_enters(struct sim *s, struct packet *p)
{
	const struct sim_model *m = &s->cfg.net;
	struct sim_node *from = &s->node[p->from];
	uint64_t left, later;

	s->stats.packets++;
	s->stats.bytes += p->len;
	from->busy = (from->busy > s->now ? from->busy : s->now) + m->o_ns;
	left = sim_leave(m, &from->link_out, from->busy, p->len);
	if (s->seen && !s->seen(s->seen_arg, p->from, p->to, p->bytes, p->len)) {
		s->stats.faults.lost++;
		packet_put(s, p);
		return;
	}
	if (m->path_mtu && p->len > m->path_mtu) {
		s->stats.faults.too_long++;
		packet_put(s, p);
		return;
	}
	if (is_cut(s, p->from, p->to)) {
		s->stats.cut++;
		packet_put(s, p);
		return;
	}
	if (sim_doubles(m, &s->random, &s->stats.faults, left, &later)) {
		struct packet *twin = new_sim_packet(s, p->len);

		if (twin) {
			uint32_t room = twin->room;

			memcpy(twin, p, sizeof(*p) + p->len);
			twin->room = room;
			carry_packet(s, twin, later);
		}
	}
	carry_packet(s, p, left);
}

/* ---- a node as a link ------------------------------------------------------------------------ */

static void *room(void *user, size_t len)
{
	const struct sim_node *n = user;
	struct sim *s = n->sim;

	if (s->out && s->out->room < len) {
		packet_put(s, s->out);
		s->out = NULL;
	}
	if (!s->out)
		s->out = new_sim_packet(s, len);
	return s->out ? s->out->bytes : NULL;
}

static void transmit(void *user, const struct dgram_packet *p)
{
	const struct sim_node *n = user;
	struct sim *s = n->sim;
	struct packet *out = s->out;

	s->out = NULL;
	out->from = n->index;
	out->to = (uint32_t)p->to->word[0];
	out->len = (uint32_t)p->head_len;
	out->turn = false;
	for (int i = 0; i < p->segments; i++) {
		memcpy(out->bytes + out->len, p->body[i].iov_base, p->body[i].iov_len);
		out->len += (uint32_t)p->body[i].iov_len;
	}
	packet_enters(s, out);
}

/* The machine says when it wants to be woken. */
static void arm_node(struct sim_node *n)
{
	uint64_t at = dgram_wake(n->m);

	if (at < n->sim->now)
		at = n->sim->now;
	if (at >= n->wake)
		return;
	n->wake = at;
	sim_queue_put(&n->sim->queue, at, NULL, n->index);
}

static void run_node(struct sim_node *n)
{
	/* a link that has room whenever it is asked is never full */
	if (n->m) {
		dgram_listened(n->m, n->sim->now);
		dgram_run(n->m, n->sim->now);
		arm_node(n);
	}
}

static bool start_node(struct sim_node *n)
{
	struct sim *s = n->sim;
	struct dgram_cfg cfg = s->cfg.machine;
	struct dgram_ops ops = s->cfg.ops;

	cfg.id = n->index + 1ull;
	cfg.incarnation = ++n->lives;
	cfg.seed = sim_random(s);
	ops.room = room;
	ops.transmit = transmit;
	if (s->cfg.tags) {
		ops.seal = seal;
		ops.verify = verify;
	}
	n->wake = NET_NEVER;
	n->m = dgram_create(&ops, n, &cfg);
	return n->m;
}

/* ---- the caller's ---------------------------------------------------------------------------- */

struct sim *sim_create(const struct sim_cfg *cfg)
{
	struct sim *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cfg = *cfg;
	s->random = cfg->seed;
	s->now = 1000000000; /* no machine has to bear with a clock that begins at 0 */
	s->node = calloc(cfg->nodes, sizeof(*s->node));
	if (!s->node) {
		free(s);
		return NULL;
	}
	for (uint32_t i = 0; i < cfg->nodes; i++) {
		s->node[i].sim = s;
		s->node[i].index = i;
		if (!start_node(&s->node[i])) {
			sim_destroy(s);
			return NULL;
		}
	}
	return s;
}

void sim_destroy(struct sim *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->cfg.nodes; i++)
		sim_crash(&s->node[i]);
	for (size_t i = 0; i < s->queue.n; i++)
		free(s->queue.heap[i].packet);
	for (int i = 0; i < POOLS; i++)
		while (s->pool[i]) {
			struct packet *p = s->pool[i];

			s->pool[i] = p->next;
			free(p);
		}
	free(s->out);
	free(s->queue.heap);
	free(s->cut);
	free(s->node);
	free(s);
}

struct sim_node *sim_node(struct sim *s, uint32_t index)
{
	return &s->node[index];
}

uint64_t sim_now(const struct sim *s)
{
	return s->now;
}

const struct sim_stats *sim_stats(const struct sim *s)
{
	return &s->stats;
}

uint32_t sim_peer(struct sim_node *from, uint32_t to)
{
	struct net_addr addr = { { to, 0, 0 } };

	return dgram_peer(from->m, to + 1ull, &addr);
}

uint32_t sim_peer_node(const struct sim_node *n, uint32_t peer)
{
	struct dgram_peer_info info;

	return dgram_peer_info(n->m, peer, &info) ? (uint32_t)(info.who.id - 1) : NET_NONE;
}

int sim_send(struct sim_node *from, uint32_t to, const struct net_out *o)
{
	int err = dgram_send(from->m, from->sim->now, sim_peer(from, to), o);

	arm_node(from);
	return err;
}

void sim_kick(struct sim_node *n)
{
	if (n->m)
		arm_node(n);
}

void sim_set_faults(struct sim *s, const struct sim_faults *f)
{
	s->cfg.net.faults = *f;
}

void sim_cut(struct sim *s, uint32_t from, uint32_t to, bool cut)
{
	void *more;

	if (cut) {
		more = realloc(s->cut, (s->ncuts + 1) * sizeof(*s->cut));
		if (!more)
			return;
		s->cut = more;
		s->cut[s->ncuts].from = from;
		s->cut[s->ncuts++].to = to;
		return;
	}
	for (uint32_t i = 0; i < s->ncuts; i++)
		if (s->cut[i].from == from && s->cut[i].to == to)
			s->cut[i--] = s->cut[--s->ncuts];
}

void sim_crash(struct sim_node *n)
{
	struct dgram *m = n->m;

	n->m = NULL;
	dgram_destroy(m);
}

bool sim_restart(struct sim_node *n)
{
	sim_crash(n);
	return start_node(n);
}

void sim_watch(struct sim *s, sim_seen *seen, void *arg)
{
	s->seen = seen;
	s->seen_arg = arg;
}

void sim_inject(struct sim_node *to, uint32_t from, const void *packet, size_t len)
{
	struct net_addr addr = { { from, 0, 0 } };

	if (!to->m)
		return;
	dgram_receive(to->m, to->sim->now, &addr, packet, len);
	run_node(to);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void arrive(struct sim_node *n, struct packet *p)
{
	struct sim *s = n->sim;
	struct net_addr from = { { p->from, 0, 0 } };

	if (!n->m || is_cut(s, p->from, p->to)) {
		s->stats.cut++;
		packet_put(s, p);
		return;
	}
	/* the processor is busy: this packet has to wait until it is not */
	if (!p->turn) {
		uint64_t turn = n->busy > s->now ? n->busy : s->now;

		n->busy = turn + s->cfg.net.o_ns;
		p->turn = true;
		if (turn > s->now) {
			if (!sim_queue_put(&s->queue, turn, p, n->index))
				packet_put(s, p);
			return;
		}
	}
	dgram_receive(n->m, s->now, s->cfg.unnamed ? NULL : &from, p->bytes, p->len);
	packet_put(s, p);
	run_node(n);
}

bool sim_step(struct sim *s, uint64_t until)
{
	struct sim_node *n;
	struct sim_event e;

	if (!s->queue.n || s->queue.heap[0].at > until) {
		if (until != NET_NEVER)
			s->now = until > s->now ? until : s->now;
		return false;
	}
	e = sim_queue_take(&s->queue);
	s->now = e.at;
	s->stats.events++;
	n = &s->node[e.node];
	if (e.packet) {
		arrive(n, e.packet);
	} else if (e.at == n->wake) {
		n->wake = NET_NEVER;
		run_node(n);
	}
	return true;
}

bool sim_run(struct sim *s, uint64_t until, bool (*done)(void *arg), void *arg)
{
	while (!done(arg))
		if (!sim_step(s, until))
			return done(arg);
	return true;
}
