/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Connections. The connection manager carries the call and its answer, and knows how a queue
 * pair changes its states. We replace its timeouts by ours, and the GID and the MTU where the
 * user sets them.
 *
 * The caller proves in its call that it has the secret, and the other process proves it in its
 * answer. The caller's first packet then proves that the call was not a repetition by somebody
 * else. Until then nothing that the caller says counts, and it can read nothing. But a process
 * that was about to call it gives it half a second, once.
 *
 * If two processes call each other at the same time, the call of the smaller address wins. The
 * process with the smaller address refuses the other's call; the other gives up its own. If
 * that leads to nothing within half a second, the other calls again, and does not give up this
 * call: it refuses the peer's. So an attacker who repeats overheard calls cannot keep anybody
 * from calling.
 *
 * Even so both connections may come up. Then the one that began later stays. Both processes
 * have seen them begin in the same order, because a process answers a call only while it is not
 * calling.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/random.h"
#include "nal/verbs/verbs.h"
#include "portals/engine/debug.h"

/* The kernel may not notice at once that the peer's link address has become known, but it
 * checks at the end. */
#define ADDRESS_MS 100
#define ROUTE_MS   2000
#define CALL_NS    500000000ull /* of the first attempt, doubled each time */
#define CALL_MOST  3u           /* at most this multiple of it */
#define PROVE_NS   10000000000ull
#define RNR_TIMER  12 /* 0.64 ms until a packet that found no buffer is sent again */
#define CROSSED_MS 500
#define RETRIES    7

/* ---- their records --------------------------------------------------------------------------- */

static bool take_conn_slot(struct verbs *v, struct verbs_conn *c)
{
	struct verbs_conn **more;
	uint32_t n = v->slots ? 2 * v->slots : 16;

	for (c->slot = 0; c->slot < v->slots; c->slot++)
		if (!v->conn[c->slot])
			break;
	if (c->slot == v->slots) {
		more = n <= 65536 ? realloc(v->conn, n * sizeof(*more)) : NULL;
		if (!more)
			return false;
		memset(more + v->slots, 0, (n - v->slots) * sizeof(*more));
		v->conn = more;
		v->slots = n;
	}
	v->conn[c->slot] = c;
	c->serial = ++v->serial;
	return true;
}

static struct verbs_conn *conn_new(struct verbs *v, enum verbs_state state)
{
	struct verbs_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->state = state;
	if (!take_conn_slot(v, c)) {
		free(c);
		return NULL;
	}
	c->next = v->conns;
	v->conns = c;
	return c;
}

static void forget_number(struct verbs *v, struct verbs_conn *c)
{
	struct verbs_conn **at = &v->by_number[c->qp->qp_num % VERBS_BUCKETS];

	while (*at != c)
		at = &(*at)->next_number;
	*at = c->next_number;
}

void verbs_conn_free(struct verbs *v, struct verbs_conn *c)
{
	struct verbs_conn **at = &v->conns;

	if (c->qp) {
		forget_number(v, c);
		ibv_destroy_qp(c->qp);
	}
	if (c->cm)
		rdma_destroy_id(c->cm);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	v->conn[c->slot] = NULL;
	v->busy -= c->quiet;
	free(c);
}

/* ---- the states of a queue pair -------------------------------------------------------------- */

static bool make_qp(struct verbs *v, struct verbs_conn *c)
{
	struct verbs_conn **bucket;

	c->qp = verbs_new_qp(v, v->copied);
	if (!c->qp)
		return false;
	bucket = &v->by_number[c->qp->qp_num % VERBS_BUCKETS];
	c->next_number = *bucket;
	*bucket = c;
	return true;
}

/* The exponent of 4.096 us, so that retries end about when the peer counts as silent for too
 * long. */
static uint8_t ack_timeout(void)
{
	uint64_t us = (uint64_t)base_config()->ptl_net_dead_ms * 1000 / (RETRIES + 1);
	uint8_t exponent = 8;

	while (exponent < 31 && (4096ull << (exponent + 1)) / 1000 <= us)
		exponent++;
	return exponent;
}

