/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which way long equal blocks of two ranks go: through pages that both write and read (hub_blocks.c), or each reads
 * the other's memory (hub_read.c). Either may be several times as fast as the other, by where the two cores are. So local
 * rank 0 looks how long they take (base/way.h), without its waits for the other rank.
 *
 * What it decides goes with its flag of the next operation, and both go by that from the one behind it on, so they always
 * agree. Blocks of much different lengths have ways of their own.
 */
#include "base/cpu.h"
#include "mpi_shim/hub_impl.h"

static unsigned int class_of(size_t bytes)
{
	unsigned int k = 0;

	for (bytes /= MPI_HUB_READ_BYTES; bytes > 1 && k < MPI_HUB_WAYS - 1; bytes /= 2)
		k++;
	return k;
}

void mpi_hub_way_init(struct mpi_hub *h)
{
	h->ways = (struct mpi_hub_ways){ 0 };
	for (unsigned int k = 0; k < MPI_HUB_WAYS; k++)
		base_way_init(&h->ways.of[k]);
}

bool mpi_hub_way_reads(struct mpi_hub *h, size_t bytes)
{
	struct mpi_hub_ways *ways = &h->ways;
	const unsigned int k = class_of(bytes);

	ways->chosen = h->me == 0;
	ways->waited = 0;
	ways->since = ways->chosen && base_way_timed(&ways->of[k]) ? base_now_ns() : 0;
	return ways->now >> k & 1;
}

void mpi_hub_way_ended(struct mpi_hub *h, size_t bytes)
{
	struct mpi_hub_ways *ways = &h->ways;
	const unsigned int k = class_of(bytes);
	uint64_t ns;

	if (!ways->chosen)
		return;
	ns = ways->since ? base_now_ns() - ways->since - ways->waited : 0;
	base_way_ended(&ways->of[k], (ns << 10) / bytes);
	ways->next = (ways->next & ~(UINT64_C(1) << k)) | (uint64_t)ways->of[k].second << k;
	ways->chosen = false;
	ways->since = 0;
}
