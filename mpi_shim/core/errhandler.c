/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Error handler objects, and the handlers of communicators; win_attr.c has those of windows,
 * io/handler.c those of files, session.c those of sessions.
 */
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/object.h"

struct mpi_errhandler mpi_errors_are_fatal, mpi_errors_abort, mpi_errors_return;

static int create_errhandler(enum mpi_serves serves, bool given, struct mpi_errhandler **out)
{
	struct mpi_errhandler *e;

	if (!given)
		return mpi_fail(MPI_ERR_ARG, "the error handler function is NULL");
	e = mpi_object_new(MPI_KIND_ERRHANDLER);
	if (!e)
		return mpi_fail_memory("an error handler");
	e->serves = serves;
	e->handles = 1;
	*out = e;
	return MPI_SUCCESS;
}

int mpi_comm_create_errhandler(MPI_Comm_errhandler_function *fn, struct mpi_errhandler **out)
{
	int err = create_errhandler(MPI_SERVES_COMM, fn != NULL, out);

	if (err == MPI_SUCCESS)
		(*out)->fn.comm = fn;
	return err;
}

int mpi_win_create_errhandler(MPI_Win_errhandler_function *fn, struct mpi_errhandler **out)
{
	int err = create_errhandler(MPI_SERVES_WIN, fn != NULL, out);

	if (err == MPI_SUCCESS)
		(*out)->fn.win = fn;
	return err;
}

int mpi_file_create_errhandler(MPI_File_errhandler_function *fn, struct mpi_errhandler **out)
{
	int err = create_errhandler(MPI_SERVES_FILE, fn != NULL, out);

	if (err == MPI_SUCCESS)
		(*out)->fn.file = fn;
	return err;
}

int mpi_session_create_errhandler(MPI_Session_errhandler_function *fn, struct mpi_errhandler **out)
{
	int err = create_errhandler(MPI_SERVES_SESSION, fn != NULL, out);

	if (err == MPI_SUCCESS)
		(*out)->fn.session = fn;
	return err;
}

int mpi_comm_set_errhandler(struct mpi_comm *comm, struct mpi_errhandler *e)
{
	if (e->serves != MPI_SERVES_ANY && e->serves != MPI_SERVES_COMM)
		return mpi_fail(MPI_ERR_ARG, "the error handler was not created by "
					     "MPI_Comm_create_errhandler");
	mpi_object_keep(e);
	mpi_object_release(comm->handler);
	comm->handler = e;
	return MPI_SUCCESS;
}

int mpi_comm_get_errhandler(struct mpi_comm *comm, struct mpi_errhandler **out)
{
	*out = mpi_object_keep(comm->handler);
	comm->handler->handles++;
	return MPI_SUCCESS;
}

int mpi_comm_call_errhandler(struct mpi_comm *comm, int code)
{
	mpi_raise_locked(comm, "MPI_Comm_call_errhandler", code);
	return MPI_SUCCESS;
}

int mpi_errhandler_free(struct mpi_errhandler **e)
{
	if ((*e)->serves != MPI_SERVES_ANY && (*e)->handles-- <= 0) {
		(*e)->handles = 0;
		return mpi_fail(MPI_ERR_ERRHANDLER, "the error handler has been freed before");
	}
	if ((*e)->serves != MPI_SERVES_ANY && (*e)->handles == 0)
		mpi_object_rename(&(*e)->obj);
	mpi_object_release(*e);
	*e = NULL;
	return MPI_SUCCESS;
}
