/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Long messages. Once a message is matched, a delivery in the target's region counts its
 * chunks. Either process may claim the next chunks and move them alone by CMA. Or the source
 * copies chunks into free slots of the pipe, and the destination copies them out at the same
 * time. The choice depends, chunk by chunk, on which processes are inside the library:
 *
 *   both inside          pipe, or claims by both (when oversubscribed, by the destination):
 *                        whichever was faster lately (shm_path.c)
 *   one inside           that one claims and moves
 *   none                 the helper thread of either
 *
 * Where both claim, each side first claims chunks of its own half of a message; the source has
 * the front half. It helps with the other half when none is left of its own. So cache lines of
 * memory that is used again stay with one core. All claims of a pass move in one system call.
 *
 * A claim carries the delivery's generation, so a late claimer cannot get chunks of the next
 * message that uses the record. The process that completes the last chunk ends the message.
 */
#include "base/config.h"
#include "base/cpu.h"
#include "nal/shm/shm.h"

#define CLAIM_BYTES                                                                                \
	(512u * 1024) /* by one side alone: long enough to hide the cost of the system call */
#define HALVES_LEAST (64u * 1024) /* bytes of the shortest message with a half for each side */
#define PATIENCE_NS  20000        /* how long the destination leaves the pipe to a silent source */
#define YIELD_NS     100000       /* ... if the source may have to wait for the core */
#define BETWEEN_NS   1000         /* ... if it is outside: a process that polls is back by then */

/* A long message as one process sees it. */
struct job {
	struct shm *s;
	struct shm_peer *p;
	struct ptl_delivery *l;
	uint32_t index, gen;         /* of the delivery, in the target's region */
	struct shm_channel *decider; /* of the target's region: tells which path messages take */
	struct shm_ring *pipe;       /* the pipe for the data, in the destination's region */
	struct shm_span from, to;
	bool target; /* the delivery is ours */
	bool source; /* the data leaves from us */
	bool help;   /* claim from the other side's half: none is left of ours */
	uint32_t op; /* initiator: our operation */
	uint32_t chunks, size;
	uint32_t front; /* chunks of the source's half */
	uint64_t length;
};

