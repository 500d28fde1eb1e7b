/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Functions that only libpostern-mpi.so has. They are functions that MPI-3 removed, each by way of
 * its replacement, and the link between C and Fortran. See include/mpi/mpi.h.
 */
#include "../../include/mpi/mpi.h"

#include <string.h>

#include "mpi_shim/api/entry.h"
#include "mpi_shim/api/weak.h"

_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint) &&
		       sizeof(MPI_F08_status) == sizeof(MPI_Status),
	       "a status is the same in all languages");

/* ---- addresses and datatypes ----------------------------------------------------------------- */

MPI_WEAK(MPI_Address);
int PMPI_Address(void *location, MPI_Aint *address)
{
	return PMPI_Get_address(location, address);
}

/* Get the bounds of a datatype; each result may be NULL. */
static int bounds(MPI_Datatype datatype, MPI_Aint *lb, MPI_Aint *ub, MPI_Aint *extent)
{
	MPI_Aint low, size;
	int rc = PMPI_Type_get_extent(datatype, &low, &size);

	if (rc != MPI_SUCCESS)
		return rc;
	if (lb)
		*lb = low;
	if (ub)
		*ub = low + size;
	if (extent)
		*extent = size;
	return MPI_SUCCESS;
}

static int raise_null_legacy(const char *function)
{
	if (!mpi_enter())
		return mpi_not_running(function);
	return mpi_raise(NULL, function, mpi_bad_null("the result"));
}

MPI_WEAK(MPI_Type_extent);
int PMPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
	if (!extent)
		return raise_null_legacy("MPI_Type_extent");
	return bounds(datatype, NULL, NULL, extent);
}

MPI_WEAK(MPI_Type_lb);
int PMPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement)
{
	if (!displacement)
		return raise_null_legacy("MPI_Type_lb");
	return bounds(datatype, displacement, NULL, NULL);
}

MPI_WEAK(MPI_Type_ub);
int PMPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement)
{
	if (!displacement)
		return raise_null_legacy("MPI_Type_ub");
	return bounds(datatype, NULL, displacement, NULL);
}

MPI_WEAK(MPI_Type_hvector);
int PMPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
		      MPI_Datatype *newtype)
{
	return PMPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}

MPI_WEAK(MPI_Type_hindexed);
int PMPI_Type_hindexed(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
		       MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return PMPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements,
					 oldtype, newtype);
}

MPI_WEAK(MPI_Type_struct);
int PMPI_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
		     MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
	return PMPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements,
				       array_of_types, newtype);
}

/* ---- error handlers -------------------------------------------------------------------------- */

MPI_WEAK(MPI_Errhandler_create);
int PMPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler)
{
	return PMPI_Comm_create_errhandler(function, errhandler);
}

MPI_WEAK(MPI_Errhandler_set);
int PMPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
	return PMPI_Comm_set_errhandler(comm, errhandler);
}

MPI_WEAK(MPI_Errhandler_get);
int PMPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
	return PMPI_Comm_get_errhandler(comm, errhandler);
}

/* ---- handles in Fortran ---------------------------------------------------------------------- */

MPI_WEAK(MPI_Comm_c2f);
MPI_Fint PMPI_Comm_c2f(MPI_Comm comm)
{
	return PMPI_Comm_toint(comm);
}

MPI_WEAK(MPI_Comm_f2c);
MPI_Comm PMPI_Comm_f2c(MPI_Fint comm)
{
	return PMPI_Comm_fromint(comm);
}

MPI_WEAK(MPI_Errhandler_c2f);
MPI_Fint PMPI_Errhandler_c2f(MPI_Errhandler errhandler)
{
	return PMPI_Errhandler_toint(errhandler);
}

MPI_WEAK(MPI_Errhandler_f2c);
MPI_Errhandler PMPI_Errhandler_f2c(MPI_Fint errhandler)
{
	return PMPI_Errhandler_fromint(errhandler);
}

MPI_WEAK(MPI_File_c2f);
MPI_Fint PMPI_File_c2f(MPI_File file)
{
	return PMPI_File_toint(file);
}

MPI_WEAK(MPI_File_f2c);
MPI_File PMPI_File_f2c(MPI_Fint file)
{
	return PMPI_File_fromint(file);
}

MPI_WEAK(MPI_Group_c2f);
MPI_Fint PMPI_Group_c2f(MPI_Group group)
{
	return PMPI_Group_toint(group);
}

MPI_WEAK(MPI_Group_f2c);
MPI_Group PMPI_Group_f2c(MPI_Fint group)
{
	return PMPI_Group_fromint(group);
}

