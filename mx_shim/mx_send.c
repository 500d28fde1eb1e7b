/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Sends. Those to one partner begin in order: one that lacks credit, room for its events, or the
 * partner's record, waits in the partner's queue, and the later ones behind it.
 */
#include <stdlib.h>

#include "mx_shim/mx_core.h"

enum { SLOT_MS = 10 }; /* between questions for a slot that was not there */

/* ---- kinds ----------------------------------------------------------------------------------- */

/* How a send goes now. False: it has to wait for bytes. */
static bool choose_kind(struct mxs_request *r)
{
	const struct mxs_partner *p = r->partner;
	bool has_bytes = (int32_t)(p->may_bytes - p->sent_bytes - r->length) >= 0;

	if (r->length > MXS_PULL_MOST) {
		r->kind = MXS_DIRECT;
	} else if (r->length > r->ep->eager_most ||
		   (!has_bytes &&
		    (r->length > MXS_SMALL || (r->length && (!p->may_bytes || p->late))))) {
		r->kind = MXS_PULL;
	} else {
		r->kind = r->sync ? MXS_SYNC : MXS_EAGER;
		return has_bytes || !r->length;
	}
	return true;
}

/* Is this a send that ends without its receiver? */
static bool ends_early(const struct mxs_request *r)
{
	return !r->sync && r->length <= r->ep->eager_most;
}

static uint64_t header_of_send(const struct mxs_request *r)
{
	const struct mxs_header h = {
		.kind = r->kind,
		.eid = r->ep->eid,
		.tag = r->ep->tag,
		.to_tag = r->partner->session & MXS_TAG_LOW,
		.number = r->number == MXS_NUMBERS ? 0 : r->number,
		.length = r->length,
		.life = mxs_life_of(r->ep->session),
	};

	return mxs_header_encode(&h);
}

/* Lets the partner read the send's memory. The entry is before the board's for lost reads. */
static int expose(struct mxs_request *r)
{
	struct mxs_endpoint *ep = r->ep;
	ptl_md_iovec_t iov[MX_MAX_SEGMENTS];
	ptl_md_t md = mxs_request_md(r, r->length, iov);

	md.options |= PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	md.threshold = 1;
	return PtlMEMDAttach(ep->board->ni, MXS_PT_READ, r->partner->id,
			     mxs_read_bits(ep->eid, ep->tag, r->number), 0, PTL_RETAIN,
			     PTL_INS_BEFORE, md, PTL_RETAIN, &r->me, NULL);
}

/* Puts the send's bytes from where they are. */
static int put_in_place(struct mxs_request *r, ptl_ack_req_t ack)
{
	ptl_md_iovec_t iov[MX_MAX_SEGMENTS];
	ptl_md_t md = mxs_request_md(r, r->length, iov);
	int err = PtlMDBind(r->ep->board->ni, md, PTL_RETAIN, &r->md);

	if (err != PTL_OK)
		r->md = PTL_INVALID_HANDLE;
	return err != PTL_OK ? err
			     : PtlPut(r->md, ack, r->partner->id, r->partner->portal, 0,
				      r->status.match_info, 0, header_of_send(r));
}

static int inject(struct mxs_request *r, const void *data, uint32_t length)
{
	return PtlPutInject(r->ep->board->ni, data, length, PTL_INJECT_LAZY, r->partner->id,
			    r->partner->portal, 0, r->status.match_info, 0, header_of_send(r));
}

