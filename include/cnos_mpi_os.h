/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The job calls of Cray XT compute nodes: rank, size, everybody's ids, and a barrier.
 */
#ifndef CNOS_MPI_OS_H
#define CNOS_MPI_OS_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
	ptl_nid_t nid;
	ptl_pid_t pid;
	int port;
} cnos_nidpid_map_t;

#define CNOS_LAUNCHER_UNKNOWN 0
#define CNOS_LAUNCHER_YOD     1
#define CNOS_LAUNCHER_APRUN   2

int cnos_get_rank(void);
int cnos_get_size(void);
/* Stores the address of the job's id table (owned by the library); returns its number of
 * entries, or -1. */
int cnos_get_nidpid_map(cnos_nidpid_map_t **map);
int cnos_register_ptlid(ptl_process_id_t id);
void cnos_barrier_init(ptl_handle_ni_t ni_handle);
int cnos_barrier(void);
void cnos_pm_barrier(int is_last);
int cnos_launcher(void);

#ifdef __cplusplus
}
#endif

#endif
