/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The mean of some runs and its confidence interval, by Student's distribution.
 */
#include "bench.h"

#include <math.h>

/* 95 % quantile of Student's t with so many degrees of freedom: two-sided, 90 % lie within. */
static double student(int freedom)
{
	static const double t[] = { 0,     6.314, 2.920, 2.353, 2.132, 2.015, 1.943,
				    1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
				    1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725 };
	const int last = sizeof(t) / sizeof(t[0]) - 1;

	/* beyond, an approximation that is right to a thousandth */
	return freedom <= last ? t[freedom] : 1.645 + 1.525 / freedom;
}

struct bench_mean bench_mean_of(const double *value, int count)
{
	struct bench_mean m = { 0, 0 };
	double squares = 0;

	for (int i = 0; i < count; i++)
		m.mean += value[i] / count;
	for (int i = 0; i < count; i++)
		squares += (value[i] - m.mean) * (value[i] - m.mean);
	if (count > 1)
		m.half = student(count - 1) * sqrt(squares / (count - 1) / count);
	return m;
}
