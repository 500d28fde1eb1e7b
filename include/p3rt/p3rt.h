/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The run-time calls of the reference implementation: rank, size and ids of a parallel job. In
 * a job started by a supported launcher they answer at once; the client need not set anything.
 */
#ifndef P3RT_P3RT_H
#define P3RT_P3RT_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t ptl_rid_t;

int PtlSetRank(ptl_handle_ni_t ni_handle, unsigned int rank, unsigned int group_size);
int PtlSetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, unsigned int group_size);
int PtlSetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, unsigned int group_size);
int PtlSetJID(ptl_jid_t jid);
int PtlGetRank(ptl_handle_ni_t ni_handle, unsigned int *rank, unsigned int *group_size);
int PtlGetRankId(ptl_handle_ni_t ni_handle, unsigned int rank, ptl_process_id_t *id);
int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, unsigned int group_size);
int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, unsigned int group_size);

#ifdef __cplusplus
}
#endif

#endif
