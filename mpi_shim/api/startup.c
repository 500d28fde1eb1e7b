/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The start and the end of this process's part in an MPI job: one part of the library after
 * the other. The local ones come first; see core/world.h.
 */
#include "mpi_shim/api/startup.h"

#include <cnos_mpi_os.h>
#include <p3rt/p3rt.h>
#include <portals3_ext.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "mpi_shim/coll/algorithms.h"
#include "mpi_shim/coll/calls.h"
#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/process.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/datatype/type.h"
#include "mpi_shim/dynamic/port.h"
#include "mpi_shim/dynamic/spawn.h"
#include "mpi_shim/io/io.h"
#include "mpi_shim/pt2pt/buffered.h"
#include "mpi_shim/pt2pt/partitioned.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/rma.h"
#include "mpi_shim/sessions/session.h"

/* Posted receives and long sends are limited by memory, not by these tables, which only cost the
 * entries in use. */
#define ENTRIES_MOST (1 << 20)

/* Held while one thread starts a part. Taken before the library's lock. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static pid_t started; /* the process that has started what is local; 0: none */
static int connect_failed;
static char connect_text[MPI_MAX_ERROR_STRING];

static int portals_failed(const char *what, int err)
{
	const char *why = PtlInitReason();

	return mpi_fail(MPI_ERR_OTHER, "%s failed (%s)%s%s", what, PtlErrorStr((unsigned int)err),
			*why ? ": " : "; portals-info shows what can be used here", why);
}

/* Learn rank and size. Joins the launcher's job, but meets no other process. */
static int find_self(void)
{
	int interfaces, rank, size, err = PtlInit(&interfaces);

	if (err != PTL_OK)
		return portals_failed("PtlInit", err);
	base_config_hush(); /* Portals has read the environment, too */
	rank = cnos_get_rank();
	size = cnos_get_size();
	if (rank < 0 || size < 1)
		return portals_failed("cnos_get_rank", PTL_FAIL);
	if (size > MPI_PROCESSES_MOST)
		return mpi_fail(MPI_ERR_OTHER, "%d ranks are more than the %d of the match bits",
				size, MPI_PROCESSES_MOST);
	mpi_world.rank = rank;
	mpi_world.size = mpi_world.processes = size;
	return MPI_SUCCESS;
}

static int find_peers(void)
{
	unsigned int rank, size;
	int err = PtlGetRank(mpi_world.ni, &rank, &size);

	if (err != PTL_OK)
		return portals_failed("PtlGetRank", err);
	if ((int)rank != mpi_world.rank || (int)size != mpi_world.size)
		return mpi_fail(MPI_ERR_OTHER,
				"this process was rank %d of %d, and is rank %u of %u now",
				mpi_world.rank, mpi_world.size, rank, size);
	err = mpi_processes_init();
	if (err)
		return err;
	for (unsigned int i = 0; i < size; i++) {
		err = PtlGetRankId(mpi_world.ni, i, &mpi_world.id[i]);
		if (err != PTL_OK)
			return portals_failed("PtlGetRankId", err);
	}
	return MPI_SUCCESS;
}

/* Admit every process that has the job's secret, whatever its user. Portals by itself only
 * admits processes of our user. */
static int admit_job(void)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_jid_t jid = PTL_JID_ANY;
	int err = PtlGetJid(mpi_world.ni, &jid);

	mpi_world.jid = jid;
	if (err == PTL_OK)
		err = PtlACEntry(mpi_world.ni, 0, any, PTL_UID_ANY, jid, PTL_PT_INDEX_ANY);
	return err == PTL_OK ? MPI_SUCCESS : portals_failed("PtlACEntry", err);
}

static int open_portals(void)
{
	ptl_ni_limits_t want = {
		.max_mes = ENTRIES_MOST,
		.max_mds = ENTRIES_MOST,
		.max_eqs = 4096, /* for libraries that share the interface */
		.max_ac_index = 3,
		.max_pt_index = 63,
		.max_md_iovecs = 1024,
		.max_me_list = ENTRIES_MOST,
		.max_getput_md = 4096,
	};
	int err = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, &want, NULL, &mpi_world.ni);
	if (err != PTL_OK)
		return portals_failed("PtlNIInit", err);
	return admit_job();
}

/*
 * Print standard output line by line in a job, as to a terminal. A rank that is killed because
 * another one ended loses the output that its C library still holds. A stream that is
 * unbuffered, or has another buffer size than the C library's own, stays as the program wants
 * it.
 */
