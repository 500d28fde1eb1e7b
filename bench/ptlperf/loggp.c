/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The parameters of LogGP: host overheads os and or, gap g between short messages, time G per
 * byte of long ones, latency L. They come out of round trips with parameters: R(n, d) is n
 * messages with d of computing after each but the last, then one message back (the computing is
 * not counted).
 *   gap(s) = (R(n, 0) - R(1, 0)) / (n - 1) = g + s G
 *   os(s)  = (R(n, d) - R(1, 0)) / (n - 1), with d longer than R(1, 0): nothing is in the way
 *   or(s)  = taking a message that arrived while one was computing
 *   L      = R(1, 0) / 2 - os - or
 */
#include <stdio.h>

#include "link.h"
#include "probe.h"
#include "report.h"

enum { TRAIN = 17 }; /* messages: 16 gaps */

struct row {
	double os, take, gap, round_trip;
};

static double measure_train(struct perf *p, struct perf_probe *b, unsigned count, double pause_ns)
{
	struct perf_result r;

	perf_probe_train(p, b, count, pause_ns, &r);
	return r.sample.middle;
}

/* All figures of a size. The delay that rank 0 chooses needs no telling: rank 1 only answers. */
static struct row measure_size(struct perf *p, size_t size)
{
	struct perf_probe b;
	struct perf_result r;
	struct row row;
	double timer = perf_clock_cost();

	perf_probe_open(p, &b, size, 0);
	row.round_trip = measure_train(p, &b, 1, 0) - timer;
	perf_probe_close(p, &b);
	perf_probe_open(p, &b, size, row.round_trip); /* away for long enough */
	row.gap = (measure_train(p, &b, TRAIN, 0) - timer - row.round_trip) / (TRAIN - 1);
	row.os = (measure_train(p, &b, TRAIN, 1.5 * row.round_trip + 1000) - timer -
		  row.round_trip) /
			 (TRAIN - 1) -
		 timer; /* two readings around each pause */
	perf_probe_take(p, &b, &r);
	row.take = r.sample.middle - timer;
	perf_probe_close(p, &b);
	return row;
}

static void record(struct perf *p, const char *name, size_t size, const char *unit, double value)
{
	perf_record_plain(p, "loggp", name, size, unit, value);
}

static void print(struct perf *p, size_t size, const struct row *row)
{
	char text[PERF_SIZE_TEXT];

	record(p, "os", size, "ns", row->os);
	record(p, "or", size, "ns", row->take);
	record(p, "gap", size, "ns", row->gap);
	record(p, "round trip", size, "ns", row->round_trip);
	perf_say(p, "%9s %10.1f %10.1f %10.1f %12.1f", perf_size_text(text, size), row->os,
		 row->take, row->gap, row->round_trip);
}

/* The line gap = g + s G through g at the shortest size, so that all sizes deviate by the same
 * share: weighted with 1 / gap^2. */
static double per_byte(const struct perf_list *sizes, const struct row *row)
{
	double above = 0, below = 0;

	for (int i = 1; i < sizes->count; i++) {
		double s = (double)(sizes->item[i] - sizes->item[0]);
		double w = row[i].gap > 0 ? 1 / (row[i].gap * row[i].gap) : 0;

		above += w * s * (row[i].gap - row[0].gap);
		below += w * s * s;
	}
	return below > 0 ? above / below : 0;
}

void perf_loggp(struct perf *p)
{
	const struct perf_list *sizes = &p->opt.sizes;
	static struct row row[PERF_MAX_LIST];
	double latency, g_byte;

	perf_buffers(p, sizes->item[sizes->count - 1] + 1);
	perf_title(p, "loggp", "host overhead and gap, ns per message");
	perf_say(p, "%9s %10s %10s %10s %12s", "bytes", "os", "or", "gap", "round trip");
	for (int i = 0; i < sizes->count; i++) {
		row[i] = measure_size(p, sizes->item[i]);
		print(p, sizes->item[i], &row[i]);
	}
	latency = row[0].round_trip / 2 - row[0].os - row[0].take;
	g_byte = per_byte(sizes, row);
	record(p, "L", sizes->item[0], "ns", latency);
	record(p, "g", sizes->item[0], "ns", row[0].gap);
	record(p, "G", 0, "ns/B", g_byte);
	perf_say(p, "   L %.1f ns, os %.1f ns, or %.1f ns, g %.1f ns, G %.4f ns/B (%.1f GB/s)",
		 latency, row[0].os, row[0].take, row[0].gap, g_byte, g_byte > 0 ? 1 / g_byte : 0);
}
