/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How the datagram machine uses paths of a given rate, delay, queue and loss: one sender or two,
 * and one receiver behind a link that is slower than theirs. Times are simulated, so the figures
 * are the same everywhere.
 */
#include "test/dgram/pair.h"

#include "nal/net/dgram/dgram_core.h"

#define MBIT      1000000ull
#define GBIT      1000000000ull
#define MESSAGE   (1u << 20)
#define UNDER_WAY 8u

struct path {
	uint64_t rate; /* bits per second */
	uint64_t round_trip_ns;
	uint64_t queue; /* bytes */
	uint32_t loss;  /* in thousandths */
	uint32_t jitter;
};

static struct pair p;
static struct sim_cfg cfg;

static void lay(const struct path *path)
{
	pair_settings(&cfg);
	cfg.net.o_ns = 200;
	cfg.net.G_ps = 80;
	cfg.net.last_G_ps = 8000000000000ull / path->rate;
	cfg.net.L_ns = path->round_trip_ns / 2;
	cfg.net.queue_ns = path->queue * 8 * SECOND / path->rate;
	cfg.net.path_mtu = 1472;
	cfg.net.jitter = path->jitter;
	cfg.net.faults.loss = path->loss;
	cfg.machine.rto_start_ns = cfg.machine.rto_min_ns = 0; /* as usual */
	pair_start(&p, &cfg);
}

/* Bytes that arrived from nodes 0 and 2 in `ns`, when `senders` of them always had something to
 * send. */
static void fill(uint32_t senders, uint64_t ns, uint64_t bytes[2])
{
	uint64_t end = sim_now(p.s) + ns;
	uint32_t before[2] = { p.told[0].sent, p.told[2].sent };

	do {
		for (uint32_t i = 0; i < senders; i++)
			while (p.given[2 * i][1] - p.told[2 * i].sent < UNDER_WAY)
				pair_send(&p, 2 * i, 1, MESSAGE);
	} while (sim_step(p.s, end));
	for (uint32_t i = 0; i < 2; i++)
		bytes[i] = (uint64_t)(p.told[2 * i].sent - before[i]) * MESSAGE;
}

/* The share, in thousandths, of what packets of full length can carry of the path's rate. */
static uint32_t used(const struct path *path, uint64_t bytes, uint64_t ns)
{
	const double framing =
		(1472.0 - sizeof(struct dgram_wire_head) - sizeof(struct dgram_wire_data)) / 1472;

	return (uint32_t)(1000 * 8e9 * (double)bytes / (double)ns / (double)path->rate / framing);
}

/* Of one stream, after the first moments. */
static uint32_t share(const struct path *path)
{
	uint64_t bytes[2], ns = path->rate < GBIT ? 10 * SECOND : 3 * SECOND;

	lay(path);
	fill(1, SECOND / 2, bytes);
	fill(1, ns, bytes);
	return used(path, bytes[0], ns);
}

static uint32_t lost_per_mille(void)
{
	struct net_stats st = pair_stats(&p, 0);

	return (uint32_t)(1000 * st.lost_packets / st.packets_out);
}

