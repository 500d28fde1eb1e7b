/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Completing requests: MPI_Wait, MPI_Test and their families, MPI_Request_get_status,
 * MPI_Request_free, MPI_Cancel.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/pt2pt/generalized.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/partitioned.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

/* Rounds of progress in which a send to this process is cancelled: it is sent, its receiver is
 * asked, and answers. */
#define ROUNDS_TO_SELF 4

static struct mpi_request *request_of(MPI_Request handle)
{
	return mpi_object_of(handle, MPI_KIND_REQUEST);
}

static int invalid(MPI_Request handle)
{
	return mpi_bad_handle(MPI_KIND_REQUEST, handle, "request");
}

/* Null and inactive requests are complete, with an empty status. */
static bool is_idle(const struct mpi_request *r)
{
	return r->persistent && !r->active;
}

static bool is_partitioned(const struct mpi_request *r)
{
	return r->kind == MPI_REQ_PSEND || r->kind == MPI_REQ_PRECV;
}

static int finish_and_forget(MPI_Request *request, struct mpi_request *r, MPI_Status *status)
{
	bool stays = r->persistent;
	int err = mpi_request_finish(r, status);

	if (!stays)
		*request = MPI_REQUEST_NULL;
	return err;
}

static int __attribute__((cold)) invalid_at(const MPI_Request *request, int i)
{
	char name[48];

	snprintf(name, sizeof(name), "array_of_requests[%d]", i);
	return mpi_bad_handle(MPI_KIND_REQUEST, request[i], name);
}

/* Returns the index of the first invalid request; `n`: there is none. */
static int first_invalid(int n, const MPI_Request *request)
{
	int i = 0;

	while (i < n && (request_of(request[i]) || request[i] == MPI_REQUEST_NULL))
		i++;
	return i;
}

/* Returns the number of active requests; -1: one is invalid (text kept). */
static int count_active(int n, const MPI_Request *request)
{
	int active = 0;

	for (int i = 0; i < n; i++) {
		const struct mpi_request *r = request_of(request[i]);

		if (r) {
			active += !is_idle(r);
		} else if (request[i] != MPI_REQUEST_NULL) {
			invalid_at(request, i);
			return -1;
		}
	}
	return active;
}

/* Returns the index of the first active request from `from` on that is done, or -1. */
static int find_done(int n, const MPI_Request *request, int from)
{
	for (int i = from; i < n; i++) {
		struct mpi_request *r = request_of(request[i]);

		if (r && r->done && !is_idle(r))
			return i;
	}
	return -1;
}

/* ---- one ------------------------------------------------------------------------------------- */

int mpi_wait(MPI_Request *request, MPI_Status *status)
{
	struct mpi_request *r;

	if (*request == MPI_REQUEST_NULL) {
		mpi_status_empty(status);
		return MPI_SUCCESS;
	}
	r = request_of(*request);
	if (!r)
		return invalid(*request);
	if (is_idle(r)) {
		mpi_status_empty(status);
		return MPI_SUCCESS;
	}
	mpi_request_wait(r);
	return finish_and_forget(request, r, status);
}

int mpi_test(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct mpi_request *r = request_of(*request);

	if (*request != MPI_REQUEST_NULL && !r)
		return invalid(*request);
	if (!r || is_idle(r)) {
		*flag = 1;
		mpi_status_empty(status);
		return MPI_SUCCESS;
	}
	if (!r->done)
		mpi_progress(false);
	*flag = r->done;
	return r->done ? finish_and_forget(request, r, status) : MPI_SUCCESS;
}

int mpi_request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	struct mpi_request *r = request_of(request);

	if (request != MPI_REQUEST_NULL && !r)
		return invalid(request);
	if (!r || is_idle(r)) {
		*flag = 1;
		mpi_status_empty(status);
		return MPI_SUCCESS;
	}
	if (!r->done)
		mpi_progress(false);
	*flag = r->done;
	return r->done ? mpi_request_status(r, status) : MPI_SUCCESS;
}

int mpi_request_free(MPI_Request *request)
{
	struct mpi_request *r = request_of(*request);
	bool generalized = r && r->kind == MPI_REQ_GENERALIZED;
	int err = MPI_SUCCESS;

	if (!r)
		return invalid(*request);
	if (is_partitioned(r)) {
		err = mpi_partitioned_free(r);
		if (!err)
			*request = MPI_REQUEST_NULL;
		return err;
	}
	*request = MPI_REQUEST_NULL;
	if (!generalized) /* else the program must still complete it */
		mpi_object_retire(&r->obj);
	if (!r->done) {
		r->freed = true;
		return MPI_SUCCESS;
	}
	if (generalized)
		err = mpi_generalized_free(r);
	mpi_object_release(r);
	return err;
}

