/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Alltoalls whose blocks may all differ, in the memory of a hub. A rank knows only those that it has to do with, so each writes
 * a letter to all: how long its blocks are, and the blocks themselves if they are short together. When all letters have been
 * seen either that was all, or everybody knows how long the longest block is, and all go in pieces of that (hub_blocks.c).
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/hub_impl.h"

/* In a rank's place. */
struct letter {
	uint64_t later;   /* the blocks are not in here */
	uint64_t longest; /* of them */
	uint64_t bytes[]; /* of the block for each rank; then the blocks, one behind the other */
};

static_assert(sizeof(struct letter) + MPI_HUB_LETTERS * sizeof(uint64_t) <= MPI_HUB_BYTES / 2,
	      "a letter has room for blocks, too");

static struct letter *letter_of(const struct mpi_hub *h, int i)
{
	return (struct letter *)(void *)mpi_hub_place(h, i, MPI_HUB_BYTES);
}

static size_t blocks_at(const struct mpi_hub *h)
{
	return sizeof(struct letter) + (size_t)h->n * sizeof(uint64_t);
}

/* All but the own block. */
static int write_letter(struct mpi_hub *h, const struct mpi_vec *v)
{
	struct letter *l = letter_of(h, h->me);
	char *to = (char *)l + blocks_at(h);
	size_t room = MPI_HUB_BYTES - blocks_at(h);
	int rc = MPI_SUCCESS;

	l->later = 0;
	l->longest = 0;
	for (int i = 0; i < h->n; i++) {
		const uint64_t bytes = i == h->me ? 0 : (uint64_t)mpi_vec_bytes(v, i);

		l->bytes[i] = bytes;
		l->longest = bytes > l->longest ? bytes : l->longest;
		l->later |= bytes > room;
		if (l->later || bytes == 0)
			continue;
		rc = mpi_first(rc, mpi_type_copy(mpi_vec_at(v, i), mpi_vec_count(v, i),
						 mpi_vec_type(v, i), to, (MPI_Count)bytes,
						 mpi_bytes()));
		to += bytes;
		room -= bytes;
	}
	return rc;
}

/* The block for this rank in the letter of another one. */
static int read_letter(const struct mpi_hub *h, int from, const struct mpi_vec *v)
{
	const struct letter *l = letter_of(h, from);
	size_t at = blocks_at(h);

	for (int i = 0; i < h->me; i++) {
		const uint64_t bytes = l->bytes[i];

		at += bytes <= MPI_HUB_BYTES - at ? bytes : MPI_HUB_BYTES - at;
	}
	if (h->sent[from] > MPI_HUB_BYTES - at)
		return mpi_fail(MPI_ERR_INTERN, "the blocks of rank %d are longer than its letter",
				h->rank[from]);
	if (h->sent[from] == 0)
		return MPI_SUCCESS;
	return mpi_type_copy((const char *)l + at, (MPI_Count)h->sent[from], mpi_bytes(),
			     mpi_vec_at(v, from), mpi_vec_count(v, from), mpi_vec_type(v, from));
}

/* Of what came in pieces no more was taken than there is room for. */
static int check_room(const struct mpi_hub *h, const struct mpi_vec *v)
{
	for (int i = 0; i < h->n; i++)
		if (h->sent[i] > (uint64_t)mpi_vec_bytes(v, i))
			return mpi_fail(
				MPI_ERR_TRUNCATE,
				"%llu bytes came for a buffer of %lld bytes; the rest was dropped",
				(unsigned long long)h->sent[i], (long long)mpi_vec_bytes(v, i));
	return MPI_SUCCESS;
}

int mpi_hub_alltoallv(struct mpi_hub *h, const struct mpi_vec *send, const struct mpi_vec *recv)
{
	uint64_t later = 0, longest = 0;
	int rc;

	mpi_hub_begin(h, false);
	rc = mpi_hub_reserve(h);
	if (!rc)
		rc = write_letter(h, send);
	rc = mpi_first(rc, mpi_hub_meet(h));
	if (rc)
		return mpi_hub_leave(h, rc);
	for (int i = 0; i < h->n; i++) {
		const struct letter *l = letter_of(h, i);

		later |= l->later;
		longest = l->longest > longest ? l->longest : longest;
		h->sent[i] = l->bytes[h->me];
	}
	for (int i = 0; i < h->n && !later; i++)
		if (i != h->me)
			rc = mpi_first(rc, read_letter(h, i, recv));
	mpi_hub_leave(h, rc);
	if (!later)
		return rc;
	rc = mpi_hub_alltoall_pieces(h, MPI_SUCCESS, send, recv, h->sent, (MPI_Count)longest);
	return mpi_first(rc, check_room(h, recv));
}
