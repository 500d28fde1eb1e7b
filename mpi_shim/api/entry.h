/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The parts of the generated entry points (gen/entries.py): state and lock, handles to
 * objects, checks of arguments, and wide forms of arrays.
 *
 * A check returns MPI_SUCCESS or the result of mpi_fail(). Its `name` is the argument's name,
 * for the message. Failing paths are out of line. Checks need the lock and never block. The
 * functions that raise an error release the lock, run the error handler and return the error
 * code, unless the handler ends the job.
 */
#ifndef MPI_SHIM_ENTRY_H
#define MPI_SHIM_ENTRY_H

#include <assert.h>
#include <limits.h>
#include <mpi.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/request.h"
#include "mpi_shim/core/topology.h"
#include "mpi_shim/datatype/type.h"
#include "mpi_shim/io/io.h"
#include "mpi_shim/rma/win.h"
#include "mpi_shim/core/world.h"

#define MPI_LIKELY(x)   __builtin_expect(!!(x), 1)
#define MPI_UNLIKELY(x) __builtin_expect(!!(x), 0)

struct mpi_message;

/* ---- state and lock -------------------------------------------------------------------------- */

/* End the job: `function` was called before MPI_Init or after MPI_Finalize. Does not return. */
int mpi_not_running(const char *function) __attribute__((cold));

/* Enter an MPI function. False: MPI is not running, and the lock is not taken. Else the lock is
 * taken, if there is one. */
static inline bool mpi_enter(void)
{
	if (MPI_UNLIKELY(atomic_load_explicit(&mpi_world.phase, memory_order_relaxed) !=
			 MPI_PHASE_RUNNING))
		return false;
	mpi_lock();
	return true;
}

static inline int mpi_leave(void)
{
	mpi_unlock();
	return MPI_SUCCESS;
}

/* Enter and leave functions that may be called at any time (MPI-4 §11.4.1). They take a lock
 * before MPI_Init and after MPI_Finalize, too. */
void mpi_enter_any_time(void);
int mpi_leave_any_time(void);
int mpi_raise_any_time(const char *function, int code) __attribute__((cold));

/* Raise `code` on the communicator of `handle`, if that still exists. */
int mpi_raise_on(MPI_Comm handle, const char *function, int code) __attribute__((cold));

/* The same for windows. */
int mpi_raise_on_win(MPI_Win handle, const char *function, int code) __attribute__((cold));

/* The same for files; the handler of MPI_FILE_NULL serves where there is none. */
int mpi_raise_on_file(MPI_File handle, const char *function, int code) __attribute__((cold));
/* The same for sessions, and for calls that are given the error handler of what they make. */
int mpi_raise_on_session(MPI_Session handle, const char *function, int code) __attribute__((cold));
int mpi_raise_on_given(MPI_Errhandler given, const char *function, int code) __attribute__((cold));

/* ---- checks ---------------------------------------------------------------------------------- */

int mpi_bad_type(const struct mpi_type *type, MPI_Datatype handle, const char *name)
	__attribute__((cold));
int mpi_bad_count(MPI_Count count, const char *name) __attribute__((cold));
int mpi_bad_rank(const struct mpi_comm *comm, int rank, const char *name) __attribute__((cold));
int mpi_bad_target(const struct mpi_win *win, int rank, const char *name) __attribute__((cold));
int mpi_bad_tag(int tag, const char *name, bool receives) __attribute__((cold));
int mpi_bad_null(const char *name) __attribute__((cold));
int mpi_check_special_buffer(const void *buf, MPI_Count count, const struct mpi_type *type,
			     const char *name) __attribute__((cold));
int mpi_check_not_negative(MPI_Count n, int code, const char *name);
int mpi_check_lengths(const MPI_Count *n, MPI_Count count, const char *name);
int mpi_check_types(struct mpi_type *const *type, MPI_Count count, const char *name);
/* Check an array with one element for each dimension of comm's Cartesian topology. */
int mpi_check_cart_array(const struct mpi_comm *comm, const void *p, const char *name);
int mpi_check_key(const char *key, const char *name);
int mpi_check_value(const char *value, const char *name);

static inline int mpi_in(enum mpi_kind kind, const void *handle, void *object, const char *name)
{
	void *o = mpi_object_of(handle, kind);

	*(void **)object = o;
	return MPI_LIKELY(o != NULL) ? MPI_SUCCESS
				     : mpi_no_success(mpi_bad_handle(kind, handle, name));
}

/* As mpi_in, but the null handle becomes NULL. */
static inline int mpi_in_or_null(enum mpi_kind kind, const void *handle, const void *null,
				 void *object, const char *name)
{
	*(void **)object = NULL;
	return handle == null ? MPI_SUCCESS : mpi_in(kind, handle, object, name);
}

/* The datatype of a message. MPI_DATATYPE_NULL is allowed with `nothing`: no elements are moved. */
static inline int mpi_in_type(MPI_Datatype handle, bool nothing, struct mpi_type **type,
			      const char *name)
{
	struct mpi_type *t = mpi_type_of(handle);

	if (MPI_UNLIKELY(!t) && handle == MPI_DATATYPE_NULL && nothing)
		t = mpi_type_of(MPI_BYTE);
	*type = t;
	return MPI_LIKELY(t != NULL) ? MPI_SUCCESS
				     : mpi_no_success(mpi_bad_handle(MPI_KIND_TYPE, handle, name));
}

