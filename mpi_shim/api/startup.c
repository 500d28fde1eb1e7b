/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The start and the end of this process's part in an MPI job: one part of the library after
 * the other.
 */
#include "mpi_shim/api/startup.h"

#include <p3rt/p3rt.h>
#include <portals3_ext.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/config.h"
#include "base/log.h"
#include "mpi_shim/coll/algorithms.h"
#include "mpi_shim/coll/calls.h"
#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/process.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/datatype/type.h"
#include "mpi_shim/dynamic/port.h"
#include "mpi_shim/dynamic/spawn.h"
#include "mpi_shim/io/io.h"
#include "mpi_shim/pt2pt/buffered.h"
#include "mpi_shim/pt2pt/partitioned.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/rma.h"

/* Posted receives and long sends are limited by memory, not by these tables, which only cost the
 * entries in use. */
#define ENTRIES_MOST (1 << 20)

static int portals_failed(const char *what, int err)
{
	const char *why = PtlInitReason();

	return mpi_fail(MPI_ERR_OTHER, "%s failed (%s)%s%s", what, PtlErrorStr((unsigned int)err),
			*why ? ": " : "; portals-info shows what can be used here", why);
}

static int find_peers(void)
{
	unsigned int rank, size;
	int err = PtlGetRank(mpi_world.ni, &rank, &size);

	if (err != PTL_OK)
		return portals_failed("PtlGetRank", err);
	if (size > MPI_PROCESSES_MOST)
		return mpi_fail(MPI_ERR_OTHER, "%u ranks are more than the %d of the match bits",
				size, MPI_PROCESSES_MOST);
	mpi_world.rank = (int)rank;
	mpi_world.size = (int)size;
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
	int interfaces, err = PtlInit(&interfaces);

	if (err != PTL_OK)
		return portals_failed("PtlInit", err);
	err = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, &want, NULL, &mpi_world.ni);
	if (err != PTL_OK)
		return portals_failed("PtlNIInit", err);
	base_config_hush(); /* Portals has read the environment, too */
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

int mpi_world_init(int level)
{
	int err = open_portals();

	if (err)
		return err;
	print_by_line();
	mpi_world.level = level;
	mpi_world.threaded = level == MPI_THREAD_MULTIPLE;
	mpi_world.main_thread = pthread_self();
	mpi_coll_init();
	mpi_requests_init();
	mpi_messages_init();
	if ((err = find_peers()) || (err = mpi_types_init()) || (err = mpi_ops_init()) ||
	    (err = mpi_objects_init()) || (err = mpi_peers_init()) || (err = mpi_calls_init()) ||
	    (err = mpi_progress_init(&mpi_message_hooks)) || (err = mpi_posted_init()) ||
	    (err = mpi_unexpected_init()))
		return err;
	mpi_events_start();
	/* no rank sends before all can receive */
	if (PtlJobFence() != PTL_OK && mpi_world.size > 1)
		return mpi_fail(MPI_ERR_OTHER,
				"the launcher was lost, or is none that ranks can meet at; start "
				"the job with mpiexec%s%s",
				*PtlInitReason() ? ": " : "", PtlInitReason());
	atomic_store(&mpi_world.phase, MPI_PHASE_RUNNING);
	mpi_lock();
	err = mpi_spawn_meet_parent();
	mpi_unlock();
	return err;
}

/* Wait until the sends whose requests were freed have been received. */
static void finish_freed(void)
{
	while (mpi_pools[MPI_KIND_REQUEST].in_use && mpi_requests_freed())
		mpi_progress(true);
}

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

int mpi_world_fini(void)
{
	int err;

	mpi_buffered_fini();
	finish_freed();
	mpi_partitioned_fini();
	mpi_proto.ending = true;
	mpi_ports_close();
	mpi_others_leave(true);
	err = mpi_coll_last_barrier(&mpi_comm_world);
	if (err == MPI_ERR_PROC_ABORTED) /* the other ranks can still end in good order */
		err = MPI_SUCCESS;
	mpi_files_fini();
	atomic_store(&mpi_world.phase, MPI_PHASE_AFTER);
	if (base_config()->ptl_report)
		report_colls();
	close_portals();
	mpi_posted_fini();
	mpi_unexpected_fini();
	mpi_calls_fini();
	mpi_peers_fini();
	mpi_rma_fini();
	mpi_objects_fini();
	mpi_ops_fini();
	mpi_types_fini();
	mpi_pools_fini();
	mpi_processes_fini();
	mpi_unlock();
	return err;
}
