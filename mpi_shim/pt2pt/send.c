/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Sending: which protocol a message takes, credit, and the life of a long send. See protocol.h.
 */
#include <portals3_ext.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/pt2pt/buffered.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/pt2pt/p2p.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

/* request.state: flags of a long send. */
enum {
	SENT = 1,
	TAKEN = 2,
	OVER = 4,
	QUEUED = 8, /* not sent yet: waits for a slot, or for memory (see go) */
	EXPOSED = 16,
	WITHDRAWN = 32, /* its receiver was asked to cancel it */
	ANSWERED = 64,  /* ... and has answered: r->cancelled */
};

/* The threshold of a long send's descriptor. It is never used up, so the remaining threshold
 * tells how many operations have used it. */
#define USES 1000

#define LONG_EVENTS 4 /* SEND_END, ACK or GET_END; SEND_END and ACK of its cancel request */

/* ---- credit ---------------------------------------------------------------------------------- */

static bool has_slot(const struct mpi_peer *p)
{
	return p->sent_slots - p->returned_slots < p->share.slots && !p->queue;
}

static bool has_bytes(const struct mpi_peer *p, uint32_t cost)
{
	return p->sent_bytes - p->returned_bytes + cost <= p->share.bytes;
}

void mpi_credit_event(const ptl_event_t *ev)
{
	bool cancels = ev->match_bits & MPI_CREDIT_CANCELS;
	uint64_t number = ev->match_bits & ~MPI_CREDIT_CANCELS;
	struct mpi_peer *p;
	int rank;

	if (ev->match_bits == MPI_LEAVE_BITS)
		mpi_other_left(ev->initiator);
	rank = number <= MPI_PROCESS_OTHER ? mpi_process_of((int)number, ev->initiator) : -1;
	if (rank < 0)
		return;
	p = &mpi_proto.peer[rank];
	if (cancels) {
		p->returned_cancels = (uint32_t)ev->hdr_data;
		mpi_send_cancel_due(rank);
		return;
	}
	p->returned_bytes = (uint32_t)(ev->hdr_data >> 32);
	p->returned_slots = (uint32_t)ev->hdr_data;
	if (p->queue)
		mpi_send_flush(rank);
}

/* ---- sending one message --------------------------------------------------------------------- */

/* The target of a message, ready for Portals. */
struct route {
	struct mpi_peer *peer;
	ptl_process_id_t id;
	uint64_t bits; /* without the protocol */
	uint64_t hdr;  /* of a short message */
};

int mpi_unreachable(int world)
{
	mpi_proto.peer[world].dead = mpi_proto.any_dead = true;
	return mpi_fail(MPI_ERR_PROC_ABORTED, "%s is lost: %s", mpi_process_text(world),
			mpi_failed_text(world, PTL_NI_OK));
}

/* Sends a message by the short protocol, if it is short and there is credit. True: *err has the
 * result. The caller has a slot. */
static bool send_in_one(const struct route *to, const void *data, size_t bytes, int *err)
{
	uint32_t cost = mpi_credit_cost(bytes);
	int rc;

	if (bytes > mpi_proto.short_most)
		return false;
	if (!has_bytes(to->peer, cost)) {
		mpi_world.counts[MPI_COUNT_SENT_LONG_NO_CREDIT]++;
		return false;
	}
	rc = PtlPutInject(mpi_world.ni, data, bytes, PTL_INJECT_LAZY, to->id, MPI_PT_RECV, 0,
			  to->bits | (uint64_t)MPI_PROTO_SHORT << 61, 0, to->hdr);
	if (rc == PTL_NO_SPACE)
		return false;
	to->peer->sent_bytes += cost;
	to->peer->sent_slots++;
	mpi_world.counts[MPI_COUNT_SENT_SHORT]++;
	*err = rc == PTL_OK ? MPI_SUCCESS : mpi_unreachable((int)(to->peer - mpi_proto.peer));
	return true;
}

