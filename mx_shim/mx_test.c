/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The calls that look for the end of requests, or for messages: test, wait, peek, probe, cancel.
 * Each has a form that waits; both share a condition.
 */
#include "mx_shim/mx_core.h"

/* The subject of a call's search, and its result. */
struct search {
	mx_request_t handle;
	struct mxs_request *r;
	uint64_t match, mask;
	struct mxs_unexp *u;
	mx_return_t error;
};

typedef bool (*found_t)(struct mxs_endpoint *ep, void *arg);

/* ---- conditions ------------------------------------------------------------------------------ */

static bool is_done(struct mxs_endpoint *ep, void *arg)
{
	struct search *s = arg;
	struct mxs_request *r = mxs_request_of(ep, s->handle);

	if (!r || r->type == MXS_PROBE || r->forgotten) {
		s->error = MX_BAD_REQUEST; /* another thread may have ended it meanwhile */
		return true;
	}
	s->r = r;
	return r->state == MXS_DONE;
}

static bool any_done(struct mxs_endpoint *ep, void *arg)
{
	struct search *s = arg;

	for (struct mxs_link *l = ep->done.next; l != &ep->done; l = l->next) {
		struct mxs_request *r = MXS_OF(l, struct mxs_request, link);

		if ((r->status.match_info & s->mask) == s->match) {
			s->r = r;
			return true;
		}
	}
	return false;
}

static bool any_unexpected(struct mxs_endpoint *ep, void *arg)
{
	struct search *s = arg;

	s->u = mxs_unexp_find(ep, s->match, s->mask);
	return s->u != NULL;
}

/* ---- searching ------------------------------------------------------------------------------- */

/* Looks once, or with `wait` for up to `timeout` ms. True: found, or an error. */
static bool search_for(struct mxs_endpoint *ep, found_t found, struct search *s, bool wait,
		       uint32_t timeout)
{
	if (found(ep, s))
		return true;
	if (wait)
		return mxs_wait(ep, found, s, timeout);
	mxs_progress(ep);
	return found(ep, s);
}

/* Hands a completed request to the program. Lets go of the endpoint. */
static mx_return_t hand_over_request(struct mxs_endpoint *ep, struct mxs_request *r,
				     const char *call, mx_status_t *st, uint32_t *result)
{
	mx_status_code_t code = r->status.code;
	mx_error_handler_t handler = ep->handler;

	if (st)
		*st = r->status;
	if (result)
		*result = 1;
	mxs_request_free(r);
	mxs_leave(ep);
	mxs_status_failed(handler, call, code);
	return MX_SUCCESS;
}

static mx_return_t leave_with(struct mxs_endpoint *ep, const char *call, mx_return_t ret)
{
	mx_error_handler_t handler = ep->handler;

	mxs_leave(ep);
	return ret == MX_SUCCESS ? ret : mxs_fail(handler, call, ret);
}

static mx_return_t nothing_found(struct mxs_endpoint *ep, const char *call, uint32_t *result)
{
	bool yield = ep->yield_due;

	if (result)
		*result = 0;
	ep->yield_due = false;
	leave_with(ep, call, MX_SUCCESS);
	if (yield)
		mxs_yield();
	return MX_SUCCESS;
}

static mx_return_t test_or_wait(const char *call, mx_endpoint_t endpoint, mx_request_t *request,
				bool wait, uint32_t timeout, mx_status_t *st, uint32_t *result)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct search s = { .error = MX_SUCCESS };

	if (!ep)
		return mxs_no_endpoint(call);
	if (!request)
		return leave_with(ep, call, MX_BAD_REQUEST);
	s.handle = *request;
	if (!search_for(ep, is_done, &s, wait, timeout))
		return nothing_found(ep, call, result);
	if (s.error != MX_SUCCESS)
		return leave_with(ep, call, s.error);
	*request = NULL;
	return hand_over_request(ep, s.r, call, st, result);
}

static mx_return_t search_any(const char *call, mx_endpoint_t endpoint, bool wait, uint32_t timeout,
			      uint64_t match, uint64_t mask, mx_status_t *st, uint32_t *result)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct search s = { .match = match, .mask = mask };
	mx_return_t ret;

	if (!ep)
		return mxs_no_endpoint(call);
	ret = mxs_check_mask(ep, match, mask, true);
	if (ret != MX_SUCCESS)
		return leave_with(ep, call, ret);
	if (!search_for(ep, any_done, &s, wait, timeout))
		return nothing_found(ep, call, result);
	return hand_over_request(ep, s.r, call, st, result);
}

static mx_return_t search_first(const char *call, mx_endpoint_t endpoint, bool wait,
				uint32_t timeout, mx_request_t *request, uint32_t *result)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct search s = { .match = 0, .mask = 0 };

	if (!ep)
		return mxs_no_endpoint(call);
	if (!search_for(ep, any_done, &s, wait, timeout))
		return nothing_found(ep, call, result);
	if (request)
		*request = mxs_request_handle(s.r);
	if (result)
		*result = 1;
	return leave_with(ep, call, MX_SUCCESS);
}

