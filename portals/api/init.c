/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The calls about interfaces: initialization, identities, status (3.3 sections 3.4 to 3.8).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/shared.h"
#include "portals/api/objects.h"
#include "portals/api/route.h"
#include "portals/engine/debug.h"
#include "portals/job/job.h"
#include "portals/job/nid.h"
#include "runtime/rt.h"

static const ptl_ni_limits_t max_limits = {
	.max_mes = 1 << 20,
	.max_mds = 1 << 20,
	.max_eqs = 4096,
	.max_ac_index = 63,
	.max_pt_index = 255,
	.max_md_iovecs = 1 << 16,
	.max_me_list = 1 << 20,
	.max_getput_md = 4096,
};

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER; /* held to change the table */
static _Atomic unsigned int debug_default;
static uint32_t interfaces_made; /* guarded by table_mutex */

/* ---- PtlInit, PtlFini ------------------------------------------------------------------------ */

/* A child has no Portals: the regions are not mapped there, and the helper threads do not exist. */
static void in_child(void)
{
	for (int i = 0; i < PTL_MAX_INTERFACES; i++) {
		struct ptl_ni *ni =
			atomic_exchange_explicit(&ptl_ni_table[i], NULL, memory_order_relaxed);

		if (ni) {
			ptl_nets_forked(ni);
			close(ni->memfd);
		}
	}
	atomic_store_explicit(&ptl_initialized, false, memory_order_relaxed);
	pthread_mutex_init(&table_mutex, NULL);
}

static void at_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

int PtlInit(int *max_interfaces)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err = PTL_OK;

	pthread_once(&once, at_fork);
	base_forget_warnings();
	pthread_mutex_lock(&table_mutex);
	if (!ptl_is_init()) {
		if (!max_interfaces)
			err = PTL_SEGV;
		else if (ptl_job_setup() < 0)
			err = PTL_FAIL;
		else {
			debug_default = (unsigned int)base_config()->ptl_debug;
			atomic_store_explicit(&ptl_initialized, true, memory_order_release);
		}
	}
	if (err == PTL_OK && max_interfaces)
		*max_interfaces = PTL_MAX_INTERFACES;
	pthread_mutex_unlock(&table_mutex);
	return err;
}

static void report_paths(struct ptl_ni *ni)
{
	const struct ptl_stat *s = &ni->view.r->stat;

	base_say("interface %u, nid 0x%08x pid %u, moved by %s (%s): %llu messages out, %llu in",
		 ni->index, ni->id.nid, ni->id.pid, s->nals, s->progress,
		 (unsigned long long)s->sr[PTL_SR_SEND_COUNT],
		 (unsigned long long)s->sr[PTL_SR_RECV_COUNT]);
	ptl_nets_report(ni);
}

/* Call after the NALs have closed: network NALs update their counts only now and then. */
static void report_counts(const struct ptl_ni *ni)
{
	static const char *const count_text[] = {
#define TEXT(name, text) text,
		PTL_COUNT_TABLE(TEXT)
	};
	static const char *const drop_text[] = { PTL_DROP_TABLE(TEXT) };
	const struct ptl_stat *s = &ni->view.r->stat;

	for (int i = 0; i < PTL_COUNT_COUNT_; i++)
		if (s->counts[i])
			base_say("  %12llu %s", (unsigned long long)s->counts[i], count_text[i]);
	for (int i = 0; i < PTL_DROP_COUNT_; i++)
		if (s->drops[i])
			base_say("  %12llu dropped: %s", (unsigned long long)s->drops[i],
				 drop_text[i]);
}

/* Close an interface for good. table_mutex held. */
static void ni_close(struct ptl_ni *ni)
{
	atomic_store_explicit(&ptl_ni_table[ni->index], NULL, memory_order_release);
	if (ptl_debugs(ni, PTL_DBG_SHUTDOWN))
		ptl_debug(ni, "interface %u closes", ni->index);
	if (base_config()->ptl_report)
		report_paths(ni);
	ni->view.r->stat.closed = 1;
	ptl_nets_close(ni);
	if (base_config()->ptl_report)
		report_counts(ni);
	ptl_job_forget(ni->index);
	ptl_arena_fini(&ni->arena);
	ptl_region_unmap(&ni->view);
	close(ni->memfd);
	free(ni->handler);
	free(ni->handled);
	free(ni->awaited);
	free(ni->apart);
	free(ni);
}

