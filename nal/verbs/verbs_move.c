/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Outgoing packets and reads, arrivals and completions, and memory registration.
 *
 * A completion names its work request: not all devices complete reads and later work in order
 * (siw does not).
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "nal/verbs/verbs.h"

#define BATCH     16
#define POLL_MOST 128 /* completions of one round */
#define CM_POLL_EVERY                                                                              \
	1024            /* rounds between polls of the connection manager, which are system calls */
#define CM_POLL_OFTEN 4 /* while somebody is being connected */
#define PAGE          4096u
#define LIBRARIES     1536 /* records of libibverbs and librdmacm for a connection, about */
#define SOON_NS       10000000ull
#define SERIALS       0x0fffffffu
#define RESTOCK       16u /* receive buffers given back at a time */

/* The kind of a completion: a receive buffer, or else a connection's work request. A quiet
 * request completes only if it failed. */
#define OF_BUFFER 1u
#define OF_QUIET  2u

static uint64_t id_of_buffer(uint32_t i)
{
	return (uint64_t)i << 1 | OF_BUFFER;
}

static uint64_t id_of_wr(const struct verbs_conn *c, uint32_t i)
{
	static_assert(VERBS_DEPTH < 16, "the index has four bits");
	return (uint64_t)c->slot << 34 | (uint64_t)(c->serial & SERIALS) << 6 | (uint64_t)i << 2;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* Is there room for one more request? Returns 0, -EAGAIN, or -ENOTCONN: the path failed. */
static int path_ready(struct verbs *v, struct verbs_path *w)
{
	struct verbs_conn *c = w->conn;

	if (c && c->state == VERBS_UP && !c->gone)
		return c->posted - c->done + c->quiet >= VERBS_DEPTH || v->busy >= VERBS_BUSY_ALL
			       ? -EAGAIN
			       : 0;
	if (w->broken)
		return -ENOTCONN;
	if (!w->wanted && !(c && c->state == VERBS_UP)) {
		w->wanted = true;
		v->calling++;
		v->rounds = CM_POLL_EVERY;
	}
	if (!c && w->call_at <= base_now_ns())
		verbs_call(v, w);
	return -EAGAIN;
}

static int post_to_queue(struct verbs_conn *c, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(c->qp, wr, &bad);

	return err == ENOMEM ? -EAGAIN : -err;
}

/* Post a request that nobody waits for: the next completion of the connection covers it. */
static int post_quietly(struct verbs *v, struct verbs_conn *c, struct ibv_send_wr *wr)
{
	int err;

	wr->wr_id = id_of_wr(c, 0) | OF_QUIET;
	err = post_to_queue(c, wr);
	if (err)
		return err;
	c->quiet++;
	c->in_row++;
	v->busy++;
	return 0;
}

static int post_work(struct verbs *v, struct verbs_conn *c, struct ibv_send_wr *wr, void *item)
{
	uint32_t i = c->posted % (VERBS_DEPTH + 1);
	int err;

	/* there is a free one: path_ready() has checked */
	while (c->wr[i].busy)
		i = (i + 1) % (VERBS_DEPTH + 1);
	wr->wr_id = id_of_wr(c, i);
	wr->send_flags |= IBV_SEND_SIGNALED;
	err = post_to_queue(c, wr);
	if (err)
		return err;
	c->wr[i] = (struct verbs_wr){ .item = item,
				      .read = wr->opcode == IBV_WR_RDMA_READ,
				      .busy = true };
	/* not all devices complete reads and sends in order */
	if (!c->wr[i].read) {
		c->wr[i].covers = (uint8_t)c->in_row;
		c->in_row = 0;
	}
	c->posted++;
	v->busy++;
	return 0;
}

/* Fill in the one work request to post. Most of its fields never change. */
static inline struct ibv_send_wr *work_request(struct verbs *v, enum ibv_wr_opcode opcode,
					       unsigned int flags, const void *bytes, uint32_t len,
					       uint32_t lkey)
{
	v->segment.addr = (uintptr_t)bytes;
	v->segment.length = len;
	v->segment.lkey = lkey;
	v->work.sg_list = &v->segment;
	v->work.num_sge = 1;
	v->work.opcode = opcode;
	v->work.send_flags = flags;
	return &v->work;
}

static uint32_t lkey_of(const struct rdma_mr *mr)
{
	return (uint32_t)(uintptr_t)mr->local;
}

int verbs_send(void *link, void *path, struct rdma_packet *p)
{
	struct verbs *v = link;
	struct verbs_path *w = path;
	bool in_line = p->len <= v->copied;
	struct ibv_send_wr *wr;
	int err = path_ready(v, w);

	if (err)
		return err;
	wr = work_request(v, p->headerless ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
			  in_line ? IBV_SEND_INLINE : 0, p->bytes, p->len,
			  in_line ? 0 : lkey_of(p->mr));
	if (p->headerless)
		wr->imm_data = htobe32((uint32_t)p->word);
	/* quiet requests of connections that fall silent never complete: they may use only half
	 * of the completion queue */
	if (in_line && !p->last && w->conn->in_row < VERBS_QUIET && v->busy < VERBS_BUSY_ALL / 2)
		return post_quietly(v, w->conn, wr);
	return post_work(v, w->conn, wr, in_line ? NULL : p);
}

int verbs_read(void *link, void *path, struct rdma_read *r)
{
	struct verbs *v = link;
	struct verbs_path *w = path;
	struct ibv_send_wr *wr;
	int err = path_ready(v, w);

	if (err)
		return err;
	wr = work_request(v, IBV_WR_RDMA_READ, 0, r->to, (uint32_t)r->len, lkey_of(r->mr));
	wr->wr.rdma.remote_addr = r->from;
	wr->wr.rdma.rkey = (uint32_t)r->key;
	return post_work(v, w->conn, wr, r);
}

bool verbs_say(struct verbs *v, struct verbs_conn *c, const void *bytes, uint32_t len)
{
	struct ibv_send_wr *wr = work_request(v, IBV_WR_SEND, IBV_SEND_INLINE, bytes, len, 0);
	int err = post_work(v, c, wr, NULL);

	if (err)
		verbs_break(v, c, "the first packet cannot be sent");
	return !err;
}

/* ---- memory ---------------------------------------------------------------------------------- */

int verbs_reg(void *link, void *base, size_t len, enum rdma_use use, bool quietly,
	      struct rdma_mr *mr)
{
	struct verbs *v = link;
	/* with iWARP, read data arrives as a write of the peer's */
	int access = use == RDMA_REMOTE ? IBV_ACCESS_REMOTE_READ
		     : v->iwarp         ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
					: IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *m = ibv_reg_mr(v->pd, base, len, access);

	if (!m) {
		int err = errno;

		if (!quietly && !v->counts.reg_failed++)
			verbs_say_locked(len, err);
		return err ? -err : -ENOMEM;
	}
	mr->handle = m;
	mr->local = (void *)(uintptr_t)m->lkey;
	mr->key = m->rkey;
	mr->addr = (uintptr_t)base;
	return 0;
}

void verbs_unreg(void *link, struct rdma_mr *mr)
{
	(void)link;
	if (mr->handle)
		ibv_dereg_mr(mr->handle);
	mr->handle = NULL;
}

void verbs_restock(struct verbs *v, uint32_t at_least)
{
	struct ibv_recv_wr wr[RESTOCK], *bad;
	struct ibv_sge sge[RESTOCK];

	while (v->nspare >= at_least && v->nspare) {
		uint32_t k = v->nspare < RESTOCK ? v->nspare : RESTOCK;

		for (uint32_t i = 0; i < k; i++) {
			uint32_t b = v->spare[v->nspare - 1 - i];

			sge[i] = (struct ibv_sge){
				.addr = (uintptr_t)v->buffer + (uint64_t)b * VERBS_PACKET,
				.length = VERBS_PACKET,
				.lkey = v->buffer_mr->lkey,
			};
			wr[i] = (struct ibv_recv_wr){
				.wr_id = id_of_buffer(b),
				.next = i + 1 < k ? &wr[i + 1] : NULL,
				.sg_list = &sge[i],
				.num_sge = 1,
			};
		}
		if (ibv_post_srq_recv(v->srq, wr, &bad) != 0) {
			/* the device has those before `bad` */
			v->nspare -= (uint32_t)(bad - wr);
			return;
		}
		v->nspare -= k;
	}
}

/* ---- in -------------------------------------------------------------------------------------- */

static void message_arrived(struct verbs *v, const struct ibv_wc *wc)
{
	uint32_t b = (uint32_t)(wc->wr_id >> 1);
	const uint8_t *bytes = v->buffer + (size_t)b * VERBS_PACKET;
	struct verbs_conn *c;

	v->spare[v->nspare++] = b;
	if (wc->status != IBV_WC_SUCCESS || wc->byte_len > VERBS_PACKET)
		return;
	c = verbs_conn_of(v, wc->qp_num);
	if (!c)
		return;
	if (c->state == VERBS_UNPROVEN)
		verbs_confirmed(v, c, bytes, wc->byte_len);
	else if (c->state == VERBS_UP && wc->wc_flags & IBV_WC_WITH_IMM)
		rdma_arrived_headerless(&v->rdma, c->path, be32toh(wc->imm_data), bytes,
					wc->byte_len);
	else if (c->state == VERBS_UP)
		rdma_arrived(&v->rdma, c->path, bytes, wc->byte_len);
}

static struct verbs_conn *conn_of(const struct verbs *v, uint64_t wr_id)
{
	uint32_t slot = (uint32_t)(wr_id >> 34), serial = (uint32_t)(wr_id >> 6) & SERIALS;
	struct verbs_conn *c = slot < v->slots ? v->conn[slot] : NULL;

	return c && (c->serial & SERIALS) == serial ? c : NULL;
}

static void work_completed(struct verbs *v, const struct ibv_wc *wc)
{
	struct verbs_conn *c = conn_of(v, wc->wr_id);
	struct verbs_wr *wr = c ? &c->wr[wc->wr_id >> 2 & 15] : NULL;
	enum rdma_end end = RDMA_OK;

	if (!c)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		end = RDMA_BROKEN;
		verbs_break(v, c, ibv_wc_status_str(wc->status));
	}
	/* quiet requests count as over when their connection goes */
	if (wc->wr_id & OF_QUIET || !wr->busy)
		return;
	wr->busy = false;
	c->done++;
	v->busy--;
	if (end == RDMA_OK) {
		c->quiet -= wr->covers;
		v->busy -= wr->covers;
	}
	if (v->closing || !wr->item)
		return;
	if (wr->read)
		rdma_moved(&v->rdma, wr->item, end, c->why);
	else
		rdma_sent(&v->rdma, wr->item, end, c->why);
}