static mx_return_t search_unexpected(const char *call, mx_endpoint_t endpoint, bool wait,
				     uint32_t timeout, uint64_t match, uint64_t mask,
				     mx_status_t *st, uint32_t *result)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct search s = { .match = match, .mask = mask };
	mx_return_t ret;

	if (!ep)
		return mxs_no_endpoint(call);
	ret = mxs_check_mask(ep, match, mask, true);
	if (ret != MX_SUCCESS)
		return leave_with(ep, call, ret);
	if (!search_for(ep, any_unexpected, &s, wait, timeout))
		return nothing_found(ep, call, result);
	if (st)
		*st = (mx_status_t){
			.code = MX_STATUS_SUCCESS,
			.source = mxs_addr(s.u->partner),
			.match_info = s.u->match,
			.msg_length = s.u->h.length,
			.xfer_length = s.u->h.length,
		};
	if (result)
		*result = 1;
	return leave_with(ep, call, MX_SUCCESS);
}

mx_return_t mxs_check_mask(const struct mxs_endpoint *ep, uint64_t match, uint64_t mask, bool any)
{
	uint64_t ids = ((UINT64_C(1) << ep->ctx_bits) - 1) << (ep->ctx_shift & 63);

	if (match & ~mask)
		return MX_BAD_MATCH_MASK;
	if (!ep->ctx_bits || (mask & ids) == ids || (any && !(mask & ids)))
		return MX_SUCCESS;
	return MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK;
}

/* ---- calls that look ------------------------------------------------------------------------- */

mx_return_t mx_test(mx_endpoint_t endpoint, mx_request_t *request, mx_status_t *status,
		    uint32_t *result)
{
	return test_or_wait("mx_test", endpoint, request, false, 0, status, result);
}

mx_return_t mx_wait(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout,
		    mx_status_t *status, uint32_t *result)
{
	return test_or_wait("mx_wait", endpoint, request, true, timeout, status, result);
}

mx_return_t mx_test_any(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask,
			mx_status_t *status, uint32_t *result)
{
	return search_any("mx_test_any", endpoint, false, 0, match_info, match_mask, status,
			  result);
}

mx_return_t mx_wait_any(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info,
			uint64_t match_mask, mx_status_t *status, uint32_t *result)
{
	return search_any("mx_wait_any", endpoint, true, timeout, match_info, match_mask, status,
			  result);
}

mx_return_t mx_ipeek(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result)
{
	return search_first("mx_ipeek", endpoint, false, 0, request, result);
}

mx_return_t mx_peek(mx_endpoint_t endpoint, uint32_t timeout, mx_request_t *request,
		    uint32_t *result)
{
	return search_first("mx_peek", endpoint, true, timeout, request, result);
}

mx_return_t mx_iprobe(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask,
		      mx_status_t *status, uint32_t *result)
{
	return search_unexpected("mx_iprobe", endpoint, false, 0, match_info, match_mask, status,
				 result);
}

mx_return_t mx_probe(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info,
		     uint64_t match_mask, mx_status_t *status, uint32_t *result)
{
	return search_unexpected("mx_probe", endpoint, true, timeout, match_info, match_mask,
				 status, result);
}

/* ---- calls on one request -------------------------------------------------------------------- */

/* The request that a call names; NULL: it has none. */
static struct mxs_request *named_request(struct mxs_endpoint *ep, const mx_request_t *request)
{
	struct mxs_request *r = request ? mxs_request_of(ep, *request) : NULL;

	return r && r->type != MXS_PROBE && !r->forgotten && !r->hidden ? r : NULL;
}

mx_return_t mx_ibuffered(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct mxs_request *r;

	if (!ep)
		return mxs_no_endpoint("mx_ibuffered");
	mxs_progress(ep);
	r = named_request(ep, request);
	if (!r || r->type != MXS_SEND)
		return leave_with(ep, "mx_ibuffered", MX_BAD_REQUEST);
	/* a synchronous send that Portals has copied only waits for its answer */
	if (result)
		*result = r->state == MXS_DONE ||
			  (r->state == MXS_ON_WIRE && r->kind == MXS_SYNC && r->send_ended);
	return leave_with(ep, "mx_ibuffered", MX_SUCCESS);
}

mx_return_t mx_context(mx_request_t *request, void **context)
{
	struct mxs_endpoint *ep = request ? mxs_enter_by_request(*request) : NULL;
	struct mxs_request *r;

	if (!ep)
		return mxs_fail(NULL, "mx_context", MX_BAD_REQUEST);
	r = named_request(ep, request);
	if (!r)
		return leave_with(ep, "mx_context", MX_BAD_REQUEST);
	if (context)
		*context = r->status.context;
	return leave_with(ep, "mx_context", MX_SUCCESS);
}

