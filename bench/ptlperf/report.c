/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Text tables on standard output and a JSON file with one figure per line.
 */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "link.h"

/* One line of the file; the numbers are those that aims are made of. */
struct figure {
	char *test, *json;
	size_t size;
	double median, line_ns;
};

struct perf_report {
	char *machine; /* in JSON */
	struct figure *figures;
	size_t count;
	int aims; /* printed so far */
	uint64_t start;
	double preempted, seconds; /* how often both processes lost a core, in what time */
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

/* ---- JSON ---- */

static void put_string(FILE *f, const char *key, const char *text)
{
	fprintf(f, ", \"%s\": \"", key);
	for (; *text; text++) {
		if ((unsigned char)*text < ' ')
			fprintf(f, "\\u%04x", (unsigned int)*text);
		else
			fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
	fputc('"', f);
}

/* Always as a real, which no reader takes for an integer. */
static void put_real(FILE *f, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	fprintf(f, ", \"%s\": %s%s", key, isfinite(value) ? text : "null",
		isfinite(value) && !strpbrk(text, ".e") ? ".0" : "");
}

static void put_integer(FILE *f, const char *key, uint64_t value)
{
	fprintf(f, ", \"%s\": %llu", key, (unsigned long long)value);
}

static void put_line(FILE *f, double ns, double worst)
{
	put_real(f, "cacheline", ns);
	put_real(f, "cacheline_worst", worst);
}

static FILE *open_text(char **text, size_t *len)
{
	FILE *f = open_memstream(text, len);

	if (!f)
		perf_fail("out of memory for the report");
	return f;
}

/* The text that was added, without the first comma. */
static char *close_text(FILE *f, char **text)
{
	if (fclose(f) != 0)
		perf_fail("out of memory for the report");
	return *text + 2;
}

static char *describe_machine(struct perf *p, const char *cpu)
{
	struct utsname u;
	char *text, *object;
	size_t len;
	FILE *f = open_text(&text, &len);

	uname(&u);
	put_string(f, "cpu", cpu);
	put_string(f, "kernel", u.release);
	put_string(f, "arch", u.machine);
	fprintf(f, ", \"pinned\": %s", p->core >= 0 ? "true" : "false");
	put_real(f, "timer_ns", perf_clock_cost());
	fprintf(f, ", \"same_machine\": %s", p->board ? "true" : "false");
	put_string(f, "wait", p->opt.poll ? "PtlEQGet" : "PtlEQWait");
	object = strdup(close_text(f, &text));
	free(text);
	return object;
}

void perf_report_start(struct perf *p)
{
	struct perf_report *r;
	char cpu[128];

	if (p->rank)
		return;
	r = calloc(1, sizeof(*r));
	if (!r)
		perf_fail("out of memory");
	cpu_model(cpu, sizeof(cpu));
	r->machine = describe_machine(p, cpu);
	if (!r->machine)
		perf_fail("out of memory for the report");
	r->text = p->opt.json && !strcmp(p->opt.json, "-") ? stderr : stdout;
	r->start = perf_now();
	p->report = r;
	perf_say(p, "ptlperf on %s, %s, %s events with %s; reading the timer costs %.0f ns", cpu,
		 p->core >= 0 ? "each process pinned to a core" : "processes not pinned",
		 p->opt.poll ? "polling" : "waiting for", p->opt.poll ? "PtlEQGet" : "PtlEQWait",
		 perf_clock_cost());
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

/* Begins a figure; put more, then end it. */
static FILE *begin(char **text, size_t *len, const char *test, const char *variant, size_t size,
		   const char *unit, double median)
{
	FILE *f = open_text(text, len);

	put_string(f, "test", test);
	if (variant)
		put_string(f, "variant", variant);
	put_integer(f, "size", size);
	put_string(f, "unit", unit);
	put_real(f, "median", median);
	return f;
}

static void end(struct perf *p, FILE *f, char **text, const char *test, struct figure figure)
{
	struct perf_report *r = p->report;
	struct figure *figures;

	figure.json = strdup(close_text(f, text));
	figure.test = strdup(test);
	free(*text);
	figures = realloc(r->figures, (r->count + 1) * sizeof(*figures));
	if (!figures || !figure.json || !figure.test)
		perf_fail("out of memory for the report");
	r->figures = figures;
	r->figures[r->count++] = figure;
}

void perf_record(struct perf *p, const struct perf_point *pt, const struct perf_result *r)
{
	struct perf_values v;
	char *text;
	size_t len;
	FILE *f;

	if (p->rank)
		return;
	v = perf_values_of(pt, r);
	f = begin(&text, &len, pt->test, pt->variant, pt->size, pt->unit, v.median);
	put_real(f, "p99", v.p99);
	put_real(f, "best", v.best);
	put_integer(f, "samples", r->sample.count);
	put_integer(f, "repetitions", r->repetitions);
	put_real(f, "spread", r->spread);
	if (r->line_ns > 0)
		put_line(f, r->line_ns, r->line_worst);
	if (pt->floor && pt->ratio > 0) {
		put_string(f, "floor", pt->floor);
		put_real(f, "ratio", pt->ratio);
	}
	end(p, f, &text, pt->test,
	    (struct figure){ .size = pt->size, .median = v.median, .line_ns = r->line_ns });
}

/* `bound`: the name of `should`, NULL if there is none. */
static void record(struct perf *p, const char *test, const char *variant, size_t size,
		   const char *unit, double value, const char *bound, double should)
{
	char *text;
	size_t len;
	FILE *f;

	if (p->rank)
		return;
	f = begin(&text, &len, test, variant, size, unit, value);
	if (p->line_worst > 0)
		put_line(f, p->line_worst, p->line_worst);
	if (bound)
		put_real(f, bound, should);
	end(p, f, &text, test,
	    (struct figure){ .size = size, .median = value, .line_ns = p->line_worst });
}

void perf_record_plain(struct perf *p, const char *test, const char *variant, size_t size,
		       const char *unit, double value)
{
	record(p, test, variant, size, unit, value, NULL, 0);
}

/* ---- was the machine ours? ---- */

#define BUSY_PER_S 20 /* preemptions a second that nobody sees in a median */

static bool was_busy(const struct perf_report *r)
{
	return r->preempted > BUSY_PER_S * r->seconds;
}

void perf_report_preempted(struct perf *p)
{
	struct perf_report *r = p->report;
	struct rusage u;

	perf_watch("ending");
	getrusage(RUSAGE_SELF, &u);
	if (p->rank) {
		perf_ctl_send(p, (uint64_t)u.ru_nivcsw);
		return;
	}
	r->preempted = (double)u.ru_nivcsw + (double)perf_ctl_recv(p);
	r->seconds = perf_ns(perf_now() - r->start) / 1e9;
	perf_record_plain(p, "preempted", NULL, 0, "1/s", r->preempted / r->seconds);
}

/* ---- the aims ---- */

static const struct figure *find(struct perf *p, const char *test, size_t size)
{
	const struct perf_report *r = p->report;

	for (size_t i = 0; i < r->count; i++) {
		if (strcmp(r->figures[i].test, test) == 0 && r->figures[i].size == size)
			return &r->figures[i];
	}
	return NULL;
}

static void aim(struct perf *p, const char *what, const char *unit, double is, double should,
		bool at_most)
{
	struct perf_report *r = p->report;
	bool met = at_most ? is <= should : is >= should;
	const char *verdict = met ? "met" : was_busy(r) ? "not judged, see the note" : "missed";

	if (!r->aims++)
		perf_title(p, "aims", "what the project wants of these figures on one machine");
	perf_say(p, "  %-46s %10.2f %-5s %8s %10.2f   %s", what, is, unit,
		 at_most ? "at most" : "at least", should, verdict);
	record(p, "aim", what, 0, unit, is, at_most ? "at_most" : "at_least", should);
}

static void aim_bandwidth(struct perf *p, const struct perf_copy_floor *c)
{
	const struct figure *bandwidth = find(p, "bandwidth", c->size);
	char text[PERF_SIZE_TEXT], what[64];

	if (!bandwidth || c->size < (256u << 10) || c->attach <= 0)
		return;
	snprintf(what, sizeof(what), "%s puts: 2.5 x cross-memory attach",
		 perf_size_text(text, c->size));
	aim(p, what, "GB/s", bandwidth->median, 2.5 * c->attach, false);
}

void perf_report_aims(struct perf *p)
{
	const struct perf_floor *f = &p->floor;
	const struct figure *put, *rate, *match, *receives;

	if (p->rank)
		return;
	put = find(p, "latency", 8);
	rate = find(p, "rate", 8);
	match = find(p, "match worst ratio", 100000);
	receives = find(p, "receives worst ratio", 100000);
	if (put && put->line_ns > 0)
		aim(p, "8-byte put to event: 2 x cache line + 60 ns", "ns", put->median,
		    2 * put->line_ns + 60, true);
	for (int i = 0; i < f->copies; i++)
		aim_bandwidth(p, &f->copy[i]);
	if (rate && f->ring_rate > 0) {
		double ring = 0.9 * f->ring_rate / 1e6;

		aim(p, "8-byte puts: 8 M/s or 90 % of a bare ring", "M/s", rate->median,
		    ring < 8 ? ring : 8, false);
	}
	if (match)
		aim(p, "matching, 100000 entries against 1", "x", match->median, 1.5, true);
	if (receives)
		aim(p, "matching, 100000 receives of any kind against 1", "x", receives->median,
		    1.5, true);
}

/* ---- the notes ---- */

void perf_report_busy(struct perf *p)
{
	const struct perf_report *r = p->report;

	if (p->rank)
		return;
	if (p->moved)
		perf_say(p,
			 "\n* the two cores were farther apart or nearer than when the floor was "
			 "measured;\n  virtual machines move them. Compare such figures with "
			 "nothing.");
	if (was_busy(r))
		perf_say(p,
			 "\nnote: other work took the cores from the two processes %.0f times in "
			 "%.0f s; the figures suffer",
			 r->preempted, r->seconds);
}

/* ---- the file ---- */

/* One figure per line, so that two files compare line by line. */
static void write_json(FILE *f, const struct perf_report *r)
{
	fprintf(f, "{\"tool\": \"ptlperf\", \"machine\": {%s},\n\"results\": [\n", r->machine);
	for (size_t i = 0; i < r->count; i++)
		fprintf(f, "{%s}%s\n", r->figures[i].json, i + 1 < r->count ? "," : "");
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
	for (size_t i = 0; i < r->count; i++) {
		free(r->figures[i].test);
		free(r->figures[i].json);
	}
	free(r->figures);
	free(r->machine);
	free(r);
	p->report = NULL;
	return rc;
}
