/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The path of long equal blocks between two ranks, or on an oversubscribed node. Either all
 * write and read shared pages (blocks.c), or each rank reads the others' memory (read.c).
 * Either path may be several times as fast as the other; it depends on where the cores are and
 * on what their caches hold.
 *
 * So local rank 0 measures how long the operations take (base/tuner.h). With a processor for
 * every rank it leaves out its waits for the other rank. Otherwise it includes them, as the
 * other ranks use its processor meanwhile.
 *
 * Its decision travels with its flag of the next operation, and all ranks use it from the
 * following operation on. So they always agree. Blocks of much different lengths have paths of
 * their own, and so have allgathers and alltoalls.
 */
#include "base/cpu.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

static unsigned int class_of_length(size_t bytes, bool to_all)
{
	unsigned int k = 0;

	for (bytes /= MPI_SHMCOLL_READ_BYTES; bytes > 1 && k < MPI_SHMCOLL_PATH_LENGTHS - 1;
	     bytes /= 2)
		k++;
	return to_all ? k : MPI_SHMCOLL_PATH_LENGTHS + k;
}

void mpi_shmcoll_path_init(struct mpi_shmcoll *h)
{
	h->paths = (struct mpi_shmcoll_paths){ 0 };
	for (unsigned int k = 0; k < MPI_SHMCOLL_PATHS; k++)
		base_tuner_init(&h->paths.of[k], 2, 0);
}

bool mpi_shmcoll_path_reads(struct mpi_shmcoll *h, size_t bytes, bool to_all)
{
	struct mpi_shmcoll_paths *paths = &h->paths;
	const unsigned int k = class_of_length(bytes, to_all);

	paths->path = h->me == 0 ? &paths->of[k] : NULL;
	paths->waited = 0;
	paths->since = paths->path && base_tuner_timed(paths->path) ? base_now_ns() : 0;
	return paths->now >> k & 1;
}

void mpi_shmcoll_path_ended(struct mpi_shmcoll *h, size_t bytes)
{
	struct mpi_shmcoll_paths *paths = &h->paths;
	uint64_t ns = 0, bit;

	if (!paths->path)
		return;
	if (paths->since)
		ns = base_now_ns() - paths->since - (h->oversubscribed ? 0 : paths->waited);
	base_tuner_ended(paths->path, (ns << 10) / bytes);
	bit = UINT64_C(1) << (paths->path - paths->of);
	paths->next = paths->path->now ? paths->next | bit : paths->next & ~bit;
	paths->path = NULL;
	paths->since = 0;
}
