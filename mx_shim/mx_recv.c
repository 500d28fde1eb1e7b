/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Receives, and what becomes of a message: it goes to the receive that matches it, is shown to the
 * unexpected handler, or waits. Functions that may run in an inline handler, inside of Portals,
 * leave what needs a call of Portals on lists: reads (to_get) and answers (answers).
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mx_shim/mx_core.h"

/* ---- answers --------------------------------------------------------------------------------- */

void mxs_answer_add(struct mxs_endpoint *ep, ptl_process_id_t to, const struct mxs_header *h,
		    uint32_t bytes)
{
	if (ep->nanswers == ep->answers_room) {
		uint32_t room = ep->answers_room ? 2 * ep->answers_room : 64;
		struct mxs_done_answer *more = realloc(ep->answers, room * sizeof(*more));

		if (!more) {
			base_warn("MX: no memory to answer a sender, which will wait for ever");
			return;
		}
		ep->answers = more;
		ep->answers_room = room;
	}
	ep->answers[ep->nanswers++] =
		(struct mxs_done_answer){ to, h->eid, h->tag, h->number, bytes };
}

void mxs_answers_send(struct mxs_endpoint *ep)
{
	for (uint32_t i = 0; i < ep->nanswers; i++) {
		const struct mxs_done_answer *n = &ep->answers[i];
		struct mxs_control c = { MXS_CONTROL_DONE, n->eid,    n->tag,  ep->eid,
					 ep->tag,          n->number, n->bytes };

		PtlPutInject(ep->board->ni, NULL, 0, PTL_INJECT_LAZY, n->to, MXS_PT_CONTROL, 0,
			     mxs_control_bits(&c), 0, mxs_control_data(&c));
	}
	ep->nanswers = 0;
}

/* ---- delivering ------------------------------------------------------------------------------ */

/* The receive is to read its bytes from the sender. */
static void read_later(struct mxs_request *r, uint32_t number)
{
	r->state = MXS_GETTING;
	r->peer_number = number;
	mxs_list_append(&r->ep->to_get, &r->link);
}

void mxs_deliver(struct mxs_request *r, struct mxs_partner *p, uint64_t match,
		 const struct mxs_header *h, const void *data)
{
	uint32_t bytes = h->length < r->length ? h->length : r->length;

	r->partner = p;
	r->status.source = mxs_addr(p);
	r->status.match_info = match;
	r->status.msg_length = h->length;
	r->status.xfer_length = bytes;
	if (h->kind > MXS_SYNC && bytes) {
		mxs_count(r->ep, MXS_RECV_READ);
		read_later(r, h->number);
		return;
	}
	if (h->kind <= MXS_SYNC)
		mxs_scatter(r, data, bytes);
	if (h->kind != MXS_EAGER)
		mxs_answer_add(r->ep, p->id, h, bytes);
	mxs_complete(r, bytes < h->length ? MX_STATUS_TRUNCATED : MX_STATUS_SUCCESS);
}

void mxs_gets_start(struct mxs_endpoint *ep)
{
	while (!mxs_list_empty(&ep->to_get)) {
		struct mxs_request *r = MXS_OF(ep->to_get.next, struct mxs_request, link);
		struct mxs_partner *p = r->partner;
		ptl_md_iovec_t iov[MX_MAX_SEGMENTS];
		ptl_md_t md;
		int err;

		if (!mxs_reserve(r, 1))
			return;
		mxs_list_remove(&r->link);
		mxs_partner_wait(p, &p->ops, r);
		md = mxs_request_md(r, r->status.xfer_length, iov);
		err = PtlMDBind(ep->board->ni, md, PTL_RETAIN, &r->md);
		if (err != PTL_OK)
			r->md = PTL_INVALID_HANDLE;
		else
			err = PtlGetRegion(r->md, 0, r->status.xfer_length, p->id, MXS_PT_READ, 0,
					   mxs_read_bits(p->eid, p->tag, r->peer_number), 0);
		if (err != PTL_OK)
			mxs_doom(r, err == PTL_PROCESS_INVALID ? MX_STATUS_ENDPOINT_UNREACHABLE
							       : MX_STATUS_NO_RESOURCES);
	}
}

