/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What matching costs: the time per put of a stream of 8-byte puts while the target has 1 to
 * 100,000 entries posted on the portal, for puts that match at the front, in the middle, at the
 * end of the list and in random order, and the same again behind 8 wildcard entries that do not
 * match. It is the rate of a stream, so that the time is the engine's and not that of a round trip;
 * the slower of the two sides decides, and that is the target when matching is slow.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rate.h"
#include "report.h"

#define WILDCARDS 8
#define ORDER     ((size_t)1 << 17) /* of the random sequence, and more than most lists */

enum place { FRONT, MIDDLE, END, RANDOM, PLACES };
static const char *const place_name[PLACES] = { "front", "middle", "end", "random" };

static uint32_t order[ORDER];

/* The next of a fixed pseudo-random sequence. */
static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void choose_order(enum place place, size_t entries)
{
	uint64_t state = 1;

	for (size_t i = 0; i < ORDER; i++) {
		switch (place) {
		case FRONT:
			order[i] = 0;
			break;
		case MIDDLE:
			order[i] = (uint32_t)(entries / 2);
			break;
		case END:
			order[i] = (uint32_t)(entries - 1);
			break;
		default:
			order[i] = (uint32_t)(random_next(&state) % entries);
		}
	}
}

/* Entries that are looked at, because of their ignore bits, and never fit. */
static ptl_handle_me_t wildcard(struct perf *p)
{
	ptl_process_id_t anyone = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .start = p->rx,
			.length = 8,
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
			.eq_handle = p->eq };
	ptl_handle_me_t me;

	perf_ok(PtlMEAttach(p->ni, PERF_PT_DATA, anyone, ~PERF_BITS, 0xffff, PTL_RETAIN,
			    PTL_INS_BEFORE, &me),
		"PtlMEAttach");
	perf_ok(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
	return me;
}

struct list {
	ptl_handle_me_t wild[WILDCARDS], *me;
	size_t entries;
	bool behind_wildcards;
	bool moved; /* a figure of this row was marked */
};

/* The target's list: entry i has the bits PERF_BITS + i. */
static void post(struct perf *p, struct list *l, size_t window)
{
	l->me = malloc(l->entries * sizeof(*l->me));
	if (!l->me)
		perf_fail("out of memory for %zu handles", l->entries);
	for (size_t i = 0; i < l->entries; i++)
		l->me[i] = perf_expose(p, PERF_BITS + i, p->rx, window * 8, p->eq,
				       (void *)(uintptr_t)i);
	for (int i = 0; l->behind_wildcards && i < WILDCARDS; i++)
		l->wild[i] = wildcard(p);
}

static void take_down(struct perf *p, struct list *l)
{
	for (int i = 0; l->behind_wildcards && i < WILDCARDS; i++)
		perf_withdraw(p, l->wild[i]);
	for (size_t i = 0; i < l->entries; i++)
		perf_withdraw(p, l->me[i]);
	free(l->me);
}

static double point(struct perf *p, struct list *l, enum place place, double one)
{
	char name[96], variant[48];
	struct perf_pattern pattern = { name, perf_stream_prepare, perf_stream_run0,
					perf_stream_run1, perf_stream_verify };
	struct perf_stream s = { .window = perf_stream_window(p),
				 .order = order,
				 .order_mask = ORDER - 1 };
	struct perf_point pt = {
		.test = "match", .variant = variant, .size = l->entries, .unit = "ns"
	};
	struct perf_result r;
	double ns;

	snprintf(variant, sizeof(variant), "%s%s", place_name[place],
		 l->behind_wildcards ? ", behind 8 wildcards" : "");
	snprintf(name, sizeof(name), "matching among %zu entries, %s", l->entries, variant);
	choose_order(place, l->entries);
	s.md = perf_bind(p, p->tx, s.window * 8, PERF_ACKS);
	perf_measure(p, &pattern, &s, &r);
	perf_release(p, s.md);
	pt.scale = 1 / perf_stream_puts(&s);
	ns = perf_values_of(&pt, &r).median;
	if (one > 0) {
		pt.floor = "1 entry";
		pt.ratio = ns / one;
	}
	perf_record(p, &pt, &r);
	l->moved |= *perf_mark(p, &r) != '\0';
	return ns;
}

/* All columns of one number of entries; the time of the first column. */
static double row(struct perf *p, size_t entries, double one)
{
	struct list l = { .entries = entries };
	double ns[2 * PLACES] = { 0 }, worst = 0;
	int n = 0;

	for (int wild = 0; wild < 2; wild++) {
		l.behind_wildcards = wild;
		perf_watch("posting %zu entries", entries);
		if (p->rank)
			post(p, &l, perf_stream_window(p));
		perf_ctl_barrier(p);
		for (int place = FRONT; place < PLACES; place++) {
			ns[n] = point(p, &l, (enum place)place, one > 0 ? one : ns[0]);
			worst = ns[n] > worst ? ns[n] : worst;
			n++;
		}
		perf_watch("unlinking %zu entries", entries);
		if (p->rank)
			take_down(p, &l);
		perf_ctl_barrier(p);
	}
	if (one <= 0)
		one = ns[0];
	perf_say(p, "%9zu %8.1f %8.1f %8.1f %8.1f  %8.1f %8.1f %8.1f %8.1f %8.2f%s", entries, ns[0],
		 ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[7], one > 0 ? worst / one : 0,
		 l.moved ? " *" : "");
	perf_record_plain(p, "match worst ratio", NULL, entries, "x", one > 0 ? worst / one : 0);
	return ns[0];
}

void perf_match(struct perf *p)
{
	const struct perf_list *entries = &p->opt.entries;
	double first;

	perf_buffers(p, perf_stream_window(p) * 8);
	perf_title(p, "match", "time per put of a stream of 8-byte puts, by posted entries, ns");
	perf_say(p, "%9s %35s  %35s %8s", "", "match at", "behind 8 wildcard entries, at", "worst");
	perf_say(p, "%9s %8s %8s %8s %8s  %8s %8s %8s %8s %8s", "entries", "front", "middle", "end",
		 "random", "front", "middle", "end", "random", "ratio");
	first = row(p, entries->item[0], 0);
	for (int i = 1; i < entries->count; i++)
		row(p, entries->item[i], first);
	perf_say(p, "   worst ratio: the largest of a line against %zu %s matched at the front",
		 entries->item[0], entries->item[0] == 1 ? "entry" : "entries");
}
