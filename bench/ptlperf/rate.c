/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Message rate: a stream of 8-byte puts, each to a place of its own, an event at the target for
 * every one, an acknowledgement for the last of each window only. A few windows are in flight,
 * so that neither side waits for the other's turn; credits keep rank 0 from outrunning rank 1.
 * The stream also serves the match test.
 */
#include "rate.h"

#include <stdio.h>
#include <string.h>

#include "report.h"
#include "window.h"

#define WINDOWS_IN_FLIGHT  4
#define WINDOWS_PER_SAMPLE 16

static inline void put(struct perf *p, struct perf_stream *s, size_t slot, bool last)
{
	struct perf_target to = { PERF_BITS, 0 };

	if (s->order)
		to = s->order[s->next++ & s->order_mask];
	perf_ok(PtlPutRegion(s->md, slot * 8, 8, last ? PTL_ACK_REQ : PTL_NO_ACK_REQ, p->other,
			     PERF_PT_DATA, 0, to.bits, slot * 8, to.number),
		"PtlPutRegion");
}

/* The operations under way at rank 0. */
struct ahead {
	size_t windows; /* not acknowledged */
	size_t sent, credited;
};

static inline void take(struct perf *p, struct ahead *a)
{
	ptl_event_t ev;

	perf_event(p, &ev);
	if (__builtin_expect(ev.ni_fail_type != PTL_NI_OK, 0))
		perf_wrong_event(&ev, PTL_EVENT_ACK);
	if (ev.type == PTL_EVENT_ACK)
		a->windows--;
	else if (perf_is_credit(&ev))
		a->credited += PERF_CREDIT;
	else
		perf_wrong_event(&ev, PTL_EVENT_ACK);
}

static inline void window(struct perf *p, struct perf_stream *s, struct ahead *a)
{
	while (a->windows >= WINDOWS_IN_FLIGHT || a->sent + s->window > a->credited + PERF_AHEAD)
		take(p, a);
	for (size_t slot = 0; slot < s->window; slot++)
		put(p, s, slot, slot + 1 == s->window);
	a->sent += s->window;
	a->windows++;
}

void perf_stream_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_stream *s = arg;
	struct ahead a = { 0 };
	uint64_t last = perf_now();

	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		for (int w = 0; w < WINDOWS_PER_SAMPLE; w++)
			window(p, s, &a);
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
	while (a.windows || a.credited + PERF_CREDIT <= a.sent)
		take(p, &a);
}

void perf_stream_run1(struct perf *p, void *arg, size_t samples)
{
	struct perf_stream *s = arg;
	size_t total = samples * WINDOWS_PER_SAMPLE * s->window;
	ptl_event_t ev;

	for (size_t taken = 1; taken <= total; taken++) {
		perf_event(p, &ev);
		if (__builtin_expect(ev.type != PTL_EVENT_PUT_END || ev.ni_fail_type, 0))
			perf_wrong_event(&ev, PTL_EVENT_PUT_END);
		/* The message names the entry it is for. */
		s->astray += (uint64_t)(uintptr_t)ev.md.user_ptr != ev.hdr_data;
		if (!(taken % PERF_CREDIT))
			perf_credit(p);
	}
}

void perf_stream_prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct perf_stream *s = arg;

	if (p->rank)
		memset(p->rx, 0xee, s->window * 8);
	else
		perf_fill(p->tx, s->window * 8, seed);
}

void perf_stream_verify(struct perf *p, void *arg, uint64_t seed)
{
	struct perf_stream *s = arg;

	if (!p->rank)
		return;
	perf_verify(p->rx, s->window * 8, seed, "put");
	if (s->astray)
		perf_fail("%zu puts matched an entry they were not for", s->astray);
}

size_t perf_stream_window(struct perf *p)
{
	return p->opt.window ? p->opt.window : PERF_WINDOW;
}

double perf_stream_puts(const struct perf_stream *s)
{
	return (double)(WINDOWS_PER_SAMPLE * s->window);
}

void perf_rate(struct perf *p)
{
	struct perf_pattern pattern = { "message rate", perf_stream_prepare, perf_stream_run0,
					perf_stream_run1, perf_stream_verify };
	struct perf_stream s = { .window = perf_stream_window(p) };
	struct perf_point pt = { .test = "rate", .size = 8, .unit = "M/s", .is_rate = true };
	ptl_handle_me_t me;
	struct perf_result r;
	struct perf_values v;

	perf_floor_ring(p);
	perf_buffers(p, s.window * 8);
	perf_title(p, "rate", "8-byte puts per second, an event at the target for each");
	me = perf_expose(p, PERF_BITS, p->rx, s.window * 8, p->eq, NULL);
	s.md = perf_bind(p, p->tx, s.window * 8, PERF_ACKS);
	perf_measure(p, &pattern, &s, &r);
	perf_withdraw(p, me);
	perf_release(p, s.md);
	pt.scale = perf_stream_puts(&s) * 1e3;
	v = perf_values_of(&pt, &r);
	if (p->floor.ring_rate > 0) {
		pt.floor = "ring";
		pt.ratio = v.median * 1e6 / p->floor.ring_rate;
	}
	perf_record(p, &pt, &r);
	perf_say(p, "%9s %10s %10s %10s %10s", "window", "median M/s", "p99", "best", "ns per put");
	perf_say(p, "%9zu %10.2f %10.2f %10.2f %10.1f%s", s.window, v.median, v.p99, v.best,
		 v.median > 0 ? 1e3 / v.median : 0, perf_mark(p, &r));
	if (pt.floor)
		perf_say(p,
			 "   floor: a bare ring of 64-byte lines: %.2f M/s; this is %.0f %% of it",
			 p->floor.ring_rate / 1e6, 100 * pt.ratio);
}