void PtlFini(void)
{
	pthread_mutex_lock(&table_mutex);
	if (ptl_is_init()) {
		for (int i = 0; i < PTL_MAX_INTERFACES; i++)
			if (ptl_ni_table[i])
				ni_close(ptl_ni_table[i]);
		ptl_job_fini();
		atomic_store_explicit(&ptl_initialized, false, memory_order_release);
	}
	pthread_mutex_unlock(&table_mutex);
}

/* ---- PtlNIInit, PtlNIFini -------------------------------------------------------------------- */

static int limit(int wanted, int most)
{
	if (wanted < 0)
		return 0;
	return wanted < most ? wanted : most;
}

static ptl_ni_limits_t limits_for(const ptl_ni_limits_t *d)
{
	const ptl_ni_limits_t *m = &max_limits;

	if (!d)
		return *m;
	return (ptl_ni_limits_t){
		.max_mes = limit(d->max_mes, m->max_mes),
		.max_mds = limit(d->max_mds, m->max_mds),
		.max_eqs = limit(d->max_eqs, m->max_eqs),
		.max_ac_index = limit(d->max_ac_index, m->max_ac_index),
		.max_pt_index = limit(d->max_pt_index, m->max_pt_index),
		.max_md_iovecs = limit(d->max_md_iovecs, m->max_md_iovecs),
		.max_me_list = limit(d->max_me_list, m->max_me_list),
		.max_getput_md = limit(d->max_getput_md, m->max_getput_md),
	};
}

static void fill_stat(struct ptl_ni *ni)
{
	struct ptl_stat *s = &ni->view.r->stat;

	s->os_pid = (uint32_t)getpid();
	s->id = ni->id;
	s->uid = ni->uid;
	s->jid = ni->jid;
	s->interface = ni->index;
	s->started_ms = base_now_ms();
	strncpy(s->program, program_invocation_short_name, sizeof(s->program) - 1);
	ni->view.r->cray = base_config()->ptl_cray;
}

/* P3.3 §3.12: every entry admits all processes of our user. */
static void open_access(struct ptl_ni *ni)
{
	for (int i = 0; i <= ni->view.limits.max_ac_index; i++)
		ni->view.ac[i] = (struct ptl_ac){
			.id = { PTL_NID_ANY, PTL_PID_ANY },
			.uid = ni->uid,
			.jid = PTL_JID_ANY,
			.pt_index = PTL_PT_INDEX_ANY,
			.only = PTL_AC_UID,
		};
}

#define INITIAL_PIDS 0xeffffffcu /* the inode of the first pid namespace */

/*
 * The first pid to try: our process id. In pid namespaces of their own several ranks may have
 * the same one. If each has a network of its own, too, they may also have the same node id. So
 * mix in the rank.
 */
static ptl_pid_t first_pid(const struct ptl_ni *ni)
{
	unsigned int rank = 0, size;
	struct stat st;

	if (ni->cards && (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino != INITIAL_PIDS))
		ptl_job_rank(&rank, &size);
	return (ptl_pid_t)getpid() ^ rank << 16;
}

static int ni_open(struct ptl_ni *ni, ptl_pid_t pid, const ptl_ni_limits_t *limits)
{
	char why[320];
	int err;

	err = ptl_nets_choose(ni);
	if (err != PTL_OK)
		return err;
	if (ptl_nid_configured(ni->index, &ni->id.nid, &ni->address) < 0)
		return PTL_IFACE_INVALID;
	err = ptl_region_create(&ni->view, limits, ptl_nets_bytes(ni),
				ni->nal->far_bytes(base_shared_most() / 2), &ni->memfd, why,
				sizeof(why));
	if (err < 0) {
		base_warn("cannot make the shared memory of a network interface: %s", why);
		return PTL_NO_SPACE;
	}
	ptl_arena_init(&ni->arena, &ni->view);
	ni->engine.v = &ni->view;
	ni->uid = (uint32_t)geteuid();
	ni->debug = debug_default;
	ni->jid = ptl_job_jid();
	open_access(ni);
	fill_stat(ni);
	if (pid == PTL_PID_ANY)
		pid = ptl_job_pid(ni->index);
	ni->cards = ptl_job_has_cards(ni->index);
	ni->first_pid = first_pid(ni);
	err = ptl_nets_open(ni, pid);
	if (err != PTL_OK) {
		ptl_region_unmap(&ni->view);
		close(ni->memfd);
	}
	return err;
}

