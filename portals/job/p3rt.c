/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The calls of p3rt/p3rt.h: rank, size and ids of the job as one interface sees them. The Set
 * calls are for clients with a launcher of their own. In a job of a supported launcher nothing
 * has to be set.
 */
#include <p3rt/p3rt.h>

#include "portals/engine/ni.h"
#include "portals/job/job.h"
#include "portals/job/job_group.h"

/* ptl_job_enter for a Get call, which needs an interface. */
static int enter_get(ptl_handle_ni_t ni, const struct ptl_group **group)
{
	const ptl_process_id_t *own;
	struct ptl_group *found;
	int err;

	if (ni == PTL_INVALID_HANDLE)
		return ptl_is_init() ? PTL_NI_INVALID : PTL_NO_INIT;
	err = ptl_job_enter(ni, &found, &own);
	*group = found;
	return err;
}

int PtlSetRank(ptl_handle_ni_t ni_handle, unsigned int rank, unsigned int group_size)
{
	const ptl_process_id_t *own;
	struct ptl_group *group;
	int err = ptl_job_enter(ni_handle, &group, &own);

	if (err)
		return err;
	if (rank == (unsigned int)-1 && group_size == (unsigned int)-1)
		err = ptl_job_set_rank_by_env(group, own);
	else
		err = ptl_group_set_rank(group, rank, group_size);
	ptl_job_leave();
	return err;
}

/* A map set before any interface and without PtlSetRank belongs to the job's own group. Locked. */
static int need_rank(struct ptl_group *group)
{
	unsigned int rank, size;

	if (group->size)
		return PTL_OK;
	ptl_job_own_rank(&rank, &size);
	if (size == 1)
		return PTL_NO_INIT;
	return ptl_group_take(group, rank, size, NULL);
}

int PtlSetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, unsigned int group_size)
{
	const ptl_process_id_t *own;
	struct ptl_group *group;
	int err = ptl_job_enter(ni_handle, &group, &own);

	if (err)
		return err;
	err = map ? need_rank(group) : PTL_SEGV;
	if (!err)
		err = ptl_group_set_nids(group, map, group_size, own);
	ptl_job_leave();
	return err;
}

int PtlSetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, unsigned int group_size)
{
	const ptl_process_id_t *own;
	struct ptl_group *group;
	int err = ptl_job_enter(ni_handle, &group, &own);

	if (err)
		return err;
	err = map ? need_rank(group) : PTL_SEGV;
	if (!err)
		err = ptl_group_set_pids(group, map, group_size, own);
	ptl_job_leave();
	return err;
}

int PtlSetJID(ptl_jid_t jid)
{
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ptl_job_set_jid(jid);
	return PTL_OK;
}

int PtlGetRank(ptl_handle_ni_t ni_handle, unsigned int *rank, unsigned int *group_size)
{
	const struct ptl_group *group;
	int err = enter_get(ni_handle, &group);

	if (err)
		return err;
	if (rank && group_size) {
		*rank = group->rank;
		*group_size = group->size;
	} else {
		err = PTL_SEGV;
	}
	ptl_job_leave();
	return err;
}

int PtlGetRankId(ptl_handle_ni_t ni_handle, unsigned int rank, ptl_process_id_t *id)
{
	const struct ptl_group *group;
	int err = enter_get(ni_handle, &group);

	if (err)
		return err;
	if (!id)
		err = PTL_SEGV;
	else if (!group->nids_known || !group->pids_known)
		err = PTL_NO_INIT;
	else if (rank >= group->size)
		err = PTL_FAIL;
	else
		*id = group->ids[rank];
	ptl_job_leave();
	return err;
}

int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, unsigned int group_size)
{
	const struct ptl_group *group;
	int err = enter_get(ni_handle, &group);

	if (err)
		return err;
	if (!map)
		err = PTL_SEGV;
	else if (!group->nids_known)
		err = PTL_NO_INIT;
	else if (group_size != group->size)
		err = PTL_FAIL;
	for (unsigned int i = 0; i < group_size && !err; i++)
		map[i] = group->ids[i].nid;
	ptl_job_leave();
	return err;
}

int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, unsigned int group_size)
{
	const struct ptl_group *group;
	int err = enter_get(ni_handle, &group);

	if (err)
		return err;
	if (!map)
		err = PTL_SEGV;
	else if (!group->pids_known)
		err = PTL_NO_INIT;
	else if (group_size != group->size)
		err = PTL_FAIL;
	for (unsigned int i = 0; i < group_size && !err; i++)
		map[i] = group->ids[i].pid;
	ptl_job_leave();
	return err;
}