/* Exposes the buffer on the READ portal and puts it. The caller has a slot. */
static int send_by_get(struct mpi_request *r, const struct route *to)
{
	static char none; /* a cancel request puts one byte, of any value */
	ptl_md_t md = {
		.start = r->bytes ? r->data : &none,
		.length = r->bytes ? (ptl_size_t)r->bytes : 1,
		.threshold = USES,
		.options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
			   PTL_MD_EVENT_START_DISABLE,
		.user_ptr = r,
	};
	int err = mpi_events_reserve(r, LONG_EVENTS);

	if (err)
		return err;
	md.eq_handle = mpi_queues.eq[r->eq].handle;
	r->number = ++mpi_proto.next_number & MPI_HDR_NUMBERS;
	err = PtlMEMDAttach(mpi_world.ni, MPI_PT_READ, to->id, r->number, 0, PTL_UNLINK,
			    PTL_INS_AFTER, md, PTL_RETAIN, &r->me, &r->md);
	if (err == PTL_OK) {
		err = PtlPutRegion(r->md, 0, (ptl_size_t)r->bytes, PTL_ACK_REQ, to->id, MPI_PT_RECV,
				   0, to->bits | (uint64_t)MPI_PROTO_LONG << 61, 0,
				   mpi_hdr(r->number, r->context, r->world));
		if (err != PTL_OK)
			PtlMEUnlink(r->me);
	}
	if (err != PTL_OK) {
		mpi_events_release(r, LONG_EVENTS);
		if (err == PTL_PROCESS_INVALID)
			return mpi_unreachable((int)(to->peer - mpi_proto.peer));
		return mpi_fail(MPI_ERR_NO_MEM, "no room for %lld bytes more in transit: %s",
				(long long)r->bytes, PtlErrorStr((unsigned int)err));
	}
	r->state = EXPOSED;
	to->peer->sent_slots++;
	mpi_world.counts[MPI_COUNT_SENT_LONG]++;
	return MPI_SUCCESS;
}

static struct route route_of(const struct mpi_comm *comm, int dest, uint64_t context, int tag)
{
	int world = mpi_comm_peer(comm, dest);

	return (struct route){
		.peer = &mpi_proto.peer[world],
		.id = mpi_world.id[world],
		.bits = mpi_bits(0, context, comm->rank, tag),
		.hdr = mpi_hdr(context >> 32, context, world),
	};
}

/* Sends an empty message which says that its sender is out of memory. The caller has a slot.
 * Like any message that is not long, it costs bytes of the share. It takes nothing of the
 * blocks, so it does not wait for these bytes; the receiver returns them. MPI_SUCCESS;
 * MPI_ERR_NO_MEM (nothing is sent, no text kept); or an error, since the receiver's process has
 * ended. */
static int send_no_memory(const struct route *to)
{
	int rc = PtlPutInject(mpi_world.ni, NULL, 0, PTL_INJECT_LAZY, to->id, MPI_PT_RECV, 0,
			      to->bits | (uint64_t)MPI_PROTO_SHORT << 61 | MPI_BITS_NO_MEMORY, 0,
			      to->hdr);

	if (rc == PTL_NO_SPACE)
		return MPI_ERR_NO_MEM;
	if (rc != PTL_OK)
		return mpi_unreachable((int)(to->peer - mpi_proto.peer));
	to->peer->sent_bytes += mpi_credit_cost(0);
	to->peer->sent_slots++;
	mpi_world.counts[MPI_COUNT_SENT_SHORT]++;
	return MPI_SUCCESS;
}

/* Sends the message itself. True: it is in progress or done. False: out of memory, and r->mode
 * says so. */
static bool go_full(struct mpi_request *r, const struct route *to)
{
	int err = MPI_SUCCESS;

	if (r->mode == MPI_SEND_SYNC || !send_in_one(to, r->data, (size_t)r->bytes, &err)) {
		err = send_by_get(r, to);
		if (!err)
			return true;
	}
	if (err)
		mpi_request_fail(r, err, "%s", mpi_fail_text());
	if (err == MPI_ERR_NO_MEM && r->context != r->comm->context) {
		r->mode = MPI_SEND_NO_MEMORY;
		return false;
	}
	mpi_request_done(r);
	return true;
}

/* Starts a send. The caller has a slot. False: out of memory, even for the message that says
 * so. Then the send has to wait, with all later ones to its receiver, and to be tried again:
 * nothing else tells the receiver. */
static bool go(struct mpi_request *r, const struct route *to)
{
	int err;

	if (r->mode != MPI_SEND_NO_MEMORY && go_full(r, to))
		return true;
	err = send_no_memory(to);
	if (err == MPI_ERR_NO_MEM)
		return false;
	if (err && !r->error)
		mpi_request_fail(r, err, "%s", mpi_fail_text());
	mpi_request_done(r);
	return true;
}