static bool change_queue_state(struct verbs *v, struct verbs_conn *c, enum ibv_qp_state to)
{
	const struct base_config *config = base_config();
	struct ibv_qp_attr a = { .qp_state = to };
	int mask = 0;

	if (rdma_init_qp_attr(c->cm, &a, &mask) != 0)
		return false;
	if (mask & IBV_QP_ACCESS_FLAGS)
		a.qp_access_flags = 0; /* until the peer has proved who it is */
	if (mask & IBV_QP_PATH_MTU && config->ptl_verbs_mtu)
		a.path_mtu = verbs_mtu(a.path_mtu, config->ptl_verbs_mtu);
	if (mask & IBV_QP_AV && a.ah_attr.is_global && config->ptl_verbs_gid >= 0)
		a.ah_attr.grh.sgid_index = (uint8_t)config->ptl_verbs_gid;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a.max_dest_rd_atomic > v->reads)
		a.max_dest_rd_atomic = (uint8_t)v->reads;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC && a.max_rd_atomic > v->reads)
		a.max_rd_atomic = (uint8_t)v->reads;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		a.min_rnr_timer = RNR_TIMER;
	if (mask & IBV_QP_TIMEOUT)
		a.timeout = ack_timeout();
	if (mask & IBV_QP_RETRY_CNT)
		a.retry_cnt = RETRIES;
	if (mask & IBV_QP_RNR_RETRY)
		a.rnr_retry = 7; /* without limit */
	if (mask && ibv_modify_qp(c->qp, &a, mask) != 0)
		return false;
	if (mask & IBV_QP_AV && a.ah_attr.is_global)
		v->gid = a.ah_attr.grh.sgid_index;
	return true;
}

/* From now on the peer may read memory that is registered for it. */
static bool open_up(struct verbs *v, struct verbs_conn *c)
{
	struct ibv_qp_attr a = { .qp_access_flags = IBV_ACCESS_REMOTE_READ |
						    (v->iwarp ? IBV_ACCESS_REMOTE_WRITE : 0u) };

	return ibv_modify_qp(c->qp, &a, IBV_QP_ACCESS_FLAGS) == 0;
}

static struct rdma_conn_param parameters(const struct verbs *v, const struct verbs_conn *c,
					 const void *bytes, uint8_t len)
{
	return (struct rdma_conn_param){
		.private_data = bytes,
		.private_data_len = len,
		.responder_resources = (uint8_t)v->reads,
		.initiator_depth = (uint8_t)v->reads,
		.retry_count = RETRIES,
		.rnr_retry_count = 7,
		.srq = 1,
		.qp_num = c->qp->qp_num,
	};
}

/* ---- the end --------------------------------------------------------------------------------- */

void verbs_break(struct verbs *v, struct verbs_conn *c, const char *why)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct verbs_path *w = c->path;
	enum verbs_state was = c->state;

	if (was == VERBS_BROKEN)
		return;
	c->state = VERBS_BROKEN;
	c->why = why;
	v->unproven -= was == VERBS_UNPROVEN;
	v->counts.up -= was == VERBS_UP || was == VERBS_LEAVING;
	v->restless = true;
	if (c->qp)
		ibv_modify_qp(c->qp, &a, IBV_QP_STATE);
	if (was >= VERBS_UNPROVEN)
		rdma_disconnect(c->cm);
	if (!w || was != VERBS_UP)
		return;
	v->counts.broken++;
	w->broken = true;
	if (ptl_debugs(v->ni, PTL_DBG_SETUP))
		ptl_debug(v->ni, "nid 0x%08x pid %u: %s", (uint32_t)(w->id >> 32), (uint32_t)w->id,
			  why);
}

/* The attempt failed. */
static void fail_conn(struct verbs *v, struct verbs_conn *c, const char *why, uint32_t again_ms)
{
	struct verbs_path *w = c->path;

	verbs_break(v, c, why);
	c->path = NULL;
	if (!w || w->conn != c)
		return;
	if (ptl_debugs(v->ni, PTL_DBG_SETUP))
		ptl_debug(v->ni, "nid 0x%08x pid %u cannot be called: %s", (uint32_t)(w->id >> 32),
			  (uint32_t)w->id, why);
	w->conn = NULL;
	verbs_path_later(v, w, again_ms);
}

static void conn_over(struct verbs *v, struct verbs_conn *c)
{
	struct verbs_path *w = c->path;

	if (w && w->conn == c)
		w->conn = NULL;
	verbs_conn_free(v, c);
	if (w)
		verbs_path_drop(v, w);
}

/* Decide what happens to a connection that is not simply in use. */
static void judge(struct verbs *v, struct verbs_conn *c, uint64_t now)
{
	if (c->gone)
		verbs_break(v, c, "the peer has closed the connection");
	/* the connection manager would resend a lost message only after seconds */
	if (c->state <= VERBS_CALLING && now > c->until)
		fail_conn(v, c, "no answer", 0);
	if (c->state == VERBS_UNPROVEN && now > c->until) {
		v->counts.refused++;
		verbs_break(v, c, "it never proved who it is");
	}
	if (c->state == VERBS_LEAVING && (c->posted == c->done || now > c->until))
		verbs_break(v, c, "not needed any more");
}

