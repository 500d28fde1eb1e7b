/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The table of peers: found by id on every send, added at first use, marked failed when they die. A
 * peer's number is that of its channel in our region. Our region's lock guards all of it.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "nal/shm/shm.h"
#include "portals/engine/debug.h"

#define NSLOTS (2 * SHM_CHANNELS)

static uint32_t peer_slot_of(ptl_process_id_t id)
{
	return (id.nid * 0x9e3779b1u ^ id.pid * 0x85ebca6bu) >> 7 & (NSLOTS - 1);
}

static bool same_process(ptl_process_id_t a, ptl_process_id_t b)
{
	return a.nid == b.nid && a.pid == b.pid;
}

struct shm_peer *shm_peer_find(struct shm *s, ptl_process_id_t id)
{
	if (s->last && same_process(s->last->id, id))
		return s->last;
	for (uint32_t i = peer_slot_of(id); s->slots[i]; i = (i + 1) & (NSLOTS - 1)) {
		struct shm_peer *p = s->peer[s->slots[i] - 1];

		if (same_process(p->id, id))
			return s->last = p;
	}
	return NULL;
}

static void hash_add(struct shm *s, struct shm_peer *p)
{
	uint32_t i = peer_slot_of(p->id);

	while (s->slots[i])
		i = (i + 1) & (NSLOTS - 1);
	s->slots[i] = p->index + 1;
}

/* Removals are rare and peers few: rebuild the whole table. */
static void hash_remove(struct shm *s, struct shm_peer *p)
{
	s->peer[p->index] = NULL;
	s->last = NULL;
	memset(s->slots, 0, sizeof(s->slots));
	for (uint32_t i = 0; i < SHM_CHANNELS; i++)
		if (s->peer[i])
			hash_add(s, s->peer[i]);
}

/* A channel is free if no peer has it, not even one that is gone and not yet freed. */
static bool channel_free(const struct shm *s, uint32_t i)
{
	if (s->peer[i])
		return false;
	for (const struct shm_peer *p = s->gone; p; p = p->next_gone)
		if (p->index == i)
			return false;
	return true;
}

/* Map a channel's ring at its first use. */
static bool have_ring(struct shm *s, uint32_t i)
{
	int err;

	if (i >= s->sizes.channels) {
		base_warn("there is shared memory for messages from %u processes and no more%s",
			  s->sizes.channels,
			  i < SHM_CHANNELS ? "; raise `ulimit -f`, or set PTL_SHM_RING_KIB and "
					     "PTL_SHM_PIPE_KIB to less"
					   : "");
		return false;
	}
	err = s->in[i].lines ? 0
			     : shm_ring_init(&s->in[i], &s->ni->view, s->ni->view.fd, i, &s->sizes);
	if (err)
		base_warn("no shared memory for messages from another process: %s; raise "
			  "`ulimit -v`, or set TMPDIR to where there is more room",
			  strerror(-err));
	return !err;
}

struct shm_peer *shm_peer_add(struct shm *s, ptl_process_id_t id)
{
	struct ptl_stat_peer *st;
	struct shm_peer *p;
	uint32_t i = 0;

	while (i < s->sizes.channels && !channel_free(s, i))
		i++;
	if (!have_ring(s, i))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->index = i;
	p->id = id;
	p->sock = -1;
	p->state = SHM_CONNECTING;
	p->eager = SHM_RING_LEAST / 4; /* until we see its ring */
	p->deferred_end = &p->deferred;
	p->in = s->in[i];
	shm_path_init(p);
	s->peer[i] = p;
	hash_add(s, p);
	st = &s->area->peer[i];
	memset(st, 0, sizeof(*st));
	st->id = id;
	if (i >= s->ni->view.r->stat.peer_high)
		s->ni->view.r->stat.peer_high = i + 1;
	return p;
}

/* ---- cores ----------------------------------------------------------------------------------- */

/* Longer than any exchange between processes that all run. Longer, too, than an exchange of
 * processes that all sleep and wake each other: else they would wait for wake-ups for ever. */
#define SPIN_US 1000

static int bits(const uint64_t *mask)
{
	int n = 0;

	for (int i = 0; i < 16; i++)
		n += __builtin_popcountll(mask[i]);
	return n;
}

