/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Connecting: reading the record that an endpoint exposes, which needs nothing of its process. The
 * id says where to ask first: on this host the registry knows the process; in a job, all ranks of
 * the host are asked; else pids are base + id, and if that one does not have it, all the others.
 * Each question is a request of its own, which outlives a connect that timed out.
 */
#include <p3rt/p3rt.h>
#include <string.h>

#include "mx_shim/mx_core.h"

#define SILENCE_MS 250u   /* after which the other pids are asked, too */
#define PROBE_MS   15000u /* after which a question is given up */

enum { STAGE_GUESS, STAGE_ALL };

/* ---- questions ------------------------------------------------------------------------------- */

bool mxs_ask(struct mxs_endpoint *ep, struct mxs_request *owner, ptl_process_id_t to, uint64_t bits,
	     struct mxs_partner *about)
{
	struct mxs_request *probe = mxs_request_new(ep, MXS_PROBE);
	ptl_md_t md;
	int err;

	if (!probe)
		return false;
	probe->state = MXS_ON_WIRE;
	probe->partner = about;
	probe->owner = owner;
	probe->owner_gen = owner ? owner->gen : 0;
	probe->to = to;
	mxs_set_deadline(probe, PROBE_MS);
	if (!mxs_reserve(probe, 1)) {
		mxs_complete(probe, MX_STATUS_NO_RESOURCES);
		return false;
	}
	md = (ptl_md_t){
		.start = probe->record,
		.length = sizeof(probe->record),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = mxs_request_handle(probe),
		.eq_handle = ep->eq[1],
	};
	err = PtlMDBind(ep->board->ni, md, PTL_RETAIN, &probe->md);
	if (err != PTL_OK)
		probe->md = PTL_INVALID_HANDLE;
	else
		err = PtlGet(probe->md, to, MXS_PT_CONNECT, 0, bits, 0);
	if (err != PTL_OK) {
		mxs_doom(probe, MX_STATUS_ENDPOINT_UNREACHABLE);
		if (about && !about->dead)
			mxs_partner_fail(about, MX_STATUS_ENDPOINT_UNREACHABLE);
		return false;
	}
	return true;
}

/* The connect that waits for a probe; NULL: none, or none any more. */
static struct mxs_request *owner_of(const struct mxs_request *probe)
{
	struct mxs_request *r = probe->owner;

	return r && r->gen == probe->owner_gen && r->type == MXS_CONNECT && r->state == MXS_GETTING
		       ? r
		       : NULL;
}

/* ---- connects -------------------------------------------------------------------------------- */

static void ask_pid(struct mxs_request *r, ptl_pid_t pid)
{
	ptl_process_id_t to = { r->to.nid, pid };

	if (mxs_ask(r->ep, r, to, mxs_ask_bits(MXS_ASK_KEY, r->eid, r->key), NULL))
		r->probes++;
}

/* Asks every process of the host that may have the endpoint. */
static void ask_whole_host(struct mxs_request *r)
{
	const struct mxs_board *b = r->ep->board;
	ptl_process_id_t id;
	unsigned int rank = 0;

	r->stage = STAGE_ALL;
	if (b->in_job) {
		for (; PtlGetRankId(b->ni, rank, &id) == PTL_OK; rank++)
			if (id.nid == r->to.nid)
				ask_pid(r, id.pid);
		return;
	}
	for (uint32_t slot = 0; slot < MXS_PIDS; slot++)
		if (slot != r->eid)
			ask_pid(r, mxs.first_pid + slot);
}

/* Nobody who was asked has the endpoint. */
static void found_nobody(struct mxs_request *r)
{
	if (r->stage == STAGE_GUESS)
		ask_whole_host(r);
	if (r->stage == STAGE_ALL && !r->probes)
		mxs_doom(r, r->closed ? MX_STATUS_ENDPOINT_CLOSED : MX_STATUS_ENDPOINT_UNREACHABLE);
}