/* Puts up to 32 KiB. PTL_OK: they are taken; r->md tells whether an event will say so. */
static int put_eager(struct mxs_request *r)
{
	const void *data = r->segs[0].segment_ptr;
	int err;

	if (r->nsegs > 1) {
		mxs_gather(r, r->ep->gather);
		data = r->ep->gather;
	}
	err = inject(r, r->length ? data : NULL, r->length);
	if (err != PTL_NO_SPACE)
		return err;
	return put_in_place(r, PTL_NO_ACK_REQ);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Events that each kind may have, and the number if the partner will name the send. */
static bool reserve_for_send(struct mxs_request *r)
{
	static const uint32_t events[] = {
		[MXS_EAGER] = 1, [MXS_SYNC] = 1, [MXS_PULL] = 1, [MXS_DIRECT] = 3
	};

	if (!r->room && !mxs_reserve(r, events[r->kind]))
		return false;
	return r->kind == MXS_EAGER || r->number != MXS_NUMBERS || mxs_number(r);
}

static void count_sent(struct mxs_request *r)
{
	static const enum mxs_counter counter[] = { MXS_SENT_EAGER, MXS_SENT_SYNC, MXS_SENT_PULL,
						    MXS_SENT_DIRECT };

	mxs_count(r->ep, counter[r->kind]);
	r->partner->sent_slots++;
	if (r->kind <= MXS_SYNC)
		r->partner->sent_bytes += r->length;
}

/* An eager send has left: it ends now, or with an event. */
static void eager_left(struct mxs_request *r)
{
	if (r->md == PTL_INVALID_HANDLE) {
		r->status.xfer_length = r->length;
		mxs_complete(r, MX_STATUS_SUCCESS);
	} else {
		r->state = MXS_ON_WIRE;
		mxs_partner_wait(r->partner, &r->partner->ops, r);
	}
}

/* A request of the library with the bytes of a short send, whose own request can complete then.
 * NULL: out of memory. */
static struct mxs_request *copy_send(struct mxs_request *r)
{
	struct mxs_endpoint *ep = r->ep;
	mx_segment_t *seg = malloc(sizeof(*seg) + r->length);
	struct mxs_request *c = seg ? mxs_request_new(ep, MXS_SEND) : NULL;

	if (!c) {
		free(seg);
		return NULL;
	}
	*seg = (mx_segment_t){ seg + 1, r->length };
	mxs_gather(r, seg->segment_ptr);
	mxs_set_deadline(c, 0);
	c->copy = c->forgotten = true;
	c->kind = r->kind;
	c->segs = seg;
	c->nsegs = 1;
	c->length = r->length;
	c->partner = r->partner;
	c->status = r->status;
	c->room = r->room;
	c->number = r->number;
	ep->by_number[c->number] = c;
	r->room = 0;
	r->number = MXS_NUMBERS;
	ep->copies += c->partner != ep->self;
	r->status.xfer_length = r->length;
	mxs_complete(r, MX_STATUS_SUCCESS);
	return c;
}

/* Begins a send; its partner is known. False: it has to wait. */
static bool begin_send(struct mxs_request *r)
{
	struct mxs_partner *p = r->partner;
	int err = PTL_OK;

	if (p->sent_slots == p->may_slots || !choose_kind(r) || !reserve_for_send(r))
		return false;
	mxs_list_remove(&r->link);
	if (r->kind == MXS_PULL && ends_early(r)) {
		struct mxs_request *copy = copy_send(r);

		r = copy ? copy : r;
	}
	if (r->kind >= MXS_PULL)
		err = expose(r);
	if (err != PTL_OK)
		r->me = PTL_INVALID_HANDLE;
	else if (r->kind <= MXS_SYNC)
		err = put_eager(r);
	else if (r->kind == MXS_PULL)
		err = inject(r, NULL, 0);
	else
		err = put_in_place(r, PTL_ACK_REQ);
	r->send_ended = r->md == PTL_INVALID_HANDLE;
	if (err != PTL_OK) {
		mxs_doom(r, err == PTL_PROCESS_INVALID ? MX_STATUS_ENDPOINT_UNREACHABLE
						       : MX_STATUS_NO_RESOURCES);
		return true;
	}
	count_sent(r);
	if (r->kind == MXS_EAGER) {
		eager_left(r);
		return true;
	}
	r->state = MXS_ON_WIRE;
	mxs_partner_wait(p, &p->ops, r);
	return true;
}

/* A late partner has a slot for one who asks, at times. It first says what it made of the last
 * message, as a slot that is not needed then would be lost. So is that of one who is killed. */
static void ask_for_slot(struct mxs_partner *p)
{
	uint64_t now = mxs_now_ms();

	if (p->asked || (p->sent_slots && !p->informed) || p->sent_slots != p->may_slots ||
	    now - p->asked_ms < SLOT_MS)
		return;
	p->asked_ms = now;
	p->asked = mxs_ask(p->ep, NULL, p->id, mxs_ask_bits(MXS_ASK_ID, p->eid, 0), p);
}

void mxs_queue_run(struct mxs_partner *p)
{
	struct mxs_endpoint *ep = p->ep;

	if (!p->known) {
		if (!p->asked && !mxs_list_empty(&p->queue))
			p->asked = mxs_ask(ep, NULL, p->id, mxs_ask_bits(MXS_ASK_ID, p->eid, 0), p);
		return;
	}
	while (!mxs_list_empty(&p->queue) &&
	       begin_send(MXS_OF(p->queue.next, struct mxs_request, link)))
		continue;
	if (p->late && !mxs_list_empty(&p->queue))
		ask_for_slot(p);
}

void mxs_queues_run(struct mxs_endpoint *ep)
{
	struct mxs_link *l = ep->active.next, *next;

	ep->queues_due = false;
	for (; l != &ep->active; l = next) {
		next = l->next;
		mxs_queue_run(MXS_OF(l, struct mxs_partner, active));
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Ends a send of which everything has come that will. */
static void send_over(struct mxs_request *r)
{
	if (r->doomed || !r->send_ended || !r->answered)
		return;
	if (ends_early(r))
		r->status.xfer_length = r->length;
	mxs_doom(r, r->status.xfer_length < r->length ? MX_STATUS_TRUNCATED : MX_STATUS_SUCCESS);
}

void mxs_send_event(struct mxs_request *r, const ptl_event_t *ev)
{
	if (ev->type == PTL_EVENT_SEND_END) {
		r->send_ended = true;
		if (r->kind == MXS_EAGER) {
			r->answered = true;
			r->status.xfer_length = r->length;
		}
	} else if (ev->type == PTL_EVENT_ACK || ev->type == PTL_EVENT_GET_END) {
		r->answered = true;
		r->status.xfer_length = (uint32_t)ev->mlength;
	} else {
		return;
	}
	if (ev->ni_fail_type != PTL_NI_OK)
		mxs_doom(r, MX_STATUS_ENDPOINT_UNREACHABLE);
	else
		send_over(r);
}

void mxs_send_done(struct mxs_endpoint *ep, ptl_process_id_t from, const struct mxs_control *c)
{
	struct mxs_request *r = ep->by_number[c->a];

	if (!r || r->state != MXS_ON_WIRE || r->partner->id.nid != from.nid ||
	    r->partner->id.pid != from.pid || r->partner->eid != c->eid || c->b > r->length) {
		mxs_count(ep, MXS_DROPPED);
		return;
	}
	r->answered = true;
	r->status.xfer_length = c->b;
	send_over(r);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static mx_return_t send_checked(struct mxs_endpoint *ep, struct mxs_request *r,
				struct mxs_partner *p, mx_request_t *request)
{
	/* the request may be over, and its place free, when this returns */
	mx_request_t handle = mxs_request_handle(r);

	r->partner = p;
	r->state = MXS_QUEUED;
	r->status.msg_length = r->length;
	r->forgotten = !request;
	if (request)
		*request = handle;
	if (p->dead) {
		mxs_complete(r, p->dead);
		return MX_SUCCESS;
	}
	if (mxs_list_empty(&p->queue) && p->known) {
		if (begin_send(r))
			return MX_SUCCESS;
	}
	mxs_count(ep, MXS_SEND_WAITED);
	mxs_partner_wait(p, &p->queue, r);
	mxs_progress(ep);
	mxs_queue_run(p);
	return MX_SUCCESS;
}

static mx_return_t start_mx_send(struct mxs_endpoint *ep, const mx_segment_t *segs, uint32_t nsegs,
				 mx_endpoint_addr_t dest, uint64_t match_info, void *context,
				 mx_request_t *request, bool sync)
{
	struct mxs_partner *p = mxs_partner_of(ep, dest);
	struct mxs_request *r;
	mx_return_t ret;

	if (!p)
		return MX_BAD_ENDPOINT;
	ret = mxs_request_begin(ep, MXS_SEND, segs, nsegs, &r);
	if (ret != MX_SUCCESS)
		return ret;
	r->sync = sync;
	r->status.source = dest;
	r->status.match_info = match_info;
	r->status.context = context;
	return send_checked(ep, r, p, request);
}

static mx_return_t send_call(const char *name, mx_endpoint_t endpoint, const mx_segment_t *segs,
			     uint32_t nsegs, mx_endpoint_addr_t dest, uint64_t match_info,
			     void *context, mx_request_t *request, bool sync)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	mx_error_handler_t handler;
	mx_return_t ret;

	if (!ep)
		return mxs_no_endpoint(name);
	ret = start_mx_send(ep, segs, nsegs, dest, match_info, context, request, sync);
	handler = ep->handler;
	mxs_leave(ep);
	return ret == MX_SUCCESS ? ret : mxs_fail(handler, name, ret);
}

mx_return_t mx_isend(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
		     mx_endpoint_addr_t dest_endpoint, uint64_t match_info, void *context,
		     mx_request_t *request)
{
	return send_call("mx_isend", endpoint, segments_list, segments_count, dest_endpoint,
			 match_info, context, request, false);
}

mx_return_t mx_issend(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
		      mx_endpoint_addr_t dest_endpoint, uint64_t match_info, void *context,
		      mx_request_t *request)
{
	return send_call("mx_issend", endpoint, segments_list, segments_count, dest_endpoint,
			 match_info, context, request, true);
}
