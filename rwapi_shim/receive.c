/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Short messages in: from the queue into a list, in the order of their arrival, and from there to
 * the program. The list has room for every slot of every sender; it grows beyond that only while
 * this process waits in a call, which gives credit for all that has come.
 */
#include "rwapi_shim/impl.h"

enum { FIRST_ROOM = 256 };

static bool grow_arrived(void)
{
	uint64_t room = rw.arrived_room ? rw.arrived_room * 2 : FIRST_ROOM;
	struct rw_arrived *list = malloc(room * sizeof(*list));

	if (!list)
		return false;
	for (uint64_t i = rw.arrived_head; i != rw.arrived_tail; i++)
		list[i & (room - 1)] = rw.arrived[i & (rw.arrived_room - 1)];
	free(rw.arrived);
	rw.arrived = list;
	rw.arrived_room = room;
	return true;
}

bool rw_arrived_reserve(uint64_t count)
{
	while (rw.arrived_tail - rw.arrived_head + count > rw.arrived_room)
		if (!grow_arrived())
			return false;
	return true;
}

void rw_arrived_put(int node, const rwapi_small_t *small)
{
	rw.arrived[rw.arrived_tail++ & (rw.arrived_room - 1)] =
		(struct rw_arrived){ .node = node, .small = *small };
	rw.peer[node].arrived++;
	rw.news = true;
}

void rw_grant(int node, bool all)
{
	struct rw_peer *p = &rw.peer[node];
	uint64_t count = all ? p->arrived : p->received;

	/* `granted` may be ahead of what was received, after a wait that gave all */
	if ((int64_t)(count - p->granted) < (int64_t)(rw.share / 2) || p->dead)
		return;
	/* a sender that needs credit is inside the library, or will be when it needs it */
	if (rw_control(node, RW_CREDIT, count, PTL_INJECT_LAZY) == RWAPI_OK)
		p->granted = count;
	else
		rw.retry = true;
}

static inline bool take_arrived(int *node, rwapi_small_t *small)
{
	const struct rw_arrived *a;

	if (rw.arrived_head == rw.arrived_tail)
		return false;
	a = &rw.arrived[rw.arrived_head++ & (rw.arrived_room - 1)];
	*node = a->node;
	*small = a->small;
	rw.peer[a->node].received++;
	rw_grant(a->node, false);
	return true;
}

/* A program that polls for messages of processes that are gone has to learn of it. */
static inline int nothing_arrived(void)
{
	if (__builtin_expect(rw.closed, 0))
		return RWAPI_ENET;
	if (__builtin_expect(rw_is_alone(), 0))
		return RWAPI_EPEER;
	if (__builtin_expect(!(atomic_load_explicit(&rw.rounds, memory_order_relaxed) % RW_POLLS),
			     0))
		rw_check_peers();
	return 0;
}

int rwapi_receive(int *node, rwapi_small_t *small)
{
	bool yield = false;
	int found;

	if (!rw_enter())
		return RWAPI_ESTATE;
	if (!node || !small) {
		rw_leave();
		return RWAPI_EINVAL;
	}
	if (rw.arrived_head == rw.arrived_tail || rw.held)
		yield = rw_progress(false);
	found = take_arrived(node, small);
	if (!found)
		found = nothing_arrived();
	rw_leave();
	if (yield && !found)
		sched_yield();
	return found;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Wait in Portals, without the lock, for `left` ms at most. */
static void wait_for_event(uint64_t left)
{
	/* another thread, or the keeper, may take the event that would end this wait */
	uint64_t most = RW_SLICE_MS;
	int which;

	rw_sleep_begins();
	rw_leave();
	PtlEQAwait(rw.queue, RW_QUEUES, (ptl_time_t)(left < most ? left : most), &which);
	rw_lock(&rw.lock);
	rw_sleep_ends();
}

static int wait_arrived(int milliseconds, bool *yield)
{
	uint64_t end = milliseconds < 0 ? UINT64_MAX : 0;

	for (;;) {
		uint64_t now;

		*yield = rw_progress(false);
		if (rw.arrived_head != rw.arrived_tail)
			return 1;
		if (rw.closed)
			return RWAPI_ENET;
		/* the message that the program waits for may be one of theirs */
		if (__builtin_expect(rw.lost != rw.reported || rw_is_alone(), 0)) {
			rw.reported = rw.lost;
			return RWAPI_EPEER;
		}
		if (milliseconds == 0)
			return 0;
		now = base_now_ns() / 1000000;
		if (!end)
			end = now + (uint64_t)milliseconds;
		if (now >= end)
			return 0;
		rw_check_sometimes();
		wait_for_event(end - now);
		if (atomic_load_explicit(&rw.phase, memory_order_relaxed) != RW_RUNNING)
			return RWAPI_ESTATE;
	}
}

int rwapi_wait(int milliseconds)
{
	bool yield = false;
	int found;

	if (!rw_enter())
		return RWAPI_ESTATE;
	found = milliseconds < -1 ? RWAPI_EINVAL : wait_arrived(milliseconds, &yield);
	rw_leave();
	if (yield && !found)
		sched_yield();
	return found;
}
