/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The sending side: dp_target and dp_write. A message is copied once, by Portals, or into a
 * buffer of ours where Portals cannot keep it now.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "dp_shim/core.h"

enum {
	SENDING_MOST = 1024,
	SENDING_BYTES = 8 << 20,
	SENT_QUEUE = 2 * SENDING_MOST,
	WAIT_MS = 1,
	SOON_MS = 10,
};

/* ---- edges ----------------------------------------------------------------------------------- */

static struct dp_edge *edge_to(struct dp_ep *ep, uint32_t nid, uint32_t dpid)
{
	struct dp_edge **bucket = &ep->edge[(nid * 31 + dpid) % DP_EDGES], *e;

	for (e = *bucket; e; e = e->next)
		if (e->dpid == dpid && e->nid == nid)
			return e;
	e = calloc(1, sizeof(*e));
	if (e) {
		e->nid = nid;
		e->dpid = dpid;
		e->next = *bucket;
		*bucket = e;
	}
	return e;
}

/* The endpoint is another one than before: the edge begins anew. */
static void begin_edge(struct dp_ep *ep, struct dp_edge *e, const struct dp_peer *p)
{
	const struct dp_header h = {
		.charged = false,
		.sender = (uint32_t)ep->instance,
		.target = (uint32_t)p->record.instance,
		.to = e->dpid,
	};

	e->instance = p->record.instance;
	e->match_bits = dp_wire_match_bits(&h);
	e->number = 0;
	e->word = 0;
	e->spent = e->returned = (struct dp_total){ 0, 0 };
	e->asked = false;
}

/* Use what lookups have found, and ask again if that is old. */
static void refresh_edge(struct dp_ep *ep, struct dp_edge *e, uint64_t now)
{
	struct dp_peer *p;

	pthread_mutex_lock(&dp_lib.lookups);
	p = e->peer ? e->peer : dp_peer_of(e->nid, e->dpid);
	e->peer = p;
	if (p) {
		dp_peer_answers();
		e->out_of_reach = dp_peer_out_of_reach(p);
		if (!p->open || now - p->answered_at >= DP_REFRESH_MS / 2)
			dp_peer_ask(p, now);
		dp_peer_answers();
		e->open = p->open;
		if (p->open) {
			e->known = true;
			e->process = p->process;
			e->longest = p->record.longest;
			e->flow = p->record.flow;
			if (e->instance != p->record.instance)
				begin_edge(ep, e, p);
		}
	}
	/* an answer may be under way: look soon */
	e->checked_at = now;
	if (!e->open || (p && p->pending))
		e->checked_at -= DP_REFRESH_MS - SOON_MS;
	pthread_mutex_unlock(&dp_lib.lookups);
}

void dp_target(int fd, int nid, int dpid)
{
	struct dp_ep *ep = dp_enter_tx(fd);
	struct dp_edge *e;

	if (!ep)
		return;
	e = ep->target;
	if (!e || (int)e->nid != nid || (int)e->dpid != dpid) {
		e = NULL;
		if (nid == -1 || dpid <= 0 || dpid > DP_MAX_DPID)
			ep->target_error = ENOTCONN;
		else if (!dp_node_known(nid))
			ep->target_error = EHOSTUNREACH;
		else
			e = edge_to(ep, (uint32_t)nid, (uint32_t)dpid);
		if (!e && nid >= 0 && dp_node_known(nid) && dpid > 0 && dpid <= DP_MAX_DPID)
			ep->target_error = ENOMEM;
	}
	ep->target = e;
	/* named anew: an answer older than this is asked for again with the next message */
	if (e && e->checked_at && base_now_ms() - e->checked_at > DP_REFRESH_MS / 2)
		e->checked_at -= DP_REFRESH_MS;
	pthread_mutex_unlock(&ep->tx);
}

/* ---- messages that Portals does not keep ----------------------------------------------------- */

/* Free messages that have been sent. Returns how many, and takes their bytes off *bytes. */
static unsigned int free_sent(ptl_handle_eq_t eq, size_t *bytes)
{
	unsigned int sent = 0;
	ptl_event_t event[8];
	int n;

	do {
		PtlEQPollMany(&eq, 1, PTL_TIME_LOOK, NULL, event, 8, &n);
		for (int i = 0; i < n; i++) {
			if (event[i].type != PTL_EVENT_SEND_END)
				continue;
			sent++;
			*bytes -= event[i].md.length;
			free(event[i].md.user_ptr);
		}
	} while (n == 8);
	return sent;
}

static void reap_sent(struct dp_ep *ep)
{
	if (ep->sent_eq != PTL_EQ_NONE)
		ep->sending -= free_sent(ep->sent_eq, &ep->sending_bytes);
}

