/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The calls on event queues: allocation, retrieval, waiting, handlers (3.3 section 3.11).
 */
#include <portals3_ext.h>
#include <sched.h>
#include <string.h>

#include "base/cpu.h"
#include "portals/api/objects.h"
#include "portals/api/route.h"
#include "portals/engine/debug.h"

/* The handler of a queue reads its events from the queue, so keep room for a burst, however
 * small the queue. */
#define HANDLER_ROOM 4096

/* ---- allocation ------------------------------------------------------------------------------ */

static int eq_make(struct ptl_ni *ni, ptl_size_t count, ptl_eq_handler_t handler, uint32_t *index)
{
	struct ptl_region *r = ni->view.r;
	uint64_t *sr = r->stat.sr;
	uint64_t want = handler && count < HANDLER_ROOM ? HANDLER_ROOM : count;
	uint64_t records = 2, size;
	struct ptl_eq *eq;
	uint32_t i = r->eq_free;

	if (want > ni->view.part_size[PTL_PART_ARENA] / sizeof(struct ptl_evt))
		return PTL_NO_SPACE;
	if (i == PTL_NIL && r->stat.eq_high >= (uint32_t)ni->view.limits.max_eqs)
		return PTL_NO_SPACE;
	while (records < want)
		records *= 2;
	size = records * sizeof(struct ptl_evt);
	eq = &ni->view.eq[i == PTL_NIL ? r->stat.eq_high : i];
	eq->slots = ptl_arena_alloc(&ni->arena, &ni->view, &size);
	if (!eq->slots)
		return PTL_NO_SPACE;
	if (i == PTL_NIL)
		__atomic_store_n(&ni->view.eq[i = r->stat.eq_high].state, ni->gen,
				 __ATOMIC_RELAXED);
	else
		r->eq_free = eq->next_free;
	eq->head = 0;
	__atomic_store_n(&eq->tail, 0, __ATOMIC_RELAXED);
	if (i == r->stat.eq_high)
		__atomic_store_n(&r->stat.eq_high, i + 1, __ATOMIC_RELEASE);
	eq->mask = (uint32_t)(size / sizeof(struct ptl_evt) - 1);
	eq->owed = eq->refs = 0;
	ni->handler[i] = handler;
	__atomic_store_n(&ni->handled[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&eq->state,
			 (eq->state & 0xff00) | PTL_OBJ_LIVE | (handler ? PTL_OBJ_HANDLER : 0),
			 __ATOMIC_RELAXED);
	sr[PTL_SR_EQS_ALLOC]++;
	if (++sr[PTL_SR_EQS_CUR] > sr[PTL_SR_EQS_MAX])
		sr[PTL_SR_EQS_MAX] = sr[PTL_SR_EQS_CUR];
	if (handler) {
		ni->nhandlers++;
		ni->nal->own_events(ni, true);
		atomic_store_explicit(&ni->handlers, true, memory_order_relaxed);
	}
	if (ptl_debugs(ni, PTL_DBG_EQ))
		ptl_debug(ni, "event queue %u with room for %u", i, eq->mask + 1);
	*index = i;
	return PTL_OK;
}

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_eq_handler_t eq_handler,
	       ptl_handle_eq_t *eq_handle)
{
	struct ptl_ni *ni;
	uint32_t i;
	int err;

	if (!eq_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	if (count == 0) {
		*eq_handle = PTL_EQ_NONE;
		err = PTL_OK;
	} else {
		err = eq_make(ni, count, eq_handler, &i);
		if (err == PTL_OK)
			*eq_handle = ptl_handle(PTL_KIND_EQ, ni->index, i, ni->view.eq[i].state);
	}
	ptl_leave(ni);
	return err;
}

int PtlEQFree(ptl_handle_eq_t eq_handle)
{
	struct ptl_ni *ni;
	struct ptl_eq *eq;
	int err = PTL_OK;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(eq_handle, PTL_KIND_EQ);
	if (!ni)
		return PTL_EQ_INVALID;
	eq = ptl_eq_of(ni, eq_handle);
	if (!eq) {
		err = PTL_EQ_INVALID;
	} else if (eq->refs) {
		err = PTL_EQ_IN_USE;
	} else {
		ptl_arena_free(&ni->arena, &ni->view, eq->slots,
			       (eq->mask + 1ull) * sizeof(struct ptl_evt));
		__atomic_store_n(&eq->state, ptl_next_gen(eq->state), __ATOMIC_RELAXED);
		if (ni->handler[ptl_handle_index(eq_handle)] && --ni->nhandlers == 0) {
			atomic_store_explicit(&ni->handlers, false, memory_order_relaxed);
			ni->nal->own_events(ni, false);
		}
		ni->handler[ptl_handle_index(eq_handle)] = NULL;
		eq->next_free = ni->view.r->eq_free;
		ni->view.r->eq_free = ptl_handle_index(eq_handle);
		ni->view.r->stat.sr[PTL_SR_EQS_FREED]++;
		ni->view.r->stat.sr[PTL_SR_EQS_CUR]--;
	}
	ptl_leave(ni);
	return err;
}

/* ---- retrieval ------------------------------------------------------------------------------- */

static void show_event(struct ptl_ni *ni, const struct ptl_evt *t, ptl_event_t *event)
{
#define SAME(theirs, ours)                                                                         \
	static_assert(offsetof(ptl_event_t, theirs) == offsetof(struct ptl_evt, ours), "alike")
	SAME(type, type);
	SAME(initiator, initiator);
	SAME(uid, uid);
	SAME(jid, jid);
	SAME(pt_index, pt_index);
	SAME(match_bits, match_bits);
	SAME(rlength, rlength);
	SAME(mlength, mlength);
	SAME(offset, offset);
	SAME(md_handle, md_handle);
	SAME(md.start, md_start);
	SAME(md.length, md_length);
#undef SAME
	memcpy((void *)event, t, offsetof(ptl_event_t, md.threshold));
	event->md.threshold = t->md_threshold;
	event->md.max_size = t->md_max_size;
	event->md.options = t->md_options;
	event->md.user_ptr = (void *)(uintptr_t)t->md_user_ptr;
	event->md.eq_handle =
		ptl_handle(PTL_KIND_EQ, ni->index, t->md_eq, ni->view.eq[t->md_eq].state);
	event->hdr_data = t->hdr_data;
	event->link = t->link;
	event->ni_fail_type = t->ni_fail_type;
	event->sequence = t->sequence;
}

static const struct ptl_evt *evt_at(const struct ptl_ni *ni, const struct ptl_eq *eq, uint64_t n)
{
	return (const struct ptl_evt *)ptl_arena_at(&ni->view, eq->slots) + (n & eq->mask);
}

enum { FEW = 16 }; /* queues that a wait looks up only once; usually all */

/* A wait: for events, up to `max` of them. With event NULL: until a queue has an event, which
 * stays. */
struct ptl_wait {
	const ptl_handle_eq_t *eqs;
	int n;
	ptl_event_t *event;
	int max;
	ptl_inline_handler_t inline_handler;
	bool leaves_yield;    /* a yield that is due is left to the caller: count is -1 then */
	bool asleep;          /* sleep without polling first */
	int count;            /* events taken */
	int which;            /* queue of the first event, or of an error */
	const uint64_t *word; /* NULL: no word is watched */
	uint64_t least;
	struct ptl_eq **eq;
	struct ptl_wait *next; /* the next wait for events in progress on this interface */
};

/* Does a thread wait for the events of this queue? Locked. */
static bool eq_awaited(const struct ptl_ni *ni, ptl_handle_eq_t eq)
{
	for (const struct ptl_wait *w = ni->waits; w; w = w->next)
		for (int i = 0; i < w->n; i++)
			if (w->eqs[i] == eq)
				return true;
	return false;
}

/* Take the oldest event that is still there. PTL_EQ_DROPPED once per gap before it. */
static int take_event(struct ptl_ni *ni, struct ptl_eq *eq, ptl_event_t *event, bool remove)
{
	int err = PTL_OK;

	if (eq->head == eq->tail)
		return PTL_EQ_EMPTY;
	if (eq->tail - eq->head > eq->mask + 1ull) {
		err = PTL_EQ_DROPPED;
		if (remove)
			eq->head = eq->tail - (eq->mask + 1ull);
	}
	show_event(
		ni,
		evt_at(ni, eq, err == PTL_OK || remove ? eq->head : eq->tail - (eq->mask + 1ull)),
		event);
	if (remove)
		eq->head++;
	if (ptl_debugs(ni, PTL_DBG_EVENT))
		ptl_debug(ni, "%s %u taken, mlength %llu, failure %u", PtlEventKindStr(event->type),
			  event->sequence, (unsigned long long)event->mlength, event->ni_fail_type);
	return err;
}

enum { VAIN_POLLS = 8, VAIN_NS = 100000 };

/*
 * Call after a poll that did not wait. A thread that polls in vain many times within a short
 * while waits by polling. Where the processors are oversubscribed, others need its processor,
 * and would get it only after a time slice of milliseconds. Locked. True: yield, after the
 * unlock.
 */
static inline bool polls_in_vain(struct ptl_ni *ni, bool found)
{
	if (ni->spin_ns)
		return false;
	if (found) {
		ni->vain = 0;
		return false;
	}
	if (ni->vain++ == 0)
		ni->vain_since = base_now_ns();
	if (ni->vain < VAIN_POLLS)
		return false;
	ni->vain = 0;
	return base_now_ns() - ni->vain_since < VAIN_NS;
}

static int get(ptl_handle_eq_t eq_handle, ptl_event_t *event, bool remove)
{
	struct ptl_ni *ni;
	struct ptl_eq *eq;
	int err = PTL_EQ_EMPTY;
	bool yields = false;

	if (!event)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(eq_handle, PTL_KIND_EQ);
	if (!ni)
		return PTL_EQ_INVALID;
	eq = ptl_eq_of(ni, eq_handle);
	if (!eq) {
		err = PTL_EQ_INVALID;
	} else {
		if (eq->head == eq->tail)
			ptl_progress(ni);
		/* events that come while a thread waits belong to that thread */
		if (!eq_awaited(ni, eq_handle))
			err = take_event(ni, eq, event, remove);
		yields = polls_in_vain(ni, err != PTL_EQ_EMPTY);
	}
	ptl_leave(ni);
	if (yields)
		sched_yield();
	return err;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	return get(eq_handle, event, true);
}

int PtlEQPeek(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	return get(eq_handle, event, false);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Queue i; valid after find_queues() and until the lock is released. */
static inline struct ptl_eq *eq_at(struct ptl_ni *ni, const struct ptl_wait *w, int i)
{
	return i < FEW ? w->eq[i] : ptl_eq_of(ni, w->eqs[i]);
}

/* Look the queues up. PTL_EQ_INVALID: queue w->which is not one of this interface. */
static int find_queues(struct ptl_ni *ni, struct ptl_wait *w)
{
	for (int i = 0; i < w->n; i++) {
		struct ptl_eq *eq = NULL;

		if (i == 0 || ptl_ni_of(w->eqs[i], PTL_KIND_EQ) == ni)
			eq = ptl_eq_of(ni, w->eqs[i]);
		if (!eq) {
			w->which = i;
			return PTL_EQ_INVALID;
		}
		if (i < FEW)
			w->eq[i] = eq;
	}
	return PTL_OK;
}

/* Take events of queue i until there are enough. PTL_EQ_DROPPED ends it, with the event after
 * the gap. */
static int take_some(struct ptl_ni *ni, struct ptl_eq *eq, struct ptl_wait *w, int i)
{
	int err = PTL_OK;

	if (w->count == 0)
		w->which = i;
	if (!w->event)
		return PTL_OK;
	do {
		err = take_event(ni, eq, &w->event[w->count++], true);
	} while (err == PTL_OK && w->count < w->max && eq->head != eq->tail);
	return err;
}

/* Poll all queues once, from `first` on, wrapping around. */
static int take_any_event(struct ptl_ni *ni, struct ptl_wait *w, int first)
{
	int found = PTL_EQ_EMPTY;

	for (int k = 0; k < w->n; k++) {
		int i = first + k < w->n ? first + k : first + k - w->n;
		struct ptl_eq *eq = eq_at(ni, w, i);

		if (eq->head == eq->tail)
			continue;
		found = take_some(ni, eq, w, i);
		if (found != PTL_OK || w->count >= w->max)
			break;
	}
	return found;
}

static inline void begin_wait(struct ptl_ni *ni, struct ptl_wait *w)
{
	w->next = ni->waits;
	ni->waits = w;
}

static inline void end_wait(struct ptl_ni *ni, const struct ptl_wait *w)
{
	struct ptl_wait **at = &ni->waits;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

enum { WATCH_ROUNDS = 64, WORD_POLLS = 2 };

/* After a poll of everything else in vain: keep polling the watched word? */
static inline bool watches(const struct ptl_ni *ni, const struct ptl_wait *w, unsigned int rounds)
{
	unsigned int most = WATCH_ROUNDS;

	if (!w->word)
		return false;
	/* a round with a poll of a network takes as long as several without */
	if (atomic_load_explicit(&ni->polled, memory_order_relaxed))
		most /= 8;
	if (rounds >= most || ptl_lock_contended(ni->view.r))
		return false;
	for (int i = 0; i < WORD_POLLS; i++) {
		/* acquire: pairs with the release of the process that wrote it */
		if (__atomic_load_n(w->word, __ATOMIC_ACQUIRE) >= w->least)
			return false;
		base_cpu_relax();
	}
	return true;
}

/* Wait until there is an event, or for `timeout` ms (0: only poll). `ni` is entered. If an
 * event is there already, the clock is not read. */
static int wait_any(struct ptl_ni *ni, struct ptl_wait *w, ptl_time_t timeout)
{
	uint64_t end = timeout == PTL_TIME_FOREVER ? UINT64_MAX : 0;
	int first = w->n > 1 ? (int)(ni->poll_turn++ % (uint32_t)w->n) : 0;
	unsigned int idle = 0;
	int err = take_any_event(ni, w, first);

	if (err != PTL_EQ_EMPTY)
		return err;
	if (w->event) /* events that come are for us */
		begin_wait(ni, w);
	for (unsigned int rounds = 1;; rounds++) {
		bool any, released;

		ni->engine.inline_handler = w->inline_handler;
		ni->engine.inline_eqs = w->eqs;
		ni->engine.inline_neqs = w->n;
		any = ptl_progress(ni);
		/* the handler is valid only for this thread, while it holds the lock */
		ni->engine.inline_handler = NULL;
		err = ni->engine.handled && !ni->engine.posted ? PTL_OK
							       : take_any_event(ni, w, first);
		if (ni->engine.handled && err == PTL_EQ_EMPTY)
			err = PTL_OK;
		ni->engine.handled = 0;
		if (err != PTL_EQ_EMPTY)
			break;
		if (timeout == 0 && watches(ni, w, rounds))
			continue;
		/* reading the clock costs as much as several polls of the rings */
		if (timeout == 0 ||
		    (end && end != UINT64_MAX && rounds % 16 == 0 && base_now_ns() >= end))
			break;
		if (!end)
			end = base_now_ns() + timeout * 1000000ull;
		if (any)
			idle = 0;
		else
			idle = w->asleep ? NAL_IDLE_ASLEEP : idle + 1;
		released = ni->nal->idle(ni, idle, end);
		err = released ? find_queues(ni, w) : PTL_EQ_EMPTY;
		if (released && err != PTL_OK)
			break;
	}
	if (w->event)
		end_wait(ni, w);
	return err;
}

static int poll_queues(struct ptl_wait *w, ptl_time_t timeout)
{
	/* not in struct ptl_wait: the callers' initializers would set it to zeros each time */
	struct ptl_eq *few[FEW];
	struct ptl_ni *ni;
	bool yields = false;
	int err;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	if (w->n <= 0)
		return PTL_EQ_INVALID;
	w->which = 0;
	ni = ptl_enter(w->eqs[0], PTL_KIND_EQ);
	if (!ni)
		return PTL_EQ_INVALID;
	w->eq = few;
	err = find_queues(ni, w);
	if (err == PTL_OK) {
		err = wait_any(ni, w, timeout);
		if (timeout == 0)
			yields = polls_in_vain(ni, err != PTL_EQ_EMPTY);
	}
	ptl_leave(ni);
	w->eq = NULL;
	if (!yields)
		return err;
	if (w->leaves_yield)
		w->count = -1;
	else
		sched_yield();
	return err;
}

int PtlEQPoll(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout, ptl_event_t *event,
	      int *which_eq)
{
	struct ptl_wait w = { .eqs = eq_handles, .n = size, .event = event, .max = 1 };
	int err;

	if (!event || !eq_handles || !which_eq)
		return PTL_SEGV;
	err = poll_queues(&w, timeout);
	if (err != PTL_EQ_EMPTY && err != PTL_NO_INIT)
		*which_eq = w.which;
	return err;
}

int PtlEQAwait(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout, int *which_eq)
{
	struct ptl_wait w = { .eqs = eq_handles, .n = size, .max = 1 };
	int err;

	if (!eq_handles || !which_eq)
		return PTL_SEGV;
	if (timeout == PTL_TIME_ASLEEP) {
		w.asleep = true;
		timeout = PTL_TIME_FOREVER;
	}
	err = poll_queues(&w, timeout);
	if (err != PTL_EQ_EMPTY && err != PTL_NO_INIT)
		*which_eq = w.which;
	return err;
}

int PtlEQPollMany(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout,
		  ptl_inline_handler_t inline_handler, ptl_event_t *events, int max, int *count)
{
	struct ptl_wait w = { .eqs = eq_handles,
			      .n = size,
			      .event = events,
			      .max = max,
			      .inline_handler = inline_handler };
	int err;

	if (!events || !eq_handles || !count || max <= 0)
		return PTL_SEGV;
	if (timeout == PTL_TIME_LOOK) {
		w.leaves_yield = true;
		timeout = 0;
	}
	err = poll_queues(&w, timeout);
	*count = w.count;
	return err;
}

int PtlEQPollWatch(ptl_handle_eq_t *eq_handles, int size, const uint64_t *word, uint64_t least,
		   ptl_inline_handler_t inline_handler, ptl_event_t *events, int max, int *count)
{
	struct ptl_wait w = { .eqs = eq_handles,
			      .n = size,
			      .event = events,
			      .max = max,
			      .inline_handler = inline_handler,
			      .word = word,
			      .least = least };
	int err;

	if (!events || !eq_handles || !word || !count || max <= 0)
		return PTL_SEGV;
	err = poll_queues(&w, 0);
	*count = w.count;
	return err;
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	int which;

	return PtlEQPoll(&eq_handle, 1, PTL_TIME_FOREVER, event, &which);
}

int PtlEQWait_timeout(ptl_handle_eq_t eq_handle, ptl_event_t *event, int timeout)
{
	const int most = (int)((PTL_TIME_FOREVER - 1) / 1000);
	ptl_time_t ms = PTL_TIME_FOREVER;
	int which;

	if (timeout > 0)
		ms = (ptl_time_t)(timeout < most ? timeout : most) * 1000;
	return PtlEQPoll(&eq_handle, 1, ms, event, &which);
}

/* ---- handlers -------------------------------------------------------------------------------- */

/* Find the next event that no handler has seen, and its handler. False: none. Takes and
 * releases the lock. */
static bool next_handled(struct ptl_ni *ni, ptl_event_t *event, ptl_eq_handler_t *handler)
{
	bool found = false;

	ptl_lock(ni);
	for (uint32_t i = 0; i < ni->view.r->stat.eq_high && !found; i++) {
		struct ptl_eq *eq = &ni->view.eq[i];

		if (!(eq->state & PTL_OBJ_LIVE) || !ni->handler[i] || ni->handled[i] == eq->tail)
			continue;
		if (eq->tail - ni->handled[i] > eq->mask + 1ull)
			__atomic_store_n(&ni->handled[i], eq->tail - (eq->mask + 1ull),
					 __ATOMIC_RELAXED);
		show_event(ni, evt_at(ni, eq, ni->handled[i]), event);
		__atomic_store_n(&ni->handled[i], ni->handled[i] + 1, __ATOMIC_RELAXED);
		*handler = ni->handler[i];
		found = true;
	}
	ni->nal->leave(ni, false);
	return found;
}

/* Is there an event that no handler has seen? Not locked: a hint, which is right once all
 * threads have left. */
static bool unhandled(struct ptl_ni *ni)
{
	uint32_t n = __atomic_load_n(&ni->view.r->stat.eq_high, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		const struct ptl_eq *eq = &ni->view.eq[i];

		if (__atomic_load_n(&eq->state, __ATOMIC_RELAXED) & PTL_OBJ_HANDLER &&
		    __atomic_load_n(&eq->tail, __ATOMIC_RELAXED) !=
			    __atomic_load_n(&ni->handled[i], __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void ptl_run_handlers(struct ptl_ni *ni)
{
	ptl_eq_handler_t handler;
	ptl_event_t event;

	/* One thread at a time, events in order. A thread that finds another one running
	 * handlers returns, and so do a handler's own calls. Therefore check once more after
	 * releasing: the exchanges order that check after the posts of those threads. */
	while (!atomic_exchange(&ni->in_handler, true)) {
		while (next_handled(ni, &event, &handler))
			handler(&event);
		atomic_exchange(&ni->in_handler, false);
		if (!unhandled(ni))
			return;
	}
}