/* With more processes than cores, a spinning wait takes the core from the process it waits
 * for. */
void shm_peer_count_cores(struct shm *s)
{
	uint64_t mine[16] = { 0 }, all[16];
	int processes = 1, with_mine = 1;
	long set = base_config()->ptl_spin_us;

	if (sched_getaffinity(0, sizeof(mine), (cpu_set_t *)mine) < 0)
		mine[0] = 1;
	memcpy(s->area->cpus, mine, sizeof(mine));
	memcpy(all, mine, sizeof(mine));
	for (uint32_t k = 0; k < s->nlive; k++) {
		const struct shm_peer *p = s->peer[s->live[k]];
		const uint64_t *theirs = ((const struct shm_area *)p->view.nal)->cpus;
		bool within = true;

		if (p->index == SHM_SELF)
			continue;
		for (int i = 0; i < 16; i++) {
			all[i] |= theirs[i];
			within &= !(theirs[i] & ~mine[i]);
		}
		processes++;
		with_mine += within;
	}
	if (set >= 0)
		s->ni->spin_ns = (uint64_t)set * 1000;
	else if (processes > bits(all) || with_mine > bits(mine) ||
		 s->ni->neighbours > sysconf(_SC_NPROCESSORS_ONLN)) /* some not connected yet */
		s->ni->spin_ns = 0;
	else
		s->ni->spin_ns = SPIN_US * 1000;
	s->wait.spin_ns = s->ni->spin_ns;
	for (uint32_t k = 0; k < s->nlive; k++)
		s->peer[s->live[k]]->out.lap = s->ni->spin_ns ? SHM_LAP_ALONE : SHM_LAP_LEAST;
}

/* ---- coming and going ------------------------------------------------------------------------ */

void shm_peer_poll(struct shm *s, struct shm_peer *p)
{
	uint32_t n = atomic_load_explicit(&s->nlive, memory_order_relaxed);

	if (p->polled)
		return;
	p->polled = true;
	atomic_store_explicit(&s->live[n], p->index, memory_order_relaxed);
	atomic_store_explicit(&s->nlive, n + 1, memory_order_release);
}

/* One thread at a time. While the owner's lock is held the region cannot be extended again. So
 * a thread that holds that lock and runs the engine sees the same size until it releases the
 * lock. */
bool shm_peer_follow_any(struct shm *s, struct shm_peer *p)
{
	int err = 0;

	while (atomic_exchange_explicit(&p->following, true, memory_order_acquire))
		sched_yield();
	if (p->index == SHM_SELF) {
		p->view = s->ni->view;
	} else if (!ptl_region_followed(&p->view)) {
		err = ptl_region_follow(&p->view);
		ptl_region_store_mapping(&p->view, p->there);
	}
	atomic_store_explicit(&p->following, false, memory_order_release);
	if (err) {
		if (!atomic_exchange(&p->given_up, true))
			base_warn(
				"cannot map all of the memory of process %d: %s; raise `ulimit -v`",
				(int)p->pid, strerror(-err));
		/* the helper threads of both sides notice */
		send(p->sock, &(const char){ SHM_DOORBELL_GIVEN_UP }, 1,
		     MSG_DONTWAIT | MSG_NOSIGNAL);
		shutdown(p->sock, SHUT_RDWR);
	}
	return !err;
}

void shm_peer_live(struct shm *s, struct shm_peer *p, const struct ptl_view *view)
{
	struct ptl_stat_peer *st = &s->area->peer[p->index];

	p->view = *view;
	ptl_region_store_mapping(&p->view, p->there);
	p->eager = p->out.count * SHM_LINE / 4;
	p->state = SHM_LIVE;
	if (p->index != SHM_SELF)
		shm_peer_poll(s, p);
	st->os_pid = (uint32_t)p->pid;
	st->flags = p->cma ? PTL_PEER_CMA : 0;
	strcpy(st->nal, "shm");
	st->state = 1;
	if (ptl_debugs(s->ni, PTL_DBG_SETUP))
		ptl_debug(s->ni, "connected to nid 0x%08x pid %u, process %d, %s", p->id.nid,
			  p->id.pid, (int)p->pid,
			  p->cma ? "with cross-memory attach" : "without cross-memory attach");
	ptl_found(s->ni, s->ni->nal, p->id);
	shm_peer_count_cores(s);
	shm_flush_deferred(s, p);
}

