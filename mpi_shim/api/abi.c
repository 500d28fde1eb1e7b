/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The binary interface about itself (MPI-5 §20): its version and sizes, properties of a
 * Fortran compiler, and handles as integers. All functions may be called at any time.
 */
#include <stdio.h>
#include <string.h>

#include "mpi_shim/api/entry.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/api/weak.h"

MPI_WEAK(MPI_Abi_get_version);
int PMPI_Abi_get_version(int *abi_major, int *abi_minor)
{
	if (!abi_major || !abi_minor) {
		mpi_enter_any_time();
		return mpi_raise_any_time("MPI_Abi_get_version", mpi_bad_null("a result"));
	}
	*abi_major = MPI_ABI_VERSION;
	*abi_minor = MPI_ABI_SUBVERSION;
	return MPI_SUCCESS;
}

static int set_info_size(struct mpi_info *info, const char *key, size_t size)
{
	char text[16];

	snprintf(text, sizeof(text), "%zu", size);
	return mpi_info_set(info, key, text);
}

static int sizes(struct mpi_info **out)
{
	struct mpi_info *info = NULL;
	int rc = mpi_info_create(&info);

	if (rc == MPI_SUCCESS)
		rc = set_info_size(info, "mpi_aint_size", sizeof(MPI_Aint));
	if (rc == MPI_SUCCESS)
		rc = set_info_size(info, "mpi_count_size", sizeof(MPI_Count));
	if (rc == MPI_SUCCESS)
		rc = set_info_size(info, "mpi_offset_size", sizeof(MPI_Offset));
	if (rc != MPI_SUCCESS && info)
		mpi_info_free(&info);
	*out = info;
	return rc;
}

MPI_WEAK(MPI_Abi_get_info);
int PMPI_Abi_get_info(MPI_Info *info)
{
	struct mpi_info *o = NULL;
	int rc;

	mpi_enter_any_time();
	rc = mpi_check_null(info, "info");
	if (rc == MPI_SUCCESS)
		rc = sizes(&o);
	if (rc != MPI_SUCCESS)
		return mpi_raise_any_time("MPI_Abi_get_info", rc);
	*info = mpi_handle_of(o);
	return mpi_leave_any_time();
}

/* ---- properties of the Fortran compiler ------------------------------------------------------ */

/* The values live outside the pools of objects, as they outlast MPI_Finalize. */
static struct {
	const char *key;
	char value[16];
} fortran[] = {
	{ .key = "mpi_logical_size" },
	{ .key = "mpi_integer_size" },
	{ .key = "mpi_real_size" },
	{ .key = "mpi_double_precision_size" },
	{ .key = "mpi_logical1_supported" },
	{ .key = "mpi_logical2_supported" },
	{ .key = "mpi_logical4_supported" },
	{ .key = "mpi_logical8_supported" },
	{ .key = "mpi_logical16_supported" },
	{ .key = "mpi_integer1_supported" },
	{ .key = "mpi_integer2_supported" },
	{ .key = "mpi_integer4_supported" },
	{ .key = "mpi_integer8_supported" },
	{ .key = "mpi_integer16_supported" },
	{ .key = "mpi_real2_supported" },
	{ .key = "mpi_real4_supported" },
	{ .key = "mpi_real8_supported" },
	{ .key = "mpi_real16_supported" },
	{ .key = "mpi_complex4_supported" },
	{ .key = "mpi_complex8_supported" },
	{ .key = "mpi_complex16_supported" },
	{ .key = "mpi_complex32_supported" },
	{ .key = "mpi_double_complex_supported" },
};
#define FORTRAN_KEYS (sizeof(fortran) / sizeof(fortran[0]))
static bool fortran_known;

/* Store the properties; only the first call may. Unknown keys are ignored. */
static int fortran_set(const struct mpi_info *info)
{
	if (fortran_known)
		return mpi_fail(MPI_ERR_ABI, "the properties of Fortran have been set before");
	for (int i = 0; i < info->count; i++) {
		for (size_t k = 0; k < FORTRAN_KEYS; k++) {
			if (strcmp(info->pair[i].key, fortran[k].key) == 0)
				snprintf(fortran[k].value, sizeof(fortran[k].value), "%s",
					 info->pair[i].value);
		}
	}
	fortran_known = true;
	return MPI_SUCCESS;
}

