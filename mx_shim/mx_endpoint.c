/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Opening and closing endpoints. An endpoint's memory is used again by a later one and never freed,
 * so a stale handle finds a lock and a generation that is not its own.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "mx_shim/mx_core.h"

#define HANDLE_MARK  0x3c        /* low byte of an endpoint's handle */
#define NOBODY       0xfffffffeu /* a pid that no process has */
#define FIRST_BLOCKS 64u         /* 2 MiB that newcomers may fill */
#define WAKE_EVENTS  8u
/* How long partners may need to read the last short sends, then Portals to let go of memory. */
#define CLOSE_MS 15000u

/* ---- handles --------------------------------------------------------------------------------- */

mx_endpoint_t mxs_endpoint_handle(const struct mxs_endpoint *ep)
{
	uint64_t gen = atomic_load_explicit(&ep->gen, memory_order_relaxed);

	return (mx_endpoint_t)(uintptr_t)(gen << 16 | ep->slot << 8 | HANDLE_MARK);
}

struct mxs_endpoint *mxs_enter(mx_endpoint_t handle)
{
	uint64_t bits = (uintptr_t)handle;
	struct mxs_endpoint *ep;

	if ((bits & 0xff) != HANDLE_MARK)
		return NULL;
	ep = atomic_load_explicit(&mxs.endpoint[bits >> 8 & 0xff], memory_order_acquire);
	if (!ep)
		return NULL;
	pthread_mutex_lock(&ep->lock);
	if (atomic_load_explicit(&ep->gen, memory_order_relaxed) == bits >> 16 && !ep->closing)
		return ep;
	pthread_mutex_unlock(&ep->lock);
	return NULL;
}

/* The return code that comes nearest to a failed request's status. */
static mx_return_t return_of_status(mx_status_code_t code)
{
	switch (code) {
	case MX_STATUS_TIMEOUT:
		return MX_TIMEOUT;
	case MX_STATUS_BAD_KEY:
		return MX_BAD_CONNECTION_KEY;
	case MX_STATUS_NO_RESOURCES:
		return MX_NO_RESOURCES;
	default:
		return MX_CONNECTION_FAILED;
	}
}

mx_return_t mxs_status_failed(mx_error_handler_t handler, const char *call, mx_status_code_t code)
{
	if (code == MX_STATUS_SUCCESS || code == MX_STATUS_TRUNCATED || code == MX_STATUS_CANCELLED)
		return MX_SUCCESS;
	return mxs_fail(handler, call, return_of_status(code));
}

/* Tells the error handler of requests that were forgotten and have failed. Lets go of the lock. */
static void report_forgotten(struct mxs_endpoint *ep)
{
	while (!mxs_list_empty(&ep->ended_badly)) {
		struct mxs_request *r = MXS_OF(ep->ended_badly.next, struct mxs_request, link);
		mx_status_code_t code = r->status.code;
		mx_error_handler_t handler = ep->handler;

		mxs_request_free(r);
		pthread_mutex_unlock(&ep->lock);
		mxs_status_failed(handler, "a forgotten request", code);
		pthread_mutex_lock(&ep->lock);
	}
}

void mxs_leave(struct mxs_endpoint *ep)
{
	if (ep->completions != ep->announced)
		mxs_announce(ep);
	if (!mxs_list_empty(&ep->ended_badly))
		report_forgotten(ep);
	pthread_mutex_unlock(&ep->lock);
}

/* ---- Portals objects ------------------------------------------------------------------------- */

static const ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };

static int expose_record(struct mxs_endpoint *ep, unsigned char *record, enum mxs_ask ask,
			 uint32_t key, ptl_match_bits_t ignore, int most, ptl_handle_me_t *me)
{
	ptl_md_t md = {
		.start = record,
		.length = MXS_RECORD_BYTES,
		.threshold = most,
		.options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
			   PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
		.eq_handle = PTL_EQ_NONE,
	};

	return PtlMEMDAttach(ep->board->ni, MXS_PT_CONNECT, anybody,
			     mxs_ask_bits(ask, ep->eid, key), ignore, PTL_RETAIN, PTL_INS_BEFORE,
			     md, PTL_RETAIN, me, NULL);
}