void mxs_connect_begin(struct mxs_request *r)
{
	struct mxs_endpoint *ep = r->ep;
	ptl_pid_t pid;
	int found = -1;

	r->state = MXS_GETTING;
	r->probes = r->closed = 0;
	r->begun_ms = mxs_now_ms();
	r->stage = STAGE_GUESS;
	mxs_count(ep, MXS_CONNECTS);
	mxs_list_append(&ep->to_ask, &r->link);
	if (r->to.nid == ep->board->id.nid)
		found = mxs_registry_find(ep->board_number, r->to.nid, r->eid, &pid);
	if (found == 1) {
		r->stage = STAGE_ALL;
		ask_pid(r, pid);
	} else if (found == 0) {
		r->stage = STAGE_ALL;
		r->closed = 1;
	} else if (ep->board->in_job) {
		ask_whole_host(r);
	} else if (r->eid < MXS_PIDS) {
		ask_pid(r, mxs.first_pid + r->eid);
	}
	if (!r->probes)
		found_nobody(r);
}

void mxs_connects_tick(struct mxs_endpoint *ep, uint64_t now)
{
	struct mxs_link *l = ep->to_ask.next, *next;

	for (; l != &ep->to_ask; l = next) {
		struct mxs_request *r = MXS_OF(l, struct mxs_request, link);

		next = l->next;
		if (r->stage == STAGE_GUESS && now - r->begun_ms > SILENCE_MS)
			ask_whole_host(r);
	}
}

static void connect_answered(struct mxs_request *r, const struct mxs_record *record,
			     ptl_process_id_t from)
{
	struct mxs_partner *p = mxs_partner_of_record(r->ep, from, record);

	if (!p) {
		mxs_doom(r, MX_STATUS_NO_RESOURCES);
		return;
	}
	if (p->known)
		mxs_partner_granted(p, record);
	mxs_partner_learn(p, record);
	r->status.source = mxs_addr(p);
	mxs_doom(r, MX_STATUS_SUCCESS);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* A partner from which an answer is overdue, or of which only a tag was known, has answered, or
 * its process has for it. */
static void check_partner(struct mxs_partner *p, const struct mxs_record *record, bool good)
{
	p->asked = false;
	if (p->dead)
		return;
	if (!good)
		mxs_partner_fail(p, MX_STATUS_ENDPOINT_UNREACHABLE);
	else if (record->answer != MXS_ANSWER_OK)
		mxs_partner_fail(p, MX_STATUS_ENDPOINT_CLOSED);
	else if (!mxs_partner_has_session(p, record->session))
		mxs_partner_fail(p, MX_STATUS_BAD_SESSION);
	else if (p->known)
		mxs_partner_granted(p, record);
	else
		mxs_partner_learn(p, record);
	mxs_queue_run(p);
}

/* `heard`: its process has answered, whatever it said. */
static void probe_answered(struct mxs_request *probe, const struct mxs_record *record, bool good,
			   bool heard)
{
	struct mxs_endpoint *ep = probe->ep;
	const bool of_holder = !probe->owner && !probe->partner;
	struct mxs_request *r = owner_of(probe);
	struct mxs_partner *p = probe->partner;
	ptl_process_id_t from = probe->to;

	mxs_doom(probe, MX_STATUS_CANCELLED);
	if (of_holder)
		mxs_holder_answered(ep, from, heard);
	if (p)
		check_partner(p, record, good);
	if (!r)
		return;
	r->probes--;
	if (good && record->answer == MXS_ANSWER_OK && record->eid == r->eid) {
		connect_answered(r, record, from);
	} else if (good && record->answer == MXS_ANSWER_BAD_KEY) {
		mxs_doom(r, MX_STATUS_BAD_KEY);
	} else {
		r->closed += good;
		if (!r->probes)
			found_nobody(r);
	}
}

void mxs_probe_event(struct mxs_request *probe, const ptl_event_t *ev)
{
	struct mxs_record record = { 0 };
	bool good;

	if (ev->type != PTL_EVENT_REPLY_END || probe->doomed)
		return;
	good = ev->ni_fail_type == PTL_NI_OK &&
	       mxs_record_decode(probe->record, (size_t)ev->mlength, &record);
	probe_answered(probe, &record, good, ev->ni_fail_type == PTL_NI_OK);
}

void mxs_probe_lost(struct mxs_request *probe)
{
	struct mxs_record none = { 0 };

	/* a silent process may be stopped */
	probe_answered(probe, &none, false, true);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static mx_return_t check_connect(const struct mxs_endpoint *ep, uint64_t nic_id, uint32_t eid,
				 ptl_nid_t *nid)
{
	uint32_t board;

	if (!mxs_nic_parts(nic_id, &board, nid) || board != ep->board_number)
		return MX_NIC_NOT_FOUND;
	return eid < MXS_ENDPOINTS ? MX_SUCCESS : MX_BAD_ENDPOINT_ID;
}

static struct mxs_request *new_connect(struct mxs_endpoint *ep, ptl_nid_t nid, uint32_t eid,
				       uint32_t key)
{
	struct mxs_request *r = mxs_request_new(ep, MXS_CONNECT);

	if (!r)
		return NULL;
	r->to.nid = nid;
	r->eid = eid;
	r->key = key;
	return r;
}

mx_return_t mx_iconnect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t endpoint_id, uint32_t key,
			uint64_t match_info, void *context, mx_request_t *request)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct mxs_request *r = NULL;
	mx_error_handler_t handler;
	mx_return_t ret;
	ptl_nid_t nid;

	if (!ep)
		return mxs_no_endpoint("mx_iconnect");
	handler = ep->handler;
	ret = check_connect(ep, nic_id, endpoint_id, &nid);
	if (ret == MX_SUCCESS) {
		r = new_connect(ep, nid, endpoint_id, key);
		ret = r ? MX_SUCCESS : MX_NO_RESOURCES;
	}
	if (r) {
		r->status.match_info = match_info;
		r->status.context = context;
		r->forgotten = !request;
		if (request)
			*request = mxs_request_handle(r);
		mxs_connect_begin(r);
	}
	mxs_leave(ep);
	return ret == MX_SUCCESS ? ret : mxs_fail(handler, "mx_iconnect", ret);
}