static bool cm_poll_due(struct verbs *v)
{
	if (++v->rounds < (v->calling || v->unproven ? CM_POLL_OFTEN : CM_POLL_EVERY))
		return false;
	v->rounds = 0;
	return true;
}

static void take_completion(struct verbs *v, const struct ibv_wc *wc)
{
	if (wc->wr_id & OF_BUFFER)
		message_arrived(v, wc);
	else
		work_completed(v, wc);
}

/* The work of poll() that is done only now and then. */
static unsigned int poll_completions(struct verbs *v)
{
	unsigned int n = verbs_events(v);

	if (n)
		verbs_show_counts(v);
	if (v->calling)
		verbs_path_calls(v, base_now_ns());
	/* check whether they ever answer, or prove who they are */
	v->restless |= v->unproven || v->calling;
	return n;
}

unsigned int verbs_poll(void *link)
{
	struct verbs *v = link;
	struct ibv_wc wc[BATCH];
	unsigned int n = 0;
	int k;

	if (v->has_stash) {
		v->has_stash = false;
		take_completion(v, &v->stash);
		n++;
	}
	do {
		k = ibv_poll_cq(v->cq, BATCH, wc);
		for (int i = 0; i < k; i++)
			take_completion(v, &wc[i]);
		n += k > 0 ? (unsigned int)k : 0;
	} while (k == BATCH && n < POLL_MOST);
	if (v->nspare >= RESTOCK)
		verbs_restock(v, RESTOCK);
	/* not before everything that arrived was processed */
	if (k < BATCH && v->restless)
		verbs_reap(v, base_now_ns());
	if (cm_poll_due(v))
		n += poll_completions(v);
	return n;
}

