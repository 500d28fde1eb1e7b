/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * What the core and the calls of p3rt/p3rt.h and cnos_mpi_os.h know of the parallel job: rank,
 * size, and the ids of all ranks. The ids come from the launcher, from PTL_NIDMAP and
 * PTL_PIDMAP, or from the client's own PtlSetNIDMap and PtlSetPIDMap. The launcher's and the
 * environment's are those of one interface, the one opened first.
 */
#ifndef PTL_JOB_H
#define PTL_JOB_H

#include <stdbool.h>

#include <portals3.h>

struct nal_job;

/*
 * At every PtlInit: finds the launcher, or reads the variables. 0, or -errno after a warning.
 * May wait for the launcher's answer.
 */
int ptl_job_setup(void);

/* At PtlFini, after the last ptl_job_forget. What the launcher told stays for a later PtlInit. */
void ptl_job_fini(void);

/* The pid that an interface about to be opened must take, PTL_PID_ANY if it is free to choose. */
ptl_pid_t ptl_job_pid(ptl_interface_t iface);

/* The job's id, PTL_JID_ANY if none is known: the pid takes its place then. */
ptl_jid_t ptl_job_jid(void);

/*
 * When an interface stands, before PtlNIInit returns its handle. In a job started by a launcher
 * the first one waits until all ranks have come here. PTL_OK, PTL_FAIL or PTL_PID_INVALID after
 * a warning (the id contradicts the maps, the launcher is gone), PTL_NO_SPACE. Call without
 * locks that peers or other threads may need meanwhile. The card, of at most PTL_CARD_MAX
 * characters without blanks, is what the others must know of our network NALs; "" if there are
 * none.
 */
#define PTL_CARD_MAX 192
int ptl_job_publish(ptl_handle_ni_t ni, ptl_interface_t iface, ptl_process_id_t id,
		    const char *card);

/* Is there a secret, or will there be one when an interface is published? Else PTL_KEY_FILE is
 * missing, or unusable, of which a warning told. */
bool ptl_job_has_secret(void);

/* Will the ranks of a job exchange cards when this interface is published? */
bool ptl_job_has_cards(ptl_interface_t iface);

/* What network NALs need to know, for an interface that was published; with ptl_job_nets_free to
 * follow. Without memory there are no cards. */
void ptl_job_nets(ptl_interface_t iface, struct nal_job *nets);
void ptl_job_nets_free(struct nal_job *nets);

/* The interface goes away; without effect if it was never published. */
void ptl_job_forget(ptl_interface_t iface);

/* For cnos.c. Rank and size, finding the launcher first if need be: 0 or -errno. */
int ptl_job_rank(unsigned int *rank, unsigned int *size);

/* Waits for all ranks; nothing to do alone. 0, -EOPNOTSUPP (by PTL_NIDMAP alone), or as
 * rt_fence. */
int ptl_job_fence(void);

/*
 * The ids of all ranks in *ids, for the caller to free: 0, -ENOENT if they are not known (yet),
 * -ENOMEM. *own is this process's entry.
 */
int ptl_job_ids(ptl_process_id_t **ids, unsigned int *size, unsigned int *own);

/* ---- for p3rt.c ------------------------------------------------------------------------------ */

struct ptl_group;

/*
 * Locks the job and finds the group of an interface and the id the group must fit; for
 * PTL_INVALID_HANDLE the group of the next interface opened, with *own NULL. PTL_OK, and then
 * ptl_job_leave must follow, or PTL_NO_INIT or PTL_NI_INVALID.
 */
int ptl_job_enter(ptl_handle_ni_t ni, struct ptl_group **group, const ptl_process_id_t **own);
void ptl_job_leave(void);

/* Rank and size by launcher, environment, or alone. Between enter and leave. */
void ptl_job_own_rank(unsigned int *rank, unsigned int *size);

/*
 * PtlSetRank with -1, -1: reads the environment as it is now, unless a launcher knows better.
 * Between enter and leave. PTL_OK, PTL_NO_INIT (part of the variables is missing), PTL_FAIL,
 * PTL_PID_INVALID, PTL_NO_SPACE.
 */
int ptl_job_set_rank_by_env(struct ptl_group *group, const ptl_process_id_t *own);

void ptl_job_set_jid(ptl_jid_t jid);

#endif