/* Answers that promise slots are given so many times only, and then those that promise none. */
static int expose_records(struct mxs_endpoint *ep)
{
	const struct {
		unsigned char *record;
		enum mxs_ask ask;
		uint32_t key;
		ptl_match_bits_t ignore;
		int most;
	} exposed[MXS_ASK_ENTRIES] = {
		[MXS_EXPOSED_BAD_KEY] = { ep->bad_key, MXS_ASK_KEY, 0, UINT32_MAX,
					  PTL_MD_THRESH_INF },
		[MXS_EXPOSED_KEY_LATE] = { ep->no_slots, MXS_ASK_KEY, ep->key, 0,
					   PTL_MD_THRESH_INF },
		[MXS_EXPOSED_KEY] = { ep->record, MXS_ASK_KEY, ep->key, 0, MXS_NEWCOMERS },
		[MXS_EXPOSED_ID_LATE] = { ep->no_slots, MXS_ASK_ID, 0, 0, PTL_MD_THRESH_INF },
		[MXS_EXPOSED_LIFE] = { ep->no_slots, MXS_ASK_LIFE, 0, 0, PTL_MD_THRESH_INF },
	};
	const struct mxs_record bad = { .answer = MXS_ANSWER_BAD_KEY };
	int err = PTL_OK;

	mxs_record_encode(&bad, ep->bad_key);
	mxs_records_make(ep);
	for (int i = 0; i < MXS_ASK_ENTRIES && err == PTL_OK; i++)
		err = expose_record(ep, exposed[i].record, exposed[i].ask, exposed[i].key,
				    exposed[i].ignore, exposed[i].most, &ep->ask_me[i]);
	ep->tickets = MXS_TICKETS;
	mxs_tickets_give(ep);
	return err;
}

static int take_control(struct mxs_endpoint *ep)
{
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE |
			   PTL_MD_EVENT_START_DISABLE,
		.user_ptr = &ep->control_tag,
		.eq_handle = ep->eq[1],
	};

	return PtlMEMDAttach(ep->board->ni, MXS_PT_CONTROL, anybody,
			     mxs_control_match(ep->eid, ep->tag), mxs_control_ignore(), PTL_RETAIN,
			     PTL_INS_AFTER, md, PTL_RETAIN, &ep->control_me, NULL);
}

/* The thread that sleeps in Portals is woken by a queue that only it empties. The entry is before
 * that for control. */
static int take_wakes(struct mxs_endpoint *ep)
{
	const struct mxs_control c = { MXS_CONTROL_WAKE, ep->eid, ep->tag, ep->eid, ep->tag, 0, 0 };
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE |
			   PTL_MD_EVENT_START_DISABLE,
		.eq_handle = ep->eq[2],
	};

	return PtlMEMDAttach(ep->board->ni, MXS_PT_CONTROL, ep->board->id, mxs_control_bits(&c), 0,
			     PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &ep->wake_me, NULL);
}

/* Chooses a portal that nothing uses, and none that endpoints shortly before had: a long message
 * for one of those would go to a receive of this one. With the process's lock. */
static bool choose_portal(struct mxs_endpoint *ep)
{
	const uint32_t portals = MXS_PT_DATA_LAST - MXS_PT_DATA_FIRST + 1;
	static uint32_t last;

	if (!last)
		last = ep->session >> MXS_TAG_BITS; /* by chance: it may be a process's next life */
	for (uint32_t i = 1; i <= portals; i++) {
		ptl_pt_index_t portal =
			MXS_PT_DATA_FIRST + (last - MXS_PT_DATA_FIRST + i) % portals;
		ptl_sr_value_t entries;

		if (PtlNIStatus(ep->board->ni, PTL_SR_MLIST_LEN(portal), &entries) == PTL_OK &&
		    !entries) {
			ep->portal = portal;
			last = portal;
			return true;
		}
	}
	return false;
}

static int make_data_portal(struct mxs_endpoint *ep)
{
	ptl_process_id_t nobody = { ep->board->id.nid, NOBODY };
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE |
			   PTL_MD_EVENT_START_DISABLE,
		.user_ptr = &ep->data_tag,
		.eq_handle = ep->eq[0],
	};
	int err;

	if (!choose_portal(ep))
		return PTL_PT_FULL;
	err = PtlMEAttach(ep->board->ni, ep->portal, nobody, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			  &ep->anchor);
	if (err == PTL_OK)
		err = PtlMEMDAttach(ep->board->ni, ep->portal, anybody, 0, ~UINT64_C(0), PTL_RETAIN,
				    PTL_INS_AFTER, md, PTL_RETAIN, &ep->header_me, NULL);
	if (err == PTL_OK && !mxs_blocks_add(ep, FIRST_BLOCKS))
		err = PTL_NO_SPACE;
	return err;
}