/* Return the properties; NULL while none are known. */
static int fortran_get(struct mpi_info **out)
{
	struct mpi_info *info = NULL;
	int rc = MPI_SUCCESS;

	if (fortran_known)
		rc = mpi_info_create(&info);
	for (size_t k = 0; info && k < FORTRAN_KEYS && rc == MPI_SUCCESS; k++) {
		if (fortran[k].value[0])
			rc = mpi_info_set(info, fortran[k].key, fortran[k].value);
	}
	if (rc != MPI_SUCCESS && info)
		mpi_info_free(&info);
	*out = info;
	return rc;
}

/* .TRUE. and .FALSE. of the LOGICALs of 1, 2, 4, 8 and 16 bytes. */
static struct {
	bool known;
	unsigned char yes[16], no[16];
} logical[5];

static int logical_index(int size, size_t *index)
{
	for (*index = 0; *index < 5; ++*index) {
		if (size == 1 << *index)
			return MPI_SUCCESS;
	}
	return mpi_fail(MPI_ERR_ARG, "logical_size %d is not 1, 2, 4, 8 or 16", size);
}

static int logical_set(int size, const void *yes, const void *no)
{
	size_t i;
	int rc = logical_index(size, &i);

	if (rc != MPI_SUCCESS)
		return rc;
	if (logical[i].known)
		return mpi_fail(MPI_ERR_ABI, "LOGICAL of %d bytes has been set before", size);
	memcpy(logical[i].yes, yes, (size_t)size);
	memcpy(logical[i].no, no, (size_t)size);
	logical[i].known = true;
	return MPI_SUCCESS;
}

static int logical_get(int size, void *yes, void *no, int *is_set)
{
	size_t i;
	int rc = logical_index(size, &i);

	if (rc != MPI_SUCCESS)
		return rc;
	*is_set = logical[i].known;
	if (logical[i].known) {
		memcpy(yes, logical[i].yes, (size_t)size);
		memcpy(no, logical[i].no, (size_t)size);
	}
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_Abi_set_fortran_info);
int PMPI_Abi_set_fortran_info(MPI_Info info)
{
	struct mpi_info *o;
	int rc;

	mpi_enter_any_time();
	rc = mpi_in(MPI_KIND_INFO, info, &o, "info");
	if (rc == MPI_SUCCESS)
		rc = fortran_set(o);
	if (rc != MPI_SUCCESS)
		return mpi_raise_any_time("MPI_Abi_set_fortran_info", rc);
	return mpi_leave_any_time();
}

MPI_WEAK(MPI_Abi_get_fortran_info);
int PMPI_Abi_get_fortran_info(MPI_Info *info)
{
	struct mpi_info *o = NULL;
	int rc;

	mpi_enter_any_time();
	rc = mpi_check_null(info, "info");
	if (rc == MPI_SUCCESS)
		rc = fortran_get(&o);
	if (rc != MPI_SUCCESS)
		return mpi_raise_any_time("MPI_Abi_get_fortran_info", rc);
	*info = mpi_out(o, MPI_INFO_NULL);
	return mpi_leave_any_time();
}

MPI_WEAK(MPI_Abi_set_fortran_booleans);
int PMPI_Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
	int rc;

	mpi_enter_any_time();
	rc = mpi_check_null(logical_true, "logical_true");
	if (rc == MPI_SUCCESS)
		rc = mpi_check_null(logical_false, "logical_false");
	if (rc == MPI_SUCCESS)
		rc = logical_set(logical_size, logical_true, logical_false);
	if (rc != MPI_SUCCESS)
		return mpi_raise_any_time("MPI_Abi_set_fortran_booleans", rc);
	return mpi_leave_any_time();
}

