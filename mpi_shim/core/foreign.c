/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Other MPIs in this process. All have the same function names, and each has its own handles
 * and statuses. A program compiled with one's mpi.h that calls another's library crashes
 * without a message. So at load time this file checks whether there is a second library, as
 * that one may be called. A handle that is not ours may be known as one of theirs.
 */
#include "mpi_shim/core/foreign.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"

/* ---- two libraries --------------------------------------------------------------------------- */

static bool same_folder(const char *a, const char *b)
{
	const char *end = strrchr(a, '/');
	size_t len = end ? (size_t)(end - a) + 1 : 0;

	return strncmp(a, b, len) == 0 && !strchr(b + len, '/');
}

/* Both libraries of one build are the same code and take each other's handles. */
static bool is_twin(const char *library, const char *ours)
{
	const char *slash = strrchr(library, '/');
	const char *name = slash ? slash + 1 : library;
	char real[2][PATH_MAX];

	/* They may have been found through different links. */
	return (same_folder(library, ours) ||
		(realpath(library, real[0]) && realpath(ours, real[1]) &&
		 same_folder(real[0], real[1]))) &&
	       (strcmp(name, "libpostern-mpi.so.1") == 0 || strcmp(name, "libmpi_abi.so.1") == 0);
}

/* Whether the function belongs to another MPI. If so, fills in `other`. */
static bool is_foreign(void *function, const Dl_info *ours, Dl_info *other)
{
	return function && dladdr(function, other) != 0 && other->dli_fbase != ours->dli_fbase &&
	       !is_twin(other->dli_fname, ours->dli_fname);
}

/* Checks PMPI_ functions, since profiling libraries define functions MPI_ too, but not PMPI_. */
__attribute__((constructor)) static void check_for_another_mpi(void)
{
	Dl_info ours, other;
	const char *first = NULL, *second = NULL;
	void *program;

	if (!dladdr((void *)&mpi_foreign_handle, &ours))
		return;
	program = dlopen(NULL, RTLD_LAZY);
	if (!program)
		return;
	/*
	 * The calls of the program can reach only a library that was loaded with it, and then
	 * Portals was loaded with it too. A library that is opened later, by a translator, is
	 * called by address.
	 */
	if (dlsym(program, "PtlInit") && is_foreign(dlsym(program, "PMPI_Init"), &ours, &other)) {
		first = other.dli_fname;
		second = ours.dli_fname;
	} else if (is_foreign(dlsym(RTLD_NEXT, "PMPI_Init"), &ours, &other)) {
		first = ours.dli_fname;
		second = other.dli_fname;
	}
	dlclose(program);
	dlerror(); /* The program must not see this error as its own. */
	if (first && !base_config()->ptl_quiet)
		base_say("there are two MPI libraries in this process, %s and %s: calls go to the "
			 "first, and what was compiled with the mpi.h of the second fails; build "
			 "the program and its libraries with one MPI (ldd shows what needs which)",
			 first, second);
}

/* ---- handles --------------------------------------------------------------------------------- */

/* Handles of MPICH and its many descendants are ints. Two bits say how the object is found
 * (none: the null handle), and four bits say its kind. */
static bool is_mpich(enum mpi_kind kind, uintptr_t handle)
{
	static const unsigned int number[MPI_KIND_END] = {
		[MPI_KIND_COMM] = 1,       [MPI_KIND_GROUP] = 2,    [MPI_KIND_TYPE] = 3,
		[MPI_KIND_ERRHANDLER] = 5, [MPI_KIND_OP] = 6,       [MPI_KIND_INFO] = 7,
		[MPI_KIND_WIN] = 8,        [MPI_KIND_REQUEST] = 11, [MPI_KIND_MESSAGE] = 11,
	};
	uint32_t h = (uint32_t)handle; /* the other bits were next to the int */

	return number[kind] && (h >> 26 & 15) == number[kind] && !(h & 0x3ff0000) &&
	       (h >> 30 || !(h & 0x3ffffff));
}

/* Handles of Open MPI are addresses of objects. For objects in its library the name can be
 * found. */
static bool is_open_mpi(const void *handle)
{
	Dl_info object;

	return dladdr(handle, &object) != 0 && object.dli_sname &&
	       strncmp(object.dli_sname, "ompi_", 5) == 0;
}

const char *mpi_foreign_handle(enum mpi_kind kind, const void *handle)
{
	if (is_mpich(kind, (uintptr_t)handle))
		return "MPICH";
	return is_open_mpi(handle) ? "Open MPI" : NULL;
}
