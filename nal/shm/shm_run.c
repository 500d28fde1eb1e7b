/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processing the messages in rings. The same code runs in two places: in the owner of a region
 * for all its peers, and in a peer for its own ring in the region of an owner that computes.
 * The second case is proxy delivery. Every change to the region then goes through the undo log
 * and is committed message by message. Bytes move by CMA. Answers go where the owner would
 * write them: into its ring towards the proxy, which is in the proxy's own region.
 */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "nal/shm/shm.h"
#include "portals/engine/serve.h"

/* Bytes of a payload that are prefetched while its header is read. */
#define ASK_BYTES 2048

/* Keeps everything but plain puts, with its large buffers, out of the loop that processes
 * messages. */
#define APART __attribute__((noinline))

/* The processing of one ring. */
struct run {
	struct shm *s;
	struct shm_peer *p; /* owner: the sender; proxy: the owner of the region */
	struct ptl_engine *e;
	struct shm_ring *from;   /* the messages */
	struct shm_ring *to;     /* the answers */
	struct ptl_answerer who; /* the sender of the messages */
	uint32_t sender;         /* its channel in the region */
	pid_t memory;            /* whose memory MDs refer to: 0 ours, else a peer's */
	bool denied;             /* CMA was refused: the owner must process the message */
	bool dear;               /* ... only because it would take too long here */
};

/* ---- messages -------------------------------------------------------------------------------- */

/* The owner may defer an answer; a proxy made sure of room before it began. */
static struct shm_msg *answer_begin(struct run *x, enum shm_kind kind, uint32_t size,
				    struct shm_msg *spare)
{
	struct shm_msg *m =
		x->e->undo ? shm_ring_place(x->to, size) : shm_send_begin(x->p, size, spare);

	m->kind = (uint8_t)kind;
	m->size = (uint16_t)size;
	return m;
}

static void answer_end(struct run *x, struct shm_msg *m, const struct shm_msg *spare,
		       const struct shm_span *payload, const void *bytes)
{
	if (!x->e->undo) {
		shm_send_end(x->s, x->p, m, spare, payload, bytes);
		return;
	}
	if (m->size)
		shm_fill_payload(shm_ring_payload(x->to, m), m, payload, bytes);
	shm_ring_publish(x->to, m);
}

static void send_final_response(struct run *x, uint32_t op, uint32_t gen, enum ptl_answer what,
				uint64_t mlength, ptl_ni_fail_t fail)
{
	struct shm_msg spare, *m;

	if (op == PTL_NIL)
		return;
	m = answer_begin(x, SHM_ANSWER, 0, &spare);
	m->flags = (uint8_t)what;
	m->length = mlength;
	m->hdr_data = fail;
	m->op = op;
	m->op_gen = gen;
	answer_end(x, m, &spare, NULL, NULL);
}

/* Send the data of a get or getput. */
static void send_reply(struct run *x, const struct ptl_delivery *l, const struct shm_span *payload,
		       const void *bytes)
{
	struct shm_msg spare, *m = answer_begin(x, SHM_REPLY, (uint32_t)l->mlength, &spare);

	m->length = l->mlength;
	m->op = l->op;
	m->op_gen = l->op_gen;
	answer_end(x, m, &spare, payload, bytes);
}

static void end_put(struct run *x, const struct ptl_delivery *l, ptl_ni_fail_t fail)
{
	/* the answer first, as somebody may wait for it */
	send_final_response(x, l->op, l->op_gen, ptl_serve_put_answer(l, fail), l->mlength, fail);
	ptl_engine_done(x->e, l, fail);
}

/* Return whether the proxy cannot access the owner's memory after all, and leave the message
 * to the owner. */
static bool request_refused(struct run *x, ptl_ni_fail_t fail)
{
	return x->denied = x->memory && fail == PTL_NI_FAIL;
}

/* Return whether a message of several steps lacks a delivery record that only the owner can
 * make. Then the owner must process it, so this is checked before anything is counted. */
static bool deliveries_full(struct run *x)
{
	const struct ptl_view *v = x->e->v;

	if (!x->e->undo || v->r->delivery_free < v->ndeliveries ||
	    v->r->deliveries_high < v->ndeliveries || !ptl_may_grow(v, PTL_PART_DELIVERY))
		return false;
	x->denied = x->dear = true;
	return true;
}

