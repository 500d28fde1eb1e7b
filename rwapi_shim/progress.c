/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Events: from Portals' queues to where they belong. There are three queues. That of short
 * messages, credit and stages never overflows, since senders spend shares of it. Nor does that of
 * ends, since only so many writes are under way. The one of refused writes may: then reports are
 * lost, and the senders of these short writes do not learn that they were refused.
 */
#include "base/log.h"
#include "rwapi_shim/impl.h"

enum { BATCH = 16 };

struct rw_world rw;

int rw_error_of(int err)
{
	switch (err) {
	case PTL_OK:
		return RWAPI_OK;
	case PTL_NO_SPACE:
		return RWAPI_ENOMEM;
	case PTL_PROCESS_INVALID:
		return RWAPI_EPEER;
	default:
		return RWAPI_ENET;
	}
}

/* ---- peers ----------------------------------------------------------------------------------- */

static uint32_t hash_process(ptl_process_id_t id)
{
	uint64_t h = ((uint64_t)id.nid << 32 | id.pid) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32) & rw.rank_mask;
}

int rw_rank_of(ptl_process_id_t id)
{
	for (uint32_t i = hash_process(id); rw.rank_of[i] >= 0; i = (i + 1) & rw.rank_mask) {
		const ptl_process_id_t *at = &rw.peer[rw.rank_of[i]].id;

		if (at->nid == id.nid && at->pid == id.pid)
			return rw.rank_of[i];
	}
	return -1;
}

bool rw_ranks_init(void)
{
	rw.rank_mask = 3;
	while (rw.rank_mask < (uint32_t)rw.size * 2)
		rw.rank_mask = rw.rank_mask * 2 + 1;
	rw.rank_of = malloc((rw.rank_mask + (size_t)1) * sizeof(*rw.rank_of));
	if (!rw.rank_of)
		return false;
	for (uint32_t i = 0; i <= rw.rank_mask; i++)
		rw.rank_of[i] = -1;
	for (int rank = 0; rank < rw.size; rank++) {
		uint32_t i = hash_process(rw.peer[rank].id);

		while (rw.rank_of[i] >= 0)
			i = (i + 1) & rw.rank_mask;
		rw.rank_of[i] = rank;
	}
	return true;
}

/* Say why no transport leads to a process. Of one that has ended the launcher tells. */
static void explain_loss(int node)
{
	ptl_ni_fail_t fail = PTL_NI_OK;
	char why[512];

	if (PtlPeerReason(rw.ni, rw.peer[node].id, &fail, why, sizeof(why)) == PTL_OK &&
	    fail != PTL_NI_OK && fail != PTL_NI_PEER_DEAD && *why)
		base_warn("RWAPI: rank %d cannot be reached (%s)", node, why);
}