bool mpi_send_flush(int rank)
{
	struct mpi_peer *p = &mpi_proto.peer[rank];
	struct mpi_request *r = p->queue;
	bool any = false;

	while (r && p->sent_slots - p->returned_slots < p->share.slots) {
		struct route to = route_of(r->comm, r->peer, r->context, r->tag);

		p->queue = r->next;
		r->state = 0;
		if (!go(r, &to)) {
			r->state = QUEUED;
			p->queue = r;
			break;
		}
		any = true;
		r = p->queue;
	}
	return any;
}

static void enqueue_send(struct mpi_request *r, struct mpi_peer *p)
{
	r->next = NULL;
	if (p->queue)
		p->queue_end->next = r;
	else
		p->queue = r;
	p->queue_end = r;
	r->state = QUEUED;
	mpi_world.counts[MPI_COUNT_SENDS_QUEUED]++;
}

static void dequeue(const struct mpi_request *r, struct mpi_peer *p)
{
	struct mpi_request **at = &p->queue, *prev = NULL;

	while (*at && *at != r) {
		prev = *at;
		at = &prev->next;
	}
	if (*at)
		*at = r->next;
	if (p->queue_end == r)
		p->queue_end = prev;
}

/* ---- long sends in progress ------------------------------------------------------------------ */

static bool settled(struct mpi_request *r)
{
	if (PtlMEUnlink(r->me) == PTL_ME_IN_USE)
		return false;
	mpi_events_release(r, LONG_EVENTS);
	return true;
}

static void finish_long(struct mpi_request *r)
{
	r->state |= OVER;
	if (r->error || !settled(r))
		mpi_request_done_later(r); /* more of its events may still come */
	else
		mpi_request_done(r);
}

/* Ends a send that was never sent. */
static void never_sent(struct mpi_request *r)
{
	r->state |= OVER;
	dequeue(r, &mpi_proto.peer[r->world]);
	mpi_request_done(r);
}

/* Asks the receiver to forget a long message that no receive has taken. When the receiver has
 * no room for the request, this happens later. */
static void cancel_send(struct mpi_request *r)
{
	struct route to = route_of(r->comm, r->peer, r->context, r->tag);
	int err;

	if (to.peer->cancels - to.peer->returned_cancels >= mpi_cancels_at(r->world))
		return;
	r->state |= WITHDRAWN;
	err = PtlPutRegion(r->md, 0, 1, PTL_ACK_REQ, to.id, MPI_PT_CANCEL, 0,
			   mpi_hdr(r->number, r->context, r->world), 0,
			   to.bits | (uint64_t)MPI_PROTO_LONG << 61);
	if (err == PTL_OK) {
		to.peer->cancels++;
		return;
	}
	r->state |= ANSWERED;
	r->cancelled = false;
	if (err == PTL_PROCESS_INVALID)
		mpi_unreachable(r->world);
}

/* Does the next step of a long send, by its state. */
static void advance_long_send(struct mpi_request *r)
{
	if (!(r->state & SENT))
		/* A cancel request must not overtake the message, nor its answer the message's
		 * answer. */
		return;
	if (r->state & TAKEN) {
		r->cancelled = false;
		if (!(r->state & WITHDRAWN) || r->state & ANSWERED)
			finish_long(r);
		return;
	}
	if (!r->cancelled)
		return;
	if (r->state & ANSWERED)
		finish_long(r);
	else if (!(r->state & WITHDRAWN))
		cancel_send(r);
}

void mpi_send_cancel_due(int rank)
{
	struct mpi_request *r;

	for (uint32_t i = 0; (r = mpi_pool_at(MPI_KIND_REQUEST, i)); i++)
		if (r->obj.handle && r->kind == MPI_REQ_SEND && !r->done && r->cancelled &&
		    r->world == rank && !(r->state & OVER))
			advance_long_send(r);
}

void mpi_send_cancel(struct mpi_request *r)
{
	if (r->cancelled || !(r->state & (QUEUED | EXPOSED)) ||
	    r->state & (OVER | TAKEN | WITHDRAWN))
		return;
	r->cancelled = true;
	if (r->state & EXPOSED)
		advance_long_send(r);
	else
		never_sent(r);
}

bool mpi_send_to_self(const struct mpi_request *r)
{
	return r->kind == MPI_REQ_SEND && !r->done && r->state & EXPOSED &&
	       r->world == mpi_world.rank;
}

