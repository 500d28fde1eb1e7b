/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Results: a table on standard output, and a file of JSON with every run.
 */
#include "bench.h"

#include <string.h>

static FILE *json;
static bool first = true;

void bench_report_begin(const struct bench_options *o)
{
	if (!o->json)
		return;
	json = fopen(o->json, "w");
	if (!json)
		bench_fail("cannot write %s: %m", o->json);
	fprintf(json,
		"{ \"program\": \"rwapi_bench\", \"ranks\": %d, \"runs\": %d, "
		"\"seconds\": %g, \"confidence\": 0.9,\n\"results\": [",
		bench_size, o->runs, o->seconds);
}

void bench_title(const char *name, const char *what)
{
	printf("\n%s: %s\n%12s %10s %12s %9s %12s %9s\n", name, what, "", "bytes", "t/n, ns", "+-",
	       "ns/t, MB/s", "+-");
}

static void record_point(const char *test, const char *kind, size_t bytes, const double *ns,
			 int runs, struct bench_mean latency, struct bench_mean rate)
{
	fprintf(json,
		"%s\n{ \"test\": \"%s\", \"kind\": \"%s\", \"bytes\": %zu, \"ns\": %.2f, "
		"\"ns_half\": %.2f, \"mb_s\": %.3f, \"mb_s_half\": %.3f, \"run_ns\": [",
		first ? "" : ",", test, kind, bytes, latency.mean, latency.half, rate.mean,
		rate.half);
	for (int i = 0; i < runs; i++)
		fprintf(json, "%s%.2f", i ? ", " : "", ns[i]);
	fputs("] }", json);
	first = false;
}

void bench_point(const char *test, const char *kind, size_t bytes, const double *ns, int runs)
{
	double mb_s[BENCH_RUNS];
	struct bench_mean latency, rate;

	for (int i = 0; i < runs; i++)
		mb_s[i] = (double)bytes / ns[i] * 1e3;
	latency = bench_mean_of(ns, runs);
	rate = bench_mean_of(mb_s, runs);
	printf("%12s %10zu %12.1f %9.1f %12.2f %9.2f\n", kind, bytes, latency.mean, latency.half,
	       rate.mean, rate.half);
	fflush(stdout);
	if (json)
		record_point(test, kind, bytes, ns, runs, latency, rate);
}

int bench_report_end(void)
{
	bool failed = fflush(stdout) != 0;

	if (json) {
		fputs("\n] }\n", json);
		failed |= fclose(json) != 0;
	}
	if (failed)
		fputs("rwapi_bench: the results could not be written\n", stderr);
	return failed;
}
