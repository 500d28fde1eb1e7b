/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Progress and waiting. Events are taken only with the endpoint's lock. One of the threads that
 * wait sleeps in Portals, without the lock; the others sleep on a condition. A thread that has
 * completed something wakes them: the first by an empty put to the endpoint itself.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/cpu.h"
#include "base/log.h"
#include "mx_shim/mx_core.h"

enum { BATCH = 16, TICK_MS = 50, SLEEP_MS = 100, ROUNDS_PER_CLOCK = 256, ROUNDS_PER_TURN = 8 };

uint64_t mxs_now_ms(void)
{
	return base_now_ms();
}

void mxs_yield(void)
{
	sched_yield();
}

/* ---- events ---------------------------------------------------------------------------------- */

/*
 * Inline handler: takes a message straight into the receive that waits for it. It calls nothing of
 * Portals. It declines a message that is not so simple, which then comes as an event.
 */
static int take_arrival(const ptl_arrival_t *put)
{
	struct mxs_endpoint *ep = MXS_OF(put->user_ptr, struct mxs_endpoint, data_tag);
	struct mxs_partner *p;
	struct mxs_request *r;
	struct mxs_header h;

	if (put->type != PTL_EVENT_PUT_END || !mxs_list_empty(&ep->arrived) ||
	    !mxs_header_decode(put->hdr_data, put->length, &h) ||
	    h.to_tag != (ep->tag & MXS_TAG_LOW))
		return 0;
	p = mxs_partner_find(ep, put->initiator, h.eid, h.tag);
	/* that its sender has taken a ticket for it may stand in the queue */
	if (!p || !p->met || !p->share_slots || (h.kind != MXS_PULL && p->life != h.life))
		return 0;
	r = mxs_posted_match(ep, put->match_bits);
	if (!r)
		return 0;
	mxs_credit_message(p);
	if (h.kind <= MXS_SYNC)
		mxs_credit_bytes(p, h.length);
	mxs_count(ep, MXS_RECV_EXPECTED);
	mxs_deliver(r, p, put->match_bits, &h, put->data);
	return PTL_HANDLED;
}

/* A message that no long receive in Portals has taken. */
static void data_event(struct mxs_endpoint *ep, const ptl_event_t *ev)
{
	struct mxs_header h;

	if (ev->type == PTL_EVENT_UNLINK) {
		mxs_block_unlinked(ep, ev->md_handle);
		return;
	}
	if (ev->type == PTL_EVENT_GET_START) {
		mxs_ticket_taken(ep, ev->initiator);
		return;
	}
	if (ev->type != PTL_EVENT_PUT_END || ev->ni_fail_type != PTL_NI_OK)
		return;
	if (!mxs_header_decode(ev->hdr_data, ev->rlength, &h) ||
	    (h.kind <= MXS_SYNC && ev->mlength != ev->rlength)) {
		mxs_count(ep, MXS_DROPPED);
		return;
	}
	mxs_arrive(ep, ev->initiator, ev->match_bits, &h, (char *)ev->md.start + ev->offset);
}

static void take_credit(struct mxs_endpoint *ep, ptl_process_id_t from, const struct mxs_control *c)
{
	struct mxs_partner *p = mxs_partner_find(ep, from, c->eid, c->tag);

	if (!p) {
		mxs_count(ep, MXS_DROPPED);
		return;
	}
	mxs_count(ep, MXS_CREDITS_GOT);
	if (!p->informed)
		p->late = (int32_t)(c->a - p->may_slots) <= 0; /* nothing new */
	p->informed = true;
	if ((int32_t)(c->a - p->may_slots) > 0)
		p->may_slots = c->a;
	if ((int32_t)(c->b - p->may_bytes) > 0)
		p->may_bytes = c->b;
	mxs_queue_run(p);
}

static void control_event(struct mxs_endpoint *ep, const ptl_event_t *ev)
{
	struct mxs_control c;

	if (ev->type != PTL_EVENT_PUT_END || ev->ni_fail_type != PTL_NI_OK)
		return;
	if (!mxs_control_decode(ev->match_bits, ev->hdr_data, &c))
		mxs_count(ep, MXS_DROPPED);
	else if (c.kind == MXS_CONTROL_CREDIT)
		take_credit(ep, ev->initiator, &c);
	else if (c.kind == MXS_CONTROL_DONE)
		mxs_send_done(ep, ev->initiator, &c);
}

static void request_event(struct mxs_request *r, const ptl_event_t *ev)
{
	switch (r->type) {
	case MXS_SEND:
		mxs_send_event(r, ev);
		break;
	case MXS_RECV:
		mxs_recv_event(r, ev);
		break;
	case MXS_PROBE:
		mxs_probe_event(r, ev);
		break;
	default:
		break;
	}
}

