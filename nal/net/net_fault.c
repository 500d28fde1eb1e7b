/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Faults on demand (PTL_FAULT): outgoing packets are dropped, sent twice, delayed or damaged,
 * by chance from a seed. portals-fault(7) has the rules. With faults on, every packet is
 * copied; without them none of this code runs.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/log.h"
#include "nal/net/net.h"

#define RULES_MOST 16

enum action { FAULT_DROP, FAULT_DUP, FAULT_DELAY, FAULT_CORRUPT };

/* The contents of a packet, as bits. */
enum carried {
	CARRIES_HELLO = 1 << 0,
	CARRIES_ACK = 1 << 1,
	CARRIES_DATA = 1 << 2,
	CARRIES_PUT = 1 << 3,
	CARRIES_GET = 1 << 4,
	CARRIES_GETPUT = 1 << 5,
	CARRIES_ANSWER = 1 << 6,
	CARRIES_REPLY = 1 << 7,
};

static const struct word {
	const char *name;
	int value;
} actions[] = { { "drop", FAULT_DROP },
		{ "dup", FAULT_DUP },
		{ "delay", FAULT_DELAY },
		{ "corrupt", FAULT_CORRUPT },
		{ NULL, 0 } },
  types[] = {
	  { "hello", CARRIES_HELLO },   { "ack", CARRIES_ACK },     { "data", CARRIES_DATA },
	  { "put", CARRIES_PUT },       { "get", CARRIES_GET },     { "getput", CARRIES_GETPUT },
	  { "answer", CARRIES_ANSWER }, { "reply", CARRIES_REPLY }, { NULL, 0 }
  };

struct rule {
	enum action action;
	double chance;
	uint64_t delay_ns;
	int types; /* 0: any */
	bool by_peer, by_pid, by_portal, limited;
	char nal[8]; /* "": any */
	uint32_t nid, pid;
	uint32_t portal;
	uint64_t left; /* times it may still apply */
};

/* A copy of an outgoing packet. */
struct copy {
	struct copy *next;
	uint64_t at;
	struct net_addr to;
	bool probe, anywhere;
	size_t len;
	uint8_t bytes[];
};

struct net_fault {
	struct rule rule[RULES_MOST];
	int rules;
	uint64_t seed, made;
	struct copy *waiting; /* by time */
	struct copy *sent;    /* until the link has flushed */
};

/* ---- rules ----------------------------------------------------------------------------------- */

static bool find_word(const struct word *w, const char *name, size_t len, int *value)
{
	for (; w->name; w++)
		if (strlen(w->name) == len && !strncmp(w->name, name, len)) {
			*value = w->value;
			return true;
		}
	return false;
}

static bool parse_peer(struct rule *r, const char *text)
{
	char host[32];
	size_t len = strcspn(text, ":");
	struct in_addr a;
	char *end;

	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, &a) != 1)
		return false;
	r->by_peer = true;
	r->nid = ntohl(a.s_addr);
	if (!text[len])
		return true;
	r->by_pid = true;
	r->pid = (uint32_t)strtoul(text + len + 1, &end, 10);
	return end != text + len + 1 && !*end;
}

/* Parse "0.05" or, for a delay, "0.05:2000" with microseconds. */
static bool parse_chance(struct rule *r, const char *text)
{
	char *end;

	r->chance = base_decimal(text, &end);
	if (end == text || !(r->chance >= 0 && r->chance <= 1))
		return false;
	if (*end == ':' && r->action == FAULT_DELAY)
		r->delay_ns = strtoull(end + 1, &end, 10) * 1000;
	return !*end;
}

