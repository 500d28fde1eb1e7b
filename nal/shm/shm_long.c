/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Long messages. Once matched, a landing in the target's region counts chunks: either process
 * may claim the next ones and move them alone by cross-memory attach, or the source copies
 * chunks into free slots of the pipe, and the destination copies them out at the same time.
 * Which it is depends on who is inside the library at that moment, chunk by chunk:
 *
 *   both inside          pipe, or claims by both (where processors are short by the
 *                        destination): what was faster lately (shm_path.c); instead of claims,
 *                        both ways at once, a pipe of the kernel (shm_splice.c)
 *   one inside           that one claims and moves
 *   none                 the helper thread of either
 *
 * Where both claim, each takes of its own half of a message first, the source of the front one,
 * and helps with the other when of its own nothing is left: lines of memory that is used again
 * stay with one core. What a pass claims of several messages moves in one call of the kernel.
 *
 * A claim carries the landing's generation, so a late claimer cannot take chunks of the next
 * message that uses the record. Whoever puts the last chunk in place ends the message.
 */
#include <errno.h>

#include "base/config.h"
#include "base/cpu.h"
#include "nal/shm/shm.h"

#define CLAIM_BYTES                                                                                \
	(512u * 1024) /* by one side alone: long enough that the system call does not show */
#define HALVES_LEAST (64u * 1024) /* bytes of a message of which each side has a half of its own */
#define PATIENCE_NS  20000        /* how long the destination leaves a silent source the pipe */
#define TURN_NS      100000       /* ... where it may have to wait for its turn */
#define SPLICE_NS    50000 /* ... of the kernel: it reads as long as that, and claims take longer */
#define AWAY_NS      5000  /* ... if it is outside: longer than from one call to the next */
#define BETWEEN_NS   1000  /* ... by our own pipe: who polls is back by then */
#define EXCHANGES    8     /* a lull of so many messages is the end of it */

/* A long message from where we stand. */
struct job {
	struct shm *s;
	struct shm_peer *p;
	struct ptl_delivery *l;
	uint32_t index, gen;         /* of the landing, in the target's region */
	struct shm_channel *decider; /* of the target's region: says which way messages go */
	struct shm_ring *pipe;       /* the way of the data, in the destination's region */
	struct shm_span from, to;
	bool target; /* the landing is ours */
	bool source; /* the data leaves from us */
	bool help;   /* claim of the other side's half: of our own there is nothing left */
	uint32_t op; /* initiator: our operation */
	uint32_t chunks, size;
	uint32_t front; /* chunks of the source's half */
	uint64_t length;
};

