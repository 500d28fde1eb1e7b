/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which path long messages take when both sides are inside: the pipe or claims. Either may be
 * three times as fast as the other. That depends on where the two cores are and what else uses
 * their caches; it cannot be known beforehand and changes while a program runs. All deliveries
 * of a peer begin and end in the region of one owner. So the owner times them in groups
 * (base/tuner.h).
 *
 * The worse the other path was, the longer the tuner rests, so trials cost one or two parts in
 * a hundred. A change is tried again soon, before anything else, as something else may have
 * been slow: a peer that was hardly ever inside, or memory used for the first time. The time
 * of the present path is the median of three groups, so a group in which the kernel ran
 * another process does not count. The other path must be better in all of its three groups.
 * Messages of very different lengths prefer different paths, so each class has trials of its
 * own.
 *
 * When oversubscribed, a delivery takes as long as the turns of other processes. So the
 * receiver times its own copies instead, from whichever peer they come (base/tuner.h). Copies
 * by CMA are compared with copies out of a pipe, which count twice, as the source makes one,
 * too. Claims come first, since they need no turn of the source.
 */
#include "base/config.h"
#include "base/cpu.h"
#include "nal/shm/shm.h"

#define GROUP 8 /* deliveries: more than end at the same time for having gone together */

#define RULE(group)                                                                                \
	{                                                                                          \
		.runs = 3, .all = true, .rarer = true, .share = 128, .first = 8 / (group),         \
		.changed = 64 / (group), .least = 256 / (group), .most = 8192 / (group),           \
	}

/* Few of the longest messages go together, and a trial of many takes long. */
static const struct base_tuner_rule rule = RULE(GROUP), rule_longest = RULE(GROUP / 2);

static uint32_t group_of(unsigned int k)
{
	return k < SHM_LENGTH_CLASSES - 1 ? GROUP : GROUP / 2;
}

/* Count another trial, or another change that is kept. */
static void count_trial(struct shm *s, const struct base_tuner *w, enum base_tuner_phase was,
			unsigned int before)
{
	uint64_t *counts = s->ni->view.r->stat.counts;

	if (was == BASE_TUNER_PRESENT && w->phase == BASE_TUNER_SETTLES)
		counts[PTL_COUNT_WAY_TRIED]++;
	if (was == BASE_TUNER_OTHER && w->phase == BASE_TUNER_RESTS && w->now == before)
		counts[PTL_COUNT_WAY_CHANGED]++;
}

/* Evaluate a group that is complete. */
static void group_ended(struct shm *s, struct shm_peer *p, unsigned int k)
{
	struct shm_path *w = &p->path[k];
	const enum base_tuner_phase was = w->of.phase;
	const bool timed = base_tuner_timed(&w->of);
	const unsigned int before = w->of.now;

	base_tuner_ended(&w->of, (w->ns << 16) / (w->bytes | 1));
	w->ns = w->bytes = 0;
	w->left = group_of(k);
	p->timed += base_tuner_timed(&w->of);
	p->timed -= timed;
	count_trial(s, &w->of, was, before);
	/* both sides see it for the next chunk */
	if (w->of.now != before)
		atomic_store_explicit(&p->in.ch->claims[k], w->of.now, memory_order_relaxed);
}

static bool observed(const struct shm *s, const struct shm_peer *p)
{
	return base_config()->ptl_shm_long == BASE_LONG_AUTO && p->cma && s->ni->spin_ns &&
	       p->index != SHM_SELF;
}

void shm_path_init(struct shm_peer *p)
{
	for (unsigned int k = 0; k < SHM_LENGTH_CLASSES; k++) {
		base_tuner_init_by(&p->path[k].of,
				   k < SHM_LENGTH_CLASSES - 1 ? &rule : &rule_longest, 2, 0);
		p->path[k].left = group_of(k);
	}
}

static bool has_one(const struct ptl_flow *f)
{
	const struct ptl_list *put = &f->delivery[PTL_LIST_PUT], *get = &f->delivery[PTL_LIST_GET];

	return put->first ? put->first == put->last && !get->first : get->first == get->last;
}

void shm_path_began(const struct shm *s, struct shm_peer *p)
{
	/* If it is the only one, all earlier ones have ended, seen by us or by the peer on our
	 * behalf. */
	if (p->timed && (!p->busy_since || has_one(&s->ni->view.r->flow[p->index])))
		p->busy_since = base_now_ns();
}

void shm_path_ended(struct shm *s, struct shm_peer *p, uint64_t length)
{
	const struct ptl_flow *f = &s->ni->view.r->flow[p->index];
	const unsigned int k = shm_path_of(length);
	struct shm_path *w = &p->path[k];
	uint64_t now = 0;
	bool timed;

	if (!observed(s, p))
		return;
	if (p->timed)
		now = base_now_ns();
	timed = base_tuner_timed(&w->of);
	if (timed && p->busy_since) { /* else the peer began it on our behalf */
		w->ns += now - p->busy_since;
		w->bytes += length;
	}
	if ((!timed || p->busy_since) && !--w->left) {
		group_ended(s, p, k);
		if (p->timed && !now)
			now = base_now_ns();
	}
	/* what continues is timed from here on */
	p->busy_since = p->timed && (f->delivery[0].first || f->delivery[1].first) ? now : 0;
}

/* ---- when oversubscribed --------------------------------------------------------------------- */

void shm_path_advertise(const struct shm *s, struct shm_peer *p, uint64_t length)
{
	const unsigned int k = shm_path_of(length);
	const bool wanted = s->ni->spin_ns ? p->path[k].of.now : !s->in_turns[k].now;
	const bool claims = p->cma && wanted;
	_Atomic uint32_t *advertised = &p->in.ch->claims[k];

	if (atomic_load_explicit(advertised, memory_order_relaxed) != claims)
		atomic_store_explicit(advertised, claims, memory_order_relaxed);
}

uint64_t shm_path_moving(const struct shm *s, uint64_t length)
{
	return base_tuner_timed(&s->in_turns[shm_path_of(length)]) ? base_now_ns() : 0;
}

void shm_path_moved(struct shm *s, uint64_t length, uint64_t since, uint64_t bytes, bool piped)
{
	struct base_tuner *w = &s->in_turns[shm_path_of(length)];
	const enum base_tuner_phase was = w->phase;
	const bool pipe = w->now;
	uint64_t ns = since ? base_now_ns() - since : 0;

	if (s->ni->spin_ns || base_config()->ptl_shm_long != BASE_LONG_AUTO)
		return;
	if (piped && !pipe) /* left over from when the pipe was the path */
		return;
	/* Time left to a source in vain counts twice, too, which makes the pipe the worse
	 * path. */
	base_tuner_ended(w, (ns << 10) * (pipe ? 2 : 1) / (bytes | 1));
	count_trial(s, w, was, pipe);
}
