/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Init to MPI_Finalize, MPI_Session_init, and queries about them. These entry points are
 * written by hand, because their state checks differ from those of the others.
 */
#include <stdio.h>

#include "mpi_shim/api/entry.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/api/startup.h"
#include "mpi_shim/sessions/session.h"
#include "mpi_shim/api/weak.h"

/* Of the world model: enum mpi_phase. */
static int model(void)
{
	return atomic_load(&mpi_world.model);
}

/* The level for a required one: the next higher one, or the highest if there is none. */
static int level_for(int required)
{
	static const int level[] = { MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED,
				     MPI_THREAD_SERIALIZED };

	for (size_t i = 0; i < sizeof(level) / sizeof(level[0]); i++) {
		if (required <= level[i])
			return level[i];
	}
	return MPI_THREAD_MULTIPLE;
}

/* Start MPI. Errors go to the initial error handler, which ends the job (MPI-4 §9.3.1). */
static int start_mpi(const char *function, int level)
{
	char line[MPI_MAX_ERROR_STRING + 64];
	int rc;

	if (model() == MPI_PHASE_RUNNING) {
		mpi_lock();
		rc = mpi_fail(MPI_ERR_OTHER, "MPI is initialized already");
		return mpi_raise(NULL, function, rc);
	}
	if (model() == MPI_PHASE_AFTER)
		rc = mpi_fail(MPI_ERR_OTHER, "MPI was finalized and cannot be started again");
	else
		rc = mpi_world_init(level);
	if (rc == MPI_SUCCESS)
		return rc;
	snprintf(line, sizeof(line), "%s: %s", function, mpi_fail_text());
	mpi_abort_job(1, line);
}

MPI_WEAK(MPI_Init);
int PMPI_Init(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return start_mpi("MPI_Init", MPI_THREAD_SINGLE);
}

MPI_WEAK(MPI_Init_thread);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc;

	(void)argc;
	(void)argv;
	rc = start_mpi("MPI_Init_thread", level_for(required));
	if (rc == MPI_SUCCESS && provided)
		*provided = mpi_world.level;
	return rc;
}

/* Call the attributes' delete callbacks. They may still use MPI, and those of MPI_COMM_SELF all
 * of it (MPI-4 §11.2.4). */
static int delete_attributes(void)
{
	int rc = mpi_attrs_delete(&mpi_comm_self, MPI_KIND_COMM, &mpi_comm_self.attrs);

	if (rc == MPI_SUCCESS)
		rc = mpi_attrs_delete(&mpi_comm_world, MPI_KIND_COMM, &mpi_comm_world.attrs);
	return rc;
}

MPI_WEAK(MPI_Finalize);
int PMPI_Finalize(void)
{
	char line[MPI_MAX_ERROR_STRING + 64];
	int rc;

	if (model() != MPI_PHASE_RUNNING || !mpi_enter())
		return mpi_not_running("MPI_Finalize");
	rc = delete_attributes();
	if (rc != MPI_SUCCESS)
		return mpi_raise(&mpi_comm_self, "MPI_Finalize", rc);
	if (mpi_world_fini() == MPI_SUCCESS)
		return MPI_SUCCESS;
	/* the predefined communicators and their error handlers are gone */
	snprintf(line, sizeof(line), "MPI_Finalize: %s", mpi_fail_text());
	mpi_abort_job(1, line);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* The arguments of MPI_Session_init. The handler is referenced. */
struct request_of_session {
	struct mpi_info *info;
	struct mpi_errhandler *handler;
};

static int check_session_init(MPI_Info info, MPI_Errhandler errhandler, const MPI_Session *session,
			      struct request_of_session *of)
{
	int rc = mpi_in(MPI_KIND_ERRHANDLER, errhandler, &of->handler, "errhandler");

	if (rc)
		return rc;
	mpi_object_keep(of->handler);
	if (of->handler->serves != MPI_SERVES_ANY && of->handler->serves != MPI_SERVES_SESSION)
		return mpi_fail(MPI_ERR_ARG, "the error handler was not created by "
					     "MPI_Session_create_errhandler");
	rc = mpi_in_or_null(MPI_KIND_INFO, info, MPI_INFO_NULL, &of->info, "info");
	return rc ? rc : mpi_check_null(session, "session");
}

static int open_session(const struct request_of_session *of, MPI_Session *session)
{
	struct mpi_session *made;
	int rc = mpi_session_open();

	if (rc)
		return rc;
	mpi_lock();
	rc = mpi_session_make(of->info, of->handler, &made);
	if (rc)
		mpi_world_close(&mpi_world.sessions);
	else
		*session = mpi_handle_of(made);
	mpi_unlock();
	return rc;
}

static void drop_handler(struct mpi_errhandler *handler)
{
	mpi_enter_any_time();
	mpi_object_release(handler);
	mpi_leave_any_time();
}

MPI_WEAK(MPI_Session_init);
int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
	struct request_of_session of = { 0 };
	int rc;

	mpi_enter_any_time();
	rc = check_session_init(info, errhandler, session, &of);
	if (!of.handler)
		return mpi_raise_any_time("MPI_Session_init", rc);
	mpi_leave_any_time();
	if (!rc)
		rc = open_session(&of, session);
	if (rc)
		mpi_raise_given(of.handler, "MPI_Session_init", rc);
	drop_handler(of.handler);
	return rc;
}

/* ---- queries that may be made at any time ---------------------------------------------------- */

static int answer_query(const char *function, int *result, int value)
{
	if (result) {
		*result = value;
		return MPI_SUCCESS;
	}
	mpi_enter_any_time();
	return mpi_raise_any_time(function, mpi_bad_null("the result"));
}

MPI_WEAK(MPI_Initialized);
int PMPI_Initialized(int *flag)
{
	return answer_query("MPI_Initialized", flag, model() != MPI_PHASE_BEFORE);
}

MPI_WEAK(MPI_Finalized);
int PMPI_Finalized(int *flag)
{
	return answer_query("MPI_Finalized", flag, model() == MPI_PHASE_AFTER);
}

/* ---- threads --------------------------------------------------------------------------------- */

MPI_WEAK(MPI_Query_thread);
int PMPI_Query_thread(int *provided)
{
	if (model() != MPI_PHASE_RUNNING)
		return mpi_not_running("MPI_Query_thread");
	return answer_query("MPI_Query_thread", provided, mpi_world.level);
}

MPI_WEAK(MPI_Is_thread_main);
int PMPI_Is_thread_main(int *flag)
{
	if (model() != MPI_PHASE_RUNNING)
		return mpi_not_running("MPI_Is_thread_main");
	return answer_query("MPI_Is_thread_main", flag,
			    pthread_equal(pthread_self(), mpi_world.main_thread) != 0);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* For profiling libraries, which replace it by their own (MPI-4 §15.2.4). */
MPI_WEAK(MPI_Pcontrol);
int PMPI_Pcontrol(const int level, ...)
{
	(void)level;
	return MPI_SUCCESS;
}

int mpi_abort(struct mpi_comm *comm, int errorcode)
{
	char line[MPI_MAX_OBJECT_NAME + 96];

	snprintf(line, sizeof(line), "rank %d of %d called MPI_Abort(%s, %d)", mpi_world.rank,
		 mpi_world.size, comm->name[0] ? comm->name : "a communicator", errorcode);
	mpi_abort_job(errorcode, line);
}
