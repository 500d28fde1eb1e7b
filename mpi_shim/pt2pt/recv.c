/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Receiving: a receive is posted, or takes a message that has arrived. Also the credit that is
 * returned to senders. See protocol.h.
 */
#include <portals3_ext.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/pt2pt/p2p.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

/* request.state */
enum { POSTED = 1, GETTING = 2, LOCAL = 4 };

#define GET_EVENTS 2 /* SEND_END (as on the Cray), REPLY_END */

/* ---- credit ---------------------------------------------------------------------------------- */

static struct mpi_peer *owed; /* peers to which credit is owed, not advertised yet */

void mpi_credit_consumed(int rank, uint32_t bytes, uint32_t slots)
{
	struct mpi_peer *p;

	if (rank < 0)
		return;
	p = &mpi_proto.peer[rank];
	p->consumed_bytes += bytes;
	p->consumed_slots += slots;
	if (p->owed || (p->consumed_bytes - p->advertised_bytes < p->given.bytes / 2 &&
			p->consumed_slots - p->advertised_slots < p->given.slots / 2))
		return;
	p->owed = true;
	p->next_owed = owed;
	owed = p;
}

void mpi_credit_return(void)
{
	struct mpi_peer *p, *again = NULL;

	while ((p = owed)) {
		const int to = (int)(p - mpi_proto.peer);

		owed = p->next_owed;
		if (PtlPutInject(mpi_world.ni, NULL, 0, PTL_INJECT_LAZY, mpi_world.id[to],
				 MPI_PT_CREDIT, 0, (ptl_match_bits_t)mpi_own_number_at(to), 0,
				 (uint64_t)p->consumed_bytes << 32 | p->consumed_slots) ==
		    PTL_NO_SPACE) {
			/* It may have to wait for this before it sends again: keep it on the
			 * list. */
			p->next_owed = again;
			again = p;
			continue;
		}
		p->owed = false;
		p->advertised_bytes = p->consumed_bytes;
		p->advertised_slots = p->consumed_slots;
		mpi_world.counts[MPI_COUNT_CREDITS_RETURNED]++;
	}
	owed = again;
}

void mpi_credit_forget(const struct mpi_peer *peer)
{
	struct mpi_peer **at = &owed;

	while (*at && *at != peer)
		at = &(*at)->next_owed;
	if (*at)
		*at = peer->next_owed;
}

/* ---- completion ------------------------------------------------------------------------------ */

/* Whether a collective's message belongs to another call than the receive. The schedule makes
 * the error text (schedule.c). */
static bool of_another_call(const struct mpi_request *r, uint64_t bits, uint64_t hdr,
			    MPI_Count sent)
{
	if (mpi_mark_differs(r->context, hdr, mpi_bits_long(bits)))
		return true;
	return r->context & MPI_MARK_EXACT && hdr & MPI_MARK_HEADER && sent != r->room &&
	       !(bits & MPI_BITS_NO_MEMORY);
}

/* Completes a receive whose message is in r->data: `bytes` of `sent` bytes. */
static void complete_recv(struct mpi_request *r, uint64_t bits, uint64_t hdr, MPI_Count bytes,
			  MPI_Count sent)
{
	if (r->context & MPI_MARK_HEADER && of_another_call(r, bits, hdr, sent)) {
		r->differs = true;
		r->number = hdr;
		r->sent = sent;
	}
	r->source = mpi_bits_source(bits);
	r->came = mpi_bits_tag(bits);
	r->bytes = bytes;
	if (sent > bytes && !r->error)
		mpi_request_fail(
			r, MPI_ERR_TRUNCATE,
			"the message of %lld bytes from rank %d with tag %d is longer than the "
			"receive's %lld bytes",
			(long long)sent, r->source, r->came, (long long)bytes);
	if (bits & MPI_BITS_NO_MEMORY && !r->error)
		mpi_request_fail(r, MPI_ERR_OTHER,
				 "rank %d has sent nothing of what it had to: memory has run out "
				 "there, or at a "
				 "rank it depends on",
				 r->source);
	if (r->packed)
		mpi_type_unpack_bytes(r->type, r->buf, r->count, 0, r->packed, (size_t)bytes);
	mpi_request_done(r);
}