void shm_long_chunks(struct ptl_delivery *l, const struct shm_ring *r)
{
	uint64_t size = l->mlength / 4;

	/* four chunks for short messages, so that both sides have work */
	size = size < 4096 ? 4096 : (size + 4095) & ~4095ull;
	if (size > r->chunk)
		size = r->chunk;
	l->chunk_size = (uint32_t)size;
	l->chunks = (uint32_t)((l->mlength + size - 1) / size);
	l->front = l->mlength < HALVES_LEAST ? l->chunks : l->chunks / 2;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void end_as_target(struct job *j, ptl_ni_fail_t fail)
{
	struct ptl_engine *e = &j->s->ni->engine;
	struct shm_msg spare, *m = shm_send_begin(j->p, 0, &spare);

	ptl_engine_done(e, j->l, fail);
	m->kind = j->l->kind == PTL_REQ_PUT ? SHM_ANSWER : SHM_PLACED;
	m->flags = (uint8_t)(m->kind == SHM_PLACED ? 0
			     : fail != PTL_NI_OK   ? PTL_ANSWER_FAILED
			     : j->l->ack           ? PTL_ANSWER_ACK
						   : PTL_ANSWER_QUIET);
	m->size = 0;
	m->length = j->l->mlength;
	m->hdr_data = fail;
	m->op = j->l->op;
	m->op_gen = j->l->op_gen;
	ptl_delivery_free(e, j->index);
	shm_path_ended(j->s, j->p, j->length);
	shm_send_end(j->s, j->p, m, &spare, NULL, NULL);
	shm_after_push(j->s, j->p);
}

static void end_as_initiator(struct job *j, ptl_ni_fail_t fail)
{
	struct ptl_engine *e = &j->s->ni->engine;
	struct ptl_answerer who = { j->p->id, j->p->uid, j->p->jid };
	struct shm_msg spare, *m = shm_send_begin(j->p, 0, &spare);
	struct ptl_delivery l;

	if (!j->source) { /* a get: our reply is complete; a put waits for the target's answer */
		ptl_engine_reply_kept(e->v, j->op, &who, &l);
		ptl_engine_done(e, &l, fail);
		ptl_op_free(e, j->op);
	}
	m->kind = SHM_FETCHED;
	m->size = 0;
	m->remote_offset = j->index | (uint64_t)j->gen << 32;
	m->hdr_data = fail;
	shm_send_end(j->s, j->p, m, &spare, NULL, NULL);
	shm_after_push(j->s, j->p);
}

/* Count `n` more chunks as complete, and end the message with the last one. */
static void placed(struct job *j, uint32_t n, ptl_ni_fail_t fail)
{
	if (fail != PTL_NI_OK)
		atomic_store_explicit(&j->l->failed, fail, memory_order_relaxed);
	/* acq_rel: the process that ends the message has seen every completed chunk */
	if (atomic_fetch_add_explicit(&j->l->done, n, memory_order_acq_rel) + n != j->chunks)
		return;
	fail = atomic_load_explicit(&j->l->failed, memory_order_relaxed);
	if (j->target)
		end_as_target(j, fail);
	else
		end_as_initiator(j, fail);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Return how many chunks of a half nobody has claimed. */
static uint32_t left_of(const struct job *j, int half, uint64_t word)
{
	uint32_t all = half ? j->chunks - j->front : j->front, out = (uint32_t)word;

	return word >> 32 == j->gen && out < all ? all - out : 0;
}

/* Claim up to `want` chunks of a half, from `*first` on. Returns their number; 0: none is
 * left. */
static uint32_t claim(struct job *j, int half, uint32_t want, uint32_t *first)
{
	uint64_t c = atomic_load_explicit(&j->l->claim[half], memory_order_relaxed);
	uint32_t n;

	do {
		n = left_of(j, half, c);
		if (!n)
			return 0;
		n = n < want ? n : want;
		*first = (uint32_t)c + (half ? j->front : 0);
	} while (!atomic_compare_exchange_weak_explicit(
		&j->l->claim[half], &c, c + n, memory_order_acq_rel, memory_order_relaxed));
	return n;
}

static uint32_t unclaimed(const struct job *j)
{
	uint32_t n = 0;

	for (int half = 0; half < 2; half++)
		n += left_of(j, half,
			     atomic_load_explicit(&j->l->claim[half], memory_order_relaxed));
	return n;
}

static uint64_t bytes_at(const struct job *j, uint32_t first, uint32_t n)
{
	uint64_t at = (uint64_t)first * j->size, len = (uint64_t)n * j->size;

	return len < j->length - at ? len : j->length - at;
}

static struct shm_span part(const struct shm_span *s, const struct job *j, uint32_t chunk)
{
	struct shm_span p = *s;

	p.offset += (uint64_t)chunk * j->size;
	return p;
}

/* Claims that move next, of several messages of a peer: one system call moves them all. */
struct load {
	unsigned int n;
	uint64_t bytes;
	struct job job[SHM_TOGETHER];
	uint32_t chunks[SHM_TOGETHER];
	struct shm_move move[SHM_TOGETHER];
};

/* Return whether this process receives data that may come by either path. */
static bool has_choice(const struct job *j)
{
	return !j->source && j->p->cma && j->p->index != SHM_SELF;
}

static bool is_full(const struct load *x)
{
	return x->n == SHM_TOGETHER || x->bytes >= CLAIM_BYTES;
}

static void move_load(struct shm *s, struct load *x)
{
	ptl_ni_fail_t fail[SHM_TOGETHER] = { PTL_NI_OK };
	uint64_t since;

	if (!x->n)
		return;
	since = shm_path_moving(s, x->job[0].length);
	if (!shm_copy_together(x->move, x->n))
		for (unsigned int i = 0; i < x->n; i++)
			fail[i] = shm_copy(&x->move[i].to, &x->move[i].from, x->move[i].len);
	if (has_choice(&x->job[0]))
		shm_path_moved(s, x->job[0].length, since, x->bytes, false);
	s->ni->view.r->stat.counts[PTL_COUNT_BYTES_CMA] += x->bytes;
	for (unsigned int i = 0; i < x->n; i++)
		placed(&x->job[i], x->chunks[i], fail[i]);
	x->n = 0;
	x->bytes = 0;
}

static bool claim_half(struct job *j, int half, uint32_t want, struct load *x)
{
	uint32_t first, n = is_full(x) ? 0 : claim(j, half, want, &first);

	if (!n)
		return false;
	x->job[x->n] = *j;
	x->chunks[x->n] = n;
	x->move[x->n] = (struct shm_move){ part(&j->to, j, first), part(&j->from, j, first),
					   bytes_at(j, first, n) };
	x->bytes += x->move[x->n++].len;
	return true;
}

/* Claim from both halves. */
static bool claim_any(struct job *j, uint32_t want, struct load *x)
{
	bool front = claim_half(j, 0, (want + 1) / 2, x);

	return claim_half(j, 1, (want + 1) / 2, x) || front;
}

static struct shm_slot *job_slot_at(const struct job *j, uint32_t k)
{
	return &j->pipe->ch->slot[k % SHM_SLOTS];
}

static char *slot_bytes(const struct job *j, uint32_t k)
{
	return j->pipe->pipe + (size_t)(k % SHM_SLOTS) * j->pipe->chunk;
}

/* Source: free a slot of a message that is over. Only an abandoned get
 * ends so; nobody drains its slots. */
static void forget_slot(const struct job *j, struct shm_slot *slot)
{
	const struct ptl_view *v = slot->at_source ? &j->s->ni->view : &j->p->view;
	const uint32_t i = __atomic_load_n(&slot->delivery, __ATOMIC_RELAXED);
	_Atomic uint32_t *busy = &j->pipe->ch->slots_busy;
	uint32_t was = 0;

	if (i >= v->ndeliveries ||
	    __atomic_load_n(&v->delivery[i].gen, __ATOMIC_ACQUIRE) == slot->gen ||
	    !atomic_compare_exchange_strong(busy, &was, 1))
		return;
	atomic_store_explicit(&slot->full, 0, memory_order_release);
	atomic_store_explicit(busy, 0, memory_order_release);
}

/* Source: return the number of consecutive free slots, and the first of them. */
static uint32_t free_slots(const struct job *j, uint32_t *first)
{
	uint32_t n = 0;

	for (uint32_t k = j->p->fill_at; k < j->p->fill_at + SHM_SLOTS; k++) {
		struct shm_slot *slot = job_slot_at(j, k);

		/* acquire: the slot's data was read before it is written again */
		if (!atomic_load_explicit(&slot->full, memory_order_acquire)) {
			if (!n++)
				*first = k;
			continue;
		}
		if (n)
			break;
		forget_slot(j, slot);
	}
	return n;
}

static void fill_slot(struct job *j, uint32_t k, uint32_t chunk)
{
	struct shm_slot *slot = job_slot_at(j, k);
	struct shm_span from = part(&j->from, j, chunk);
	ptl_ni_fail_t fail;

	fail = shm_copy_out(slot_bytes(j, k), &from, bytes_at(j, chunk, 1));
	if (fail != PTL_NI_OK)
		atomic_store_explicit(&j->l->failed, fail, memory_order_relaxed);
	__atomic_store_n(&slot->delivery, j->index, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->gen, j->gen, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->at_source, j->target, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->chunk, chunk, __ATOMIC_RELAXED);
	/* release: pairs with the acquire of the process that drains the slot */
	atomic_store_explicit(&slot->full, 1, memory_order_release);
}

/* Source: copy chunks into free slots. */
static bool fill_slots(struct job *j)
{
	uint32_t k = 0, room = free_slots(j, &k), first = 0, n = 0;

	if (room)
		n = claim(j, 0, room, &first);
	if (room && !n)
		n = claim(j, 1, room, &first);
	for (uint32_t i = 0; i < n; i++)
		fill_slot(j, k + i, first + i);
	if (n)
		j->p->fill_at = (k + n) % SHM_SLOTS;
	return n;
}

/* Return whether the slot holds a chunk of this message, and which. Reliable only while
 * slots_busy is held. Each field is read once: its memory is shared with another process. */
static bool of_message(const struct job *j, const struct shm_slot *slot, uint32_t *chunk)
{
	if (!atomic_load_explicit(&slot->full, memory_order_acquire) ||
	    __atomic_load_n(&slot->delivery, __ATOMIC_RELAXED) != j->index ||
	    __atomic_load_n(&slot->gen, __ATOMIC_RELAXED) != j->gen ||
	    __atomic_load_n(&slot->at_source, __ATOMIC_RELAXED) != (j->source == j->target))
		return false;
	*chunk = __atomic_load_n(&slot->chunk, __ATOMIC_RELAXED);
	return *chunk < j->chunks;
}

static ptl_ni_fail_t drain_slot(struct job *j, uint32_t k, uint32_t chunk)
{
	struct shm_slot *slot = job_slot_at(j, k);
	struct shm_span to = part(&j->to, j, chunk);
	ptl_ni_fail_t fail;

	fail = shm_copy_in(&to, slot_bytes(j, k), bytes_at(j, chunk, 1));
	j->s->ni->view.r->stat.counts[PTL_COUNT_BYTES_PIPE] += bytes_at(j, chunk, 1);
	/* release: pairs with the acquire of the source that fills it next */
	atomic_store_explicit(&slot->full, 0, memory_order_release);
	return fail;
}

/* Copy consecutive chunks of this message from the pipe to their destination. */
static bool drain_slots(struct job *j)
{
	_Atomic uint32_t *busy = &j->pipe->ch->slots_busy;
	const uint32_t end = j->p->drain_at + SHM_SLOTS;
	ptl_ni_fail_t fail = PTL_NI_OK, failed;
	uint32_t k = j->p->drain_at, n = 0, was = 0, chunk;
	uint64_t since, bytes = 0;

	while (k < end && !of_message(j, job_slot_at(j, k), &chunk))
		k++;
	if (k == end || !atomic_compare_exchange_strong(busy, &was, 1))
		return false;
	since = shm_path_moving(j->s, j->length);
	for (; k < end && of_message(j, job_slot_at(j, k), &chunk); k++, n++) {
		failed = drain_slot(j, k, chunk);
		bytes += bytes_at(j, chunk, 1);
		fail = failed != PTL_NI_OK ? failed : fail;
	}
	atomic_store_explicit(busy, 0, memory_order_release);
	j->p->drain_at = k % SHM_SLOTS;
	if (n && has_choice(j))
		shm_path_moved(j->s, j->length, since, bytes, true);
	if (n)
		placed(j, n, fail);
	return n;
}

/* ---- which side does what -------------------------------------------------------------------- */

/* Return whether data go to the peer and come from it at the same time. */
static bool both_ways(const struct job *j)
{
	const struct ptl_flow *f = &j->s->ni->view.r->flow[j->p->index];

	return (f->delivery[PTL_LIST_PUT].first || f->op[PTL_LIST_GET].first) &&
	       (f->op[PTL_LIST_PUT].first || f->delivery[PTL_LIST_GET].first);
}

static uint32_t claim_chunks(const struct job *j)
{
	return CLAIM_BYTES > j->size ? CLAIM_BYTES / j->size : 1;
}

/* Return whether more than one message is in flight, to and from the peer together. */
static bool several(const struct job *j)
{
	const struct ptl_flow *f = &j->s->ni->view.r->flow[j->p->index];
	int lists = 0;

	for (int kind = 0; kind < PTL_LISTS; kind++) {
		if (f->delivery[kind].first != f->delivery[kind].last ||
		    f->op[kind].first != f->op[kind].last)
			return true;
		lists += (f->delivery[kind].first != 0) + (f->op[kind].first != 0);
	}
	return lists > 1;
}

/* How many chunks to claim of a message that both sides move. With more messages in flight
 * each side should take a whole one. Otherwise claims shrink with what is left, so that both
 * sides end at the same time. */
static uint32_t share_of_job(const struct job *j)
{
	uint32_t most = claim_chunks(j), left;

	if (several(j))
		return most;
	left = unclaimed(j);
	return left < 8 ? 2 : left / 4 < most ? left / 4 : most;
}

/* The other side is working, too. If data go both ways, each side begins with what it
 * receives; else with its half. */
static bool claim_share(struct job *j, struct load *x)
{
	if (both_ways(j))
		return j->help == j->source && claim_any(j, share_of_job(j), x);
	return claim_half(j, j->help == j->source, share_of_job(j), x);
}

/* Return whether it has lasted for `ns`; *since is when it was first seen. */
static bool lasts(uint64_t *since, uint64_t ns)
{
	uint64_t now = base_now_ns();

	if (!*since)
		*since = now;
	return now - *since >= ns;
}

static bool use_pipe(const struct job *j)
{
	const struct shm_channel *decider;
	long how = base_config()->ptl_shm_long;

	if (!j->p->cma)
		return true;
	if (how != BASE_LONG_AUTO)
		return how == BASE_LONG_PIPE;
	/* when oversubscribed the destination decides, which for a get is not the target */
	decider = j->s->ni->spin_ns ? j->decider : j->pipe->ch;
	return !atomic_load_explicit(&decider->claims[shm_path_of(j->length)],
				     memory_order_relaxed);
}

/* The destination was inside a moment ago: poll for it again at once. */
static bool comes_back(const struct job *j)
{
	return use_pipe(j) && !lasts(&j->p->away_since, BETWEEN_NS);
}

/* Return how long, in ns, the destination leaves unclaimed chunks to the source, which will
 * fill a slot unless it never gets to it. */
static uint64_t patience(const struct job *j, bool inside)
{
	if (j->s->wait.final_poll || !use_pipe(j))
		return 0;
	return !inside ? BETWEEN_NS : j->s->ni->spin_ns ? PATIENCE_NS : YIELD_NS;
}

/* Notify the other side of a filled or emptied slot before it sleeps. A side without CMA can
 * do nothing else. A destination would sleep although it has data. A source with CMA moves
 * what is left before it sleeps. */
static void notify_other_side(struct job *j)
{
	if (j->p->cma && !j->source)
		return;
	/* Pairs with the fence in shm_wait.c, after which the sleeper polls the slots once
	 * more. */
	atomic_thread_fence(memory_order_seq_cst);
	if ((!j->p->cma && !shm_attends(&j->p->view)) ||
	    atomic_load_explicit(&j->p->view.r->stat.waiters, memory_order_relaxed))
		shm_notify(j->s, j->p);
}

static bool step_source(struct job *j, struct load *x)
{
	bool inside = shm_attends(&j->p->view);

	if (inside)
		j->p->away_since = 0;
	if (use_pipe(j) && (inside || !j->p->cma)) {
		if (!fill_slots(j))
			return false;
		notify_other_side(j);
		return true;
	}
	if (!j->p->cma)
		return false;
	if (!inside)
		return comes_back(j) || drain_slots(j) || claim_any(j, claim_chunks(j), x);
	/* the destination moves; help where that pays */
	return base_config()->ptl_shm_long != BASE_LONG_CMA && j->s->ni->spin_ns &&
	       claim_share(j, x);
}

static bool step_destination(struct job *j, struct load *x)
{
	struct shm_peer *p = j->p;
	uint64_t leave;
	bool inside, any;

	shm_path_advertise(j->s, p, j->length);
	if (drain_slots(j)) {
		p->pipe_since = 0;
		notify_other_side(j);
		return true;
	}
	if (!p->cma)
		return false;
	inside = shm_attends(&p->view);
	if (inside)
		p->away_since = 0;
	leave = patience(j, inside);
	if (leave && unclaimed(j) && !lasts(inside ? &p->pipe_since : &p->away_since, leave))
		return !inside; /* it is polled for again at once */
	/* when oversubscribed a source that is inside claims nothing */
	any = inside && j->s->ni->spin_ns ? claim_share(j, x) : claim_any(j, claim_chunks(j), x);
	if (any) /* not if what is left is in the other half, which comes next */
		p->pipe_since = 0;
	return any;
}

static bool step(struct job *j, struct load *x)
{
	if (j->p->index == SHM_SELF)
		return claim_any(j, claim_chunks(j), x);
	return j->source ? step_source(j, x) : step_destination(j, x);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Check what both sides must agree on: the delivery or the operation is in the other's memory. */
static bool job_sound(const struct job *j)
{
	return j->size && j->size <= j->pipe->chunk &&
	       j->chunks == (j->length + j->size - 1) / j->size && j->front <= j->chunks;
}

static void swap_spans(struct job *j)
{
	struct shm_span from = j->from;

	j->from = j->to;
	j->to = from;
}

static bool as_target(struct shm *s, uint32_t i, bool help, struct job *j)
{
	struct ptl_delivery *l = &s->ni->view.delivery[i];
	struct shm_peer *p = l->peer < SHM_CHANNELS ? s->peer[l->peer] : NULL;
	struct ptl_op *op;
	uint64_t offset;
	uint32_t md;

	if (!p || p->state != SHM_LIVE || !shm_peer_follow(s, p) || l->op >= p->view.ops)
		return false;
	/* The initiator's record is guarded by its lock, not by ours. It does not change until
	 * the initiator hears of the end, except for an
	 * abandoned get. */
	op = &p->view.op[l->op];
	md = __atomic_load_n(&op->md, __ATOMIC_RELAXED);
	offset = __atomic_load_n(&op->local_offset, __ATOMIC_RELAXED);
	if (l->kind == PTL_REQ_GET && !__atomic_load_n(&op->delivery, __ATOMIC_ACQUIRE))
		return false; /* the initiator has not processed the grant yet */
	atomic_thread_fence(memory_order_acquire);
	if (__atomic_load_n(&op->gen, __ATOMIC_ACQUIRE) != l->op_gen || md >= p->view.mds ||
	    l->md >= s->ni->view.mds)
		return false;
	*j = (struct job){
		.s = s,
		.p = p,
		.l = l,
		.index = i,
		.gen = l->gen,
		.decider = p->in.ch,
		.pipe = l->kind == PTL_REQ_GET ? &p->out : &p->in,
		.target = true,
		.source = l->kind == PTL_REQ_GET,
		.help = help,
		.chunks = l->chunks,
		.size = l->chunk_size,
		.front = l->front,
		.length = l->mlength,
	};
	j->from = (struct shm_span){ &s->ni->view, 0, l->md, l->offset };
	j->to = (struct shm_span){ &p->view, p->index == SHM_SELF ? 0 : p->pid, md, offset };
	if (l->kind == PTL_REQ_PUT)
		swap_spans(j);
	return job_sound(j);
}

static bool as_initiator(struct shm *s, uint32_t i, bool help, struct job *j)
{
	struct ptl_op *op = &s->ni->view.op[i];
	struct shm_peer *p = op->peer < SHM_CHANNELS ? s->peer[op->peer] : NULL;
	/* acquire: the delivery is complete when the target tells where it is */
	uint32_t at = __atomic_load_n(&op->delivery, __ATOMIC_ACQUIRE), md;
	struct ptl_delivery *l;
	uint64_t offset;

	if (!at || !p || p->state != SHM_LIVE || p->index == SHM_SELF || !shm_peer_follow(s, p) ||
	    at > p->view.ndeliveries)
		return false;
	l = &p->view.delivery[at - 1];
	md = __atomic_load_n(&l->md, __ATOMIC_RELAXED);
	offset = __atomic_load_n(&l->offset, __ATOMIC_RELAXED);
	*j = (struct job){
		.s = s,
		.p = p,
		.l = l,
		.index = at - 1,
		.gen = __atomic_load_n(&op->delivery_gen, __ATOMIC_RELAXED),
		.decider = p->out.ch,
		.pipe = op->kind == PTL_REQ_PUT ? &p->out : &p->in,
		.source = op->kind == PTL_REQ_PUT,
		.help = help,
		.op = i,
		.chunks = __atomic_load_n(&l->chunks, __ATOMIC_RELAXED),
		.size = __atomic_load_n(&l->chunk_size, __ATOMIC_RELAXED),
		.front = __atomic_load_n(&l->front, __ATOMIC_RELAXED),
		.length = __atomic_load_n(&l->mlength, __ATOMIC_RELAXED),
	};
	/* Check that it is ours and unchanged after everything was read: the hint may be stale
	 * and the record reused. */
	if (md >= p->view.mds || l->op != i || l->op_gen != op->gen || l->peer != p->there ||
	    j->length > op->length || (op->kind == PTL_REQ_GET && j->length != op->mlength) ||
	    !job_sound(j))
		return false;
	atomic_thread_fence(memory_order_acquire);
	if (__atomic_load_n(&l->gen, __ATOMIC_ACQUIRE) != j->gen)
		return false;
	j->from = (struct shm_span){ &s->ni->view, 0, op->md, op->local_offset };
	j->to = (struct shm_span){ &p->view, p->pid, md, offset };
	if (op->kind == PTL_REQ_GET)
		swap_spans(j);
	return true;
}

/* Messages polled of each list in a pass. The pipe holds chunks of the SHM_SLOTS oldest
 * messages at most. Others before them are complete and wait for a ring message, which is
 * processed between passes. */
#define MESSAGES_MOST (2 * SHM_SLOTS)

static bool step_deliveries(struct shm *s, uint32_t i, bool help)
{
	const struct ptl_view *v = &s->ni->view;
	bool any = false;
	struct load x;
	struct job j;

	x.n = 0;
	x.bytes = 0;
	for (int n = 0; i < v->ndeliveries && n < MESSAGES_MOST; n++) {
		uint32_t next = v->delivery[i].next;

		any |= as_target(s, i, help, &j) && step(&j, &x);
		if (is_full(&x))
			move_load(s, &x);
		i = next;
	}
	move_load(s, &x);
	return any;
}

static bool step_ops(struct shm *s, uint32_t i, bool help)
{
	const struct ptl_view *v = &s->ni->view;
	bool any = false;
	struct load x;
	struct job j;

	x.n = 0;
	x.bytes = 0;
	for (int n = 0; i < v->ops && n < MESSAGES_MOST; n++) {
		uint32_t next = v->op[i].next;

		any |= as_initiator(s, i, help, &j) && step(&j, &x);
		if (is_full(&x))
			move_load(s, &x);
		i = next;
	}
	move_load(s, &x);
	return any;
}

/* Poll the oldest few of each list. So a pass over ten thousand messages takes no longer than
 * one over ten, and a peer that stands still delays no other. */
static bool step_all(struct shm *s, bool alone, bool help)
{
	bool any = false;

	for (uint32_t k = 0; k < atomic_load_explicit(&s->nlive, memory_order_relaxed); k++) {
		uint32_t i = atomic_load_explicit(&s->live[k], memory_order_relaxed);
		const struct ptl_flow *f = &s->ni->view.r->flow[i];

		if (alone && i != SHM_SELF && (!s->peer[i]->cma || shm_attends(&s->peer[i]->view)))
			continue;
		for (int kind = 0; kind < PTL_LISTS; kind++) {
			any |= step_deliveries(s, f->delivery[kind].first - 1, help);
			any |= step_ops(s, f->op[kind].first - 1, help);
		}
	}
	return any;
}

bool shm_long_step(struct shm *s)
{
	return step_all(s, false, false) || step_all(s, false, true);
}

bool shm_long_alone(struct shm *s)
{
	return step_all(s, true, false);
}
