/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The addresses that stand for MPI_BOTTOM, MPI_IN_PLACE and so on, and the properties of the
 * Fortran compiler that the C library is told (MPI-5 §20).
 */
#include "mpifort.h"

#include <stdio.h>
#include <string.h>

/* Programs have them as COMMON blocks, which a linker places anywhere: so use the largest
 * alignment they may have. */
struct mpifort_numbers mpifort_numbers_ __attribute__((aligned(64)));
struct mpifort_strings mpifort_strings_ __attribute__((aligned(64)));

void *mpifort_sentinel(void *address)
{
	if (address == mpifort_numbers_.bottom)
		return MPI_BOTTOM;
	if (address == mpifort_numbers_.in_place)
		return MPI_IN_PLACE;
	if (address == mpifort_numbers_.buffer_automatic)
		return MPI_BUFFER_AUTOMATIC;
	if (address == mpifort_numbers_.unweighted)
		return MPI_UNWEIGHTED;
	if (address == mpifort_numbers_.weights_empty)
		return MPI_WEIGHTS_EMPTY;
	return NULL; /* ignored */
}

void mpifort_give_address(void *address, void *to)
{
	if (address == MPI_BUFFER_AUTOMATIC)
		address = mpifort_numbers_.buffer_automatic;
	memcpy(to, &address, sizeof(address));
}

/* ---- the compiler ---------------------------------------------------------------------------- */

/* C programs look here for Fortran's MPI_STATUS_IGNORE; not in libmpi_abi. */
extern int *MPI_F_STATUS_IGNORE __attribute__((weak));
extern int *MPI_F_STATUSES_IGNORE __attribute__((weak));
extern int *MPI_F08_STATUS_IGNORE __attribute__((weak));
extern int *MPI_F08_STATUSES_IGNORE __attribute__((weak));

/* properties.f90: bytes of LOGICAL, INTEGER, REAL and DOUBLE PRECISION; then, for each size, the
 * bytes of .TRUE. and .FALSE. */
void mpifort_properties(int sizes[4]);
void mpifort_booleans(int size, void *yes, void *no);

static void set(MPI_Info info, const char *key, const char *value)
{
	PMPI_Info_set(info, key, value);
}

/* gfortran on a 64-bit machine. It also has a real kind of 10 bytes, which MPI has no name for. */
static const char *const supported[] = {
	"mpi_logical1_supported",  "mpi_logical2_supported",       "mpi_logical4_supported",
	"mpi_logical8_supported",  "mpi_logical16_supported",      "mpi_integer1_supported",
	"mpi_integer2_supported",  "mpi_integer4_supported",       "mpi_integer8_supported",
	"mpi_integer16_supported", "mpi_real4_supported",          "mpi_real8_supported",
	"mpi_real16_supported",    "mpi_complex8_supported",       "mpi_complex16_supported",
	"mpi_complex32_supported", "mpi_double_complex_supported",
};
static const char *const not_supported[] = { "mpi_real2_supported", "mpi_complex4_supported" };

static void set_info(void)
{
	static const char *const keys[4] = { "mpi_logical_size", "mpi_integer_size",
					     "mpi_real_size", "mpi_double_precision_size" };
	MPI_Info info;
	int sizes[4];
	char text[16];

	if (PMPI_Info_create(&info) != MPI_SUCCESS)
		return;
	mpifort_properties(sizes);
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "%d", sizes[i]);
		set(info, keys[i], text);
	}
	for (size_t i = 0; i < sizeof(supported) / sizeof(supported[0]); i++)
		set(info, supported[i], "true");
	for (size_t i = 0; i < sizeof(not_supported) / sizeof(not_supported[0]); i++)
		set(info, not_supported[i], "false");
	PMPI_Abi_set_fortran_info(info);
	PMPI_Info_free(&info);
}

/*
 * Runs when the library is loaded, so that programs whose main part is in C have it, too. All
 * these functions may be called before MPI_Init. Only the first setting counts; a second one is
 * an error.
 */
__attribute__((constructor)) static void describe(void)
{
	MPI_Info info = MPI_INFO_NULL;
	unsigned char yes[16], no[16];
	int is_set;

	if (&MPI_F_STATUS_IGNORE)
		MPI_F_STATUS_IGNORE = mpifort_numbers_.status_ignore;
	if (&MPI_F_STATUSES_IGNORE)
		MPI_F_STATUSES_IGNORE = mpifort_numbers_.statuses_ignore;
	if (&MPI_F08_STATUS_IGNORE)
		MPI_F08_STATUS_IGNORE = mpifort_numbers_.status_ignore;
	if (&MPI_F08_STATUSES_IGNORE)
		MPI_F08_STATUSES_IGNORE = mpifort_numbers_.statuses_ignore;
	if (PMPI_Abi_get_fortran_info(&info) != MPI_SUCCESS)
		return;
	if (info == MPI_INFO_NULL)
		set_info();
	else
		PMPI_Info_free(&info);
	for (int size = 1; size <= 16; size *= 2) {
		is_set = 1;
		PMPI_Abi_get_fortran_booleans(size, yes, no, &is_set);
		if (is_set)
			continue;
		mpifort_booleans(size, yes, no);
		PMPI_Abi_set_fortran_booleans(size, yes, no);
	}
}
