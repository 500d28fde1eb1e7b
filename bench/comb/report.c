/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * comb's tables, and its figures as JSON: those of bench/lib/FORMAT.md without what only the
 * program that starts it knows.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "comb.h"

enum { TEXT = 32 };

static FILE *text, *json;
static int figures;
static struct comb_point last; /* whose table is open */

static const char *side_name(enum comb_side side)
{
	return side == COMB_RECEIVE ? "receive" : side == COMB_SEND ? "send" : "both";
}

static const char *work_name(enum comb_work work)
{
	return work == COMB_COMPUTE ? "compute" : "memory";
}

static void size_text(char out[TEXT], size_t size)
{
	if (size >= 1 << 20 && !(size % (1 << 20)))
		snprintf(out, TEXT, "%zu MiB", size >> 20);
	else if (size >= 1024 && !(size % 1024))
		snprintf(out, TEXT, "%zu KiB", size >> 10);
	else
		snprintf(out, TEXT, "%zu B", size);
}

int comb_report_start(const struct comb_options *o)
{
	text = stdout;
	if (!o->json)
		return 0;
	if (!strcmp(o->json, "-")) {
		json = stdout;
		text = stderr;
	} else {
		json = fopen(o->json, "w");
	}
	if (!json) {
		fprintf(stderr, "comb: cannot write %s: %s\n", o->json, strerror(errno));
		return -1;
	}
	fprintf(json, "{\"format\": 1, \"program\": \"comb\", \"results\": [");
	return 0;
}

/* ---- tables ---- */

static int same_table(const struct comb_point *a, const struct comb_point *b)
{
	return a->method == b->method && a->side == b->side && a->work == b->work &&
	       a->tests == b->tests && a->batch == b->batch && a->size == b->size;
}

static void title(const struct comb_point *p, const struct comb_result *r)
{
	char size[TEXT];

	size_text(size, p->size);
	fprintf(text, "\n== %s, %s, %s x %d, work: %s",
		p->method == COMB_PWW ? "post-work-wait" : "polling", side_name(p->side), size,
		p->batch, work_name(p->work));
	if (p->method == COMB_POLLING) {
		fprintf(text, "\n%12s %8s %8s %8s\n%12s %8s %8s %8s\n", "work between", "avail.",
			"cpu", "GB/s", "polls, us", "%", "%", "");
		return;
	}
	fprintf(text, "%s; without work they take %.1f us\n",
		p->tests ? ", one MPI_Test in it" : "", r->transfer / 1e3);
	fprintf(text, "%10s %10s %10s %8s %8s %8s %8s %8s %8s %8s\n", "work asked", "without",
		"with", "post", "wait", "avail.", "work", "cpu", "wait of", "GB/s");
	fprintf(text, "%10s %10s %10s %8s %8s %8s %8s %8s %8s %8s\n", "us", "messages, us",
		"them, us", "us", "us", "%", "%", "%", "all, %", "");
}

static void row(const struct comb_point *p, const struct comb_result *r)
{
	if (p->method == COMB_POLLING)
		fprintf(text, "%12.2f %8.1f %8.1f %8.2f\n", p->interval / 1e3, r->availability,
			r->cpu_availability, r->bandwidth);
	else
		fprintf(text, "%10.1f %12.1f %10.1f %8.2f %8.2f %8.1f %8.1f %8.1f %8.1f %8.2f\n",
			p->interval / 1e3, r->work_dry / 1e3, r->work / 1e3, r->post / 1e3,
			r->wait / 1e3, r->availability, r->work_availability, r->cpu_availability,
			r->wait_share, r->bandwidth);
}

/* ---- JSON ---- */

static void value(const char *name, double number, int is_last)
{
	fprintf(json, "\"%s\": %.4f%s", name, number, is_last ? "}}" : ", ");
}

static void figure(const struct comb_point *p, const struct comb_result *r)
{
	int pww = p->method == COMB_PWW;

	fprintf(json,
		"%s\n {\"test\": \"%s\", \"variant\": \"%s%s%s\", \"size\": %zu, \"ranks\": 2, "
		"\"x\": %.0f, \"unit\": \"%%\", \"median\": %.4f, \"p99\": %.4f, \"best\": %.4f, "
		"\"side\": \"%s\", \"work_kind\": \"%s\", \"tests\": %d, \"batch\": %d, "
		"\"values\": {",
		figures++ ? "," : "", pww ? "comb_pww" : "comb_polling", side_name(p->side),
		p->tests ? " test" : "", p->work == COMB_MEMORY ? " memory" : "", p->size,
		p->interval, r->availability, r->availability_p99, r->availability_best,
		side_name(p->side), work_name(p->work), p->tests, p->batch);
	value("work_dry", r->work_dry, 0);
	if (pww) {
		value("work", r->work, 0);
		value("post", r->post, 0);
		value("wait", r->wait, 0);
		value("transfer", r->transfer, 0);
		value("work_availability", r->work_availability, 0);
		value("wait_share", r->wait_share, 0);
	} else {
		value("time", r->time, 0);
	}
	value("availability", r->availability, 0);
	value("cpu_availability", r->cpu_availability, 0);
	value("bandwidth", r->bandwidth, 1);
}

void comb_report_point(const struct comb_point *p, const struct comb_result *r)
{
	if (!same_table(p, &last))
		title(p, r);
	last = *p;
	row(p, r);
	fflush(text);
	if (json)
		figure(p, r);
}

int comb_report_end(void)
{
	int failed;

	if (!json)
		return 0;
	fprintf(json, "\n]}\n");
	failed = ferror(json);
	if (json == stdout ? fflush(json) : fclose(json))
		failed = 1;
	if (failed)
		fprintf(stderr, "comb: cannot write the JSON: %s\n", strerror(errno));
	return failed ? -1 : 0;
}