static bool is_request_done(struct mxs_endpoint *ep, void *arg)
{
	(void)ep;
	return ((struct mxs_request *)arg)->state == MXS_DONE;
}

static mx_return_t return_of_connect(mx_status_code_t code)
{
	switch (code) {
	case MX_STATUS_SUCCESS:
		return MX_SUCCESS;
	case MX_STATUS_BAD_KEY:
		return MX_BAD_CONNECTION_KEY;
	case MX_STATUS_TIMEOUT:
		return MX_TIMEOUT;
	case MX_STATUS_NO_RESOURCES:
		return MX_NO_RESOURCES;
	default:
		return MX_CONNECTION_FAILED;
	}
}

/* Connects and waits. The request is seen by no other call: it leaves the completed ones. */
static mx_return_t connect_and_wait(struct mxs_endpoint *ep, struct mxs_request *r,
				    uint32_t timeout, mx_endpoint_addr_t *addr)
{
	mx_return_t ret = MX_TIMEOUT;

	r->hidden = true;
	mxs_set_deadline(r, 0); /* the call has its own */
	mxs_connect_begin(r);
	if (mxs_wait(ep, is_request_done, r, timeout)) {
		ret = return_of_connect(r->status.code);
		if (ret == MX_SUCCESS && addr)
			*addr = r->status.source;
	}
	if (r->state != MXS_DONE)
		mxs_complete(r, MX_STATUS_CANCELLED);
	mxs_request_free(r);
	return ret;
}

mx_return_t mx_connect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t endpoint_id, uint32_t key,
		       uint32_t timeout, mx_endpoint_addr_t *addr)
{
	struct mxs_endpoint *ep = mxs_enter(endpoint);
	struct mxs_request *r;
	mx_error_handler_t handler;
	mx_return_t ret;
	ptl_nid_t nid;

	if (!ep)
		return mxs_no_endpoint("mx_connect");
	handler = ep->handler;
	ret = check_connect(ep, nic_id, endpoint_id, &nid);
	if (ret == MX_SUCCESS) {
		r = new_connect(ep, nid, endpoint_id, key);
		ret = r ? connect_and_wait(ep, r, timeout, addr) : MX_NO_RESOURCES;
	}
	mxs_leave(ep);
	return ret == MX_SUCCESS ? ret : mxs_fail(handler, "mx_connect", ret);
}
