/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Paths: where processes are, and the connections that lead there. A path gets a connection
 * when something is sent on it, by calling or by being called. A failed attempt is repeated as
 * long as the machine wants the path. When a working connection fails, its path fails with it:
 * operations under way may have arrived or not. So the machine must go on with a new path.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "nal/verbs/verbs.h"

#define FIRST_MS 20u /* between attempts, doubled each time up to MOST_MS */
#define MOST_MS  640u
#define LEAVE_NS 2000000000ull

struct verbs_path *verbs_path_to(struct verbs *v, const struct verbs_address *address)
{
	struct verbs_path *w = v->paths;

	while (w && (w->broken || memcmp(&w->address, address, sizeof(*address)) != 0))
		w = w->next;
	return w;
}

struct verbs_path *verbs_path_get(struct verbs *v, const struct verbs_address *address, net_id_t id)
{
	struct verbs_path *w = verbs_path_to(v, address);

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->address = *address;
	w->id = id;
	w->next = v->paths;
	v->paths = w;
	return w;
}

void verbs_path_drop(struct verbs *v, struct verbs_path *w)
{
	struct verbs_path **at = &v->paths;

	if (w->refs || w->conn)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	v->calling -= w->wanted;
	free(w);
}

/* ---- where a process is ---------------------------------------------------------------------- */

static bool address_of_id(const struct verbs *v, net_id_t id, struct verbs_address *a)
{
	uint32_t nid = (uint32_t)(id >> 32), pid = (uint32_t)id;
	const struct net_addr *card;

	if (!v->by_id) {
		card = net_ranks_find(&v->ranks, (ptl_process_id_t){ nid, pid });
		if (card)
			memcpy(a, card, sizeof(*a));
		return card;
	}
	/* the nid is an IPv4 address, the pid a port */
	if (v->own.family != 4 || !pid || pid > 65535)
		return false;
	*a = (struct verbs_address){
		.family = 4,
		.port = { (uint8_t)(pid >> 8), (uint8_t)pid },
		.bytes = { (uint8_t)(nid >> 24), (uint8_t)(nid >> 16), (uint8_t)(nid >> 8),
			   (uint8_t)nid },
	};
	/* all processes of this host use our address, which may differ from the one in the id */
	if (nid == v->ni->id.nid)
		memcpy(a->bytes, v->own.bytes, sizeof(a->bytes));
	return true;
}

void *verbs_reach(void *link, net_id_t id, const void *address, size_t len)
{
	struct verbs *v = link;
	struct verbs_address a;
	struct verbs_path *w;

	if (address ? !verbs_address_decode(address, len, &a) : !address_of_id(v, id, &a))
		return NULL;
	if (a.family != v->own.family || !memcmp(&a, &v->own, sizeof(a)))
		return NULL;
	w = verbs_path_get(v, &a, id);
	if (w)
		w->refs++;
	return w;
}

void verbs_leave(void *link, void *path)
{
	struct verbs *v = link;
	struct verbs_path *w = path;
	struct verbs_conn *c = w->conn;

	if (--w->refs)
		return;
	w->broken = true;
	if (c && c->state == VERBS_UP) {
		c->state = VERBS_LEAVING;
		c->until = base_now_ns() + LEAVE_NS;
		v->restless = true;
	} else if (c) {
		verbs_break(v, c, "not needed any more");
	}
	verbs_path_drop(v, w);
}

/* ---- calling --------------------------------------------------------------------------------- */

void verbs_path_later(struct verbs *v, struct verbs_path *w, uint32_t ms)
{
	if (!ms) {
		ms = FIRST_MS << (w->calls < 5 ? w->calls : 5);
		ms = ms < MOST_MS ? ms : MOST_MS;
		w->calls++;
	}
	w->call_at = base_now_ns() + ms * 1000000ull;
	verbs_path_drop(v, w);
}

uint64_t verbs_path_calls(struct verbs *v, uint64_t now)
{
	uint64_t first = UINT64_MAX;

	for (struct verbs_path *w = v->paths; w && v->calling; w = w->next) {
		if (!w->wanted || w->conn || w->broken)
			continue;
		if (w->call_at <= now)
			verbs_call(v, w);
		else if (w->call_at < first)
			first = w->call_at;
	}
	return first;
}