static bool parse_fault_word(struct net_fault *f, struct rule *r, bool *op_count, char *word)
{
	char *value = strchr(word, '='), *end;
	int number;

	if (!value)
		return false;
	*value++ = '\0';
	if (find_word(actions, word, strlen(word), &number)) {
		r->action = (enum action)number;
		*op_count = true;
		return parse_chance(r, value);
	}
	if (!strcmp(word, "type")) {
		if (!find_word(types, value, strlen(value), &number))
			return false;
		r->types |= number;
		return true;
	}
	if (!strcmp(word, "nal")) {
		snprintf(r->nal, sizeof(r->nal), "%s", value);
		return true;
	}
	if (!strcmp(word, "peer"))
		return parse_peer(r, value);
	number = (int)strtoul(value, &end, 10);
	if (end == value || *end)
		return false;
	if (!strcmp(word, "seed")) {
		f->seed = (uint64_t)number;
	} else if (!strcmp(word, "portal")) {
		r->by_portal = true;
		r->portal = (uint32_t)number;
	} else if (!strcmp(word, "times")) {
		r->limited = true;
		r->left = (uint64_t)number;
	} else {
		return false;
	}
	return true;
}

static bool parse_rule(struct net_fault *f, char *text)
{
	struct rule r = { .delay_ns = 1000000 };
	bool op_count = false;
	char *save, *word;

	for (word = strtok_r(text, ", ", &save); word; word = strtok_r(NULL, ", ", &save))
		if (!parse_fault_word(f, &r, &op_count, word))
			return false;
	if (!op_count)
		return true;
	if (f->rules == RULES_MOST)
		return false;
	f->rule[f->rules++] = r;
	return true;
}

struct net_fault *net_fault_create(const char *rules)
{
	struct net_fault *f;
	char *copy, *save, *text;
	bool good = true;

	if (!rules)
		return NULL;
	f = calloc(1, sizeof(*f));
	copy = strdup(rules);
	if (!f || !copy) {
		free(f);
		free(copy);
		return NULL;
	}
	f->seed = 1;
	for (text = strtok_r(copy, ";", &save); text && good; text = strtok_r(NULL, ";", &save))
		good = parse_rule(f, text);
	free(copy);
	if (good && f->rules)
		return f;
	base_warn("PTL_FAULT=%s is not understood, no faults are made; rules are like "
		  "\"seed=7;drop=0.05,type=put,portal=4;delay=0.1:2000,peer=10.0.0.2\"",
		  rules);
	net_fault_destroy(f);
	return NULL;
}

static void free_copies(struct copy **list)
{
	struct copy *c;

	while ((c = *list)) {
		*list = c->next;
		free(c);
	}
}