/* Begin a long delivery, which both sides move. */
static void begin_long(struct run *x, struct ptl_delivery *l)
{
	const struct ptl_view *initiator = x->memory ? &x->s->ni->view : &x->p->view;
	ptl_ni_fail_t fail = PTL_NI_FAIL;
	uint32_t i = PTL_NIL;

	if (!x->memory)
		shm_peer_follow(x->s, x->p);
	/* without the initiator's record there is no data */
	if (!ptl_op_valid(initiator, l->op, l->op_gen)) {
		fail = PTL_NI_PROTOCOL;
	} else {
		shm_long_chunks(l, l->kind == PTL_REQ_GET ? x->to : x->from);
		i = ptl_delivery_alloc(x->e, l);
		if (i != PTL_NIL && !x->e->undo)
			shm_path_began(x->s, x->p);
	}
	if (i == PTL_NIL) {
		ptl_engine_done(x->e, l, fail);
		send_final_response(x, l->op, l->op_gen, PTL_ANSWER_FAILED, 0, fail);
		return;
	}
	if (l->kind == PTL_REQ_GET) {
		struct shm_msg spare, *m = answer_begin(x, SHM_GRANT, 0, &spare);

		m->remote_offset = i | (uint64_t)x->e->v->delivery[i].gen << 32;
		m->length = l->mlength;
		m->op = l->op;
		m->op_gen = l->op_gen;
		answer_end(x, m, &spare, NULL, NULL);
	} else {
		/* tell the initiator where it can help; release: the delivery is complete */
		__atomic_store_n(&initiator->op[l->op].delivery_gen, x->e->v->delivery[i].gen,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&initiator->op[l->op].delivery, i + 1, __ATOMIC_RELEASE);
	}
}

static inline bool match_request(struct run *x, const struct ptl_request *q, struct ptl_delivery *l)
{
	return !ptl_serve_match(x->s->ni, x->e, q, l, x->e->undo ? ", on the target's behalf" : "");
}

static void run_put(struct run *x, const struct ptl_request *q, const struct shm_msg *m,
		    const char *payload)
{
	struct ptl_delivery l;
	ptl_ni_fail_t fail;

	if (m->kind == SHM_PUT_LONG && deliveries_full(x))
		return;
	if (!match_request(x, q, &l)) {
		send_final_response(x, q->op, q->op_gen, PTL_ANSWER_QUIET, 0, PTL_NI_OK);
		return;
	}
	if (m->kind == SHM_PUT_LONG && l.mlength) {
		begin_long(x, &l);
		/* a source may sleep that alone can move the bytes */
		if (!x->e->undo && !x->p->cma && x->p->state == SHM_LIVE)
			shm_notify(x->s, x->p);
		return;
	}
	fail = shm_copy_in(&(struct shm_span){ x->e->v, x->memory, l.md, l.offset }, payload,
			   l.mlength);
	if (!request_refused(x, fail))
		end_put(x, &l, fail);
}

/* Longest answer whose payload lines are prefetched while its request is matched: stores wait
 * for their lines one after the other. Longer ones were measured to arrive sooner without. */
#define ASK_ANSWER 512

static inline void ask_payload(const struct shm_ring *r, uint64_t size)
{
	const char *payload = r->lines + (size_t)shm_payload_line(shm_ring_at(r)) * SHM_LINE;

	if (size <= SHM_INLINE || size > ASK_ANSWER)
		return;
	for (uint32_t i = 0; i < size; i += SHM_LINE)
		base_prefetch_write(payload + i);
}

/* The reply's bytes go straight from the MD to the ring. */
static void APART run_get(struct run *x, const struct ptl_request *q, bool may_deliver)
{
	char bounce[SHM_MOST > 32768 ? 32768 : SHM_MOST];
	struct ptl_delivery l;
	struct shm_span span;
	ptl_ni_fail_t fail = PTL_NI_OK;

	if (may_deliver && deliveries_full(x))
		return;
	ask_payload(x->to, q->rlength);
	/* Without SHM_LONG the initiator asks for no more than its ring takes, and that fits
	 * in `bounce`. */
	if ((!may_deliver && q->rlength > sizeof(bounce)) || !match_request(x, q, &l)) {
		send_final_response(x, q->op, q->op_gen, PTL_ANSWER_QUIET, 0, PTL_NI_OK);
		return;
	}
	if (may_deliver && (l.mlength > x->s->eager || l.mlength > x->to->count * SHM_LINE / 4)) {
		begin_long(x, &l);
		return;
	}
	span = (struct shm_span){ x->e->v, x->memory, l.md, l.offset };
	if (x->memory) { /* may fail: not into the ring before that is known */
		fail = shm_copy_out(bounce, &span, l.mlength);
		if (request_refused(x, fail))
			return;
	}
	if (fail == PTL_NI_OK)
		send_reply(x, &l, &span, x->memory ? bounce : NULL);
	else
		send_final_response(x, q->op, q->op_gen, PTL_ANSWER_FAILED, 0, fail);
	ptl_engine_done(x->e, &l, fail);
}

