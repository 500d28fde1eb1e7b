/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The C half of mixed.f90.
 */
#include <mpi.h>
#include <stdlib.h>

static int sends;

int c_keyval(void)
{
	int keyval;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
	return keyval;
}

int c_set_attribute(int comm, int keyval, int v)
{
	return MPI_Comm_set_attr(MPI_Comm_f2c(comm), keyval, (void *)(MPI_Aint)v);
}

/* The target of the attribute. */
MPI_Aint c_attribute(int comm, int keyval, int wide)
{
	void *found = NULL;
	int flag = 0;

	MPI_Comm_get_attr(MPI_Comm_f2c(comm), keyval, &found, &flag);
	if (!flag)
		return -1;
	return wide ? *(MPI_Aint *)found : *(int *)found;
}

int c_status(const MPI_Fint *status, int tag)
{
	MPI_Status s;
	int count;

	MPI_Status_f2c(status, &s);
	MPI_Get_count(&s, MPI_INT, &count);
	return s.MPI_TAG == tag && s.MPI_SOURCE == 0 && count == 1;
}

int c_is_ignored(const MPI_Fint *status)
{
	return status == MPI_F_STATUS_IGNORE;
}

/* Takes the place of the library's, for C and for Fortran. */
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	sends++;
	return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int c_sends(void)
{
	return sends;
}

static int number(MPI_Info info, const char *key)
{
	char text[16] = "";
	int size = sizeof(text), flag = 0;

	MPI_Info_get_string(info, key, &size, text, &flag);
	return flag ? atoi(text) : -1;
}

void c_properties(int sizes[4], int *yes, int *no)
{
	int is_set = 0;
	MPI_Info info;

	MPI_Abi_get_fortran_info(&info);
	sizes[0] = number(info, "mpi_logical_size");
	sizes[1] = number(info, "mpi_integer_size");
	sizes[2] = number(info, "mpi_real_size");
	sizes[3] = number(info, "mpi_double_precision_size");
	MPI_Info_free(&info);
	*yes = *no = -99;
	MPI_Abi_get_fortran_booleans(4, yes, no, &is_set);
}
