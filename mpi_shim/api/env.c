/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The environment of MPI: versions, time, names, memory and addresses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "mpi_shim/api/entry.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/hardware.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/api/weak.h"

#define ALIGNMENT_MOST (1ul << 30)

/* ---- versions -------------------------------------------------------------------------------- */

static const char library_version[] = "Postern " POSTERN_VERSION ", MPI on Portals 3.3";

static int raise_null_result(const char *function)
{
	mpi_enter_any_time();
	return mpi_raise_any_time(function, mpi_bad_null("a result"));
}

MPI_WEAK(MPI_Get_version);
int PMPI_Get_version(int *version, int *subversion)
{
	if (!version || !subversion)
		return raise_null_result("MPI_Get_version");
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_Get_library_version);
int PMPI_Get_library_version(char *version, int *resultlen)
{
	if (!version || !resultlen)
		return raise_null_result("MPI_Get_library_version");
	memcpy(version, library_version, sizeof(library_version));
	*resultlen = (int)sizeof(library_version) - 1;
	return MPI_SUCCESS;
}

/* ---- time: the monotonic clock; not the same everywhere (MPI_WTIME_IS_GLOBAL) ---------------- */

static double seconds(const struct timespec *t)
{
	return (double)t->tv_sec + (double)t->tv_nsec * 1e-9;
}

MPI_WEAK(MPI_Wtime);
double PMPI_Wtime(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return seconds(&t);
}

MPI_WEAK(MPI_Wtick);
double PMPI_Wtick(void)
{
	struct timespec t;

	clock_getres(CLOCK_MONOTONIC, &t);
	return seconds(&t);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* In unsigned arithmetic: addresses may be far apart. */
MPI_WEAK(MPI_Aint_add);
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp)
{
	return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

MPI_WEAK(MPI_Aint_diff);
MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
	return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}

int mpi_get_address(const void *location, MPI_Aint *address)
{
	*address = (MPI_Aint)location;
	return MPI_SUCCESS;
}

/* ---- names and places ------------------------------------------------------------------------ */

int mpi_get_processor_name(char *name, int *resultlen)
{
	struct utsname host;

	if (uname(&host) != 0)
		return mpi_fail(MPI_ERR_OTHER, "the host name cannot be read: %m");
	snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", host.nodename);
	*resultlen = (int)strlen(name);
	return MPI_SUCCESS;
}

/* Keys are types of hardware. Values say whether this process is restricted to one of that type. */
int mpi_get_hw_resource_info(struct mpi_info **hw_info)
{
	struct mpi_info *info = NULL;
	int rc = mpi_info_create(&info);

	for (int type = 0; rc == MPI_SUCCESS && type < MPI_HARDWARE_TYPES; type++)
		if (mpi_hardware_name(type))
			rc = mpi_info_set(info, mpi_hardware_name(type),
					  mpi_hardware_index(type) >= 0 ? "true" : "false");
	if (rc == MPI_SUCCESS)
		*hw_info = info;
	else if (info)
		mpi_info_free(&info);
	return rc;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The alignment that a program asks for: a power of two. 0: none, or an invalid one. */
static size_t wanted_alignment(const struct mpi_info *info)
{
	const char *text = mpi_info_value(info, "mpi_minimum_memory_alignment");
	char *end;
	unsigned long n = text ? strtoul(text, &end, 10) : 0;

	return text && *text && !*end && n <= ALIGNMENT_MOST && !(n & (n - 1)) ? n : 0;
}

/* Align to cache lines, and to pages from one page on: the kernel moves whole pages with less
 * work. */
int mpi_alloc_mem(MPI_Aint size, struct mpi_info *info, void *baseptr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = wanted_alignment(info);
	size_t align = (size_t)size < page ? 64 : page;
	void *p;

	if (wanted > align)
		align = wanted;
	if (posix_memalign(&p, align, size ? (size_t)size : 1) != 0)
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for %lld bytes", (long long)size);
	*(void **)baseptr = p;
	return MPI_SUCCESS;
}

int mpi_free_mem(void *base)
{
	free(base);
	return MPI_SUCCESS;
}