/* Send a copy. 0, EAGAIN or ENOMEM. */
static int send_copy(struct dp_ep *ep, const struct dp_edge *e, const void *msg, size_t length,
		     uint64_t match_bits, uint64_t header)
{
	ptl_md_t md = { .length = length, .threshold = 1, .options = PTL_MD_EVENT_START_DISABLE };
	ptl_handle_md_t md_handle;

	if (ep->sent_eq == PTL_EQ_NONE &&
	    PtlEQAlloc(dp_lib.ni, SENT_QUEUE, PTL_EQ_HANDLER_NONE, &ep->sent_eq) != PTL_OK) {
		ep->sent_eq = PTL_EQ_NONE;
		return ENOMEM;
	}
	reap_sent(ep);
	if (ep->sending >= SENDING_MOST || ep->sending_bytes >= SENDING_BYTES)
		return EAGAIN;
	md.start = malloc(length);
	if (!md.start)
		return ENOMEM;
	memcpy(md.start, msg, length);
	md.user_ptr = md.start;
	md.eq_handle = ep->sent_eq;
	if (PtlMDBind(dp_lib.ni, md, PTL_UNLINK, &md_handle) != PTL_OK) {
		free(md.start);
		return EAGAIN;
	}
	if (PtlPut(md_handle, PTL_NO_ACK_REQ, e->process, DP_PORTAL_DATA, 0, match_bits, 0,
		   header) != PTL_OK) {
		/* not to be reached: lost, as what finds no endpoint is */
		PtlMDUnlink(md_handle);
		free(md.start);
		return 0;
	}
	ep->sending++;
	ep->sending_bytes += length;
	return 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Bytes whose length is a multiple of DP_ALIGN, and not 0. */
static const void *pad_message(struct dp_ep *ep, const void *msg, size_t length, size_t padded)
{
	if (length == padded)
		return msg;
	if (!ep->bounce) {
		ep->bounce = malloc(DP_MAX_MESSAGE);
		if (!ep->bounce)
			return NULL;
	}
	memset(ep->bounce + padded - DP_ALIGN, 0, DP_ALIGN);
	if (length)
		memcpy(ep->bounce, msg, length);
	return ep->bounce;
}

static int put_message(struct dp_ep *ep, struct dp_edge *e, const void *msg, size_t length,
		       bool charged)
{
	const size_t padded = length ? (length + DP_ALIGN - 1) / DP_ALIGN * DP_ALIGN : DP_ALIGN;
	const struct dp_header h = { .nid = (uint32_t)dp_lib.nid,
				     .dpid = ep->dpid,
				     .number = e->number,
				     .padding = (uint32_t)(padded - length) };
	const uint64_t bits = e->match_bits | (uint64_t)charged << 63;
	const uint64_t header = dp_wire_header_data(&h);
	int err;

	msg = pad_message(ep, msg, length, padded);
	if (!msg)
		return ENOMEM;
	err = PtlPutInject(dp_lib.ni, msg, padded, PTL_INJECT_NOW, e->process, DP_PORTAL_DATA, 0,
			   bits, 0, header);
	if (err == PTL_NO_SPACE)
		err = send_copy(ep, e, msg, padded, bits, header);
	else
		err = 0; /* a peer that is dead loses its messages */
	if (!err)
		e->number++;
	return err;
}

/* Check a message without its target. */
static int check_message(const struct dp_ep *ep, const void *msg, int len)
{
	if (len < 0)
		return EINVAL;
	if (!msg && len)
		return EFAULT;
	if (len > DP_MAX_MESSAGE)
		return EMSGSIZE;
	return ep->target ? 0 : ep->target_error;
}

int dp_send_now(struct dp_ep *ep, const void *msg, int len, enum dp_wait *wait)
{
	struct dp_edge *e = ep->target;
	int err = check_message(ep, msg, len);
	bool charged = false;
	uint64_t now;

	*wait = DP_WAIT_NOT;
	if (__builtin_expect(err || !e, 0))
		return err;
	now = base_now_ms();
	if (__builtin_expect(!e->known || now - e->checked_at >= DP_REFRESH_MS, 0))
		refresh_edge(ep, e, now);
	if (__builtin_expect(!e->known, 0)) {
		if (e->out_of_reach)
			return EHOSTUNREACH;
		*wait = DP_WAIT_LOOKUP;
		return EAGAIN;
	}
	if (!e->open) /* it is closed: lost */
		return 0;
	if ((size_t)len > e->longest)
		return EMSGSIZE;
	if (__builtin_expect(ep->has_flow && e->flow, 0)) {
		err = dp_credit_open(ep, e);
		if (err)
			return err;
		if (!dp_credit_spend(ep, e, (uint64_t)len)) {
			*wait = DP_WAIT_CREDIT;
			return EAGAIN;
		}
		charged = true;
	}
	err = put_message(ep, e, msg, (size_t)len, charged);
	if (err == EAGAIN)
		*wait = DP_WAIT_MEMORY;
	if (err && charged)
		dp_credit_unspend(e, (uint64_t)len);
	return err;
}

/* Sleep for a moment, or until what is waited for may be there. */
static void wait_to_send(struct dp_ep *ep, enum dp_wait wait)
{
	ptl_handle_eq_t eq = wait == DP_WAIT_CREDIT   ? ep->words_eq
			     : wait == DP_WAIT_LOOKUP ? dp_lib.lookup_eq
						      : ep->sent_eq;
	int which;

	atomic_fetch_add_explicit(&ep->sleepers, 1, memory_order_relaxed);
	pthread_mutex_unlock(&ep->tx);
	PtlEQAwait(&eq, 1, WAIT_MS, &which);
	/* release: pairs with wait_for_sleepers() */
	atomic_fetch_sub_explicit(&ep->sleepers, 1, memory_order_release);
	pthread_mutex_lock(&ep->tx);
}

static bool is_nonblocking_now(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

/* After EAGAIN: wait and send again until that is done or fails. */
static int send_later(struct dp_ep *ep, int fd, const void *msg, int len, enum dp_wait wait)
{
	const struct dp_edge *e = ep->target;
	const uint64_t until = base_now_ms() + DP_FIRST_WAIT_MS;
	int err = EAGAIN;

	if (is_nonblocking_now(fd))
		return EAGAIN;
	while (err == EAGAIN) {
		if (wait == DP_WAIT_LOOKUP && base_now_ms() >= until)
			return EHOSTUNREACH;
		wait_to_send(ep, wait);
		if (!dp_is_still(ep, fd))
			return EBADF;
		if (ep->target != e) /* another thread has changed it */
			return ENOTCONN;
		err = dp_send_now(ep, msg, len, &wait);
	}
	return err;
}

int dp_write(int fd, const void *msg, int len)
{
	struct dp_ep *ep = dp_enter_tx(fd);
	enum dp_wait wait;
	int err;

	if (__builtin_expect(!ep, 0))
		return -1;
	err = dp_send_now(ep, msg, len, &wait);
	if (__builtin_expect(err == EAGAIN, 0))
		err = send_later(ep, fd, msg, len, wait);
	pthread_mutex_unlock(&ep->tx);
	if (__builtin_expect(!err, 1))
		return len;
	errno = err;
	return -1;
}

/* ---- close ----------------------------------------------------------------------------------- */

void dp_reap_left(void)
{
	struct dp_left **at = &dp_lib.left, *l;
	size_t bytes = 0;

	while ((l = *at)) {
		l->sending -= free_sent(l->eq, &bytes);
		if (l->sending) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		PtlEQFree(l->eq);
		free(l);
	}
}

void dp_finish_left(void)
{
	const uint64_t until = base_now_ms() + DP_FIRST_WAIT_MS;
	ptl_handle_eq_t eq;
	bool left;
	int which;

	do {
		pthread_mutex_lock(&dp_lib.lock);
		dp_reap_left();
		left = dp_lib.left;
		if (left)
			eq = dp_lib.left->eq;
		pthread_mutex_unlock(&dp_lib.lock);
		if (left)
			PtlEQAwait(&eq, 1, 10, &which);
	} while (left && base_now_ms() < until);
}

/* Leave what is under way to the watching thread. */
static void leave_sending(struct dp_ep *ep)
{
	struct dp_left *l;

	reap_sent(ep);
	if (ep->sent_eq == PTL_EQ_NONE)
		return;
	l = ep->sending ? malloc(sizeof(*l)) : NULL;
	if (l) {
		*l = (struct dp_left){ dp_lib.left, ep->sent_eq, ep->sending };
		dp_lib.left = l;
	} else if (!ep->sending) { /* else descriptors name the queue, and it stays */
		PtlEQFree(ep->sent_eq);
	}
}

void dp_send_close(struct dp_ep *ep)
{
	leave_sending(ep);
	ep->sent_eq = PTL_EQ_NONE;
	ep->sending = 0;
	ep->sending_bytes = 0;
	dp_credit_close(ep);
	for (int i = 0; i < DP_EDGES; i++) {
		while (ep->edge[i]) {
			struct dp_edge *e = ep->edge[i];

			ep->edge[i] = e->next;
			free(e);
		}
	}
	ep->target = NULL;
	free(ep->bounce);
	ep->bounce = NULL;
}
