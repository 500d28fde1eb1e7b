/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which way long messages go when both sides are inside: through the pipe, or by claims. Either
 * may be three times as fast as the other, by where the two cores are and what else uses their
 * caches, which nobody can tell beforehand and which changes while a program runs. So the owner
 * of a region, in which all landings of a peer begin and end, looks how long they take, by
 * groups (base/tuner.h).
 *
 * It rests the longer the worse the other way was, so that trials cost one or two parts in a
 * hundred; but a change is looked at again soon, and before anything else, for it may have been
 * something else that was slow: a peer that was hardly ever inside, memory that was used for the
 * first time. The present way's time is the median of those of three groups, so that one in
 * which the kernel ran somebody else does not count; the other way has to be better in all of
 * its three. Where messages go both ways at once, every second trial that follows no change is
 * of whether they had better not be spliced. As the messages of one way have the cores that the
 * others leave them, both ways change together then, and one of the two processes decides.
 * Messages of much different lengths are of different minds about it, and have a trial each.
 *
 * Where processors are short a landing takes as long as others' turns do, so who takes data in
 * looks at the time of its own copies instead, from whomever they come (base/tuner.h): those of
 * the kernel, beside those out of a pipe, counted twice, as the source makes one, too. Claims
 * come first, for they need no turn of the source.
 */
#include "base/config.h"
#include "base/cpu.h"
#include "nal/shm/shm.h"

#define GROUP 8 /* landings; more than end at the same time because they went together */

#define RULE(group)                                                                                \
	{                                                                                          \
		.runs = 3, .all = true, .rarer = true, .share = 128, .first = 8 / (group),         \
		.changed = 64 / (group), .least = 256 / (group), .most = 8192 / (group),           \
	}

/* Of the longest messages few go together, and a trial of many takes long. */
static const struct base_tuner_rule rule = RULE(GROUP), rule_longest = RULE(GROUP / 2);

static uint32_t group_of(unsigned int k)
{
	return k < SHM_LENGTH_CLASSES - 1 ? GROUP : GROUP / 2;
}

/* Both sides see it, for the next chunk. */
static void take_other(struct shm_peer *p, unsigned int k)
{
	struct shm_path *w = &p->path[k];

	if (w->of_splice) {
		w->unspliced = !w->unspliced;
		atomic_store_explicit(&p->in.ch->unspliced[k], w->unspliced, memory_order_relaxed);
		return;
	}
	w->claims = !w->claims;
	atomic_store_explicit(&p->in.ch->claims[k], w->claims, memory_order_relaxed);
}

/* Once more a way was tried, or has changed, and is kept to. */
static void count_trial(struct shm *s, const struct base_tuner *w, enum base_tuner_phase was,
			unsigned int before)
{
	uint64_t *counts = s->ni->view.r->stat.counts;

	if (was == BASE_TUNER_PRESENT && w->phase == BASE_TUNER_SETTLES)
		counts[PTL_COUNT_WAY_TRIED]++;
	if (was == BASE_TUNER_OTHER && w->phase == BASE_TUNER_RESTS && w->now == before)
		counts[PTL_COUNT_WAY_CHANGED]++;
}

/* A group is over. */
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
	/* what was changed is looked at again first */
	if (was == BASE_TUNER_PRESENT && w->of.phase == BASE_TUNER_SETTLES && !w->of.changes)
		w->of_splice = !w->of_splice && w->claims && p->decides && p->exchanges &&
			       k >= SHM_SPLICE_FROM;
	if (w->of.now != before)
		take_other(p, k);
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
	const struct ptl_list *put = &f->land[PTL_LIST_PUT], *get = &f->land[PTL_LIST_GET];

	return put->first ? put->first == put->last && !get->first : get->first == get->last;
}

void shm_path_began(const struct shm *s, struct shm_peer *p)
{
	/* if it is the only one, whatever was before has ended, seen by us or by the peer on our
	 * behalf */
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

	if (p->exchanges)
		p->exchanges--;
	if (!observed(s, p))
		return;
	if (p->timed)
		now = base_now_ns();
	timed = base_tuner_timed(&w->of);
	if (timed && p->busy_since) { /* else begun by the peer, on our behalf */
		w->ns += now - p->busy_since;
		w->bytes += length;
	}
	if ((!timed || p->busy_since) && !--w->left) {
		group_ended(s, p, k);
		if (p->timed && !now)
			now = base_now_ns();
	}
	/* what goes on is busy from here on */
	p->busy_since = p->timed && (f->land[0].first || f->land[1].first) ? now : 0;
}

/* ---- where processors are short -------------------------------------------------------------- */

void shm_path_tell(const struct shm *s, struct shm_peer *p, uint64_t length)
{
	const unsigned int k = shm_path_of(length);
	const bool wanted = s->ni->spin_ns ? p->path[k].claims : !s->in_turns[k].now;
	const bool claims = p->cma && wanted;
	_Atomic uint32_t *told = &p->in.ch->claims[k];

	if (atomic_load_explicit(told, memory_order_relaxed) != claims)
		atomic_store_explicit(told, claims, memory_order_relaxed);
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
	if (piped && !pipe) /* left over from when that was the way */
		return;
	/* what was left to a source in vain counts twice, too, which makes the pipe the worse
	 * way */
	base_tuner_ended(w, (ns << 10) * (pipe ? 2 : 1) / (bytes | 1));
	count_trial(s, w, was, pipe);
}