/* Finish an atomic: send back the old contents if requested. */
static void atomic_done(struct run *x, const struct ptl_request *q, const struct ptl_delivery *l,
			ptl_ni_fail_t fail, const char *old)
{
	if (request_refused(x, fail))
		return;
	if (q->kind == PTL_REQ_PUT) {
		end_put(x, l, fail);
		return;
	}
	if (fail == PTL_NI_OK)
		send_reply(x, l, NULL, old);
	else
		send_final_response(x, q->op, q->op_gen, PTL_ANSWER_FAILED, 0, fail);
	ptl_engine_done(x->e, l, fail);
}

static struct shm_span delivery_span(const struct run *x, const struct ptl_delivery *l)
{
	return (struct shm_span){ x->e->v, x->memory, l->md, l->offset };
}

static ptl_ni_fail_t read_delivery(void *server, const struct ptl_delivery *l, void *bytes)
{
	const struct shm_span span = delivery_span(server, l);

	return shm_copy_out(bytes, &span, l->mlength);
}

static ptl_ni_fail_t write_delivery(void *server, const struct ptl_delivery *l, const void *bytes)
{
	const struct shm_span span = delivery_span(server, l);

	return shm_copy_in(&span, bytes, l->mlength);
}

static ptl_ni_fail_t read_delivery_runs(void *server, const struct ptl_delivery *l,
					const ptl_atomic_runs_t *runs, char *bytes)
{
	const struct shm_span span = delivery_span(server, l);

	return shm_copy_runs(&span, runs, bytes, false);
}

static ptl_ni_fail_t write_delivery_runs(void *server, const struct ptl_delivery *l,
					 const ptl_atomic_runs_t *runs, const char *bytes)
{
	const struct shm_span span = delivery_span(server, l);

	return shm_copy_runs(&span, runs, (char *)(uintptr_t)bytes, true);
}

static_assert(SHM_ATOMIC_MOST <= PTL_SERVE_SWAP_MOST, "what this NAL takes can be served");

/* If the memory of another process cannot be accessed after all, the read fails before
 * anything has changed. */
static const struct ptl_serve_memory memory = { read_delivery, write_delivery, read_delivery_runs,
						write_delivery_runs };

static void APART take_atomic(struct run *x, const struct ptl_request *q, const char *payload)
{
	struct ptl_delivery l;
	char old[SHM_ATOMIC_MOST];

	if (q->rlength > sizeof(old) || !match_request(x, q, &l)) {
		send_final_response(x, q->op, q->op_gen, PTL_ANSWER_QUIET, 0, PTL_NI_OK);
		return;
	}
	atomic_done(x, q, &l, ptl_serve_swap(&memory, x, &l, q->atomic, q->element, payload, old),
		    old);
}

static uint64_t count_runs(const ptl_atomic_runs_t *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->groups; i++)
		n += ptl_runs_groups(r)[i].count;
	return n;
}

/* Most runs to reach one by one in another process's memory. With more the owner is faster. */
#define RUNS_BY_PEER 64

