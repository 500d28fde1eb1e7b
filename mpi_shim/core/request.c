/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The life of a request, and statuses.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/request.h"

#define ERROR_TEXT MPI_MAX_ERROR_STRING

struct mpi_request_ops mpi_request_ops[MPI_REQ_KINDS];
struct mpi_request mpi_request_sent;
int mpi_request_plain = MPI_PLAIN_PARTS;

/* ---- status ---------------------------------------------------------------------------------- */

/* MPI_internal: the low and high half of the count, and the cancelled flag. */
enum { COUNT_LOW, COUNT_HIGH, CANCELLED };

void mpi_status_set_bytes(MPI_Status *status, MPI_Count bytes, bool cancelled)
{
	status->MPI_internal[COUNT_LOW] = (int)(uint32_t)bytes;
	status->MPI_internal[COUNT_HIGH] = (int)(bytes >> 32);
	status->MPI_internal[CANCELLED] = cancelled;
}

MPI_Count mpi_status_bytes(const MPI_Status *status)
{
	return (MPI_Count)((uint64_t)(uint32_t)status->MPI_internal[COUNT_HIGH] << 32 |
			   (uint32_t)status->MPI_internal[COUNT_LOW]);
}

bool mpi_status_cancelled(const MPI_Status *status)
{
	return status->MPI_internal[CANCELLED];
}

void mpi_status_none(MPI_Status *status, int source)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = source;
	status->MPI_TAG = MPI_ANY_TAG;
	mpi_status_set_bytes(status, 0, false);
}

void mpi_status_empty(MPI_Status *status)
{
	mpi_status_none(status, MPI_ANY_SOURCE);
	if (status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = MPI_SUCCESS;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void __attribute__((noinline)) destroy_owned(struct mpi_request *r)
{
	free(r->packed);
	free(r->error_text);
	if (mpi_request_ops[r->kind].free)
		mpi_request_ops[r->kind].free(r);
}

/* Releases what a request refers to. */
static inline void destroy_request(void *object)
{
	struct mpi_request *r = object;

	if ((uintptr_t)r->packed | (uintptr_t)r->segment | (uintptr_t)r->error_text |
	    (uintptr_t)r->schedule) /* one test for all of them */
		destroy_owned(r);
	mpi_object_release(r->type);
	mpi_object_release(r->comm);
}

/* Drops the reference of the handle, usually the last one. */
static inline void release_request(struct mpi_request *r)
{
	if (r->obj.handle < MPI_HANDLE_PREDEFINED || --r->obj.refs > 0)
		return;
	destroy_request(r);
	mpi_object_give_back(&r->obj);
}

void mpi_requests_init(void)
{
	mpi_pool_setup(MPI_KIND_REQUEST, sizeof(struct mpi_request), destroy_request);
	mpi_request_sent = (struct mpi_request){ .kind = MPI_REQ_SEND, .done = true };
	/* A number below 0x1000 of its own, next to that of MPI_REQUEST_NULL. */
	mpi_object_predefine(&mpi_request_sent, MPI_KIND_REQUEST,
			     (uint32_t)(uintptr_t)MPI_REQUEST_NULL + 1);
}

bool mpi_requests_freed(void)
{
	struct mpi_request *r;

	for (uint32_t i = 0; (r = mpi_pool_at(MPI_KIND_REQUEST, i)); i++)
		if (r->obj.handle && r->freed && !r->done &&
		    (r->kind == MPI_REQ_SEND || r->kind == MPI_REQ_PSEND ||
		     r->kind == MPI_REQ_PRECV))
			return true;
	return false;
}

struct mpi_request *mpi_request_none(void)
{
	mpi_fail(MPI_ERR_NO_MEM, "no memory for a request");
	return NULL;
}

void mpi_request_fail(struct mpi_request *r, int code, const char *format, ...)
{
	va_list args;

	r->error = code;
	if (!r->error_text)
		r->error_text = malloc(ERROR_TEXT);
	if (!r->error_text)
		return;
	va_start(args, format);
	vsnprintf(r->error_text, ERROR_TEXT, format, args);
	va_end(args);
}

void mpi_request_settle(struct mpi_request *r)
{
	struct mpi_request *parent = r->parent;

	if (r->parts > 1) {
		r->parts--;
		return;
	}
	r->done = true;
	if (r->packed) {
		free(r->packed);
		r->packed = NULL;
	}
	if (mpi_event_watched(MPI_EVENT_DONE))
		mpi_event_done(r);
	if (parent && r->error && !parent->error)
		mpi_request_fail(parent, r->error, "%s", r->error_text ? r->error_text : "");
	if (r->freed)
		mpi_object_release(r);
	if (parent)
		mpi_request_done(parent);
}

void mpi_request_wait(struct mpi_request *r)
{
	mpi_progress_until(r);
}

static void fill_status(const struct mpi_request *r, MPI_Status *status)
{
	if (r->kind != MPI_REQ_RECV && r->kind != MPI_REQ_PRECV) {
		mpi_status_none(status, MPI_ANY_SOURCE);
		status->MPI_internal[CANCELLED] = r->cancelled;
		return;
	}
	status->MPI_SOURCE = r->source;
	status->MPI_TAG = r->came;
	mpi_status_set_bytes(status, r->bytes, r->cancelled);
}

int mpi_request_status(struct mpi_request *r, MPI_Status *status)
{
	if (mpi_request_ops[r->kind].status)
		return mpi_request_ops[r->kind].status(r, status);
	if (status != MPI_STATUS_IGNORE)
		fill_status(r, status);
	if (!r->error)
		return MPI_SUCCESS;
	mpi_fail(r->error, "%s", r->error_text ? r->error_text : "");
	mpi_fail_on(r->comm ? r->comm->obj.handle : r->win);
	return r->error;
}

int mpi_request_finish(struct mpi_request *r, MPI_Status *status)
{
	int err = mpi_request_status(r, status), of_end;

	if (r->persistent) {
		r->active = false;
		r->error = MPI_SUCCESS;
		return err;
	}
	if (mpi_request_ops[r->kind].finish) { /* the last callback's error counts (MPI-4 §13.2) */
		of_end = mpi_request_ops[r->kind].finish(r);
		err = of_end ? of_end : err;
	}
	release_request(r);
	return err;
}
