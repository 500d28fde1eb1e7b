/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Latency of a put: ping-pong into a persistent entry, from PtlPut to the visible PUT_END event.
 * The figure is half of a round trip.
 */
#include <stdio.h>
#include <string.h>

#include "lat.h"
#include "link.h"
#include "window.h"

struct latency {
	size_t size, trips;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
};

static inline void put(struct perf *p, struct latency *l)
{
	perf_ok(PtlPut(l->md, PTL_NO_ACK_REQ, p->other, PERF_PT_DATA, 0, PERF_BITS, 0, 0),
		"PtlPut");
}

static void run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct latency *l = arg;
	uint64_t last = perf_now();

	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		for (size_t t = 0; t < l->trips; t++) {
			put(p, l);
			perf_expect(p, PTL_EVENT_PUT_END);
		}
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

static void run1(struct perf *p, void *arg, size_t samples)
{
	struct latency *l = arg;

	for (size_t left = samples * l->trips; left; left--) {
		perf_expect(p, PTL_EVENT_PUT_END);
		put(p, l);
	}
}

static void prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct latency *l = arg;

	perf_fill(p->tx, l->size, 2 * seed + (uint64_t)p->rank);
	memset(p->rx, 0xee, l->size);
}

static void verify(struct perf *p, void *arg, uint64_t seed)
{
	struct latency *l = arg;

	perf_verify(p->rx, l->size, 2 * seed + !p->rank, "put");
}

struct perf_point perf_one_way(struct perf *p, size_t size, struct perf_result *r)
{
	char name[64];
	struct perf_pattern pattern = { name, prepare, run0, run1, verify };
	struct latency l = { .size = size, .trips = perf_trips(size) };

	snprintf(name, sizeof(name), "latency of %zu-byte puts", size);
	l.me = perf_expose(p, PERF_BITS, p->rx, size, p->eq, NULL);
	l.md = perf_bind(p, p->tx, size, PERF_QUIET);
	perf_measure(p, &pattern, &l, r);
	perf_withdraw(p, l.me);
	perf_release(p, l.md);
	return (struct perf_point){ .test = "latency",
				    .variant = p->opt.poll ? "poll" : "wait",
				    .size = size,
				    .unit = "ns",
				    .scale = 0.5 / (double)l.trips };
}

static void point(struct perf *p, size_t size)
{
	char text[PERF_SIZE_TEXT], ratio[16] = "";
	struct perf_result r;
	struct perf_point pt = perf_one_way(p, size, &r);
	struct perf_values v = perf_values_of(&pt, &r);

	if (r.line_ns > 0 && size <= 4096) { /* beyond, copying is what takes time */
		pt.floor = "cacheline";
		pt.ratio = v.median / r.line_ns;
		snprintf(ratio, sizeof(ratio), "%8.2f", pt.ratio);
	}
	perf_record(p, &pt, &r);
	perf_say(p, "%9s %10.1f %10.1f %10.1f  %8s%s", perf_size_text(text, size), v.median, v.p99,
		 v.best, ratio, perf_mark(p, &r));
}

void perf_latency(struct perf *p)
{
	const struct perf_list *sizes = &p->opt.sizes;

	perf_buffers(p, sizes->item[sizes->count - 1] + 1);
	perf_title(p, "latency", "put to visible event, half round trip, ns");
	perf_say(p, "%9s %10s %10s %10s  %8s", "bytes", "median", "p99", "min", "x floor");
	for (int i = 0; i < sizes->count; i++)
		point(p, sizes->item[i]);
	if (p->floor.cacheline_ns > 0)
		perf_say(p, "   floor: one cache line there and back, half: %.1f ns",
			 p->floor.cacheline_ns);
}
