/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * ptlperf: how fast Portals moves data between two processes, beside what the bare machine can do.
 */
#include <stdio.h>

#include "peer.h"
#include "report.h"

/* In the order they run: the floor first, so that all others can refer to it. */
static const struct perf_test_name names[] = {
	{ "floor", NULL, "the bare machine: cache line, ring, memcpy, cross-memory attach" },
	{ "latency", "lat", "put to visible event, half round trip" },
	{ "bandwidth", "bw", "puts one way" },
	{ "bidirectional", "bibw", "puts both ways at once" },
	{ "rate", NULL, "8-byte puts per second" },
	{ "get", NULL, "latency and bandwidth of gets" },
	{ "getput", NULL, "latency of atomic swaps" },
	{ "match", NULL, "time per put with 1 to 100,000 posted entries" },
	{ "calls", NULL, "time of single calls within one process" },
	{ "bypass", NULL, "puts and gets while the target computes" },
	{ "model", NULL, "Directed Point's cost model: parameters and prediction" },
	{ "loggp", NULL, "LogGP: host overhead, gap, latency" },
	{ "rwapi", NULL, "RWAPI's ping-pong, bidirectional ping-pong, burst" },
	{ "udp", NULL, "beside bare UDP: ping-pong, segmented stream" },
	{ "eth", NULL, "beside bare Ethernet frames: ping-pong, stream" },
};

static void (*const run[])(struct perf *p) = {
	perf_floor, perf_latency, perf_bandwidth, perf_bidirectional, perf_rate,
	perf_get,   perf_getput,  perf_match,     perf_calls,         perf_bypass,
	perf_model, perf_loggp,   perf_rwapi,     perf_udp,           perf_eth,
};

enum { TESTS = sizeof(names) / sizeof(names[0]) };
_Static_assert(sizeof(run) / sizeof(run[0]) == TESTS, "a function for each name");

int main(int argc, char **argv)
{
	struct perf p = { 0 };
	int bad;

	perf_options_parse(&p.opt, argc, argv, names, TESTS);
	perf_clock_init();
	perf_peer_start(&p);
	perf_report_start(&p);
	perf_floor_cacheline(&p); /* all others refer to it */
	for (int i = 0; i < TESTS; i++)
		if (p.opt.tests & 1u << i)
			run[i](&p);
	perf_report_preempted(&p);
	perf_report_aims(&p);
	perf_report_busy(&p);
	bad = perf_report_finish(&p);
	if (perf_peer_stop(&p) || p.failed)
		bad = 1;
	return bad ? 1 : 0;
}