static void print_by_line(void)
{
	const size_t size = __fbufsize(stdout);
	struct stat st;

	if (!base_config_is_set("PMI_FD") && !base_config_is_set("PMIX_RANK"))
		return;
	if (!size || size == BUFSIZ ||
	    (!fstat(fileno(stdout), &st) && size == (size_t)st.st_blksize))
		setvbuf(stdout, NULL, _IOLBF, 0);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int connect_job(void);
static void all_closed(void);

/* Start what is local, for the first that opens the library. `threads`: calls may run
 * concurrently. It may be too late for that, if MPI_Init said otherwise and is not over. */
static int start_local(bool threads)
{
	int err;

	if (started) {
		if (!threads || mpi_world.threaded ||
		    atomic_load(&mpi_world.phase) == MPI_PHASE_RUNNING)
			return MPI_SUCCESS;
		mpi_world.threaded = true;
		return mpi_world.connected ? mpi_progress_use_threads() : MPI_SUCCESS;
	}
	err = find_self();
	if (err)
		return err;
	print_by_line();
	mpi_world.connect = connect_job;
	mpi_world.all_closed = all_closed;
	mpi_world.threaded = threads;
	mpi_coll_init();
	mpi_requests_init();
	mpi_messages_init();
	mpi_sessions_init();
	if ((err = mpi_types_init()) || (err = mpi_ops_init()) || (err = mpi_objects_init()))
		return err;
	started = getpid();
	return MPI_SUCCESS;
}

static int connect_parts(void)
{
	int err;

	if ((err = open_portals()) || (err = find_peers()) || (err = mpi_peers_init()) ||
	    (err = mpi_calls_init()) || (err = mpi_progress_init(&mpi_message_hooks)) ||
	    (err = mpi_posted_init()) || (err = mpi_unexpected_init()))
		return err;
	mpi_events_start();
	mpi_waiting_init();
	/* no rank sends before all can receive */
	if (PtlJobFence() != PTL_OK && mpi_world.size > 1)
		return mpi_fail(MPI_ERR_OTHER,
				"the launcher was lost, or is none that ranks can meet at; start "
				"the job with mpiexec%s%s",
				*PtlInitReason() ? ": " : "", PtlInitReason());
	return MPI_SUCCESS;
}

/* Meet the other processes, once. A failure stays: they would wait in vain for a second try.
 * `starting` is held. */
static int connect_once(void)
{
	if (mpi_world.connected)
		return MPI_SUCCESS;
	if (connect_failed)
		return mpi_fail(connect_failed, "%s", connect_text);
	connect_failed = connect_parts();
	if (connect_failed)
		snprintf(connect_text, sizeof(connect_text), "%s", mpi_fail_text());
	else
		atomic_store_explicit(&mpi_world.connected, true, memory_order_release);
	return connect_failed;
}

static int connect_job(void)
{
	int err;

	if (mpi_world.connected)
		return MPI_SUCCESS;
	mpi_unlock();
	pthread_mutex_lock(&starting);
	err = connect_once();
	pthread_mutex_unlock(&starting);
	mpi_lock();
	return err;
}

static int start_world(int level)
{
	int err = start_local(level == MPI_THREAD_MULTIPLE);

	if (!err)
		err = connect_once();
	if (err)
		return err;
	mpi_lock();
	mpi_world.level = level;
	mpi_world.main_thread = pthread_self();
	err = mpi_world_objects_init();
	if (!err) {
		mpi_world_open(NULL);
		err = mpi_spawn_meet_parent();
	}
	mpi_unlock();
	return err;
}

int mpi_world_init(int level)
{
	int err;

	pthread_mutex_lock(&starting);
	err = start_world(level);
	pthread_mutex_unlock(&starting);
	return err;
}

int mpi_session_open(void)
{
	int err;

	pthread_mutex_lock(&starting);
	err = start_local(true);
	if (!err) {
		mpi_lock();
		mpi_world_open(&mpi_world.sessions);
		mpi_unlock();
	}
	pthread_mutex_unlock(&starting);
	return err;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Wait until the sends whose requests were freed have been received. */
static void finish_freed(void)
{
	struct mpi_wait wait;

	mpi_wait_begin(&wait, BASE_WAIT_ANY, NULL, BASE_WAITS_ANY, BASE_WAITS_ANY, 0);
	while (mpi_pools[MPI_KIND_REQUEST].in_use && mpi_requests_freed())
		mpi_progress(true);
	mpi_wait_end(&wait);
}

/* The process may still open a session. Its exit code is its own from now on. */
static void all_closed(void)
{
	finish_freed();
	/* another thread may have opened one meanwhile */
	if (mpi_world.sessions || atomic_load(&mpi_world.model) == MPI_PHASE_RUNNING)
		return;
	mpi_files_fini(true);
	mpi_ports_close();
	mpi_others_leave(true);
	mpi_partitioned_fini();
	if (mpi_world.connected)
		PtlJobLeave();
}

int mpi_world_fini(void)
{
	int err;

	mpi_buffered_fini();
	finish_freed();
	mpi_proto.ending = true;
	err = mpi_coll_last_barrier(&mpi_comm_world);
	if (err == MPI_ERR_PROC_ABORTED) /* the other ranks can still end in good order */
		err = MPI_SUCCESS;
	mpi_files_fini(false);
	mpi_world_close(NULL);
	mpi_proto.ending = false;
	mpi_world_objects_fini();
	mpi_unlock();
	return err;
}

/* ---- the end of the process ------------------------------------------------------------------ */

/* With PTL_REPORT: print which algorithms the collectives of this rank used. */
static void report_colls(void)
{
	base_say("rank %d of %d: collectives by algorithm", mpi_world.rank, mpi_world.size);
	for (size_t i = 0; i < MPI_COLL_COUNT_; i++)
		if (mpi_coll_counts[i])
			base_say("  %12llu %s", (unsigned long long)mpi_coll_counts[i],
				 mpi_algorithm_word(i));
}

/* Portals stays if another library of the process has the interface open: that one ends it. */
static void close_portals(void)
{
	ptl_uid_t uid;

	PtlNIFini(mpi_world.ni);
	if (PtlGetUid(mpi_world.ni, &uid) != PTL_OK)
		PtlFini();
}

static void disconnect(void)
{
	if (base_config()->ptl_report)
		report_colls();
	close_portals();
	mpi_waiting_fini();
	mpi_posted_fini();
	mpi_unexpected_fini();
	mpi_calls_fini();
	mpi_peers_fini();
	mpi_rma_fini();
	mpi_processes_fini();
	mpi_world.connected = false;
}

/* A process that ends with MPI open does not end in good order, and a child made by fork has no
 * part in it. */
static void __attribute__((destructor)) end_with_process(void)
{
	if (started != getpid() || atomic_load(&mpi_world.phase) == MPI_PHASE_RUNNING)
		return;
	if (mpi_world.connected)
		disconnect();
	mpi_objects_fini();
	mpi_ops_fini();
	mpi_types_fini();
	mpi_pools_fini();
	started = 0;
}
