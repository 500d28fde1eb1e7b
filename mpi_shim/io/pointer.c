/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Setting and asking for file pointers, the individual and the shared one.
 */
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/io.h"

static int refuse_sequential(const struct mpi_file *file)
{
	if (file->amode & MPI_MODE_SEQUENTIAL)
		return mpi_fail(MPI_ERR_UNSUPPORTED_OPERATION,
				"%s was opened with MPI_MODE_SEQUENTIAL", file->name);
	return MPI_SUCCESS;
}

/* The position that a seek leads to, from the present one. */
static int find_target(const struct mpi_file *file, MPI_Offset present, MPI_Offset offset,
		       int whence, MPI_Offset *target)
{
	MPI_Offset from = 0;
	int64_t bytes = 0;
	int err = MPI_SUCCESS;

	if (whence == MPI_SEEK_CUR)
		from = present;
	else if (whence == MPI_SEEK_END)
		err = mpi_disk_size(file, &bytes);
	else if (whence != MPI_SEEK_SET)
		err = mpi_fail(MPI_ERR_ARG,
			       "whence is %d: it must be MPI_SEEK_SET, MPI_SEEK_CUR "
			       "or MPI_SEEK_END",
			       whence);
	if (!err && whence == MPI_SEEK_END)
		from = mpi_view_etypes_to(&file->view, bytes);
	if (!err && (__builtin_add_overflow(from, offset, target) || *target < 0))
		err = mpi_fail(MPI_ERR_ARG, "%lld etypes from %lld leads to no position",
			       (long long)offset, (long long)from);
	return err;
}

int mpi_file_seek(struct mpi_file *fh, MPI_Offset offset, int whence)
{
	MPI_Offset target = 0;
	int err = refuse_sequential(fh);

	if (!err)
		err = find_target(fh, fh->position, offset, whence, &target);
	if (!err)
		fh->position = target;
	return err;
}

int mpi_file_get_position(struct mpi_file *fh, MPI_Offset *offset)
{
	int err = refuse_sequential(fh);

	if (!err)
		*offset = fh->position;
	return err;
}

int mpi_file_get_byte_offset(struct mpi_file *fh, MPI_Offset offset, MPI_Offset *disp)
{
	uint64_t at;
	int err;

	if (offset < 0)
		return mpi_fail(MPI_ERR_ARG, "the offset %lld is negative", (long long)offset);
	if (__builtin_mul_overflow((uint64_t)offset, (uint64_t)fh->view.etype_bytes, &at))
		at = UINT64_MAX;
	err = mpi_view_reaches(&fh->view, at, 1);
	if (!err)
		*disp = mpi_view_place(&fh->view, at);
	return err;
}

int mpi_file_get_position_shared(struct mpi_file *fh, MPI_Offset *offset)
{
	int err = refuse_sequential(fh);

	return err ? err : mpi_shared_add(fh, 0, offset);
}

/* All ranks must have called before the pointer moves. Else it could move under an access that
 * comes before the seek. Rank 0 decides for all where a place relative to the pointer, or to the
 * end, is. */
int mpi_file_seek_shared(struct mpi_file *fh, MPI_Offset offset, int whence)
{
	MPI_Offset target = 0, present = 0;
	int err = refuse_sequential(fh);

	err = mpi_file_agree(fh->comm, err, offset, "the offset");
	if (!err)
		err = mpi_file_agree(fh->comm, MPI_SUCCESS, whence, "whence");
	if (err)
		return err;
	if (fh->comm->rank == 0) {
		err = mpi_shared_add(fh, 0, &present);
		if (!err)
			err = find_target(fh, present, offset, whence, &target);
	}
	err = mpi_file_agree(fh->comm, err, 0, "");
	return err ? err : mpi_shared_set(fh, target);
}
