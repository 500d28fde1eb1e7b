/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Order statistics of benchmark samples.
 */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

int perf_samples_add(struct perf_samples *s, double value)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 4096;
		double *grown = realloc(s->value, room * sizeof(*grown));

		if (!grown)
			return -1;
		s->value = grown;
		s->room = room;
	}
	s->value[s->count++] = value;
	return 0;
}

void perf_samples_fini(struct perf_samples *s)
{
	free(s->value);
	memset(s, 0, sizeof(*s));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value that a share `q` of the sorted samples does not exceed. */
static double quantile(const double *sorted, size_t count, double q)
{
	size_t rank = (size_t)(q * (double)count);

	return sorted[rank < count ? rank : count - 1];
}

/* At least one of them counts. */
static double mean_of_middle(const double *sorted, size_t count)
{
	size_t cut = count / 10;
	double sum = 0;

	for (size_t i = cut; i < count - cut; i++)
		sum += sorted[i];
	return sum / (double)(count - 2 * cut);
}

void perf_stats_of(double *value, size_t count, struct perf_stats *out)
{
	double sum = 0;

	memset(out, 0, sizeof(*out));
	if (!count)
		return;
	qsort(value, count, sizeof(*value), by_value);
	for (size_t i = 0; i < count; i++)
		sum += value[i];
	out->count = count;
	out->min = value[0];
	out->median = quantile(value, count, 0.5);
	out->p99 = quantile(value, count, 0.99);
	out->middle = mean_of_middle(value, count);
	out->mean = sum / (double)count;
}

double perf_spread(const double *value, size_t count, size_t n)
{
	double low, high;

	if (count < n)
		return 1e9;
	low = high = value[count - 1];
	for (size_t i = count - n; i < count; i++) {
		low = value[i] < low ? value[i] : low;
		high = value[i] > high ? value[i] : high;
	}
	return low > 0 ? (high - low) / low : 1e9;
}