MPI_WEAK(MPI_Abi_get_fortran_booleans);
int PMPI_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false,
				  int *is_set)
{
	int rc;

	mpi_enter_any_time();
	rc = mpi_check_null(logical_true, "logical_true");
	if (rc == MPI_SUCCESS)
		rc = mpi_check_null(logical_false, "logical_false");
	if (rc == MPI_SUCCESS)
		rc = mpi_check_null(is_set, "is_set");
	if (rc == MPI_SUCCESS)
		rc = logical_get(logical_size, logical_true, logical_false, is_set);
	if (rc != MPI_SUCCESS)
		return mpi_raise_any_time("MPI_Abi_get_fortran_booleans", rc);
	return mpi_leave_any_time();
}

/* ---- handles as integers: all handles are 32-bit numbers (handle.h) -------------------------- */

static int handle_to_int(const void *handle)
{
	return (int)(uint32_t)(uintptr_t)handle;
}

static void *handle_from_int(int number)
{
	return (void *)(uintptr_t)(uint32_t)number;
}

MPI_WEAK(MPI_Comm_toint);
int PMPI_Comm_toint(MPI_Comm comm)
{
	return handle_to_int(comm);
}

MPI_WEAK(MPI_Comm_fromint);
MPI_Comm PMPI_Comm_fromint(int comm)
{
	return handle_from_int(comm);
}

MPI_WEAK(MPI_Errhandler_toint);
int PMPI_Errhandler_toint(MPI_Errhandler errhandler)
{
	return handle_to_int(errhandler);
}

MPI_WEAK(MPI_Errhandler_fromint);
MPI_Errhandler PMPI_Errhandler_fromint(int errhandler)
{
	return handle_from_int(errhandler);
}

MPI_WEAK(MPI_File_toint);
int PMPI_File_toint(MPI_File file)
{
	return handle_to_int(file);
}

MPI_WEAK(MPI_File_fromint);
MPI_File PMPI_File_fromint(int file)
{
	return handle_from_int(file);
}

MPI_WEAK(MPI_Group_toint);
int PMPI_Group_toint(MPI_Group group)
{
	return handle_to_int(group);
}

MPI_WEAK(MPI_Group_fromint);
MPI_Group PMPI_Group_fromint(int group)
{
	return handle_from_int(group);
}

MPI_WEAK(MPI_Info_toint);
int PMPI_Info_toint(MPI_Info info)
{
	return handle_to_int(info);
}

MPI_WEAK(MPI_Info_fromint);
MPI_Info PMPI_Info_fromint(int info)
{
	return handle_from_int(info);
}

MPI_WEAK(MPI_Message_toint);
int PMPI_Message_toint(MPI_Message message)
{
	return handle_to_int(message);
}

MPI_WEAK(MPI_Message_fromint);
MPI_Message PMPI_Message_fromint(int message)
{
	return handle_from_int(message);
}

MPI_WEAK(MPI_Op_toint);
int PMPI_Op_toint(MPI_Op op)
{
	return handle_to_int(op);
}

MPI_WEAK(MPI_Op_fromint);
MPI_Op PMPI_Op_fromint(int op)
{
	return handle_from_int(op);
}

MPI_WEAK(MPI_Request_toint);
int PMPI_Request_toint(MPI_Request request)
{
	return handle_to_int(request);
}

MPI_WEAK(MPI_Request_fromint);
MPI_Request PMPI_Request_fromint(int request)
{
	return handle_from_int(request);
}

MPI_WEAK(MPI_Session_toint);
int PMPI_Session_toint(MPI_Session session)
{
	return handle_to_int(session);
}

MPI_WEAK(MPI_Session_fromint);
MPI_Session PMPI_Session_fromint(int session)
{
	return handle_from_int(session);
}

MPI_WEAK(MPI_Type_toint);
int PMPI_Type_toint(MPI_Datatype datatype)
{
	return handle_to_int(datatype);
}

MPI_WEAK(MPI_Type_fromint);
MPI_Datatype PMPI_Type_fromint(int datatype)
{
	return handle_from_int(datatype);
}

MPI_WEAK(MPI_Win_toint);
int PMPI_Win_toint(MPI_Win win)
{
	return handle_to_int(win);
}

MPI_WEAK(MPI_Win_fromint);
MPI_Win PMPI_Win_fromint(int win)
{
	return handle_from_int(win);
}
