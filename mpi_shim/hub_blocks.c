/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives with a block for each rank, in the memory of a hub: all show what they give, meet, and take what
 * is theirs.
 */
#include "mpi_shim/coll_impl.h"
#include "mpi_shim/error.h"
#include "mpi_shim/hub_impl.h"

/* A place for the data of each rank in the operation that begins. */
static int begin(struct mpi_hub *h, bool wide)
{
	int rc;

	mpi_hub_begin(h, wide);
	if (!wide)
		return mpi_hub_reserve(h);
	rc = mpi_hub_reserve_long(h);
	mpi_hub_left_long(h);
	return rc;
}

/* What this rank gives: `bytes` bytes, as all do. */
static int show(struct mpi_hub *h, const void *in, MPI_Count count, const struct mpi_type *type,
		size_t bytes)
{
	if (count * type->size != (MPI_Count)bytes)
		return mpi_fail(MPI_ERR_TRUNCATE,
				"%lld bytes are sent where %zu are received: all blocks have to be "
				"equal",
				(long long)(count * type->size), bytes);
	mpi_type_pack_bytes(type, in, count, 0, mpi_hub_place(h, h->me, bytes), bytes);
	return MPI_SUCCESS;
}

/* Takes `bytes` bytes at `from` as block i. */
static int take(const char *from, size_t bytes, const struct mpi_vec *recv, int i)
{
	return mpi_type_copy(from, (MPI_Count)bytes, mpi_bytes(), mpi_vec_at(recv, i),
			     mpi_vec_count(recv, i), mpi_vec_type(recv, i));
}

int mpi_hub_allgather(struct mpi_hub *h, const void *in, MPI_Count count, struct mpi_type *type,
		      const struct mpi_vec *recv)
{
	size_t bytes = (size_t)mpi_vec_bytes(recv, 0);
	int rc = begin(h, bytes > MPI_HUB_FEW);

	if (!rc)
		rc = show(h, in, count, type, bytes);
	rc = mpi_first(rc, mpi_hub_meet(h));
	for (int i = 0; i < h->n && !rc; i++)
		if (i != h->me || in != mpi_vec_at(recv, i))
			rc = take(mpi_hub_place(h, i, bytes), bytes, recv, i);
	return mpi_hub_leave(h, rc);
}

int mpi_hub_alltoall(struct mpi_hub *h, const struct mpi_vec *send, const struct mpi_vec *recv)
{
	size_t each = (size_t)mpi_vec_bytes(recv, 0), bytes = each * (size_t)h->n;
	int rc = begin(h, bytes > MPI_HUB_FEW);

	if (!rc)
		rc = show(h, send->buf, send->count * h->n, send->type, bytes);
	rc = mpi_first(rc, mpi_hub_meet(h));
	for (int i = 0; i < h->n && !rc; i++)
		rc = take(mpi_hub_place(h, i, bytes) + (size_t)h->me * each, each, recv, i);
	return mpi_hub_leave(h, rc);
}

int mpi_hub_gather(struct mpi_hub *h, const void *in, MPI_Count count, struct mpi_type *type,
		   const struct mpi_vec *recv, size_t bytes, int root)
{
	int rc = begin(h, bytes > MPI_HUB_BYTES);

	if (!rc && in != MPI_IN_PLACE)
		rc = show(h, in, count, type, bytes);
	mpi_hub_raise(h);
	if (h->me == root) {
		rc = mpi_first(rc, mpi_hub_await_all(h));
		for (int i = 0; i < h->n && !rc; i++)
			if (i != root || in != MPI_IN_PLACE)
				rc = take(mpi_hub_place(h, i, bytes), bytes, recv, i);
	}
	return mpi_hub_leave(h, rc);
}

int mpi_hub_scatter(struct mpi_hub *h, const struct mpi_vec *send, void *out, MPI_Count count,
		    struct mpi_type *type, size_t each, int root)
{
	size_t bytes = each * (size_t)h->n;
	int rc = begin(h, bytes > MPI_HUB_BYTES);
	const char *mine = mpi_hub_place(h, root, bytes) + (size_t)h->me * each;

	if (h->me == root && !rc)
		rc = show(h, send->buf, send->count * h->n, send->type, bytes);
	if (h->me == root)
		mpi_hub_raise(h);
	else
		rc = mpi_first(rc, mpi_hub_await_flag(h, root));
	if (!rc && out != MPI_IN_PLACE)
		rc = mpi_type_copy(mine, (MPI_Count)each, mpi_bytes(), out, count, type);
	return mpi_hub_leave(h, rc);
}
