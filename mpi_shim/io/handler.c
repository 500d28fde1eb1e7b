/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Error handlers of files. A file gets that of MPI_FILE_NULL when it is opened, at first
 * MPI_ERRORS_RETURN (MPI-4 §14.7). The same one serves what has no file, such as MPI_File_delete.
 */
#include <stdio.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/io.h"

static struct mpi_errhandler *of_null = &mpi_errors_return;

struct mpi_errhandler *mpi_file_new_handler(void)
{
	return mpi_object_keep(of_null);
}

void mpi_file_handler_fini(void)
{
	mpi_object_release(of_null);
	of_null = &mpi_errors_return;
}

/* That of a file which has just been closed with an error: its handle names nothing any more. */
static struct mpi_errhandler *of_closed;

void mpi_file_closed_badly(struct mpi_file *file)
{
	of_closed = mpi_object_keep(file->handler);
}

static struct mpi_errhandler **handler_place(struct mpi_file *file)
{
	return file ? &file->handler : &of_null;
}

int mpi_file_set_errhandler(struct mpi_file *file, struct mpi_errhandler *errhandler)
{
	struct mpi_errhandler **place = handler_place(file);

	if (errhandler->serves != MPI_SERVES_ANY && errhandler->serves != MPI_SERVES_FILE)
		return mpi_fail(MPI_ERR_ARG, "the error handler was not created by "
					     "MPI_File_create_errhandler");
	mpi_object_keep(errhandler);
	mpi_object_release(*place);
	*place = errhandler;
	return MPI_SUCCESS;
}

int mpi_file_get_errhandler(struct mpi_file *file, struct mpi_errhandler **errhandler)
{
	*errhandler = mpi_object_keep(*handler_place(file));
	(*errhandler)->handles++;
	return MPI_SUCCESS;
}

/* The handler of an error, kept. */
static struct mpi_errhandler *take_handler(struct mpi_file *file)
{
	struct mpi_errhandler *handler = of_closed;

	if (file || !handler)
		return mpi_object_keep(*handler_place(file));
	of_closed = NULL;
	return handler;
}

static void raise_on_file(struct mpi_file *file, const char *function, int code)
{
	struct mpi_errhandler *handler = take_handler(file);
	MPI_File handle = file ? mpi_handle_of(file) : MPI_FILE_NULL;
	char where[MPI_WHERE];

	mpi_fail_explain(code);
	if (handler == &mpi_errors_return) {
		mpi_object_release(handler);
		return;
	}
	if (!handler->fn.file) {
		where[0] = '\0';
		if (file)
			snprintf(where, sizeof(where), " on a file of %d ranks", file->comm->size);
		mpi_raise_fatal(where, function, code);
	}
	mpi_unlock_for_callback();
	handler->fn.file(&handle, &code, function);
	mpi_lock_after_callback();
	mpi_object_release(handler);
}

int mpi_raise_file(struct mpi_file *file, const char *function, int code)
{
	raise_on_file(file, function, code);
	return mpi_raised(code);
}

int mpi_file_call_errhandler(struct mpi_file *fh, int errorcode)
{
	raise_on_file(fh, "MPI_File_call_errhandler", errorcode);
	return MPI_SUCCESS;
}
