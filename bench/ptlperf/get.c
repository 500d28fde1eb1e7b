/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Gets and swaps: the time from the call to REPLY_END, and the bandwidth of gets with a window in
 * flight. The target has no events of them: it waits in the library for a word that they are done.
 */
#include <stdio.h>
#include <string.h>

#include "link.h"
#include "report.h"
#include "window.h"

struct get {
	size_t size, window, batch, trips;
	ptl_handle_me_t me;
	ptl_handle_md_t md, put_md;
	uint64_t swapped; /* getput: the last value put */
	size_t wrong;
};

static inline void get(struct perf *p, struct get *g)
{
	perf_ok(PtlGet(g->md, p->other, PERF_PT_DATA, 0, PERF_BITS, 0), "PtlGet");
}

static void latency_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct get *g = arg;
	uint64_t last = perf_now();

	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		for (size_t t = 0; t < g->trips; t++) {
			get(p, g);
			perf_expect(p, PTL_EVENT_REPLY_END);
		}
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
	perf_ctl_send(p, 1);
}

/* The target has no events to take: it stays in the library until rank 0 says it is through. */
static void run1(struct perf *p, void *arg, size_t samples)
{
	(void)arg;
	(void)samples;
	(void)perf_ctl_recv(p);
}

static void bandwidth_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct get *g = arg;
	size_t total = samples * g->batch, sent = 0, sample = 0;
	uint64_t last = perf_now();

	for (size_t done = 0; done < total;) {
		for (; sent < total && sent - done < g->window; sent++)
			get(p, g);
		perf_expect(p, PTL_EVENT_REPLY_END);
		if (!(++done % g->batch)) {
			uint64_t now = perf_now();

			ticks[sample++] = now - last;
			last = now;
		}
	}
	perf_ctl_send(p, 1);
}

static void prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct get *g = arg;

	if (p->rank)
		perf_fill(p->tx, g->size, seed);
	else
		memset(p->rx, 0xee, g->size);
}

static void verify(struct perf *p, void *arg, uint64_t seed)
{
	struct get *g = arg;

	if (!p->rank)
		perf_verify(p->rx, g->size, seed, "get");
}

static void latency_point(struct perf *p, size_t size)
{
	char name[64], text[PERF_SIZE_TEXT];
	struct perf_pattern pattern = { name, prepare, latency_run0, run1, verify };
	struct get g = { .size = size, .trips = perf_trips(size) };
	struct perf_point pt = {
		.test = "get latency", .size = size, .unit = "ns", .scale = 1 / (double)g.trips
	};
	struct perf_result r;
	struct perf_values v;

	snprintf(name, sizeof(name), "latency of %zu-byte gets", size);
	g.me = perf_expose(p, PERF_BITS, p->tx, size, PTL_EQ_NONE, NULL);
	g.md = perf_bind(p, p->rx, size, PERF_REPLIES);
	perf_measure(p, &pattern, &g, &r);
	perf_withdraw(p, g.me);
	perf_release(p, g.md);
	perf_record(p, &pt, &r);
	v = perf_values_of(&pt, &r);
	perf_say(p, "%9s %10.1f %10.1f %10.1f%s", perf_size_text(text, size), v.median, v.p99,
		 v.best, perf_mark(p, &r));
}

static void bandwidth_point(struct perf *p, size_t size)
{
	char name[64], text[PERF_SIZE_TEXT], ratio[48] = "";
	struct perf_pattern pattern = { name, prepare, bandwidth_run0, run1, verify };
	struct get g = { .size = size,
			 .window = perf_window(p, size),
			 .batch = perf_batch(p, size) };
	struct perf_point pt = { .test = "get bandwidth",
				 .size = size,
				 .unit = "GB/s",
				 .is_rate = true,
				 .scale = (double)(g.batch * size) };
	const struct perf_copy_floor *floor = perf_floor_of(p, size);
	struct perf_result r;
	struct perf_values v;

	snprintf(name, sizeof(name), "bandwidth of %zu-byte gets", size);
	g.me = perf_expose(p, PERF_BITS, p->tx, size, PTL_EQ_NONE, NULL);
	g.md = perf_bind(p, p->rx, size, PERF_REPLIES);
	perf_measure(p, &pattern, &g, &r);
	perf_withdraw(p, g.me);
	perf_release(p, g.md);
	v = perf_values_of(&pt, &r);
	if (floor && floor->attach > 0) {
		pt.floor = "cross-memory attach";
		pt.ratio = v.median / floor->attach;
		snprintf(ratio, sizeof(ratio), "%8.2f %9.2f %8.2f", floor->attach, pt.ratio,
			 floor->pipe);
	}
	perf_record(p, &pt, &r);
	perf_say(p, "%9s %7zu %10.3f %10.3f %10.3f  %s%s", perf_size_text(text, size), g.window,
		 v.median, v.p99, v.best, ratio, perf_mark(p, &r));
}

