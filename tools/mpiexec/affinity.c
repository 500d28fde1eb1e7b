/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processors from the affinity mask that mpiexec itself was given; sysfs says which of them share a
 * core, a cache, a NUMA node or a socket. Where it cannot be read each processor counts as a core,
 * and all together as one of the larger units.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mpiexec/affinity.h"

/* By cpu: the lowest allowed cpu of its unit, -1 if not allowed. */
struct units {
	int *of;
	int n;
};

static int n_cpus;         /* the capacity of the sets below */
static cpu_set_t *allowed; /* our own mask */
static cpu_set_t *chosen;
static struct units bind_units, map_units;

static size_t cpu_set_size(void)
{
	return CPU_ALLOC_SIZE((size_t)n_cpus);
}

static bool is_allowed(int cpu)
{
	return cpu >= 0 && cpu < n_cpus && CPU_ISSET_S((size_t)cpu, cpu_set_size(), allowed);
}

static int read_mask(void)
{
	/* the kernel's mask may be longer than a cpu_set_t; EINVAL says that ours is too short */
	for (n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 2) {
		allowed = CPU_ALLOC((size_t)n_cpus);
		if (!allowed)
			return -ENOMEM;
		if (!sched_getaffinity(0, cpu_set_size(), allowed))
			return 0;
		CPU_FREE(allowed);
		if (errno != EINVAL)
			return -errno;
	}
	return -EINVAL;
}

/* ---- units ----------------------------------------------------------------------------------- */

/* The lowest allowed cpu of a list like "0,4" or "0-3", or -1. */
static int lowest_in_list(const char *path)
{
	int first, last;
	int lowest = -1;
	FILE *file = fopen(path, "re");

	if (!file)
		return -1;
	while (lowest < 0 && fscanf(file, "%d", &first) == 1) {
		int c = fgetc(file);

		last = first;
		if (c == '-' && fscanf(file, "%d", &last) == 1)
			c = fgetc(file);
		for (int i = first; i <= last && i < n_cpus && lowest < 0; i++)
			if (is_allowed(i))
				lowest = i;
		if (c != ',')
			break;
	}
	fclose(file);
	return lowest;
}

/* The directory of a cpu's data cache of this level, below that of the cpu. False: it has none. */
static bool find_cache(int cpu, int wanted, char *name, size_t size)
{
	for (int i = 0; i < 10; i++) {
		char path[128], type[16] = "";
		int level = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/level",
			 cpu, i);
		file = fopen(path, "re");
		if (!file)
			return false;
		if (fscanf(file, "%d", &level) != 1)
			level = 0;
		fclose(file);
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/type",
			 cpu, i);
		file = fopen(path, "re");
		if (file && fscanf(file, "%15s", type) != 1)
			*type = '\0';
		if (file)
			fclose(file);
		snprintf(name, size, "cache/index%d/shared_cpu_list", i);
		if (level == wanted && strcmp(type, "Instruction"))
			return true;
	}
	return false;
}

/* The NUMA node of a cpu is a link in its directory. */
static bool find_numa(int cpu, char *name, size_t size)
{
	char path[64];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;
	int node;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		found = sscanf(entry->d_name, "node%d", &node) == 1;
		if (found)
			snprintf(name, size, "node%d/cpulist", node);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The lowest allowed cpu of the unit that a cpu is in. */
static int lowest_of_unit(enum unit unit, int cpu)
{
	char path[160];
	char name[64] = "topology/thread_siblings_list";
	bool found = true;
	int lowest = -1;

	if (unit == UNIT_HWTHREAD || unit == UNIT_USER)
		return cpu;
	if (unit == UNIT_L1 || unit == UNIT_L2 || unit == UNIT_L3)
		found = find_cache(cpu, unit - UNIT_L1 + 1, name, sizeof(name));
	else if (unit == UNIT_NUMA)
		found = find_numa(cpu, name, sizeof(name));
	else if (unit == UNIT_SOCKET)
		strcpy(name, "topology/core_siblings_list");
	else if (unit == UNIT_MACHINE || unit == UNIT_NODE)
		found = false;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
	if (found)
		lowest = lowest_in_list(path);
	if (lowest >= 0 && lowest <= cpu)
		return lowest;
	if (unit < UNIT_L1)
		return cpu;
	for (lowest = 0; !is_allowed(lowest); lowest++)
		;
	return lowest;
}

static int find_units(struct units *units, enum unit unit)
{
	units->of = malloc((size_t)n_cpus * sizeof(*units->of));
	if (!units->of)
		return -ENOMEM;
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		units->of[cpu] = is_allowed(cpu) ? lowest_of_unit(unit, cpu) : -1;
		units->n += units->of[cpu] == cpu;
	}
	return 0;
}

