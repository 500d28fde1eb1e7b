/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The cost of matching: the time per put of a stream of 8-byte puts while the target has 1 to
 * 100,000 entries posted on the portal. The puts match at the front, in the middle, at the end of
 * the list and in random order. The same follows behind 8 wildcard entries that do not match. Then
 * with entries as a message passing library posts its receives: none of them exact, some open for
 * any source or any tag, and catch-all entries at the end of the list. It is the rate of a stream,
 * so that the time is the engine's and not that of a round trip; the slower of the two sides
 * decides, and that is the target when matching is slow.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rate.h"
#include "report.h"

#define WILDCARDS 8
#define CATCHALLS 4
#define ORDER     ((size_t)1 << 17) /* of the random sequence, and more than most lists */
#define COLUMNS   8

enum place { FRONT, MIDDLE, END, RANDOM };
static const char *const place_name[] = { "front", "middle", "end", "random" };

/* The kinds of entries. Bits of receives: protocol (3), context (13), source (16), tag (32). */
enum kind { EXACT, NAMED, ANY_SOURCE, ANY_TAG, MIXED };
static const char *const kind_name[] = { "exact", "named", "any source", "any tag", "mixed" };
#define PROTOCOL (UINT64_C(7) << 61)
#define EAGER    (UINT64_C(1) << 61) /* the protocol of all puts here */
#define CONTEXT  48
#define SOURCE   (UINT64_C(0xffff) << 32)
#define TAG      UINT64_C(0x7fffffff)

static struct perf_target order[ORDER];

/* The next of a fixed pseudo-random sequence. */
static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static enum kind kind_of(enum kind kind, size_t i)
{
	return kind == MIXED ? NAMED + (enum kind)(i % 3) : kind;
}

/* The bits of entry `i`. Each kind of receives has contexts of its own, so that a put fits one
 * entry only. */
static ptl_match_bits_t entry_bits(enum kind kind, size_t i)
{
	switch (kind_of(kind, i)) {
	case NAMED:
		return UINT64_C(1) << CONTEXT | UINT64_C(7) << 32 | i;
	case ANY_SOURCE:
		return UINT64_C(2) << CONTEXT | i;
	case ANY_TAG:
		return (3 + (i >> 16)) << CONTEXT | (i & 0xffff) << 32;
	default:
		return PERF_BITS + i;
	}
}

static ptl_match_bits_t entry_ignore(enum kind kind, size_t i)
{
	switch (kind_of(kind, i)) {
	case NAMED:
		return PROTOCOL;
	case ANY_SOURCE:
		return PROTOCOL | SOURCE;
	case ANY_TAG:
		return PROTOCOL | TAG;
	default:
		return 0;
	}
}

/* One of the puts that entry `i` takes: what it ignores is anything. */
static struct perf_target target(enum kind kind, size_t i, uint64_t *state)
{
	ptl_match_bits_t ignore = entry_ignore(kind, i) & ~PROTOCOL;
	ptl_match_bits_t any = (uint64_t)random_next(state) << 32 | random_next(state);
	ptl_match_bits_t bits = entry_bits(kind, i) | (any & ignore);

	if (kind != EXACT)
		bits |= EAGER;
	return (struct perf_target){ bits, i };
}

static void choose_order(enum kind kind, enum place place, size_t entries)
{
	const size_t fixed[] = { [FRONT] = 0, [MIDDLE] = entries / 2, [END] = entries - 1 };
	uint64_t state = 1;

	for (size_t i = 0; i < ORDER; i++) {
		size_t n = place == RANDOM ? random_next(&state) % entries : fixed[place];

		order[i] = target(kind, n, &state);
	}
}

struct list {
	enum kind kind;
	size_t entries;
	bool behind_wildcards;
	ptl_handle_me_t *me;
	size_t posted; /* all of them */
};