void net_fault_destroy(struct net_fault *f)
{
	if (!f)
		return;
	free_copies(&f->waiting);
	free_copies(&f->sent);
	free(f);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t random_of(struct net_fault *f)
{
	uint64_t z = f->seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool by_chance(struct net_fault *f, double chance)
{
	return (double)(random_of(f) >> 11) * 0x1p-53 < chance;
}

static int frame_carrier(const struct dgram_frame *f, const struct net_msg *m)
{
	static const int kinds[] = {
		[NET_PUT] = CARRIES_PUT,       [NET_GET] = CARRIES_GET,
		[NET_GETPUT] = CARRIES_GETPUT, [NET_ANSWER] = CARRIES_ANSWER,
		[NET_REPLY] = CARRIES_REPLY,
	};

	if (f->kind == DGRAM_FRAME_ACK)
		return CARRIES_ACK;
	if (f->kind == DGRAM_FRAME_DATA)
		return CARRIES_DATA;
	return f->kind == DGRAM_FRAME_MSG ? kinds[m->kind] : 0;
}

/* The contents of the packet, and whether they are a request to `portal`. */
static int carried_portal(const struct copy *c, uint32_t portal, bool *to_portal)
{
	struct dgram_frame f;
	struct dgram_head h;
	struct net_msg m;
	size_t at = 0;
	int what = 0;

	*to_portal = false;
	if (dgram_head_decode(c->bytes, c->len, &h) < 0)
		return 0;
	if (h.type != DGRAM_FRAMES)
		return CARRIES_HELLO;
	at = NET_TAG_OFFSET + NET_TAG_BYTES;
	while (dgram_frame_decode(c->bytes, c->len, &h, &at, &f) > 0) {
		memset(&m, 0, sizeof(m));
		if (f.kind == DGRAM_FRAME_MSG &&
		    net_msg_decode(f.bytes, f.hdr_len, f.body_len, &m) < 0)
			continue;
		what |= frame_carrier(&f, &m);
		*to_portal |=
			f.kind == DGRAM_FRAME_MSG && m.kind <= NET_GETPUT && m.pt_index == portal;
	}
	return what;
}

static bool applies(struct net_fault *f, struct rule *r, const struct net *n, uint32_t peer,
		    const struct copy *c)
{
	bool to_portal;

	if ((r->limited && !r->left) || (*r->nal && strcmp(r->nal, n->name) != 0))
		return false;
	if (r->by_peer) {
		ptl_process_id_t id;

		if (peer == NET_NONE)
			return false;
		id = net_who(n, peer).id;
		if (id.nid != r->nid || (r->by_pid && id.pid != r->pid))
			return false;
	}
	if (r->types || r->by_portal) {
		int what = carried_portal(c, r->portal, &to_portal);

		if ((r->types && !(what & r->types)) || (r->by_portal && !to_portal))
			return false;
	}
	if (!by_chance(f, r->chance))
		return false;
	r->left -= r->limited;
	return true;
}

static struct copy *flat(const struct net *n, const struct dgram_packet *p)
{
	struct copy *c = malloc(sizeof(*c) + p->head_len + p->body_len);

	if (!c)
		return NULL;
	c->next = NULL;
	c->at = n->now;
	c->to = *p->to;
	c->probe = p->probe;
	c->anywhere = p->anywhere;
	c->len = p->head_len;
	memcpy(c->bytes, p->head, p->head_len);
	for (int i = 0; i < p->segments; i++) {
		memcpy(c->bytes + c->len, p->body[i].iov_base, p->body[i].iov_len);
		c->len += p->body[i].iov_len;
	}
	return c;
}

static void enqueue_copy(struct net_fault *f, struct copy *c)
{
	struct copy **at = &f->waiting;

	while (*at && (*at)->at <= c->at)
		at = &(*at)->next;
	c->next = *at;
	*at = c;
}

void net_fault_transmit(struct net *n, const struct dgram_packet *p)
{
	struct net_fault *f = n->fault;
	struct copy *c = flat(n, p), *second;

	for (int i = 0; c && i < f->rules; i++) {
		struct rule *r = &f->rule[i];

		if (!applies(f, r, n, p->peer, c))
			continue;
		n->ni->view.r->stat.counts[PTL_COUNT_FAULTS]++;
		switch (r->action) {
		case FAULT_DROP:
			free(c);
			return;
		case FAULT_DUP:
			second = flat(n, p);
			if (second)
				enqueue_copy(f, second);
			break;
		case FAULT_DELAY:
			c->at += r->delay_ns;
			break;
		case FAULT_CORRUPT:
			c->bytes[random_of(f) % c->len] ^= (uint8_t)(1u << random_of(f) % 8);
			break;
		}
	}
	if (c)
		enqueue_copy(f, c);
}

void net_fault_release(struct net *n)
{
	struct net_fault *f = n->fault;
	struct copy *c;

	while ((c = f->waiting) && c->at <= n->now) {
		struct dgram_packet p = {
			.peer = NET_NONE,
			.to = &c->to,
			.head = c->bytes,
			.head_len = c->len,
			.probe = c->probe,
			.anywhere = c->anywhere,
		};

		if (!n->link->room(n->link_state, 0))
			n->link->flush(n->link_state);
		n->link->transmit(n->link_state, &p);
		f->waiting = c->next;
		c->next = f->sent;
		f->sent = c;
	}
	n->link->flush(n->link_state);
	free_copies(&f->sent);
}

uint64_t net_fault_wake(const struct net *n)
{
	return n->fault && n->fault->waiting ? n->fault->waiting->at : NET_NEVER;
}
