/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Old and new names of variables mean the same.
 */
#include <errno.h>
#include <stddef.h>

#include "base/config.h"
#include "tools/mpiexec/slurm.h"

/* Take a number from 1 to a million off *text; 0: there is none. */
static long take_count(const char **text)
{
	long n = 0;

	while (**text >= '0' && **text <= '9' && n <= 1000000)
		n = n * 10 + *(*text)++ - '0';
	return n <= 1000000 ? n : 0;
}

int slurm_sum(const char *text)
{
	const long most = 1 << 30;
	long sum = 0;

	for (;;) {
		long n = take_count(&text);
		long times = 1;

		if (text[0] == '(' && text[1] == 'x') {
			text += 2;
			times = take_count(&text);
			if (*text++ != ')')
				return -EINVAL;
		}
		sum += n * times;
		if (!n || !times || n * times > most || sum > most || (*text && *text != ','))
			return -EINVAL;
		if (!*text++)
			return (int)sum;
	}
}

/* The first of two variables that is set, as a sum. Returns 0 if neither is. */
static int read_either(const char *one, const char *other, const char **name, const char **value)
{
	*name = base_config_env(one) ? one : other;
	*value = base_config_env(*name);
	return *value ? slurm_sum(*value) : 0;
}

int slurm_allocation(struct allocation *got, const char **name, const char **value)
{
	*got = (struct allocation){ .nodes = 0 };
	if (!base_config_env("SLURM_JOB_ID"))
		return 0;
	got->nodes = read_either("SLURM_JOB_NUM_NODES", "SLURM_NNODES", name, value);
	if (got->nodes < 0)
		return got->nodes;
	if (!got->nodes)
		got->nodes = 1;
	got->tasks = read_either("SLURM_NTASKS", "SLURM_NPROCS", name, value);
	if (!got->tasks)
		got->tasks =
			read_either("SLURM_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", name, value);
	if (got->tasks < 0)
		return got->tasks;
	if (!got->tasks)
		got->tasks = got->nodes;
	return 0;
}
