/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Reading and writing, non-blocking, and the split collectives. The request has the error and the
 * count of the access.
 *
 * A non-blocking collective call needs no other rank: each moves its own data. So ranks may have
 * any number of them in progress, in between other collectives.
 */
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/calls.h"

/* ---- requests -------------------------------------------------------------------------------- */

static int status_of_file(struct mpi_request *r, MPI_Status *status)
{
	mpi_io_status(status, r->bytes);
	if (!r->error)
		return MPI_SUCCESS;
	mpi_fail(r->error, "%s", r->error_text ? r->error_text : "");
	mpi_fail_on(r->win);
	return r->error;
}

__attribute__((constructor(201))) static void set_up_file_requests(void)
{
	mpi_request_ops[MPI_REQ_FILE].status = status_of_file;
}

static struct mpi_request *new_request(const struct mpi_file *file)
{
	struct mpi_request *r = mpi_request_new(MPI_REQ_FILE);

	if (!r)
		return NULL;
	r->win = file->obj.handle;
	r->bytes = 0;
	r->active = true;
	return r;
}

void mpi_io_complete(struct mpi_request *r, int err, MPI_Count bytes)
{
	r->bytes = bytes;
	if (err)
		mpi_request_fail(r, err, "%s", mpi_fail_text());
	mpi_request_done(r);
}

static int start_io(struct mpi_file *file, const struct mpi_io *io, struct mpi_request **request)
{
	struct mpi_transfer a = { .file = file, .writes = io->writes };
	struct mpi_request *r = new_request(file);
	int err;

	if (!r)
		return MPI_ERR_NO_MEM;
	*request = r;
	err = mpi_io_begin(file, io, false, &a);
	if (err) {
		mpi_io_complete(r, err, 0);
		return MPI_SUCCESS;
	}
	if (mpi_uring_start(&a, r))
		return MPI_SUCCESS;
	err = mpi_transfer_end(&a, mpi_transfer_alone(&a));
	mpi_io_complete(r, err, a.user_bytes);
	return MPI_SUCCESS;
}

/* ---- non-blocking ---------------------------------------------------------------------------- */

int mpi_file_iread_at(struct mpi_file *fh, MPI_Offset offset, void *buf, MPI_Count count,
		      struct mpi_type *datatype, struct mpi_request **request)
{
	struct mpi_io io = { MPI_AT_OFFSET, false, offset, buf, count, datatype };

	return start_io(fh, &io, request);
}

int mpi_file_iwrite_at(struct mpi_file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
		       struct mpi_type *datatype, struct mpi_request **request)
{
	struct mpi_io io = { MPI_AT_OFFSET, true, offset, mpi_io_buffer(buf), count, datatype };

	return start_io(fh, &io, request);
}

int mpi_file_iread(struct mpi_file *fh, void *buf, MPI_Count count, struct mpi_type *datatype,
		   struct mpi_request **request)
{
	struct mpi_io io = { MPI_AT_POINTER, false, 0, buf, count, datatype };

	return start_io(fh, &io, request);
}

int mpi_file_iwrite(struct mpi_file *fh, const void *buf, MPI_Count count,
		    struct mpi_type *datatype, struct mpi_request **request)
{
	struct mpi_io io = { MPI_AT_POINTER, true, 0, mpi_io_buffer(buf), count, datatype };

	return start_io(fh, &io, request);
}

int mpi_file_iread_shared(struct mpi_file *fh, void *buf, MPI_Count count,
			  struct mpi_type *datatype, struct mpi_request **request)
{
	struct mpi_io io = { MPI_AT_SHARED, false, 0, buf, count, datatype };

	return start_io(fh, &io, request);
}

int mpi_file_iwrite_shared(struct mpi_file *fh, const void *buf, MPI_Count count,
			   struct mpi_type *datatype, struct mpi_request **request)
{
	struct mpi_io io = { MPI_AT_SHARED, true, 0, mpi_io_buffer(buf), count, datatype };

	return start_io(fh, &io, request);
}

int mpi_file_iread_at_all(struct mpi_file *fh, MPI_Offset offset, void *buf, MPI_Count count,
			  struct mpi_type *datatype, struct mpi_request **request)
{
	return mpi_file_iread_at(fh, offset, buf, count, datatype, request);
}

int mpi_file_iwrite_at_all(struct mpi_file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
			   struct mpi_type *datatype, struct mpi_request **request)
{
	return mpi_file_iwrite_at(fh, offset, buf, count, datatype, request);
}

int mpi_file_iread_all(struct mpi_file *fh, void *buf, MPI_Count count, struct mpi_type *datatype,
		       struct mpi_request **request)
{
	return mpi_file_iread(fh, buf, count, datatype, request);
}

int mpi_file_iwrite_all(struct mpi_file *fh, const void *buf, MPI_Count count,
			struct mpi_type *datatype, struct mpi_request **request)
{
	return mpi_file_iwrite(fh, buf, count, datatype, request);
}