static void APART take_runs(struct run *x, struct ptl_request *q, const char *payload,
			    uint32_t size)
{
	_Alignas(16) char list[SHM_ATOMIC_MOST];
	const ptl_atomic_runs_t *runs = (const ptl_atomic_runs_t *)(const void *)list;
	const uint64_t length = q->rlength;
	char old[SHM_ATOMIC_MOST];
	struct ptl_delivery l;
	ptl_ni_fail_t fail = PTL_NI_OK;

	memcpy(list, payload, size);
	if (length > sizeof(old) || !ptl_runs_valid(runs, size, q->atomic, q->element, length)) {
		ptl_count_drop(x->e, PTL_DROP_STALE, length);
		send_final_response(x, q->op, q->op_gen, PTL_ANSWER_FAILED, 0, PTL_NI_PROTOCOL);
		return;
	}
	if (x->memory && count_runs(runs) > RUNS_BY_PEER &&
	    !((struct shm_area *)x->e->v->nal)->calls_only) {
		x->denied = x->dear = true; /* nothing has been done yet */
		return;
	}
	q->rlength = runs->span;
	if (!match_request(x, q, &l)) {
		send_final_response(x, q->op, q->op_gen, PTL_ANSWER_QUIET, 0, PTL_NI_OK);
		return;
	}
	l.mlength = l.mlength == runs->span ? length : 0;
	l.rlength = length;
	if (l.mlength)
		fail = ptl_serve_swap_runs(&memory, x, &l, q->atomic, q->element, runs, old);
	atomic_done(x, q, &l, fail, old);
}

/* Return whether an answer names an operation that its sender is to answer. */
static bool names_op(struct ptl_engine *e, uint32_t sender, uint32_t op, uint32_t gen,
		     uint64_t length)
{
	if (ptl_op_valid(e->v, op, gen) && e->v->op[op].peer == sender)
		return true;
	ptl_count_drop(e, PTL_DROP_STALE, length);
	return false;
}

static bool sender_known(const struct run *x, const struct shm_msg *m)
{
	return names_op(x->e, x->sender, m->op, m->op_gen, m->length);
}

static void APART take_reply(struct run *x, const struct shm_msg *m, const char *payload)
{
	struct ptl_delivery l;
	ptl_ni_fail_t fail;

	if (!sender_known(x, m))
		return;

	if (ptl_engine_reply(x->e, m->op, m->op_gen, m->size, true, &x->who, &l)) {
		fail = shm_copy_in(&(struct shm_span){ x->e->v, x->memory, l.md, l.offset },
				   payload, l.mlength);
		if (request_refused(x, fail))
			return;
		ptl_engine_done(x->e, &l, fail);
	}
	ptl_op_free(x->e, m->op);
}

/* A long get was matched: begin the reply. If that fails, tell the target that the get is
 * over. */
static void APART take_grant(struct run *x, const struct shm_msg *m)
{
	struct shm_msg spare, *over;
	struct ptl_delivery l;

	if (sender_known(x, m) &&
	    ptl_engine_reply(x->e, m->op, m->op_gen, m->length, false, &x->who, &l)) {
		if (l.mlength == m->length) {
			struct ptl_op *op = &x->e->v->op[m->op];

			ptl_engine_reply_keep(x->e, m->op, &l);
			__atomic_store_n(&op->delivery_gen, (uint32_t)(m->remote_offset >> 32),
					 __ATOMIC_RELAXED);
			__atomic_store_n(&op->delivery, (uint32_t)m->remote_offset + 1,
					 __ATOMIC_RELEASE);
			return;
		}
		ptl_engine_done(x->e, &l, PTL_NI_FAIL);
	}
	if (ptl_op_valid(x->e->v, m->op, m->op_gen) && x->e->v->op[m->op].peer == x->sender)
		ptl_op_free(x->e, m->op);
	over = answer_begin(x, SHM_FETCHED, 0, &spare);
	over->remote_offset = m->remote_offset;
	over->hdr_data = PTL_NI_OK;
	answer_end(x, over, &spare, NULL, NULL);
}

static void APART take_fetched(struct run *x, const struct shm_msg *m)
{
	uint32_t i = (uint32_t)m->remote_offset, gen = (uint32_t)(m->remote_offset >> 32);
	struct ptl_delivery *l = &x->e->v->delivery[i];
	ptl_ni_fail_t fail = (ptl_ni_fail_t)m->hdr_data;

	if (i >= x->e->v->ndeliveries || l->gen != gen || !(gen & 1) || l->peer != x->sender ||
	    l->md >= x->e->v->mds || (l->kind != PTL_REQ_PUT && l->kind != PTL_REQ_GET)) {
		ptl_count_drop(x->e, PTL_DROP_STALE, 0);
		return;
	}
	if (l->kind == PTL_REQ_PUT)
		end_put(x, l, fail);
	else
		ptl_engine_done(x->e, l, fail);
	ptl_delivery_free(x->e, i);
	if (!x->e->undo)
		shm_path_ended(x->s, x->p, l->mlength);
}

