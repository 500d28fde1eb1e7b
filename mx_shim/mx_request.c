/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Requests: their memory and handles, their segments, their Portals objects, their end. A handle
 * has a generation, so a stale one is told from the next request in the same place. Descriptors
 * have the handle as user_ptr: an event that comes after the request's end finds nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "mx_shim/mx_core.h"

#define HANDLE_MARK 0x5a /* low byte of a request's handle */

/* ---- memory and handles ---------------------------------------------------------------------- */

static bool more_requests(struct mxs_endpoint *ep)
{
	struct mxs_request *chunk;

	if (ep->chunks == MXS_CHUNKS)
		return false;
	chunk = calloc(MXS_CHUNK, sizeof(*chunk));
	if (!chunk)
		return false;
	for (uint32_t i = 0; i < MXS_CHUNK; i++) {
		struct mxs_request *r = &chunk[i];

		r->ep = ep;
		r->index = ep->chunks * MXS_CHUNK + i;
		r->gen = 1;
		mxs_list_init(&r->all);
		mxs_list_append(&ep->free_requests, &r->link);
	}
	ep->chunk[ep->chunks++] = chunk;
	return true;
}

struct mxs_request *mxs_request_new(struct mxs_endpoint *ep, enum mxs_type type)
{
	struct mxs_request *r;

	if (mxs_list_empty(&ep->free_requests) && !more_requests(ep))
		return NULL;
	r = MXS_OF(ep->free_requests.next, struct mxs_request, link);
	mxs_list_remove(&r->link);
	r->type = type;
	r->forgotten = r->hidden = r->sync = r->copy = r->send_ended = r->answered = false;
	r->doomed = MX_STATUS_SUCCESS;
	memset(&r->status, 0, sizeof(r->status));
	r->segs = NULL;
	r->nsegs = r->length = 0;
	r->partner = NULL;
	r->me = r->md = PTL_INVALID_HANDLE;
	r->number = MXS_NUMBERS;
	r->room = 0;
	r->deadline_ms = 0;
	r->owner = NULL;
	mxs_list_append(&ep->pending, &r->all);
	if (ep->timeout_ms && type != MXS_PROBE)
		mxs_set_deadline(r, ep->timeout_ms);
	return r;
}

void mxs_request_free(struct mxs_request *r)
{
	mxs_list_remove(&r->link);
	mxs_list_remove(&r->all);
	if (r->segs != &r->one && r->me == PTL_INVALID_HANDLE)
		free(r->segs);
	r->segs = NULL;
	r->type = MXS_FREE;
	r->gen = (r->gen + 1) & 0xffffff;
	mxs_list_append(&r->ep->free_requests, &r->link);
}

mx_request_t mxs_request_handle(const struct mxs_request *r)
{
	uint64_t bits =
		(uint64_t)r->gen << 40 | (uint64_t)r->index << 16 | r->ep->slot << 8 | HANDLE_MARK;

	return (mx_request_t)(uintptr_t)bits;
}

struct mxs_request *mxs_request_of(struct mxs_endpoint *ep, mx_request_t handle)
{
	uint64_t bits = (uintptr_t)handle;
	uint32_t index = bits >> 16 & 0xffffff;
	struct mxs_request *r;

	if ((bits & 0xff) != HANDLE_MARK || (bits >> 8 & 0xff) != ep->slot ||
	    index >= ep->chunks * MXS_CHUNK)
		return NULL;
	r = &ep->chunk[index / MXS_CHUNK][index % MXS_CHUNK];
	return r->type != MXS_FREE && r->gen == bits >> 40 ? r : NULL;
}

struct mxs_endpoint *mxs_enter_by_request(mx_request_t handle)
{
	uint64_t bits = (uintptr_t)handle;
	struct mxs_endpoint *ep;

	if ((bits & 0xff) != HANDLE_MARK)
		return NULL;
	ep = atomic_load_explicit(&mxs.endpoint[bits >> 8 & 0xff], memory_order_acquire);
	return ep ? mxs_enter(mxs_endpoint_handle(ep)) : NULL;
}

/* ---- segments -------------------------------------------------------------------------------- */