static void abandon(struct mpi_request *r, ptl_ni_fail_t fail)
{
	if (r->state & OVER || !(r->state & (QUEUED | EXPOSED)))
		return;
	r->cancelled = false;
	mpi_request_fail(r, MPI_ERR_PROC_ABORTED, "rank %d did not take the message: %s", r->peer,
			 mpi_failed_text(r->world, fail));
	if (r->state & EXPOSED)
		finish_long(r);
	else
		never_sent(r);
}

void mpi_send_abandon(struct mpi_request *r)
{
	abandon(r, PTL_NI_OK);
}

void mpi_send_give_up(struct mpi_request *r, int code)
{
	if (r->cancelled || r->error)
		return;
	mpi_request_fail(r, code, "%s", mpi_fail_text());
	mpi_send_cancel(r);
}

/* Whether the receiver has got the message: more operations used the descriptor than the put,
 * the cancel request and its answer. A get is counted at once, and ends later. */
static bool fetched(const struct mpi_request *r)
{
	ptl_md_t md = { .threshold = USES };

	return PtlMDUpdate(r->md, &md, NULL, PTL_EQ_NONE) == PTL_OK && md.threshold < USES - 3;
}

static void send_event(struct mpi_request *r, const ptl_event_t *ev)
{
	if (r->state & OVER)
		return;
	if (ev->ni_fail_type != PTL_NI_OK) {
		/* After a failed SEND_END no ACK comes. Before a failed ACK the SEND_END has
		 * come. */
		if (ev->ni_fail_type == PTL_NI_PEER_DEAD || ev->ni_fail_type == PTL_NI_UNREACHABLE)
			mpi_proto.peer[r->world].dead = mpi_proto.any_dead = true;
		abandon(r, ev->ni_fail_type);
		return;
	}
	if (ev->pt_index == MPI_PT_CANCEL) {
		if (ev->type != PTL_EVENT_ACK)
			return;
		r->state |= ANSWERED;
		r->cancelled = ev->mlength > 0 && !fetched(r);
	} else {
		r->state |= ev->type == PTL_EVENT_SEND_END ? SENT : TAKEN;
	}
	advance_long_send(r);
}

/* ---- starting -------------------------------------------------------------------------------- */

int mpi_message_bytes(const struct mpi_type *type, MPI_Count count, MPI_Count *bytes)
{
	if (__builtin_mul_overflow(type->size, count, bytes))
		return mpi_fail(MPI_ERR_COUNT, "%lld elements of %lld bytes are too many",
				(long long)count, (long long)type->size);
	return MPI_SUCCESS;
}

/* Sets r->data to the bytes to be sent. */
static int gather_bytes(struct mpi_request *r)
{
	if (r->type->dense || !r->bytes) {
		r->data = (char *)r->buf + r->type->true_lb;
		return MPI_SUCCESS;
	}
	r->packed = malloc((size_t)r->bytes);
	if (!r->packed)
		return mpi_fail(MPI_ERR_NO_MEM, "no memory to pack %lld bytes",
				(long long)r->bytes);
	mpi_type_pack_bytes(r->type, r->buf, r->count, 0, r->packed, (size_t)r->bytes);
	r->data = r->packed;
	return MPI_SUCCESS;
}

int mpi_send_launch(struct mpi_request *r)
{
	struct route to;
	int err;

	r->done = false;
	r->error = MPI_SUCCESS;
	r->state = 0;
	if (r->peer == MPI_PROC_NULL) {
		mpi_request_done(r);
		return MPI_SUCCESS;
	}
	if (r->mode == MPI_SEND_BUFFERED)
		return mpi_buffered_launch(r);
	err = gather_bytes(r);
	if (err)
		return err;
	to = route_of(r->comm, r->peer, r->context, r->tag);
	r->world = (int)(to.peer - mpi_proto.peer);
	if (!has_slot(to.peer) || !go(r, &to))
		enqueue_send(r, to.peer);
	return MPI_SUCCESS;
}

int mpi_send_prepare(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		     struct mpi_comm *comm, uint64_t context, enum mpi_send_mode mode,
		     struct mpi_request **request)
{
	struct mpi_request *r;
	MPI_Count bytes;
	int err = mpi_message_bytes(type, count, &bytes);

	if (err)
		return err;
	r = mpi_request_new(MPI_REQ_SEND);
	if (!r)
		return MPI_ERR_NO_MEM;
	r->mode = (uint8_t)mode;
	r->peer = dest;
	r->tag = tag;
	r->context = context;
	r->bytes = bytes;
	r->buf = (void *)(uintptr_t)buf;
	r->count = count;
	r->type = mpi_object_keep(type);
	r->comm = mpi_object_keep(comm);
	*request = r;
	return MPI_SUCCESS;
}

