/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The job calls of Cray XT compute nodes, on top of the job and the public Portals calls. On
 * the XT they work before PtlInit; here too.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <cnos_mpi_os.h>

#include "base/log.h"
#include "portals/job/job.h"
#include "runtime/rt.h"

/* The table that callers get, and its size. Callers keep the pointer, so it is never freed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cnos_nidpid_map_t *table;
static unsigned int table_size;

int cnos_get_rank(void)
{
	unsigned int rank, size;

	return ptl_job_rank(&rank, &size) ? -1 : (int)rank;
}

int cnos_get_size(void)
{
	unsigned int rank, size;

	return ptl_job_rank(&rank, &size) ? -1 : (int)size;
}

/*
 * The ids are known once an interface is open. For a client that asks earlier, open the
 * default interface. The client's own PtlNIInit later finds it as one that the run-time system
 * opened.
 */
static int learn_job_ids(ptl_process_id_t **ids, unsigned int *size, unsigned int *own)
{
	ptl_handle_ni_t ni;
	int err, max;

	err = ptl_job_rank(own, size);
	if (!err)
		err = ptl_job_ids(ids, size, own);
	if (err != -ENOENT)
		return err;
	err = PtlInit(&max);
	if (!err)
		err = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);
	if (err && err != PTL_IFACE_DUP) {
		base_warn(
			"the job's ids are not known before an interface is open, and opening the "
			"default one failed: %s",
			PtlErrorStr((unsigned int)err));
		return -EIO;
	}
	return ptl_job_ids(ids, size, own);
}

/* Copy the ids to the table. Its address stays as long as the size stays. */
static int fill_table(const ptl_process_id_t *ids, unsigned int size)
{
	if (size != table_size) {
		cnos_nidpid_map_t *made = calloc(size, sizeof(*made));

		if (!made)
			return -ENOMEM;
		table = made;
		table_size = size;
	}
	for (unsigned int i = 0; i < size; i++)
		table[i] = (cnos_nidpid_map_t){ .nid = ids[i].nid, .pid = ids[i].pid };
	return 0;
}

int cnos_get_nidpid_map(cnos_nidpid_map_t **map)
{
	ptl_process_id_t *ids;
	unsigned int size, own;
	int err;

	if (!map || learn_job_ids(&ids, &size, &own))
		return -1;
	pthread_mutex_lock(&lock);
	err = fill_table(ids, size);
	if (!err)
		*map = table;
	pthread_mutex_unlock(&lock);
	free(ids);
	return err ? -1 : (int)size;
}

int cnos_register_ptlid(ptl_process_id_t id)
{
	ptl_process_id_t *ids;
	unsigned int size, own;
	bool known;

	if (ptl_job_ids(&ids, &size, &own)) {
		base_warn("cnos_register_ptlid: open an interface with PtlNIInit first");
		return -1;
	}
	known = ids[own].nid == id.nid && ids[own].pid == id.pid;
	if (!known)
		base_warn("cnos_register_ptlid: nid %u pid %u is not the id of this process, which "
			  "is "
			  "nid %u pid %u",
			  id.nid, id.pid, ids[own].nid, ids[own].pid);
	free(ids);
	return known ? 0 : -1;
}

void cnos_barrier_init(ptl_handle_ni_t ni_handle)
{
	(void)ni_handle; /* the barrier is the launcher's and needs no interface */
}

int cnos_barrier(void)
{
	int err = ptl_job_fence();

	if (err == -EOPNOTSUPP)
		base_warn("cnos_barrier: a job described by PTL_NIDMAP has no launcher to meet at; "
			  "start it with mpiexec");
	return err ? -1 : 0;
}

void cnos_pm_barrier(int is_last)
{
	/* with is_last, tell the launcher that this process is about to exit */
	if (!cnos_barrier() && is_last)
		rt_fini();
}

int cnos_launcher(void)
{
	const struct rt_job *job;

	return !rt_init(&job) && job->kind == RT_LAUNCHER ? CNOS_LAUNCHER_APRUN
							  : CNOS_LAUNCHER_UNKNOWN;
}