static mx_return_t copy_segments(struct mxs_request *r, const mx_segment_t *segs, uint32_t nsegs)
{
	uint64_t length = 0;

	if (nsegs > MX_MAX_SEGMENTS)
		return MX_BAD_SEG_CNT;
	if (nsegs && !segs)
		return MX_BAD_SEG_LIST;
	for (uint32_t i = 0; i < nsegs; i++) {
		if (segs[i].segment_length && !segs[i].segment_ptr)
			return MX_BAD_SEG_MEM;
		length += segs[i].segment_length;
	}
	if (length > UINT32_MAX)
		return MX_BAD_SEG_LIST;
	r->segs = &r->one;
	r->one = nsegs ? segs[0] : (mx_segment_t){ NULL, 0 };
	if (nsegs > 1) {
		r->segs = malloc(nsegs * sizeof(*segs));
		if (!r->segs)
			return MX_NO_RESOURCES;
		memcpy(r->segs, segs, nsegs * sizeof(*segs));
	}
	r->nsegs = nsegs;
	r->length = (uint32_t)length;
	return MX_SUCCESS;
}

mx_return_t mxs_request_begin(struct mxs_endpoint *ep, enum mxs_type type, const mx_segment_t *segs,
			      uint32_t nsegs, struct mxs_request **request)
{
	struct mxs_request *r = mxs_request_new(ep, type);
	mx_return_t ret = r ? copy_segments(r, segs, nsegs) : MX_NO_RESOURCES;

	if (ret == MX_SUCCESS) {
		*request = r;
	} else if (r) {
		mxs_set_deadline(r, 0);
		mxs_request_free(r);
	}
	return ret;
}

void mxs_scatter(struct mxs_request *r, const void *data, uint32_t bytes)
{
	const char *from = data;

	for (uint32_t i = 0; bytes; i++) {
		uint32_t n = r->segs[i].segment_length < bytes ? r->segs[i].segment_length : bytes;

		if (n)
			memcpy(r->segs[i].segment_ptr, from, n);
		from += n;
		bytes -= n;
	}
}

void mxs_gather(const struct mxs_request *r, char *to)
{
	for (uint32_t i = 0; i < r->nsegs; i++) {
		if (r->segs[i].segment_length)
			memcpy(to, r->segs[i].segment_ptr, r->segs[i].segment_length);
		to += r->segs[i].segment_length;
	}
}

ptl_md_t mxs_request_md(const struct mxs_request *r, uint32_t bytes, ptl_md_iovec_t *iov)
{
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = mxs_request_handle(r),
		.eq_handle = r->ep->eq[1],
	};

	if (r->nsegs <= 1) {
		md.start = bytes ? r->segs[0].segment_ptr : NULL;
		md.length = bytes;
		return md;
	}
	md.options |= PTL_MD_IOVEC;
	md.start = iov;
	for (uint32_t i = 0; bytes; i++) {
		uint32_t n = r->segs[i].segment_length < bytes ? r->segs[i].segment_length : bytes;

		if (n)
			iov[md.length++] = (ptl_md_iovec_t){ r->segs[i].segment_ptr, n };
		bytes -= n;
	}
	return md;
}

/* ---- what a request holds -------------------------------------------------------------------- */

bool mxs_reserve(struct mxs_request *r, uint32_t events)
{
	struct mxs_endpoint *ep = r->ep;

	if (ep->room < events)
		return false;
	ep->room -= events;
	r->room += events;
	return true;
}

bool mxs_number(struct mxs_request *r)
{
	struct mxs_endpoint *ep = r->ep;

	if (ep->numbers == MXS_NUMBERS / 2) /* a number is not used again soon */
		return false;
	do
		ep->next_number = (ep->next_number + 1) % MXS_NUMBERS;
	while (ep->by_number[ep->next_number]);
	ep->by_number[ep->next_number] = r;
	ep->numbers++;
	r->number = ep->next_number;
	return true;
}

static void free_number(struct mxs_request *r)
{
	if (r->number == MXS_NUMBERS)
		return;
	r->ep->by_number[r->number] = NULL;
	r->ep->numbers--;
	r->number = MXS_NUMBERS;
}

