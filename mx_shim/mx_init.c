/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The library's state, its settings, and boards. A board is a Portals interface. A process has one
 * pid there, which all its endpoints share: outside a job one of 64 known ones, so that others find
 * it; in a job the one that the job gives it.
 */
#include <cnos_mpi_os.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "mx_shim/mx_core.h"

#define SPIN_NS 100000 /* how long a wait polls if nobody needs the processor */

struct mxs_process mxs = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- settings -------------------------------------------------------------------------------- */

static uint32_t setting(const char *name, uint32_t least, uint32_t most, uint32_t otherwise)
{
	const char *text = base_config_env(name);
	char *end;
	unsigned long value;

	if (!text)
		return otherwise;
	value = strtoul(text, &end, 0);
	if (*end || value < least || value > most) {
		base_warn("%s=%s is ignored: it is a number from %u to %u", name, text, least,
			  most);
		return otherwise;
	}
	return (uint32_t)value;
}

static int64_t spin_of_config(void)
{
	long us = base_config()->ptl_spin_us;

	if (us >= 0)
		return us * 1000;
	/* a process that is bound to a core may have it to itself: Portals says when to yield */
	return sysconf(_SC_NPROCESSORS_ONLN) < 2 ? 0 : SPIN_NS;
}

/* Is this asked for, and meant to be? */
static bool setting_is_on(const char *name)
{
	const char *text = base_config_env(name), *all = base_config_env("OMX_IGNORE_MX_ENV");

	if (!text || !*text || !strcmp(text, "0"))
		return false;
	return strncmp(name, "MX_", 3) != 0 || !all || !*all || !strcmp(all, "0");
}

/* Settings of MX or Open-MX that change nothing here, and what does. Those whose effect nobody
 * could see are accepted in silence. */
static void hint_at_settings(void)
{
	static const struct {
		const char *name[3], *remedy;
	} without_effect[] = {
		{ { "OMX_DISABLE_SHARED", "MX_DISABLE_SHMEM", "MX_DISABLE_SHARED" },
		  "PTL_NAL names the transports" },
		{ { "OMX_SHARED_RNDV_THRESHOLD" }, "OMX_RNDV_THRESHOLD is that of all partners" },
		{ { "OMX_WAITSPIN" }, "PTL_SPIN_US says how long waits spin" },
		{ { "OMX_WAITINTR" }, "waits go on after signals" },
		{ { "OMX_RESENDS_MAX", "MX_MAX_RETRIES" },
		  "PTL_NET_DEAD_MS says when a silent host is given up" },
		{ { "OMX_ZOMBIE_SEND", "MX_ZOMBIE_SEND", "MX_ZOMBIE" },
		  "mx_issend completes with its receive" },
	};

	for (size_t i = 0; i < sizeof(without_effect) / sizeof(without_effect[0]); i++)
		for (int k = 0; k < 3 && without_effect[i].name[k]; k++)
			if (setting_is_on(without_effect[i].name[k]))
				base_warn("MX: %s changes nothing here: %s",
					  without_effect[i].name[k], without_effect[i].remedy);
}

void mxs_configure(void)
{
	const char *ids = base_config_env("OMX_CTXIDS");
	unsigned int bits, shift;

	if (mxs.configured)
		return;
	mxs.configured = true;
	mxs.rndv = setting("OMX_RNDV_THRESHOLD", MXS_PIO_MOST, MXS_EAGER_MOST, MXS_EAGER_MOST);
	mxs.any_endpoint = setting("OMX_ANY_ENDPOINT", 0, MXS_ENDPOINTS - 1, MX_ANY_ENDPOINT);
	if (ids && sscanf(ids, "%u,%u", &bits, &shift) == 2 && bits <= MX_CONTEXT_ID_BITS_MAX &&
	    bits + shift <= 64) {
		mxs.ctx_bits = bits;
		mxs.ctx_shift = shift;
	}
	mxs.first_pid = (uint32_t)base_config()->ptl_mx_pid;
	mxs.spin_ns = spin_of_config();
	hint_at_settings();
}

uint32_t mxs_boards(void)
{
	return (uint32_t)base_config()->ptl_mx_boards;
}

/* ---- boards ---------------------------------------------------------------------------------- */

static int init_interface(uint32_t number, ptl_pid_t pid, ptl_handle_ni_t *ni)
{
	ptl_ni_limits_t want = {
		.max_mes = 1 << 20,
		.max_mds = 1 << 20,
		.max_eqs = 1024,
		.max_ac_index = 3,
		.max_pt_index = 63,
		.max_md_iovecs = 1024,
		.max_me_list = 1 << 20,
		.max_getput_md = 4096,
	};

	return PtlNIInit(number, pid, &want, NULL, ni);
}

