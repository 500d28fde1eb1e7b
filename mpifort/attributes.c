/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Attributes across languages (MPI-4 §19.3.7). C attributes are pointers, Fortran's are
 * integers. An attribute that Fortran sets is stored in a value here, and C gets the address of
 * that value. So when Fortran gets a pointer, this file must know which addresses are such
 * values.
 */
#include "mpifort.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct mpifort_value {
	union {
		MPI_Aint wide;
		int narrow;
	} is;
	struct mpifort_value *next_free;
	bool old, used;
};

enum { VALUES = 64 };
struct values {
	struct values *next;
	struct mpifort_value value[VALUES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct values *blocks;
static struct mpifort_value *unused;

static bool grow_values(void)
{
	struct values *b = calloc(1, sizeof(*b));

	if (!b)
		return false;
	b->next = blocks;
	blocks = b;
	for (int i = 0; i < VALUES; i++) {
		b->value[i].next_free = unused;
		unused = &b->value[i];
	}
	return true;
}

/* Called with the lock held. NULL if the address is not one of our values. */
static struct mpifort_value *find_value(void *address)
{
	for (struct values *b = blocks; b; b = b->next) {
		size_t at = (size_t)((char *)address - (char *)b->value);

		if ((uintptr_t)address >= (uintptr_t)b->value && at < sizeof(b->value) &&
		    at % sizeof(b->value[0]) == 0 && b->value[at / sizeof(b->value[0])].used)
			return address;
	}
	return NULL;
}

struct mpifort_value *mpifort_value_new(MPI_Aint value, bool old)
{
	struct mpifort_value *v = NULL;

	pthread_mutex_lock(&lock);
	if (unused || grow_values()) {
		v = unused;
		unused = v->next_free;
		v->used = true;
		v->old = old;
		v->is.wide = 0;
		if (old)
			v->is.narrow = (int)value;
		else
			v->is.wide = value;
	}
	pthread_mutex_unlock(&lock);
	if (!v)
		mpifort_raise(MPI_ERR_NO_MEM);
	return v;
}

void mpifort_value_free(void *maybe)
{
	struct mpifort_value *v;

	pthread_mutex_lock(&lock);
	v = find_value(maybe);
	if (v) {
		v->used = false;
		v->next_free = unused;
		unused = v;
	}
	pthread_mutex_unlock(&lock);
}

/* Attributes of the library: C gets a pointer to the value, except for the base of a window. */
static bool predefined(int keyval, void *attribute, MPI_Aint *value)
{
	switch (keyval) {
	case MPI_TAG_UB:
	case MPI_IO:
	case MPI_HOST:
	case MPI_WTIME_IS_GLOBAL:
	case MPI_APPNUM:
	case MPI_LASTUSEDCODE:
	case MPI_UNIVERSE_SIZE:
	case MPI_WIN_DISP_UNIT:
	case MPI_WIN_CREATE_FLAVOR:
	case MPI_WIN_MODEL:
		*value = *(int *)attribute;
		return true;
	case MPI_WIN_SIZE:
		*value = *(MPI_Aint *)attribute;
		return true;
	default:
		return false;
	}
}

MPI_Aint mpifort_value_of(int keyval, void *attribute)
{
	struct mpifort_value *v;
	MPI_Aint value = (MPI_Aint)attribute;

	if (predefined(keyval, attribute, &value))
		return value;
	pthread_mutex_lock(&lock);
	v = find_value(attribute);
	if (v)
		value = v->old ? v->is.narrow : v->is.wide;
	pthread_mutex_unlock(&lock);
	return value;
}

/* ---- callbacks: all kinds of objects alike --------------------------------------------------- */

typedef void copy_function(int *handle, int *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out,
			   int *flag, int *ierror);
typedef void delete_function(int *handle, int *keyval, MPI_Aint *value, MPI_Aint *extra,
			     int *ierror);
/* before MPI-2 */
typedef void old_copy_function(int *handle, int *keyval, int *extra, int *in, int *out, int *flag,
			       int *ierror);
typedef void old_delete_function(int *handle, int *keyval, int *value, int *extra, int *ierror);

static int copy_attribute(int handle, int keyval, struct mpifort_keyval *k, void *attribute,
			  void *out, int *flag)
{
	MPI_Aint in = mpifort_value_of(keyval, attribute), made = 0;
	int old_in = (int)in, old_made = 0, ierror = MPI_SUCCESS;
	struct mpifort_value *v;

	*flag = 0;
	if (k->old) {
		((old_copy_function *)k->copy)(&handle, &keyval, &k->extra.narrow, &old_in,
					       &old_made, flag, &ierror);
		made = old_made;
	} else {
		((copy_function *)k->copy)(&handle, &keyval, &k->extra.wide, &in, &made, flag,
					   &ierror);
	}
	*flag = *flag != 0;
	if (ierror != MPI_SUCCESS || !*flag)
		return ierror;
	v = mpifort_value_new(made, k->old);
	if (!v)
		return MPI_ERR_NO_MEM;
	memcpy(out, &v, sizeof(v));
	return MPI_SUCCESS;
}

static int delete (int handle, int keyval, struct mpifort_keyval *k, void *attribute)
{
	MPI_Aint value = mpifort_value_of(keyval, attribute);
	int old_value = (int)value, ierror = MPI_SUCCESS;

	if (k->old)
		((old_delete_function *)k->delete)(&handle, &keyval, &old_value, &k->extra.narrow,
						   &ierror);
	else
		((delete_function *)k->delete)(&handle, &keyval, &value, &k->extra.wide, &ierror);
	if (ierror == MPI_SUCCESS)
		mpifort_value_free(attribute);
	return ierror;
}

int mpifort_comm_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	return copy_attribute(mpifort_of_comm(comm), keyval, extra, in, out, flag);
}

int mpifort_comm_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
	return delete (mpifort_of_comm(comm), keyval, extra, value);
}

