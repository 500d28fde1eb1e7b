/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Sending: how a put or get becomes a message, how a message without room is deferred, and how
 * its delivery is ensured. The target delivers it if it is inside the library; otherwise we
 * do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/cpu.h"
#include "nal/shm/shm.h"
#include "portals/engine/atomic.h"

#define DEFERRED_MOST                                                                              \
	(4u << 20)       /* bytes deferred for one peer before payloads stay where they are, ... */
#define KEPT_LEAST   512 /* ... if they are longer than this */
#define ROOM_SPIN_NS 5000
#define LINES_AHEAD  4 /* in a stream; twice as many were measured to bring nothing */

/* ---- sending --------------------------------------------------------------------------------- */

static inline void fill_payload_with(char *to, uint32_t size, const void *bytes)
{
	if (base_are_few(size))
		base_copy_few(to, bytes, size);
	else
		memcpy(to, bytes, size);
}

static inline void fill_payload(char *to, uint32_t size, const struct shm_span *payload,
				const void *bytes)
{
	if (bytes)
		fill_payload_with(to, size, bytes);
	else
		shm_copy_out(to, payload, size);
}

void shm_fill_payload(char *to, const struct shm_msg *m, const struct shm_span *payload,
		      const void *bytes)
{
	if (payload || bytes)
		fill_payload(to, m->size, payload, bytes);
}

/* Allocate memory for a message of `size` bytes that must wait for room; NULL: out of memory. */
static struct shm_deferred *hold_deferred(uint32_t size)
{
	return malloc(sizeof(struct shm_deferred) + size);
}

/* Keep a message until there is room. */
static void defer(struct shm *s, struct shm_peer *p, struct shm_deferred *d,
		  const struct shm_msg *m, const struct shm_span *payload, const void *bytes)
{
	d->next = NULL;
	d->m = *m;
	if (m->size)
		shm_fill_payload(d->payload, m, payload, bytes);
	*p->deferred_end = d;
	p->deferred_end = &d->next;
	p->deferred_bytes += sizeof(*d) + m->size;
	s->ni->view.r->stat.counts[PTL_COUNT_DEFERRED]++;
}

/* Return whether there is room behind *skip lines: see shm_ring_place_behind. */
static inline bool roomy(struct shm_peer *p, uint32_t size, uint32_t *skip)
{
	return p->state == SHM_LIVE && !p->deferred && shm_ring_room_behind(&p->out, size, skip);
}

struct shm_msg *shm_send_begin(struct shm_peer *p, uint32_t size, struct shm_msg *spare)
{
	uint32_t skip;

	return roomy(p, size, &skip) ? shm_ring_place_behind(&p->out, skip) : spare;
}

/* Its header is in the ring already. */
static void send_placed(struct shm_peer *p, struct shm_msg *m, const struct shm_span *payload,
			const void *bytes)
{
	p->sent++;
	if (m->size)
		fill_payload(shm_ring_payload(&p->out, m), m->size, payload, bytes);
	shm_ring_publish(&p->out, m);
}

/* Return whether nothing has arrived since we last sent something. */
static inline bool streams(const struct shm_peer *p)
{
	return p->in.ch->head == p->came;
}

/* A message with room is written in two steps, between which the caller fills in its header.
 * This step writes what is not in the header's line. See shm_ring_claim. */
static inline struct shm_msg *send_body(struct shm_peer *p, uint32_t size, uint32_t skip,
					uint32_t *seq, const struct shm_span *payload,
					const void *bytes)
{
	struct shm_ring *r = &p->out;
	struct shm_msg *m = shm_ring_place_behind(r, skip);

	p->sent++;
	if (size > BASE_COPY_SEGMENT && bytes && !streams(p))
		base_copy_over(shm_ring_payload_lines(r, size), bytes, size);
	else if (size > SHM_INLINE)
		fill_payload(shm_ring_payload_lines(r, size), size, payload, bytes);
	*seq = shm_ring_claim(r, shm_lines(size, shm_ring_at(r)));
	return m;
}

static inline void send_header(struct shm_msg *m, uint32_t size, uint32_t seq,
			       const struct shm_span *payload, const void *bytes)
{
	if (size && size <= SHM_INLINE)
		fill_payload((char *)m->data, size, payload, bytes);
	shm_ring_publish_as(m, seq);
}

/*
 * Consecutive sends without an arrival in between are a stream. Prefetch the line of a message
 * that follows soon: stores wait for their lines one after the other, and a line from a far
 * core takes longer than a message. A process that waits for an answer needs the line later,
 * if at all, and waits for something else. The many lines of payloads were measured to arrive
 * sooner without.
 */
