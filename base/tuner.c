/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See tuner.h.
 */
#include "base/tuner.h"

#define SETTLES_IN 4 /* until both sides use the path, and the caches are filled */

static const struct base_tuner_rule usual = {
	.runs = BASE_TUNER_RUNS,
	.share = 64,
	.first = 8,
	.changed = 64,
	.least = 64,
	.most = 4096,
};

static void find_other(struct base_tuner *w)
{
	do
		w->other = (uint8_t)((w->other + 1) % w->paths);
	while (w->other == w->now);
}

void base_tuner_init_by(struct base_tuner *w, const struct base_tuner_rule *rule,
			unsigned int paths, unsigned int now)
{
	*w = (struct base_tuner){ .rule = rule,
				  .left = rule->first,
				  .paths = (uint8_t)paths,
				  .now = (uint8_t)now,
				  .other = (uint8_t)now };
	find_other(w);
}

void base_tuner_init(struct base_tuner *w, unsigned int paths, unsigned int now)
{
	base_tuner_init_by(w, &usual, paths, now);
}

static void swap_paths(struct base_tuner *w)
{
	const uint8_t other = w->other;

	w->other = w->now;
	w->now = other;
}

static void sort(uint64_t *of, int n)
{
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && of[j - 1] > of[j]; j--) {
			uint64_t t = of[j];

			of[j] = of[j - 1];
			of[j - 1] = t;
		}
}

/* The rest after a change. */
static uint32_t rest_changed(struct base_tuner *w)
{
	const uint32_t rest = w->rule->changed << w->changes;

	if (w->rule->rarer && rest < w->rule->most)
		w->changes++;
	return rest;
}

/* Return to the present path unless the other was better by far. Returns the rest. */
static uint32_t decide(struct base_tuner *w)
{
	const struct base_tuner_rule *r = w->rule;
	uint64_t was, is, rest;

	sort(w->cost[0], r->runs);
	sort(w->cost[1], r->runs);
	was = w->cost[0][r->runs / 2];
	if (w->cost[1][r->all ? r->runs - 1 : r->runs / 2] < was - was / 8)
		return rest_changed(w);
	w->changes = 0;
	swap_paths(w);
	is = w->cost[1][r->runs / 2];
	rest = (uint64_t)r->share * (SETTLES_IN + r->runs) * (is > was ? is - was : 0) / (was | 1);
	return rest < r->least ? r->least : rest > r->most ? r->most : (uint32_t)rest;
}

static void go_on(struct base_tuner *w)
{
	switch (w->phase) {
	case BASE_TUNER_RESTS:
		w->phase = BASE_TUNER_PRESENT;
		w->left = w->rule->runs;
		break;
	case BASE_TUNER_PRESENT:
		w->phase = BASE_TUNER_SETTLES;
		w->left = SETTLES_IN;
		swap_paths(w);
		break;
	case BASE_TUNER_SETTLES:
		w->phase = BASE_TUNER_OTHER;
		w->left = w->rule->runs;
		break;
	default:
		w->phase = BASE_TUNER_RESTS;
		w->left = decide(w);
		find_other(w);
	}
}

void base_tuner_ended(struct base_tuner *w, uint64_t cost)
{
	w->left--;
	if (base_tuner_timed(w))
		w->cost[w->phase == BASE_TUNER_OTHER][w->left] = cost;
	if (!w->left)
		go_on(w);
}