/* Learn from the job how many processes share our cores, and which ids may still appear. */
static void learn_job(struct ptl_ni *ni)
{
	const struct rt_job *job;
	ptl_process_id_t *ids;
	unsigned int size, own;
	int n = 0;

	if (ptl_job_ids(&ids, &size, &own) < 0)
		return;
	for (unsigned int i = 0; i < size; i++)
		n += ids[i].nid == ni->id.nid;
	ptl_lock(ni);
	ni->neighbours = n;
	ni->nal->counted(ni);
	if (rt_init(&job) == 0 && job->kind == RT_ENV) {
		ni->awaited = ids;
		ni->nawaited = size;
		ids = NULL;
	}
	ptl_leave(ni);
	free(ids);
}

/* Tell the other ranks of us, and learn of them. */
static int join_job(struct ptl_ni *ni)
{
	char card[PTL_CARD_MAX + 1], *names = ni->view.r->stat.nals;
	int err;

	ptl_nets_card(ni, card, sizeof(card));
	err = ptl_job_publish(ptl_ni_handle(ni), ni->index, ni->id, card);
	if (err != PTL_OK)
		return err;
	learn_job(ni);
	err = ptl_nets_join(ni);
	ptl_nets_names(ni, names, sizeof(ni->view.r->stat.nals));
	if (ptl_debugs(ni, PTL_DBG_SETUP))
		ptl_debug(ni, "interface %u open, nid 0x%08x, by %s", ni->index, ni->id.nid, names);
	return err;
}

static int ni_create(ptl_interface_t interface, ptl_pid_t pid, const ptl_ni_limits_t *desired)
{
	ptl_ni_limits_t limits = limits_for(desired);
	struct ptl_ni *ni = calloc(1, sizeof(*ni));
	int err;

	if (!ni)
		return PTL_NO_SPACE;
	ni->index = interface;
	ni->gen = ptl_next_gen(++interfaces_made * 101u % 255 << 8);
	ni->refs = 1;
	ni->run_handlers = ptl_run_handlers;
	ni->handler = calloc((size_t)limits.max_eqs + 1, sizeof(*ni->handler));
	ni->handled = calloc((size_t)limits.max_eqs + 1, sizeof(*ni->handled));
	if (!ni->handler || !ni->handled)
		err = PTL_NO_SPACE;
	else
		err = ni_open(ni, pid, &limits);
	if (err != PTL_OK) {
		free(ni->handler);
		free(ni->handled);
		free(ni);
		return err;
	}
	atomic_store_explicit(&ptl_ni_table[interface], ni, memory_order_release);
	err = join_job(ni);
	if (err != PTL_OK)
		ni_close(ni);
	return err;
}

/* If nothing else was printed, memory has run out. */
static int explained(int err)
{
	if (err == PTL_NO_SPACE && !*base_warnings())
		base_warn("no memory for a network interface; raise `ulimit -v`");
	return err;
}