static void record_failed_sender(struct mpi_request *r, int source, ptl_ni_fail_t fail)
{
	mpi_request_fail(r, MPI_ERR_PROC_ABORTED, "no message from rank %d: %s", source,
			 mpi_failed_text(mpi_comm_peer(r->comm, source), fail));
	r->source = source;
	r->bytes = 0;
	mpi_request_done(r);
}

static void posted_event(struct mpi_request *r, const ptl_event_t *ev)
{
	bool is_long = mpi_bits_long(ev->match_bits);

	mpi_events_release(r, 1);
	mpi_world.counts[MPI_COUNT_RECV_EXPECTED]++;
	if (mpi_event_watched(MPI_EVENT_MATCHED))
		mpi_event_message(MPI_EVENT_MATCHED, r->context, mpi_bits_source(ev->match_bits),
				  mpi_bits_tag(ev->match_bits), (MPI_Count)ev->rlength, false);
	mpi_credit_consumed(mpi_hdr_sender(ev->hdr_data, ev->initiator),
			    is_long ? 0 : mpi_credit_cost(ev->rlength), 1);
	if (ev->ni_fail_type != PTL_NI_OK) {
		record_failed_sender(r, mpi_bits_source(ev->match_bits), ev->ni_fail_type);
		return;
	}
	complete_recv(r, ev->match_bits, ev->hdr_data, (MPI_Count)ev->mlength,
		      (MPI_Count)ev->rlength);
}

static void got_event(struct mpi_request *r, const ptl_event_t *ev)
{
	if (ev->type != PTL_EVENT_REPLY_END)
		return;
	PtlMDUnlink(r->md);
	PtlMEUnlink(r->me);
	mpi_events_release(r, GET_EVENTS);
	if (ev->ni_fail_type != PTL_NI_OK)
		record_failed_sender(r, mpi_bits_source(r->bits), ev->ni_fail_type);
	else
		complete_recv(r, r->bits, r->number, (MPI_Count)ev->mlength, r->sent);
}

static void recv_event(struct mpi_request *r, const ptl_event_t *ev)
{
	if (r->state == POSTED)
		posted_event(r, ev);
	else
		got_event(r, ev);
}

/* ---- taking a message that is here ----------------------------------------------------------- */

/* Starts the get of a long message, which is claimed. */
static int start_get(struct mpi_request *r, const struct mpi_unexpected *u)
{
	MPI_Count bytes = u->bytes < r->bytes ? u->bytes : r->bytes;
	ptl_md_t md = {
		.start = bytes ? r->data : NULL,
		.length = (ptl_size_t)bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = r,
	};
	int err = mpi_events_reserve(r, GET_EVENTS);

	if (err)
		return err;
	md.eq_handle = mpi_queues.eq[r->eq].handle;
	r->state = GETTING;
	r->bits = u->bits;
	r->sent = u->bytes;
	r->number = u->hdr;
	r->world = mpi_hdr_sender(u->hdr, u->from);
	r->me = u->claim;
	err = PtlMDBind(mpi_world.ni, md, PTL_RETAIN, &r->md);
	if (err == PTL_OK) {
		err = PtlGet(r->md, u->from, MPI_PT_READ, 0, mpi_hdr_number(u->hdr), 0);
		if (err != PTL_OK)
			PtlMDUnlink(r->md);
	}
	if (err == PTL_OK)
		return MPI_SUCCESS;
	mpi_events_release(r, GET_EVENTS);
	if (err == PTL_PROCESS_INVALID)
		return mpi_unreachable(r->world);
	return mpi_fail(MPI_ERR_NO_MEM, "cannot get a message of %lld bytes: %s",
			(long long)u->bytes, PtlErrorStr((unsigned int)err));
}

void mpi_recv_short(struct mpi_request *r, uint64_t bits, uint64_t hdr, const void *data,
		    MPI_Count sent)
{
	MPI_Count bytes = sent < r->bytes ? sent : r->bytes;

	/* The bytes go straight to the user's buffer, though the receive may have been prepared
	 * for Portals. */
	if (r->packed) {
		free(r->packed);
		r->packed = NULL;
	}
	if (!r->type->dense)
		mpi_type_unpack_bytes(r->type, r->buf, r->count, 0, data, (size_t)bytes);
	else if (base_are_few((uint64_t)bytes))
		base_copy_few((char *)r->buf + r->type->true_lb, data, (uint64_t)bytes);
	else if (bytes > 0) /* the buffer of an empty message may be NULL */
		memcpy((char *)r->buf + r->type->true_lb, data, (size_t)bytes);
	complete_recv(r, bits, hdr, bytes, sent);
}

