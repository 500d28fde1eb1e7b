/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Application bypass, shown: rank 1 computes for two seconds and does not enter the library, while
 * rank 0 puts and gets at fixed times and notes when each operation is complete. Rank 1 then looks
 * once at its event queue, where everything must already stand, and checks the data.
 */
#include <stdio.h>
#include <string.h>

#include "link.h"
#include "report.h"

#define COMPUTE_NS 2e9
#define TRIAL_NS   3e8 /* to know the undisturbed speed */
#define STEPS      20000
#define PICTURE    60 /* columns */

struct operation {
	size_t size, offset; /* at both sides */
	double start_ns, took_ns;
	bool is_get;
	char mark; /* in the picture */
};

/* Offsets are a page apart at least; gets have the upper half of the target's memory. */
static const struct operation plan[] = {
	{ .size = 8, .offset = 0, .mark = 'p' },
	{ .size = 8, .offset = 4096, .mark = 'p' },
	{ .size = 65536, .offset = 65536, .mark = 'p' },
	{ .size = (size_t)16 << 20, .offset = (size_t)1 << 20, .mark = 'P' },
	{ .is_get = true, .size = 8, .offset = (size_t)17 << 20, .mark = 'g' },
	{ .is_get = true, .size = 65536, .offset = (size_t)18 << 20, .mark = 'g' },
	{ .is_get = true, .size = (size_t)16 << 20, .offset = (size_t)19 << 20, .mark = 'G' },
};
enum { OPERATIONS = sizeof(plan) / sizeof(plan[0]) };
#define MEMORY ((size_t)35 << 20)

/* ---- the target ---- */

