/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The allocation that salloc or sbatch has made, as its variables tell.
 */
#ifndef MPIEXEC_SLURM_H
#define MPIEXEC_SLURM_H

/* nodes: 0: there is no allocation. */
struct allocation {
	int nodes, tasks;
};

/* Returns 0, or -EINVAL with the name and the value of a variable that makes no sense. */
int slurm_allocation(struct allocation *got, const char **name, const char **value);

/* The sum of "2(x3),1", which is 7; -EINVAL if the text has another form, or a sum above 2^30. */
int slurm_sum(const char *text);

#endif