static inline void ask_ahead(struct shm_peer *p, uint32_t size)
{
	const struct shm_ring *r = &p->out;
	uint64_t line = r->ch->tail + LINES_AHEAD;

	if (!streams(p))
		p->came = p->in.ch->head;
	else if (size <= SHM_INLINE && line - r->ch->head_seen < r->count)
		base_prefetch_write(shm_ring_line(r, line));
}

/* Send a message without a place in the ring; takes over the memory of *d. */
static void send_held(struct shm *s, struct shm_peer *p, struct shm_deferred *d,
		      const struct shm_msg *m, const struct shm_span *payload, const void *bytes)
{
	if (p->state == SHM_GONE) {
		free(d);
		return;
	}
	p->sent++;
	defer(s, p, d, m, payload, bytes);
	shm_flush_deferred(s, p);
}

/* Everything sent here answers something that arrived. If out of memory the peer is not told,
 * and its operation ends when it or we end. */
void shm_send_end(struct shm *s, struct shm_peer *p, struct shm_msg *m, const struct shm_msg *spare,
		  const struct shm_span *payload, const void *bytes)
{
	struct shm_deferred *d;

	if (p->state == SHM_GONE)
		return;
	if (m != spare) {
		send_placed(p, m, payload, bytes);
		return;
	}
	d = hold_deferred(m->size);
	if (d)
		send_held(s, p, d, m, payload, bytes);
}

static bool push_deferred(struct shm_peer *p)
{
	bool any = false;

	while (p->deferred && shm_ring_room(&p->out, p->deferred->m.size)) {
		struct shm_deferred *d = p->deferred;
		struct shm_msg *m = shm_ring_place(&p->out, d->m.size);

		/* all but seq, which makes it valid */
		memcpy((char *)m + sizeof(m->seq), (const char *)&d->m + sizeof(m->seq),
		       sizeof(*m) - sizeof(m->seq));
		if (m->size)
			fill_payload_with(shm_ring_payload(&p->out, m), m->size, d->payload);
		shm_ring_publish(&p->out, m);
		p->deferred = d->next;
		if (!p->deferred)
			p->deferred_end = &p->deferred;
		p->deferred_bytes -= sizeof(*d) + d->m.size;
		free(d);
		any = true;
	}
	return any;
}

bool shm_flush_deferred(struct shm *s, struct shm_peer *p)
{
	bool any;

	if (p->state != SHM_LIVE || !p->deferred)
		return false;
	any = push_deferred(p);
	if (p->deferred) {
		/* seq_cst: either the consumer sees the flag after it has advanced its head,
		 * or we see the head. Pairs with shm_rings_pending() after the unlock. */
		atomic_store(&p->out.ch->want_space, 1);
		atomic_thread_fence(memory_order_seq_cst);
		any |= push_deferred(p);
	}
	if (any)
		shm_after_push(s, p);
	return any;
}

/* ---- ensuring delivery ----------------------------------------------------------------------- */

void shm_notify(struct shm *s, struct shm_peer *p)
{
	if (atomic_load_explicit(&p->view.r->stat.waiters, memory_order_seq_cst)) {
		ptl_ring_doorbell(p->view.r);
		return;
	}
	if (((struct shm_area *)p->view.nal)->calls_only)
		return;
	s->ni->view.r->stat.counts[PTL_COUNT_DOORBELLS]++;
	shm_helper_doorbell(p);
}

/* Ensure that somebody delivers what we pushed. */
static void want_run(struct shm *s, struct shm_peer *p)
{
	/* A peer that sleeps in the library must wake up for the event anyway, and delivers
	 * cheaper than we can. */
	if (atomic_load_explicit(&p->view.r->stat.waiters, memory_order_seq_cst)) {
		ptl_ring_doorbell(p->view.r);
		return;
	}
	if (!shm_may_run(p)) {
		shm_notify(s, p);
		return;
	}
	p->run_wanted = true;
	p->next_run = s->run;
	s->run = p;
}

void shm_after_push(struct shm *s, struct shm_peer *p)
{
	struct ptl_region *r = p->view.r;

	if (p->index == SHM_SELF)
		shm_peer_poll(s, p); /* leaving processes it */
	if (p->index == SHM_SELF || p->run_wanted || p->state != SHM_LIVE)
		return;
	if (!(atomic_load_explicit(&r->lock, memory_order_relaxed) & PTL_LOCK_BIASED))
		/* Between our push and our check of its lock. Pairs with the exchange in
		 * ptl_unlock_plain, before the owner's last poll of its rings. */
		atomic_thread_fence(memory_order_seq_cst);
	if (!ptl_lock_attended(r)) {
		want_run(s, p);
	} else if (!p->unsure &&
		   atomic_load_explicit(&r->lock, memory_order_relaxed) & PTL_LOCK_BIASED) {
		/* it may have been about to leave: see portals/engine/lock.h */
		p->unsure = true;
		p->next_unsure = s->unsure;
		s->unsure = p;
	}
}

