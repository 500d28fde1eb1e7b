/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The path from a failure to the user's error handler: see error.h.
 */
#include "mpi_shim/core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mpi_shim/core/object.h"
#include "mpi_shim/core/world.h"

/* The text, and the code it was kept for. A handler may be called for another code. */
static _Thread_local struct {
	int code;
	uint32_t on; /* handle of the communicator, window or file of the failed request; 0: none */
	char text[MPI_MAX_ERROR_STRING];
} kept;

/* A failure that MPI_Error_string has the whole text of. */
static _Thread_local struct {
	int code;
	char text[MPI_MAX_ERROR_STRING];
} explained;

int(mpi_fail)(int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(kept.text, sizeof(kept.text), format, ap);
	va_end(ap);
	kept.code = code;
	kept.on = 0;
	return code;
}

int(mpi_fail_memory)(const char *for_what)
{
	return mpi_fail(MPI_ERR_NO_MEM, "no memory for %s", for_what);
}

void mpi_fail_on(uint32_t handle)
{
	kept.on = handle;
}

void *mpi_failed_on(enum mpi_kind kind)
{
	return mpi_object_of((void *)(uintptr_t)kept.on, kind);
}

const char *mpi_fail_text(void)
{
	return kept.text;
}

void mpi_fail_explain(int code)
{
	if (kept.code != code || !kept.text[0])
		return;
	memcpy(explained.text, kept.text, sizeof(explained.text));
	explained.code = code;
}

const char *mpi_fail_explained(int code)
{
	return code != MPI_SUCCESS && code == explained.code ? explained.text : NULL;
}

static void name_of_comm(const struct mpi_comm *comm, char *out, size_t size)
{
	if (!comm)
		out[0] = '\0';
	else if (comm->name[0])
		snprintf(out, size, " on %s", comm->name);
	else
		snprintf(out, size, " on a communicator of %d ranks (context %u)", comm->size,
			 (unsigned)comm->context);
}

void mpi_raise_fatal(const char *where, const char *function, int code)
{
	char line[sizeof(kept.text) + MPI_WHERE + 128];
	bool has_text = (kept.code == code || code == MPI_ERR_IN_STATUS) && kept.text[0];

	if (mpi_world.size > 0)
		snprintf(line, sizeof(line), "rank %d of %d: %s%s: %s", mpi_world.rank,
			 mpi_world.size, function, where,
			 has_text ? kept.text : mpi_error_text(code));
	else
		snprintf(line, sizeof(line), "%s%s: %s", function, where,
			 has_text ? kept.text : mpi_error_text(code));
	mpi_abort_job(mpi_error_class_of(code), line);
}

/* Returns the handler for an error on `comm`, or without a communicator (NULL). */
static struct mpi_errhandler *handler_of(const struct mpi_comm *comm)
{
	if (comm)
		return comm->handler;
	if (mpi_comm_self.handler && mpi_comm_self.handler != &mpi_errors_are_fatal)
		return mpi_comm_self.handler;
	return mpi_comm_world.handler;
}

void mpi_raise_locked(struct mpi_comm *comm, const char *function, int code)
{
	struct mpi_errhandler *handler = handler_of(comm);
	char where[MPI_WHERE];
	MPI_Comm handle;

	if (handler == &mpi_errors_return)
		return;
	if (!handler || !handler->fn.comm) {
		name_of_comm(comm, where, sizeof(where));
		mpi_raise_fatal(where, function, code);
	}
	handle = mpi_handle_of(comm ? comm : &mpi_comm_self);
	mpi_object_keep(handler);
	mpi_unlock_for_callback();
	handler->fn.comm(&handle, &code, function);
	mpi_lock_after_callback();
	mpi_object_release(handler);
}

/* Forgets the kept failure, so that it is not reported with a later error. */
static void forget_kept(void)
{
	kept.code = MPI_SUCCESS;
	kept.on = 0;
}

int mpi_raised(int code)
{
	forget_kept();
	mpi_unlock();
	return code;
}

int mpi_raise(struct mpi_comm *comm, const char *function, int code)
{
	/* The communicator may have been freed while the request was in progress. */
	if (!comm)
		comm = mpi_failed_on(MPI_KIND_COMM);
	mpi_raise_locked(comm, function, code);
	return mpi_raised(code);
}

void mpi_raise_given(const struct mpi_errhandler *handler, const char *function, int code)
{
	MPI_Session session = MPI_SESSION_NULL;
	MPI_Comm comm = MPI_COMM_NULL;

	if (handler != &mpi_errors_return) {
		if (handler->serves == MPI_SERVES_SESSION)
			handler->fn.session(&session, &code, function);
		else if (handler->serves == MPI_SERVES_COMM)
			handler->fn.comm(&comm, &code, function);
		else
			mpi_raise_fatal("", function, code);
	}
	forget_kept();
}