/* Pure arithmetic for so long; steps per ns. The result keeps the compiler from skipping it. */
static double compute(double ns, uint64_t *result)
{
	uint64_t start = perf_now(), end = start + perf_ticks(ns), now, steps = 0, x = *result | 1;

	do {
		for (int i = 0; i < STEPS; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		steps += STEPS;
		now = perf_now();
	} while (now < end);
	*result = x;
	return (double)steps / perf_ns(now - start);
}

/* How many events stand in the queue, without waiting. */
static uint64_t look_once(struct perf *p)
{
	ptl_event_t ev;
	uint64_t found = 0;
	int rc;

	while ((rc = PtlEQGet(p->eq, &ev)) == PTL_OK) {
		if (ev.ni_fail_type != PTL_NI_OK)
			perf_wrong_event(&ev, PTL_EVENT_PUT_END);
		found++;
	}
	if (rc != PTL_EQ_EMPTY)
		perf_fail_code(rc, "PtlEQGet");
	return found;
}

static void target(struct perf *p)
{
	uint64_t junk = 1, found;
	double alone, disturbed;

	for (int i = 0; i < OPERATIONS; i++)
		if (plan[i].is_get)
			perf_fill(p->tx + plan[i].offset, plan[i].size, (uint64_t)i + 1);
	alone = compute(TRIAL_NS, &junk);
	perf_watch("computing while the other rank puts and gets");
	perf_ctl_send(p, junk);
	disturbed = compute(COMPUTE_NS, &junk);
	found = look_once(p);
	for (uint64_t late = found; late < OPERATIONS; late++) {
		ptl_event_t ev;

		perf_event(p, &ev);
	}
	for (int i = 0; i < OPERATIONS; i++)
		if (!plan[i].is_get)
			perf_verify(p->rx + plan[i].offset, plan[i].size, (uint64_t)i + 1, "put");
	perf_ctl_send(p, (uint64_t)(1e6 * disturbed / alone));
	perf_ctl_send(p, found);
}

/* ---- the initiator ---- */

static void operate(struct perf *p, struct operation *o, ptl_handle_md_t put_md,
		    ptl_handle_md_t get_md, uint64_t begin)
{
	uint64_t start;

	while (perf_ns(perf_now() - begin) < o->start_ns)
		;
	start = perf_now();
	if (o->is_get) {
		perf_ok(PtlGetRegion(get_md, o->offset, o->size, p->other, PERF_PT_DATA, 0,
				     PERF_BITS + 1, o->offset),
			"PtlGetRegion");
		perf_expect(p, PTL_EVENT_REPLY_END);
	} else {
		perf_ok(PtlPutRegion(put_md, o->offset, o->size, PTL_ACK_REQ, p->other,
				     PERF_PT_DATA, 0, PERF_BITS, o->offset, 0),
			"PtlPutRegion");
		perf_expect(p, PTL_EVENT_ACK);
	}
	o->took_ns = perf_ns(perf_now() - start);
	o->start_ns = perf_ns(start - begin);
}

static void print_operation(struct perf *p, const struct operation *o)
{
	char text[PERF_SIZE_TEXT], rate[32] = "";
	double end = o->start_ns + o->took_ns;
	bool bypassed = end < COMPUTE_NS;

	if (o->size > 4096)
		snprintf(rate, sizeof(rate), "%.2f GB/s", (double)o->size / o->took_ns);
	perf_say(p, "  %-4s %9s   %8.1f ms   %11.1f us   %12s   %s", o->is_get ? "get" : "put",
		 perf_size_text(text, o->size), o->start_ns / 1e6, o->took_ns / 1e3, rate,
		 bypassed ? "still computing" : "back in the library: NO BYPASS");
	perf_record_plain(p, "bypass", o->is_get ? "get" : "put", o->size, "ns", o->took_ns);
	if (!bypassed)
		p->failed = true;
}

static void print_picture(struct perf *p, const struct operation *op)
{
	char line[PICTURE + 1], busy[PICTURE + 1];

	memset(line, ' ', PICTURE);
	memset(busy, '#', PICTURE);
	line[PICTURE] = busy[PICTURE] = '\0';
	for (int i = 0; i < OPERATIONS; i++) {
		int from = (int)(op[i].start_ns / COMPUTE_NS * PICTURE);
		int to = (int)((op[i].start_ns + op[i].took_ns) / COMPUTE_NS * PICTURE);

		for (int c = from; c <= to && c < PICTURE; c++)
			line[c] = op[i].mark;
	}
	perf_say(p, "\n  target    |%s|  # computing, outside the library", busy);
	perf_say(p, "  initiator |%s|  p put, g get (P, G: 16 MiB)", line);
	perf_say(p, "            0 s%*s%.0f s", PICTURE - 3, "", COMPUTE_NS / 1e9);
}

static void initiator(struct perf *p)
{
	ptl_handle_md_t put_md = perf_bind(p, p->tx, MEMORY, PERF_ACKS);
	ptl_handle_md_t get_md = perf_bind(p, p->rx, MEMORY, PERF_REPLIES);
	struct operation op[OPERATIONS];
	uint64_t begin, found;
	double speed;

	memcpy(op, plan, sizeof(op));
	for (int i = 0; i < OPERATIONS; i++) {
		op[i].start_ns = COMPUTE_NS * (i + 0.5) / (OPERATIONS + 1);
		if (!op[i].is_get)
			perf_fill(p->tx + op[i].offset, op[i].size, (uint64_t)i + 1);
	}
	(void)perf_ctl_recv(p);
	begin = perf_now();
	for (int i = 0; i < OPERATIONS; i++)
		operate(p, &op[i], put_md, get_md, begin);
	speed = (double)perf_ctl_recv(p) / 1e4;
	found = perf_ctl_recv(p);
	perf_release(p, put_md);
	perf_release(p, get_md);
	for (int i = 0; i < OPERATIONS; i++)
		if (op[i].is_get)
			perf_verify(p->rx + op[i].offset, op[i].size, (uint64_t)i + 1, "get");
	perf_say(p, "  %-4s %9s   %11s   %14s   %12s   %s", "op", "bytes", "called at",
		 "to ACK/REPLY", "rate", "target then");
	for (int i = 0; i < OPERATIONS; i++)
		print_operation(p, &op[i]);
	print_picture(p, op);
	perf_say(p,
		 "  data verified on both sides; the target found %u of %u events at its first "
		 "look\n  and computed at %.1f %% of its undisturbed speed",
		 (unsigned)found, (unsigned)OPERATIONS, speed);
	perf_record_plain(p, "bypass", "target speed", 0, "%", speed);
	if (found != OPERATIONS)
		p->failed = true;
}

void perf_bypass(struct perf *p)
{
	ptl_handle_me_t put_me, get_me;

	perf_buffers(p, MEMORY);
	perf_title(p, "bypass", "the target computes for 2 s and never enters the library");
	put_me = perf_expose(p, PERF_BITS, p->rx, MEMORY, p->eq, NULL);
	get_me = perf_expose(p, PERF_BITS + 1, p->tx, MEMORY, p->eq, NULL);
	perf_watch("showing application bypass");
	perf_ctl_barrier(p);
	if (p->rank)
		target(p);
	else
		initiator(p);
	perf_ctl_barrier(p);
	perf_withdraw(p, put_me);
	perf_withdraw(p, get_me);
}
