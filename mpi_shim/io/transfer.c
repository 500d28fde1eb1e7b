/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * An access from its arguments to its status: checks, positions, and the conversion of data before
 * and after.
 */
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/io/io.h"

int mpi_transfer_allowed(const struct mpi_file *file, bool writes, bool by_shared_pointer)
{
	if (writes && (file->amode & MPI_MODE_RDONLY))
		return mpi_fail(MPI_ERR_READ_ONLY, "%s was opened with MPI_MODE_RDONLY",
				file->name);
	if (!writes && (file->amode & MPI_MODE_WRONLY))
		return mpi_fail(MPI_ERR_ACCESS, "%s was opened with MPI_MODE_WRONLY", file->name);
	if (!by_shared_pointer && (file->amode & MPI_MODE_SEQUENTIAL))
		return mpi_fail(MPI_ERR_UNSUPPORTED_OPERATION,
				"%s was opened with MPI_MODE_SEQUENTIAL, which allows the shared "
				"file pointer only",
				file->name);
	return MPI_SUCCESS;
}

int mpi_transfer_etypes(const struct mpi_file *file, MPI_Count count, const struct mpi_type *type,
			MPI_Offset *etypes)
{
	const struct mpi_view *v = &file->view;
	MPI_Count each = 0, bytes;
	int err = mpi_datarep_bytes(v->rep, type, &each);

	if (err)
		return err;
	if (__builtin_mul_overflow(count, each, &bytes) ||
	    __builtin_mul_overflow(count, type->size, &each))
		return mpi_fail(MPI_ERR_COUNT, "%lld elements of %lld bytes exceed 2^63 bytes",
				(long long)count, (long long)type->size);
	if (bytes % v->etype_bytes != 0)
		return mpi_fail(MPI_ERR_TYPE,
				"%lld bytes of data are no whole etypes of %lld bytes in the file",
				(long long)bytes, (long long)v->etype_bytes);
	*etypes = bytes / v->etype_bytes;
	return MPI_SUCCESS;
}

/* The range of data bytes of the view. */
static int find_range(struct mpi_transfer *a, MPI_Offset position, MPI_Offset etypes)
{
	const struct mpi_view *v = &a->file->view;
	int64_t from = 0, bytes = 0;

	if (position < 0)
		return mpi_fail(MPI_ERR_ARG, "the position %lld is negative", (long long)position);
	if (__builtin_mul_overflow(position, v->etype_bytes, &from) ||
	    __builtin_mul_overflow(etypes, v->etype_bytes, &bytes))
		return mpi_fail(MPI_ERR_ARG, "the position %lld is behind byte 2^63 of the file",
				(long long)position);
	if (v->laid->size == 0) /* there is no place for data in this view */
		bytes = 0;
	a->from = (uint64_t)from;
	a->bytes = (uint64_t)bytes;
	return mpi_view_reaches(v, a->from, a->bytes);
}

/* Let the access use memory that has the data as in the file. */
static int convert_before(struct mpi_transfer *a)
{
	const struct mpi_datarep *rep = a->file->view.rep;
	MPI_Count converted;
	int err;

	a->buf = malloc(a->bytes ? (size_t)a->bytes : 1);
	if (!a->buf)
		return mpi_fail_memory("data in the representation of the file");
	a->count = (MPI_Count)a->bytes;
	a->type = mpi_object_keep(mpi_bytes());
	if (!a->writes)
		return MPI_SUCCESS;
	err = mpi_datarep_convert(rep, true, a->user_buf, a->user_count, a->user_type, a->buf,
				  a->bytes, &converted);
	if (!err)
		return MPI_SUCCESS;
	free(a->buf);
	mpi_object_release(a->type);
	return err;
}

/* Let the access use the program's memory. A representation without a conversion function may still
 * have sizes of its own. */
static int keep_as_is(struct mpi_transfer *a)
{
	if (a->bytes && a->bytes != (uint64_t)(a->count * a->type->size))
		return mpi_fail(
			MPI_ERR_CONVERSION,
			"the data representation \"%s\" has other sizes in the file, and no "
			"function that converts",
			mpi_datarep_name(a->file->view.rep));
	mpi_object_keep(a->type);
	return MPI_SUCCESS;
}

static bool is_converted(const struct mpi_transfer *a)
{
	return a->buf != a->user_buf;
}

int mpi_transfer_begin(struct mpi_transfer *a, struct mpi_file *file, MPI_Offset position,
		       void *buf, MPI_Count count, struct mpi_type *type, bool writes)
{
	MPI_Offset etypes = 0;
	int err;

	*a = (struct mpi_transfer){ .file = file,
				    .writes = writes,
				    .buf = buf,
				    .count = count,
				    .type = type,
				    .user_buf = buf,
				    .user_count = count,
				    .user_type = type };
	err = mpi_transfer_etypes(file, count, type, &etypes);
	if (!err)
		err = find_range(a, position, etypes);
	if (!err && mpi_datarep_converts(file->view.rep, writes))
		err = convert_before(a);
	else if (!err)
		err = keep_as_is(a);
	if (!err)
		mpi_object_keep(a->user_type);
	return err;
}

int mpi_transfer_end(struct mpi_transfer *a, int err)
{
	int rc = MPI_SUCCESS;

	a->user_bytes = (MPI_Count)a->moved;
	if (is_converted(a)) {
		if (a->writes)
			a->user_bytes =
				a->moved == a->bytes ? a->user_count * a->user_type->size : 0;
		else
			rc = mpi_datarep_convert(a->file->view.rep, false, a->user_buf,
						 a->user_count, a->user_type, a->buf, a->moved,
						 &a->user_bytes);
		free(a->buf);
	}
	mpi_object_release(a->type);
	mpi_object_release(a->user_type);
	err = err ? err : rc;
	mpi_transfer_raise(MPI_EVENT_FILE_END, a, err);
	return err;
}