static void APART take_placed(struct run *x, const struct shm_msg *m)
{
	struct ptl_delivery l;

	if (!sender_known(x, m))
		return;
	if (!(x->e->v->op[m->op].flags & PTL_OP_GRANTED)) {
		ptl_count_drop(x->e, PTL_DROP_STALE, 0);
		return;
	}
	ptl_engine_reply_kept(x->e->v, m->op, &x->who, &l);
	ptl_engine_done(x->e, &l, (ptl_ni_fail_t)m->hdr_data);
	ptl_op_free(x->e, m->op);
}

/* `declined`: the inline handler has declined it (take_plain). */
static void run_message(struct run *x, const struct shm_msg *m, const char *payload, bool declined)
{
	struct ptl_request q;

	switch (m->kind) {
	case SHM_PUT:
	case SHM_PUT_LONG:
	case SHM_GET:
	case SHM_GETPUT:
	case SHM_ATOMIC:
	case SHM_FETCH_ATOMIC:
		/* Prefetch the answer's line: its sender polls it only after all other work. */
		if (m->op != PTL_NIL)
			base_prefetch_write(shm_ring_line(x->to, x->to->ch->tail));
		shm_msg_request(m, &q);
		q.peer = x->sender;
		q.initiator = x->who.id;
		q.uid = x->who.uid;
		q.jid = x->who.jid;
		if (m->kind == SHM_GET)
			run_get(x, &q, m->flags & SHM_LONG);
		else if (ptl_atomic_on_runs(q.atomic))
			take_runs(x, &q, payload, m->size);
		else if (m->kind == SHM_GETPUT || q.atomic)
			take_atomic(x, &q, payload);
		else {
			if (m->kind == SHM_PUT) {
				q.data = payload;
				q.declined = declined;
			}
			run_put(x, &q, m, payload);
		}
		break;
	case SHM_ANSWER:
		if (sender_known(x, m))
			ptl_engine_answer(x->e, m->op, m->op_gen, m->flags, m->length,
					  (ptl_ni_fail_t)m->hdr_data, &x->who);
		break;
	case SHM_REPLY:
		take_reply(x, m, payload);
		break;
	case SHM_GRANT:
		take_grant(x, m);
		break;
	case SHM_FETCHED:
		take_fetched(x, m);
		break;
	case SHM_PLACED:
		take_placed(x, m);
		break;
	}
}

/* How many messages to prefetch for, and the size of the array of those in progress, a power
 * of two. */
enum { BUCKETS_AHEAD = 24, ENTRIES_AHEAD = 16, OTHERS_AHEAD = 8, AHEAD = 32 };

/* Prefetches for messages behind the current one. Indexed by line, as many messages take one
 * line. */
struct ahead {
	uint64_t buckets, entries, others; /* the next line to prefetch for */
	struct ptl_ahead of[AHEAD];
};

static void prefetch_behind(const struct run *x, struct ahead *a, uint64_t head)
{
	const struct ptl_view *v = x->e->v;

	if (a->buckets < head)
		a->buckets = a->entries = a->others = head;
	for (; a->buckets < head + BUCKETS_AHEAD; a->buckets++) {
		const struct shm_msg *m = shm_ring_line(x->from, a->buckets);

		if (__atomic_load_n(&m->seq, __ATOMIC_ACQUIRE) != (uint32_t)a->buckets + 1)
			break;
		ptl_ahead_buckets(v, &a->of[a->buckets % AHEAD], m->pt_index, x->who.id,
				  m->match_bits);
	}
	for (; a->entries < head + ENTRIES_AHEAD && a->entries < a->buckets; a->entries++)
		ptl_ahead_entries(v, &a->of[a->entries % AHEAD]);
	for (; a->others < head + OTHERS_AHEAD && a->others < a->entries; a->others++)
		ptl_ahead_others(v, &a->of[a->others % AHEAD]);
}

/* Return the address of a payload that is not in its header's line, and prefetch it. */
static inline const char *payload_at(const struct shm_ring *r, uint32_t at, uint32_t size)
{
	const char *payload = r->lines + (size_t)shm_payload_line(at) * SHM_LINE;

	for (uint32_t i = 0; i < size && i < ASK_BYTES; i += SHM_LINE)
		__builtin_prefetch(payload + i);
	return payload;
}

/* Read a field once: another process can write to it. */
#define ONCE(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* Return whether the inline handler may have it: a put without an answer, the commonest
 * message. */