static inline int mpi_check_committed(const struct mpi_type *type, MPI_Datatype handle,
				      const char *name)
{
	return MPI_LIKELY(type->committed) ? MPI_SUCCESS
					   : mpi_no_success(mpi_bad_type(type, handle, name));
}

static inline int mpi_check_count(MPI_Count count, const char *name)
{
	return MPI_LIKELY(count >= 0) ? MPI_SUCCESS : mpi_no_success(mpi_bad_count(count, name));
}

/* A buffer of a message. MPI_BOTTOM and null are allowed only with addresses in the type, and
 * MPI_IN_PLACE is not. */
static inline int mpi_check_buffer(const void *buf, MPI_Count count, const struct mpi_type *type,
				   const char *name)
{
	return MPI_LIKELY((uintptr_t)buf > (uintptr_t)MPI_BUFFER_AUTOMATIC)
		       ? MPI_SUCCESS
		       : mpi_check_special_buffer(buf, count, type, name);
}

static inline int mpi_check_dest(const struct mpi_comm *comm, int rank, const char *name)
{
	return MPI_LIKELY((unsigned)rank < (unsigned)comm->remote_size || rank == MPI_PROC_NULL)
		       ? MPI_SUCCESS
		       : mpi_no_success(mpi_bad_rank(comm, rank, name));
}

static inline int mpi_check_source(const struct mpi_comm *comm, int rank, const char *name)
{
	return MPI_LIKELY((unsigned)rank < (unsigned)comm->remote_size || rank == MPI_PROC_NULL ||
			  rank == MPI_ANY_SOURCE)
		       ? MPI_SUCCESS
		       : mpi_no_success(mpi_bad_rank(comm, rank, name));
}

/* The target of a one-sided operation, of a lock or flush, or of a query of its memory. */
static inline int mpi_check_target(const struct mpi_win *win, int rank, const char *name)
{
	return MPI_LIKELY((unsigned)rank < (unsigned)win->size || rank == MPI_PROC_NULL)
		       ? MPI_SUCCESS
		       : mpi_no_success(mpi_bad_target(win, rank, name));
}

/* A rank that must exist in the local group. */
static inline int mpi_check_member(const struct mpi_comm *comm, int rank, const char *name)
{
	return MPI_LIKELY((unsigned)rank < (unsigned)comm->size)
		       ? MPI_SUCCESS
		       : mpi_no_success(mpi_bad_rank(comm, rank, name));
}

static inline int mpi_check_tag(int tag, const char *name)
{
	return MPI_LIKELY(tag >= 0) ? MPI_SUCCESS : mpi_no_success(mpi_bad_tag(tag, name, false));
}

static inline int mpi_check_recv_tag(int tag, const char *name)
{
	return MPI_LIKELY(tag >= 0 || tag == MPI_ANY_TAG)
		       ? MPI_SUCCESS
		       : mpi_no_success(mpi_bad_tag(tag, name, true));
}

static inline int mpi_check_null(const void *p, const char *name)
{
	return MPI_LIKELY(p != NULL) ? MPI_SUCCESS : mpi_no_success(mpi_bad_null(name));
}

/* An array may be null if it has no elements. */
static inline int mpi_check_array(const void *p, MPI_Count count, const char *name)
{
	return MPI_LIKELY(p != NULL || count <= 0) ? MPI_SUCCESS
						   : mpi_no_success(mpi_bad_null(name));
}

/* The sum of `n` counts: the length of an array whose parts they count. */
MPI_Count mpi_sum_of(const int *part, int n);

/* ---- results --------------------------------------------------------------------------------- */

static inline int mpi_narrow(MPI_Count n)
{
	return n >= INT_MIN && n <= INT_MAX ? (int)n : MPI_UNDEFINED;
}

/* The handle of an object; the null handle for NULL. */
static inline void *mpi_out(const void *object, const void *null)
{
	return object ? mpi_handle_of(object) : (void *)(uintptr_t)null;
}

/* ---- wide forms of arrays -------------------------------------------------------------------- */

/* A wide copy of an array. MPI_Count, MPI_Aint and pointers all have 64 bits, so one kind of
 * array serves them. */
struct mpi_wide {
	void *p; /* NULL: the array is not significant here */
	uint64_t few[64];
};

static_assert(sizeof(MPI_Count) == 8 && sizeof(MPI_Aint) == 8 && sizeof(void *) == 8,
	      "struct mpi_wide holds 64-bit elements");

static inline void mpi_wide_init(struct mpi_wide *w)
{
	w->p = NULL;
}

/* Copy `count` ints to 64 bits. `from` NULL: w->p stays NULL. MPI_ERR_NO_MEM: out of memory. */
int mpi_widen(struct mpi_wide *w, const int *from, MPI_Count count);
/* Convert datatype handles to objects. An invalid handle becomes NULL. MPI_DATATYPE_NULL with 0
 * in `counts`, which may be NULL, becomes the type of bytes. */
int mpi_widen_types(struct mpi_wide *w, const MPI_Datatype *from, const MPI_Count *counts,
		    MPI_Count count);
void mpi_wide_end(struct mpi_wide *w);

#endif