static int scatter_space(struct mpi_request *r);

void mpi_recv_take(struct mpi_request *r, struct mpi_unexpected *u)
{
	int err = MPI_SUCCESS;

	r->done = false;
	r->bytes = r->room;
	if (!mpi_bits_long(u->bits)) {
		mpi_recv_short(r, u->bits, u->hdr, u->data, u->bytes);
	} else {
		err = scatter_space(r);
		if (err) {
			/* Get no bytes, only to let the sender's operation end. */
			mpi_request_fail(r, err, "%s", mpi_fail_text());
			r->bytes = 0;
		}
		err = start_get(r, u);
		if (err)
			PtlMEUnlink(u->claim);
	}
	mpi_unexpected_free(u);
	if (err) {
		mpi_request_fail(r, err, "%s", mpi_fail_text());
		r->bytes = 0;
		mpi_request_done(r);
	}
}

/* ---- posting --------------------------------------------------------------------------------- */

/* Sets r->data to memory for the bytes as they are on the wire. */
static int scatter_space(struct mpi_request *r)
{
	if (r->type->dense || !r->bytes) {
		r->data = (char *)r->buf + r->type->true_lb;
		return MPI_SUCCESS;
	}
	if (!r->packed)
		r->packed = malloc((size_t)r->bytes);
	if (!r->packed)
		return mpi_fail(MPI_ERR_NO_MEM,
				"no memory to receive %lld bytes before they are unpacked",
				(long long)r->bytes);
	r->data = r->packed;
	return MPI_SUCCESS;
}

static int no_room(int err)
{
	return mpi_fail(MPI_ERR_NO_MEM, "no room for one more posted receive: %s",
			PtlErrorStr((unsigned int)err));
}

static int post_recv(struct mpi_request *r)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.start = r->bytes ? r->data : NULL,
		.length = (ptl_size_t)r->bytes,
		.threshold = 1,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_EVENT_END_DISABLE,
		.user_ptr = r,
		.eq_handle = mpi_queues.eq[r->eq].handle,
	};

	return PtlMEMDPost(mpi_world.ni, mpi_proto.long_me, any, r->bits, mpi_open_bits[r->open],
			   PTL_UNLINK, PTL_INS_BEFORE, md, PTL_UNLINK, &r->me, &r->md,
			   mpi_proto.unexpected);
}

/* Posts the receives that wait here to Portals, in order, before a receive that must be posted
 * there. */
static int post_waiting_receives(void)
{
	struct mpi_request *r;
	int err;

	while ((r = mpi_posted_first())) {
		err = scatter_space(r);
		if (!err)
			err = mpi_events_reserve(r, 1);
		if (err)
			return err;
		err = post_recv(r);
		if (err == PTL_OK) {
			mpi_posted_remove(r);
			r->state = POSTED;
			continue;
		}
		mpi_events_release(r, 1);
		if (err != PTL_MD_NO_UPDATE)
			return no_room(err);
		mpi_drain_unexpected(); /* may complete the receive */
		mpi_yield();            /* another thread may have posted it */
	}
	return MPI_SUCCESS;
}

/* Posts a receive to Portals, unless its message arrives first: then *u is the message. */
static int post_or_find(struct mpi_request *r, struct mpi_unexpected **u)
{
	int err = post_waiting_receives();

	*u = mpi_unexpected_find(r->bits, r->open);
	if (err || *u)
		return err;
	err = scatter_space(r);
	if (!err)
		err = mpi_events_reserve(r, 1);
	if (err)
		return err;
	for (;;) {
		err = post_recv(r);
		if (err == PTL_OK)
			return MPI_SUCCESS;
		if (err == PTL_MD_NO_UPDATE) {
			mpi_world.counts[MPI_COUNT_POSTS_RETRIED]++;
			mpi_drain_unexpected();
			mpi_yield();
			*u = mpi_unexpected_find(r->bits, r->open);
		}
		if (err != PTL_MD_NO_UPDATE || *u) {
			mpi_events_release(r, 1);
			return *u ? MPI_SUCCESS : no_room(err);
		}
	}
}

/* Starts a receive. The arguments repeat fields of *r, since the caller that has just made it
 * still has them at hand. */
