/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * C functions that call Fortran ones. Generalized requests and data representations have an
 * extra state that holds the Fortran function. Reductions and error handlers have none. For
 * these there are numbered C functions, which differ only in the table entry they use
 * (thunks.c, written by gen/thunks.py). An entry belongs to one Fortran function for ever: an
 * operation that was freed may still be in use.
 */
#include "mpifort.h"

#include <pthread.h>
#include <stdlib.h>

/* guards the tables while an entry is taken */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mpifort_function *ops[MPIFORT_OPS];
static struct {
	mpifort_function *function;
	enum mpifort_kind kind;
} errhandlers[MPIFORT_ERRHANDLERS];

/* ---- reductions ------------------------------------------------------------------------------ */

MPI_User_function *mpifort_op_of(mpifort_function *function)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < MPIFORT_OPS && ops[i] && ops[i] != function)
		i++;
	if (i < MPIFORT_OPS)
		ops[i] = function;
	pthread_mutex_unlock(&lock);
	if (i < MPIFORT_OPS)
		return mpifort_op_thunks[i];
	mpifort_raise(MPI_ERR_OTHER);
	return NULL;
}

/* The length is an INTEGER, or of MPI_COUNT_KIND if the operation was made so. */
void mpifort_call_op(int number, void *invec, void *inoutvec, void *len, MPI_Datatype *datatype)
{
	typedef void user_function(void *, void *, void *, int *);
	int type = mpifort_of_datatype(*datatype);

	((user_function *)ops[number])(invec, inoutvec, len, &type);
}

/* ---- error handlers -------------------------------------------------------------------------- */

MPI_Comm_errhandler_function *mpifort_errhandler_of(mpifort_function *function,
						    enum mpifort_kind kind)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < MPIFORT_ERRHANDLERS && errhandlers[i].function &&
	       (errhandlers[i].function != function || errhandlers[i].kind != kind))
		i++;
	if (i < MPIFORT_ERRHANDLERS) {
		errhandlers[i].function = function;
		errhandlers[i].kind = kind;
	}
	pthread_mutex_unlock(&lock);
	if (i < MPIFORT_ERRHANDLERS)
		return mpifort_errhandler_thunks[i];
	mpifort_raise(MPI_ERR_OTHER);
	return NULL;
}

static int fortran_number(enum mpifort_kind kind, void *handle)
{
	switch (kind) {
	case MPIFORT_COMM:
		return mpifort_of_comm(*(MPI_Comm *)handle);
	case MPIFORT_WIN:
		return mpifort_of_win(*(MPI_Win *)handle);
	case MPIFORT_FILE:
		return mpifort_of_file(*(MPI_File *)handle);
	default:
		return mpifort_of_session(*(MPI_Session *)handle);
	}
}

void mpifort_call_errhandler(int number, void *handle, int *error_code)
{
	typedef void handler_function(int *, int *);
	int f = fortran_number(errhandlers[number].kind, handle);

	((handler_function *)errhandlers[number].function)(&f, error_code);
}

/* ---- generalized requests -------------------------------------------------------------------- */

int mpifort_query(void *extra, MPI_Status *status)
{
	typedef void query_function(MPI_Aint *, MPI_Status *, int *);
	const struct mpifort_grequest *g = extra;
	int ierror = MPI_SUCCESS;

	((query_function *)g->query)(g->extra, status, &ierror);
	return ierror;
}

int mpifort_free(void *extra)
{
	typedef void free_function(MPI_Aint *, int *);
	struct mpifort_grequest *g = extra;
	int ierror = MPI_SUCCESS;

	((free_function *)g->free)(g->extra, &ierror);
	free(g);
	return ierror;
}

int mpifort_cancel(void *extra, int complete)
{
	typedef void cancel_function(MPI_Aint *, int *, int *);
	const struct mpifort_grequest *g = extra;
	int flag = complete != 0, ierror = MPI_SUCCESS;

	((cancel_function *)g->cancel)(g->extra, &flag, &ierror);
	return ierror;
}

/* ---- data representations -------------------------------------------------------------------- */

int mpifort_extent(MPI_Datatype datatype, MPI_Aint *extent, void *extra)
{
	typedef void extent_function(int *, MPI_Aint *, MPI_Aint *, int *);
	const struct mpifort_datarep *d = extra;
	int type = mpifort_of_datatype(datatype), ierror = MPI_SUCCESS;

	((extent_function *)d->extent)(&type, extent, d->extra, &ierror);
	return ierror;
}

/* The count is an INTEGER or of MPI_COUNT_KIND. */
static int call_convert(mpifort_function *function, MPI_Aint *state, void *user,
			MPI_Datatype datatype, void *count, void *file, MPI_Offset position)
{
	typedef void conversion(void *, int *, void *, void *, MPI_Offset *, MPI_Aint *, int *);
	int type = mpifort_of_datatype(datatype), ierror = MPI_SUCCESS;

	((conversion *)function)(user, &type, count, file, &position, state, &ierror);
	return ierror;
}

int mpifort_read(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position,
		 void *extra)
{
	const struct mpifort_datarep *d = extra;

	return call_convert(d->read, d->extra, user, datatype, &count, file, position);
}

int mpifort_write(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position,
		  void *extra)
{
	const struct mpifort_datarep *d = extra;

	return call_convert(d->write, d->extra, user, datatype, &count, file, position);
}

int mpifort_read_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file,
		   MPI_Offset position, void *extra)
{
	const struct mpifort_datarep *d = extra;

	return call_convert(d->read, d->extra, user, datatype, &count, file, position);
}

int mpifort_write_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file,
		    MPI_Offset position, void *extra)
{
	const struct mpifort_datarep *d = extra;

	return call_convert(d->write, d->extra, user, datatype, &count, file, position);
}

/* Never called: their addresses say that no conversion is needed. */
#define NOT_CALLED(name)                                                                           \
	__attribute__((visibility("default"))) void name(void *, int *, void *, void *,            \
							 MPI_Offset *, MPI_Aint *, int *);         \
	__attribute__((visibility("default"))) void name(void *user, int *datatype, void *count,   \
							 void *file, MPI_Offset *position,         \
							 MPI_Aint *extra, int *ierror)             \
	{                                                                                          \
		(void)user, (void)datatype, (void)count, (void)file, (void)position, (void)extra;  \
		*ierror = MPI_ERR_CONVERSION;                                                      \
	}
NOT_CALLED(mpi_conversion_fn_null_)
NOT_CALLED(mpi_conversion_fn_null_c_)

bool mpifort_is_null_conversion(mpifort_function *function)
{
	return function == (mpifort_function *)mpi_conversion_fn_null_ ||
	       function == (mpifort_function *)mpi_conversion_fn_null_c_;
}