int PtlNIInit(ptl_interface_t interface, ptl_pid_t pid, ptl_ni_limits_t *desired,
	      ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle)
{
	int err = PTL_OK;

	base_forget_warnings();
	if (!ni_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	if (interface >= PTL_MAX_INTERFACES)
		return PTL_IFACE_INVALID;
	pthread_mutex_lock(&table_mutex);
	if (ptl_ni_table[interface])
		ptl_ni_table[interface]->refs++;
	else
		err = explained(ni_create(interface, pid, desired));
	if (err == PTL_OK) {
		if (actual)
			*actual = ptl_ni_table[interface]->view.limits;
		*ni_handle = ptl_ni_handle(ptl_ni_table[interface]);
	}
	pthread_mutex_unlock(&table_mutex);
	return err;
}

int PtlNIFini(ptl_handle_ni_t ni_handle)
{
	struct ptl_ni *ni;
	int err = PTL_OK;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	pthread_mutex_lock(&table_mutex);
	ni = ptl_ni_of(ni_handle, PTL_KIND_NI);
	if (!ni)
		err = PTL_NI_INVALID;
	else if (--ni->refs == 0)
		ni_close(ni);
	pthread_mutex_unlock(&table_mutex);
	return err;
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool status(struct ptl_ni *ni, ptl_sr_index_t index, ptl_sr_value_t *value)
{
	uint32_t pt = index & 0x1fffffff;

	if (index < PTL_SR_LAST_) {
		*value = ni->view.r->stat.sr[index];
		return true;
	}
	if (index - pt != PTL_SR_MLIST_LEN(0) && index - pt != PTL_SR_MLIST_MAX(0))
		return false;
	if (pt > (uint32_t)ni->view.limits.max_pt_index)
		return false;
	*value = index - pt == PTL_SR_MLIST_LEN(0) ? ni->view.pt[pt].count : ni->view.pt[pt].max;
	return true;
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t register_index, ptl_sr_value_t *value)
{
	struct ptl_ni *ni;
	bool ok;

	if (!value)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	ptl_progress(ni);
	ok = status(ni, register_index, value);
	ptl_leave(ni);
	return ok ? PTL_OK : PTL_SR_INDEX_INVALID;
}

int PtlNIDist(ptl_handle_ni_t ni_handle, ptl_process_id_t process, unsigned long *distance)
{
	struct ptl_ni *ni;

	if (!distance)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_ni_of(ni_handle, PTL_KIND_NI);
	return ni ? ptl_distance(ni, process, distance) : PTL_NI_INVALID;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle)
{
	struct ptl_ni *ni;
	bool ok;

	if (!ni_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(handle, handle >> 30);
	if (!ni)
		return PTL_HANDLE_INVALID;
	ok = ptl_names_object(ni, handle);
	if (ok)
		*ni_handle = ptl_ni_handle(ni);
	ptl_leave(ni);
	return ok ? PTL_OK : PTL_HANDLE_INVALID;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid)
{
	struct ptl_ni *ni;

	if (!uid)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_ni_of(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	*uid = ni->uid;
	return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_id_t *id)
{
	struct ptl_ni *ni;

	if (!id)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_ni_of(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	*id = ni->id;
	return PTL_OK;
}

int PtlGetJid(ptl_handle_ni_t ni_handle, ptl_jid_t *jid)
{
	struct ptl_ni *ni;

	if (!jid)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_ni_of(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	*jid = ni->jid;
	return PTL_OK;
}

const char *PtlInitReason(void)
{
	return base_warnings();
}

int PtlPeerReason(ptl_handle_ni_t ni_handle, ptl_process_id_t process, ptl_ni_fail_t *fail_type,
		  char *text, ptl_size_t size)
{
	struct ptl_ni *ni;

	if (!fail_type || !text || !size)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	*fail_type = ptl_peer_failed_text(ni, process, text, size);
	ptl_leave(ni);
	return PTL_OK;
}

int PtlPeerDrop(ptl_handle_ni_t ni_handle, ptl_process_id_t process)
{
	struct ptl_ni *ni;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	ptl_drop(ni, process);
	ptl_leave(ni);
	return PTL_OK;
}

int PtlProgress(ptl_handle_any_t handle, ptl_time_t timeout)
{
	uint64_t end =
		timeout == PTL_TIME_FOREVER ? UINT64_MAX : base_now_ns() + timeout * 1000000ull;
	struct ptl_ni *ni;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(handle, handle >> 30);
	if (!ni)
		return PTL_HANDLE_INVALID;
	if (!ptl_names_object(ni, handle)) {
		ptl_leave(ni);
		return PTL_HANDLE_INVALID;
	}
	for (unsigned int idle = 1; !ptl_progress(ni) && base_now_ns() < end; idle++)
		ni->nal->idle(ni, idle, end);
	ptl_leave(ni);
	return PTL_OK;
}

unsigned int PtlNIDebug(ptl_handle_ni_t ni_handle, unsigned int mask)
{
	struct ptl_ni *ni = ptl_ni_of(ni_handle, PTL_KIND_NI);
	return atomic_exchange(ni ? &ni->debug : &debug_default, mask);
}
