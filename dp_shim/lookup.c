/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which process has the endpoint <dpid, nid>? A get of its record is sent to all processes that
 * may; at most one says yes. Answers are kept, and asked for again when they are old. A process
 * without DP has no entry for lookups and never answers, so nothing waits for negative answers.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "dp_shim/core.h"

enum {
	BUCKETS = 256,
	AGAIN_MS = 20,    /* between lookups of an endpoint that is not open yet */
	SILENT_MS = 1000, /* after that a lookup that got no answer is repeated */
	QUEUE = 4096,
};

/* A get under way, or one to use again. */
struct lookup {
	struct lookup *next;
	struct dp_peer *peer;
	ptl_process_id_t process;
	uint64_t sent_at;
	bool pending;
	uint8_t record[DP_RECORD_BYTES];
};

static struct dp_peer *peers[BUCKETS];
static struct lookup *lookups;

int dp_lookup_open(void)
{
	int err = PtlEQAlloc(dp_lib.ni, QUEUE, PTL_EQ_HANDLER_NONE, &dp_lib.lookup_eq);

	if (err == PTL_OK)
		return 0;
	base_warn("DP: PtlEQAlloc failed (%s)", PtlErrorStr((unsigned int)err));
	errno = ENOMEM;
	return -1;
}

struct dp_peer *dp_peer_of(uint32_t nid, uint32_t dpid)
{
	struct dp_peer **bucket = &peers[(nid * 31 + dpid) % BUCKETS], *p;

	for (p = *bucket; p; p = p->next)
		if (p->nid == nid && p->dpid == dpid)
			return p;
	p = calloc(1, sizeof(*p));
	if (p) {
		p->nid = nid;
		p->dpid = dpid;
		p->next = *bucket;
		*bucket = p;
	}
	return p;
}

/* The get to this process, if it is too young to give up; *unused: one to use again. */
static bool is_asked(const struct dp_peer *p, ptl_process_id_t process, uint64_t now,
		     struct lookup **unused)
{
	for (struct lookup *l = lookups; l; l = l->next) {
		if (!l->pending)
			*unused = l;
		else if (l->peer == p && l->process.nid == process.nid &&
			 l->process.pid == process.pid && now - l->sent_at < SILENT_MS)
			return true;
	}
	return false;
}

static void ask_process(struct dp_peer *p, ptl_process_id_t process, uint64_t now)
{
	struct lookup *l = NULL;
	ptl_handle_md_t md_handle;
	ptl_md_t md = { .length = DP_RECORD_BYTES,
			.threshold = 1,
			.options = PTL_MD_EVENT_START_DISABLE,
			.eq_handle = dp_lib.lookup_eq };

	if (is_asked(p, process, now, &l))
		return;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return;
		l->next = lookups;
		lookups = l;
	}
	md.start = l->record;
	md.user_ptr = l;
	if (PtlMDBind(dp_lib.ni, md, PTL_UNLINK, &md_handle) != PTL_OK)
		return;
	if (PtlGet(md_handle, process, DP_PORTAL_LOOKUP, 0, p->dpid, 0) != PTL_OK) {
		PtlMDUnlink(md_handle);
		return;
	}
	l->peer = p;
	l->process = process;
	l->sent_at = now;
	l->pending = true;
	p->pending++;
}

void dp_peer_ask(struct dp_peer *p, uint64_t now)
{
	ptl_process_id_t process;

	/* One that has answered is asked alone, as often as is wished. */
	if (!p->open && p->asked_at && now - p->asked_at < AGAIN_MS)
		return;
	p->asked_at = now;
	if (p->open) {
		ask_process(p, p->process, now);
		return;
	}
	for (unsigned int i = 0; dp_node_process(p->nid, i, &process); i++)
		ask_process(p, process, now);
}

/* Of a process that has ended nothing is said: another one may open the endpoint. */
static bool process_out_of_reach(ptl_process_id_t process, char *why, size_t size)
{
	ptl_ni_fail_t fail = PTL_NI_OK;

	return PtlPeerReason(dp_lib.ni, process, &fail, why, size) == PTL_OK && fail != PTL_NI_OK &&
	       fail != PTL_NI_PEER_DEAD;
}

bool dp_peer_out_of_reach(struct dp_peer *p)
{
	ptl_process_id_t process;
	unsigned int others = 0;
	char why[512];

	/* outside a job a process that is not there now may come */
	if (!dp_lib.nranks || p->open || p->pending || !p->asked_at)
		return false;
	for (unsigned int i = 0; dp_node_process(p->nid, i, &process); i++) {
		if (process.nid == dp_lib.id.nid && process.pid == dp_lib.id.pid)
			continue; /* this process has said no */
		if (!process_out_of_reach(process, why, sizeof(why)))
			return false;
		others++;
	}
	if (others && !p->explained)
		base_warn("DP: node %u cannot be reached (%s)", p->nid, why);
	p->explained |= others != 0;
	return others != 0;
}

static void use_answer(struct lookup *l, const ptl_event_t *event)
{
	struct dp_peer *p = l->peer;
	const bool same =
		p->open && p->process.nid == l->process.nid && p->process.pid == l->process.pid;
	struct dp_record r;
	bool open = event->ni_fail_type == PTL_NI_OK &&
		    dp_wire_record(l->record, event->mlength, &r) && r.open && r.nid == p->nid;

	l->pending = false;
	p->pending--;
	if (open) {
		p->open = p->answered = true;
		p->record = r;
		p->process = l->process;
		p->answered_at = base_now_ms();
	} else if (same) {
		p->open = false;
		p->asked_at = 0;
	}
}

void dp_peer_answers(void)
{
	ptl_event_t event[8];
	int n;

	do {
		PtlEQPollMany(&dp_lib.lookup_eq, 1, PTL_TIME_LOOK, NULL, event, 8, &n);
		for (int i = 0; i < n; i++)
			if (event[i].type == PTL_EVENT_REPLY_END && event[i].md.user_ptr)
				use_answer(event[i].md.user_ptr, &event[i]);
	} while (n == 8);
}
