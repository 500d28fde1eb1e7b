/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The effects of a network on packets: see sim_model.h.
 */
#include "nal/net/dgram/sim/sim_model.h"

#include <stdlib.h>

uint64_t sim_draw(uint64_t *random)
{
	uint64_t z = *random += 0x9e3779b97f4a7c15u; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

bool sim_happens(uint64_t *random, uint32_t n)
{
	return n && sim_draw(random) % 1000 < n;
}

uint64_t sim_leave(const struct sim_model *m, uint64_t *link, uint64_t ready, size_t len)
{
	uint64_t on_link = len * m->G_ps / 1000, left = *link > ready ? *link : ready;

	left += on_link > m->g_ns ? on_link : m->g_ns;
	*link = left;
	return left;
}

bool sim_doubles(const struct sim_model *m, uint64_t *random, struct sim_counts *c, uint64_t left,
		 uint64_t *twin)
{
	if (!sim_happens(random, m->faults.duplicate))
		return false;
	c->duplicated++;
	*twin = left + sim_draw(random) % (2 * m->L_ns + 1);
	return true;
}

bool sim_travel(const struct sim_model *m, uint64_t *random, struct sim_counts *c, uint64_t left,
		uint64_t *at)
{
	const struct sim_faults *f = &m->faults;

	*at = left + m->L_ns;
	if (m->jitter)
		*at += sim_draw(random) % (m->L_ns * m->jitter / 1000 + 1);
	if (sim_happens(random, f->reorder)) {
		*at += sim_draw(random) % (m->L_ns ? 4 * m->L_ns : 1);
		c->reordered++;
	}
	if (sim_happens(random, f->delay)) {
		*at += sim_draw(random) % (f->delay_ns + 1);
		c->delayed++;
	}
	if (sim_happens(random, f->loss)) {
		c->lost++;
		return false;
	}
	return true;
}

bool sim_enter(const struct sim_model *m, uint64_t *link, struct sim_counts *c, bool late,
	       size_t len, uint64_t *at)
{
	uint64_t on_link = len * (m->last_G_ps ? m->last_G_ps : m->G_ps) / 1000;

	if (m->queue_ns && *link > *at + m->queue_ns) {
		c->overflowed++;
		return false;
	}
	/* the link takes them one after the other */
	if (*link > *at)
		*at = *link;
	*at += on_link;
	if (!late)
		*link = *at;
	return true;
}

void sim_damage(const struct sim_model *m, uint64_t *random, struct sim_counts *c, uint8_t *bytes,
		uint32_t *len)
{
	if (!*len)
		return;
	if (sim_happens(random, m->faults.corrupt)) {
		for (uint64_t n = 1 + sim_draw(random) % 4; n; n--)
			bytes[sim_draw(random) % *len] ^= (uint8_t)(1 + sim_draw(random) % 255);
		c->corrupted++;
	}
	if (sim_happens(random, m->faults.truncate)) {
		*len = (uint32_t)(sim_draw(random) % *len);
		c->truncated++;
	}
}

/* ---- what is to happen later ----------------------------------------------------------------- */

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

bool sim_queue_put(struct sim_queue *q, uint64_t at, void *packet, uint32_t node)
{
	struct sim_event e = { .at = at, .order = q->order++, .packet = packet, .node = node };
	size_t i = q->n;

	if (q->n == q->room) {
		size_t room = q->room ? 2 * q->room : 64;
		struct sim_event *more = realloc(q->heap, room * sizeof(*more));

		if (!more)
			return false;
		q->heap = more;
		q->room = room;
	}
	q->n++;
	for (; i && earlier(&e, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = e;
	return true;
}

struct sim_event sim_queue_take(struct sim_queue *q)
{
	struct sim_event first = q->heap[0], last;
	size_t i = 0, child;

	q->heap[0].packet = NULL; /* it is the caller's now */
	last = q->heap[--q->n];
	if (!q->n)
		return first;
	for (; (child = 2 * i + 1) < q->n; i = child) {
		if (child + 1 < q->n && earlier(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (earlier(&last, &q->heap[child]))
			break;
		q->heap[i] = q->heap[child];
	}
	q->heap[i] = last;
	return first;
}
