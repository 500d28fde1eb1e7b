/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The start of the library with the first call that needs it, its end with the program, and
 * what becomes of it in a child process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cnos_mpi_os.h>

#include "base/config.h"
#include "base/log.h"
#include "dp_shim/core.h"

/* DP is the interface that everybody else uses, too: a job knows the ids of one only. */
#define INTERFACE PTL_IFACE_DEFAULT

#define SPIN_US 50

struct dp_lib dp_lib = { .lock = PTHREAD_MUTEX_INITIALIZER,
			 .lookups = PTHREAD_MUTEX_INITIALIZER,
			 .epoll = -1,
			 .claim = -1 };

static uint64_t spin_budget(void)
{
	if (base_config()->ptl_spin_us >= 0)
		return (uint64_t)base_config()->ptl_spin_us * 1000;
	/* a process that is bound to a core may have it to itself: Portals says when to yield */
	return sysconf(_SC_NPROCESSORS_ONLN) < 2 ? 0 : SPIN_US * 1000;
}

static int portals_said(const char *what, int err)
{
	const char *why = PtlInitReason();

	base_warn("DP: %s failed (%s)%s%s", what, PtlErrorStr((unsigned int)err), *why ? ": " : "",
		  why);
	errno = err == PTL_NO_SPACE ? ENOMEM : ENODEV;
	return -1;
}

/* Keep a process id for this process, among those of this user that use DP. False: another one
 * has it. Portals would find that out, too, but with a warning. */
static bool claim_pid(ptl_pid_t pid)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dp-pid-%u-%u",
			 (unsigned int)geteuid(), pid);

	if (dp_lib.claim < 0)
		dp_lib.claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* without a socket Portals decides */
	return dp_lib.claim < 0 ||
	       bind(dp_lib.claim, (const struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0;
}

static void unclaim_pid(void)
{
	if (dp_lib.claim >= 0)
		close(dp_lib.claim);
	dp_lib.claim = -1;
}

static int open_with_pid(void)
{
	int err = PTL_PID_INVALID;

	for (unsigned int i = 0; err == PTL_PID_INVALID && i < dp_lib.pids; i++) {
		if (!claim_pid(dp_lib.first_pid + i))
			continue;
		err = PtlNIInit(INTERFACE, dp_lib.first_pid + i, NULL, NULL, &dp_lib.ni);
		if (err != PTL_OK)
			unclaim_pid();
	}
	return err;
}

/* Processes outside a job find each other by their process ids, which are of a range. */
static int open_interface(void)
{
	int err;

	dp_lib.first_pid = (ptl_pid_t)base_config()->ptl_dp_pid;
	dp_lib.pids = (unsigned int)base_config()->ptl_dp_processes;
	if (cnos_get_size() > 1)
		err = PtlNIInit(INTERFACE, PTL_PID_ANY, NULL, NULL, &dp_lib.ni);
	else
		err = open_with_pid();
	if (err == PTL_PID_INVALID)
		base_warn("DP: the process ids %u to %u of this node are in use; PTL_DP_PROCESSES "
			  "sets how many there are",
			  dp_lib.first_pid, dp_lib.first_pid + dp_lib.pids - 1);
	if (err != PTL_OK)
		return portals_said("PtlNIInit", err);
	base_config_hush();
	err = PtlGetId(dp_lib.ni, &dp_lib.id);
	return err == PTL_OK ? 0 : portals_said("PtlGetId", err);
}

/* Portals may have been opened before, by another library: then it has one process id, and that
 * is where no other process outside a job looks. */
static int check_pid(void)
{
	if (dp_lib.nranks || dp_lib.id.pid - dp_lib.first_pid < dp_lib.pids)
		return 0;
	base_warn(
		"DP: Portals was opened before it, with the process id %u, where no other process "
		"looks for endpoints; outside a job call dp_open() first",
		dp_lib.id.pid);
	errno = ENODEV;
	return -1;
}

static void name_dp_job(void)
{
	ptl_jid_t jid = 0;

	if (dp_lib.nranks)
		PtlGetJid(dp_lib.ni, &jid);
	dp_lib.job = dp_lib.nranks ? jid : dp_lib.first_pid;
}

static int open_queues(void)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	const struct dp_record none = { .nid = (uint32_t)dp_lib.nid };
	ptl_md_t md = { .threshold = PTL_MD_THRESH_INF, .eq_handle = PTL_EQ_NONE };
	ptl_handle_me_t me;
	int err;

	err = PtlEQAlloc(dp_lib.ni, 1024, PTL_EQ_HANDLER_NONE, &dp_lib.control_eq);
	if (err != PTL_OK)
		return portals_said("PtlEQAlloc", err);
	md.options =
		PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE | PTL_MD_ACK_DISABLE;
	md.eq_handle = dp_lib.control_eq;
	err = PtlMEMDAttach(dp_lib.ni, DP_PORTAL_CONTROL, any, 0, ~(ptl_match_bits_t)0, PTL_RETAIN,
			    PTL_INS_AFTER, md, PTL_RETAIN, &me, NULL);
	if (err != PTL_OK)
		return portals_said("PtlMEMDAttach", err);
	/* an unmatched get is never answered: the last entry says that there is no endpoint */
	dp_wire_put_record(dp_lib.no_record, &none);
	md.start = dp_lib.no_record;
	md.length = sizeof(dp_lib.no_record);
	md.options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE |
		     PTL_MD_EVENT_END_DISABLE;
	md.eq_handle = PTL_EQ_NONE;
	err = PtlMEMDAttach(dp_lib.ni, DP_PORTAL_LOOKUP, any, 0, ~(ptl_match_bits_t)0, PTL_RETAIN,
			    PTL_INS_AFTER, md, PTL_RETAIN, &me, NULL);
	return err == PTL_OK ? 0 : portals_said("PtlMEMDAttach", err);
}