static inline bool may_go_inline(const struct shm_msg *m)
{
	return ONCE(m->kind) == SHM_PUT && ONCE(m->op) == PTL_NIL;
}

/* Return whether take_plain() can process it. */
static inline bool message_plain(const struct shm_msg *m)
{
	return may_go_inline(m) || ONCE(m->kind) == SHM_ANSWER;
}

/* The following return the lines of the processed message; 0: it is for run_ring(). */

/* Pass a put to the application's inline handler. *declined: the handler did not want it. */
static inline uint32_t handle_message_inline(struct ptl_engine *e, const struct shm_peer *p,
					     const struct shm_msg *m, uint32_t at, bool *declined)
{
	const struct shm_ring *r = &p->in;
	ptl_arrival_t put = { .initiator = p->id, .type = PTL_EVENT_PUT_END };
	uint32_t size = ONCE(m->size), lines = 1;
	enum ptl_inline result;

	if (ONCE(m->length) != size)
		return 0;
	put.data = m->data;
	if (size > SHM_INLINE) {
		lines = shm_lines(size, at);
		if (size > SHM_MOST || lines > r->count - at)
			return 0;
		put.data = payload_at(r, at, size);
	}
	put.match_bits = ONCE(m->match_bits);
	put.hdr_data = ONCE(m->hdr_data);
	put.length = size;
	result = ptl_engine_inline(e, ONCE(m->pt_index), ONCE(m->ac_index), p->uid, p->jid,
				   ONCE(m->remote_offset), &put);
	*declined = result == PTL_INLINE_DECLINED;
	return result == PTL_INLINE_HANDLED ? lines : 0;
}

/* Process a final response. */
static inline uint32_t take_answer(struct ptl_engine *e, const struct shm_peer *p,
				   const struct shm_msg *m)
{
	const uint32_t op = ONCE(m->op), gen = ONCE(m->op_gen);
	const struct ptl_answerer who = { p->id, p->uid, p->jid };
	const uint8_t what = ONCE(m->flags);
	const uint64_t length = ONCE(m->length);

	if (ONCE(m->size) || what > PTL_ANSWER_FAILED)
		return 0;
	if (names_op(e, p->index, op, gen, length))
		ptl_engine_answer(e, op, gen, what, length, (ptl_ni_fail_t)ONCE(m->hdr_data), &who);
	return 1;
}

/*
 * A call has got the `size` bytes that it waited for. The sender had consumed our messages up
 * to line `taken`. If that was all, and we sent one message since the last time, the sender
 * waits for an answer. The answer may be as long, so its lines are prefetched while the call
 * returns: the sender is still on its way to its wait. Once the sender polls, it takes the
 * header's line away again, so shm_leave prefetches that line once more. A sender that sends
 * before it has our last message, as in an exchange or a stream, polls before we write. There
 * a prefetch would be a loss.
 */
static inline void expect_answer(struct shm *s, struct shm_peer *p, uint32_t size, uint32_t taken)
{
	const uint64_t since = p->sent - p->sent_then;

	p->sent_then = p->sent;
	if (since == 1 && taken == (uint32_t)p->out.ch->tail && size <= SHM_ASK_MOST)
		s->answer = shm_ring_ask(&p->out, size);
}

/*
 * Process, in place, up to `most` of the messages that a waiting program mostly gets: puts
 * that the inline handler accepts, and final responses. Returns how many. *declined: the
 * inline handler has declined the one at the head.
 */
static unsigned int APART take_plain(struct shm *s, struct shm_peer *p, unsigned int most,
				     bool *declined)
{
	struct ptl_engine *e = &s->ni->engine;
	const struct shm_ring *r = &p->in;
	unsigned int n;

	for (n = 0; n < most && shm_ring_any(r); n++) {
		const uint64_t head = r->ch->head;
		const uint32_t at = (uint32_t)(head & (r->count - 1));
		const struct shm_msg *m = shm_ring_line(r, head);
		uint32_t lines = 0;

		if (may_go_inline(m))
			lines = handle_message_inline(e, p, m, at, declined);
		else if (ONCE(m->kind) == SHM_ANSWER)
			lines = take_answer(e, p, m);
		if (!lines)
			break;
		if (e->handled == PTL_HANDLED_ENOUGH)
			expect_answer(s, p, ONCE(m->size), ONCE(m->op_gen));
		r->ch->messages++;
		/* release: the lines were read before they become free */
		__atomic_store_n(&r->ch->head, head + lines, __ATOMIC_RELEASE);
		if (e->handled == PTL_HANDLED_ENOUGH)
			return n + 1;
	}
	return n;
}