int mpifort_type_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag)
{
	return copy_attribute(mpifort_of_datatype(type), keyval, extra, in, out, flag);
}

int mpifort_type_delete(MPI_Datatype type, int keyval, void *value, void *extra)
{
	return delete (mpifort_of_datatype(type), keyval, extra, value);
}

int mpifort_win_copy(MPI_Win win, int keyval, void *extra, void *in, void *out, int *flag)
{
	return copy_attribute(mpifort_of_win(win), keyval, extra, in, out, flag);
}

int mpifort_win_delete(MPI_Win win, int keyval, void *value, void *extra)
{
	return delete (mpifort_of_win(win), keyval, extra, value);
}

/* ---- the predefined callbacks, procedures here ----------------------------------------------- */

#define PROCEDURE __attribute__((visibility("default")))
#define COPY_FUNCTIONS(kind, type)                                                                 \
	PROCEDURE void mpi_##kind##null_copy_fn_(int *, int *, type *, type *, type *, int *,      \
						 int *);                                           \
	PROCEDURE void mpi_##kind##null_copy_fn_(int *handle, int *keyval, type *extra, type *in,  \
						 type *out, int *flag, int *ierror)                \
	{                                                                                          \
		(void)handle, (void)keyval, (void)extra, (void)in, (void)out;                      \
		*flag = 0;                                                                         \
		*ierror = MPI_SUCCESS;                                                             \
	}                                                                                          \
	PROCEDURE void mpi_##kind##dup_fn_(int *, int *, type *, type *, type *, int *, int *);    \
	PROCEDURE void mpi_##kind##dup_fn_(int *handle, int *keyval, type *extra, type *in,        \
					   type *out, int *flag, int *ierror)                      \
	{                                                                                          \
		(void)handle, (void)keyval, (void)extra;                                           \
		*out = *in;                                                                        \
		*flag = 1;                                                                         \
		*ierror = MPI_SUCCESS;                                                             \
	}                                                                                          \
	PROCEDURE void mpi_##kind##null_delete_fn_(int *, int *, type *, type *, int *);           \
	PROCEDURE void mpi_##kind##null_delete_fn_(int *handle, int *keyval, type *value,          \
						   type *extra, int *ierror)                       \
	{                                                                                          \
		(void)handle, (void)keyval, (void)value, (void)extra;                              \
		*ierror = MPI_SUCCESS;                                                             \
	}
COPY_FUNCTIONS(comm_, MPI_Aint)
COPY_FUNCTIONS(type_, MPI_Aint)
COPY_FUNCTIONS(win_, MPI_Aint)
COPY_FUNCTIONS(, int)
