/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A process group as one interface sees it: this process's rank, the size, and the ids of all
 * ranks. The client's Set calls or the job fill it. A map that the client set cannot be set
 * again.
 */
#ifndef PTL_JOB_GROUP_H
#define PTL_JOB_GROUP_H

#include <stdbool.h>

#include <portals3.h>

enum { PTL_GROUP_MAX = 1 << 20 }; /* most ranks */

struct ptl_group {
	bool rank_set, nids_set, pids_set; /* by the client */
	bool nids_known, pids_known;       /* by the client or the job */
	unsigned int rank, size;           /* size 0: nothing known */
	ptl_process_id_t *ids;             /* size entries, NULL while neither map is known */
};

void ptl_group_fini(struct ptl_group *group); /* leaves an empty group */

/* Fill the group from the job, replacing everything there. ids NULL: not known. PTL_OK or
 * PTL_NO_SPACE. */
int ptl_group_take(struct ptl_group *group, unsigned int rank, unsigned int size,
		   const ptl_process_id_t *ids);

/* From the client. PTL_OK, or PTL_FAIL: not a rank of a group, or maps are set for another
 * group. */
int ptl_group_set_rank(struct ptl_group *group, unsigned int rank, unsigned int size);

/*
 * From the client, for a group whose rank is known. own: the interface's id, NULL: none yet.
 * PTL_OK, PTL_NO_SPACE, PTL_FAIL (wrong size; nid map already set, or contradicts own) or
 * PTL_PID_INVALID (pid map already set, or contradicts own).
 */
int ptl_group_set_nids(struct ptl_group *group, const ptl_nid_t *map, unsigned int size,
		       const ptl_process_id_t *own);
int ptl_group_set_pids(struct ptl_group *group, const ptl_pid_t *map, unsigned int size,
		       const ptl_process_id_t *own);

/* Does the group's own entry, as far as it is known, fit `own`? PTL_OK, PTL_FAIL or
 * PTL_PID_INVALID. */
int ptl_group_check(const struct ptl_group *group, ptl_process_id_t own);

#endif
