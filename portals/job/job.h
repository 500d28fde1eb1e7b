/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The parallel job, for the core and for the calls of p3rt/p3rt.h and cnos_mpi_os.h: rank,
 * size, and the ids of all ranks. The ids come from the launcher, from PTL_NIDMAP and
 * PTL_PIDMAP, or from the client's PtlSetNIDMap and PtlSetPIDMap. The ids of the launcher and
 * of the environment belong to one interface, the one opened first.
 */
#ifndef PTL_JOB_H
#define PTL_JOB_H

#include <stdbool.h>

#include <portals3.h>

struct nal_job;

/*
 * Call at every PtlInit: find the launcher, or read the variables. 0, or -errno after a
 * warning. It may wait for the launcher's answer.
 */
int ptl_job_setup(void);

/* Call at PtlFini, after the last ptl_job_forget. The launcher's data stay for a later PtlInit. */
void ptl_job_fini(void);

/* Leave the launcher, if the ids are exchanged. 0, or -ENOTCONN. */
int ptl_job_part(void);

/* The pid that an interface about to be opened must have; PTL_PID_ANY: any. */
ptl_pid_t ptl_job_pid(ptl_interface_t iface);

/* The job's id. PTL_JID_ANY: none is known, and the pid replaces it. */
ptl_jid_t ptl_job_jid(void);

/*
 * Call when an interface is open, before PtlNIInit returns its handle. In a job started by a
 * launcher the first call waits until all ranks have called. Call it without locks that peers
 * or other threads may need meanwhile.
 *
 * `card` holds what the other ranks must know of our network NALs: at most PTL_CARD_MAX
 * characters without blanks, "" if there are no such NALs. PTL_OK or PTL_NO_SPACE. After a
 * warning also PTL_FAIL or PTL_PID_INVALID: the id contradicts the maps, or the launcher is
 * gone.
 */
#define PTL_CARD_MAX 192
int ptl_job_publish(ptl_handle_ni_t ni, ptl_interface_t iface, ptl_process_id_t id,
		    const char *card);

/* Is there a secret, or will there be one when an interface is published? If not, PTL_KEY_FILE
 * is missing, or unusable and a warning said so. */
bool ptl_job_has_secret(void);

/* Will the ranks of the job exchange cards when this interface is published? */
bool ptl_job_has_cards(ptl_interface_t iface);

/* The data that network NALs need, for a published interface. Call ptl_job_nets_free
 * afterwards. If memory runs out there are no cards. */
void ptl_job_nets(ptl_interface_t iface, struct nal_job *nets);
void ptl_job_nets_free(struct nal_job *nets);

/* The interface closes. No effect if it was never published. */
void ptl_job_forget(ptl_interface_t iface);

/* For cnos.c. Rank and size; finds the launcher first if need be. 0 or -errno. */
int ptl_job_rank(unsigned int *rank, unsigned int *size);

/* Wait for all ranks; returns at once if alone. 0, -EOPNOTSUPP (a job by PTL_NIDMAP alone), or
 * as rt_fence. */
int ptl_job_fence(void);

/*
 * Store the ids of all ranks in *ids, for the caller to free, and the index of this process's
 * entry in *own. 0, -ENOENT if they are not known (yet), or -ENOMEM.
 */
int ptl_job_ids(ptl_process_id_t **ids, unsigned int *size, unsigned int *own);

/* ---- for p3rt.c ------------------------------------------------------------------------------ */

struct ptl_group;

/*
 * Lock the job, and find an interface's group and the id that the group must fit. For
 * PTL_INVALID_HANDLE: the group of the next interface to be opened, with *own NULL. PTL_OK,
 * and then ptl_job_leave must follow, or PTL_NO_INIT or PTL_NI_INVALID.
 */
int ptl_job_enter(ptl_handle_ni_t ni, struct ptl_group **group, const ptl_process_id_t **own);
void ptl_job_leave(void);

/* Rank and size from the launcher, the environment, or alone. Between enter and leave. */
void ptl_job_own_rank(unsigned int *rank, unsigned int *size);

/*
 * PtlSetRank with -1, -1: read the environment as it is now, unless a launcher started the
 * job. Between enter and leave. PTL_OK, PTL_NO_INIT (some of the variables are missing),
 * PTL_FAIL, PTL_PID_INVALID or PTL_NO_SPACE.
 */
int ptl_job_set_rank_by_env(struct ptl_group *group, const ptl_process_id_t *own);

void ptl_job_set_jid(ptl_jid_t jid);

#endif