/* Call after a push that the target needs only in its own calls. */
static void wake_sleeping_target(struct shm *s, struct shm_peer *p)
{
	struct ptl_region *r = p->view.r;

	if (p->index == SHM_SELF)
		shm_peer_poll(s, p);
	if (p->index == SHM_SELF || p->state != SHM_LIVE)
		return;
	/* a sleeper has given up the bias before, and polled once more */
	if (atomic_load_explicit(&r->lock, memory_order_relaxed) & PTL_LOCK_BIASED)
		return;
	/* Between our push and our check for sleepers. Pairs with sleep_until() in shm_wait.c,
	 * which counts itself and then polls. */
	atomic_thread_fence(memory_order_seq_cst);
	ptl_ring_doorbell(r);
}

void shm_settle_unsure(struct shm *s)
{
	struct shm_peer *p;

	while ((p = s->unsure)) {
		s->unsure = p->next_unsure;
		p->unsure = false;
		if (!p->run_wanted && shm_ring_any(&p->out) && !shm_attends(&p->view))
			want_run(s, p);
	}
}

/* ---- starting -------------------------------------------------------------------------------- */

bool shm_knows(struct ptl_ni *ni, ptl_process_id_t target)
{
	return shm_peer_find(shm_of(ni), target);
}

bool shm_connect(struct ptl_ni *ni, ptl_process_id_t target)
{
	struct shm *s = shm_of(ni);
	struct shm_peer *p;

	if (target.nid != ni->id.nid)
		return false;
	p = shm_peer_add(s, target);
	if (p)
		shm_connect_now(s, p);
	else
		ptl_peer_failed(ni, ni->nal, target, PTL_NI_UNREACHABLE,
				"no shared memory is left for messages from another process; raise "
				"`ulimit -v` and `ulimit -f`");
	return shm_peer_find(s, target);
}

const char *shm_failed_over(struct ptl_ni *ni, ptl_process_id_t id)
{
	const char *why = ptl_peer_failed_why(ni, ni->nal, id);

	if (id.nid != ni->id.nid)
		return "it is on another node";
	return why ? why : "it answered to no call on this node";
}

/* Wait a bounded time for the target to make room for a message. */
static void __attribute__((noinline)) wait_room(struct shm *s, struct shm_peer *p, uint32_t size)
{
	uint64_t end;

	if (p->state != SHM_LIVE || p->deferred || !s->ni->spin_ns)
		return;
	end = base_now_ns() + ROOM_SPIN_NS;
	/* whether it is inside now or between two calls */
	while (!shm_ring_room(&p->out, size) && base_now_ns() < end)
		base_cpu_relax();
}

/* Return whether there is room now or within a short wait. */
static inline bool room_soon(struct shm *s, struct shm_peer *p, uint32_t size, uint32_t *skip)
{
	if (roomy(p, size, skip))
		return true;
	wait_room(s, p, size);
	return roomy(p, size, skip);
}

/* Send a put whose bytes are copied now: into the ring or, if few are deferred, into memory
 * until there is room. */
static int inject_into_ring(struct ptl_ni *ni, struct shm *s, struct shm_peer *p,
			    const struct ptl_start *put)
{
	uint64_t *sr = ni->view.r->stat.sr;
	uint32_t size = (uint32_t)put->length;
	struct shm_deferred *held = NULL;
	struct shm_msg spare, *m = &spare;
	uint32_t seq = 0, skip = 0;
	bool placed, lazy;

	if (p->state == SHM_GONE)
		return PTL_PROCESS_INVALID;
	if (put->length > s->eager || put->length > p->eager)
		return PTL_NO_SPACE;
	placed = room_soon(s, p, size, &skip);
	if (size && p->deferred_bytes > DEFERRED_MOST)
		return PTL_NO_SPACE;
	if (!placed && !(held = hold_deferred(size)))
		return PTL_NO_SPACE;
	lazy = put->lazy && placed && !shm_ring_filling(&p->out);
	if (placed)
		m = send_body(p, size, skip, &seq, NULL, put->inject);
	m->kind = SHM_PUT;
	m->flags = lazy ? SHM_LAZY : 0;
	m->size = (uint16_t)size;
	m->match_bits = put->match_bits;
	m->remote_offset = put->remote_offset;
	m->length = size;
	m->hdr_data = put->hdr_data;
	m->op = PTL_NIL;
	m->op_gen = (uint32_t)p->in.ch->head;
	m->pt_index = ptl_clip_index(put->pt_index);
	m->ac_index = ptl_clip_index(put->ac_index);
	if (placed) {
		send_header(m, size, seq, NULL, put->inject);
		ask_ahead(p, size);
	} else {
		send_held(s, p, held, m, NULL, put->inject);
	}
	if (lazy)
		wake_sleeping_target(s, p);
	else
		shm_after_push(s, p);
	sr[PTL_SR_SEND_COUNT]++;
	sr[PTL_SR_SEND_LENGTH] += size;
	return PTL_OK;
}