/* Makes a standard send that needs no request. True: *err has the result. */
static inline bool __attribute__((always_inline))
sent_at_once(const void *buf, MPI_Count count, const struct mpi_type *type, int dest, int tag,
	     const struct mpi_comm *comm, uint64_t context, int *err)
{
	struct route to;
	MPI_Count bytes;

	if (dest == MPI_PROC_NULL) {
		*err = MPI_SUCCESS;
		return true;
	}
	if (!type->dense || __builtin_mul_overflow(type->size, count, &bytes) ||
	    bytes > mpi_proto.at_once_most)
		return false;
	to = route_of(comm, dest, context, tag);
	return has_slot(to.peer) &&
	       send_in_one(&to, (const char *)buf + type->true_lb, (size_t)bytes, err);
}

static int start_with_request(const void *buf, MPI_Count count, struct mpi_type *type, int dest,
			      int tag, struct mpi_comm *comm, uint64_t context,
			      enum mpi_send_mode mode, struct mpi_request **request)
{
	struct mpi_request *r;
	int err = mpi_send_prepare(buf, count, type, dest, tag, comm, context, mode, &r);

	if (err)
		return err;
	err = mpi_send_launch(r);
	if (err)
		mpi_object_release(r);
	else
		*request = r;
	return err;
}

/* Sends an empty message which says that its sender is out of memory. Makes no request, since
 * there may be no memory for one. False: no slot, or not sent. */
static bool no_memory_sent_at_once(int dest, int tag, const struct mpi_comm *comm, uint64_t context)
{
	struct route to;

	if (dest == MPI_PROC_NULL)
		return true;
	to = route_of(comm, dest, context, tag);
	return has_slot(to.peer) && send_no_memory(&to) == MPI_SUCCESS;
}

int mpi_start_send(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		   struct mpi_comm *comm, uint64_t context, enum mpi_send_mode mode,
		   struct mpi_request **request)
{
	int err;

	if ((mode == MPI_SEND_STANDARD || mode == MPI_SEND_READY) &&
	    sent_at_once(buf, count, type, dest, tag, comm, context, &err)) {
		if (!err)
			*request = &mpi_request_sent;
		return err;
	}
	if (mode == MPI_SEND_NO_MEMORY && no_memory_sent_at_once(dest, tag, comm, context)) {
		*request = &mpi_request_sent;
		return MPI_SUCCESS;
	}
	return start_with_request(buf, count, type, dest, tag, comm, context, mode, request);
}

void mpi_send_notice(const void *buf, size_t bytes, int dest, int tag, struct mpi_comm *comm,
		     uint64_t context)
{
	struct route to = route_of(comm, dest, context, tag);
	struct mpi_request *r;
	int err;

	if (has_slot(to.peer) && send_in_one(&to, buf, bytes, &err))
		return;
	if (mpi_start_send(NULL, 0, mpi_type_of(MPI_BYTE), dest, tag, comm, context,
			   MPI_SEND_NO_MEMORY, &r) ||
	    r == &mpi_request_sent)
		return;
	mpi_object_retire(&r->obj);
	if (r->done)
		mpi_object_release(r);
	else
		r->freed = true;
}

int mpi_send_now(const void *buf, MPI_Count count, struct mpi_type *type, int dest, int tag,
		 struct mpi_comm *comm, uint64_t context, enum mpi_send_mode mode)
{
	struct mpi_request *r;
	int err;

	if ((mode == MPI_SEND_STANDARD || mode == MPI_SEND_READY) &&
	    sent_at_once(buf, count, type, dest, tag, comm, context, &err))
		return err;
	err = start_with_request(buf, count, type, dest, tag, comm, context, mode, &r);
	if (err)
		return err;
	mpi_request_wait(r);
	return mpi_request_finish(r, MPI_STATUS_IGNORE);
}

/* ---- functions of send requests ------------------------------------------------------------ */

static void free_segment(struct mpi_request *r)
{
	if (r->segment)
		mpi_buffered_over(r->segment);
}

const struct mpi_request_ops mpi_send_ops = {
	.launch = mpi_send_launch,
	.event = send_event,
	.settled = settled,
	.free = free_segment,
};