static void read_ended(struct mxs_request *r, const ptl_event_t *ev)
{
	mx_status_code_t code = MX_STATUS_SUCCESS;

	if (ev->ni_fail_type != PTL_NI_OK || ev->mlength != r->status.xfer_length) {
		r->status.xfer_length = 0;
		code = ev->ni_fail_type == PTL_NI_OK && !ev->mlength
			       ? MX_STATUS_BAD_RDMAWIN
			       : MX_STATUS_ENDPOINT_UNREACHABLE;
	} else if (r->status.xfer_length < r->status.msg_length) {
		code = MX_STATUS_TRUNCATED;
	}
	mxs_doom(r, code);
}

/* A message has come into a receive that waited in Portals. */
static void armed_filled(struct mxs_request *r, const ptl_event_t *ev)
{
	struct mxs_endpoint *ep = r->ep;
	struct mxs_partner *p = NULL;
	struct mxs_header h;

	r->me = r->md = PTL_INVALID_HANDLE; /* unlinked by itself */
	ep->armed--;
	r->state = MXS_GETTING;
	if (mxs_header_decode(ev->hdr_data, ev->rlength, &h) && h.to_tag == (ep->tag & MXS_TAG_LOW))
		p = mxs_partner_of_message(ep, ev->initiator, &h);
	if (!p) { /* not for this life of the endpoint */
		mxs_count(ep, MXS_DROPPED);
		mxs_posted_add(ep, r);
		return;
	}
	mxs_credit_message(p);
	if (h.kind <= MXS_SYNC)
		mxs_credit_bytes(p, h.length);
	mxs_count(ep, h.kind == MXS_DIRECT ? MXS_RECV_DIRECT : MXS_RECV_EXPECTED);
	if (h.kind == MXS_PULL) {
		mxs_deliver(r, p, ev->match_bits, &h, NULL);
		return;
	}
	r->partner = p;
	r->status.source = mxs_addr(p);
	r->status.match_info = ev->match_bits;
	r->status.msg_length = h.length;
	r->status.xfer_length = (uint32_t)ev->mlength;
	if (h.kind == MXS_SYNC)
		mxs_answer_add(ep, p->id, &h, r->status.xfer_length);
	if (ev->ni_fail_type != PTL_NI_OK)
		mxs_complete(r, MX_STATUS_ENDPOINT_UNREACHABLE);
	else
		mxs_complete(r, ev->mlength < h.length ? MX_STATUS_TRUNCATED : MX_STATUS_SUCCESS);
}

void mxs_recv_event(struct mxs_request *r, const ptl_event_t *ev)
{
	if (ev->type == PTL_EVENT_PUT_END && r->state == MXS_ARMED)
		armed_filled(r, ev);
	else if (ev->type == PTL_EVENT_REPLY_END && r->state == MXS_GETTING)
		read_ended(r, ev);
}

/* ---- arriving -------------------------------------------------------------------------------- */

static struct mxs_unexp *keep_message(struct mxs_endpoint *ep, struct mxs_partner *p,
				      uint64_t match, const struct mxs_header *h, const void *data)
{
	uint32_t bytes = h->kind <= MXS_SYNC ? h->length : 0;
	struct mxs_unexp *u = malloc(sizeof(*u) + bytes);

	if (!u) {
		base_warn("MX: no memory for a message that came before its receive; it is lost");
		mxs_count(ep, MXS_DROPPED);
		return NULL;
	}
	u->partner = p;
	u->match = match;
	u->h = *h;
	u->kept = 0;
	mxs_list_init(&u->bucket);
	if (bytes)
		memcpy(u->data, data, bytes);
	ep->kept_bytes += bytes;
	if (mxs_credit_withheld(ep, bytes))
		u->kept = bytes;
	else
		mxs_credit_bytes(p, bytes);
	return u;
}