static void handle_own_event(struct mxs_endpoint *ep, const ptl_event_t *ev)
{
	struct mxs_request *r;

	if (ev->md.user_ptr == &ep->data_tag) {
		data_event(ep, ev);
	} else if (ev->md.user_ptr == &ep->control_tag) {
		control_event(ep, ev);
	} else {
		r = mxs_request_of(ep, ev->md.user_ptr);
		if (r && r->state != MXS_DONE)
			request_event(r, ev);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Does what events have made due. */
static void follow_up(struct mxs_endpoint *ep)
{
	mxs_show_arrived(ep);
	mxs_gets_start(ep);
	if (ep->nanswers)
		mxs_answers_send(ep);
	if (!mxs_list_empty(&ep->credit_due))
		mxs_credits_send(ep);
	if (ep->queues_due)
		mxs_queues_run(ep);
	if (ep->tickets >= MXS_MANY_TICKETS)
		mxs_tickets_give(ep);
}

void mxs_tick(struct mxs_endpoint *ep)
{
	uint64_t now = mxs_now_ms();

	if (now - ep->ticked_ms < TICK_MS)
		return;
	ep->ticked_ms = now;
	if (ep->timed)
		mxs_requests_tick(ep, now);
	mxs_connects_tick(ep, now);
	mxs_partners_tick(ep, now);
	if (ep->holders)
		mxs_holders_tick(ep, now);
	if (ep->tickets)
		mxs_tickets_give(ep);
	follow_up(ep);
}

/* Has something that takes time not been looked at for long? */
static bool tick_is_due(const struct mxs_endpoint *ep)
{
	if (!ep->timed && !ep->holders && mxs_list_empty(&ep->active))
		return false;
	return (int64_t)(mxs_now_ms() - ep->ticked_ms) >= TICK_MS;
}

void mxs_progress(struct mxs_endpoint *ep)
{
	ptl_event_t ev[BATCH];
	int count;

	do {
		int err = PtlEQPollMany(ep->eq, 2, PTL_TIME_LOOK, take_arrival, ev, BATCH, &count);

		if (err == PTL_EQ_DROPPED)
			base_warn("MX: endpoint %u has lost events: a partner has sent more than "
				  "it may",
				  ep->eid);
		ep->yield_due = count < 0;
		for (int i = 0; i < count; i++)
			handle_own_event(ep, &ev[i]);
		follow_up(ep);
	} while (count == BATCH);
	if (++ep->rounds % ROUNDS_PER_CLOCK == 0 || tick_is_due(ep))
		mxs_tick(ep);
}

/* ---- waking ---------------------------------------------------------------------------------- */

void mxs_kick(struct mxs_endpoint *ep)
{
	const struct mxs_control c = { MXS_CONTROL_WAKE, ep->eid, ep->tag, ep->eid, ep->tag, 0, 0 };

	if (ep->sleepers)
		pthread_cond_broadcast(&ep->cond);
	if (ep->polling && !ep->kicked &&
	    PtlPutInject(ep->board->ni, NULL, 0, PTL_INJECT_NOW, ep->board->id, MXS_PT_CONTROL, 0,
			 mxs_control_bits(&c), 0, 0) == PTL_OK)
		ep->kicked = true;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Sleeps until something has happened, for `ms` milliseconds at most. */
static void sleep_a_while(struct mxs_endpoint *ep, uint32_t ms)
{
	struct timespec end;
	ptl_event_t ev;
	int which, err;

	if (!ep->polling) {
		ep->polling = true;
		ep->kicked = false;
		pthread_mutex_unlock(&ep->lock);
		PtlEQAwait(ep->eq, 3, ms, &which);
		pthread_mutex_lock(&ep->lock);
		do
			err = PtlEQGet(ep->eq[2], &ev);
		while (err == PTL_OK || err == PTL_EQ_DROPPED);
		ep->polling = false;
		/* one of the others sleeps in Portals now */
		if (ep->sleepers)
			pthread_cond_broadcast(&ep->cond);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += (long)ms * 1000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	ep->sleepers++;
	pthread_cond_timedwait(&ep->cond, &ep->lock, &end);
	ep->sleepers--;
}

/* Lets other threads have the lock. */
static void give_turn(struct mxs_endpoint *ep, bool yield)
{
	if (ep->completions != ep->announced)
		mxs_announce(ep);
	pthread_mutex_unlock(&ep->lock);
	if (yield)
		sched_yield();
	pthread_mutex_lock(&ep->lock);
}

/* Polls for a little while. True: `done` says so. */
static bool spin(struct mxs_endpoint *ep, bool (*done)(struct mxs_endpoint *ep, void *arg),
		 void *arg, uint32_t wakeups)
{
	uint64_t end = 0;

	if (!mxs.spin_ns)
		return false;
	for (unsigned int round = 1; !ep->yield_due && ep->wakeups == wakeups; round++) {
		mxs_progress(ep);
		if (done(ep, arg))
			return true;
		if (round % ROUNDS_PER_TURN)
			continue;
		if (ep->waiters > 1)
			give_turn(ep, false);
		if (!end)
			end = base_now_ns() + (uint64_t)mxs.spin_ns;
		else if (base_now_ns() >= end)
			break;
	}
	return false;
}

bool mxs_wait(struct mxs_endpoint *ep, bool (*done)(struct mxs_endpoint *ep, void *arg), void *arg,
	      uint32_t timeout)
{
	const uint32_t wakeups = ep->wakeups;
	uint64_t end = 0, now;
	bool is;

	mxs_progress(ep);
	if (done(ep, arg))
		return true;
	if (timeout)
		end = base_now_ns() + timeout * UINT64_C(1000000);
	ep->waiters++;
	is = spin(ep, done, arg, wakeups);
	while (!is && ep->wakeups == wakeups && !ep->closing) {
		uint32_t ms = SLEEP_MS;

		now = end ? base_now_ns() : 0;
		if (end && now >= end)
			break;
		if (end && (end - now) / 1000000 < ms)
			ms = (uint32_t)((end - now) / 1000000) + 1;
		if (ep->completions != ep->announced)
			mxs_announce(ep);
		sleep_a_while(ep, ms);
		mxs_progress(ep);
		mxs_tick(ep);
		is = done(ep, arg);
	}
	ep->waiters--;
	if (ep->closing)
		pthread_cond_broadcast(&ep->handler_left);
	return is;
}