void rw_peer_lost(int node)
{
	struct rw_peer *p = &rw.peer[node];

	if (p->dead)
		return;
	p->dead = true;
	rw.lost += node != rw.rank;
	/* a process that has ended its part may leave before it is known here */
	if (rw.stage < RW_STAGES) {
		if (!rw.worst)
			rw.worst = RWAPI_EPEER;
		if (!rw.closed)
			explain_loss(node);
	}
	rw_drop_held(node);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void take_in_small(const ptl_event_t *ev)
{
	int node = rw_rank_of(ev->initiator);
	rwapi_small_t small;

	if (node < 0) /* only processes of the job are listened to */
		return;
	/* a sender without a slot does not follow the protocol */
	if (rw.peer[node].arrived - rw.peer[node].granted >= rw.share)
		return;
	rw_small_of(ev->match_bits, ev->hdr_data, &small);
	rw_arrived_put(node, &small);
}

static void take_in_control(const ptl_event_t *ev)
{
	int node = rw_rank_of(ev->initiator);
	struct rw_control_in in;
	struct rw_peer *p;

	if (node < 0)
		return;
	p = &rw.peer[node];
	if (!rw_control_decode(
		    ev->match_bits, ev->hdr_data,
		    &(struct rw_control_limits){ p->credited, p->sent, rw.last_sid, p->stage },
		    &in))
		return;
	if (in.kind == RW_CREDIT) {
		rw.news |= p->credited != in.value; /* equal: it only wakes a thread */
		p->credited = in.value;
	} else if (in.kind == RW_DONE) {
		rw.news = true;
		p->stage = (unsigned int)in.value;
	} else if (!rw_is_pending((rwapi_sid_t)in.value)) {
		/* a long write is told by its acknowledgement */
		rw_write_failed((rwapi_sid_t)in.value, RWAPI_EADDRESS);
	}
}

/* Tell the sender of a write that asked for no acknowledgement. */
static void report_refused(const ptl_event_t *ev)
{
	int node = rw_rank_of(ev->initiator);
	rwapi_sid_t sid;

	if (node >= 0 && rw_refusal_decode(ev->match_bits, ev->hdr_data, &sid))
		rw_control(node, RW_REFUSED, (uint64_t)sid, PTL_INJECT_NOW);
}

static void dispatch_event(const ptl_event_t *ev)
{
	if (ev->type == PTL_EVENT_SEND_END || ev->type == PTL_EVENT_ACK)
		rw_write_event(ev);
	else if (ev->type != PTL_EVENT_PUT_END)
		return;
	else if (ev->pt_index == RW_PT_SMALL)
		take_in_small(ev);
	else if (ev->pt_index == RW_PT_CONTROL)
		take_in_control(ev);
	else if (ev->pt_index == RW_PT_WRITE)
		report_refused(ev);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Send what could not be sent for lack of memory, and give all credit that is due. */
static void __attribute__((noinline)) retry_and_grant(bool all)
{
	bool retry = rw.retry;

	rw.retry = false;
	for (int node = 0; node < rw.size; node++) {
		if (retry)
			rw_release_held(node);
		if (retry || all)
			rw_grant(node, all);
	}
}

/* The program, or another library of it, has closed Portals: all that is under way has failed. */
static void __attribute__((noinline)) notice_closed(void)
{
	if (rw.closed)
		return;
	rw.closed = true;
	if (!rw.worst)
		rw.worst = RWAPI_ENET;
	rw_records_lost();
	for (int node = 0; node < rw.size; node++)
		rw_peer_lost(node);
}

/* Another thread sleeps, and the event that would wake it has been taken in here. Credit that gives
 * nothing, to oneself, is one more. */
static void __attribute__((noinline)) wake_sleeper(void)
{
	rw_control(rw.rank, RW_CREDIT, rw.peer[rw.rank].credited, PTL_INJECT_NOW);
}

bool rw_progress(bool all)
{
	static ptl_event_t events[BATCH]; /* guarded by the lock */
	bool yield = false;
	int count;

	atomic_store_explicit(&rw.rounds,
			      atomic_load_explicit(&rw.rounds, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	do {
		int err;

		/* events stay in their queues while there is no memory to keep them */
		if (!rw_arrived_reserve(BATCH))
			return true;
		err = PtlEQPollMany(rw.queue, RW_QUEUES, PTL_TIME_LOOK, NULL, events, BATCH,
				    &count);
		if (__builtin_expect(err == PTL_NO_INIT || err == PTL_EQ_INVALID, 0)) {
			notice_closed();
			return true;
		}
		if (count < 0) {
			yield = true;
			count = 0;
		}
		for (int i = 0; i < count; i++)
			dispatch_event(&events[i]);
	} while (count == BATCH);
	if (__builtin_expect(rw.retry || all, 0))
		retry_and_grant(all);
	if (__builtin_expect(rw.sleepers && rw.news, 0))
		wake_sleeper();
	return yield;
}

void rw_progress_wait(void)
{
	int which;

	rw_sleep_begins();
	rw_unlock(&rw.lock);
	if (PtlEQAwait(rw.queue, RW_QUEUES, RW_SLICE_MS, &which) == PTL_NO_INIT)
		sched_yield(); /* the program has closed Portals itself */
	rw_lock(&rw.lock);
	rw_sleep_ends();
	rw_progress(true);
}

/* ---- waiting for peers ----------------------------------------------------------------------- */

void rw_checks_begin(struct rw_checks *c)
{
	c->next_ms = base_now_ms() + RW_CHECK_MS;
}

bool rw_checks_due(struct rw_checks *c)
{
	uint64_t now = base_now_ms();

	if (now < c->next_ms)
		return false;
	c->next_ms = now + RW_CHECK_MS;
	return true;
}

void rw_check_sometimes(void)
{
	uint64_t now = base_now_ms();

	if (now < rw.next_check_ms)
		return;
	rw.next_check_ms = now + RW_CHECK_MS;
	rw_check_peers();
}

void rw_check_peers(void)
{
	for (int i = 0; i < RW_CHECKED && i < rw.size; i++) {
		rw.checked = (rw.checked + 1) % rw.size;
		if (rw.checked != rw.rank)
			rw_ping(rw.checked);
	}
}