void shm_long_chunks(struct ptl_delivery *l, const struct shm_ring *r)
{
	uint64_t size = l->mlength / 4;

	/* short ones in four pieces, so that both sides have something to do */
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

/* `n` more chunks are in place. */
static void placed(struct job *j, uint32_t n, ptl_ni_fail_t fail)
{
	if (fail != PTL_NI_OK)
		atomic_store_explicit(&j->l->failed, fail, memory_order_relaxed);
	/* acq_rel: whoever ends the message has seen every chunk placed */
	if (atomic_fetch_add_explicit(&j->l->done, n, memory_order_acq_rel) + n != j->chunks)
		return;
	fail = atomic_load_explicit(&j->l->failed, memory_order_relaxed);
	if (j->target)
		end_as_target(j, fail);
	else
		end_as_initiator(j, fail);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Of a half, how many chunks nobody has claimed. */
static uint32_t left_of(const struct job *j, int half, uint64_t word)
{
	uint32_t all = half ? j->chunks - j->front : j->front, out = (uint32_t)word;

	return word >> 32 == j->gen && out < all ? all - out : 0;
}

/* Up to `want` chunks of a half from `*first` on are ours; 0: none left. */
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

/* What we have claimed and move next, of several messages of a peer: each call of the kernel has
 * a price. */
struct load {
	unsigned int n;
	uint64_t bytes;
	struct job job[SHM_TOGETHER];
	uint32_t chunks[SHM_TOGETHER];
	struct shm_move move[SHM_TOGETHER];
};

/* Takes data in that may come either way. */
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

/* Of both halves. */
static bool claim_any(struct job *j, uint32_t want, struct load *x)
{
	bool front = claim_half(j, 0, (want + 1) / 2, x);

	return claim_half(j, 1, (want + 1) / 2, x) || front;
}

/* Of this message are the chunks that are on their way from the source like this? */
static bool is_of(const struct job *j, uint32_t delivery, uint32_t gen, uint32_t at_source)
{
	return delivery == j->index && gen == j->gen && at_source == (j->source == j->target);
}

/* Source: is what is on its way of a message that is over, which only a get that was given up
 * is? */
static bool is_over(const struct job *j, uint32_t delivery, uint32_t gen, uint32_t at_source)
{
	const struct ptl_view *v = at_source ? &j->s->ni->view : &j->p->view;

	return delivery < v->nlandings &&
	       __atomic_load_n(&v->land[delivery].gen, __ATOMIC_ACQUIRE) != gen;
}

static struct shm_slot *slot_at(const struct job *j, uint32_t k)
{
	return &j->pipe->ch->slot[k % SHM_SLOTS];
}

static char *slot_bytes(const struct job *j, uint32_t k)
{
	return j->pipe->pipe + (size_t)(k % SHM_SLOTS) * j->pipe->chunk;
}

/* Source: frees a slot that nobody will take from any more. */
static void forget_slot(const struct job *j, struct shm_slot *slot)
{
	_Atomic uint32_t *busy = &j->pipe->ch->slots_busy;
	uint32_t was = 0;

	if (!is_over(j, __atomic_load_n(&slot->delivery, __ATOMIC_RELAXED), slot->gen,
		     slot->at_source) ||
	    !atomic_compare_exchange_strong(busy, &was, 1))
		return;
	atomic_store_explicit(&slot->full, 0, memory_order_release);
	atomic_store_explicit(busy, 0, memory_order_release);
}

/* Source: how many slots are free, one after the other, and which is the first? */
static uint32_t free_slots(const struct job *j, uint32_t *first)
{
	uint32_t n = 0;

	for (uint32_t k = j->p->fill_at; k < j->p->fill_at + SHM_SLOTS; k++) {
		struct shm_slot *slot = slot_at(j, k);

		/* acquire: what was in it has been read before it is written again */
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
	struct shm_slot *slot = slot_at(j, k);
	struct shm_span from = part(&j->from, j, chunk);
	ptl_ni_fail_t fail;

	fail = shm_copy_out(slot_bytes(j, k), &from, bytes_at(j, chunk, 1));
	if (fail != PTL_NI_OK)
		atomic_store_explicit(&j->l->failed, fail, memory_order_relaxed);
	__atomic_store_n(&slot->delivery, j->index, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->gen, j->gen, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->at_source, j->target, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->chunk, chunk, __ATOMIC_RELAXED);
	/* release: partner of the acquire of whoever takes it out */
	atomic_store_explicit(&slot->full, 1, memory_order_release);
}

/* Source: chunks into free slots. */
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

/* Which chunk of this message is in the slot? Sure under slots_busy. Read once: its memory is
 * another's, too. */
static bool of_message(const struct job *j, const struct shm_slot *slot, uint32_t *chunk)
{
	if (!atomic_load_explicit(&slot->full, memory_order_acquire) ||
	    !is_of(j, __atomic_load_n(&slot->delivery, __ATOMIC_RELAXED),
		   __atomic_load_n(&slot->gen, __ATOMIC_RELAXED),
		   __atomic_load_n(&slot->at_source, __ATOMIC_RELAXED)))
		return false;
	*chunk = __atomic_load_n(&slot->chunk, __ATOMIC_RELAXED);
	return *chunk < j->chunks;
}

static ptl_ni_fail_t drain_slot(struct job *j, uint32_t k, uint32_t chunk)
{
	struct shm_slot *slot = slot_at(j, k);
	struct shm_span to = part(&j->to, j, chunk);
	ptl_ni_fail_t fail;

	fail = shm_copy_in(&to, slot_bytes(j, k), bytes_at(j, chunk, 1));
	j->s->ni->view.r->stat.counts[PTL_COUNT_BYTES_PIPE] += bytes_at(j, chunk, 1);
	/* release: partner of the acquire of who fills it next */
	atomic_store_explicit(&slot->full, 0, memory_order_release);
	return fail;
}

/* Chunks of this message that are in the pipe, one after the other, to where they belong. */
static bool drain_slots(struct job *j)
{
	_Atomic uint32_t *busy = &j->pipe->ch->slots_busy;
	const uint32_t end = j->p->drain_at + SHM_SLOTS;
	ptl_ni_fail_t fail = PTL_NI_OK, failed;
	uint32_t k = j->p->drain_at, n = 0, was = 0, chunk;
	uint64_t since, bytes = 0;

	while (k < end && !of_message(j, slot_at(j, k), &chunk))
		k++;
	if (k == end || !atomic_compare_exchange_strong(busy, &was, 1))
		return false;
	since = shm_path_moving(j->s, j->length);
	for (; k < end && of_message(j, slot_at(j, k), &chunk); k++, n++) {
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

/* ---- a pipe of the kernel -------------------------------------------------------------------- */

/* What is in it, read once: another process may write to it. */
struct content {
	uint32_t first, chunks;
	uint64_t len;
};

/* Is what goes through it of this message? Then *x says what. */
static bool spliced_of(const struct job *j, const struct shm_spliced *from, struct content *x)
{
	/* acquire: partner of the release in fill_spliced */
	if (!atomic_load_explicit(&from->full, memory_order_acquire) ||
	    !is_of(j, from->delivery, from->gen, from->at_source))
		return false;
	x->first = __atomic_load_n(&from->first, __ATOMIC_RELAXED);
	x->chunks = __atomic_load_n(&from->chunks, __ATOMIC_RELAXED);
	x->len = __atomic_load_n(&from->bytes, __ATOMIC_RELAXED);
	return x->first < j->chunks && x->chunks && x->chunks <= j->chunks - x->first &&
	       x->len <= bytes_at(j, x->first, x->chunks);
}

/* Source: empties the pipe of what nobody will take any more. */
static void forget_spliced(const struct job *j)
{
	struct shm_spliced *x = &j->p->out.ch->spliced;
	uint32_t was = 0;

	if (!atomic_load_explicit(&x->full, memory_order_acquire) ||
	    !is_over(j, __atomic_load_n(&x->delivery, __ATOMIC_RELAXED), x->gen, x->at_source) ||
	    !atomic_compare_exchange_strong(&x->busy, &was, 1))
		return;
	if (atomic_load_explicit(&x->full, memory_order_acquire)) {
		shm_splice_empty(j->p->give_fd);
		atomic_store_explicit(&x->full, 0, memory_order_release);
	}
	atomic_store_explicit(&x->busy, 0, memory_order_release);
}

/* Data go to the peer and come from it. */
static bool both_ways(const struct job *j)
{
	const struct ptl_flow *f = &j->s->ni->view.r->flow[j->p->index];

	return (f->land[PTL_LIST_PUT].first || f->op[PTL_LIST_GET].first) &&
	       (f->op[PTL_LIST_PUT].first || f->land[PTL_LIST_GET].first);
}

/* Source: as many chunks as the pipe takes. What of them does not fit, and that is little, we
 * copy ourselves. */
static bool fill_spliced(struct job *j)
{
	struct shm_spliced *x = &j->p->out.ch->spliced;
	const uint32_t most = j->size < SHM_SPLICE_BYTES ? SHM_SPLICE_BYTES / j->size : 1;
	struct shm_span from, to;
	ptl_ni_fail_t fail;
	uint32_t first, n;
	ssize_t in;

	/* acquire: partner of the release in drain_spliced */
	if (atomic_load_explicit(&x->full, memory_order_acquire)) {
		forget_spliced(j);
		return false;
	}
	n = claim(j, 0, most, &first);
	n = n ? n : claim(j, 1, most, &first);
	if (!n)
		return false;
	from = part(&j->from, j, first);
	to = part(&j->to, j, first);
	in = shm_copy_to_pipe(j->p->give_fd, &from, bytes_at(j, first, n));
	if (in <= 0) {
		if (in < 0 && errno != EAGAIN && errno != EFAULT)
			j->p->no_give = true; /* not allowed here */
		placed(j, n, shm_copy(&to, &from, bytes_at(j, first, n)));
		return true;
	}
	from.offset += (uint64_t)in;
	to.offset += (uint64_t)in;
	fail = shm_copy(&to, &from, bytes_at(j, first, n) - (uint64_t)in);
	if (fail != PTL_NI_OK)
		atomic_store_explicit(&j->l->failed, fail, memory_order_relaxed);
	if (j->p->exchanges && !both_ways(j))
		j->p->exchanges--;
	x->delivery = j->index;
	x->gen = j->gen;
	x->at_source = j->target;
	x->first = first;
	x->chunks = n;
	x->bytes = (uint32_t)in;
	/* release: partner of the acquire in spliced_of */
	atomic_store_explicit(&x->full, 1, memory_order_release);
	return true;
}

/* What is in the pipe, to where it belongs: by the destination, or by the source in its stead. */
static ptl_ni_fail_t take_spliced(const struct job *j, const struct content *x)
{
	struct shm_span from = part(&j->from, j, x->first), to = part(&j->to, j, x->first);

	j->s->ni->view.r->stat.counts[j->source ? PTL_COUNT_BYTES_CMA : PTL_COUNT_BYTES_SPLICED] +=
		x->len;
	return j->source ? shm_copy(&to, &from, x->len)
			 : shm_copy_from_pipe(&to, j->p->take_fd, x->len);
}

static bool drain_spliced(struct job *j)
{
	struct shm_spliced *pipe = j->source ? &j->p->out.ch->spliced : &j->p->in.ch->spliced;
	const int fd = j->source ? j->p->give_fd : j->p->take_fd;
	ptl_ni_fail_t fail = PTL_NI_OK;
	struct content x;
	uint32_t was = 0;
	bool any;

	if (fd < 0 || !spliced_of(j, pipe, &x) ||
	    !atomic_compare_exchange_strong(&pipe->busy, &was, 1))
		return false;
	any = spliced_of(j, pipe, &x);
	if (any) {
		fail = take_spliced(j, &x);
		if (j->source || fail != PTL_NI_OK)
			shm_splice_empty(fd);
		/* release: partner of the acquire in fill_spliced */
		atomic_store_explicit(&pipe->full, 0, memory_order_release);
	}
	atomic_store_explicit(&pipe->busy, 0, memory_order_release);
	if (any)
		placed(j, x.chunks, fail);
	return any;
}

/* ---- who does what --------------------------------------------------------------------------- */

static uint32_t claim_chunks(const struct job *j)
{
	return CLAIM_BYTES > j->size ? CLAIM_BYTES / j->size : 1;
}

/* More messages than one are under way, to and from the peer together. */
static bool several(const struct job *j)
{
	const struct ptl_flow *f = &j->s->ni->view.r->flow[j->p->index];
	int lists = 0;

	for (int kind = 0; kind < PTL_LISTS; kind++) {
		if (f->land[kind].first != f->land[kind].last ||
		    f->op[kind].first != f->op[kind].last)
			return true;
		lists += (f->land[kind].first != 0) + (f->op[kind].first != 0);
	}
	return lists > 1;
}

/* Of a message that both sides move. With more of them under way each side had better take one
 * as a whole; else the less, the less is left, so that both end at the same time. */
static uint32_t share(const struct job *j)
{
	uint32_t most = claim_chunks(j), left;

	if (several(j))
		return most;
	left = unclaimed(j);
	return left < 8 ? 2 : left / 4 < most ? left / 4 : most;
}

/* The other side is at work, too: both ways each begins with what comes to it, else with its
 * half. */
static bool claim_share(struct job *j, struct load *x)
{
	if (both_ways(j))
		return j->help == j->source && claim_any(j, share(j), x);
	return claim_half(j, j->help == j->source, share(j), x);
}

/* Has it been so for a while? */
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
	/* where processors are short the destination decides, which for a get is not the target */
	decider = j->s->ni->spin_ns ? j->decider : j->pipe->ch;
	return !atomic_load_explicit(&decider->claims[shm_path_of(j->length)],
				     memory_order_relaxed);
}

static bool use_splice(const struct job *j)
{
	const unsigned int k = shm_path_of(j->length);
	const struct shm_channel *decider;
	long how = base_config()->ptl_shm_long;

	if (!j->p->cma || how != BASE_LONG_AUTO)
		return j->p->cma && how == BASE_LONG_SPLICE;
	if (!j->s->ni->spin_ns || use_pipe(j))
		return false;
	if (both_ways(j))
		j->p->exchanges = EXCHANGES;
	decider = j->p->decides ? j->p->in.ch : j->p->out.ch;
	return j->p->exchanges && k >= SHM_SPLICE_FROM &&
	       !atomic_load_explicit(&decider->unspliced[k], memory_order_relaxed);
}

/* The destination was inside a moment ago: it is looked for again at once. */
static bool comes_back(const struct job *j)
{
	if (use_pipe(j))
		return !lasts(&j->p->away_since, BETWEEN_NS);
	return j->p->give_fd >= 0 && use_splice(j) && !lasts(&j->p->away_since, AWAY_NS);
}

/* How long the destination leaves what is unclaimed to the source, which will fill a slot, or
 * the kernel's pipe; unless it never comes round to it. */
static uint64_t patience(const struct job *j, bool inside)
{
	if (j->s->wait.last_look)
		return 0;
	if (use_pipe(j))
		return !inside ? BETWEEN_NS : j->s->ni->spin_ns ? PATIENCE_NS : TURN_NS;
	if (use_splice(j) && shm_splice_accept(j->p))
		return inside ? SPLICE_NS : AWAY_NS;
	return 0;
}

/* A slot was filled or emptied for a side that may be about to sleep: one that can do nothing
 * else, or the destination, which would sleep on what it has. A source with another way does
 * what there is before it sleeps. */
static void tell(struct job *j)
{
	if (j->p->cma && !j->source)
		return;
	/* partner: the fence in shm_wait.c, after which the sleeper looks at the slots once more */
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
		tell(j);
		return true;
	}
	if (!j->p->cma)
		return false;
	if (!inside)
		return comes_back(j) || drain_slots(j) || drain_spliced(j) ||
		       claim_any(j, claim_chunks(j), x);
	/* to claim takes longer than the destination needs for what is in the pipe */
	if (use_splice(j) && shm_splice_agreed(j->p))
		return fill_spliced(j);
	/* the destination moves; we help where that pays */
	return base_config()->ptl_shm_long != BASE_LONG_CMA && j->s->ni->spin_ns &&
	       claim_share(j, x);
}

static bool step_destination(struct job *j, struct load *x)
{
	struct shm_peer *p = j->p;
	uint64_t leave;
	bool inside, any;

	shm_path_tell(j->s, p, j->length);
	if (drain_slots(j)) {
		p->pipe_since = 0;
		tell(j);
		return true;
	}
	if (drain_spliced(j)) {
		p->pipe_since = 0;
		return true;
	}
	if (!p->cma)
		return false;
	inside = shm_attends(&p->view);
	if (inside)
		p->away_since = 0;
	leave = patience(j, inside);
	if (leave && unclaimed(j) && !lasts(inside ? &p->pipe_since : &p->away_since, leave))
		return !inside; /* it is looked for again at once */
	/* where processors are short a source that is inside claims nothing */
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

/* What both sides must agree on; the landing or the operation is in the other's memory. */
static bool sound(const struct job *j)
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
	struct ptl_delivery *l = &s->ni->view.land[i];
	struct shm_peer *p = l->peer < SHM_CHANNELS ? s->peer[l->peer] : NULL;
	struct ptl_op *op;
	uint64_t offset;
	uint32_t md;

	if (!p || p->state != SHM_LIVE || !shm_peer_follow(s, p) || l->op >= p->view.ops)
		return false;
	/* The initiator's record, guarded by its lock and not ours: it stays what it is until
	 * the initiator hears of the end, but for a get that was given up. */
	op = &p->view.op[l->op];
	md = __atomic_load_n(&op->md, __ATOMIC_RELAXED);
	offset = __atomic_load_n(&op->local_offset, __ATOMIC_RELAXED);
	if (l->kind == PTL_REQ_GET && !__atomic_load_n(&op->delivery, __ATOMIC_ACQUIRE))
		return false; /* the initiator has not taken the grant in yet */
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
	return sound(j);
}

static bool as_initiator(struct shm *s, uint32_t i, bool help, struct job *j)
{
	struct ptl_op *op = &s->ni->view.op[i];
	struct shm_peer *p = op->peer < SHM_CHANNELS ? s->peer[op->peer] : NULL;
	/* acquire: the landing is whole when the target says where it is */
	uint32_t at = __atomic_load_n(&op->delivery, __ATOMIC_ACQUIRE), md;
	struct ptl_delivery *l;
	uint64_t offset;

	if (!at || !p || p->state != SHM_LIVE || p->index == SHM_SELF || !shm_peer_follow(s, p) ||
	    at > p->view.nlandings)
		return false;
	l = &p->view.land[at - 1];
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
	/* ours, and still the same after all was read: the hint may be late, the record used
	 * again */
	if (md >= p->view.mds || l->op != i || l->op_gen != op->gen || l->peer != p->there ||
	    j->length > op->length || (op->kind == PTL_REQ_GET && j->length != op->mlength) ||
	    !sound(j))
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

/* Of each list in a pass. The pipe has chunks of SHM_SLOTS messages at most, the oldest; others
 * in front have all their chunks in place and wait for a word in a ring, which is taken between
 * passes. */
#define LOOKS_MOST (2 * SHM_SLOTS)

static bool step_deliveries(struct shm *s, uint32_t i, bool help)
{
	const struct ptl_view *v = &s->ni->view;
	bool any = false;
	struct load x;
	struct job j;

	x.n = 0;
	x.bytes = 0;
	for (int looks = 0; i < v->nlandings && looks < LOOKS_MOST; looks++) {
		uint32_t next = v->land[i].next;

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
	for (int looks = 0; i < v->ops && looks < LOOKS_MOST; looks++) {
		uint32_t next = v->op[i].next;

		any |= as_initiator(s, i, help, &j) && step(&j, &x);
		if (is_full(&x))
			move_load(s, &x);
		i = next;
	}
	move_load(s, &x);
	return any;
}

/* The oldest few of each list: a pass over ten thousand messages takes no longer than one over
 * ten, and a peer that stands still is in nobody else's way. */
static bool step_all(struct shm *s, bool alone, bool help)
{
	bool any = false;

	for (uint32_t k = 0; k < atomic_load_explicit(&s->nlive, memory_order_relaxed); k++) {
		uint32_t i = atomic_load_explicit(&s->live[k], memory_order_relaxed);
		const struct ptl_flow *f = &s->ni->view.r->flow[i];

		if (alone && i != SHM_SELF && (!s->peer[i]->cma || shm_attends(&s->peer[i]->view)))
			continue;
		for (int kind = 0; kind < PTL_LISTS; kind++) {
			any |= step_deliveries(s, f->land[kind].first - 1, help);
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
