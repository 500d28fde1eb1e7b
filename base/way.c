/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 */
#include "base/way.h"

#define SETTLES_IN  4 /* until both sides know, and the caches are filled */
#define REST_FIRST  8
#define REST_LEAST  64
#define REST_MOST   4096
#define COST_FACTOR UINT64_C(64) /* of all time a trial may cost one part in so many */

static void find_other(struct base_way *w)
{
	do
		w->other = (uint8_t)((w->other + 1) % w->ways);
	while (w->other == w->now);
}

void base_way_init(struct base_way *w, unsigned int ways, unsigned int now)
{
	*w = (struct base_way){ .left = REST_FIRST,
				.ways = (uint8_t)ways,
				.now = (uint8_t)now,
				.other = (uint8_t)now };
	find_other(w);
}

static void swap(struct base_way *w)
{
	const uint8_t other = w->other;

	w->other = w->now;
	w->now = other;
}

static uint64_t median(uint64_t *of)
{
	for (int i = 1; i < BASE_WAY_RUNS; i++)
		for (int j = i; j > 0 && of[j - 1] > of[j]; j--) {
			uint64_t t = of[j];

			of[j] = of[j - 1];
			of[j - 1] = t;
		}
	return of[BASE_WAY_RUNS / 2];
}

/* Goes back if the other way was not better by far. How long it rests then. */
static uint32_t decide(struct base_way *w)
{
	uint64_t was = median(w->cost[0]), is = median(w->cost[1]), rest;

	if (is < was - was / 8)
		return REST_LEAST;
	swap(w);
	rest = COST_FACTOR * (SETTLES_IN + BASE_WAY_RUNS) * (is > was ? is - was : 0) / (was | 1);
	return rest < REST_LEAST ? REST_LEAST : rest > REST_MOST ? REST_MOST : (uint32_t)rest;
}

static void go_on(struct base_way *w)
{
	switch (w->phase) {
	case BASE_WAY_RESTS:
		w->phase = BASE_WAY_PRESENT;
		w->left = BASE_WAY_RUNS;
		break;
	case BASE_WAY_PRESENT:
		w->phase = BASE_WAY_SETTLES;
		w->left = SETTLES_IN;
		swap(w);
		break;
	case BASE_WAY_SETTLES:
		w->phase = BASE_WAY_OTHER;
		w->left = BASE_WAY_RUNS;
		break;
	default:
		w->phase = BASE_WAY_RESTS;
		w->left = decide(w);
		find_other(w);
	}
}

void base_way_ended(struct base_way *w, uint64_t cost)
{
	w->left--;
	if (base_way_timed(w))
		w->cost[w->phase == BASE_WAY_OTHER][w->left % BASE_WAY_RUNS] = cost;
	if (!w->left)
		go_on(w);
}