/* Opens the interface with one of the pids that others look at, best the one of this id. */
static int init_with_known_pid(uint32_t number, uint32_t eid, ptl_handle_ni_t *ni)
{
	uint64_t used = mxs_registry_pids(number, mxs_board_nid(number));
	uint32_t first = eid < MXS_PIDS ? eid : 0;
	int err = PTL_PID_INVALID;

	for (uint32_t i = 0; i < MXS_PIDS && err == PTL_PID_INVALID; i++) {
		uint32_t slot = (first + i) % MXS_PIDS;

		if (!(used >> slot & 1))
			err = init_interface(number, mxs.first_pid + slot, ni);
	}
	return err;
}

static mx_return_t expose_closed(struct mxs_board *b)
{
	const struct mxs_record record = { .answer = MXS_ANSWER_CLOSED };
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.start = b->closed_record,
		.length = sizeof(b->closed_record),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
			   PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
		.eq_handle = PTL_EQ_NONE,
	};

	mxs_record_encode(&record, b->closed_record);
	return PtlMEMDAttach(b->ni, MXS_PT_CONNECT, any, 0, ~UINT64_C(0), PTL_RETAIN, PTL_INS_AFTER,
			     md, PTL_RETAIN, &b->closed_me, NULL) == PTL_OK
		       ? MX_SUCCESS
		       : MX_NO_RESOURCES;
}

/* Portals answers no read that matches nothing, so the last entry takes those of memory that a send
 * has taken back. */
static mx_return_t answer_lost_reads(struct mxs_board *b)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
			   PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
		.eq_handle = PTL_EQ_NONE,
	};

	return PtlMEMDAttach(b->ni, MXS_PT_READ, any, 0, ~UINT64_C(0), PTL_RETAIN, PTL_INS_AFTER,
			     md, PTL_RETAIN, &b->lost_me, NULL) == PTL_OK
		       ? MX_SUCCESS
		       : MX_NO_RESOURCES;
}

mx_return_t mxs_board_open(uint32_t number, uint32_t want_eid)
{
	struct mxs_board *b = &mxs.board[number];
	mx_return_t ret;
	int err;

	if (b->open)
		return MX_SUCCESS;
	b->in_job = cnos_get_size() > 1;
	if (b->in_job)
		err = init_interface(number, PTL_PID_ANY, &b->ni);
	else
		err = init_with_known_pid(number, want_eid, &b->ni);
	if (err == PTL_PID_INVALID)
		return MX_NO_RESOURCES;
	if (err != PTL_OK)
		return MX_NO_DEV;
	PtlGetId(b->ni, &b->id);
	ret = expose_closed(b);
	if (ret == MX_SUCCESS)
		ret = answer_lost_reads(b);
	if (ret != MX_SUCCESS) {
		PtlNIFini(b->ni);
		return ret;
	}
	b->open = true;
	return MX_SUCCESS;
}

/* True: the process uses the interface for something else, too. */
static bool close_board(struct mxs_board *b)
{
	ptl_process_id_t id;

	if (!b->open)
		return false;
	b->open = false;
	PtlMEUnlink(b->closed_me);
	PtlMEUnlink(b->lost_me);
	PtlNIFini(b->ni);
	return PtlGetId(b->ni, &id) == PTL_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

mx_return_t mx__init_api(int api)
{
	mx_return_t ret = MX_SUCCESS;
	int most;

	if (api >> 8 != MX_API >> 8)
		return mxs_fail(NULL, "mx_init", MX_BAD_LIB_VERSION);
	pthread_mutex_lock(&mxs.lock);
	if (atomic_load(&mxs.initialized))
		ret = MX_ALREADY_INITIALIZED;
	else if (PtlInit(&most) != PTL_OK)
		ret = MX_NO_DRIVER;
	else
		atomic_store(&mxs.initialized, true);
	pthread_mutex_unlock(&mxs.lock);
	base_config_hush(); /* Portals has read the environment, too */
	return ret == MX_SUCCESS ? ret : mxs_fail(NULL, "mx_init", ret);
}

mx_return_t mx_finalize(void)
{
	bool shared = false;

	if (!atomic_load(&mxs.initialized))
		return mxs_fail(NULL, "mx_finalize", MX_NOT_INITIALIZED);
	for (uint32_t i = 0; i < MXS_SLOTS; i++) {
		struct mxs_endpoint *ep =
			atomic_load_explicit(&mxs.endpoint[i], memory_order_acquire);

		if (ep && atomic_load(&ep->gen) & 1)
			mx_close_endpoint(mxs_endpoint_handle(ep));
	}
	pthread_mutex_lock(&mxs.lock);
	for (uint32_t i = 0; i < MXS_BOARDS; i++)
		shared |= close_board(&mxs.board[i]);
	mxs.configured = false;
	atomic_store(&mxs.initialized, false);
	if (!shared)
		PtlFini();
	pthread_mutex_unlock(&mxs.lock);
	return MX_SUCCESS;
}
