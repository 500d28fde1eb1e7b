/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The shared file pointer: a word in the memory of rank 0 that all ranks change by one-sided
 * atomics, so that rank 0 may compute meanwhile. It is a window of the library's own, with one
 * access epoch from opening to closing.
 */
#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/io.h"
#include "mpi_shim/rma/win.h"

#include <stdlib.h>

int mpi_shared_open(struct mpi_file *file, int err)
{
	MPI_Aint bytes = file->comm->rank == 0 ? (MPI_Aint)sizeof(file->own_shared) : 0;
	void *base = NULL;

	err = mpi_file_agree(file->comm, err, 0, "");
	if (err || file->comm->size == 1)
		return err;
	err = mpi_win_allocate(bytes, (MPI_Aint)sizeof(file->own_shared), NULL, file->comm, &base,
			       &file->shared);
	if (!err && bytes)
		*(MPI_Offset *)base = file->own_shared;
	if (!err)
		err = mpi_win_lock_all(MPI_MODE_NOCHECK, file->shared);
	/* nobody may use the pointer before it has its first value */
	err = mpi_file_agree(file->comm, err, 0, "");
	if (err) {
		mpi_object_release(file->shared);
		file->shared = NULL;
	}
	return err;
}

void mpi_shared_close(struct mpi_file *file, bool alone)
{
	if (!file->shared)
		return;
	/* after a failure nobody uses the window any more */
	if (alone || mpi_win_unlock_all(file->shared) || mpi_win_free(&file->shared))
		mpi_object_release(file->shared);
	file->shared = NULL;
}

/* Change the word at rank 0 and return its value before. */
static int change(struct mpi_file *file, MPI_Op op, MPI_Offset with, MPI_Offset *before)
{
	struct mpi_type *type = mpi_type_of(MPI_INT64_T);
	int err = mpi_fetch_and_op(&with, before, type, 0, 0, mpi_op_of(op), file->shared);

	return err ? err : mpi_win_flush(0, file->shared);
}

int mpi_shared_add(struct mpi_file *file, MPI_Offset etypes, MPI_Offset *before)
{
	if (file->shared)
		return change(file, MPI_SUM, etypes, before);
	*before = file->own_shared;
	file->own_shared += etypes;
	return MPI_SUCCESS;
}

int mpi_shared_set(struct mpi_file *file, MPI_Offset position)
{
	MPI_Offset before;
	int err = MPI_SUCCESS;

	if (!file->shared) {
		file->own_shared = position;
		return MPI_SUCCESS;
	}
	if (file->comm->rank == 0)
		err = change(file, MPI_REPLACE, position, &before);
	return mpi_file_agree(file->comm, err, 0, "");
}

/* The part of a rank in an ordered access. */
struct share {
	int64_t error, etypes;
};

/* The etypes of the ranks before this one, and of all. The first error of a rank is that of all,
 * but for its own text. */
static int sum_shares(struct mpi_file *file, const struct share *share, int err, MPI_Offset *mine,
		      MPI_Offset *all)
{
	*mine = *all = 0;
	for (int i = 0; share && i < file->comm->size; i++) {
		if (share[i].error && !err)
			err = mpi_fail((int)share[i].error, "rank %d of the file failed: %s", i,
				       mpi_error_text((int)share[i].error));
		if (i == file->comm->rank)
			*mine = *all;
		if (__builtin_add_overflow(*all, share[i].etypes, all) && !err)
			err = mpi_fail(MPI_ERR_ARG, "the ranks' parts exceed 2^63 etypes");
	}
	return err;
}

int mpi_shared_ordered(struct mpi_file *file, int err, MPI_Offset etypes, MPI_Offset *position)
{
	struct share own = { mpi_error_class_of(err), err ? 0 : etypes };
	struct share *share = calloc((size_t)file->comm->size, sizeof(*share));
	MPI_Offset before[2] = { 0, 0 }, mine = 0, all = 0; /* the pointer, and an error */
	int64_t no_memory = share ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	int rc = mpi_coll_allreduce_max(&no_memory, 1, file->comm);

	if (!rc && no_memory)
		rc = mpi_fail_memory("an ordered access");
	if (!rc)
		rc = mpi_coll_allgather_bytes(&own, share, sizeof(own), file->comm);
	if (!rc)
		rc = sum_shares(file, share, err, &mine, &all);
	free(share);
	if (rc)
		return rc;
	if (file->comm->rank == 0)
		before[1] = mpi_shared_add(file, all, &before[0]);
	rc = mpi_coll_bcast_bytes(before, sizeof(before), 0, file->comm);
	if (!rc && before[1])
		rc = mpi_fail((int)before[1], "the shared file pointer cannot be changed: %s",
			      mpi_error_text((int)before[1]));
	*position = before[0] + mine;
	return rc;
}