/* The lowest cpu of unit number `index`. */
static int unit_cpu(const struct units *units, int index)
{
	int cpu = 0;

	while (units->of[cpu] != cpu || index--)
		cpu++;
	return cpu;
}

int affinity_init(enum unit bind, enum unit map)
{
	int err = read_mask();

	if (err)
		return err;
	/* set the mask we have, to see whether that is allowed at all: a container's profile
	 * may forbid it */
	if (sched_setaffinity(0, cpu_set_size(), allowed))
		return -errno;
	chosen = CPU_ALLOC((size_t)n_cpus);
	err = chosen ? find_units(&bind_units, bind) : -ENOMEM;
	if (!err)
		err = find_units(&map_units, map);
	return err ? err : bind_units.n;
}

int affinity_processors(void)
{
	return CPU_COUNT_S(cpu_set_size(), allowed);
}

/* ---- choices --------------------------------------------------------------------------------- */

static void choose_unit(int lowest)
{
	for (int cpu = lowest; cpu < n_cpus; cpu++)
		if (bind_units.of[cpu] == lowest)
			CPU_SET_S((size_t)cpu, cpu_set_size(), chosen);
}

void affinity_choose(int first, int count)
{
	CPU_ZERO_S(cpu_set_size(), chosen);
	for (int i = 0; i < count && i < bind_units.n; i++)
		choose_unit(unit_cpu(&bind_units, (first + i) % bind_units.n));
}

/* The units to bind to that begin in a unit of the map; that which its first cpu is in, if none
 * does. Returns how many, and the lowest cpu of number `index`. */
static int units_inside(int map_cpu, int index, int *lowest)
{
	int n = 0;

	*lowest = bind_units.of[map_cpu];
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		if (map_units.of[cpu] != map_cpu || bind_units.of[cpu] != cpu)
			continue;
		if (n++ == index)
			*lowest = cpu;
	}
	return n ? n : 1;
}

void affinity_choose_dealt(int rank, int count)
{
	int map_cpu = unit_cpu(&map_units, rank % map_units.n);
	int lowest;
	int inside = units_inside(map_cpu, 0, &lowest);
	int first = (int)((long)(rank / map_units.n) * count % inside);

	CPU_ZERO_S(cpu_set_size(), chosen);
	for (int i = 0; i < count && i < inside; i++) {
		units_inside(map_cpu, (first + i) % inside, &lowest);
		choose_unit(lowest);
	}
}

/* Add the processors of one rank, "0+4" or "0-3", up to the comma. */
static bool choose_range(const char *text)
{
	CPU_ZERO_S(cpu_set_size(), chosen);
	do {
		char *end;
		long first = strtol(text, &end, 10);
		long last = first;

		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long cpu = first; cpu <= last && cpu < n_cpus; cpu++) {
			if (!is_allowed((int)cpu))
				return false;
			CPU_SET_S((size_t)cpu, cpu_set_size(), chosen);
		}
		if (last >= n_cpus || last < first)
			return false;
		text = end;
	} while (*text++ == '+');
	return true;
}

int affinity_choose_listed(const char *list, int rank)
{
	const char *at = list;
	int n = 1;

	for (const char *c = list; *c; c++)
		n += *c == ',';
	for (int skip = rank % n; skip; skip--)
		at = strchr(at, ',') + 1;
	return choose_range(at) ? 0 : -EINVAL;
}

void affinity_text(char *buf, size_t size)
{
	size_t len = 0;

	*buf = '\0';
	for (int cpu = 0; cpu < n_cpus && len + 24 < size; cpu++) {
		int last = cpu;

		if (!CPU_ISSET_S((size_t)cpu, cpu_set_size(), chosen))
			continue;
		while (last + 1 < n_cpus && CPU_ISSET_S((size_t)last + 1, cpu_set_size(), chosen))
			last++;
		len += (size_t)snprintf(buf + len, size - len, last > cpu ? "%s%d-%d" : "%s%d",
					len ? "," : "", cpu, last);
		cpu = last;
	}
}

int affinity_apply(void)
{
	return sched_setaffinity(0, cpu_set_size(), chosen) ? -errno : 0;
}