void perf_get(struct perf *p)
{
	const struct perf_list *sizes = &p->opt.sizes;

	perf_floor_copy(p);
	perf_buffers(p, sizes->item[sizes->count - 1] + 1);
	perf_title(p, "get latency", "PtlGet to REPLY_END, whole round trip, ns");
	perf_say(p, "%9s %10s %10s %10s", "bytes", "median", "p99", "min");
	for (int i = 0; i < sizes->count; i++)
		latency_point(p, sizes->item[i]);
	perf_title(p, "get bandwidth", "gets with a window in flight, GB/s");
	perf_say(p, "%9s %7s %10s %10s %10s  %8s %9s %8s", "bytes", "window", "median", "p99",
		 "best", "attach", "x attach", "pipe");
	for (int i = 0; i < sizes->count; i++)
		if (sizes->item[i])
			bandwidth_point(p, sizes->item[i]);
}

/* ---- getput ---- */

/* Each swap brings back what the one before put there: none may be lost or doubled. */
static inline void swap(struct perf *p, struct get *g)
{
	uint64_t before = g->swapped++;

	*(uint64_t *)(void *)p->tx = g->swapped;
	perf_ok(PtlGetPut(g->md, g->put_md, p->other, PERF_PT_DATA, 0, PERF_BITS, 0, 0),
		"PtlGetPut");
	perf_expect(p, PTL_EVENT_REPLY_END);
	g->wrong += *(volatile uint64_t *)(void *)p->rx != before;
}

static void swap_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct get *g = arg;
	uint64_t last = perf_now();

	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		for (size_t t = 0; t < g->trips; t++)
			swap(p, g);
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
	perf_ctl_send(p, 1);
}

static void swap_prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct get *g = arg;

	perf_fill(p->tx + 8, g->size - 8, seed + (uint64_t)p->rank);
}

static void swap_verify(struct perf *p, void *arg, uint64_t seed)
{
	struct get *g = arg;

	if (g->wrong)
		perf_fail("%zu swaps brought back another value than the one before put", g->wrong);
	/* The bytes that rank 0 put last, beyond the counting word, are in rank 1's memory. */
	if (p->rank)
		perf_verify(p->rx + 8, g->size - 8, seed, "getput");
}

static void swap_point(struct perf *p, size_t size)
{
	char name[64], text[PERF_SIZE_TEXT];
	struct perf_pattern pattern = { name, swap_prepare, swap_run0, run1, swap_verify };
	struct get g = { .size = size, .trips = perf_trips(size) };
	struct perf_point pt = {
		.test = "getput latency", .size = size, .unit = "ns", .scale = 1 / (double)g.trips
	};
	struct perf_result r;
	struct perf_values v;

	snprintf(name, sizeof(name), "latency of %zu-byte getputs", size);
	memset(p->rx, 0, size); /* rank 1's: what the first swap finds */
	g.me = perf_expose(p, PERF_BITS, p->rx, size, PTL_EQ_NONE, NULL);
	g.md = perf_bind(p, p->rx, size, PERF_REPLIES);
	g.put_md = perf_bind(p, p->tx, size, PERF_QUIET);
	perf_measure(p, &pattern, &g, &r);
	perf_withdraw(p, g.me);
	perf_release(p, g.md);
	perf_release(p, g.put_md);
	perf_record(p, &pt, &r);
	v = perf_values_of(&pt, &r);
	perf_say(p, "%9s %10.1f %10.1f %10.1f%s", perf_size_text(text, size), v.median, v.p99,
		 v.best, perf_mark(p, &r));
}

void perf_getput(struct perf *p)
{
	perf_buffers(p, (size_t)p->limits.max_getput_md);
	perf_title(p, "getput latency", "atomic swap, call to REPLY_END, whole round trip, ns");
	perf_say(p, "%9s %10s %10s %10s", "bytes", "median", "p99", "min");
	for (size_t size = 8; size <= (size_t)p->limits.max_getput_md; size *= 8)
		swap_point(p, size);
}
