/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Hardware resources: see hardware.h.
 */
#include "mpi_shim/core/hardware.h"

#include <assert.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifdef MPI_HAVE_HWLOC
#include <dlfcn.h>
#include <hwloc.h>

/* ---- the library ----------------------------------------------------------------------------- */

#define HWLOC_CALLS(X)                                                                             \
	X(get_api_version)                                                                         \
	X(topology_init)                                                                           \
	X(topology_load)                                                                           \
	X(topology_destroy)                                                                        \
	X(get_type_depth)                                                                          \
	X(get_nbobjs_by_depth)                                                                     \
	X(get_obj_by_depth)                                                                        \
	X(get_cpubind)                                                                             \
	X(bitmap_alloc)                                                                            \
	X(bitmap_free)                                                                             \
	X(bitmap_isincluded)                                                                       \
	X(bitmap_iszero)

#define CALL_MEMBER(name) __typeof__(hwloc_##name) *name;
static struct {
	HWLOC_CALLS(CALL_MEMBER)
} lib;

static hwloc_topology_t topology; /* NULL: not loaded, or it cannot be */
static bool tried;

static bool find_calls(void *handle)
{
#define CALL_SYMBOL(name)                                                                          \
	*(void **)&lib.name = dlsym(handle, "hwloc_" #name);                                       \
	if (!lib.name)                                                                             \
		return false;
	HWLOC_CALLS(CALL_SYMBOL)
	return lib.get_api_version() >> 16 == HWLOC_API_VERSION >> 16;
}

/* Read the machine, once. */
static hwloc_topology_t load_topology(void)
{
	void *handle;

	if (tried)
		return topology;
	tried = true;
	handle = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
	if (!handle || !find_calls(handle) || lib.topology_init(&topology) != 0) {
		topology = NULL;
		return NULL;
	}
	if (lib.topology_load(topology) != 0) {
		lib.topology_destroy(topology);
		topology = NULL;
	}
	return topology;
}

/* ---- resources ------------------------------------------------------------------------------- */

static int objects_at(int depth)
{
	return (int)lib.get_nbobjs_by_depth(topology, depth);
}

static bool has_type(hwloc_obj_type_t type)
{
	int depth;

	if (!load_topology())
		return false;
	depth = lib.get_type_depth(topology, type);
	/* one that stands at several depths has no number that says which */
	return depth != HWLOC_TYPE_DEPTH_UNKNOWN && depth != HWLOC_TYPE_DEPTH_MULTIPLE &&
	       objects_at(depth) > 0;
}

/* The number of the object that holds all processors of `set`; -1: none does, or several. */
static int holder(hwloc_obj_type_t type, hwloc_const_bitmap_t set)
{
	int depth = lib.get_type_depth(topology, type), found = -1;

	for (int i = 0; i < objects_at(depth) && i <= MPI_HARDWARE_INDEX_MOST; i++) {
		hwloc_obj_t o = lib.get_obj_by_depth(topology, depth, (unsigned)i);

		if (!o || !o->cpuset || !lib.bitmap_isincluded(set, o->cpuset))
			continue;
		if (found >= 0) /* memories of different kinds for the same processors */
			return -1;
		found = i;
	}
	return found;
}

static int index_of_type(hwloc_obj_type_t type)
{
	hwloc_bitmap_t set;
	int index = -1;

	if (!has_type(type))
		return -1;
	set = lib.bitmap_alloc();
	if (set && lib.get_cpubind(topology, set, HWLOC_CPUBIND_THREAD) == 0 &&
	    !lib.bitmap_iszero(set))
		index = holder(type, set);
	lib.bitmap_free(set);
	return index;
}

#define HWLOC(type) type
#else
typedef int hwloc_obj_type_t;
#define HWLOC(type) 0

static bool has_type(hwloc_obj_type_t type)
{
	(void)type;
	return false;
}

static int index_of_type(hwloc_obj_type_t type)
{
	(void)type;
	return -1;
}
#endif

/* ---- types ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	bool by_hwloc;
	hwloc_obj_type_t type;
} hardware[] = {
	{ "linux://host", false, HWLOC(HWLOC_OBJ_MACHINE) },
	{ "hwloc://Machine", true, HWLOC(HWLOC_OBJ_MACHINE) },
	{ "hwloc://Package", true, HWLOC(HWLOC_OBJ_PACKAGE) },
	{ "hwloc://Die", true, HWLOC(HWLOC_OBJ_DIE) },
	{ "hwloc://NUMANode", true, HWLOC(HWLOC_OBJ_NUMANODE) },
	{ "hwloc://L3Cache", true, HWLOC(HWLOC_OBJ_L3CACHE) },
	{ "hwloc://L2Cache", true, HWLOC(HWLOC_OBJ_L2CACHE) },
	{ "hwloc://L1Cache", true, HWLOC(HWLOC_OBJ_L1CACHE) },
	{ "hwloc://Core", true, HWLOC(HWLOC_OBJ_CORE) },
	{ "hwloc://PU", true, HWLOC(HWLOC_OBJ_PU) },
	{ "linux://cpu", false, HWLOC(HWLOC_OBJ_PU) },
};
static_assert(sizeof(hardware) / sizeof(hardware[0]) == MPI_HARDWARE_TYPES, "one row each");

const char *mpi_hardware_name(int type)
{
	return !hardware[type].by_hwloc || has_type(hardware[type].type) ? hardware[type].name
									 : NULL;
}

int mpi_hardware_type(const char *name)
{
	int i = 0;

	while (i < MPI_HARDWARE_TYPES && strcmp(hardware[i].name, name) != 0)
		i++;
	return i < MPI_HARDWARE_TYPES && mpi_hardware_name(i) ? i : -1;
}

/* The only processor that this thread may use, or -1. */
static int only_cpu(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) != 1)
		return -1;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			return i;
	return -1;
}

int mpi_hardware_index(int type)
{
	if (type == MPI_HARDWARE_HOST)
		return 0;
	return hardware[type].by_hwloc ? index_of_type(hardware[type].type) : only_cpu();
}