void verbs_reap(struct verbs *v, uint64_t now)
{
	struct verbs_conn *c, *next;

	v->restless = false;
	for (c = v->conns; c; c = next) {
		next = c->next;
		judge(v, c, now);
		if (c->state == VERBS_LEAVING)
			v->restless = true;
		if (c->state != VERBS_BROKEN)
			continue;
		if (c->posted != c->done) {
			v->restless = true;
			continue;
		}
		if (c->path && c->path->refs && c->path->conn == c && !v->closing)
			rdma_broken(&v->rdma, c->path, c->why);
		conn_over(v, c);
	}
}

/* ---- calling --------------------------------------------------------------------------------- */

static uint64_t random_number(void)
{
	uint64_t n = 0;

	/* this NAL does not start without random numbers */
	base_random(&n, sizeof(n));
	return n;
}

void verbs_call(struct verbs *v, struct verbs_path *w)
{
	struct verbs_conn *c = conn_new(v, VERBS_ADDRESS);
	struct sockaddr_storage from, to;
	struct verbs_address own = v->own;

	v->counts.calls++;
	if (!c) {
		verbs_path_later(v, w, 0);
		return;
	}
	c->path = w;
	c->firm = w->gave_way;
	w->gave_way = false;
	c->until =
		base_now_ns() + CALL_NS * (1u << w->calls < CALL_MOST ? 1u << w->calls : CALL_MOST);
	w->conn = c;
	memset(own.port, 0, sizeof(own.port));
	verbs_address_to(&own, v->scope, &from);
	verbs_address_to(&w->address, v->scope, &to);
	if (rdma_create_id(v->channel, &c->cm, c, RDMA_PS_TCP) != 0)
		fail_conn(v, c, "rdma_create_id failed", 0);
	else if (rdma_resolve_addr(c->cm, (struct sockaddr *)&from, (struct sockaddr *)&to,
				   ADDRESS_MS) != 0)
		fail_conn(v, c, "rdma_resolve_addr failed", 0);
}

static void connect_conn(struct verbs *v, struct verbs_conn *c)
{
	struct verbs_call own = { .address = v->own,
				  .id = (net_id_t)v->ni->id.nid << 32 | v->ni->id.pid };
	struct rdma_conn_param p;

	if (c->cm->verbs != v->context || !make_qp(v, c) ||
	    !change_queue_state(v, c, IBV_QPS_INIT)) {
		fail_conn(v, c, "no queue pair", 0);
		return;
	}
	verbs_call_encode(&c->call, &own, random_number());
	verbs_seal_call(&v->key, &c->call);
	p = parameters(v, c, &c->call, sizeof(c->call));
	c->state = VERBS_CALLING;
	if (rdma_connect(c->cm, &p) != 0)
		fail_conn(v, c, "rdma_connect failed", 0);
}

static void stands(struct verbs *v, struct verbs_conn *c)
{
	struct verbs_path *w = c->path;

	c->state = VERBS_UP;
	v->counts.up++;
	v->calling -= w->wanted;
	w->wanted = false;
	w->calls = 0;
	if (ptl_debugs(v->ni, PTL_DBG_SETUP))
		ptl_debug(v->ni, "connected to nid 0x%08x pid %u by verbs, queue pair %u",
			  (uint32_t)(w->id >> 32), (uint32_t)w->id, c->qp->qp_num);
}

/* Our call was answered. With iWARP (`ready`) the queue pair is ready already. */
static void on_answer(struct verbs *v, struct verbs_conn *c, const void *bytes, size_t len,
		      bool ready)
{
	struct verbs_wire_word word;
	enum verbs_refusal why;
	uint64_t number;

	if (c->state != VERBS_CALLING)
		return;
	if (verbs_word_decode(bytes, len, VERBS_ANSWER, &why))
		memcpy(&word, bytes, sizeof(word));
	else
		memset(&word, 0, sizeof(word));
	number = verbs_word_number(&word);
	if (!verbs_check_word(&v->key, &c->call, number, &word)) {
		v->counts.refused++;
		fail_conn(v, c, "the answer was of somebody without the secret", 0);
		return;
	}
	if (!ready && (!change_queue_state(v, c, IBV_QPS_RTR) ||
		       !change_queue_state(v, c, IBV_QPS_RTS) || rdma_establish(c->cm) != 0)) {
		fail_conn(v, c, "the queue pair does not connect", 0);
		return;
	}
	if (!open_up(v, c)) {
		fail_conn(v, c, "the queue pair does not open", 0);
		return;
	}
	verbs_word_encode(&word, VERBS_CONFIRM, VERBS_NO_REASON, number);
	verbs_seal_word(&v->key, &c->call, number, &word);
	v->counts.made++;
	stands(v, c);
	verbs_say(v, c, &word, sizeof(word));
}