/* Takes back a receive or a connect. False: it is matched, or complete. */
static bool cancel_request(struct mxs_request *r)
{
	if (r->type == MXS_CONNECT)
		return r->state == MXS_GETTING;
	if (r->state == MXS_POSTED) {
		mxs_posted_remove(r);
		return true;
	}
	return r->state == MXS_ARMED && mxs_disarm(r);
}

static mx_return_t cancel_call(const char *call, mx_endpoint_t endpoint, mx_request_t *request,
			       uint32_t *result, bool keep)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct mxs_request *r;
	bool done;

	if (!ep)
		return mxs_no_endpoint(call);
	r = named_request(ep, request);
	if (!r)
		return leave_with(ep, call, MX_BAD_REQUEST);
	if (r->type == MXS_SEND)
		return leave_with(ep, call, MX_CANCEL_NOT_SUPPORTED);
	if (r->type == MXS_RECV) {
		mxs_progress(ep);
		r = named_request(ep, request);
	}
	done = r && cancel_request(r);
	if (done) {
		r->hidden = !keep;
		mxs_complete(r, MX_STATUS_CANCELLED);
		if (!keep) {
			mxs_request_free(r);
			*request = NULL;
		}
	}
	if (result)
		*result = done;
	return leave_with(ep, call, MX_SUCCESS);
}

mx_return_t mx_cancel(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result)
{
	return cancel_call("mx_cancel", endpoint, request, result, false);
}

mx_return_t mx__cancel_keep(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result)
{
	return cancel_call("mx_cancel", endpoint, request, result, true);
}

mx_return_t mx_forget(mx_endpoint_t endpoint, mx_request_t *request)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct mxs_request *r;

	if (!ep)
		return mxs_no_endpoint("mx_forget");
	r = named_request(ep, request);
	if (!r)
		return leave_with(ep, "mx_forget", MX_BAD_REQUEST);
	*request = NULL;
	r->forgotten = true;
	if (r->state == MXS_DONE)
		return hand_over_request(ep, r, "mx_forget", NULL, NULL);
	return leave_with(ep, "mx_forget", MX_SUCCESS);
}

mx_return_t mx_set_request_timeout(mx_endpoint_t endpoint, mx_request_t request,
				   uint32_t milliseconds)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct mxs_request *r;

	if (!ep)
		return mxs_no_endpoint("mx_set_request_timeout");
	if (!request) {
		ep->timeout_ms = milliseconds;
		return leave_with(ep, "mx_set_request_timeout", MX_SUCCESS);
	}
	r = named_request(ep, &request);
	if (!r)
		return leave_with(ep, "mx_set_request_timeout", MX_BAD_REQUEST);
	if (r->state != MXS_DONE)
		mxs_set_deadline(r, milliseconds);
	return leave_with(ep, "mx_set_request_timeout", MX_SUCCESS);
}

mx_return_t mx_progress(mx_endpoint_t endpoint)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);

	if (!ep)
		return mxs_no_endpoint("mx_progress");
	mxs_progress(ep);
	return nothing_found(ep, "mx_progress", NULL);
}

/* ---- the unexpected handler ------------------------------------------------------------------ */

static mx_return_t register_handler(const char *call, mx_endpoint_t endpoint,
				    mx_unexp_handler_t handler, mx_matching_callback_t callback,
				    void *context)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);

	if (!ep)
		return mxs_no_endpoint(call);
	mxs_progress(ep); /* what has come before is not shown */
	ep->unexp_handler = handler;
	ep->unexp_callback = callback;
	ep->unexp_context = context;
	return leave_with(ep, call, MX_SUCCESS);
}

mx_return_t mx_register_unexp_handler(mx_endpoint_t endpoint, mx_unexp_handler_t handler,
				      void *context)
{
	return register_handler("mx_register_unexp_handler", endpoint, handler, NULL, context);
}

mx_return_t mx_register_unexp_callback(mx_endpoint_t endpoint, mx_matching_callback_t callback,
				       void *context)
{
	return register_handler("mx_register_unexp_callback", endpoint, NULL, callback, context);
}

mx_return_t mx_disable_progression(mx_endpoint_t endpoint)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);

	if (!ep)
		return mxs_no_endpoint("mx_disable_progression");
	ep->progression_off = true;
	ep->waiters++; /* the endpoint does not go meanwhile */
	while (ep->in_handler && !pthread_equal(ep->handler_thread, pthread_self()))
		pthread_cond_wait(&ep->handler_left, &ep->lock);
	ep->waiters--;
	if (ep->closing)
		pthread_cond_broadcast(&ep->handler_left);
	return leave_with(ep, "mx_disable_progression", MX_SUCCESS);
}

mx_return_t mx_reenable_progression(mx_endpoint_t endpoint)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);

	if (!ep)
		return mxs_no_endpoint("mx_reenable_progression");
	ep->progression_off = false;
	mxs_progress(ep);
	return leave_with(ep, "mx_reenable_progression", MX_SUCCESS);
}
