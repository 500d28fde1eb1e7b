/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Leaving the library: deliver on behalf of peers that compute, process what arrived while the
 * lock was held, and leave lazy messages where they are.
 */
#include <string.h>

#include "nal/shm/shm.h"

/* Take the list of peers to deliver for as a private list. Locked. */
static struct shm_peer *grab_runs(struct shm *s)
{
	struct shm_peer *list = s->run;

	s->run = NULL;
	for (struct shm_peer *p = list; p; p = p->next_run)
		p->users++;
	return list;
}

/* Called with the lock again after delivering for `list`. Other threads may have pushed
 * meanwhile and relied on us. `last`: wake the peer instead of another proxy delivery. */
static void settle(struct shm *s, struct shm_peer *list, bool last)
{
	struct shm_peer *next;

	for (struct shm_peer *p = list; p; p = next) {
		next = p->next_run;
		p->users--;
		p->run_wanted = false;
		s->ni->view.r->stat.counts[PTL_COUNT_RUN_FOR_PEER] += p->run_for;
		p->run_for = 0;
		if (p->refused)
			p->cma = p->refused = false;
		if (p->state != SHM_LIVE || !shm_ring_any(&p->out))
			continue;
		if (last) {
			ptl_ring_doorbell(p->view.r);
			shm_helper_doorbell(p);
		} else {
			shm_after_push(s, p);
		}
	}
	if (s->gone)
		shm_peer_reap(s, false);
}

#define ROUNDS_MOST 8

/* Release the lock and wake those that must know. */
static inline void let_go(struct shm *s)
{
	struct ptl_ni *ni = s->ni;
	bool posted = ni->engine.posted;

	ni->engine.posted = false;
	if (ptl_unlock(ni) &&
	    atomic_load_explicit(&s->left, memory_order_relaxed) != SHM_LEFT_UNSEEN &&
	    atomic_load_explicit(&s->nlive, memory_order_relaxed)) /* else nobody can have pushed */
		shm_helper_left(s);
	if (posted)
		ptl_ring_doorbell(ni->view.r);
}

static void __attribute__((noinline)) leave_busy(struct shm *s)
{
	struct ptl_ni *ni = s->ni;
	struct ptl_region *r = ni->view.r;
	struct shm_peer *list;
	unsigned int rounds = 0, runs = 0;
	bool behind;

	for (;;) {
		behind = ptl_handlers_behind(ni);
		list = s->run ? grab_runs(s) : NULL;
		if (!list && shm_long_any(s))
			shm_helper_kick(s);
		let_go(s);
		/* a thread whose handlers are behind returns here after each handled event */
		if (!list && (behind || !shm_rings_pending(s)))
			return;
		/* More keeps coming, but not in this call: a peer that pushes next will deliver it,
		 * or the helper thread. */
		if (!list && ++rounds > ROUNDS_MOST) {
			shm_helper_kick(s);
			return;
		}
		for (struct shm_peer *p = list; p; p = p->next_run)
			shm_deliver_for(s, p);
		ptl_lock(ni);
		shm_take_all(s, 64);
		settle(s, list, ++runs % 16 == 0);
		/* a message whose target computes is ours to move completely before we go */
		while (shm_long_alone(s) && !ptl_lock_contended(r))
			shm_take_all(s, 64);
	}
}

/* As shm_rings_pending(), without the messages that all_lazy() found lazy. A producer that
 * wants room presses however full the ring is, since only processing the ring makes room. */
static bool rings_press(const struct shm *s)
{
	uint32_t n = atomic_load_explicit(&s->nlive, memory_order_relaxed);

	if (atomic_load_explicit(&s->ni->view.r->space, memory_order_relaxed))
		return true;
	for (uint32_t k = 0; k < n; k++) {
		const struct shm_ring *r =
			&s->in[atomic_load_explicit(&s->live[k], memory_order_relaxed)];

		if (shm_ring_any_at(r, shm_ring_unseen(r)) ||
		    atomic_load_explicit(&r->ch->want_space, memory_order_relaxed))
			return true;
	}
	return false;
}

/* Return whether all messages in this ring are lazy; lazy_to records how far they are. */
static bool ring_lazy(struct shm_ring *r)
{
	uint64_t head = r->ch->head, at = shm_ring_unseen(r);

	while (shm_ring_any_at(r, at)) {
		uint32_t line = (uint32_t)(at & (r->count - 1)), lines;
		struct shm_msg m;

		memcpy(&m, shm_ring_line(r, at), sizeof(m)); /* once: see run_ring() in shm_run.c */
		lines = shm_msg_lines(&m, line, r->count);
		if (!lines || at + lines - head > r->count ||
		    (m.kind != SHM_PAD && (m.kind != SHM_PUT || !(m.flags & SHM_LAZY))))
			return false;
		at += lines;
		__atomic_store_n(&r->lazy_to, at, __ATOMIC_RELAXED);
	}
	return !atomic_load_explicit(&r->ch->want_space, memory_order_relaxed);
}

/*
 * Return whether everything in the rings may stay there: nobody sleeps for it, its senders do
 * not rely on us, and none of them waits for room. Locked.
 */
static bool all_lazy(struct shm *s)
{
	const struct ptl_region *r = s->ni->view.r;
	uint32_t n = atomic_load_explicit(&s->nlive, memory_order_relaxed);

	if (atomic_load_explicit(&r->stat.waiters, memory_order_relaxed) ||
	    atomic_load_explicit(&r->space, memory_order_relaxed))
		return false;
	for (uint32_t k = 0; k < n; k++)
		if (!ring_lazy(&s->in[atomic_load_explicit(&s->live[k], memory_order_relaxed)]))
			return false;
	return true;
}

/* Return whether there is more to do than to release the lock. */
static inline bool busy(const struct shm *s)
{
	return s->run || shm_long_any(s) ||
	       atomic_load_explicit(&s->ni->handlers, memory_order_relaxed);
}

/* Messages were there when the lock was free: take the lock again and process them. */
static void __attribute__((noinline)) leave_again(struct shm *s, bool lazily)
{
	for (;;) {
		ptl_lock(s->ni);
		if (!lazily || !all_lazy(s)) {
			shm_take_all(s, 64);
			break;
		}
		if (busy(s))
			break;
		let_go(s);
		if (!rings_press(s))
			return;
	}
	leave_busy(s);
}

void shm_leave(struct ptl_ni *ni, bool lazily)
{
	struct shm *s = shm_of(ni);
	const void *answer;

	if (busy(s)) {
		leave_busy(s);
		return;
	}
	/* most leaves end here */
	answer = s->answer;
	s->answer = NULL;
	let_go(s);
	if (answer)
		base_prefetch_write(answer);
	if (lazily ? rings_press(s) : shm_rings_pending(s))
		leave_again(s, lazily);
}
