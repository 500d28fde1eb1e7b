/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reading and writing, blocking: at an explicit position, at the individual file pointer, at the
 * shared one; alone, together, and in the order of ranks. split.c and nonblocking.c begin with the
 * same steps.
 */
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/io.h"
#include "mpi_shim/io/calls.h"

/* ---- steps ----------------------------------------------------------------------------------- */

/* Where the access begins. Moves the file pointer that it uses. */
static int find_position(struct mpi_file *file, const struct mpi_io *io, MPI_Offset *position)
{
	MPI_Offset etypes = 0;
	int err = mpi_transfer_allowed(file, io->writes,
				       io->at == MPI_AT_SHARED || io->at == MPI_AT_ORDERED);

	if (!err)
		err = mpi_transfer_etypes(file, io->count, io->type, &etypes);
	if (io->at == MPI_AT_ORDERED)
		return mpi_shared_ordered(file, err, etypes, position);
	if (err)
		return err;
	if (io->at == MPI_AT_SHARED)
		return mpi_shared_add(file, etypes, position);
	*position = io->at == MPI_AT_OFFSET ? io->offset : file->position;
	if (io->at == MPI_AT_POINTER &&
	    __builtin_add_overflow(file->position, etypes, &file->position)) {
		file->position = *position;
		return mpi_fail(MPI_ERR_ARG, "the access would reach behind byte 2^63 of the file");
	}
	return MPI_SUCCESS;
}

int mpi_io_begin(struct mpi_file *file, const struct mpi_io *io, bool together,
		 struct mpi_transfer *a)
{
	MPI_Offset position = 0;
	int err = find_position(file, io, &position);

	if (!err)
		err = mpi_transfer_begin(a, file, position, io->buf, io->count, io->type,
					 io->writes);
	if (err)
		return err;
	a->collective = together;
	mpi_transfer_raise(MPI_EVENT_FILE_BEGIN, a, MPI_SUCCESS);
	return MPI_SUCCESS;
}

int mpi_io_run(struct mpi_file *file, const struct mpi_io *io, bool together, MPI_Count *bytes)
{
	struct mpi_transfer a = { .file = file, .writes = io->writes };
	int err = mpi_io_begin(file, io, together, &a);
	bool begun = !err;

	if (together)
		err = mpi_transfer_together(&a, err);
	else if (!err)
		err = mpi_transfer_alone(&a);
	if (begun)
		err = mpi_transfer_end(&a, err);
	*bytes = begun ? a.user_bytes : 0;
	return err;
}

static int run_blocking(struct mpi_file *file, const struct mpi_io *io, bool together,
			MPI_Status *status)
{
	MPI_Count bytes = 0;
	int err;

	if (together && file->split.kind != MPI_SPLIT_NONE)
		return mpi_fail(MPI_ERR_OTHER, "a split collective has begun and not ended");
	err = mpi_io_run(file, io, together, &bytes);
	mpi_io_status(status, bytes);
	return err;
}

/* ---- alone ----------------------------------------------------------------------------------- */

int mpi_file_read_at(struct mpi_file *fh, MPI_Offset offset, void *buf, MPI_Count count,
		     struct mpi_type *datatype, MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_OFFSET, false, offset, buf, count, datatype };

	return run_blocking(fh, &io, false, status);
}

int mpi_file_write_at(struct mpi_file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
		      struct mpi_type *datatype, MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_OFFSET, true, offset, mpi_io_buffer(buf), count, datatype };

	return run_blocking(fh, &io, false, status);
}

int mpi_file_read(struct mpi_file *fh, void *buf, MPI_Count count, struct mpi_type *datatype,
		  MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_POINTER, false, 0, buf, count, datatype };

	return run_blocking(fh, &io, false, status);
}

int mpi_file_write(struct mpi_file *fh, const void *buf, MPI_Count count, struct mpi_type *datatype,
		   MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_POINTER, true, 0, mpi_io_buffer(buf), count, datatype };

	return run_blocking(fh, &io, false, status);
}

int mpi_file_read_shared(struct mpi_file *fh, void *buf, MPI_Count count, struct mpi_type *datatype,
			 MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_SHARED, false, 0, buf, count, datatype };

	return run_blocking(fh, &io, false, status);
}

int mpi_file_write_shared(struct mpi_file *fh, const void *buf, MPI_Count count,
			  struct mpi_type *datatype, MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_SHARED, true, 0, mpi_io_buffer(buf), count, datatype };

	return run_blocking(fh, &io, false, status);
}

/* ---- together -------------------------------------------------------------------------------- */

int mpi_file_read_at_all(struct mpi_file *fh, MPI_Offset offset, void *buf, MPI_Count count,
			 struct mpi_type *datatype, MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_OFFSET, false, offset, buf, count, datatype };

	return run_blocking(fh, &io, true, status);
}

int mpi_file_write_at_all(struct mpi_file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
			  struct mpi_type *datatype, MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_OFFSET, true, offset, mpi_io_buffer(buf), count, datatype };

	return run_blocking(fh, &io, true, status);
}

int mpi_file_read_all(struct mpi_file *fh, void *buf, MPI_Count count, struct mpi_type *datatype,
		      MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_POINTER, false, 0, buf, count, datatype };

	return run_blocking(fh, &io, true, status);
}

int mpi_file_write_all(struct mpi_file *fh, const void *buf, MPI_Count count,
		       struct mpi_type *datatype, MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_POINTER, true, 0, mpi_io_buffer(buf), count, datatype };

	return run_blocking(fh, &io, true, status);
}

int mpi_file_read_ordered(struct mpi_file *fh, void *buf, MPI_Count count,
			  struct mpi_type *datatype, MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_ORDERED, false, 0, buf, count, datatype };

	return run_blocking(fh, &io, true, status);
}

int mpi_file_write_ordered(struct mpi_file *fh, const void *buf, MPI_Count count,
			   struct mpi_type *datatype, MPI_Status *status)
{
	struct mpi_io io = { MPI_AT_ORDERED, true, 0, mpi_io_buffer(buf), count, datatype };

	return run_blocking(fh, &io, true, status);
}
