/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Text tables on standard output and a JSON file with one figure per line.
 */
#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "link.h"

struct perf_report {
	json_t *machine, *results;
	int aims; /* printed so far */
	uint64_t start;
	FILE *text; /* tables; standard error when the JSON goes to standard output */
};

/* ---- the machine ---- */

static void cpu_model(char *buf, size_t len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, len, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (colon && !strncmp(line, "model name", 10)) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(buf, len, "%s", colon + 2);
			break;
		}
	}
	if (f)
		fclose(f);
}

static json_t *describe_machine(struct perf *p)
{
	struct utsname u;
	char cpu[128];

	cpu_model(cpu, sizeof(cpu));
	uname(&u);
	return json_pack("{s:s, s:s, s:s, s:b, s:f, s:b, s:s}", "cpu", cpu, "kernel", u.release,
			 "arch", u.machine, "pinned", p->core >= 0, "timer_ns", perf_clock_cost(),
			 "same_machine", p->board != NULL, "wait",
			 p->opt.poll ? "PtlEQGet" : "PtlEQWait");
}

void perf_report_start(struct perf *p)
{
	struct perf_report *r;

	if (p->rank)
		return;
	r = calloc(1, sizeof(*r));
	if (!r)
		perf_fail("out of memory");
	r->machine = describe_machine(p);
	r->results = json_array();
	if (!r->machine || !r->results)
		perf_fail("out of memory for the report");
	r->text = p->opt.json && !strcmp(p->opt.json, "-") ? stderr : stdout;
	r->start = perf_now();
	p->report = r;
	perf_say(p, "ptlperf on %s, %s, %s events with %s; reading the timer costs %.0f ns",
		 json_string_value(json_object_get(r->machine, "cpu")),
		 p->core >= 0 ? "each process pinned to a core" : "processes not pinned",
		 p->opt.poll ? "polling" : "waiting for", p->opt.poll ? "PtlEQGet" : "PtlEQWait",
		 json_real_value(json_object_get(r->machine, "timer_ns")));
}

/* ---- text ---- */

void perf_say(struct perf *p, const char *fmt, ...)
{
	va_list ap;

	if (p->rank)
		return;
	va_start(ap, fmt);
	vfprintf(p->report->text, fmt, ap);
	va_end(ap);
	fputc('\n', p->report->text);
	fflush(p->report->text);
}

void perf_title(struct perf *p, const char *name, const char *what)
{
	p->line_worst = 0;
	perf_say(p, "\n== %s: %s", name, what);
}

const char *perf_size_text(char *buf, size_t size)
{
	if (size >= (1u << 20) && !(size % (1u << 20)))
		snprintf(buf, PERF_SIZE_TEXT, "%zu MiB", size >> 20);
	else if (size >= 1024 && !(size % 1024))
		snprintf(buf, PERF_SIZE_TEXT, "%zu KiB", size >> 10);
	else
		snprintf(buf, PERF_SIZE_TEXT, "%zu", size);
	return buf;
}

/* ---- figures ---- */

struct perf_values perf_values_of(const struct perf_point *pt, const struct perf_result *r)
{
	const struct perf_stats *s = &r->sample;

	if (!s->count)
		return (struct perf_values){ 0 };
	if (pt->is_rate)
		return (struct perf_values){ pt->scale / s->median, pt->scale / s->p99,
					     pt->scale / s->min };
	return (struct perf_values){ s->median * pt->scale, s->p99 * pt->scale,
				     s->min * pt->scale };
}

#define MOVED 2.5 /* times farther or nearer: not the same pair of cores */

const char *perf_mark(struct perf *p, const struct perf_result *r)
{
	double floor = p->floor.cacheline_ns > 0 ? p->floor.cacheline_ns : r->line_ns;

	if (p->rank || !p->board || (r->line_worst <= MOVED * floor && r->line_ns * MOVED >= floor))
		return "";
	p->moved = true;
	return " *";
}