int mpi_cancel(MPI_Request *request)
{
	struct mpi_request *r = request_of(*request);

	if (!r)
		return invalid(*request);
	if (r->kind == MPI_REQ_GENERALIZED)
		return mpi_generalized_cancel(r);
	if (is_partitioned(r))
		return mpi_fail(MPI_ERR_REQUEST, "a partitioned operation cannot be cancelled");
	if (r->done)
		return MPI_SUCCESS;
	if (r->kind == MPI_REQ_RECV)
		mpi_recv_cancel(r);
	if (r->kind == MPI_REQ_SEND)
		mpi_send_cancel(r);
	/* The answer for a send to this process is here: the first test of the request must see
	 * it. */
	for (int i = 0; i < ROUNDS_TO_SELF && mpi_send_to_self(r); i++)
		mpi_progress(false);
	if (mpi_world.threaded)
		mpi_progress_wake();
	return MPI_SUCCESS;
}

/* ---- all ------------------------------------------------------------------------------------- */

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
	return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static void set_error(MPI_Status *statuses, int i, int err)
{
	if (statuses != MPI_STATUSES_IGNORE)
		statuses[i].MPI_ERROR = err;
}

/* Takes the results of the requests that failed. The text of an error is kept. */
static int finish_failed(int n, MPI_Request *request, MPI_Status *statuses)
{
	for (int i = 0; i < n; i++) {
		struct mpi_request *r = request_of(request[i]);

		if (r && r->error && !is_idle(r))
			set_error(statuses, i,
				  finish_and_forget(&request[i], r, status_at(statuses, i)));
	}
	return MPI_ERR_IN_STATUS;
}

/* Takes the results of all requests, and waits for those that are not done. */
static int finish_all(int n, MPI_Request *request, MPI_Status *statuses)
{
	int first = MPI_SUCCESS, err;
	bool failed = false;

	for (int i = 0; i < n; i++) {
		struct mpi_request *r = request_of(request[i]);

		set_error(statuses, i, MPI_SUCCESS);
		if (!r || is_idle(r)) {
			mpi_status_empty(status_at(statuses, i));
			continue;
		}
		mpi_request_wait(r);
		if (r->error) {
			failed = true;
			continue;
		}
		err = finish_and_forget(&request[i], r, status_at(statuses, i));
		if (err) { /* a generalized request's own error */
			set_error(statuses, i, err);
			first = MPI_ERR_IN_STATUS;
		}
	}
	return failed ? finish_failed(n, request, statuses) : first;
}

int mpi_waitall(int count, MPI_Request *array_of_requests, MPI_Status *array_of_statuses)
{
	int bad = first_invalid(count, array_of_requests);

	return bad < count ? invalid_at(array_of_requests, bad)
			   : finish_all(count, array_of_requests, array_of_statuses);
}

static bool all_done(int n, const MPI_Request *request)
{
	for (int i = 0; i < n; i++) {
		struct mpi_request *r = request_of(request[i]);

		if (r && !r->done)
			return false;
	}
	return true;
}

int mpi_testall(int count, MPI_Request *array_of_requests, int *flag, MPI_Status *array_of_statuses)
{
	if (count_active(count, array_of_requests) < 0)
		return MPI_ERR_REQUEST;
	*flag = all_done(count, array_of_requests);
	while (!*flag && mpi_progress(false))
		*flag = all_done(count, array_of_requests);
	return *flag ? finish_all(count, array_of_requests, array_of_statuses) : MPI_SUCCESS;
}

int mpi_request_get_status_all(int count, const MPI_Request *array_of_requests, int *flag,
			       MPI_Status *array_of_statuses)
{
	int first = MPI_SUCCESS;

	if (count_active(count, array_of_requests) < 0)
		return MPI_ERR_REQUEST;
	*flag = all_done(count, array_of_requests);
	if (!*flag && mpi_progress(false))
		*flag = all_done(count, array_of_requests);
	for (int i = 0; i < count && *flag; i++) {
		int ignored, err = mpi_request_get_status(array_of_requests[i], &ignored,
							  status_at(array_of_statuses, i));

		if (array_of_statuses != MPI_STATUSES_IGNORE)
			array_of_statuses[i].MPI_ERROR = err;
		if (err && !first)
			first = MPI_ERR_IN_STATUS;
	}
	return first;
}

/* ---- any ------------------------------------------------------------------------------------- */

/* Waits until one of the active requests is done, and returns its index. */
static int wait_for_one(int n, const MPI_Request *request, int active)
{
	struct mpi_wait wait;
	int i = find_done(n, request, 0);
	bool watched;

	if (i >= 0)
		return i;
	watched = mpi_events_watched;
	if (watched)
		mpi_event_wait(MPI_EVENT_WAIT_BEGIN, NULL, active);
	mpi_wait_begin(&wait, BASE_WAIT_ANY, NULL, BASE_WAITS_ANY, BASE_WAITS_ANY, 0);
	wait.any = request;
	wait.n = n;
	while ((i = find_done(n, request, 0)) < 0)
		mpi_progress(true);
	mpi_wait_end(&wait);
	if (watched)
		mpi_event_wait(MPI_EVENT_WAIT_END, NULL, active);
	return i;
}

