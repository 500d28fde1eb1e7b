/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Cores from the affinity mask that mpiexec itself was given. sysfs says which hardware threads
 * share a core. Where it cannot be read, each hardware thread counts as a core.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/mpiexec/affinity.h"

static int n_cpus;         /* the capacity of the sets below */
static cpu_set_t *allowed; /* our own mask */
static int *core_of;       /* by cpu: the lowest allowed cpu of its core, -1 if not allowed */
static int n_cores;

static size_t cpu_set_size(void)
{
	return CPU_ALLOC_SIZE((size_t)n_cpus);
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

/* The lowest allowed cpu among those that share cpu's core. The list is like "0,4" or "0-3". */
static int lowest_sibling(int cpu)
{
	char path[96];
	int first, last;
	int lowest = cpu;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 cpu);
	file = fopen(path, "re");
	if (!file)
		return cpu;
	while (fscanf(file, "%d", &first) == 1) {
		int c = fgetc(file);

		last = first;
		if (c == '-' && fscanf(file, "%d", &last) == 1)
			c = fgetc(file);
		for (int i = first; i <= last && i < lowest; i++)
			if (i >= 0 && CPU_ISSET_S((size_t)i, cpu_set_size(), allowed))
				lowest = i;
		if (c != ',')
			break;
	}
	fclose(file);
	return lowest;
}

int affinity_init(void)
{
	int err = read_mask();

	if (err)
		return err;
	/* set the mask we have, to see whether that is allowed at all: a container's profile
	 * may forbid it */
	if (sched_setaffinity(0, cpu_set_size(), allowed))
		return -errno;
	core_of = malloc((size_t)n_cpus * sizeof(*core_of));
	if (!core_of)
		return -ENOMEM;
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		core_of[cpu] = -1;
		if (!CPU_ISSET_S((size_t)cpu, cpu_set_size(), allowed))
			continue;
		core_of[cpu] = lowest_sibling(cpu);
		n_cores += core_of[cpu] == cpu;
	}
	return n_cores;
}

static void add_core(cpu_set_t *set, int index)
{
	int core = 0;

	while (core_of[core] != core || index--)
		core++;
	for (int cpu = core; cpu < n_cpus; cpu++)
		if (core_of[cpu] == core)
			CPU_SET_S((size_t)cpu, cpu_set_size(), set);
}

int affinity_bind(int first, int count)
{
	cpu_set_t *set = CPU_ALLOC((size_t)n_cpus);
	int err = 0;

	if (!set)
		return -ENOMEM;
	CPU_ZERO_S(cpu_set_size(), set);
	for (int i = 0; i < count; i++)
		add_core(set, (first + i) % n_cores);
	if (sched_setaffinity(0, cpu_set_size(), set))
		err = -errno;
	CPU_FREE(set);
	return err;
}