const char *perf_mark_both(struct perf *p, const struct perf_result *a, const struct perf_result *b)
{
	double line[] = { a->line_ns, a->line_worst, b->line_ns, b->line_worst };
	struct perf_result both = { .line_ns = a->line_ns };

	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		if (both.line_ns > line[i])
			both.line_ns = line[i];
		if (both.line_worst < line[i])
			both.line_worst = line[i];
	}
	return perf_mark(p, &both);
}

static void append(struct perf *p, json_t *o)
{
	if (!o || json_array_append_new(p->report->results, o))
		perf_fail("out of memory for the report");
}

static void note_line(json_t *o, double ns, double worst)
{
	json_object_set_new(o, "cacheline", json_real(ns));
	json_object_set_new(o, "cacheline_worst", json_real(worst));
}

void perf_record(struct perf *p, const struct perf_point *pt, const struct perf_result *r)
{
	struct perf_values v;
	json_t *o;

	if (p->rank)
		return;
	v = perf_values_of(pt, r);
	o = json_pack("{s:s, s:s*, s:I, s:s, s:f, s:f, s:f, s:I, s:i, s:f}", "test", pt->test,
		      "variant", pt->variant, "size", (json_int_t)pt->size, "unit", pt->unit,
		      "median", v.median, "p99", v.p99, "best", v.best, "samples",
		      (json_int_t)r->sample.count, "repetitions", (int)r->repetitions, "spread",
		      r->spread);
	if (o && r->line_ns > 0)
		note_line(o, r->line_ns, r->line_worst);
	if (o && pt->floor && pt->ratio > 0) {
		json_object_set_new(o, "floor", json_string(pt->floor));
		json_object_set_new(o, "ratio", json_real(pt->ratio));
	}
	append(p, o);
}

void perf_record_plain(struct perf *p, const char *test, const char *variant, size_t size,
		       const char *unit, double value)
{
	json_t *o;

	if (p->rank)
		return;
	o = json_pack("{s:s, s:s*, s:I, s:s, s:f}", "test", test, "variant", variant, "size",
		      (json_int_t)size, "unit", unit, "median", value);
	if (o && p->line_worst > 0)
		note_line(o, p->line_worst, p->line_worst);
	append(p, o);
}

/* ---- the aims ---- */

static const json_t *find(struct perf *p, const char *test, size_t size)
{
	size_t i;
	json_t *o;

	json_array_foreach(p->report->results, i, o)
	{
		const char *name = json_string_value(json_object_get(o, "test"));

		if (strcmp(name, test) == 0 &&
		    (size_t)json_integer_value(json_object_get(o, "size")) == size)
			return o;
	}
	return NULL;
}

static double median_of(const json_t *o)
{
	return json_number_value(json_object_get(o, "median"));
}

static void aim(struct perf *p, const char *what, const char *unit, double is, double should,
		bool at_most)
{
	struct perf_report *r = p->report;
	bool met = at_most ? is <= should : is >= should;

	if (!r->aims++)
		perf_title(p, "aims", "what the project wants of these figures on one machine");
	perf_say(p, "  %-46s %10.2f %-5s %8s %10.2f   %s", what, is, unit,
		 at_most ? "at most" : "at least", should, met ? "met" : "missed");
	perf_record_plain(p, "aim", what, 0, unit, is);
	json_object_set_new(json_array_get(r->results, json_array_size(r->results) - 1),
			    at_most ? "at_most" : "at_least", json_real(should));
}

static void aim_bandwidth(struct perf *p, const struct perf_copy_floor *c)
{
	const json_t *bandwidth = find(p, "bandwidth", c->size);
	char text[PERF_SIZE_TEXT], what[64];

	if (!bandwidth || c->size < (256u << 10) || c->attach <= 0)
		return;
	snprintf(what, sizeof(what), "%s puts: 2.5 x cross-memory attach",
		 perf_size_text(text, c->size));
	aim(p, what, "GB/s", median_of(bandwidth), 2.5 * c->attach, false);
}

