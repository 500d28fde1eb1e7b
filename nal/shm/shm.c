/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The shared-memory NAL's table of operations: opening and closing, progress, and a lock whose
 * holder is dead or stopped.
 */
#define _GNU_SOURCE
#include "nal/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/shared.h"

static const char *shm_unusable(void)
{
	static char why[320];
	int fd = base_shared_make("postern-probe", 4096, &(struct base_shared_span){ 0, 4096 }, 1,
				  why, sizeof(why));

	if (fd < 0)
		return why;
	close(fd);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		snprintf(why, sizeof(why), "Unix sockets: %m");
		return why;
	}
	close(fd);
	return NULL;
}

static void shm_describe(char *text, size_t len)
{
	uint64_t word = 1, scratch = 0;

	snprintf(text, len, "cross-memory attach %s",
		 shm_copy_allowed(getpid(), (uintptr_t)&word, word, (uintptr_t)&scratch)
			 ? "works: peers move data by themselves"
			 : "is forbidden: long messages go through the pipe");
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* We are our own first peer: the same ring, with memcpy instead of CMA. */
static bool add_self(struct shm *s)
{
	struct shm_peer *p = shm_peer_add(s, s->ni->id);

	if (!p)
		return false;
	p->there = p->index;
	p->pid = getpid();
	p->uid = s->ni->uid;
	p->jid = s->ni->jid;
	p->cma = true;
	p->out = p->in;
	shm_peer_live(s, p, &s->ni->view);
	return true;
}

static void unmap_rings(struct shm *s)
{
	for (uint32_t i = 0; i < SHM_CHANNELS; i++)
		shm_ring_unmap(&s->in[i]);
}

static int shm_open_ni(struct ptl_ni *ni, ptl_pid_t want)
{
	struct shm *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return PTL_NO_SPACE;
	s->ni = ni;
	s->area = (struct shm_area *)ni->view.nal;
	shm_area_init(s->area, &ni->view);
	s->sizes = s->area->sizes;
	for (uint32_t i = 0; i < SHM_CHANNELS; i++)
		s->life[i] = -1;
	for (int k = 0; k < SHM_LENGTH_CLASSES; k++)
		base_tuner_init(&s->in_turns[k], 2, 0);
	s->area->calls_only = base_config()->ptl_progress == BASE_PROGRESS_POLL;
	/* At least one byte travels with its message, so the receiver has all of a cancel
	 * request at once (mpi_shim/pt2pt/cancel.c). */
	s->eager = base_config()->ptl_shm_eager ? (uint32_t)base_config()->ptl_shm_eager : 1;
	ni->view.r->stat.peer_off = (uint64_t)((char *)s->area->peer - (char *)ni->view.r);
	snprintf(ni->view.r->stat.progress, sizeof(ni->view.r->stat.progress),
		 base_config()->ptl_shm_cma == BASE_CMA_OFF ? "helper threads; PTL_SHM_CMA=off"
							    : "peers, by cross-memory attach");
	ni->nal_state = s;
	/* Without a launcher the jid is the pid, so the pid is claimed first, and before any
	 * peer is added. */
	ptl_lock(ni);
	err = shm_helper_open(s, want);
	if (err == PTL_OK) {
		if (ni->jid == PTL_JID_ANY)
			ni->jid = ni->id.pid;
		ni->view.r->stat.jid = ni->jid;
		if (!add_self(s))
			err = PTL_NO_SPACE;
	}
	if (err == PTL_OK && base_config()->ptl_shm_bias == BASE_BIAS_AUTO && !s->area->calls_only)
		ptl_lock_allow_bias(ni);
	ptl_unlock(ni);
	if (err == PTL_OK)
		return PTL_OK;
	if (s->helper)
		shm_helper_close(s);
	unmap_rings(s);
	ni->nal_state = NULL;
	free(s);
	return err;
}

#define LINGER_NS 1000000000ull

/* Wait a bounded time for room in the rings of peers that have deferred messages. */
static void linger_shm(struct shm *s)
{
	uint64_t end = base_now_ns() + LINGER_NS;
	bool held = true;

	while (held && base_now_ns() < end) {
		ptl_lock(s->ni);
		held = false;
		shm_take_all(s, 64);
		for (uint32_t i = 0; i < SHM_CHANNELS; i++)
			held |= s->peer[i] && s->peer[i]->deferred;
		shm_leave(s->ni, false);
		if (held)
			usleep(100);
	}
}

/* Peers move long messages into and out of our memory by themselves. Stop that: mark the rest
 * as claimed, and wait a bounded time for the moves in progress. Locked. */
static void revoke_deliveries(struct shm *s)
{
	struct ptl_view *v = &s->ni->view;
	uint64_t end = base_now_ns() + LINGER_NS;

	/* the view's own bound: peers can write to the region */
	for (uint32_t i = 0; i < v->r->deliveries_high && i < v->ndeliveries; i++) {
		struct ptl_delivery *l = &v->delivery[i];
		uint64_t gone = (uint64_t)l->gen << 32 | UINT32_MAX;
		uint32_t out;

		if (!(l->gen & 1)) /* not in use */
			continue;
		out = (uint32_t)atomic_exchange(&l->claim[0], gone);
		out += (uint32_t)atomic_exchange(&l->claim[1], gone);
		while (atomic_load(&l->done) < out && base_now_ns() < end)
			sched_yield();
	}
}

/* The region's lock is never released again: no peer runs the engine from here on. */
static void shm_close_ni(struct ptl_ni *ni)
{
	struct shm *s = shm_of(ni);

	linger_shm(s);
	atomic_store(&s->area->closed, 1);
	shm_helper_close(s);
	ptl_lock(ni);
	revoke_deliveries(s);
	for (uint32_t i = 0; i < SHM_CHANNELS; i++) {
		struct shm_peer *p = s->peer[i];

		if (!p)
			continue;
		if (p->sock >= 0)
			shutdown(p->sock, SHUT_RDWR); /* a forked child may hold a copy open */
		p->next_gone = s->gone;
		s->gone = p;
	}
	shm_peer_reap(s, true);
	unmap_rings(s);
	free(s);
	ni->nal_state = NULL;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static unsigned long shm_distance(struct ptl_ni *ni, ptl_process_id_t id)
{
	return id.pid == ni->id.pid ? 0 : 1;
}

/* ---- progress -------------------------------------------------------------------------------- */

static bool shm_progress(struct ptl_ni *ni)
{
	struct shm *s = shm_of(ni);
	bool any = shm_take_all(s, 64);

	atomic_store_explicit(&ni->rounds,
			      atomic_load_explicit(&ni->rounds, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (shm_long_any(s))
		any |= shm_long_step(s);
	if (any && s->wait.since)
		shm_wait_over(s);
	return any;
}

static void shm_found(struct ptl_ni *ni)
{
	struct shm *s = shm_of(ni);

	if (s->wait.since)
		shm_wait_over(s);
}

static void shm_own_events(struct ptl_ni *ni, bool handlers)
{
	atomic_store(&ni->view.r->no_run, handlers);
}

static void shm_counted(struct ptl_ni *ni)
{
	shm_peer_count_cores(shm_of(ni));
}

/* ---- a lock that is not released ------------------------------------------------------------- */

static char state_of(pid_t pid)
{
	char path[64], text[256], *paren;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	paren = strrchr(text, ')');
	return paren && paren[1] == ' ' ? paren[2] : 0;
}

#define UNHELPED_NS 10000000 /* until the next try, if it did not leave */

/* Let a peer that was stopped inside our region run until it has left. */
static void let_leave(struct ptl_ni *ni, pid_t pid, uint32_t token)
{
	struct ptl_region *r = ni->view.r;
	uint32_t word;

	if (shm_let_run(pid, &r->lock, PTL_LOCK_TOKEN, token)) {
		/* another thread may wait for the lock, too */
		__atomic_fetch_add(&r->stat.counts[PTL_COUNT_RESUMED], 1, __ATOMIC_RELAXED);
		return;
	}
	word = atomic_load(&r->lock);
	if ((word & PTL_LOCK_TOKEN) == token)
		ptl_futex_wait(&r->lock, word, UNHELPED_NS);
}

/* Return whether the process is dead. A socket that has hung up does not tell. A process
 * without a pid here takes no lock of ours; if it holds one all the same, there is nothing
 * else to check. */
static bool process_gone(pid_t pid)
{
	char state;

	if (pid <= 0)
		return true;
	state = state_of(pid);
	return state == 'Z' || state == 'X' || (kill(pid, 0) < 0 && errno == ESRCH);
}

/* Not locked: the caller waits for the lock. */
static bool shm_holder_dead(struct ptl_ni *ni, uint32_t token)
{
	struct shm *s = shm_of(ni);
	uint32_t i = token - PTL_LOCK_PEER(0);

	if (!s || i >= SHM_CHANNELS || s->life[i] < 0)
		return false;
	if (shm_peer_ended(s, i))
		return !s->by_socket[i] || process_gone(s->pid[i]);
	if (s->pid[i] > 0 && state_of(s->pid[i]) == 'T')
		let_leave(ni, s->pid[i], token);
	return false;
}

const struct nal_ops nal_shm_ops = {
	.name = "shm",
	.unusable = shm_unusable,
	.region_bytes = shm_area_bytes,
	.far_bytes = shm_channel_bytes,
	.open = shm_open_ni,
	.close = shm_close_ni,
	.distance = shm_distance,
	.knows = shm_knows,
	.connect = shm_connect,
	.drop = shm_drop,
	.send = shm_start,
	.segment = shm_segment,
	.progress = shm_progress,
	.found = shm_found,
	.leave = shm_leave,
	.idle = shm_idle,
	.holder_dead = shm_holder_dead,
	.own_events = shm_own_events,
	.counted = shm_counted,
	.forked = shm_helper_forked,
	.failed_over = shm_failed_over,
	.describe = shm_describe,
};
