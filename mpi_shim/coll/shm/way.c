/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which way long equal blocks go of two ranks, or where processors are short: through pages that
 * all write and read (blocks.c), or each reads the others' memory (read.c). Either may be
 * several times as fast as the other, by where the cores are and what their caches hold. So
 * local rank 0 looks how long they take (base/way.h): with a processor for every rank without
 * its waits for the other one, else with them, in which the others have its processor.
 *
 * What it decides goes with its flag of the next operation, and all go by that from the one
 * behind it on, so they always agree. Blocks of much different lengths have ways of their own,
 * and so have allgathers and alltoalls.
 */
#include "base/cpu.h"
#include "mpi_shim/coll/shm/hub_impl.h"

static unsigned int class_of_length(size_t bytes, bool to_all)
{
	unsigned int k = 0;

	for (bytes /= MPI_HUB_READ_BYTES; bytes > 1 && k < MPI_HUB_WAY_LENGTHS - 1; bytes /= 2)
		k++;
	return to_all ? k : MPI_HUB_WAY_LENGTHS + k;
}

void mpi_hub_way_init(struct mpi_hub *h)
{
	h->ways = (struct mpi_hub_ways){ 0 };
	for (unsigned int k = 0; k < MPI_HUB_WAYS; k++)
		base_way_init(&h->ways.of[k], 2, 0);
}

bool mpi_hub_way_reads(struct mpi_hub *h, size_t bytes, bool to_all)
{
	struct mpi_hub_ways *ways = &h->ways;
	const unsigned int k = class_of_length(bytes, to_all);

	ways->way = h->me == 0 ? &ways->of[k] : NULL;
	ways->waited = 0;
	ways->since = ways->way && base_way_timed(ways->way) ? base_now_ns() : 0;
	return ways->now >> k & 1;
}

void mpi_hub_way_ended(struct mpi_hub *h, size_t bytes)
{
	struct mpi_hub_ways *ways = &h->ways;
	uint64_t ns = 0, bit;

	if (!ways->way)
		return;
	if (ways->since)
		ns = base_now_ns() - ways->since - (h->crowded ? 0 : ways->waited);
	base_way_ended(ways->way, (ns << 10) / bytes);
	bit = UINT64_C(1) << (ways->way - ways->of);
	ways->next = ways->way->now ? ways->next | bit : ways->next & ~bit;
	ways->way = NULL;
	ways->since = 0;
}
