/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Statuses as the user sees them: their public fields, and counts in elements of a datatype.
 */
#include "mpi_shim/api/entry.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/api/weak.h"

/* ---- counts ---------------------------------------------------------------------------------- */

int mpi_get_count(const MPI_Status *status, struct mpi_type *datatype, MPI_Count *count)
{
	MPI_Count bytes = mpi_status_bytes(status);

	if (datatype->size > 0)
		*count = bytes % datatype->size ? MPI_UNDEFINED : bytes / datatype->size;
	else
		*count = bytes ? MPI_UNDEFINED : 0;
	return MPI_SUCCESS;
}

int mpi_get_elements(const MPI_Status *status, struct mpi_type *datatype, MPI_Count *count)
{
	MPI_Count n = mpi_type_elements(datatype, mpi_status_bytes(status));

	*count = n < 0 ? MPI_UNDEFINED : n;
	return MPI_SUCCESS;
}

int mpi_status_set_elements(MPI_Status *status, struct mpi_type *datatype, MPI_Count count)
{
	MPI_Count bytes;

	if (count < 0)
		return mpi_bad_count(count, "count");
	if (count > 0 && datatype->size <= 0)
		return mpi_fail(MPI_ERR_TYPE, "datatype has no elements, the count is %lld",
				(long long)count);
	bytes = mpi_type_element_bytes(datatype, count);
	if (bytes < 0)
		return mpi_fail(MPI_ERR_COUNT, "count %lld is more bytes than can be",
				(long long)count);
	mpi_status_set_bytes(status, bytes, mpi_status_cancelled(status));
	return MPI_SUCCESS;
}

/* ---- cancelled ------------------------------------------------------------------------------- */

int mpi_status_set_cancelled(MPI_Status *status, int flag)
{
	mpi_status_set_bytes(status, mpi_status_bytes(status), flag != 0);
	return MPI_SUCCESS;
}

int mpi_test_cancelled(const MPI_Status *status, int *flag)
{
	*flag = mpi_status_cancelled(status);
	return MPI_SUCCESS;
}

/* ---- public fields: for languages that cannot name them -------------------------------------- */

static int null_argument(const char *function)
{
	mpi_enter_any_time();
	return mpi_raise_any_time(function, mpi_bad_null("an argument"));
}

MPI_WEAK(MPI_Status_get_source);
int PMPI_Status_get_source(const MPI_Status *status, int *source)
{
	if (!status || !source)
		return null_argument("MPI_Status_get_source");
	*source = status->MPI_SOURCE;
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_Status_get_tag);
int PMPI_Status_get_tag(const MPI_Status *status, int *tag)
{
	if (!status || !tag)
		return null_argument("MPI_Status_get_tag");
	*tag = status->MPI_TAG;
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_Status_get_error);
int PMPI_Status_get_error(const MPI_Status *status, int *error)
{
	if (!status || !error)
		return null_argument("MPI_Status_get_error");
	*error = status->MPI_ERROR;
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_Status_set_source);
int PMPI_Status_set_source(MPI_Status *status, int source)
{
	if (!status)
		return null_argument("MPI_Status_set_source");
	status->MPI_SOURCE = source;
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_Status_set_tag);
int PMPI_Status_set_tag(MPI_Status *status, int tag)
{
	if (!status)
		return null_argument("MPI_Status_set_tag");
	status->MPI_TAG = tag;
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_Status_set_error);
int PMPI_Status_set_error(MPI_Status *status, int error)
{
	if (!status)
		return null_argument("MPI_Status_set_error");
	status->MPI_ERROR = error;
	return MPI_SUCCESS;
}
