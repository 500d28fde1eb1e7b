/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The three benchmarks of RWAPI (Ben Fredj, Renault: RWAPI over InfiniBand: Design and
 * Performance), with puts as remote writes: the ping-pong; the bidirectional ping-pong, in which
 * both sides send at once and then both receive; and the burst, one direction, where nothing is
 * waited for between messages. As there, time is taken from before the first message is sent
 * until after the last one is received on the same node, so a burst ends with an answer; n
 * messages of s bytes in the time t, all that went either way, are a latency t / n and a
 * throughput n s / t.
 */
#include <stdio.h>
#include <string.h>

#include "lat.h"
#include "link.h"
#include "window.h"

struct remote_write {
	size_t size;
	unsigned count; /* rounds, or messages of a burst, in a sample */
	ptl_handle_me_t me;
	ptl_handle_md_t md, empty;
};

static inline void put(struct perf *p, ptl_handle_md_t md)
{
	perf_ok(PtlPut(md, PTL_NO_ACK_REQ, p->other, PERF_PT_DATA, 0, PERF_BITS, 0, 0), "PtlPut");
}

/* ---- both ways at once ---- */

static inline void exchange(struct perf *p, struct remote_write *w)
{
	for (unsigned i = w->count; i; i--) {
		put(p, w->md);
		perf_expect(p, PTL_EVENT_PUT_END);
	}
}

static void both_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	uint64_t last = perf_now(), now;

	for (size_t i = 0; i < samples; i++) {
		exchange(p, arg);
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

static void both_run1(struct perf *p, void *arg, size_t samples)
{
	for (; samples; samples--)
		exchange(p, arg);
}

/* ---- one way, straight one after the other ---- */

static void burst_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct remote_write *w = arg;

	for (size_t i = 0; i < samples; i++) {
		uint64_t start = perf_now();

		for (unsigned n = w->count; n; n--)
			put(p, w->md);
		perf_expect(p, PTL_EVENT_PUT_END);
		ticks[i] = perf_now() - start;
	}
}

static void burst_run1(struct perf *p, void *arg, size_t samples)
{
	struct remote_write *w = arg;

	for (; samples; samples--) {
		for (unsigned n = w->count; n; n--)
			perf_expect(p, PTL_EVENT_PUT_END);
		put(p, w->empty);
	}
}

/* ---- all of them ---- */

static void prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct remote_write *w = arg;

	perf_fill(p->tx, w->size, 2 * seed + (uint64_t)p->rank);
	memset(p->rx, 0xee, w->size);
}

static void verify(struct perf *p, void *arg, uint64_t seed)
{
	struct remote_write *w = arg;

	perf_verify(p->rx, w->size, 2 * seed + !p->rank, "put");
}

static void verify_target(struct perf *p, void *arg, uint64_t seed)
{
	if (p->rank)
		verify(p, arg, seed);
}

/* Messages of a burst: enough of them that the answer is nothing beside, and never more than the
 * target's event queue holds. */
static unsigned burst_of(size_t size)
{
	size_t most = ((size_t)32 << 20) / (size ? size : 1);

	return (unsigned)(most > 2048 ? 2048 : most < 32 ? 32 : most);
}

/* The latency of a message, ns; records it and the throughput. */
static double note(struct perf *p, struct perf_point *pt, const char *name,
		   const struct perf_result *r, const char **mark)
{
	struct perf_point rate = *pt;

	pt->test = "rwapi";
	pt->variant = rate.variant = name;
	perf_record(p, pt, r);
	rate.test = "rwapi throughput";
	rate.unit = "GB/s";
	rate.is_rate = true;
	rate.scale = (double)pt->size / pt->scale;
	perf_record(p, &rate, r);
	if (*perf_mark(p, r))
		*mark = " *";
	return perf_values_of(pt, r).median;
}

static double measure(struct perf *p, struct remote_write *w, const struct perf_pattern *pattern,
		      double messages, const char **mark)
{
	struct perf_point pt = { .size = w->size, .unit = "ns", .scale = 1 / messages };
	struct perf_result r;

	w->me = perf_expose(p, PERF_BITS, p->rx, w->size, p->eq, NULL);
	w->md = perf_bind(p, p->tx, w->size, PERF_QUIET);
	w->empty = perf_bind(p, p->tx, 0, PERF_QUIET);
	perf_measure(p, pattern, w, &r);
	perf_withdraw(p, w->me);
	perf_release(p, w->md);
	perf_release(p, w->empty);
	return note(p, &pt, pattern->name, &r, mark);
}

static void point(struct perf *p, size_t size)
{
	const struct perf_pattern both = { "bidirectional", prepare, both_run0, both_run1, verify };
	const struct perf_pattern burst = { "burst", prepare, burst_run0, burst_run1,
					    verify_target };
	struct remote_write w = { .size = size, .count = (unsigned)perf_trips(size) };
	struct perf_result r;
	struct perf_point pt = perf_one_way(p, size, &r);
	const char *mark = "";
	char text[PERF_SIZE_TEXT];
	double bytes = (double)size, ns[3];

	ns[0] = note(p, &pt, "ping-pong", &r, &mark);
	ns[1] = measure(p, &w, &both, 2 * (double)w.count, &mark);
	w.count = burst_of(size);
	ns[2] = measure(p, &w, &burst, (double)w.count, &mark);
	if (!p->rank)
		perf_say(p, "%9s %11.1f %8.3f  %11.1f %8.3f  %11.1f %8.3f%s",
			 perf_size_text(text, size), ns[0], bytes / ns[0], ns[1], bytes / ns[1],
			 ns[2], bytes / ns[2], mark);
}

void perf_rwapi(struct perf *p)
{
	const struct perf_list *sizes = &p->opt.sizes;

	perf_buffers(p, sizes->item[sizes->count - 1] + 1);
	perf_title(p, "rwapi", "latency t / n in ns, throughput n s / t in GB/s");
	perf_say(p, "%9s %20s  %20s  %20s", "", "ping-pong", "bidirectional", "burst");
	perf_say(p, "%9s %11s %8s  %11s %8s  %11s %8s", "bytes", "latency", "GB/s", "latency",
		 "GB/s", "latency", "GB/s");
	for (int i = 0; i < sizes->count; i++)
		if (sizes->item[i])
			point(p, sizes->item[i]);
}