static void post_one(struct perf *p, struct list *l, ptl_match_bits_t bits, ptl_match_bits_t ignore,
		     ptl_ins_pos_t where, uint64_t number)
{
	ptl_process_id_t anyone = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .start = p->rx,
			.length = p->buf_len,
			.threshold = PTL_MD_THRESH_INF,
			.options =
				PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			.user_ptr = (void *)(uintptr_t)number,
			.eq_handle = p->eq };
	ptl_handle_me_t *me = &l->me[l->posted++];

	perf_ok(PtlMEAttach(p->ni, PERF_PT_DATA, ignore & SOURCE ? anyone : p->other, bits, ignore,
			    PTL_RETAIN, where, me),
		"PtlMEAttach");
	perf_ok(PtlMDAttach(*me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

/* The target's list. Wildcard and catch-all entries have a number that no put has. */
static void post(struct perf *p, struct list *l)
{
	l->me = malloc((l->entries + WILDCARDS + CATCHALLS) * sizeof(*l->me));
	if (!l->me)
		perf_fail("out of memory for %zu handles", l->entries);
	l->posted = 0;
	for (int i = 0; l->kind != EXACT && i < CATCHALLS; i++)
		post_one(p, l, EAGER, ~PROTOCOL, PTL_INS_AFTER, UINT64_MAX);
	for (size_t i = 0; i < l->entries; i++) {
		/* in front of what is there: the last comes first */
		size_t n = l->entries - 1 - i;

		post_one(p, l, entry_bits(l->kind, n), entry_ignore(l->kind, n), PTL_INS_BEFORE, n);
	}
	/* looked at, because of their ignore bits, and never fit */
	for (int i = 0; l->behind_wildcards && i < WILDCARDS; i++)
		post_one(p, l, ~PERF_BITS, 0xffff, PTL_INS_BEFORE, UINT64_MAX);
}

static void take_down(struct perf *p, struct list *l)
{
	for (size_t i = 0; i < l->posted; i++)
		perf_withdraw(p, l->me[i]);
	free(l->me);
}

/* The time of a put; true in *moved if the figure was marked. */
static double point(struct perf *p, const struct list *l, enum place place, double one, bool *moved)
{
	char name[96], variant[48];
	struct perf_pattern pattern = { name, perf_stream_prepare, perf_stream_run0,
					perf_stream_run1, perf_stream_verify };
	struct perf_stream s = { .window = perf_stream_window(p),
				 .order = order,
				 .order_mask = ORDER - 1 };
	struct perf_point pt = { .test = l->kind == EXACT ? "match" : "receives",
				 .variant = variant,
				 .size = l->entries,
				 .unit = "ns" };
	struct perf_result r;
	double ns;

	if (l->kind == EXACT)
		snprintf(variant, sizeof(variant), "%s%s", place_name[place],
			 l->behind_wildcards ? ", behind 8 wildcards" : "");
	else
		snprintf(variant, sizeof(variant), "%s, %s", place_name[place], kind_name[l->kind]);
	snprintf(name, sizeof(name), "matching among %zu entries, %s", l->entries, variant);
	choose_order(l->kind, place, l->entries);
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
	*moved |= *perf_mark(p, &r) != '\0';
	return ns;
}

/* A table: lists, and for each the places where puts match; COLUMNS in all. */
struct table {
	struct {
		enum kind kind;
		bool behind_wildcards;
	} list[4];
	int lists;
	enum place place[4];
	int places;
	const char *worst; /* name of the ratio */
};

static const struct table exact = { { { EXACT, false }, { EXACT, true } },
				    2,
				    { FRONT, MIDDLE, END, RANDOM },
				    4,
				    "match worst ratio" };
static const struct table receives = {
	{ { NAMED, false }, { ANY_SOURCE, false }, { ANY_TAG, false }, { MIXED, false } },
	4,
	{ FRONT, RANDOM },
	2,
	"receives worst ratio"
};

/* All columns of one number of entries; the time of the first column. */
static double row(struct perf *p, const struct table *t, size_t entries, double one)
{
	double ns[COLUMNS] = { 0 }, worst = 0;
	bool moved = false;
	int n = 0;

	for (int i = 0; i < t->lists; i++) {
		struct list l = { .kind = t->list[i].kind,
				  .entries = entries,
				  .behind_wildcards = t->list[i].behind_wildcards };

		perf_watch("posting %zu entries", entries);
		if (p->rank)
			post(p, &l);
		perf_ctl_barrier(p);
		for (int k = 0; k < t->places; k++) {
			ns[n] = point(p, &l, t->place[k], one > 0 ? one : ns[0], &moved);
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
		 moved ? " *" : "");
	perf_record_plain(p, t->worst, NULL, entries, "x", one > 0 ? worst / one : 0);
	return ns[0];
}

static void rows(struct perf *p, const struct table *t)
{
	const struct perf_list *entries = &p->opt.entries;
	double first = row(p, t, entries->item[0], 0);

	for (int i = 1; i < entries->count; i++)
		row(p, t, entries->item[i], first);
}

void perf_match(struct perf *p)
{
	size_t first = p->opt.entries.item[0];

	perf_buffers(p, perf_stream_window(p) * 8);
	perf_title(p, "match", "time per put of a stream of 8-byte puts, by posted entries, ns");
	perf_say(p, "%9s %35s  %35s %8s", "", "match at", "behind 8 wildcard entries, at", "worst");
	perf_say(p, "%9s %8s %8s %8s %8s  %8s %8s %8s %8s %8s", "entries", "front", "middle", "end",
		 "random", "front", "middle", "end", "random", "ratio");
	rows(p, &exact);
	perf_say(p,
		 "\n   the same with receives that ignore the protocol, and %d catch-all entries",
		 CATCHALLS);
	perf_say(p, "%9s %17s %17s  %17s %17s %8s", "", "source and tag", "any source", "any tag",
		 "all three kinds", "worst");
	perf_say(p, "%9s %8s %8s %8s %8s  %8s %8s %8s %8s %8s", "entries", "front", "random",
		 "front", "random", "front", "random", "front", "random", "ratio");
	rows(p, &receives);
	perf_say(p, "   worst ratio: the largest of a line against %zu %s matched at the front",
		 first, first == 1 ? "entry" : "entries");
}
