/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The adaptive measuring loop. The number of samples grows until a repetition takes the least time
 * asked for, which also warms up. Repetitions follow until the medians of the last three agree, or
 * three times the least number is done. Rank 0 decides and tells rank 1 each count. After each
 * repetition both measure how far apart their cores are (line.h).
 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "peer.h"

#define STEADY    0.02 /* the last three medians agree this well */
#define FIRST_TRY 16   /* samples */
#define MOST_REPS 100

static uint64_t ticks[PERF_MOST_SAMPLES];

/* How far apart the two cores are just now. Both ranks. */
static double look_at_line(struct perf *p)
{
	return p->board ? perf_line_look(&p->board->line, &p->turn, !p->rank) : 0;
}

/* One repetition of rank 0; its duration in ns. The samples are in `ticks`. */
static double repetition(struct perf *p, const struct perf_pattern *pattern, void *arg,
			 size_t count, uint64_t seed, double *line)
{
	uint64_t start;
	double took;

	perf_watch("measuring %s", pattern->name);
	if (pattern->prepare)
		pattern->prepare(p, arg, seed);
	perf_ctl_send(p, count);
	(void)perf_ctl_recv(p);
	start = perf_now();
	pattern->run0(p, arg, count, ticks);
	took = perf_ns(perf_now() - start);
	*line = look_at_line(p);
	if (pattern->verify)
		pattern->verify(p, arg, seed);
	return took;
}

/* How many samples take the least time of a repetition. */
static size_t find_count(struct perf *p, const struct perf_pattern *pattern, void *arg,
			 uint64_t *seed)
{
	double want = p->opt.min_time_ms * 1e6;
	size_t count = FIRST_TRY;
	double line;

	for (;;) {
		double took = repetition(p, pattern, arg, count, (*seed)++, &line), more;

		if (took >= 0.8 * want || count == PERF_MOST_SAMPLES)
			return count;
		/* At most tenfold: the first messages are slow. */
		more = (double)count * (took > 0.1 * want ? 1.1 * want / took : 10);
		count = more < PERF_MOST_SAMPLES ? (size_t)more : PERF_MOST_SAMPLES;
	}
}

static double keep(struct perf_samples *all, size_t count)
{
	static double sorted[PERF_MOST_SAMPLES];
	struct perf_stats stats;

	for (size_t i = 0; i < count; i++) {
		sorted[i] = perf_ns(ticks[i]);
		if (perf_samples_add(all, sorted[i]))
			perf_fail("out of memory for samples");
	}
	perf_stats_of(sorted, count, &stats);
	return stats.median;
}

static void measure(struct perf *p, const struct perf_pattern *pattern, void *arg,
		    struct perf_result *result)
{
	struct perf_samples all = { 0 };
	double median[MOST_REPS], line[MOST_REPS];
	unsigned most = 3 * p->opt.repeat < MOST_REPS ? 3 * p->opt.repeat : MOST_REPS, reps = 0;
	struct perf_stats lines;
	uint64_t seed = 1;
	size_t count = find_count(p, pattern, arg, &seed);

	do {
		repetition(p, pattern, arg, count, seed++, &line[reps]);
		median[reps++] = keep(&all, count);
	} while (reps < most && (reps < p->opt.repeat || perf_spread(median, reps, 3) > STEADY));
	perf_ctl_send(p, 0);
	(void)perf_ctl_recv(p);
	result->repetitions = reps;
	result->spread = reps < 3 ? perf_spread(median, reps, reps) : perf_spread(median, reps, 3);
	perf_stats_of(all.value, all.count, &result->sample);
	perf_samples_fini(&all);
	perf_stats_of(line, reps, &lines);
	result->line_ns = lines.median;
	result->line_worst = line[reps - 1];
	if (p->line_worst < result->line_worst)
		p->line_worst = result->line_worst;
}

/* Rank 1 repeats what rank 0 asks for until that is nothing. */
static void serve(struct perf *p, const struct perf_pattern *pattern, void *arg)
{
	uint64_t seed = 1;

	for (;; seed++) {
		size_t count;

		perf_watch("answering %s", pattern->name);
		count = (size_t)perf_ctl_recv(p);
		if (count && pattern->prepare)
			pattern->prepare(p, arg, seed);
		perf_ctl_send(p, 1);
		if (!count)
			return;
		pattern->run1(p, arg, count);
		look_at_line(p);
		if (pattern->verify)
			pattern->verify(p, arg, seed);
	}
}

void perf_measure(struct perf *p, const struct perf_pattern *pattern, void *arg,
		  struct perf_result *result)
{
	memset(result, 0, sizeof(*result));
	if (p->rank)
		serve(p, pattern, arg);
	else
		measure(p, pattern, arg, result);
}