void mxs_arrive(struct mxs_endpoint *ep, ptl_process_id_t from, uint64_t match,
		const struct mxs_header *h, const void *data)
{
	struct mxs_partner *p = NULL;
	struct mxs_request *r = NULL;
	struct mxs_unexp *u;

	/* a message for another life tells nothing of its sender's present one */
	if (h->to_tag == (ep->tag & MXS_TAG_LOW))
		p = mxs_partner_of_message(ep, from, h);
	if (!p) {
		mxs_count(ep, MXS_DROPPED);
		return;
	}
	mxs_credit_message(p);
	if (mxs_list_empty(&ep->arrived))
		r = mxs_posted_match(ep, match);
	if (r) {
		mxs_count(ep, MXS_RECV_EXPECTED);
		if (h->kind <= MXS_SYNC)
			mxs_credit_bytes(p, h->length);
		mxs_deliver(r, p, match, h, data);
		return;
	}
	mxs_count(ep, MXS_RECV_UNEXPECTED);
	u = keep_message(ep, p, match, h, data);
	if (!u)
		return;
	if (mxs_list_empty(&ep->arrived) && !ep->unexp_handler && !ep->unexp_callback)
		mxs_unexp_add(ep, u);
	else
		mxs_list_append(&ep->arrived, &u->all);
}

/* ---- the unexpected handler ------------------------------------------------------------------ */

/* Calls the program's handler without the lock. */
static mx_unexp_handler_action_t show_message(struct mxs_endpoint *ep, struct mxs_unexp *u)
{
	bool whole = u->h.kind == MXS_EAGER && u->h.length <= MXS_SMALL;
	mx_unexp_handler_action_t action = MX_RECV_CONTINUE;
	mx_matching_callback_t callback = ep->unexp_callback;
	mx_unexp_handler_t handler = ep->unexp_handler;
	mx_endpoint_addr_t source = mxs_addr(u->partner);
	void *context = ep->unexp_context;

	ep->in_handler = true;
	ep->handler_thread = pthread_self();
	pthread_mutex_unlock(&ep->lock);
	if (handler)
		action = handler(context, source, u->match, u->h.length, whole ? u->data : NULL);
	else
		callback(context, u->match, (int)u->h.length);
	pthread_mutex_lock(&ep->lock);
	ep->in_handler = false;
	pthread_cond_broadcast(&ep->handler_left);
	return action;
}

/* Gives a message that is in no list to the receive that matches it. False: none does. */
static bool deliver_kept(struct mxs_endpoint *ep, struct mxs_unexp *u)
{
	struct mxs_request *r = mxs_posted_match(ep, u->match);

	if (!r)
		return false;
	mxs_deliver(r, u->partner, u->match, &u->h, u->data);
	mxs_unexp_free(ep, u);
	return true;
}

void mxs_show_arrived(struct mxs_endpoint *ep)
{
	while (!mxs_list_empty(&ep->arrived) && !ep->in_handler && !ep->progression_off &&
	       !ep->closing) {
		struct mxs_unexp *u = MXS_OF(ep->arrived.next, struct mxs_unexp, all);
		struct mxs_request *r = mxs_posted_match(ep, u->match);
		mx_unexp_handler_action_t action = MX_RECV_CONTINUE;

		if (r) {
			mxs_list_remove(&u->all);
			mxs_deliver(r, u->partner, u->match, &u->h, u->data);
			mxs_unexp_free(ep, u);
			continue;
		}
		/* it stays in the list meanwhile, so that later messages queue behind it */
		if (ep->unexp_handler || ep->unexp_callback)
			action = show_message(ep, u);
		mxs_list_remove(&u->all);
		if (action == MX_RECV_FINISHED) {
			if (u->h.kind != MXS_EAGER)
				mxs_answer_add(ep, u->partner->id, &u->h, 0);
			mxs_unexp_free(ep, u);
		} else if (!deliver_kept(ep, u)) {
			mxs_unexp_add(ep, u);
		}
	}
}

/* ---- posting --------------------------------------------------------------------------------- */

enum { SCAN_MOST = 64, POST_TRIES = 8 };

