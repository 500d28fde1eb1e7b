/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The rules of the Set calls on one process group. No state of its own, no locks.
 */
#include <stdlib.h>
#include <string.h>

#include "portals/job/job_group.h"

void ptl_group_fini(struct ptl_group *group)
{
	free(group->ids);
	*group = (struct ptl_group){ .size = 0 };
}

int ptl_group_take(struct ptl_group *group, unsigned int rank, unsigned int size,
		   const ptl_process_id_t *ids)
{
	struct ptl_group made = { .rank = rank, .size = size };

	if (ids) {
		made.ids = malloc(size * sizeof(*ids));
		if (!made.ids)
			return PTL_NO_SPACE;
		memcpy(made.ids, ids, size * sizeof(*ids));
		made.nids_known = made.pids_known = true;
	}
	made.rank_set = group->rank_set;
	ptl_group_fini(group);
	*group = made;
	return PTL_OK;
}

int ptl_group_set_rank(struct ptl_group *group, unsigned int rank, unsigned int size)
{
	if (rank >= size || size > PTL_GROUP_MAX)
		return PTL_FAIL;
	if (group->rank != rank || group->size != size) {
		if (group->nids_set || group->pids_set)
			return PTL_FAIL;
		/* the job's data belong to another group */
		ptl_group_fini(group);
		group->rank = rank;
		group->size = size;
	}
	group->rank_set = true;
	return PTL_OK;
}

static int need_ids(struct ptl_group *group)
{
	if (!group->ids)
		group->ids = calloc(group->size, sizeof(*group->ids));
	return group->ids ? PTL_OK : PTL_NO_SPACE;
}

int ptl_group_set_nids(struct ptl_group *group, const ptl_nid_t *map, unsigned int size,
		       const ptl_process_id_t *own)
{
	if (size != group->size || group->nids_set || (own && map[group->rank] != own->nid))
		return PTL_FAIL;
	if (need_ids(group))
		return PTL_NO_SPACE;
	for (unsigned int i = 0; i < size; i++)
		group->ids[i].nid = map[i];
	group->nids_set = group->nids_known = true;
	return PTL_OK;
}

int ptl_group_set_pids(struct ptl_group *group, const ptl_pid_t *map, unsigned int size,
		       const ptl_process_id_t *own)
{
	if (size != group->size)
		return PTL_FAIL;
	if (group->pids_set || (own && map[group->rank] != own->pid))
		return PTL_PID_INVALID;
	if (need_ids(group))
		return PTL_NO_SPACE;
	for (unsigned int i = 0; i < size; i++)
		group->ids[i].pid = map[i];
	group->pids_set = group->pids_known = true;
	return PTL_OK;
}

int ptl_group_check(const struct ptl_group *group, ptl_process_id_t own)
{
	if (group->nids_known && group->ids[group->rank].nid != own.nid)
		return PTL_FAIL;
	if (group->pids_known && group->ids[group->rank].pid != own.pid)
		return PTL_PID_INVALID;
	return PTL_OK;
}