/* Take the events of the completion channel. After one, the channel must be armed again. */
static void disarm(struct verbs *v)
{
	struct ibv_cq *cq;
	void *user;

	while (v->armed && ibv_get_cq_event(v->completions, &cq, &user) == 0) {
		ibv_ack_cq_events(cq, 1);
		v->armed = false;
	}
}

bool verbs_arm(void *link, uint64_t *within_ns)
{
	struct verbs *v = link;
	struct pollfd p[] = { { .fd = v->channel->fd, .events = POLLIN },
			      { .fd = v->context->async_fd, .events = POLLIN } };
	uint64_t now = base_now_ns(), next;

	if (poll(p, 2, 0) > 0) {
		v->rounds = CM_POLL_EVERY;
		return false;
	}
	next = verbs_path_calls(v, now);
	verbs_restock(v, 1);
	disarm(v);
	if (!v->armed && ibv_req_notify_cq(v->cq, 0) != 0)
		return false;
	v->armed = true;
	/* completions before arming cause no event */
	if (!v->has_stash && ibv_poll_cq(v->cq, 1, &v->stash) > 0)
		v->has_stash = true;
	if (v->has_stash)
		return false;
	if (v->restless || v->unproven || v->calling)
		next = now + SOON_NS < next ? now + SOON_NS : next;
	if (next != UINT64_MAX)
		*within_ns = next > now ? next - now : 0;
	return true;
}

uint32_t verbs_peer_bytes(const struct verbs *v)
{
	/* a work request: the device's entry, and its inline bytes or segment; devices round up
	 * to powers of two and to pages */
	uint32_t each = 64;

	while (each < 144 + v->copied)
		each *= 2;
	return (uint32_t)(sizeof(struct verbs_conn) + sizeof(struct verbs_path) +
			  sizeof(struct rdma_peer) + sizeof(struct net_peer)) +
	       LIBRARIES + PAGE + (VERBS_DEPTH + 1) * each;
}

void verbs_show_counts(struct verbs *v)
{
	uint64_t *counts = v->ni->view.r->stat.counts;

	counts[PTL_COUNT_RDMA_MADE] = v->counts.made + v->counts.taken;
	counts[PTL_COUNT_RDMA_BROKEN] = v->counts.broken;
	counts[PTL_COUNT_RDMA_REFUSED] = v->counts.refused;
	counts[PTL_COUNT_RDMA_PEER_BYTES] =
		v->counts.made + v->counts.taken ? verbs_peer_bytes(v) : 0;
}
