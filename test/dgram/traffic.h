/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Random traffic between a few simulated processes: messages of all lengths, taken, refused, cut
 * short, put off; and a check that each is delivered once, in order, to the byte, and ends once
 * on each side.
 */
#ifndef TEST_DGRAM_TRAFFIC_H
#define TEST_DGRAM_TRAFFIC_H

#include "nal/net/dgram/sim/sim.h"

#define TRAFFIC_NODES 6

struct traffic_cfg {
	uint64_t seed;
	uint32_t nodes, messages;
	uint64_t long_bytes, pause_ns, trouble_ns, dead_ns;
	struct sim_faults faults;
	bool crashes, partitions;
	bool must_arrive; /* faults are so few that no connection may be given up */
};

struct traffic_result {
	uint32_t done, failed;
	struct sim_stats net;
	char why[256];
};

/* False: result->why says what went wrong. */
bool traffic_run(const struct traffic_cfg *cfg, struct traffic_result *result);

#endif
