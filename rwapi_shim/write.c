/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Writes. A short one is taken at once: it is sent when the call returns, and nothing about it is
 * kept. A long one has a record until its acknowledgement, which tells whether it found its
 * memory, and when short messages may follow. A number that is in no record, and not among the
 * failed, is that of a write that was sent.
 */
#include "rwapi_shim/impl.h"

#include <string.h>

/* ---- records --------------------------------------------------------------------------------- */

void rw_records_init(void)
{
	for (int i = 0; i < RW_RECORDS; i++) {
		rw.record[i].chain = rw.unused;
		rw.unused = &rw.record[i];
	}
}

static struct rw_record **bucket_of_sid(rwapi_sid_t sid)
{
	return &rw.by_sid[(uint64_t)sid % RW_RECORDS];
}

static struct rw_record *find_record(rwapi_sid_t sid)
{
	struct rw_record *r = *bucket_of_sid(sid);

	while (r && r->sid != sid)
		r = r->chain;
	return r;
}

bool rw_is_pending(rwapi_sid_t sid)
{
	return find_record(sid) != NULL;
}

/* A number that names the record in messages, never 0. */
static uint32_t tag_of_record(const struct rw_record *r)
{
	return (uint32_t)r->generation << 16 | (uint32_t)(r - rw.record + 1);
}

static struct rw_record *record_of_tag(uint32_t tag)
{
	uint32_t i = (tag & 0xffff) - 1;
	struct rw_record *r = i < RW_RECORDS ? &rw.record[i] : NULL;

	return r && r->live && r->generation == tag >> 16 ? r : NULL;
}

static struct rw_record *take_record(int node)
{
	struct rw_record *r = rw.unused;

	rw.unused = r->chain;
	*r = (struct rw_record){ .node = node,
				 .generation = (uint16_t)(r->generation + 1),
				 .live = true };
	return r;
}

static void give_record(struct rw_record *r)
{
	r->live = false;
	r->chain = rw.unused;
	rw.unused = r;
}

/* The write is the last of its process that is not acknowledged. */
static void append_record(struct rw_record *r)
{
	struct rw_peer *p = &rw.peer[r->node];

	r->order = ++p->started;
	r->prev = p->last;
	if (p->last)
		p->last->next = r;
	else
		p->first = r;
	p->last = r;
	r->listed = true;
}

static void unlist_record(struct rw_record *r)
{
	struct rw_peer *p = &rw.peer[r->node];

	if (!r->listed)
		return;
	if (r->prev)
		r->prev->next = r->next;
	else
		p->first = r->next;
	if (r->next)
		r->next->prev = r->prev;
	else
		p->last = r->prev;
	r->listed = false;
}

static void unhash_record(struct rw_record *r)
{
	struct rw_record **at = bucket_of_sid(r->sid);

	while (*at != r)
		at = &(*at)->chain;
	*at = r->chain;
}

/* ---- failures -------------------------------------------------------------------------------- */

static bool grow_failed(void)
{
	uint64_t room = rw.failed_room ? rw.failed_room * 2 : 64;
	struct rw_failed *more = realloc(rw.failed, room * sizeof(*more));

	if (!more)
		return false;
	rw.failed = more;
	rw.failed_room = room;
	return true;
}