static void not_live(struct shm *s, struct shm_peer *p)
{
	uint32_t n = atomic_load_explicit(&s->nlive, memory_order_relaxed);

	for (uint32_t k = 0; k < n; k++)
		if (s->live[k] == p->index) {
			atomic_store_explicit(&s->live[k], s->live[n - 1], memory_order_relaxed);
			atomic_store_explicit(&s->nlive, n - 1, memory_order_relaxed);
			return;
		}
}

static void drop_deferred(struct shm_peer *p)
{
	struct shm_deferred *d, *next;

	for (d = p->deferred; d; d = next) {
		next = d->next;
		free(d);
	}
	p->deferred = NULL;
	p->deferred_end = &p->deferred;
}

static void unlist_run(struct shm *s, struct shm_peer *p)
{
	struct shm_peer **at;

	for (at = &s->run; *at; at = &(*at)->next_run)
		if (*at == p) {
			*at = p->next_run;
			p->run_wanted = false;
			return;
		}
}

static void unlist_unsure(struct shm *s, struct shm_peer *p)
{
	struct shm_peer **at = &s->unsure;

	while (*at && *at != p)
		at = &(*at)->next_unsure;
	if (*at)
		*at = p->next_unsure;
	p->unsure = false;
}

bool shm_peer_ended(const struct shm *s, uint32_t channel)
{
	bool by_socket = atomic_load(&s->by_socket[channel]);
	struct pollfd f = {
		.fd = atomic_load(&s->life[channel]),
		.events = by_socket ? POLLRDHUP : POLLIN,
	};

	return f.fd >= 0 && poll(&f, 1, 0) == 1 && f.revents & (f.events | POLLHUP);
}

void shm_peer_failed(struct shm *s, struct shm_peer *p, ptl_ni_fail_t fail, const char *why)
{
	struct ptl_answerer who = { p->id, p->uid, p->jid };
	bool was_live = p->state == SHM_LIVE;
	bool closed = was_live && atomic_load(&((const struct shm_area *)p->view.nal)->closed);

	/* A message that it had sent completely before it died still counts; answers to it are no
	 * longer sent. */
	p->state = SHM_GONE;
	if (was_live) {
		shm_take_all(s, UINT32_MAX);
		not_live(s, p);
		if (!closed && !p->dropped)
			s->ni->view.r->stat.counts[PTL_COUNT_PEERS_LOST]++;
	}
	if (ptl_debugs(s->ni, PTL_DBG_SETUP))
		ptl_debug(s->ni, "nid 0x%08x pid %u: %s: %s", p->id.nid, p->id.pid,
			  PtlNIFailStr(PTL_INVALID_HANDLE, fail), why);
	ptl_peer_failed(s->ni, s->ni->nal, p->id, closed ? PTL_NI_PEER_DEAD : fail, why);
	drop_deferred(p);
	ptl_engine_peer_failed(&s->ni->engine, p->index, fail, &who);
	unlist_run(s, p);
	unlist_unsure(s, p);
	hash_remove(s, p);
	s->area->peer[p->index].state = 0;
	p->next_gone = s->gone;
	s->gone = p;
	shm_peer_reap(s, false);
}

void shm_peer_reap(struct shm *s, bool all)
{
	struct shm_peer **at = &s->gone, *p;

	while ((p = *at)) {
		if (p->users && !all) {
			at = &p->next_gone;
			continue;
		}
		*at = p->next_gone;
		if (!all) /* else it is unmapped next */
			shm_ring_reset(&s->in[p->index], s->ni->view.bounded);
		if (p->index != SHM_SELF) {
			shm_ring_unmap(&p->out);
			ptl_region_unmap(&p->view);
		}
		if (s->life[p->index] >= 0)
			close(atomic_exchange(&s->life[p->index], -1));
		if (p->sock >= 0)
			close(p->sock);
		drop_deferred(p);
		free(p);
	}
}