static void on_refusal(struct verbs *v, struct verbs_conn *c, const char *how, const void *bytes,
		       size_t len)
{
	enum verbs_refusal why = VERBS_NO_REASON;

	if (c->state >= VERBS_UNPROVEN) {
		c->gone = v->restless = true;
		return;
	}
	verbs_word_decode(bytes, len, VERBS_REFUSAL, &why);
	fail_conn(v, c, why == VERBS_NOT_OURS ? "it has another secret, or version" : how,
		  why == VERBS_CROSSED ? CROSSED_MS : 0);
}

/* ---- being called ---------------------------------------------------------------------------- */

static void refuse_call(struct rdma_cm_id *cm, enum verbs_refusal why)
{
	struct verbs_wire_word word;

	verbs_word_encode(&word, VERBS_REFUSAL, why, 0);
	rdma_reject(cm, &word, sizeof(word));
	rdma_destroy_id(cm);
}

/* Our call to the caller, if we are calling it. */
static struct verbs_conn *crossing_call(struct verbs *v, const struct verbs_call *call)
{
	const struct verbs_path *w = verbs_path_to(v, &call->address);

	return w && w->conn && w->conn->state <= VERBS_CALLING ? w->conn : NULL;
}

static bool answer_call(struct verbs *v, struct verbs_conn *c)
{
	struct verbs_wire_word word;
	struct rdma_conn_param p;

	if (!make_qp(v, c) || !change_queue_state(v, c, IBV_QPS_INIT))
		return false;
	if (!v->iwarp &&
	    (!change_queue_state(v, c, IBV_QPS_RTR) || !change_queue_state(v, c, IBV_QPS_RTS)))
		return false;
	c->number = random_number();
	verbs_word_encode(&word, VERBS_ANSWER, VERBS_NO_REASON, c->number);
	verbs_seal_word(&v->key, &c->call, c->number, &word);
	p = parameters(v, c, &word, sizeof(word));
	return rdma_accept(c->cm, &p) == 0;
}

static void on_call(struct verbs *v, struct rdma_cm_id *cm, const void *bytes, size_t len)
{
	struct verbs_call call;
	struct verbs_conn *c, *ours;
	struct verbs_wire_call wire;

	if (verbs_call_decode(bytes, len, &call))
		memcpy(&wire, bytes, sizeof(wire));
	else
		memset(&wire, 0, sizeof(wire));
	if (!verbs_check_call(&v->key, &wire)) {
		v->counts.refused++;
		ptl_count_drop(&v->ni->engine, PTL_DROP_REFUSED_PEER, 0);
		refuse_call(cm, VERBS_NOT_OURS);
		return;
	}
	ours = crossing_call(v, &call);
	if (ours && (ours->firm || memcmp(&v->own, &call.address, sizeof(v->own)) < 0)) {
		refuse_call(cm, VERBS_CROSSED);
		return;
	}
	c = v->unproven < VERBS_CALLERS && cm->verbs == v->context ? conn_new(v, VERBS_UNPROVEN)
								   : NULL;
	if (!c) {
		refuse_call(cm, VERBS_BUSY);
		return;
	}
	v->unproven++;
	cm->context = c;
	c->cm = cm;
	c->call = wire;
	c->caller = call;
	c->until = base_now_ns() + PROVE_NS;
	if (!answer_call(v, c)) {
		verbs_break(v, c, "it cannot be answered");
	} else if (ours) {
		ours->path->gave_way = true;
		fail_conn(v, ours, "the peer is calling", CROSSED_MS);
	}
}