bool mxs_release(struct mxs_request *r)
{
	if (r->me != PTL_INVALID_HANDLE) {
		if (PtlMEUnlink(r->me) == PTL_ME_IN_USE)
			return false;
		r->me = PTL_INVALID_HANDLE;
	}
	if (r->md != PTL_INVALID_HANDLE) {
		if (PtlMDUnlink(r->md) == PTL_MD_IN_USE)
			return false;
		r->md = PTL_INVALID_HANDLE;
	}
	return true;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool is_failure(mx_status_code_t code)
{
	return code != MX_STATUS_SUCCESS && code != MX_STATUS_TRUNCATED &&
	       code != MX_STATUS_CANCELLED;
}

void mxs_complete(struct mxs_request *r, mx_status_code_t code)
{
	struct mxs_endpoint *ep = r->ep;

	mxs_list_remove(&r->link);
	mxs_list_remove(&r->all);
	free_number(r);
	if (r->room) {
		ep->room += r->room;
		ep->queues_due = true;
		r->room = 0;
	}
	if (r->deadline_ms || r->doomed)
		ep->timed--;
	r->deadline_ms = 0;
	r->doomed = MX_STATUS_SUCCESS;
	if (r->state == MXS_ARMED)
		ep->armed--;
	r->state = MXS_DONE;
	r->status.code = code;
	if (code == MX_STATUS_TRUNCATED)
		mxs_count(ep, MXS_TRUNCATED);
	ep->completions++;
	if (r->copy && r->partner != ep->self)
		ep->copies--;
	if (r->type == MXS_PROBE || r->copy || (r->forgotten && !is_failure(code))) {
		mxs_request_free(r);
		return;
	}
	if (r->hidden)
		return;
	mxs_list_append(r->forgotten ? &ep->ended_badly : &ep->done, &r->link);
}

/* Takes a receive out of Portals' list. PTL_ME_INVALID: a message has matched it, whose event is
 * there already. */
static int disarm_receive(struct mxs_request *r)
{
	int err = PtlMEUnlink(r->me);

	if (err == PTL_OK)
		r->me = r->md = PTL_INVALID_HANDLE;
	return err;
}

bool mxs_disarm(struct mxs_request *r)
{
	return disarm_receive(r) == PTL_OK;
}

void mxs_doom(struct mxs_request *r, mx_status_code_t code)
{
	if (r->doomed)
		return;
	if (r->state == MXS_ARMED ? disarm_receive(r) == PTL_ME_INVALID : false)
		return;
	if (mxs_release(r)) {
		mxs_complete(r, code);
		return;
	}
	if (!r->deadline_ms)
		r->ep->timed++;
	r->doomed = code;
}

void mxs_set_deadline(struct mxs_request *r, uint32_t ms)
{
	if (r->deadline_ms && !r->doomed)
		r->ep->timed--;
	r->deadline_ms = ms ? mxs_now_ms() + ms : 0;
	if (r->deadline_ms && !r->doomed)
		r->ep->timed++;
}

/* Ends a request whose time is over. */
static void expire(struct mxs_request *r)
{
	if (r->type == MXS_PROBE) {
		mxs_probe_lost(r);
		return;
	}
	if (r->state == MXS_POSTED)
		mxs_posted_remove(r);
	mxs_doom(r, MX_STATUS_TIMEOUT);
}

void mxs_requests_tick(struct mxs_endpoint *ep, uint64_t now)
{
	struct mxs_link *l = ep->pending.next, *next;

	for (; ep->timed && l != &ep->pending; l = next) {
		struct mxs_request *r = MXS_OF(l, struct mxs_request, all);
		mx_status_code_t code = r->doomed;

		next = l->next;
		if (code && mxs_release(r)) {
			mxs_complete(r, code);
		} else if (!code && r->deadline_ms && r->deadline_ms <= now) {
			/* the end of a probe may be that of others */
			bool probe = r->type == MXS_PROBE;

			expire(r);
			if (probe)
				next = ep->pending.next;
		}
	}
}