MPI_WEAK(MPI_Info_c2f);
MPI_Fint PMPI_Info_c2f(MPI_Info info)
{
	return PMPI_Info_toint(info);
}

MPI_WEAK(MPI_Info_f2c);
MPI_Info PMPI_Info_f2c(MPI_Fint info)
{
	return PMPI_Info_fromint(info);
}

MPI_WEAK(MPI_Message_c2f);
MPI_Fint PMPI_Message_c2f(MPI_Message message)
{
	return PMPI_Message_toint(message);
}

MPI_WEAK(MPI_Message_f2c);
MPI_Message PMPI_Message_f2c(MPI_Fint message)
{
	return PMPI_Message_fromint(message);
}

MPI_WEAK(MPI_Op_c2f);
MPI_Fint PMPI_Op_c2f(MPI_Op op)
{
	return PMPI_Op_toint(op);
}

MPI_WEAK(MPI_Op_f2c);
MPI_Op PMPI_Op_f2c(MPI_Fint op)
{
	return PMPI_Op_fromint(op);
}

MPI_WEAK(MPI_Request_c2f);
MPI_Fint PMPI_Request_c2f(MPI_Request request)
{
	return PMPI_Request_toint(request);
}

MPI_WEAK(MPI_Request_f2c);
MPI_Request PMPI_Request_f2c(MPI_Fint request)
{
	return PMPI_Request_fromint(request);
}

MPI_WEAK(MPI_Session_c2f);
MPI_Fint PMPI_Session_c2f(MPI_Session session)
{
	return PMPI_Session_toint(session);
}

MPI_WEAK(MPI_Session_f2c);
MPI_Session PMPI_Session_f2c(MPI_Fint session)
{
	return PMPI_Session_fromint(session);
}

MPI_WEAK(MPI_Type_c2f);
MPI_Fint PMPI_Type_c2f(MPI_Datatype datatype)
{
	return PMPI_Type_toint(datatype);
}

MPI_WEAK(MPI_Type_f2c);
MPI_Datatype PMPI_Type_f2c(MPI_Fint datatype)
{
	return PMPI_Type_fromint(datatype);
}

MPI_WEAK(MPI_Win_c2f);
MPI_Fint PMPI_Win_c2f(MPI_Win win)
{
	return PMPI_Win_toint(win);
}

MPI_WEAK(MPI_Win_f2c);
MPI_Win PMPI_Win_f2c(MPI_Fint win)
{
	return PMPI_Win_fromint(win);
}

/* ---- statuses in Fortran --------------------------------------------------------------------- */

/* A Fortran library replaces these by the addresses of its own. */
static MPI_Fint ignored[MPI_F_STATUS_SIZE];
MPI_Fint *MPI_F_STATUS_IGNORE = ignored;
MPI_Fint *MPI_F_STATUSES_IGNORE = ignored;
MPI_F08_status *MPI_F08_STATUS_IGNORE = (MPI_F08_status *)ignored;
MPI_F08_status *MPI_F08_STATUSES_IGNORE = (MPI_F08_status *)ignored;

/* Copy a status. One to be ignored is an error, as it has nothing to convert (MPI-4 §19.3.5). */
static int copy_converted(const char *function, const void *from, void *to)
{
	if (!from || !to || from == MPI_F_STATUS_IGNORE || from == MPI_F_STATUSES_IGNORE ||
	    from == MPI_F08_STATUS_IGNORE || from == MPI_F08_STATUSES_IGNORE) {
		mpi_enter_any_time();
		return mpi_raise_any_time(
			function,
			mpi_fail(MPI_ERR_ARG, "a status to be ignored, or a null pointer"));
	}
	memcpy(to, from, sizeof(MPI_Status));
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_Status_c2f);
int PMPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
	return copy_converted("MPI_Status_c2f", c_status, f_status);
}

MPI_WEAK(MPI_Status_f2c);
int PMPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
	return copy_converted("MPI_Status_f2c", f_status, c_status);
}

MPI_WEAK(MPI_Status_c2f08);
int PMPI_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status)
{
	return copy_converted("MPI_Status_c2f08", c_status, f08_status);
}

MPI_WEAK(MPI_Status_f082c);
int PMPI_Status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status)
{
	return copy_converted("MPI_Status_f082c", f08_status, c_status);
}

MPI_WEAK(MPI_Status_f2f08);
int PMPI_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status)
{
	return copy_converted("MPI_Status_f2f08", f_status, f08_status);
}

MPI_WEAK(MPI_Status_f082f);
int PMPI_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status)
{
	return copy_converted("MPI_Status_f082f", f08_status, f_status);
}
