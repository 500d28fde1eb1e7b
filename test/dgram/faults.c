/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Thousands of short runs of random traffic, each with faults of one kind or of all kinds, up to
 * 30 % of each. Every message completes exactly once, to the byte, or fails with an event, and
 * nothing is left. A run follows from its seed and kind alone; those of a run that fails are
 * printed.
 *
 * faults [--runs N] [--seed S] [--kind K] [--verbose]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/dgram/traffic.h"

enum { KINDS = 9 };

static const char *const kind_text[KINDS] = {
	"without faults everything arrives",
	"lost packets",
	"duplicated packets",
	"packets out of order",
	"late packets",
	"damaged packets",
	"packets cut short",
	"one-way partitions, crashes and restarts",
	"all of that at once",
};

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static struct traffic_cfg make(uint64_t seed, int kind)
{
	struct traffic_cfg cfg = {
		.seed = seed,
		.nodes = 2 + seed % (TRAFFIC_NODES - 1),
		.messages = 12 + (uint32_t)(mix(seed) % 20),
		.long_bytes = mix(seed + 1) % 10 ? 60000 : 400000,
		.pause_ns = mix(seed + 2) % 2 ? 100000 : 20000000,
		.trouble_ns = 20000000,
		.faults = { .delay_ns = 1000000 },
	};
	struct sim_faults *f = &cfg.faults;
	uint32_t share[6];

	for (int i = 0; i < 6; i++)
		share[i] = (uint32_t)(mix(seed + 10 + (uint64_t)i) % 301);
	if (kind == 1 || kind == 8)
		f->loss = share[0];
	if (kind == 2 || kind == 8)
		f->duplicate = share[1];
	if (kind == 3 || kind == 8)
		f->reorder = share[2];
	if (kind == 4 || kind == 8)
		f->delay = share[3];
	if (kind == 5 || kind == 8)
		f->corrupt = share[4];
	if (kind == 6 || kind == 8)
		f->truncate = share[5];
	/* in half of the runs with everything, so that the other half gets further */
	cfg.crashes = cfg.partitions = kind == 7 || (kind == 8 && seed & 1);
	/* such a peer is given up while others are not, and soon enough to have it all in one
	 * run */
	cfg.dead_ns = cfg.crashes ? 300000000 : 0;
	cfg.must_arrive = kind < 7;
	return cfg;
}

static void add(struct sim_stats *sum, const struct sim_stats *s)
{
	struct sim_counts *t = &sum->faults;
	const struct sim_counts *f = &s->faults;

	t->lost += f->lost;
	t->duplicated += f->duplicated;
	t->reordered += f->reordered;
	t->delayed += f->delayed;
	t->corrupted += f->corrupted;
	t->truncated += f->truncated;
	sum->cut += s->cut;
}

/* Did what the runs of this kind are for happen, and no other fault? */
static bool happened(int kind, const struct sim_stats *s)
{
	const struct sim_counts *f = &s->faults;
	const uint64_t of[KINDS] = { 0,          f->lost,      f->duplicated, f->reordered,
				     f->delayed, f->corrupted, f->truncated,  s->cut };

	for (int k = 1; k < KINDS - 1; k++)
		if (!of[k] != (k != kind && kind != KINDS - 1))
			return false;
	return true;
}

int main(int argc, char **argv)
{
	uint64_t runs = 10000, first = 1, packets = 0, done = 0, failed = 0;
	int only = -1, broken = 0;
	bool verbose = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--runs") && i + 1 < argc)
			runs = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			first = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--kind") && i + 1 < argc)
			only = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--verbose"))
			verbose = true;
		else {
			fprintf(stderr,
				"usage: %s [--runs N] [--seed S] [--kind 0..8] [--verbose]\n",
				argv[0]);
			return 2;
		}
	}
	printf("1..%d\n", only < 0 ? KINDS : 1);
	for (int kind = only < 0 ? 0 : only; kind < KINDS && (only < 0 || kind == only); kind++) {
		uint64_t count = only < 0 ? runs / KINDS + (kind == 8 ? runs % KINDS : 0) : runs;
		uint64_t seed = first + (only < 0 ? (uint64_t)kind << 32 : 0);
		struct sim_stats sum = { 0 };
		bool ok = true;

		for (uint64_t i = 0; i < count && ok; i++) {
			struct traffic_cfg cfg = make(seed + i, kind);
			struct traffic_result r;

			ok = traffic_run(&cfg, &r);
			packets += r.net.packets;
			done += r.done;
			failed += r.failed;
			add(&sum, &r.net);
			if (verbose || !ok)
				printf("# seed %llu: %u done, %u failed, %llu packets, %llu lost\n",
				       (unsigned long long)cfg.seed, r.done, r.failed,
				       (unsigned long long)r.net.packets,
				       (unsigned long long)r.net.faults.lost);
			if (!ok)
				printf("# %s\n# again: %s --runs 1 --kind %d --seed %llu\n", r.why,
				       argv[0], kind, (unsigned long long)cfg.seed);
		}
		if (ok && count >= 100 && !happened(kind, &sum)) {
			printf("# other faults happened than were to\n");
			ok = false;
		}
		broken += !ok;
		printf("%sok %d - %s, %llu runs\n", ok ? "" : "not ", only < 0 ? kind + 1 : 1,
		       kind_text[kind], (unsigned long long)count);
		fflush(stdout);
	}
	printf("# %llu messages done, %llu failed with an event, %llu packets\n",
	       (unsigned long long)done, (unsigned long long)failed, (unsigned long long)packets);
	return broken ? 1 : 0;
}