void perf_report_aims(struct perf *p)
{
	const struct perf_floor *f = &p->floor;
	const json_t *put, *rate, *match, *receives;
	double line;

	if (p->rank)
		return;
	put = find(p, "latency", 8);
	rate = find(p, "rate", 8);
	match = find(p, "match worst ratio", 100000);
	receives = find(p, "receives worst ratio", 100000);
	line = json_number_value(json_object_get(put, "cacheline"));
	if (line > 0)
		aim(p, "8-byte put to event: 2 x cache line + 60 ns", "ns", median_of(put),
		    2 * line + 60, true);
	for (int i = 0; i < f->copies; i++)
		aim_bandwidth(p, &f->copy[i]);
	if (rate && f->ring_rate > 0) {
		double ring = 0.9 * f->ring_rate / 1e6;

		aim(p, "8-byte puts: 8 M/s or 90 % of a bare ring", "M/s", median_of(rate),
		    ring < 8 ? ring : 8, false);
	}
	if (match)
		aim(p, "matching, 100000 entries against 1", "x", median_of(match), 1.5, true);
	if (receives)
		aim(p, "matching, 100000 receives of any kind against 1", "x", median_of(receives),
		    1.5, true);
}

/* ---- was the machine ours? ---- */

#define BUSY_PER_S 20 /* preemptions a second that nobody sees in a median */

void perf_report_busy(struct perf *p)
{
	struct rusage u;
	double seconds, preempted;

	perf_watch("ending");
	getrusage(RUSAGE_SELF, &u);
	if (p->rank) {
		perf_ctl_send(p, (uint64_t)u.ru_nivcsw);
		return;
	}
	preempted = (double)u.ru_nivcsw + (double)perf_ctl_recv(p);
	seconds = perf_ns(perf_now() - p->report->start) / 1e9;
	perf_record_plain(p, "preempted", NULL, 0, "1/s", preempted / seconds);
	if (p->moved)
		perf_say(p,
			 "\n* the two cores were farther apart or nearer than when the floor was "
			 "measured;\n  virtual machines move them. Compare such figures with "
			 "nothing.");
	if (preempted > BUSY_PER_S * seconds)
		perf_say(p,
			 "\nnote: other work took the cores from the two processes %.0f times in "
			 "%.0f s; the figures suffer",
			 preempted, seconds);
}

/* ---- the file ---- */

/* One figure per line, so that two files compare line by line. */
static void write_json(FILE *f, const struct perf_report *r)
{
	size_t i, last = json_array_size(r->results);
	json_t *o;

	fputs("{\"tool\": \"ptlperf\", \"machine\": ", f);
	json_dumpf(r->machine, f, JSON_REAL_PRECISION(6) | JSON_PRESERVE_ORDER);
	fputs(",\n\"results\": [\n", f);
	json_array_foreach(r->results, i, o)
	{
		json_dumpf(o, f, JSON_REAL_PRECISION(6) | JSON_PRESERVE_ORDER);
		fputs(i + 1 < last ? ",\n" : "\n", f);
	}
	fputs("]}\n", f);
}

static int save(const struct perf_report *r, const char *path)
{
	bool to_stdout = !strcmp(path, "-");
	FILE *f = to_stdout ? stdout : fopen(path, "we");
	int bad;

	if (!f) {
		fprintf(stderr, "ptlperf: cannot write %s: %m\n", path);
		return -1;
	}
	write_json(f, r);
	bad = fflush(f) || ferror(f);
	if (bad)
		fprintf(stderr, "ptlperf: writing %s failed: %m\n", path);
	if (!to_stdout)
		fclose(f);
	return bad ? -1 : 0;
}

int perf_report_finish(struct perf *p)
{
	struct perf_report *r = p->report;
	int rc = 0;

	if (!r)
		return 0;
	if (p->opt.json)
		rc = save(r, p->opt.json);
	json_decref(r->machine);
	json_decref(r->results);
	free(r);
	p->report = NULL;
	return rc;
}
