/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Alltoalls whose blocks may all differ, in the shared-memory area. A rank knows only the
 * lengths of the blocks that it sends or receives. So each rank writes a header for all: how
 * long its blocks are, and the blocks themselves if they are short together.
 *
 * When all headers have been seen there are two cases. If the headers had all blocks, the
 * operation is over. Otherwise all ranks know the length of the longest block, and send
 * segments of that length (blocks.c). They do not if most of many segments would be empty,
 * unless PTL_MPI_COLL asks for it.
 */
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/coll/shm/shmcoll_impl.h"

/* In a rank's cell. end[i] is where the block for rank i ends, with all blocks one behind the
 * other. The blocks follow the header in that order if they fit. */
struct header {
	uint64_t longest; /* of the blocks */
	uint64_t end[];
};

static_assert(sizeof(struct header) + MPI_SHMCOLL_HEADERS * sizeof(uint64_t) <=
		      MPI_SHMCOLL_BYTES / 2,
	      "a header has room for blocks, too");

/* More barriers than BARRIERS_FEW are worth it only if each rank gives BARRIER_BYTES in each,
 * on average. */
#define BARRIERS_FEW  4
#define BARRIER_BYTES (48 << 10)

static struct header *header_of(const struct mpi_shmcoll *h, int i)
{
	return (struct header *)(void *)mpi_shmcoll_cell(h, i, MPI_SHMCOLL_BYTES);
}

static char *blocks_of_header(const struct mpi_shmcoll *h, struct header *l)
{
	return (char *)&l->end[h->n];
}

static size_t room_for_blocks(const struct mpi_shmcoll *h)
{
	return MPI_SHMCOLL_BYTES - sizeof(struct header) - (size_t)h->n * sizeof(uint64_t);
}

/* Write the header, and all blocks that fit except the own one. */
static void write_header(struct mpi_shmcoll *h, const struct mpi_vec *v)
{
	struct header *l = header_of(h, h->me);
	uint64_t end = 0, longest = 0;

	for (int i = 0; i < h->n; i++) {
		const uint64_t at = end, bytes = i == h->me ? 0 : (uint64_t)mpi_vec_bytes(v, i);

		longest = bytes > longest ? bytes : longest;
		end = at + bytes < at ? UINT64_MAX : at + bytes;
		l->end[i] = end;
		if (bytes && end <= room_for_blocks(h))
			mpi_type_pack_bytes(mpi_vec_type(v, i), mpi_vec_at(v, i),
					    mpi_vec_count(v, i), 0, blocks_of_header(h, l) + at,
					    bytes);
	}
	l->longest = longest;
}

/* Where the block for this rank begins. */
static uint64_t begin_of_header(const struct mpi_shmcoll *h, const struct header *l)
{
	return h->me ? l->end[h->me - 1] : 0;
}

/* The headers of all ranks together; at first of no rank. */
struct headers {
	bool short_ones; /* all blocks are in the headers */
	uint64_t longest, all;
	uint64_t sent[MPI_SHMCOLL_HEADERS]; /* by each rank to this one */
};

static void read_lengths(const struct mpi_shmcoll *h, struct headers *m)
{
	for (int i = 0; i < h->n; i++) {
		const struct header *l = header_of(h, i);
		const uint64_t end = l->end[h->n - 1];

		m->short_ones &= end <= room_for_blocks(h);
		m->longest = l->longest > m->longest ? l->longest : m->longest;
		m->all = m->all + end < end ? UINT64_MAX : m->all + end;
		m->sent[i] = l->end[h->me] - begin_of_header(h, l);
	}
}

static void read_blocks(const struct mpi_shmcoll *h, const struct headers *m,
			const struct mpi_vec *v)
{
	for (int i = 0; i < h->n; i++) {
		struct header *l = header_of(h, i);
		const uint64_t at = begin_of_header(h, l), room = (uint64_t)mpi_vec_bytes(v, i);
		const uint64_t bytes = m->sent[i] < room ? m->sent[i] : room;

		/* another process could write nonsense to the shared memory */
		if (bytes && at <= room_for_blocks(h) && bytes <= room_for_blocks(h) - at)
			mpi_type_unpack_bytes(mpi_vec_type(v, i), mpi_vec_at(v, i),
					      mpi_vec_count(v, i), 0, blocks_of_header(h, l) + at,
					      bytes);
	}
}

/* Check that no block is longer than its receive buffer. */
static int check_headers_fit(const struct mpi_shmcoll *h, const struct headers *m,
			     const struct mpi_vec *v)
{
	for (int i = 0; i < h->n; i++)
		if (m->sent[i] > (uint64_t)mpi_vec_bytes(v, i))
			return mpi_fail(
				MPI_ERR_TRUNCATE,
				"%llu bytes came for a buffer of %lld bytes; the rest was dropped",
				(unsigned long long)m->sent[i], (long long)mpi_vec_bytes(v, i));
	return MPI_SUCCESS;
}

bool mpi_shmcoll_alltoallv(struct mpi_shmcoll *h, const struct mpi_vec *send,
			   const struct mpi_vec *recv, int *rc)
{
	struct headers m = { .short_ones = true };
	uint64_t barriers;

	mpi_shmcoll_begin(h, false);
	*rc = mpi_shmcoll_reserve(h);
	if (!*rc)
		write_header(h, send);
	*rc = mpi_first(*rc, mpi_shmcoll_node_barrier(h));
	if (*rc) {
		mpi_shmcoll_leave(h, *rc);
		return true;
	}
	read_lengths(h, &m);
	if (m.short_ones)
		read_blocks(h, &m, recv);
	mpi_shmcoll_leave(h, MPI_SUCCESS);
	if (!m.short_ones) {
		barriers = mpi_shmcoll_alltoall_barriers(h, m.longest);
		if (!mpi_coll_wanted(MPI_COLL_ALLTOALL_SHM) && barriers > BARRIERS_FEW &&
		    m.all / barriers / (uint64_t)h->n < BARRIER_BYTES)
			return false;
		*rc = mpi_shmcoll_alltoall_segments(h, MPI_SUCCESS, send, recv, m.sent,
						    (MPI_Count)m.longest);
	}
	if (!*rc)
		*rc = check_headers_fit(h, &m, recv);
	return true;
}