/* Many shorter messages take longer than a long one. */
#define SEGMENT_LEAST 4096

uint64_t shm_segment(struct ptl_ni *ni, ptl_process_id_t target)
{
	struct shm *s = shm_of(ni);
	struct shm_peer *p = shm_peer_find(s, target);
	uint64_t most;

	/* a chosen path for long messages is kept to */
	if (!p || base_config()->ptl_shm_long != BASE_LONG_AUTO || p->index == SHM_SELF ||
	    p->state != SHM_LIVE || !ni->spin_ns || !shm_attends(&p->view))
		return 0;
	most = s->eager < p->eager ? s->eager : p->eager;
	return most < SEGMENT_LEAST ? 0 : most;
}

static int __attribute__((noinline))
start_send(struct ptl_ni *ni, struct shm *shm, struct shm_peer *p, const struct ptl_start *s)
{
	static const uint8_t kinds[] = {
		[PTL_REQ_PUT] = SHM_PUT,
		[PTL_REQ_GET] = SHM_GET,
		[PTL_REQ_GETPUT] = SHM_GETPUT,
	};
	struct shm_span payload = { &ni->view, 0, s->md, s->offset };
	struct shm_deferred *held = NULL;
	struct shm_msg spare, *m = &spare;
	uint32_t op = PTL_NIL, op_gen = 0, op_flags, size, seq = 0, skip = 0;
	bool is_long, carries, placed;

	is_long = s->length > shm->eager && s->kind != PTL_REQ_GETPUT && !s->atomic;
	if (s->kind == PTL_REQ_PUT && !s->atomic &&
	    (s->length > p->eager || (s->length > KEPT_LEAST && p->deferred_bytes > DEFERRED_MOST)))
		is_long = true; /* more than its ring should take, or than we should defer */
	carries = s->kind != PTL_REQ_GET && !(is_long && s->kind == PTL_REQ_PUT);
	size = !carries ? 0 : s->atomic ? s->operand : (uint32_t)s->length;
	placed = room_soon(shm, p, size, &skip);
	if (!placed && !(held = hold_deferred(size)))
		return PTL_NO_SPACE;
	if (s->kind != PTL_REQ_PUT || s->ack || is_long) {
		op = ptl_op_next(&ni->view, &op_gen);
		if (op == PTL_NIL) {
			free(held);
			return PTL_NO_SPACE;
		}
	}
	op_flags = (s->ack ? PTL_OP_ACK : 0) | (is_long ? PTL_OP_LONG : 0);
	/* The target reads a long operation's record. Other records are first needed by the
	 * answer, which we process. */
	if (is_long)
		ptl_op_alloc(&ni->engine, s, p->index, op_flags);
	if (placed)
		m = send_body(p, size, skip, &seq, &payload, NULL);
	m->kind = carries || s->kind == PTL_REQ_GET ? kinds[s->kind] : SHM_PUT_LONG;
	m->flags = (s->ack ? SHM_WANT_ACK : 0) | (is_long ? SHM_LONG : 0);
	m->size = (uint16_t)size;
	m->match_bits = s->match_bits;
	m->remote_offset = s->remote_offset;
	m->length = s->length;
	if (s->atomic) {
		m->kind = s->kind == PTL_REQ_PUT ? SHM_ATOMIC : SHM_FETCH_ATOMIC;
		m->length |= SHM_ATOMIC_OP(s->atomic, s->element);
	}
	m->hdr_data = s->hdr_data;
	m->op = op;
	m->op_gen = op_gen;
	m->pt_index = ptl_clip_index(s->pt_index);
	m->ac_index = ptl_clip_index(s->ac_index);
	if (placed) {
		send_header(m, size, seq, &payload, NULL);
		ask_ahead(p, size);
	} else {
		send_held(shm, p, held, m, &payload, NULL);
	}
	if (op != PTL_NIL && !is_long)
		ptl_op_alloc(&ni->engine, s, p->index, op_flags);
	shm_after_push(shm, p);
	ptl_engine_send(&ni->engine, s, s->kind == PTL_REQ_PUT && is_long, PTL_NI_OK, op);
	return PTL_OK;
}

int shm_start(struct ptl_ni *ni, const struct ptl_start *s)
{
	struct shm *shm = shm_of(ni);
	struct shm_peer *p = shm_peer_find(shm, s->target);

	if (!p)
		return NAL_ELSEWHERE;
	return s->inject ? inject_into_ring(ni, shm, p, s) : start_send(ni, shm, p, s);
}
