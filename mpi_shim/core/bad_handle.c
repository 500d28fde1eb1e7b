/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Error texts for handles that name no object of their kind.
 */
#include <mpi.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/foreign.h"
#include "mpi_shim/core/handle.h"

static const struct {
	const char *what;
	int code;
	uintptr_t null;
} kinds[MPI_KIND_END] = {
	[MPI_KIND_NONE] = { "object", MPI_ERR_ARG, 0 },
	[MPI_KIND_COMM] = { "communicator", MPI_ERR_COMM, (uintptr_t)MPI_COMM_NULL },
	[MPI_KIND_GROUP] = { "group", MPI_ERR_GROUP, (uintptr_t)MPI_GROUP_NULL },
	[MPI_KIND_TYPE] = { "datatype", MPI_ERR_TYPE, (uintptr_t)MPI_DATATYPE_NULL },
	[MPI_KIND_OP] = { "reduction operation", MPI_ERR_OP, (uintptr_t)MPI_OP_NULL },
	[MPI_KIND_REQUEST] = { "request", MPI_ERR_REQUEST, (uintptr_t)MPI_REQUEST_NULL },
	[MPI_KIND_ERRHANDLER] = { "error handler", MPI_ERR_ERRHANDLER,
				  (uintptr_t)MPI_ERRHANDLER_NULL },
	[MPI_KIND_INFO] = { "info object", MPI_ERR_INFO, (uintptr_t)MPI_INFO_NULL },
	[MPI_KIND_MESSAGE] = { "message", MPI_ERR_REQUEST, (uintptr_t)MPI_MESSAGE_NULL },
	[MPI_KIND_WIN] = { "window", MPI_ERR_WIN, (uintptr_t)MPI_WIN_NULL },
	[MPI_KIND_FILE] = { "file", MPI_ERR_FILE, (uintptr_t)MPI_FILE_NULL },
	[MPI_KIND_SESSION] = { "session", MPI_ERR_SESSION, (uintptr_t)MPI_SESSION_NULL },
};

int mpi_bad_handle(enum mpi_kind kind, const void *handle, const char *name)
{
	const char *whose;

	if ((uintptr_t)handle == kinds[kind].null)
		return mpi_fail(kinds[kind].code, "%s is the null handle", name);
	whose = mpi_foreign_handle(kind, handle);
	if (whose)
		return mpi_fail(kinds[kind].code,
				"%s %p is a handle as in %s's mpi.h: what makes this call was "
				"compiled with "
				"that; build it with Postern's mpicc",
				name, handle, whose);
	return mpi_fail(kinds[kind].code,
			"%s %p is not the handle of a %s (never was, or freed already)", name,
			handle, kinds[kind].what);
}

int mpi_check_own(const struct mpi_obj *object, const char *name)
{
	if (object->handle >= MPI_HANDLE_PREDEFINED)
		return MPI_SUCCESS;
	return mpi_fail(kinds[object->kind].code, "%s is predefined and cannot be freed", name);
}