int mpi_waitany(int count, MPI_Request *array_of_requests, int *indx, MPI_Status *status)
{
	int active = count_active(count, array_of_requests), i;

	if (active < 0)
		return MPI_ERR_REQUEST;
	if (!active) {
		*indx = MPI_UNDEFINED;
		mpi_status_empty(status);
		return MPI_SUCCESS;
	}
	i = wait_for_one(count, array_of_requests, active);
	*indx = i;
	return finish_and_forget(&array_of_requests[i], request_of(array_of_requests[i]), status);
}

/* Searches for a request that is done, after a round of progress if need be. False: there is
 * none. True with *indx MPI_UNDEFINED: none is active. */
static bool test_any(int count, const MPI_Request *request, int active, int *indx)
{
	*indx = MPI_UNDEFINED;
	if (!active)
		return true;
	*indx = find_done(count, request, 0);
	if (*indx < 0 && mpi_progress(false))
		*indx = find_done(count, request, 0);
	if (*indx >= 0)
		return true;
	*indx = MPI_UNDEFINED;
	return false;
}

int mpi_testany(int count, MPI_Request *array_of_requests, int *indx, int *flag, MPI_Status *status)
{
	int active = count_active(count, array_of_requests);

	if (active < 0)
		return MPI_ERR_REQUEST;
	*flag = test_any(count, array_of_requests, active, indx);
	if (*flag && *indx != MPI_UNDEFINED)
		return finish_and_forget(&array_of_requests[*indx],
					 request_of(array_of_requests[*indx]), status);
	mpi_status_empty(status);
	return MPI_SUCCESS;
}

int mpi_request_get_status_any(int count, const MPI_Request *array_of_requests, int *indx,
			       int *flag, MPI_Status *status)
{
	int active = count_active(count, array_of_requests);

	if (active < 0)
		return MPI_ERR_REQUEST;
	*flag = test_any(count, array_of_requests, active, indx);
	if (*flag && *indx != MPI_UNDEFINED)
		return mpi_request_status(request_of(array_of_requests[*indx]), status);
	mpi_status_empty(status);
	return MPI_SUCCESS;
}

/* ---- some ------------------------------------------------------------------------------------ */

static int finish_some(int n, MPI_Request *request, int *outcount, int *indices,
		       MPI_Status *statuses)
{
	int first = MPI_SUCCESS, out = 0;

	for (int i = find_done(n, request, 0); i >= 0; i = find_done(n, request, i + 1)) {
		int err = finish_and_forget(&request[i], request_of(request[i]),
					    status_at(statuses, out));

		if (statuses != MPI_STATUSES_IGNORE)
			statuses[out].MPI_ERROR = err;
		indices[out++] = i;
		if (err && !first)
			first = MPI_ERR_IN_STATUS;
	}
	*outcount = out;
	return first;
}

int mpi_waitsome(int incount, MPI_Request *array_of_requests, int *outcount, int *array_of_indices,
		 MPI_Status *array_of_statuses)
{
	int active = count_active(incount, array_of_requests);

	if (active < 0)
		return MPI_ERR_REQUEST;
	if (!active) {
		*outcount = MPI_UNDEFINED;
		return MPI_SUCCESS;
	}
	wait_for_one(incount, array_of_requests, active);
	return finish_some(incount, array_of_requests, outcount, array_of_indices,
			   array_of_statuses);
}

int mpi_testsome(int incount, MPI_Request *array_of_requests, int *outcount, int *array_of_indices,
		 MPI_Status *array_of_statuses)
{
	int active = count_active(incount, array_of_requests);

	if (active < 0)
		return MPI_ERR_REQUEST;
	if (!active) {
		*outcount = MPI_UNDEFINED;
		return MPI_SUCCESS;
	}
	if (find_done(incount, array_of_requests, 0) < 0)
		mpi_progress(false);
	return finish_some(incount, array_of_requests, outcount, array_of_indices,
			   array_of_statuses);
}

int mpi_request_get_status_some(int incount, const MPI_Request *array_of_requests, int *outcount,
				int *array_of_indices, MPI_Status *array_of_statuses)
{
	int active = count_active(incount, array_of_requests), first = MPI_SUCCESS, out = 0;

	if (active < 0)
		return MPI_ERR_REQUEST;
	if (!active) {
		*outcount = MPI_UNDEFINED;
		return MPI_SUCCESS;
	}
	if (find_done(incount, array_of_requests, 0) < 0)
		mpi_progress(false);
	for (int i = find_done(incount, array_of_requests, 0); i >= 0;
	     i = find_done(incount, array_of_requests, i + 1)) {
		int err = mpi_request_status(request_of(array_of_requests[i]),
					     status_at(array_of_statuses, out));

		if (array_of_statuses != MPI_STATUSES_IGNORE)
			array_of_statuses[out].MPI_ERROR = err;
		array_of_indices[out++] = i;
		if (err && !first)
			first = MPI_ERR_IN_STATUS;
	}
	*outcount = out;
	return first;
}