/* A message's end is counted, and one may be under way at both ends: hence not 1000. */
static void a_link_is_filled(void **state)
{
	static const struct path paths[] = {
		{ .rate = 100 * MBIT, .round_trip_ns = 100000, .queue = 256 << 10 },
		{ .rate = 100 * MBIT, .round_trip_ns = 100000, .queue = 32 << 10 },
		{ .rate = GBIT, .round_trip_ns = 100000, .queue = 256 << 10 },
		{ .rate = GBIT, .round_trip_ns = MS, .queue = 256 << 10 },
		{ .rate = GBIT, .round_trip_ns = 10 * MS, .queue = 1 << 20 },
		{ .rate = GBIT, .round_trip_ns = 200000, .queue = 256 << 10, .jitter = 1000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		uint32_t got = share(&paths[i]);

		print_message("# path %zu: %u of 1000, %u of 1000 packets lost\n", i, got,
			      lost_per_mille());
		assert_in_range(got, 970, 1020);
		assert_in_range(lost_per_mille(), 0, 10);
		assert_int_equal(pair_stats(&p, 0).timeouts, 0);
		pair_end(&p);
	}
}

static void loss_by_chance_is_not_congestion(void **state)
{
	static const struct path paths[] = {
		{ .rate = 100 * MBIT, .round_trip_ns = 200000, .queue = 256 << 10, .loss = 10 },
		{ .rate = GBIT, .round_trip_ns = 200000, .queue = 256 << 10, .loss = 10 },
		{ .rate = GBIT, .round_trip_ns = MS, .queue = 256 << 10, .loss = 10 },
		{ .rate = GBIT, .round_trip_ns = 10 * MS, .queue = 1 << 20, .loss = 10 },
		{ .rate = GBIT, .round_trip_ns = MS, .queue = 1 << 20, .loss = 50 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		uint32_t got = share(&paths[i]);

		print_message("# path %zu: %u of 1000, %u of 1000 packets lost\n", i, got,
			      lost_per_mille());
		/* what is lost has taken its time on the link, too, where it is lost behind it */
		assert_in_range(got, 930, 1020);
		assert_in_range(lost_per_mille(), paths[i].loss - 3, paths[i].loss + 10);
		pair_end(&p);
	}
}

static void a_short_queue_is_not_flooded(void **state)
{
	static const struct path path = { .rate = GBIT, .round_trip_ns = MS, .queue = 16 << 10 };

	(void)state;
	assert_in_range(share(&path), 930, 1020);
	assert_in_range(lost_per_mille(), 0, 50);
	pair_end(&p);
}

static void a_long_queue_is_not_filled(void **state)
{
	static const struct path path = { .rate = 100 * MBIT,
					  .round_trip_ns = MS,
					  .queue = 4 << 20 };

	(void)state;
	assert_in_range(share(&path), 970, 1020);
	/* it would hold a third of a second */
	assert_in_range(pair_info(&p, 0, 1).srtt_ns, MS, 60 * MS);
	pair_end(&p);
}

static void two_streams_share_a_link(void **state)
{
	static const struct path paths[] = {
		{ .rate = GBIT, .round_trip_ns = MS, .queue = 256 << 10 },
		{ .rate = GBIT, .round_trip_ns = MS, .queue = 256 << 10, .loss = 10 },
		{ .rate = 100 * MBIT, .round_trip_ns = 200000, .queue = 64 << 10 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		uint64_t bytes[2], ns = 4 * SECOND;
		uint32_t first;

		lay(&paths[i]);
		/* one is there before the other */
		fill(1, SECOND, bytes);
		fill(2, SECOND, bytes);
		fill(2, ns, bytes);
		first = (uint32_t)(1000 * bytes[0] / (bytes[0] + bytes[1]));
		print_message("# path %zu: %u of 1000 are the first's\n", i, first);
		assert_in_range(used(&paths[i], bytes[0] + bytes[1], ns), 950, 1020);
		/* where losses come by chance they do not come to who has more than his share */
		assert_in_range(first, paths[i].loss ? 100 : 300, paths[i].loss ? 900 : 700);
		pair_end(&p);
	}
}

/* ---- round trips longer than the first time-out ---------------------------------------------- */

#define READS      16u
#define READ_BYTES 33000u

/* Send as many long messages at once as an MX program reads; how long all of them took. */
static uint64_t time_of_reads(void)
{
	uint64_t begin = sim_now(p.s);

	for (uint32_t i = 0; i < READS; i++)
		assert_int_equal(pair_send(&p, 0, 1, READ_BYTES), 0);
	pair_until(&p, &p.told[0].sent, p.told[0].sent + READS);
	return sim_now(p.s) - begin;
}

/* Nothing is known of the path but that a packet is unanswered when its timer ends. */
static void a_long_path_is_learnt(void **state)
{
	static const struct path paths[] = {
		{ .rate = 4 * MBIT, .round_trip_ns = 200 * MS, .queue = 64 << 10 },
		{ .rate = 100 * MBIT, .round_trip_ns = 700 * MS, .queue = 1 << 20 },
		{ .rate = 100 * MBIT, .round_trip_ns = 200 * MS, .queue = 1 << 20, .loss = 10 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		uint64_t rtt = paths[i].round_trip_ns;
		uint64_t wire = 8ull * READS * READ_BYTES * SECOND / paths[i].rate;
		uint64_t first, later, spurious;

		lay(&paths[i]);
		first = time_of_reads();
		spurious = pair_stats(&p, 0).spurious;
		later = time_of_reads();
		print_message("# path %zu: %u and %u thousandths of a round trip, %u packets too "
			      "early, then %u\n",
			      i, (unsigned int)(1000 * first / rtt),
			      (unsigned int)(1000 * later / rtt), (unsigned int)spurious,
			      (unsigned int)(pair_stats(&p, 0).spurious - spurious));
		assert_in_range(first, 3 * rtt / 2, 20 * rtt + 2 * wire);
		assert_in_range(later, rtt, 15 * rtt + 2 * wire);
		if (!paths[i].loss)
			assert_in_range(pair_stats(&p, 0).spurious - spurious, 0, 8);
		pair_end(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_is_filled),
		cmocka_unit_test(loss_by_chance_is_not_congestion),
		cmocka_unit_test(a_short_queue_is_not_flooded),
		cmocka_unit_test(a_long_queue_is_not_filled),
		cmocka_unit_test(two_streams_share_a_link),
		cmocka_unit_test(a_long_path_is_learnt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
