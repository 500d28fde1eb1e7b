/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Sessions as objects: what they were asked for, their error handlers, their end. Their buffers
 * are in pt2pt/buffered.c.
 */
#include "mpi_shim/sessions/session.h"

#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/info.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/buffered.h"

static void session_destroy(void *object)
{
	mpi_object_release(((struct mpi_session *)object)->handler);
}

void mpi_sessions_init(void)
{
	mpi_pool_setup(MPI_KIND_SESSION, sizeof(struct mpi_session), session_destroy);
}

/* The key of the standard, and that of programs which were written for drafts of it. */
static const char *const level_keys[] = { "thread_level", "mpi_thread_support_level" };

/* The level that is asked for, or the lowest; at most what threads may do here. */
static int level_asked_for(const struct mpi_info *info)
{
	const char *name = mpi_info_value(info, level_keys[0]);
	const int most = mpi_world.threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
	static const int levels[] = { MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
				      MPI_THREAD_MULTIPLE };

	if (!name)
		name = mpi_info_value(info, level_keys[1]);
	for (size_t i = 0; name && i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(name, mpi_level_name(levels[i])) == 0)
			return levels[i] < most ? levels[i] : most;
	return MPI_THREAD_SINGLE;
}

int mpi_session_make(const struct mpi_info *info, struct mpi_errhandler *handler,
		     struct mpi_session **out)
{
	struct mpi_session *s = mpi_object_new(MPI_KIND_SESSION);

	if (!s)
		return mpi_fail_memory("a session");
	s->handler = mpi_object_keep(handler ? handler : &mpi_errors_are_fatal);
	s->level = level_asked_for(info);
	*out = s;
	return MPI_SUCCESS;
}

int mpi_session_get_info(struct mpi_session *session, struct mpi_info **info_used)
{
	struct mpi_info *info = NULL;
	int err = mpi_info_create(&info);

	for (int i = 0; !err && i < 2; i++)
		err = mpi_info_put(info, level_keys[i], mpi_level_name(session->level));
	if (err && info)
		mpi_info_free(&info);
	if (!err)
		*info_used = info;
	return err;
}

/* The user has freed what was made from it, or loses it with the last session. Its buffered
 * messages are sent before. */
int mpi_session_finalize(struct mpi_session **session)
{
	mpi_buffered_end(&(*session)->buffer);
	mpi_object_retire(&(*session)->obj);
	mpi_object_release(*session);
	*session = NULL;
	mpi_world_close(&mpi_world.sessions);
	return MPI_SUCCESS;
}

/* ---- error handlers -------------------------------------------------------------------------- */

int mpi_session_set_errhandler(struct mpi_session *session, struct mpi_errhandler *errhandler)
{
	if (errhandler->serves != MPI_SERVES_ANY && errhandler->serves != MPI_SERVES_SESSION)
		return mpi_fail(MPI_ERR_ARG, "the error handler was not created by "
					     "MPI_Session_create_errhandler");
	mpi_object_keep(errhandler);
	mpi_object_release(session->handler);
	session->handler = errhandler;
	return MPI_SUCCESS;
}

int mpi_session_get_errhandler(struct mpi_session *session, struct mpi_errhandler **errhandler)
{
	*errhandler = mpi_object_keep(session->handler);
	session->handler->handles++;
	return MPI_SUCCESS;
}

static void raise_on_session(struct mpi_session *session, const char *function, int code)
{
	struct mpi_errhandler *handler = session->handler;
	MPI_Session handle = mpi_handle_of(session);

	if (handler == &mpi_errors_return)
		return;
	if (!handler->fn.session)
		mpi_raise_fatal(" on a session", function, code);
	mpi_object_keep(handler);
	mpi_unlock_for_callback();
	handler->fn.session(&handle, &code, function);
	mpi_lock_after_callback();
	mpi_object_release(handler);
}

int mpi_raise_session(struct mpi_session *session, const char *function, int code)
{
	raise_on_session(session, function, code);
	return mpi_raised(code);
}

int mpi_session_call_errhandler(struct mpi_session *session, int errorcode)
{
	raise_on_session(session, "MPI_Session_call_errhandler", errorcode);
	return MPI_SUCCESS;
}
