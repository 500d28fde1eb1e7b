/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The attribute functions of MPI, and the predefined attributes. These are the same on every
 * communicator: programs ask any communicator for MPI_TAG_UB.
 */
#include <limits.h>
#include <portals3_ext.h>
#include <string.h>

#include "mpi_shim/core/attr.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/datatype/type.h"
#include "mpi_shim/core/world.h"

static int tag_ub = INT_MAX;
static int host = MPI_PROC_NULL;
static int io = MPI_ANY_SOURCE; /* every process has its language's input and output */
static int wtime_is_global = 0;
static int appnum;
static int universe_size;

/* The value of a predefined key. NULL: the key is not predefined. */
static int *predefined_attr(int number)
{
	switch (number) {
	case MPI_TAG_UB:
		return &tag_ub;
	case MPI_HOST:
		return &host;
	case MPI_IO:
		return &io;
	case MPI_WTIME_IS_GLOBAL:
		return &wtime_is_global;
	case MPI_APPNUM:
		appnum = mpi_world_program();
		return &appnum;
	case MPI_UNIVERSE_SIZE:
		if (PtlJobUniverse(&universe_size) != PTL_OK || universe_size < mpi_world.size)
			universe_size = mpi_world.size;
		return &universe_size;
	case MPI_LASTUSEDCODE:
		return mpi_error_last_used();
	default:
		return NULL;
	}
}

static int check_key_writable(int number)
{
	if (!predefined_attr(number))
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_KEYVAL, "key %d is predefined; its value can only be read", number);
}

/* ---- communicators --------------------------------------------------------------------------- */

int mpi_comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete,
			   int *number, void *extra)
{
	struct mpi_keyval *k = mpi_keyval_new(MPI_ATTR_ON_COMM, extra, number);

	if (!k)
		return mpi_fail_memory("an attribute key");
	k->copy.comm = copy;
	k->delete.comm = delete;
	return MPI_SUCCESS;
}

int mpi_comm_free_keyval(int *number)
{
	return mpi_keyval_drop(MPI_ATTR_ON_COMM, number);
}

int mpi_comm_set_attr(struct mpi_comm *comm, int number, void *value)
{
	int err = check_key_writable(number);

	if (err != MPI_SUCCESS)
		return err;
	return mpi_attr_store(comm, MPI_ATTR_ON_COMM, &comm->attrs, number, value);
}

int mpi_comm_get_attr(struct mpi_comm *comm, int number, void *value, int *flag)
{
	int *there = predefined_attr(number);

	if (!there)
		return mpi_attr_load(MPI_ATTR_ON_COMM, comm->attrs, number, value, flag);
	*flag = 1;
	memcpy(value, &there, sizeof(there));
	return MPI_SUCCESS;
}

int mpi_comm_delete_attr(struct mpi_comm *comm, int number)
{
	int err = check_key_writable(number);

	if (err != MPI_SUCCESS)
		return err;
	return mpi_attr_remove(comm, MPI_ATTR_ON_COMM, &comm->attrs, number);
}

/* The names of MPI-1. Their callbacks have the types of MPI-2. */

int mpi_keyval_create(MPI_Copy_function *copy, MPI_Delete_function *delete, int *number,
		      void *extra)
{
	return mpi_comm_create_keyval(copy, delete, number, extra);
}

int mpi_keyval_free(int *number)
{
	return mpi_comm_free_keyval(number);
}

int mpi_attr_put(struct mpi_comm *comm, int number, void *value)
{
	return mpi_comm_set_attr(comm, number, value);
}

int mpi_attr_get(struct mpi_comm *comm, int number, void *value, int *flag)
{
	return mpi_comm_get_attr(comm, number, value, flag);
}

int mpi_attr_delete(struct mpi_comm *comm, int number)
{
	return mpi_comm_delete_attr(comm, number);
}

/* ---- datatypes ------------------------------------------------------------------------------- */

int mpi_type_create_keyval(MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *delete,
			   int *number, void *extra)
{
	struct mpi_keyval *k = mpi_keyval_new(MPI_ATTR_ON_TYPE, extra, number);

	if (!k)
		return mpi_fail_memory("an attribute key");
	k->copy.type = copy;
	k->delete.type = delete;
	return MPI_SUCCESS;
}

int mpi_type_free_keyval(int *number)
{
	return mpi_keyval_drop(MPI_ATTR_ON_TYPE, number);
}

int mpi_type_set_attr(struct mpi_type *type, int number, void *value)
{
	return mpi_attr_store(type, MPI_ATTR_ON_TYPE, &type->attrs, number, value);
}

int mpi_type_get_attr(struct mpi_type *type, int number, void *value, int *flag)
{
	return mpi_attr_load(MPI_ATTR_ON_TYPE, type->attrs, number, value, flag);
}

int mpi_type_delete_attr(struct mpi_type *type, int number)
{
	return mpi_attr_remove(type, MPI_ATTR_ON_TYPE, &type->attrs, number);
}

/* ---- windows: keys only ---------------------------------------------------------------------- */

int mpi_win_create_keyval(MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *delete,
			  int *number, void *extra)
{
	struct mpi_keyval *k = mpi_keyval_new(MPI_ATTR_ON_WIN, extra, number);

	if (!k)
		return mpi_fail_memory("an attribute key");
	k->copy.win = copy;
	k->delete.win = delete;
	return MPI_SUCCESS;
}

int mpi_win_free_keyval(int *number)
{
	return mpi_keyval_drop(MPI_ATTR_ON_WIN, number);
}