/* ---- split collectives ----------------------------------------------------------------------- */

/* The access is over when the call that begins it returns (MPI-4 §14.4.5 lets it be); the call that
 * ends it gives the result. */
static int begin_split(struct mpi_file *file, const struct mpi_io *io, enum mpi_split_kind kind)
{
	struct mpi_request *r;
	MPI_Count bytes = 0;
	int err;

	if (file->split.kind != MPI_SPLIT_NONE)
		return mpi_fail(MPI_ERR_OTHER, "another split collective has begun and not ended");
	r = new_request(file);
	if (!r)
		return MPI_ERR_NO_MEM;
	err = mpi_io_run(file, io, true, &bytes);
	mpi_io_complete(r, err, bytes);
	file->split = (struct mpi_split){ kind, io->buf, r };
	return MPI_SUCCESS;
}

static int end_split(struct mpi_file *file, const void *buf, enum mpi_split_kind kind,
		     MPI_Status *status)
{
	struct mpi_request *r = file->split.request;

	if (file->split.kind != kind)
		return mpi_fail(MPI_ERR_OTHER, file->split.kind == MPI_SPLIT_NONE
						       ? "no split collective has begun"
						       : "the split collective that has begun is "
							 "another one");
	if (file->split.buf != buf)
		return mpi_fail(MPI_ERR_BUFFER,
				"the buffer is not that with which the split collective began");
	file->split = (struct mpi_split){ .kind = MPI_SPLIT_NONE };
	return mpi_request_finish(r, status);
}

int mpi_file_read_at_all_begin(struct mpi_file *fh, MPI_Offset offset, void *buf, MPI_Count count,
			       struct mpi_type *datatype)
{
	struct mpi_io io = { MPI_AT_OFFSET, false, offset, buf, count, datatype };

	return begin_split(fh, &io, MPI_SPLIT_READ_AT);
}

int mpi_file_read_at_all_end(struct mpi_file *fh, void *buf, MPI_Status *status)
{
	return end_split(fh, buf, MPI_SPLIT_READ_AT, status);
}

int mpi_file_write_at_all_begin(struct mpi_file *fh, MPI_Offset offset, const void *buf,
				MPI_Count count, struct mpi_type *datatype)
{
	struct mpi_io io = { MPI_AT_OFFSET, true, offset, mpi_io_buffer(buf), count, datatype };

	return begin_split(fh, &io, MPI_SPLIT_WRITE_AT);
}

int mpi_file_write_at_all_end(struct mpi_file *fh, const void *buf, MPI_Status *status)
{
	return end_split(fh, buf, MPI_SPLIT_WRITE_AT, status);
}

int mpi_file_read_all_begin(struct mpi_file *fh, void *buf, MPI_Count count,
			    struct mpi_type *datatype)
{
	struct mpi_io io = { MPI_AT_POINTER, false, 0, buf, count, datatype };

	return begin_split(fh, &io, MPI_SPLIT_READ);
}

int mpi_file_read_all_end(struct mpi_file *fh, void *buf, MPI_Status *status)
{
	return end_split(fh, buf, MPI_SPLIT_READ, status);
}

int mpi_file_write_all_begin(struct mpi_file *fh, const void *buf, MPI_Count count,
			     struct mpi_type *datatype)
{
	struct mpi_io io = { MPI_AT_POINTER, true, 0, mpi_io_buffer(buf), count, datatype };

	return begin_split(fh, &io, MPI_SPLIT_WRITE);
}

int mpi_file_write_all_end(struct mpi_file *fh, const void *buf, MPI_Status *status)
{
	return end_split(fh, buf, MPI_SPLIT_WRITE, status);
}

int mpi_file_read_ordered_begin(struct mpi_file *fh, void *buf, MPI_Count count,
				struct mpi_type *datatype)
{
	struct mpi_io io = { MPI_AT_ORDERED, false, 0, buf, count, datatype };

	return begin_split(fh, &io, MPI_SPLIT_READ_ORDERED);
}

int mpi_file_read_ordered_end(struct mpi_file *fh, void *buf, MPI_Status *status)
{
	return end_split(fh, buf, MPI_SPLIT_READ_ORDERED, status);
}

int mpi_file_write_ordered_begin(struct mpi_file *fh, const void *buf, MPI_Count count,
				 struct mpi_type *datatype)
{
	struct mpi_io io = { MPI_AT_ORDERED, true, 0, mpi_io_buffer(buf), count, datatype };

	return begin_split(fh, &io, MPI_SPLIT_WRITE_ORDERED);
}

int mpi_file_write_ordered_end(struct mpi_file *fh, const void *buf, MPI_Status *status)
{
	return end_split(fh, buf, MPI_SPLIT_WRITE_ORDERED, status);
}