/* Process up to `most` messages of any kind; if `plainly`, stop before one that take_plain()
 * can process. Returns how many. `declined`: see take_plain(). */
static unsigned int APART run_ring(struct run *x, unsigned int most, bool plainly, bool declined)
{
	struct shm_ring *r = x->from;
	struct ahead ahead;
	unsigned int n = 0;

	ahead.buckets = ahead.entries = ahead.others = 0;
	do {
		uint64_t head = r->ch->head;
		uint32_t at = (uint32_t)(head & (r->count - 1)), lines;
		const char *payload;
		struct shm_msg m;

		/* Read once, as another process can write to it. A whole line, so that no load
		 * straddles two of the stores. */
		memcpy(&m, shm_ring_line(r, head), sizeof(m));
		payload = m.size <= SHM_INLINE || m.kind == SHM_PAD ? (const char *)m.data
								    : payload_at(r, at, m.size);
		lines = shm_msg_lines(&m, at, r->count);
		if (!lines) { /* nothing behind it can be trusted to be a header */
			ptl_count_drop(x->e, PTL_DROP_BAD_MESSAGE, 0);
			lines = 1;
			m.kind = SHM_PAD;
		}
		if (x->e->undo && !shm_ring_room(x->to, x->s->eager > 4096 ? x->s->eager : 4096))
			break; /* our own ring is full of answers: process those first */
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): users keeps it mapped */
		if (x->e->v->r->hashed > PTL_MATCH_FAR)
			prefetch_behind(x, &ahead, head);
		if (m.kind != SHM_PAD) {
			run_message(x, &m, payload, declined);
			if (x->denied)
				break;
			declined = false;
			n++;
			r->ch->messages++;
		}
		/* release: the lines were read before they become free */
		ptl_set64(x->e, &r->ch->head, head + lines);
		ptl_commit(x->e);
	} while (n < most && shm_ring_any(r) &&
		 !(plainly && message_plain(shm_ring_line(r, r->ch->head))));
	return n;
}

/* Tell the producer of room. If it is inside the library, it finds the flag when it leaves,
 * after its unlock: pairs with shm_rings_pending(). */
