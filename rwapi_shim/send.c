/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Short messages out. A message is a put of no bytes: its 16 bytes travel in the header. It takes
 * one of the slots that its target holds for this process. The target gives slots back by telling
 * how many messages it has taken in. A message that may not go yet, for the sake of the order, is
 * held back; it has taken its slot already.
 */
#include "rwapi_shim/impl.h"

int rw_control(int node, enum rw_control kind, uint64_t value, ptl_inject_t when)
{
	int err = PtlPutInject(rw.ni, NULL, 0, when, rw.peer[node].id, RW_PT_CONTROL, 0,
			       rw_control_bits(kind, 0), 0, value);

	if (err == PTL_PROCESS_INVALID)
		rw_peer_lost(node);
	return rw_error_of(err);
}

static inline int put_small(struct rw_peer *p, const rwapi_small_t *small)
{
	p->quiet = true;
	return PtlPutInject(rw.ni, NULL, 0, PTL_INJECT_NOW, p->id, RW_PT_SMALL, 0,
			    htole64(small->word[0]), 0, htole64(small->word[1]));
}

/* ---- holding back ---------------------------------------------------------------------------- */

static int hold_small_back(struct rw_peer *p, const rwapi_small_t *small)
{
	struct rw_held *h = malloc(sizeof(*h));

	if (!h)
		return RWAPI_ENOMEM;
	*h = (struct rw_held){ .small = *small, .after = p->started };
	if (p->held_last)
		p->held_last->next = h;
	else
		p->held_first = h;
	p->held_last = h;
	p->sent++;
	rw.held++;
	rw_keeper_wake();
	return RWAPI_OK;
}

static void forget_first_held(struct rw_peer *p)
{
	struct rw_held *h = p->held_first;

	p->held_first = h->next;
	if (!h->next)
		p->held_last = NULL;
	rw.held--;
	free(h);
}

void rw_drop_held(int node)
{
	while (rw.peer[node].held_first)
		forget_first_held(&rw.peer[node]);
}

void rw_release_held(int node)
{
	struct rw_peer *p = &rw.peer[node];

	while (p->held_first && (!p->first || p->first->order > p->held_first->after)) {
		int err = put_small(p, &p->held_first->small);

		if (err == PTL_NO_SPACE) {
			rw.retry = true;
			return;
		}
		if (err != PTL_OK) {
			rw_peer_lost(node);
			return;
		}
		forget_first_held(p);
	}
}

/* ---- sending --------------------------------------------------------------------------------- */

static inline bool has_slot_left(const struct rw_peer *p)
{
	return p->sent - p->credited < rw.share;
}

/* Wait for a slot. Meanwhile everything that comes is taken in, and credit given for it: two
 * processes that send to each other and receive nothing must not wait for each other. */
static int __attribute__((noinline)) wait_for_credit(int node)
{
	struct rw_peer *p = &rw.peer[node];
	struct rw_checks checks;

	rw_progress(true);
	rw_checks_begin(&checks);
	while (!has_slot_left(p) && !p->dead) {
		rw_progress_wait();
		if (atomic_load_explicit(&rw.phase, memory_order_relaxed) != RW_RUNNING)
			return RWAPI_ESTATE;
		if (rw_checks_due(&checks))
			rw_ping(node);
	}
	return RWAPI_OK;
}

static inline int send_small(int node, const rwapi_small_t *small)
{
	struct rw_peer *p = &rw.peer[node];
	int err;

	if (__builtin_expect(rw.held != 0, 0))
		rw_progress(false);
	if (__builtin_expect(!has_slot_left(p), 0)) {
		err = wait_for_credit(node);
		if (err)
			return err;
	}
	if (p->dead)
		return RWAPI_EPEER;
	if (p->first || p->held_first)
		return hold_small_back(p, small);
	err = put_small(p, small);
	if (__builtin_expect(err != PTL_OK, 0)) {
		if (err == PTL_PROCESS_INVALID)
			rw_peer_lost(node);
		return rw_error_of(err);
	}
	p->sent++;
	return RWAPI_OK;
}

int rwapi_send(int node, rwapi_small_t small)
{
	int err;

	if (!rw_enter())
		return RWAPI_ESTATE;
	err = rw_is_node(node) ? send_small(node, &small) : RWAPI_EINVAL;
	rw_leave();
	return err;
}
