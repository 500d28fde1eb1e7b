/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which way long equal blocks of two ranks go: through pages that both write and read (hub_blocks.c), or each reads
 * the other's memory (hub_read.c). Either may be several times as fast as the other, by where the two cores are, which
 * nobody can tell beforehand and which changes while a program runs. So local rank 0 looks how long they take, without
 * its waits for the other rank. For most of the time it only counts operations. Then it takes the time of some, of some
 * more that go the other way, and stays with what was faster:
 *
 *   RESTS --> PRESENT --> SETTLES --> OTHER --> RESTS
 *             timed                   timed
 *
 * It rests the longer the worse the other way was. What it decides goes with its flag of the next operation, and both
 * go by that from the one behind it on, so they always agree. Blocks of much different lengths have ways of their own.
 */
#include "base/cpu.h"
#include "mpi_shim/hub_impl.h"

#define SETTLES_IN  4 /* operations: two until both know, two to fill the caches */
#define REST_FIRST  8
#define REST_LEAST  64
#define REST_MOST   4096
#define COST_FACTOR UINT64_C(64) /* of all time a trial may cost one part in so many */

enum phase { RESTS, PRESENT, SETTLES, OTHER };

static unsigned int class_of(size_t bytes)
{
	unsigned int k = 0;

	for (bytes /= MPI_HUB_READ_BYTES; bytes > 1 && k < MPI_HUB_WAYS - 1; bytes /= 2)
		k++;
	return k;
}

static bool timed(const struct mpi_hub_way *w)
{
	return w->phase == PRESENT || w->phase == OTHER;
}

void mpi_hub_way_init(struct mpi_hub *h)
{
	h->ways = (struct mpi_hub_ways){ 0 };
	for (unsigned int k = 0; k < MPI_HUB_WAYS; k++)
		h->ways.of[k].left = REST_FIRST;
}

bool mpi_hub_way_reads(struct mpi_hub *h, size_t bytes)
{
	struct mpi_hub_ways *ways = &h->ways;
	const unsigned int k = class_of(bytes);

	ways->chosen = h->me == 0;
	ways->waited = 0;
	ways->since = ways->chosen && timed(&ways->of[k]) ? base_now_ns() : 0;
	return ways->now >> k & 1;
}

static uint64_t median(uint64_t *of)
{
	for (int i = 1; i < MPI_HUB_WAY_RUNS; i++)
		for (int j = i; j > 0 && of[j - 1] > of[j]; j--) {
			uint64_t t = of[j];

			of[j] = of[j - 1];
			of[j - 1] = t;
		}
	return of[MPI_HUB_WAY_RUNS / 2];
}

/* Goes back if the other way was not better by far. How long it rests then. */
static uint32_t decide(struct mpi_hub_ways *ways, unsigned int k)
{
	struct mpi_hub_way *w = &ways->of[k];
	uint64_t was = median(w->cost[0]), is = median(w->cost[1]), rest;

	if (is < was - was / 8)
		return REST_LEAST;
	ways->next ^= UINT64_C(1) << k;
	rest = COST_FACTOR * (SETTLES_IN + MPI_HUB_WAY_RUNS) * (is > was ? is - was : 0) /
	       (was | 1);
	return rest < REST_LEAST ? REST_LEAST : rest > REST_MOST ? REST_MOST : (uint32_t)rest;
}

static void go_on(struct mpi_hub_ways *ways, unsigned int k)
{
	struct mpi_hub_way *w = &ways->of[k];

	switch (w->phase) {
	case RESTS:
		w->phase = PRESENT;
		w->left = MPI_HUB_WAY_RUNS;
		break;
	case PRESENT:
		w->phase = SETTLES;
		w->left = SETTLES_IN;
		ways->next ^= UINT64_C(1) << k;
		break;
	case SETTLES:
		w->phase = OTHER;
		w->left = MPI_HUB_WAY_RUNS;
		break;
	default:
		w->phase = RESTS;
		w->left = decide(ways, k);
	}
}

static void ended(struct mpi_hub_ways *ways, unsigned int k, size_t bytes)
{
	struct mpi_hub_way *w = &ways->of[k];

	w->left--;
	if (ways->since) {
		uint64_t ns = base_now_ns() - ways->since - ways->waited;

		w->cost[w->phase == OTHER][w->left % MPI_HUB_WAY_RUNS] = (ns << 10) / bytes;
		ways->since = 0;
	}
	if (!w->left)
		go_on(ways, k);
}

void mpi_hub_way_ended(struct mpi_hub *h, size_t bytes)
{
	if (!h->ways.chosen)
		return;
	h->ways.chosen = false;
	ended(&h->ways, class_of(bytes), bytes);
}
