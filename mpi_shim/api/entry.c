/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The parts of entry points that are not on a fast path: messages about bad arguments, and
 * wide copies of arrays.
 */
#include "mpi_shim/api/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/topology.h"
#include "mpi_shim/sessions/session.h"

/* ---- state ----------------------------------------------------------------------------------- */

int mpi_not_running(const char *function)
{
	char text[128];
	bool after = atomic_load(&mpi_world.phase) == MPI_PHASE_AFTER;

	snprintf(text, sizeof(text), "%s was called %s", function,
		 after ? "after MPI_Finalize" : "before MPI_Init");
	mpi_abort_job(1, text);
}

static bool running(void)
{
	return atomic_load_explicit(&mpi_world.phase, memory_order_relaxed) == MPI_PHASE_RUNNING;
}

/* Guards before MPI_Init, when there is no thread level yet, and after MPI_Finalize, when the
 * library's lock is gone. */
static pthread_mutex_t early_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool entered_running;

void mpi_enter_any_time(void)
{
	entered_running = running();
	if (entered_running)
		mpi_lock();
	else
		pthread_mutex_lock(&early_lock);
}

int mpi_leave_any_time(void)
{
	if (entered_running)
		mpi_unlock();
	else
		pthread_mutex_unlock(&early_lock);
	return MPI_SUCCESS;
}

int mpi_raise_any_time(const char *function, int code)
{
	char text[MPI_MAX_ERROR_STRING + 64];

	if (entered_running)
		return mpi_raise(NULL, function, code);
	/* no other error handler can be set now */
	snprintf(text, sizeof(text), "%s: %s", function, mpi_fail_text());
	mpi_abort_job(1, text);
}

int mpi_raise_on(MPI_Comm handle, const char *function, int code)
{
	struct mpi_comm *comm = mpi_object_of(handle, MPI_KIND_COMM);
	struct mpi_win *win = comm ? NULL : mpi_failed_on(MPI_KIND_WIN);
	struct mpi_file *file = comm ? NULL : mpi_failed_on(MPI_KIND_FILE);

	if (file)
		return mpi_raise_file(file, function, code);
	return win ? mpi_raise_win(win, function, code) : mpi_raise(comm, function, code);
}

int mpi_raise_on_win(MPI_Win handle, const char *function, int code)
{
	struct mpi_win *win = mpi_object_of(handle, MPI_KIND_WIN);

	return win ? mpi_raise_win(win, function, code)
		   : mpi_raise_on(MPI_COMM_NULL, function, code);
}

int mpi_raise_on_file(MPI_File handle, const char *function, int code)
{
	return mpi_raise_file(mpi_object_of(handle, MPI_KIND_FILE), function, code);
}

int mpi_raise_on_session(MPI_Session handle, const char *function, int code)
{
	struct mpi_session *session = mpi_object_of(handle, MPI_KIND_SESSION);

	return session ? mpi_raise_session(session, function, code)
		       : mpi_raise_on(MPI_COMM_NULL, function, code);
}

int mpi_raise_on_given(MPI_Errhandler given, const char *function, int code)
{
	struct mpi_errhandler *handler = mpi_object_of(given, MPI_KIND_ERRHANDLER);

	if (!handler)
		return mpi_raise_on(MPI_COMM_NULL, function, code);
	mpi_object_keep(handler);
	mpi_unlock_for_callback();
	mpi_raise_given(handler, function, code);
	mpi_lock_after_callback();
	mpi_object_release(handler);
	return mpi_raised(code);
}

/* ---- bad arguments --------------------------------------------------------------------------- */

int mpi_bad_type(const struct mpi_type *type, MPI_Datatype handle, const char *name)
{
	if (!type)
		return mpi_bad_handle(MPI_KIND_TYPE, handle, name);
	return mpi_fail(MPI_ERR_TYPE, "%s is not committed: call MPI_Type_commit first", name);
}

int mpi_bad_count(MPI_Count count, const char *name)
{
	return mpi_fail(MPI_ERR_COUNT, "%s %lld is negative", name, (long long)count);
}

int mpi_bad_rank(const struct mpi_comm *comm, int rank, const char *name)
{
	return mpi_fail(MPI_ERR_RANK, "%s %d is not a rank of this communicator: 0 to %d", name,
			rank, comm->remote_size - 1);
}

int mpi_bad_target(const struct mpi_win *win, int rank, const char *name)
{
	return mpi_fail(MPI_ERR_RANK, "%s %d is not a rank of this window: 0 to %d", name, rank,
			win->size - 1);
}

int mpi_bad_tag(int tag, const char *name, bool receives)
{
	return mpi_fail(MPI_ERR_TAG, "%s %d is negative%s", name, tag,
			receives ? " and not MPI_ANY_TAG" : "");
}