static void announce_space(struct shm *s, struct shm_peer *p)
{
	atomic_store_explicit(&p->in.ch->want_space, 0, memory_order_seq_cst);
	if (p->index == SHM_SELF || p->state != SHM_LIVE)
		return;
	atomic_store_explicit(&p->view.r->space, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	if (!shm_attends(&p->view))
		shm_notify(s, p);
}

/* ---- the owner ------------------------------------------------------------------------------- */

/* Return whether the next message is there and take_plain() can process it. */
static inline bool plain_next(const struct shm_ring *r)
{
	return shm_ring_any(r) && message_plain(shm_ring_line(r, r->ch->head));
}

/* Process messages that are not plain, or that the inline handler declined, and those behind
 * them. */
static unsigned int APART take_rest(struct shm *s, struct shm_peer *p, unsigned int most,
				    bool plainly, bool declined)
{
	struct run x = {
		.s = s,
		.p = p,
		.e = &s->ni->engine,
		.from = &p->in,
		.to = &p->out,
		.who = { p->id, p->uid, p->jid },
		.sender = p->index,
	};
	unsigned int n = 0;

	do { /* each turn processes something: only a proxy can fail */
		n += run_ring(&x, most - n, plainly, declined);
		declined = false;
		if (plainly && n < most && plain_next(&p->in))
			n += take_plain(s, p, most - n, &declined);
	} while (plainly && n < most && shm_ring_any(&p->in));
	return n;
}

/* Process up to `most` messages of a peer; returns how many. */
static unsigned int take_from(struct shm *s, struct shm_peer *p, unsigned int most)
{
	struct ptl_engine *e = &s->ni->engine;
	/* With many entries to search, those are prefetched instead, and the matched entry
	 * calls the inline handler. */
	const bool plainly = e->inline_handler && e->v->r->hashed <= PTL_MATCH_FAR;
	bool declined = false;
	unsigned int n = plainly && plain_next(&p->in) ? take_plain(s, p, most, &declined) : 0;

	if (e->handled == PTL_HANDLED_ENOUGH)
		return n;
	return n < most && shm_ring_any(&p->in) ? n + take_rest(s, p, most - n, plainly, declined)
						: n;
}

bool shm_take_all(struct shm *s, unsigned int most)
{
	uint32_t n = atomic_load_explicit(&s->nlive, memory_order_relaxed);
	bool any = false,
	     announced = atomic_load_explicit(&s->ni->view.r->space, memory_order_relaxed);

	/* cleared before the rings that it announces are checked below */
	if (announced)
		atomic_store_explicit(&s->ni->view.r->space, 0, memory_order_seq_cst);
	for (uint32_t k = 0; k < n; k++) {
		struct shm_peer *p =
			s->peer[atomic_load_explicit(&s->live[k], memory_order_relaxed)];
		uint64_t sent = p->sent;

		if (shm_ring_any(&p->in) && !ptl_handlers_behind(s->ni)) {
			any |= take_from(s, p, most) > 0;
			if (p->sent != sent)
				shm_after_push(s, p);
			/* Leaving finds what else arrives. Deferred messages go out when their
			 * peer announces room. */
			if (s->ni->engine.handled == PTL_HANDLED_ENOUGH && !announced &&
			    !p->deferred)
				return true;
		}
		if (shm_ring_space_due(&p->in))
			announce_space(s, p);
		if (p->deferred)
			any |= shm_flush_deferred(s, p);
	}
	return any;
}

/* ---- proxy delivery -------------------------------------------------------------------------- */

#define GRACE 30 /* polls, some ten nanoseconds each */

/* An owner that polls is outside for a moment between two calls, and is faster than a proxy.
 * True: it has processed the message or is inside again. */
static bool came_back(const struct shm_peer *p)
{
	for (int i = 0; i < GRACE; i++) {
		if (shm_attends(&p->view) || !shm_ring_any(&p->out))
			return true;
		base_cpu_relax();
	}
	return false;
}

/* Wait a bounded time for another proxy to release the region. False: the owner holds it, or
 * the wait takes too long. */
static bool lock_peer(struct shm_peer *p)
{
	uint32_t token = PTL_LOCK_PEER(p->there), word;

	for (int i = 0; i < 2000; i++) {
		if (ptl_lock_try(p->view.r, token, &word))
			return true;
		if ((word & PTL_LOCK_TOKEN) == PTL_LOCK_OWNER)
			return false;
		if (word & PTL_LOCK_BIASED && !(word & PTL_LOCK_TOKEN)) {
			if (ptl_lock_revoke(p->view.r, word, token))
				return true;
			if (shm_attends(&p->view) || !shm_ring_any(&p->out))
				return false;
			i += 200; /* it was between two calls; the revocation took that long */
		}
		if (i % 100 == 99)
			sched_yield();
		else
			base_cpu_relax();
	}
	shm_helper_doorbell(
		p); /* its holder is descheduled or dead: the owner's thread will notice */
	return false;
}

void shm_deliver_for(struct shm *s, struct shm_peer *p)
{
	struct ptl_engine e = { .v = &p->view, .undo = &p->view.r->undo }; /* mapped: it was LIVE */
	struct run x = {
		.s = s,
		.p = p,
		.e = &e,
		.from = &p->out,
		.to = &p->in,
		.who = { s->ni->id, s->ni->uid, s->ni->jid },
		.sender = p->there,
		.memory = p->pid,
	};
	unsigned int n;

	if ((s->ni->spin_ns && came_back(p)) || !lock_peer(p))
		return;
	/* Its events have got handlers meanwhile, or we could not map all of the region and
	 * have given it up. */
	if (!shm_may_run(p) || !shm_peer_follow(s, p)) {
		ptl_unlock_plain(p->view.r);
		shm_helper_doorbell(p);
		return;
	}
	n = shm_ring_any(x.from) ? run_ring(&x, 64, false, false) : 0;
	p->view.r->stat.counts[PTL_COUNT_RUN_BY_PEER] += n;
	p->run_for += n;
	if (x.denied) {
		ptl_rollback(&p->view, p->view.r->shift[p->there]);
		p->refused = !x.dear;
	}
	ptl_unlock_plain(p->view.r);
	if (e.posted)
		ptl_ring_doorbell(p->view.r);
	if (x.denied)
		shm_helper_doorbell(p);
}