/* The place of a number among the failed, or where it would stand. */
static uint64_t place_of_failed(rwapi_sid_t sid)
{
	uint64_t low = 0, high = rw.nfailed;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (rw.failed[middle].sid < sid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int error_of_sid(rwapi_sid_t sid)
{
	uint64_t at = rw.nfailed ? place_of_failed(sid) : 0;

	return at < rw.nfailed && rw.failed[at].sid == sid ? rw.failed[at].error : RWAPI_OK;
}

void rw_write_failed(rwapi_sid_t sid, int error)
{
	uint64_t at = place_of_failed(sid);

	if (!rw.worst)
		rw.worst = error;
	if (at < rw.nfailed && rw.failed[at].sid == sid)
		return;
	if (rw.nfailed == rw.failed_room && !grow_failed())
		return; /* rwapi_finalize() still tells */
	memmove(&rw.failed[at + 1], &rw.failed[at], (rw.nfailed - at) * sizeof(*rw.failed));
	rw.failed[at] = (struct rw_failed){ sid, error };
	rw.nfailed++;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static int error_of_end(const ptl_event_t *ev)
{
	switch (ev->ni_fail_type) {
	case PTL_NI_OK:
		/* Portals truncates nothing here but what found no memory at all */
		return ev->type == PTL_EVENT_ACK && ev->mlength < ev->rlength ? RWAPI_EADDRESS
									      : RWAPI_OK;
	case PTL_NI_PEER_DEAD:
	case PTL_NI_UNREACHABLE:
		return RWAPI_EPEER;
	default:
		return RWAPI_ENET;
	}
}

/* The bytes are not needed any more. */
static void mark_sent(struct rw_record *r)
{
	if (r->block && !r->sent)
		r->block->sending--;
	r->sent = true;
}

static void end_record(struct rw_record *r)
{
	if (r->sid) {
		unhash_record(r);
		rw.writing--;
	} else {
		rw.peer[r->node].pinging = false;
		rw.pings--;
	}
	give_record(r);
}

void rw_write_event(const ptl_event_t *ev)
{
	struct rw_record *r = record_of_tag(rw_bits_tag(ev->match_bits));
	int node, error = error_of_end(ev);
	bool is_ack = ev->type == PTL_EVENT_ACK;

	if (!r)
		return;
	node = r->node;
	rw.news = true;
	mark_sent(r); /* an acknowledgement may come before it */
	r->saw_ack |= is_ack;
	r->saw_end |= !is_ack;
	if (error && r->sid)
		rw_write_failed(r->sid, error);
	/* what failed to be sent is not acknowledged */
	if (is_ack || error)
		unlist_record(r);
	if (r->saw_end && (r->saw_ack || error))
		end_record(r);
	if (error == RWAPI_EPEER)
		rw_peer_lost(node);
	if (rw.peer[node].held_first)
		rw_release_held(node);
}

void rw_records_lost(void)
{
	for (int i = 0; i < RW_RECORDS; i++) {
		struct rw_record *r = &rw.record[i];

		if (!r->live)
			continue;
		mark_sent(r);
		if (r->sid)
			rw_write_failed(r->sid, RWAPI_ENET);
		unlist_record(r);
		end_record(r);
	}
}

/* ---- starting -------------------------------------------------------------------------------- */

void rw_ping(int node)
{
	struct rw_peer *p = &rw.peer[node];
	struct rw_record *r;
	int err;

	if (p->pinging || p->dead || rw.pings == RW_PINGS)
		return;
	r = take_record(node);
	err = PtlPutRegion(rw.md, 0, 0, PTL_ACK_REQ, p->id, RW_PT_CONTROL, 0,
			   rw_control_bits(RW_PING, tag_of_record(r)), 0, 0);
	if (err != PTL_OK) {
		give_record(r);
		if (err != PTL_NO_SPACE)
			rw_peer_lost(node);
		return;
	}
	p->pinging = true;
	p->quiet = false;
	rw.pings++;
}

/* Wait until fewer writes are under way than may be. */
static int wait_for_record(void)
{
	while (rw.writing == RW_WRITES) {
		rw_progress(true);
		if (rw.writing < RW_WRITES)
			break;
		rw_progress_wait();
		if (atomic_load_explicit(&rw.phase, memory_order_relaxed) != RW_RUNNING)
			return RWAPI_ESTATE;
	}
	return RWAPI_OK;
}

static int put_record(const struct rw_record *r, rwapi_net_t local, rwapi_net_t remote, size_t size)
{
	return PtlPutRegion(rw.md, r->block->part->at + rw_net_offset(local), size, PTL_ACK_REQ,
			    rw.peer[r->node].id, RW_PT_WRITE, 0,
			    rw_write_bits(tag_of_record(r), rw_net_name(remote)),
			    rw_net_offset(remote), (uint64_t)r->sid);
}

/* Start a long write, if it can be started now. */
static rwapi_sid_t try_write_long(int node, rwapi_net_t local, rwapi_net_t remote, size_t size)
{
	struct rw_block *b;
	struct rw_record *r;
	int err = wait_for_record();

	if (err)
		return err;
	/* the wait released the lock */
	b = rw_block_of(local, size);
	if (!b)
		return RWAPI_EINVAL;
	if (rw.peer[node].dead)
		return RWAPI_EPEER;
	r = take_record(node);
	r->sid = rw.last_sid + 1;
	r->block = b;
	err = put_record(r, local, remote, size);
	if (err != PTL_OK) {
		give_record(r);
		if (err == PTL_PROCESS_INVALID)
			rw_peer_lost(node);
		return rw_error_of(err);
	}
	rw.last_sid++;
	rw.writing++;
	b->sending++;
	append_record(r);
	r->chain = *bucket_of_sid(r->sid);
	*bucket_of_sid(r->sid) = r;
	return r->sid;
}

/* Write with an acknowledgement. The memory that lacks may be that of writes under way. */
static rwapi_sid_t write_long(int node, rwapi_net_t local, rwapi_net_t remote, size_t size)
{
	rwapi_sid_t sid;

	while ((sid = try_write_long(node, local, remote, size)) == RWAPI_ENOMEM && rw.writing) {
		rw_progress_wait();
		if (atomic_load_explicit(&rw.phase, memory_order_relaxed) != RW_RUNNING)
			return RWAPI_ESTATE;
	}
	return sid;
}

/* Write by a put whose bytes are taken at once. */
static inline int write_at_once(struct rw_peer *p, const void *bytes, rwapi_net_t remote,
				size_t size)
{
	return PtlPutInject(rw.ni, bytes, size, PTL_INJECT_NOW, p->id, RW_PT_WRITE, 0,
			    rw_write_bits(0, rw_net_name(remote)), rw_net_offset(remote),
			    RW_QUIET | (uint64_t)(rw.last_sid + 1));
}

static rwapi_sid_t start_write(int node, rwapi_net_t local, rwapi_net_t remote, size_t size)
{
	struct rw_peer *p = &rw.peer[node];
	const struct rw_block *b = rw_block_of(local, size);
	int err = PTL_NO_SPACE;

	if (!b || !remote)
		return RWAPI_EINVAL;
	if (__builtin_expect(rw.held != 0, 0))
		rw_progress(false);
	if (p->dead)
		return RWAPI_EPEER;
	if (size <= RW_INJECT_MOST)
		err = write_at_once(
			p, (char *)rw_part_start(&rw.arena, b->part) + rw_net_offset(local), remote,
			size);
	if (__builtin_expect(err == PTL_OK, 1)) {
		p->quiet = true;
		return ++rw.last_sid;
	}
	if (err == PTL_PROCESS_INVALID)
		rw_peer_lost(node);
	return err == PTL_NO_SPACE ? write_long(node, local, remote, size) : rw_error_of(err);
}

rwapi_sid_t rwapi_write(int node, rwapi_net_t local, rwapi_net_t remote, size_t size)
{
	rwapi_sid_t sid;

	if (!rw_enter())
		return RWAPI_ESTATE;
	sid = rw_is_node(node) ? start_write(node, local, remote, size) : RWAPI_EINVAL;
	rw_leave();
	return sid;
}

static int is_sent(rwapi_sid_t sid, bool *yield)
{
	const struct rw_record *r;
	int error;

	if (sid <= 0 || sid > rw.last_sid)
		return RWAPI_EINVAL;
	*yield = rw_progress(false);
	error = error_of_sid(sid);
	if (error)
		return error;
	r = find_record(sid);
	return !r || r->sent;
}

int rwapi_issent(rwapi_sid_t sid)
{
	bool yield = false;
	int sent;

	if (!rw_enter())
		return RWAPI_ESTATE;
	sent = is_sent(sid, &yield);
	rw_leave();
	if (yield && !sent)
		sched_yield();
	return sent;
}