int mpi_bad_null(const char *name)
{
	return mpi_fail(MPI_ERR_ARG, "%s is a null pointer", name);
}

int mpi_check_special_buffer(const void *buf, MPI_Count count, const struct mpi_type *type,
			     const char *name)
{
	if (count == 0 || type->size == 0)
		return MPI_SUCCESS;
	if (buf == MPI_IN_PLACE)
		return mpi_fail(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which is for collectives",
				name);
	if (buf == MPI_BUFFER_AUTOMATIC)
		return mpi_fail(MPI_ERR_BUFFER,
				"%s is MPI_BUFFER_AUTOMATIC, which is for MPI_Buffer_attach", name);
	/* MPI_BOTTOM: allowed if the datatype was made of absolute addresses */
	if (!type->predefined)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_BUFFER, "%s is a null pointer, the count is %lld", name,
			(long long)count);
}

int mpi_check_not_negative(MPI_Count n, int code, const char *name)
{
	if (n >= 0)
		return MPI_SUCCESS;
	return mpi_fail(code, "%s %lld is negative", name, (long long)n);
}

int mpi_check_lengths(const MPI_Count *n, MPI_Count count, const char *name)
{
	for (MPI_Count i = 0; i < count; i++) {
		if (n[i] < 0)
			return mpi_fail(MPI_ERR_ARG, "%s[%lld] %lld is negative", name,
					(long long)i, (long long)n[i]);
	}
	return MPI_SUCCESS;
}

int mpi_check_types(struct mpi_type *const *type, MPI_Count count, const char *name)
{
	for (MPI_Count i = 0; i < count; i++) {
		if (!type[i])
			return mpi_fail(MPI_ERR_TYPE, "%s[%lld] is not a datatype", name,
					(long long)i);
	}
	return MPI_SUCCESS;
}

MPI_Count mpi_sum_of(const int *part, int n)
{
	MPI_Count sum = 0;

	for (int i = 0; i < n; i++)
		sum += part[i] > 0 ? part[i] : 0;
	return sum;
}

int mpi_check_cart_array(const struct mpi_comm *comm, const void *p, const char *name)
{
	const struct mpi_topology *t = comm->topology;

	/* without a Cartesian topology the function itself fails */
	return mpi_check_array(p, t && t->kind == MPI_CART ? t->cart.ndims : 0, name);
}

int mpi_check_key(const char *key, const char *name)
{
	size_t n;

	if (!key)
		return mpi_fail(MPI_ERR_INFO_KEY, "%s is a null pointer", name);
	n = strnlen(key, MPI_MAX_INFO_KEY);
	if (n == 0)
		return mpi_fail(MPI_ERR_INFO_KEY, "%s is empty", name);
	if (n == MPI_MAX_INFO_KEY)
		return mpi_fail(MPI_ERR_INFO_KEY, "%s has more than %d characters", name,
				MPI_MAX_INFO_KEY - 1);
	return MPI_SUCCESS;
}

int mpi_check_value(const char *value, const char *name)
{
	if (!value)
		return mpi_fail(MPI_ERR_INFO_VALUE, "%s is a null pointer", name);
	if (strnlen(value, MPI_MAX_INFO_VAL) == MPI_MAX_INFO_VAL)
		return mpi_fail(MPI_ERR_INFO_VALUE, "%s has more than %d characters", name,
				MPI_MAX_INFO_VAL - 1);
	return MPI_SUCCESS;
}

/* ---- wide arrays ----------------------------------------------------------------------------- */

static int wide_room(struct mpi_wide *w, MPI_Count count)
{
	w->p = w->few;
	if (count <= (MPI_Count)(sizeof(w->few) / sizeof(w->few[0])))
		return MPI_SUCCESS;
	w->p = malloc((size_t)count * sizeof(w->few[0]));
	if (w->p)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_NO_MEM, "no memory for arrays of %lld elements", (long long)count);
}

int mpi_widen(struct mpi_wide *w, const int *from, MPI_Count count)
{
	int rc;

	if (!from)
		return MPI_SUCCESS;
	rc = wide_room(w, count);
	for (MPI_Count i = 0; !rc && i < count; i++)
		((MPI_Count *)w->p)[i] = from[i];
	return rc;
}

int mpi_widen_types(struct mpi_wide *w, const MPI_Datatype *from, const MPI_Count *counts,
		    MPI_Count count)
{
	int rc;

	if (!from)
		return MPI_SUCCESS;
	rc = wide_room(w, count);
	for (MPI_Count i = 0; !rc && i < count; i++) {
		bool nothing = from[i] == MPI_DATATYPE_NULL && counts && counts[i] == 0;

		((struct mpi_type **)w->p)[i] = mpi_type_of(nothing ? MPI_BYTE : from[i]);
	}
	return rc;
}

void mpi_wide_end(struct mpi_wide *w)
{
	if (w->p != w->few)
		free(w->p);
}
