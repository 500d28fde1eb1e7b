/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The speed of the bare machine, measured between the same two processes in the same run: a cache
 * line sent there and back, and a ring of lines with one producer and one consumer. No message
 * passing through shared memory can be faster than these. floor_copy.c holds the copies of bytes.
 */
#include <stdio.h>
#include <string.h>

#include "peer.h"
#include "report.h"

#define BATCH 1024 /* ring messages per sample */

/* Each test is measured once per run; without shared memory not at all. */
static bool is_due(struct perf *p, bool *done)
{
	bool due = p->board && !*done;

	*done = true;
	return due;
}

/* ---- one cache line there and back ---- */

static void line_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	uint64_t last = perf_now();

	(void)arg;
	for (size_t i = 0; i < samples; i++) {
		uint64_t now;

		perf_line_lead(&p->board->line, &p->turn, PERF_LINE_TRIPS);
		now = perf_now();
		ticks[i] = now - last;
		last = now;
	}
}

static void line_run1(struct perf *p, void *arg, size_t samples)
{
	(void)arg;
	for (; samples; samples--)
		perf_line_follow(&p->board->line, &p->turn, PERF_LINE_TRIPS);
}

void perf_floor_cacheline(struct perf *p)
{
	const struct perf_pattern pattern = { "a cache line's way there and back", NULL, line_run0,
					      line_run1, NULL };
	struct perf_point pt = { .test = "floor",
				 .variant = "cacheline",
				 .unit = "ns",
				 .size = 64,
				 .scale = 0.5 / PERF_LINE_TRIPS };
	struct perf_result r;

	if (!is_due(p, &p->floor.cacheline_done))
		return;
	perf_measure(p, &pattern, NULL, &r);
	p->floor.cacheline_ns = perf_values_of(&pt, &r).median;
	perf_record(p, &pt, &r);
}

/* ---- a ring of lines ---- */

static void ring_prepare(struct perf *p, void *arg, uint64_t seed)
{
	struct perf_board *b = p->board;

	(void)arg;
	(void)seed;
	if (p->rank) {
		memset(b->slot, 0, sizeof(b->slot));
		atomic_store(&b->tail, 0);
	}
}

/* Message i has sequence number i + 1 and a payload that says the same. */
static void ring_run0(struct perf *p, void *arg, size_t samples, uint64_t *ticks)
{
	struct perf_board *b = p->board;
	uint64_t last = perf_now(), tail = 0, i = 0;

	(void)arg;
	for (size_t s = 0; s < samples; s++) {
		uint64_t now;

		for (int k = 0; k < BATCH; k++, i++) {
			struct perf_slot *slot = &b->slot[i % PERF_RING_LINES];

			while (i - tail >= PERF_RING_LINES)
				tail = perf_look(&b->tail);
			slot->payload[0] = i + 1;
			atomic_store_explicit(&slot->seq, (uint32_t)i + 1, memory_order_release);
		}
		now = perf_now();
		ticks[s] = now - last;
		last = now;
	}
}

static void ring_run1(struct perf *p, void *arg, size_t samples)
{
	struct perf_board *b = p->board;
	uint64_t total = samples * BATCH;

	(void)arg;
	for (uint64_t i = 0; i < total; i++) {
		struct perf_slot *slot = &b->slot[i % PERF_RING_LINES];

		while (atomic_load_explicit(&slot->seq, memory_order_acquire) != (uint32_t)i + 1)
			perf_relax();
		if (slot->payload[0] != i + 1)
			perf_fail("the ring lost a message");
		if (!((i + 1) % (PERF_RING_LINES / 4)))
			atomic_store_explicit(&b->tail, i + 1, memory_order_release);
	}
}

void perf_floor_ring(struct perf *p)
{
	const struct perf_pattern pattern = { "a bare ring", ring_prepare, ring_run0, ring_run1,
					      NULL };
	struct perf_point pt = { .test = "floor",
				 .variant = "ring",
				 .size = 64,
				 .unit = "M/s",
				 .is_rate = true,
				 .scale = BATCH * 1e3 };
	struct perf_result r;

	if (!is_due(p, &p->floor.ring_done))
		return;
	perf_measure(p, &pattern, NULL, &r);
	p->floor.ring_rate = perf_values_of(&pt, &r).median * 1e6;
	perf_record(p, &pt, &r);
}

/* ---- the table ---- */

static void print_copies(struct perf *p)
{
	char text[PERF_SIZE_TEXT];

	perf_say(p, "\n%9s %12s %12s %12s   GB/s", "bytes", "attach", "claims", "pipe");
	for (int i = 0; i < p->floor.copies; i++) {
		const struct perf_copy_floor *c = &p->floor.copy[i];

		perf_say(p, "%9s %12.2f %12.2f %12.2f", perf_size_text(text, c->size), c->attach,
			 c->claims, c->pipe);
	}
	perf_say(p, "   attach: process_vm_readv by one side; claims: both sides, 32 KiB chunks;\n"
		    "   pipe: both cores through a ring of 256 KiB in 32 KiB chunks; 0: not "
		    "permitted");
}

void perf_floor(struct perf *p)
{
	perf_floor_ring(p);
	perf_floor_copy(p);
	perf_title(p, "floor", "the bare machine, same two processes");
	if (!p->board) {
		perf_say(p, "   not measured: the two ranks share no memory");
		return;
	}
	perf_say(p, "%-44s %8.1f ns", "cache line there and back, half", p->floor.cacheline_ns);
	perf_say(p, "%-44s %8.2f M/s", "ring of 64-byte lines", p->floor.ring_rate / 1e6);
	perf_say(p, "%-44s %8.2f GB/s", "memcpy, one core, 128 KiB (in cache)",
		 p->floor.memcpy_small);
	perf_say(p, "%-44s %8.2f GB/s", "memcpy, one core, 64 MiB (in memory)",
		 p->floor.memcpy_large);
	print_copies(p);
}