/* Would a message that matches this receive match an older one that waits in the library? */
static bool older_waits_here(struct mxs_endpoint *ep, const struct mxs_request *r)
{
	uint32_t scanned = 0;

	if (!ep->posted)
		return false;
	for (struct mxs_link *l = ep->pending.next; l != &ep->pending; l = l->next) {
		const struct mxs_request *o = MXS_OF(l, struct mxs_request, all);

		if (++scanned > SCAN_MOST)
			return true;
		if (o != r && o->type == MXS_RECV && o->state == MXS_POSTED &&
		    !((o->status.match_info ^ r->status.match_info) & o->mask & r->mask))
			return true;
	}
	return false;
}

/* Lets a receive wait in Portals. PTL_MD_NO_UPDATE: messages have come that have to be looked at
 * first. */
static int arm(struct mxs_request *r)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	struct mxs_endpoint *ep = r->ep;
	ptl_md_iovec_t iov[MX_MAX_SEGMENTS];
	ptl_md_t md = mxs_request_md(r, r->length, iov);
	int err;

	md.options |= PTL_MD_OP_PUT | PTL_MD_TRUNCATE;
	md.threshold = 1;
	err = PtlMEMDPost(ep->board->ni, ep->anchor, any, r->status.match_info, ~r->mask,
			  PTL_UNLINK, PTL_INS_BEFORE, md, PTL_UNLINK, &r->me, &r->md, ep->eq[0]);
	if (err != PTL_OK) {
		r->me = r->md = PTL_INVALID_HANDLE;
		return err;
	}
	r->state = MXS_ARMED;
	ep->armed++;
	return PTL_OK;
}

static bool take_unexpected(struct mxs_endpoint *ep, struct mxs_request *r)
{
	struct mxs_unexp *u = mxs_unexp_find(ep, r->status.match_info, r->mask);

	if (!u)
		return false;
	mxs_unexp_remove(ep, u);
	mxs_deliver(r, u->partner, u->match, &u->h, u->data);
	mxs_unexp_free(ep, u);
	mxs_gets_start(ep);
	mxs_answers_send(ep);
	if (!mxs_list_empty(&ep->credit_due))
		mxs_credits_send(ep);
	return true;
}

static void post_receive(struct mxs_endpoint *ep, struct mxs_request *r)
{
	const uint32_t gen = r->gen;

	for (int tries = 0;; tries++) {
		int err;

		if (r->gen != gen || r->state != MXS_QUEUED)
			return; /* its time was over meanwhile */
		if (take_unexpected(ep, r))
			return;
		if (tries == POST_TRIES || r->length <= MXS_EAGER_MOST ||
		    ep->armed >= MXS_ARMED_MOST || !mxs_list_empty(&ep->arrived) ||
		    older_waits_here(ep, r))
			break;
		if (!r->room && !mxs_reserve(r, 3))
			break;
		err = arm(r);
		if (err == PTL_OK)
			return;
		if (err != PTL_MD_NO_UPDATE)
			break;
		mxs_progress(ep);
	}
	mxs_posted_add(ep, r);
}

static mx_return_t start_receive(struct mxs_endpoint *ep, const mx_segment_t *segs, uint32_t nsegs,
				 uint64_t match_info, uint64_t match_mask, void *context,
				 mx_request_t *request)
{
	struct mxs_request *r;
	mx_return_t ret;

	ret = mxs_check_mask(ep, match_info, match_mask, false);
	if (ret != MX_SUCCESS)
		return ret;
	ret = mxs_request_begin(ep, MXS_RECV, segs, nsegs, &r);
	if (ret != MX_SUCCESS)
		return ret;
	r->mask = match_mask;
	r->status.match_info = match_info;
	r->status.context = context;
	r->forgotten = !request;
	r->state = MXS_QUEUED;
	if (request)
		*request = mxs_request_handle(r);
	post_receive(ep, r);
	return MX_SUCCESS;
}

mx_return_t mx_irecv(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
		     uint64_t match_info, uint64_t match_mask, void *context, mx_request_t *request)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	mx_error_handler_t handler;
	mx_return_t ret;

	if (!ep)
		return mxs_no_endpoint("mx_irecv");
	ret = start_receive(ep, segments_list, segments_count, match_info, match_mask, context,
			    request);
	handler = ep->handler;
	mxs_leave(ep);
	return ret == MX_SUCCESS ? ret : mxs_fail(handler, "mx_irecv", ret);
}
