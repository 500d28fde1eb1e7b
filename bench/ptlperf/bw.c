/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Bandwidth of puts, in one direction and in both at once. A fixed number of puts is in flight,
 * each acknowledged; an acknowledgement starts the next. Both sides are inside the library all
 * the time: the sender waits for ACK events, the receiver for PUT_END events. A sample is a
 * batch of puts.
 */
#include <stdio.h>
#include <string.h>

#include "lat.h"
#include "link.h"
#include "report.h"
#include "window.h"

struct bandwidth {
	size_t size, window, batch;
	bool both_ways;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
};

/* The work of a rank, and how much of it is done. It gets credits for its sends, and returns them
 * for its receives. */
struct flow {
	size_t to_send, sent, acked, credited;
	size_t to_receive, received;
};

static inline void put(struct perf *p, struct bandwidth *b)
{
	perf_ok(PtlPut(b->md, PTL_ACK_REQ, p->other, PERF_PT_DATA, 0, PERF_BITS, 0, 0), "PtlPut");
}

/* Keeps the window full and takes one event. */
static inline void step(struct perf *p, struct bandwidth *b, struct flow *f)
{
	ptl_event_t ev;

	for (; f->sent < f->to_send && f->sent - f->acked < b->window &&
	       f->sent - f->credited < PERF_AHEAD;
	     f->sent++)
		put(p, b);
	perf_event(p, &ev);
	if (__builtin_expect(ev.ni_fail_type != PTL_NI_OK, 0))
		perf_wrong_event(&ev, PTL_EVENT_ACK);
	if (ev.type == PTL_EVENT_ACK) {
		f->acked++;
	} else if (perf_is_credit(&ev)) {
		f->credited += PERF_CREDIT;
	} else if (ev.type == PTL_EVENT_PUT_END) {
		if (!(++f->received % PERF_CREDIT))
			perf_credit(p);
	} else {
		perf_wrong_event(&ev, PTL_EVENT_ACK);
	}
}

static inline bool unfinished(const struct flow *f)
{
	return f->acked < f->to_send || f->received < f->to_receive ||
	       f->credited + PERF_CREDIT <= f->to_send;
}

static void run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct bandwidth *b = arg;
	struct flow f = { .to_send = samples * b->batch };
	size_t sample = 0, edge = b->batch;
	uint64_t last = perf_now();

	f.to_receive = b->both_ways ? f.to_send : 0;
	while (unfinished(&f)) {
		step(p, b, &f);
		if (f.acked == edge) {
			uint64_t now = perf_now();

			ticks[sample++] = now - last;
			last = now;
			edge += b->batch;
		}
	}
}

static void run1(struct perf *p, void *arg, size_t samples)
{
	struct bandwidth *b = arg;
	struct flow f = { .to_receive = samples * b->batch };

	f.to_send = b->both_ways ? f.to_receive : 0;
	while (unfinished(&f))
		step(p, b, &f);
}

static void prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct bandwidth *b = arg;

	perf_fill(p->tx, b->size, 2 * seed + (uint64_t)p->rank);
	memset(p->rx, 0xee, b->size);
}

static void verify(struct perf *p, void *arg, uint64_t seed)
{
	struct bandwidth *b = arg;

	if (p->rank || b->both_ways)
		perf_verify(p->rx, b->size, 2 * seed + !p->rank, "put");
}

static struct perf_point stream(struct perf *p, size_t size, bool both_ways, struct perf_result *r)
{
	char name[64];
	struct perf_pattern pattern = { name, prepare, run0, run1, verify };
	struct bandwidth b = { .size = size,
			       .window = perf_window(p, size),
			       .batch = perf_batch(p, size),
			       .both_ways = both_ways };
	struct perf_point pt = { .test = both_ways ? "bidirectional" : "bandwidth",
				 .size = size,
				 .unit = "GB/s",
				 .is_rate = true,
				 .scale = (double)(b.batch * size) * (both_ways ? 2 : 1) };

	snprintf(name, sizeof(name), "%s of %zu-byte puts", pt.test, size);
	b.me = perf_expose(p, PERF_BITS, p->rx, size, p->eq, NULL);
	b.md = perf_bind(p, p->tx, size, PERF_ACKS);
	perf_measure(p, &pattern, &b, r);
	perf_withdraw(p, b.me);
	perf_release(p, b.md);
	return pt;
}

struct perf_point perf_stream(struct perf *p, size_t size, struct perf_result *r)
{
	return stream(p, size, false, r);
}

static void point(struct perf *p, size_t size, bool both_ways)
{
	const struct perf_copy_floor *floor = perf_floor_of(p, size);
	char text[PERF_SIZE_TEXT], ratio[48] = "";
	struct perf_result r;
	struct perf_point pt = stream(p, size, both_ways, &r);
	struct perf_values v = perf_values_of(&pt, &r);

	if (floor && floor->attach > 0) {
		pt.floor = "cross-memory attach";
		pt.ratio = v.median / floor->attach;
		snprintf(ratio, sizeof(ratio), "%8.2f %9.2f %8.2f", floor->attach, pt.ratio,
			 floor->pipe);
	}
	perf_record(p, &pt, &r);
	perf_say(p, "%9s %7zu %10.3f %10.3f %10.3f  %s%s", perf_size_text(text, size),
		 perf_window(p, size), v.median, v.p99, v.best, ratio, perf_mark(p, &r));
}

static void table(struct perf *p, bool both_ways)
{
	const struct perf_list *sizes = &p->opt.sizes;

	perf_floor_copy(p);
	perf_buffers(p, sizes->item[sizes->count - 1] + 1);
	if (both_ways)
		perf_title(p, "bidirectional", "puts both ways at once, sum of both, GB/s");
	else
		perf_title(p, "bandwidth", "puts one way, both sides in the library, GB/s");
	perf_say(p, "%9s %7s %10s %10s %10s  %8s %9s %8s", "bytes", "window", "median", "p99",
		 "best", "attach", "x attach", "pipe");
	for (int i = 0; i < sizes->count; i++)
		if (sizes->item[i])
			point(p, sizes->item[i], both_ways);
	if (p->floor.copies)
		perf_say(p, "   attach: process_vm_readv by one side; pipe: two bare copies in a "
			    "pipeline; same size, same run");
}

void perf_bandwidth(struct perf *p)
{
	table(p, false);
}

void perf_bidirectional(struct perf *p)
{
	table(p, true);
}