void verbs_confirmed(struct verbs *v, struct verbs_conn *c, const void *bytes, size_t len)
{
	struct verbs_wire_word word;
	enum verbs_refusal why;
	struct verbs_path *w;

	if (verbs_word_decode(bytes, len, VERBS_CONFIRM, &why))
		memcpy(&word, bytes, sizeof(word));
	else
		memset(&word, 0, sizeof(word));
	if (!verbs_check_word(&v->key, &c->call, c->number, &word) || !open_up(v, c)) {
		v->counts.refused++;
		ptl_count_drop(&v->ni->engine, PTL_DROP_REFUSED_PEER, 0);
		verbs_break(v, c, "it cannot prove who it is");
		return;
	}
	w = verbs_path_to(v, &c->caller.address);
	if (w && w->conn && w->conn->state == VERBS_UP) {
		if ((int32_t)(c->serial - w->conn->serial) < 0) {
			verbs_break(v, c, "the calls crossed, and the other one stays");
			return;
		}
		/* the peer has forgotten the old connection */
		verbs_break(v, w->conn, "the peer has made a new connection");
	} else if (w && w->conn) {
		w->conn->path = NULL;
		verbs_break(v, w->conn, "the peer's call was first");
		w->conn = NULL;
	}
	w = verbs_path_get(v, &c->caller.address, c->caller.id);
	if (!w) {
		verbs_break(v, c, "no memory");
		return;
	}
	v->unproven--;
	v->counts.taken++;
	c->path = w;
	w->conn = c;
	stands(v, c);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void on_event(struct verbs *v, enum rdma_cm_event_type type, struct rdma_cm_id *cm,
		     const void *bytes, size_t len)
{
	struct verbs_conn *c = cm->context;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		on_call(v, cm, bytes, len);
		return;
	}
	if (!c || c->state == VERBS_BROKEN)
		return;
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		c->state = VERBS_ROUTE;
		if (rdma_resolve_route(cm, ROUTE_MS) != 0)
			fail_conn(v, c, "rdma_resolve_route failed", 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_conn(v, c);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		on_answer(v, c, bytes, len, false);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		on_answer(v, c, bytes, len, true);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		on_refusal(v, c, rdma_event_str(type), bytes, len);
		break;
	default:
		break;
	}
}

static void conn_failed(struct verbs *v, const struct ibv_qp *qp, const char *why)
{
	struct verbs_conn *c = v->conns;

	while (c && c->qp != qp)
		c = c->next;
	if (c)
		verbs_break(v, c, why);
}

/* All connections fail. Operations under way come back with errors if the device can still
 * report them. Otherwise the next packet, or silence, shows the failure. */
static void all_failed(struct verbs *v, const char *why)
{
	for (struct verbs_conn *c = v->conns; c; c = c->next)
		verbs_break(v, c, why);
}

/*
 * Handle the device's own events. A queue pair may fail while nothing is under way on it that
 * could come back with an error. The peer's device would then try for long to reach it.
 */
static unsigned int device_events(struct verbs *v)
{
	struct ibv_async_event e;
	unsigned int n = 0;

	while (n < 16 && ibv_get_async_event(v->context, &e) == 0) {
		switch (e.event_type) {
		case IBV_EVENT_QP_FATAL:
		case IBV_EVENT_QP_REQ_ERR:
		case IBV_EVENT_QP_ACCESS_ERR:
		case IBV_EVENT_QP_LAST_WQE_REACHED:
			conn_failed(v, e.element.qp, ibv_event_type_str(e.event_type));
			break;
		case IBV_EVENT_DEVICE_FATAL:
		case IBV_EVENT_CQ_ERR:
		case IBV_EVENT_SRQ_ERR:
			all_failed(v, ibv_event_type_str(e.event_type));
			break;
		default:
			break;
		}
		ibv_ack_async_event(&e);
		n++;
	}
	return n;
}

unsigned int verbs_events(struct verbs *v)
{
	struct rdma_cm_event *e;
	unsigned int n = device_events(v);

	while (n < 32 && rdma_get_cm_event(v->channel, &e) == 0) {
		enum rdma_cm_event_type type = e->event;
		struct rdma_cm_id *cm = e->id;
		uint8_t bytes[256];
		size_t len = e->param.conn.private_data_len;

		/* acknowledge first: no object that is freed below may have an event left */
		if (!e->param.conn.private_data ||
		    (type != RDMA_CM_EVENT_CONNECT_REQUEST &&
		     type != RDMA_CM_EVENT_CONNECT_RESPONSE && type != RDMA_CM_EVENT_ESTABLISHED &&
		     type != RDMA_CM_EVENT_REJECTED))
			len = 0;
		if (len)
			memcpy(bytes, e->param.conn.private_data, len);
		rdma_ack_cm_event(e);
		on_event(v, type, cm, bytes, len);
		n++;
	}
	return n;
}