static inline int __attribute__((always_inline))
launch(struct mpi_request *r, int source, int tag, uint64_t context, MPI_Count room)
{
	const unsigned int open = mpi_open_of(source, tag);
	const uint64_t bits = mpi_bits(0, context, source, tag) & ~mpi_open_bits[open];
	struct mpi_unexpected *u;
	int err = MPI_SUCCESS;

	r->bytes = room;
	if (source == MPI_PROC_NULL) {
		r->source = MPI_PROC_NULL;
		r->came = MPI_ANY_TAG;
		r->bytes = 0;
		mpi_request_done(r);
		return MPI_SUCCESS;
	}
	r->open = (uint8_t)open;
	r->bits = bits;
	do {
		u = mpi_unexpected_find(bits, open);
		if (!u && room <= mpi_proto.local_most) {
			r->state = LOCAL;
			mpi_posted_add(r);
			return MPI_SUCCESS;
		}
		r->state = POSTED;
		if (!u)
			err = post_or_find(r, &u);
		if (err || !u)
			return err;
		err = mpi_unexpected_take(&u);
	} while (!u);
	if (err)
		return err;
	if (mpi_event_watched(MPI_EVENT_MATCHED))
		mpi_event_message(MPI_EVENT_MATCHED, context, mpi_bits_source(u->bits),
				  mpi_bits_tag(u->bits), u->bytes, true);
	mpi_recv_take(r, u);
	return MPI_SUCCESS;
}

int mpi_recv_launch(struct mpi_request *r)
{
	r->done = false;
	r->error = MPI_SUCCESS;
	return launch(r, r->peer, r->tag, r->context, r->room);
}

/* ---- starting -------------------------------------------------------------------------------- */

int mpi_recv_prepare(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		     struct mpi_comm *comm, uint64_t context, struct mpi_request **request)
{
	struct mpi_request *r;
	MPI_Count bytes;
	int err = mpi_message_bytes(type, count, &bytes);

	if (err)
		return err;
	r = mpi_request_new(MPI_REQ_RECV);
	if (!r)
		return MPI_ERR_NO_MEM;
	r->peer = source;
	r->tag = tag;
	r->context = context;
	r->room = bytes;
	r->buf = buf;
	r->count = count;
	r->type = mpi_object_keep(type);
	r->comm = mpi_object_keep(comm);
	*request = r;
	return MPI_SUCCESS;
}

int mpi_start_recv(void *buf, MPI_Count count, struct mpi_type *type, int source, int tag,
		   struct mpi_comm *comm, uint64_t context, struct mpi_request **request)
{
	struct mpi_request *r;
	int err = mpi_recv_prepare(buf, count, type, source, tag, comm, context, &r);

	if (err)
		return err;
	err = launch(r, source, tag, context, r->room);
	if (err)
		mpi_object_release(r);
	else
		*request = r;
	return err;
}

/* Removes a receive from where it waits. False: it is done, or a message is coming in. */
static bool cancel_recv(struct mpi_request *r)
{
	if (r->done)
		return false;
	if (r->state == LOCAL) {
		mpi_posted_remove(r);
		return true;
	}
	if (r->state != POSTED || PtlMEUnlink(r->me) != PTL_OK)
		return false;
	mpi_events_release(r, 1);
	return true;
}

void mpi_recv_cancel(struct mpi_request *r)
{
	if (!cancel_recv(r))
		return;
	r->cancelled = true;
	r->source = MPI_ANY_SOURCE;
	r->came = MPI_ANY_TAG;
	r->bytes = 0;
	mpi_request_done(r);
}

void mpi_recv_abandon(struct mpi_request *r, int source)
{
	if (cancel_recv(r))
		record_failed_sender(r, source, PTL_NI_OK);
}

void mpi_recv_give_up(struct mpi_request *r, int code)
{
	if (!cancel_recv(r))
		return;
	mpi_request_fail(r, code, "%s", mpi_fail_text());
	r->source = r->peer;
	r->bytes = 0;
	mpi_request_done(r);
}

/* Portals counts a message against the receive when it arrives, and tells of it when all its
 * bytes are here. */
static bool recv_moves(const struct mpi_request *r)
{
	ptl_md_t md;

	return r->state == GETTING ||
	       (r->state == POSTED &&
		(PtlMDUpdate(r->md, &md, NULL, PTL_EQ_NONE) != PTL_OK || md.threshold == 0));
}

const struct mpi_request_ops mpi_recv_ops = {
	.launch = mpi_recv_launch,
	.event = recv_event,
	.moves = recv_moves,
};