/* The program ends: what was sent goes out, and nobody is inside Portals when it closes. */
static void end_library(void)
{
	ptl_uid_t uid;

	if (!atomic_load(&dp_lib.started) || dp_lib.child)
		return;
	pthread_mutex_lock(&dp_lib.lock);
	dp_lib.over = true;
	pthread_mutex_unlock(&dp_lib.lock);
	dp_threads_stop();
	pthread_mutex_lock(&dp_lib.lock);
	while (dp_lib.open)
		dp_release(dp_lib.open);
	pthread_mutex_unlock(&dp_lib.lock);
	dp_finish_left();
	pthread_mutex_lock(&dp_lib.lock);
	atomic_store(&dp_lib.started, false);
	/* another library that still has the interface open ends Portals itself */
	PtlNIFini(dp_lib.ni);
	if (PtlGetUid(dp_lib.ni, &uid) == PTL_NI_INVALID)
		PtlFini();
	pthread_mutex_unlock(&dp_lib.lock);
}

static void dp_before_fork(void)
{
	pthread_mutex_lock(&dp_lib.lock);
}

static void dp_after_fork(void)
{
	dp_lib.forked_at = base_now_ms();
	pthread_mutex_unlock(&dp_lib.lock);
}

/* A child has no Portals. It lets go of the library's ends, so that they close with the parent's
 * part. */
static void dp_in_child(void)
{
	if (atomic_load(&dp_lib.started)) {
		for (int p = 0; p < DP_PAGES; p++)
			atomic_store_explicit(&dp_lib.table[p], NULL, memory_order_relaxed);
		for (struct dp_ep *ep = dp_lib.open; ep; ep = ep->next)
			close(ep->kept);
		if (dp_lib.epoll >= 0)
			close(dp_lib.epoll);
		unclaim_pid();
		dp_lib.open = NULL;
		dp_lib.child = true;
		dp_lib.over = false;
		atomic_store(&dp_lib.started, false);
	}
	pthread_mutex_unlock(&dp_lib.lock);
}

static int open_library(void)
{
	int interfaces, err;

	err = PtlInit(&interfaces);
	if (err != PTL_OK)
		return portals_said("PtlInit", err);
	if (open_interface() < 0)
		return -1;
	if (dp_nodes_learn() == 0 && check_pid() == 0 && open_queues() == 0 &&
	    dp_lookup_open() == 0)
		return 0;
	err = errno;
	PtlNIFini(dp_lib.ni);
	unclaim_pid();
	errno = err;
	return -1;
}

int dp_start(void)
{
	static bool registered;

	if (dp_lib.over) {
		errno = ENODEV;
		return -1;
	}
	if (atomic_load(&dp_lib.started))
		return 0;
	if (dp_lib.child) {
		errno = EPERM;
		return -1;
	}
	if (open_library() < 0)
		return -1;
	name_dp_job();
	dp_lib.spin_ns = spin_budget();
	if (dp_threads_start() < 0)
		return -1;
	if (!registered) {
		pthread_atfork(dp_before_fork, dp_after_fork, dp_in_child);
		atexit(end_library);
		registered = true;
	}
	atomic_store(&dp_lib.started, true);
	return 0;
}

static int started(void)
{
	int err;

	pthread_mutex_lock(&dp_lib.lock);
	err = dp_start();
	pthread_mutex_unlock(&dp_lib.lock);
	return err;
}

int dp_nid(void)
{
	return started() < 0 ? -1 : dp_lib.nid;
}

int dp_nodes(void)
{
	return started() < 0 ? -1 : dp_lib.nodes;
}
