/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Calls on a file as a whole: size, view, sync, and questions.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/io.h"

/* ---- size ------------------------------------------------------------------------------------ */

int mpi_file_resizable(const struct mpi_file *file)
{
	if (file->amode & MPI_MODE_RDONLY)
		return mpi_fail(MPI_ERR_READ_ONLY, "%s was opened with MPI_MODE_RDONLY",
				file->name);
	if (file->amode & MPI_MODE_SEQUENTIAL)
		return mpi_fail(MPI_ERR_UNSUPPORTED_OPERATION,
				"%s was opened with MPI_MODE_SEQUENTIAL, its size cannot be set",
				file->name);
	return MPI_SUCCESS;
}

static int truncate_file(const struct mpi_file *file, MPI_Offset size)
{
	int rc;

	mpi_unlock();
	do
		rc = ftruncate(file->fd, size);
	while (rc != 0 && errno == EINTR);
	rc = rc ? errno : 0;
	mpi_lock();
	return rc ? mpi_disk_error(file->name, "setting the size of", rc) : MPI_SUCCESS;
}

/* Storage for the first `size` bytes, whatever is in the file. */
static int allocate_storage(const struct mpi_file *file, MPI_Offset size)
{
	int number = 0;

	mpi_unlock();
	if (size > 0)
		do
			number = posix_fallocate(file->fd, 0, size);
		while (number == EINTR);
	mpi_lock();
	return number ? mpi_disk_error(file->name, "allocating storage for", number) : MPI_SUCCESS;
}

/* Rank 0 does it, when all ranks want the same. */
static int resize(struct mpi_file *file, MPI_Offset size,
		  int (*how)(const struct mpi_file *file, MPI_Offset size))
{
	int err = mpi_file_agree(file->comm, mpi_file_resizable(file), size, "the size");

	if (err)
		return err;
	mpi_file_raise(MPI_EVENT_FILE_BEGIN, file, MPI_EVENT_FILE_RESIZE, MPI_SUCCESS);
	if (file->comm->rank == 0)
		err = how(file, size);
	err = mpi_file_agree(file->comm, err, 0, "");
	mpi_file_raise(MPI_EVENT_FILE_END, file, MPI_EVENT_FILE_RESIZE, err);
	return err;
}

int mpi_file_set_size(struct mpi_file *fh, MPI_Offset size)
{
	return resize(fh, size, truncate_file);
}

int mpi_file_preallocate(struct mpi_file *fh, MPI_Offset size)
{
	return resize(fh, size, allocate_storage);
}

int mpi_file_get_size(struct mpi_file *fh, MPI_Offset *size)
{
	int64_t bytes = 0;
	int err = mpi_disk_size(fh, &bytes);

	if (!err)
		*size = bytes;
	return err;
}

/* ---- questions ------------------------------------------------------------------------------- */

int mpi_file_get_group(struct mpi_file *fh, struct mpi_group **group)
{
	return mpi_group_export(fh->comm->local, group);
}

int mpi_file_get_amode(struct mpi_file *fh, int *amode)
{
	*amode = fh->amode;
	return MPI_SUCCESS;
}

/* ---- views ----------------------------------------------------------------------------------- */

/* A number for what all ranks must agree on: the etype's extent and the representation. */
static int64_t view_sum(const struct mpi_type *etype, const char *datarep)
{
	uint64_t sum = (uint64_t)etype->extent;

	for (const char *c = datarep; *c; c++)
		sum = (sum ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return (int64_t)(sum >> 1);
}

/* The displacement of a new view; that of a sequential file is where the shared pointer is. */
static int find_disp(struct mpi_file *file, MPI_Offset *disp)
{
	bool sequential = file->amode & MPI_MODE_SEQUENTIAL;
	MPI_Offset position = 0;
	int err;

	if (sequential != (*disp == MPI_DISPLACEMENT_CURRENT))
		return mpi_fail(MPI_ERR_DISP,
				"MPI_DISPLACEMENT_CURRENT is for files with MPI_MODE_SEQUENTIAL, "
				"and only that is for them");
	if (!sequential && *disp < 0)
		return mpi_fail(MPI_ERR_DISP, "the displacement %lld is negative",
				(long long)*disp);
	if (!sequential)
		return MPI_SUCCESS;
	err = mpi_shared_add(file, 0, &position);
	if (!err)
		*disp = mpi_view_place(&file->view, (uint64_t)(position * file->view.etype_bytes));
	return err;
}

static int committed_view(const struct mpi_type *etype, const struct mpi_type *filetype)
{
	if (etype->committed && filetype->committed)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_TYPE, "the %s is not committed: call MPI_Type_commit first",
			etype->committed ? "filetype" : "etype");
}

int mpi_file_set_view(struct mpi_file *fh, MPI_Offset disp, struct mpi_type *etype,
		      struct mpi_type *filetype, const char *datarep, struct mpi_info *info)
{
	const struct mpi_datarep *rep = NULL;
	struct mpi_view view = { .disp = 0 };
	int err = MPI_SUCCESS;

	/* the shared pointer, at which the view begins, must not move any more */
	if (fh->amode & MPI_MODE_SEQUENTIAL)
		err = mpi_file_agree(fh->comm, MPI_SUCCESS, 0, "");
	if (!err)
		err = committed_view(etype, filetype);
	if (!err)
		err = mpi_datarep_find(datarep, &rep);
	if (!err)
		err = find_disp(fh, &disp);
	if (!err)
		err = mpi_view_make(&view, disp, etype, filetype, rep, mpi_file_writable(fh));
	if (!err)
		err = mpi_hints_take(fh, info);
	err = mpi_file_agree(fh->comm, err, view_sum(etype, datarep),
			     "the extent of the etype, or the data representation");
	if (err) {
		mpi_view_end(&view);
		return err;
	}
	mpi_view_end(&fh->view);
	fh->view = view;
	fh->position = 0;
	return mpi_shared_set(fh, 0);
}

/* One more handle of the type, which the program has to free. */
static struct mpi_type *type_for_program(struct mpi_type *type)
{
	return type->predefined ? type : mpi_type_lend(type);
}

int mpi_file_get_view(struct mpi_file *fh, MPI_Offset *disp, struct mpi_type **etype,
		      struct mpi_type **filetype, char *datarep)
{
	const char *name = mpi_datarep_name(fh->view.rep);

	*disp = fh->view.disp;
	*etype = type_for_program(fh->view.etype);
	*filetype = type_for_program(fh->view.filetype);
	memcpy(datarep, name, strlen(name) + 1);
	return MPI_SUCCESS;
}

int mpi_file_get_type_extent(struct mpi_file *fh, struct mpi_type *datatype, MPI_Count *extent)
{
	return mpi_datarep_extent(fh->view.rep, datatype, extent);
}

/* ---- consistency ----------------------------------------------------------------------------- */

int mpi_file_sync(struct mpi_file *fh)
{
	int number, err = MPI_SUCCESS;

	mpi_file_raise(MPI_EVENT_FILE_BEGIN, fh, MPI_EVENT_FILE_SYNC, MPI_SUCCESS);
	mpi_unlock();
	do
		number = fsync(fh->fd) == 0 ? 0 : errno;
	while (number == EINTR);
	mpi_lock();
	/* devices and pipes have nothing to be synchronized */
	if (number && number != EINVAL && number != EROFS)
		err = mpi_disk_error(fh->name, "writing to the device of", number);
	err = mpi_file_agree(fh->comm, err, 0, "");
	mpi_file_raise(MPI_EVENT_FILE_END, fh, MPI_EVENT_FILE_SYNC, err);
	return err;
}