static mx_return_t make_objects(struct mxs_endpoint *ep)
{
	int err = PtlEQAlloc(ep->board->ni, MXS_DATA_EVENTS, PTL_EQ_HANDLER_NONE, &ep->eq[0]);

	if (err == PTL_OK)
		err = PtlEQAlloc(ep->board->ni, MXS_OWN_EVENTS, PTL_EQ_HANDLER_NONE, &ep->eq[1]);
	if (err == PTL_OK)
		err = PtlEQAlloc(ep->board->ni, WAKE_EVENTS, PTL_EQ_HANDLER_NONE, &ep->eq[2]);
	if (err == PTL_OK)
		err = take_wakes(ep);
	if (err == PTL_OK)
		err = take_control(ep);
	if (err == PTL_OK)
		err = make_data_portal(ep);
	if (err == PTL_OK)
		err = expose_records(ep);
	if (err == PTL_OK)
		return MX_SUCCESS;
	base_warn("MX: endpoint %u cannot be opened: %s", ep->eid, PtlErrorStr((unsigned int)err));
	return MX_NO_RESOURCES;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Unlinks an entry. False: a message is on its way into it. */
static bool drop_entry(ptl_handle_me_t *me)
{
	if (*me == PTL_INVALID_HANDLE)
		return true;
	if (PtlMEUnlink(*me) == PTL_ME_IN_USE)
		return false;
	*me = PTL_INVALID_HANDLE;
	return true;
}

/* Unlinks what can be. True: nothing is left. */
static bool drop_entries(struct mxs_endpoint *ep)
{
	bool all = true;
	struct mxs_link *l;

	for (int i = 0; i < MXS_ASK_ENTRIES; i++)
		all &= drop_entry(&ep->ask_me[i]);
	for (int i = 0; i < MXS_TICKET_ENTRIES; i++)
		all &= drop_entry(&ep->ticket[i].me);
	all &= drop_entry(&ep->wake_me);
	all &= drop_entry(&ep->control_me);
	for (l = ep->pending.next; l != &ep->pending; l = l->next)
		all &= mxs_release(MXS_OF(l, struct mxs_request, all));
	for (uint32_t i = 0; i < ep->blocks; i++)
		all &= drop_entry(&ep->block[i].me);
	all &= drop_entry(&ep->header_me);
	all &= drop_entry(&ep->anchor);
	return all;
}

static void free_requests_of(struct mxs_endpoint *ep)
{
	while (!mxs_list_empty(&ep->pending))
		mxs_request_free(MXS_OF(ep->pending.next, struct mxs_request, all));
	while (!mxs_list_empty(&ep->done))
		mxs_request_free(MXS_OF(ep->done.next, struct mxs_request, link));
	while (!mxs_list_empty(&ep->ended_badly))
		mxs_request_free(MXS_OF(ep->ended_badly.next, struct mxs_request, link));
}

static void free_messages_of(struct mxs_link *list)
{
	while (!mxs_list_empty(list)) {
		struct mxs_unexp *u = MXS_OF(list->next, struct mxs_unexp, all);

		mxs_list_remove(&u->bucket);
		mxs_list_remove(&u->all);
		free(u);
	}
}

/* Waits until Portals has let go of everything. Events are of no interest any more. */
static bool quiesce(struct mxs_endpoint *ep)
{
	uint64_t end = mxs_now_ms() + CLOSE_MS;
	ptl_event_t ev;
	int which;

	while (!drop_entries(ep)) {
		if (mxs_now_ms() > end) {
			base_warn("MX: memory of endpoint %u is still in use as it closes",
				  ep->eid);
			return false;
		}
		PtlEQPoll(ep->eq, 3, 1, &ev, &which);
	}
	return true;
}

static void destroy_objects(struct mxs_endpoint *ep)
{
	bool quiet = quiesce(ep);

	for (int i = 0; i < 3; i++)
		if (ep->eq[i] != PTL_EQ_NONE)
			PtlEQFree(ep->eq[i]);
	for (uint32_t i = 0; quiet && i < ep->blocks; i++)
		free(ep->block[i].base);
	free(ep->block);
	ep->block = NULL;
	ep->blocks = 0;
	mxs_registry_release(ep->registry);
}

/* Frees what an endpoint has. It is locked, and nobody else is in it. */
static void destroy_endpoint(struct mxs_endpoint *ep)
{
	destroy_objects(ep);
	free_messages_of(&ep->unexpected);
	free_messages_of(&ep->arrived);
	free_requests_of(ep);
	mxs_partners_free(ep);
	free(ep->answers);
	ep->answers = NULL;
	free(ep->holder);
	ep->holder = NULL;
	free(ep->gather);
	ep->gather = NULL;
	mx_seen_close(ep->seen);
	ep->seen = NULL;
}

/* Has every short send been read that completed before? */
static bool no_copies(struct mxs_endpoint *ep, void *arg)
{
	(void)arg;
	return !ep->copies;
}

mx_return_t mx_close_endpoint(mx_endpoint_t endpoint)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	mx_error_handler_t handler;

	if (!ep)
		return mxs_no_endpoint("mx_close_endpoint");
	if (ep->in_handler && pthread_equal(ep->handler_thread, pthread_self())) {
		handler = ep->handler;
		mxs_leave(ep);
		return mxs_fail(handler, "mx_close_endpoint", MX_CLOSE_IN_HANDLER);
	}
	if (ep->copies)
		mxs_wait(ep, no_copies, NULL, CLOSE_MS);
	if (ep->closing || mxs_endpoint_handle(ep) != endpoint) { /* another thread was faster */
		mxs_leave(ep);
		return mxs_no_endpoint("mx_close_endpoint");
	}
	ep->closing = true;
	mxs_kick(ep);
	while (ep->in_handler || ep->waiters) {
		ep->kicked = false;
		mxs_kick(ep);
		pthread_cond_wait(&ep->handler_left, &ep->lock);
	}
	destroy_endpoint(ep);
	atomic_fetch_add_explicit(&ep->gen, 1, memory_order_release);
	ep->closing = false;
	pthread_mutex_unlock(&ep->lock);
	return MX_SUCCESS;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static struct mxs_endpoint *make_slot(uint32_t slot)
{
	struct mxs_endpoint *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->chunk = calloc(MXS_CHUNKS, sizeof(struct mxs_request *));
	if (!ep->chunk) {
		free(ep);
		return NULL;
	}
	ep->slot = slot;
	pthread_mutex_init(&ep->lock, NULL);
	init_cond(&ep->cond);
	init_cond(&ep->handler_left);
	mxs_list_init(&ep->free_requests);
	/* pairs with the acquire of mxs_enter() */
	atomic_store_explicit(&mxs.endpoint[slot], ep, memory_order_release);
	return ep;
}

/* An endpoint that is not open. With the process's lock, which all that open hold. */
static struct mxs_endpoint *free_slot(void)
{
	for (uint32_t i = 0; i < MXS_SLOTS; i++) {
		struct mxs_endpoint *ep = atomic_load(&mxs.endpoint[i]);

		if (!ep)
			return make_slot(i);
		if (!(atomic_load_explicit(&ep->gen, memory_order_acquire) & 1))
			return ep;
	}
	return NULL;
}

static void reset_lists(struct mxs_endpoint *ep)
{
	struct mxs_link *list[] = { &ep->pending,    &ep->done,        &ep->to_get,
				    &ep->to_ask,     &ep->ended_badly, &ep->other_masks,
				    &ep->unexpected, &ep->arrived,     &ep->credit_due,
				    &ep->active };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		mxs_list_init(list[i]);
	for (uint32_t i = 0; i < MXS_CLASSES; i++)
		ep->class[i].count = 0;
	ep->classes = ep->posted = ep->armed = ep->unexps = 0;
	memset(ep->by_number, 0, sizeof(ep->by_number));
	ep->numbers = 0;
	ep->kept_bytes = 0;
	ep->copies = 0;
	ep->newcomers = ep->shares = ep->nanswers = ep->answers_room = 0;
	ep->holders = ep->holders_room = 0;
	ep->timeout_ms = ep->timed = 0;
	ep->room = MXS_OWN_EVENTS - MXS_CONTROL_EVENTS;
	ep->queues_due = false;
}

/* The tag of a new life, which lives shortly before it have not had: centiseconds, or the next one
 * if this process has been faster. With the process's lock. */
static uint32_t next_tag(void)
{
	static uint32_t last;
	struct timespec t;
	uint32_t tag;

	clock_gettime(CLOCK_REALTIME, &t);
	tag = (uint32_t)(((uint64_t)t.tv_sec * 100 + (uint64_t)t.tv_nsec / 10000000) %
			 MXS_TAG_MASK) +
	      1;
	if (last && (last - tag) % (MXS_TAG_MASK + 1) < MXS_TAG_MASK / 2)
		tag = last % MXS_TAG_MASK + 1;
	last = tag;
	return tag;
}

static void reset_endpoint(struct mxs_endpoint *ep)
{
	reset_lists(ep);
	ep->handler = NULL;
	ep->ctx_bits = mxs.ctx_bits;
	ep->ctx_shift = mxs.ctx_shift;
	ep->eager_most = mxs.rndv;
	ep->unexp_handler = NULL;
	ep->unexp_callback = NULL;
	ep->progression_off = ep->in_handler = false;
	ep->polling = ep->kicked = ep->yield_due = false;
	ep->eq[0] = ep->eq[1] = ep->eq[2] = PTL_EQ_NONE;
	ep->anchor = ep->header_me = ep->control_me = ep->wake_me = PTL_INVALID_HANDLE;
	for (int i = 0; i < MXS_ASK_ENTRIES; i++)
		ep->ask_me[i] = PTL_INVALID_HANDLE;
	for (int i = 0; i < MXS_TICKET_ENTRIES; i++)
		ep->ticket[i].me = PTL_INVALID_HANDLE;
	ep->registry[0] = ep->registry[1] = -1;
	if (!base_random(&ep->session, sizeof(ep->session)))
		ep->session = (uint32_t)time(NULL) * 2654435761u + (uint32_t)getpid();
	ep->tag = next_tag();
	ep->session = (ep->session & ~(uint32_t)MXS_TAG_MASK) | ep->tag;
}

static mx_return_t apply_params(struct mxs_endpoint *ep, const mx_param_t *params, uint32_t n)
{
	if (n && !params)
		return MX_BAD_PARAM_LIST;
	for (uint32_t i = 0; i < n; i++) {
		switch (params[i].key) {
		case MX_PARAM_ERROR_HANDLER:
			ep->handler = params[i].val.error_handler;
			break;
		case MX_PARAM_UNEXP_QUEUE_MAX:
			break;
		case MX_PARAM_CONTEXT_ID:
			if (params[i].val.context_id.bits > MX_CONTEXT_ID_BITS_MAX ||
			    params[i].val.context_id.bits + params[i].val.context_id.shift > 64)
				return MX_BAD_PARAM_VAL;
			ep->ctx_bits = params[i].val.context_id.bits;
			ep->ctx_shift = params[i].val.context_id.shift;
			break;
		default:
			return MX_BAD_PARAM_NAME;
		}
	}
	return MX_SUCCESS;
}

/* Claims an id of a board; MX_ANY_*: the lowest that is free, boards tried for each id in turn. */
static mx_return_t claim_id(struct mxs_endpoint *ep, uint32_t board, uint32_t eid)
{
	uint32_t first = eid == MX_ANY_ENDPOINT ? 0 : eid;
	uint32_t last = eid == MX_ANY_ENDPOINT ? MXS_ENDPOINTS - 1 : eid;
	mx_return_t ret;

	for (uint32_t id = first; id <= last; id++) {
		for (uint32_t b = 0; b < mxs_boards(); b++) {
			if (board != MX_ANY_NIC && board != b)
				continue;
			ret = mxs_board_open(b, id);
			if (ret != MX_SUCCESS)
				return ret;
			if (!mxs_registry_claim(b, mxs.board[b].id, id, ep->registry))
				continue;
			ep->board = &mxs.board[b];
			ep->board_number = b;
			ep->eid = id;
			return MX_SUCCESS;
		}
	}
	return MX_BUSY;
}

static mx_return_t open_claimed(struct mxs_endpoint *ep)
{
	ep->seen = mx_seen_open(ep->board_number, ep->eid);
	ep->gather = malloc(MXS_EAGER_MOST);
	if (!ep->seen || !ep->gather)
		return MX_NO_RESOURCES;
	return make_objects(ep);
}

static mx_return_t know_oneself(struct mxs_endpoint *ep)
{
	struct mxs_record record;

	ep->self = mxs_partner_get(ep, ep->board->id, ep->eid, ep->tag);
	if (!ep->self)
		return MX_NO_RESOURCES;
	mxs_record_decode(ep->record, sizeof(ep->record), &record);
	mxs_partner_learn(ep->self, &record);
	return MX_SUCCESS;
}

static mx_return_t open_in_slot(struct mxs_endpoint *ep, uint32_t board, uint32_t eid, uint32_t key,
				const mx_param_t *params, uint32_t nparams)
{
	mx_return_t ret;

	reset_endpoint(ep);
	ep->key = key;
	ret = apply_params(ep, params, nparams);
	if (ret == MX_SUCCESS && eid == MX_ANY_ENDPOINT)
		eid = mxs.any_endpoint;
	if (ret == MX_SUCCESS)
		ret = claim_id(ep, board, eid);
	if (ret != MX_SUCCESS)
		return ret;
	ret = open_claimed(ep);
	if (ret == MX_SUCCESS)
		ret = know_oneself(ep);
	if (ret != MX_SUCCESS)
		destroy_endpoint(ep);
	return ret;
}

static mx_return_t open_locked(uint32_t board, uint32_t eid, uint32_t key, const mx_param_t *params,
			       uint32_t nparams, mx_endpoint_t *endpoint)
{
	struct mxs_endpoint *ep;
	mx_return_t ret;

	mxs_configure();
	if (board != MX_ANY_NIC && board >= mxs_boards())
		return MX_BOARD_UNKNOWN;
	if (eid != MX_ANY_ENDPOINT && eid >= MXS_ENDPOINTS)
		return MX_BAD_ENDPOINT_ID;
	ep = free_slot();
	if (!ep)
		return MX_NO_RESOURCES;
	pthread_mutex_lock(&ep->lock);
	ret = open_in_slot(ep, board, eid, key, params, nparams);
	if (ret == MX_SUCCESS) {
		atomic_fetch_add_explicit(&ep->gen, 1, memory_order_release);
		*endpoint = mxs_endpoint_handle(ep);
	}
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

mx_return_t mx_open_endpoint(uint32_t board_number, uint32_t endpoint_id, uint32_t endpoint_key,
			     mx_param_t *params_array, uint32_t params_count,
			     mx_endpoint_t *endpoint)
{
	mx_error_handler_t handler = NULL;
	mx_return_t ret;

	if (!atomic_load(&mxs.initialized))
		return mxs_fail(NULL, "mx_open_endpoint", MX_NOT_INITIALIZED);
	if (!endpoint)
		return mxs_fail(NULL, "mx_open_endpoint", MX_BAD_ENDPOINT);
	pthread_mutex_lock(&mxs.lock);
	ret = open_locked(board_number, endpoint_id, endpoint_key, params_array, params_count,
			  endpoint);
	pthread_mutex_unlock(&mxs.lock);
	for (uint32_t i = 0; params_array && i < params_count; i++)
		if (params_array[i].key == MX_PARAM_ERROR_HANDLER)
			handler = params_array[i].val.error_handler;
	return ret == MX_SUCCESS ? ret : mxs_fail(handler, "mx_open_endpoint", ret);
}

/* ---- other calls ----------------------------------------------------------------------------- */

mx_return_t mx_get_endpoint_addr(mx_endpoint_t endpoint, mx_endpoint_addr_t *endpoint_addr)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);

	if (!ep)
		return mxs_no_endpoint("mx_get_endpoint_addr");
	if (endpoint_addr)
		*endpoint_addr = mxs_addr(ep->self);
	mxs_leave(ep);
	return MX_SUCCESS;
}

mx_return_t mx_wakeup(mx_endpoint_t endpoint)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);

	if (!ep)
		return mxs_no_endpoint("mx_wakeup");
	ep->wakeups++;
	if (ep->waiters)
		mxs_kick(ep);
	mxs_leave(ep);
	return MX_SUCCESS;
}
