/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Short messages of many ranks to one, and what blocks cost.
 */
#include "bench.h"

#include <stdlib.h>

/* ---- many to one ----------------------------------------------------------------------------- */

/* Rank 0 receives `each` messages of each of `senders` ranks; checks that none is missing, and
 * that those of each come in order. The time, ns. */
static double receive_from_many(int senders, uint64_t each)
{
	uint64_t *next = calloc((size_t)bench_size, sizeof(*next)), start = bench_now();

	if (!next)
		bench_fail("out of memory");
	for (int node = 1; node <= senders; node++)
		bench_send(node, each, 0);
	for (uint64_t left = each * (uint64_t)senders; left;) {
		rwapi_small_t small;
		int node, found = rwapi_receive(&node, &small);

		if (found < 0)
			bench_fail("rwapi_receive: %s", rwapi_strerror(found));
		if (!found)
			continue;
		if (node < 1 || node > senders || small.word[0] != next[node]++)
			bench_fail("a message of rank %d is lost, repeated, or out of order", node);
		left--;
	}
	free(next);
	return (double)(bench_now() - start);
}

/* Sleep until there is an order: ranks that have no part yet leave the processors to the others. */
static uint64_t wait_for_order(void)
{
	int found = rwapi_wait(-1);

	if (found < 0)
		bench_fail("rwapi_wait: %s", rwapi_strerror(found));
	return bench_receive(0).word[0];
}

static void send_to_one(void)
{
	uint64_t each;

	while ((each = wait_for_order()) != 0)
		for (uint64_t i = 0; i < each; i++)
			bench_send(0, i, 0);
}

static void receive_with(int senders, const struct bench_options *o)
{
	double ns[BENCH_RUNS], total = 0;
	uint64_t each = 8;
	char kind[32];

	while (total < o->seconds * 1e9 / 8)
		total = receive_from_many(senders, each *= 2);
	each = (uint64_t)((double)each * o->seconds * 1e9 / total) + 1;
	for (int i = 0; i < o->runs; i++)
		ns[i] = receive_from_many(senders, each) / (double)each / senders;
	snprintf(kind, sizeof(kind), "%d senders", senders);
	bench_point("many", kind, SHORT_BYTES, ns, o->runs);
}

void bench_many(const struct bench_options *o)
{
	if (bench_rank) {
		send_to_one();
		return;
	}
	for (int senders = 1; senders < bench_size; senders *= 2)
		receive_with(senders, o);
	if (bench_size > 2 && ((bench_size - 1) & (bench_size - 2)))
		receive_with(bench_size - 1, o);
	for (int node = 1; node < bench_size; node++)
		bench_send(node, 0, 0);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

enum { BLOCKS = 10000, BLOCK_BYTES = 256, WRITES = 20000 };

static void *block[BLOCKS];
static rwapi_net_t net[BLOCKS];

static void allocate_all(void)
{
	for (int i = 0; i < BLOCKS; i++)
		if (!(block[i] = rwapi_alloc(BLOCK_BYTES, &net[i])))
			bench_fail("rwapi_alloc: no memory for block %d", i);
}

static void free_all(void)
{
	for (int i = 0; i < BLOCKS; i++)
		if (rwapi_free(block[i]) != RWAPI_OK)
			bench_fail("rwapi_free of block %d", i);
}

/* Round trips of 8 bytes into a block of the other; the time of one way, ns. */
static double write_to(rwapi_net_t own, rwapi_net_t remote)
{
	uint64_t start = bench_now();

	for (int i = 0; i < WRITES; i++) {
		if (bench_rank)
			bench_receive(0);
		if (rwapi_write(!bench_rank, own, remote, 8) < 0)
			bench_fail("rwapi_write failed");
		bench_send(!bench_rank, 0, 0);
		if (!bench_rank)
			bench_receive(1);
	}
	return (double)(bench_now() - start) / WRITES / 2;
}

void bench_blocks(const struct bench_options *o)
{
	double alloc[BENCH_RUNS], release[BENCH_RUNS], first[BENCH_RUNS], last[BENCH_RUNS];

	if (bench_rank > 1)
		return;
	for (int i = 0; i < o->runs; i++) {
		uint64_t start = bench_now();
		rwapi_small_t other;

		allocate_all();
		alloc[i] = (double)(bench_now() - start) / BLOCKS;
		bench_send(!bench_rank, net[0], net[BLOCKS - 1]);
		other = bench_receive(!bench_rank);
		first[i] = write_to(net[0], other.word[0]);
		last[i] = write_to(net[BLOCKS - 1], other.word[1]);
		start = bench_now();
		free_all();
		release[i] = (double)(bench_now() - start) / BLOCKS;
		bench_send(!bench_rank, 0, 0);
		bench_receive(!bench_rank);
	}
	if (bench_rank)
		return;
	bench_point("blocks", "alloc", BLOCK_BYTES, alloc, o->runs);
	bench_point("blocks", "free", BLOCK_BYTES, release, o->runs);
	bench_point("blocks", "write 1st", 8, first, o->runs);
	bench_point("blocks", "write last", 8, last, o->runs);
}
