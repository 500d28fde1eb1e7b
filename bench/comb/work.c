/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The work that comb does beside messages: a chain of multiplications in a register, or a sweep
 * over an array that changes each line of it. Both are calibrated, so that work can be asked for
 * by its time; what it takes without messages is measured again beside each figure.
 */
#include <stdlib.h>

#include "../ptlperf/clock.h"
#include "comb.h"

enum { LINE = 8 /* doubles */, TRIES = 7 };

static double *array;
static size_t array_lines, at_line;
static double per_ns[2];

static void compute(uint64_t count)
{
	uint64_t x = count;

	while (count--) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x)); /* not folded into fewer steps */
	}
}

/* Goes on where it stopped the last time. */
static void sweep(uint64_t count)
{
	size_t at = at_line;

	while (count--) {
		double *line = array + at * LINE;

		for (int i = 0; i < LINE; i++)
			line[i] = line[i] * 0.999 + 1.0;
		__asm__ volatile("" : : "r"(line) : "memory");
		at = at + 1 < array_lines ? at + 1 : 0;
	}
	at_line = at;
}

void comb_work_run(enum comb_work work, uint64_t count)
{
	if (work == COMB_COMPUTE)
		compute(count);
	else
		sweep(count);
}

static double time_of(enum comb_work work, uint64_t count)
{
	uint64_t start = perf_now();

	comb_work_run(work, count);
	return perf_ns(perf_now() - start);
}

/* The fastest of some tries of a millisecond: the work as it is when nobody interferes. */
static void calibrate(enum comb_work work)
{
	uint64_t count = 1000;
	double best;

	while (time_of(work, count) < 1e6)
		count *= 2;
	best = time_of(work, count);
	for (int i = 1; i < TRIES; i++) {
		double took = time_of(work, count);

		best = took < best ? took : best;
	}
	per_ns[work] = (double)count / best;
}

void comb_work_init(size_t bytes)
{
	perf_clock_init();
	array_lines = bytes / (LINE * sizeof(double));
	array = aligned_alloc(LINE * sizeof(double), array_lines * LINE * sizeof(double));
	if (!array)
		comb_fail("out of memory for an array of %zu bytes; see --array", bytes);
	for (size_t i = 0; i < array_lines * LINE; i++)
		array[i] = 1.0;
	calibrate(COMB_COMPUTE);
	calibrate(COMB_MEMORY);
}

void comb_work_fini(void)
{
	free(array);
	array = NULL;
}

uint64_t comb_work_count(enum comb_work work, double ns)
{
	double count = ns * per_ns[work];

	return count < 1 ? 1 : (uint64_t)count;
}
