/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Match lists: see match.h. Only the owner links entries, moves them from the list to the
 * hash, and grows the hash. A peer may find and unlink entries on the owner's behalf, so
 * unlinking writes through the undo log.
 */
#include "portals/engine/match.h"

#define LABEL_GAP ((int64_t)1 << 32)
#define LABEL_END ((int64_t)1 << 61)

/* ---- tuples and the hash --------------------------------------------------------------------- */

static uint32_t any_of(ptl_process_id_t id)
{
	return (id.nid == PTL_NID_ANY ? PTL_TUPLE_ANY_NID : 0) |
	       (id.pid == PTL_PID_ANY ? PTL_TUPLE_ANY_PID : 0);
}

static bool entry_is_of(const struct ptl_me *me, const struct ptl_tuple *t)
{
	return me->ignore_bits == t->ignore && any_of(me->id) == t->any;
}

static bool is_listed(const struct ptl_me *me)
{
	return me->state & PTL_OBJ_LISTED;
}

/* The hash key of an entry of tuple `k`, or of a request that may match one. It uses
 * everything that the tuple does not ignore. */
static inline uint32_t hash_match_key(const struct ptl_tuple *t, uint32_t pt, uint32_t k,
				      ptl_process_id_t id, uint64_t bits)
{
	uint64_t nid = t->any & PTL_TUPLE_ANY_NID ? 0 : id.nid;
	uint64_t pid = t->any & PTL_TUPLE_ANY_PID ? 0 : id.pid;
	uint64_t h = (bits & ~t->ignore) * 0x9e3779b97f4a7c15ull;

	h ^= (nid << 32 | pid) * 0xc2b2ae3d27d4eb4full;
	h ^= ((uint64_t)pt * PTL_TUPLES + k) * 0x165667b19e3779f9ull;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(h >> 32);
}

static inline uint32_t *bucket_of(const struct ptl_view *v, uint32_t hash)
{
	return &v->bucket[hash & (v->r->buckets - 1) & (v->nbuckets - 1)];
}

/* Remove the lowest tuple from a set and return it. */
static inline uint32_t next_tuple(uint32_t *set)
{
	uint32_t k = (uint32_t)__builtin_ctz(*set);

	*set &= *set - 1;
	return k;
}

/* The tuples in use, in a region that a peer may have overwritten. */
static inline uint32_t tuples_of(const struct ptl_pt *pt)
{
	return pt->tuples & ((1u << PTL_TUPLES) - 1);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Step a of the walk: does the entry name this source and these bits? */
static inline bool names_initiator(const struct ptl_me *me, ptl_process_id_t initiator,
				   uint64_t match_bits)
{
	return ((me->match_bits ^ match_bits) & ~me->ignore_bits) == 0 &&
	       (me->id.nid == PTL_NID_ANY || me->id.nid == initiator.nid) &&
	       (me->id.pid == PTL_PID_ANY || me->id.pid == initiator.pid);
}

/* Steps b to d: may its MD accept the request, and at which offset? */
static inline bool accepts(const struct ptl_view *v, const struct ptl_me *me,
			   const struct ptl_request *q, struct ptl_match *m)
{
	static const uint32_t need[] = {
		[PTL_REQ_PUT] = PTL_MD_OP_PUT,
		[PTL_REQ_GET] = PTL_MD_OP_GET,
		[PTL_REQ_GETPUT] = PTL_MD_OP_PUT | PTL_MD_OP_GET,
	};
	const struct ptl_md *md;
	uint64_t offset, room;

	if (me->md >= v->mds)
		return false;
	md = &v->slot[me->md].md;
	if (md->state & PTL_OBJ_INACTIVE || (md->options & need[q->kind]) != need[q->kind])
		return false;
	offset = md->options & PTL_MD_MANAGE_REMOTE ? q->remote_offset : md->local_offset;
	if (offset > md->length)
		return false;
	room = md->length - offset;
	if (q->rlength > room && !(md->options & PTL_MD_TRUNCATE))
		return false;
	m->mlength = q->rlength < room ? q->rlength : room;
	m->offset = offset;
	m->md = me->md;
	return true;
}

/* Find the first entry that accepts the request in the chain from `i` on, before label `end`.
 * It goes to *m. Returns the label behind which no entry matters any more. Any entry that
 * accepts the request is a right answer, so entries of other tuples in the same bucket do no
 * harm. */
static inline int64_t first_match(const struct ptl_view *v, uint32_t i, int64_t end,
				  const struct ptl_request *q, struct ptl_match *m)
{
	while (i < v->mes) {
		const struct ptl_me *me = &v->slot[i].me;

		if (me->pt_index == q->pt_index) { /* labels of other portals are another order */
			if (me->label >= end)
				break;
			if (names_initiator(me, q->initiator, q->match_bits) &&
			    accepts(v, me, q, m)) {
				m->me = i;
				return me->label;
			}
		}
		i = me->chain_next;
	}
	return end;
}

const struct ptl_me *ptl_match_first(const struct ptl_view *v, uint32_t pt_index,
				     ptl_process_id_t initiator, uint64_t match_bits)
{
	const struct ptl_pt *pt = &v->pt[pt_index];
	const struct ptl_me *me;

	if (tuples_of(pt))
		return NULL;
	for (uint32_t i = pt->list_head; i < v->mes; i = me->chain_next) {
		me = &v->slot[i].me;
		if (names_initiator(me, initiator, match_bits))
			return me->pt_index == pt_index ? me : NULL;
	}
	return NULL;
}

bool ptl_match_find(const struct ptl_view *v, const struct ptl_request *q, struct ptl_match *m)
{
	const struct ptl_pt *pt = &v->pt[q->pt_index];
	uint32_t set = tuples_of(pt);
	int64_t end = INT64_MAX;

	m->me = PTL_NIL;
	while (set) {
		uint32_t k = next_tuple(&set);
		uint32_t h =
			hash_match_key(&pt->tuple[k], q->pt_index, k, q->initiator, q->match_bits);

		end = first_match(v, *bucket_of(v, h), end, q, m);
	}
	first_match(v, pt->list_head, end, q, m);
	return m->me != PTL_NIL;
}

void ptl_ahead_buckets(const struct ptl_view *v, struct ptl_ahead *a, uint32_t pt_index,
		       ptl_process_id_t initiator, uint64_t match_bits)
{
	const struct ptl_pt *pt;
	uint32_t set;

	a->set = 0;
	if (pt_index > (uint32_t)v->limits.max_pt_index) /* nobody has checked the message yet */
		return;
	pt = &v->pt[pt_index];
	a->set = set = tuples_of(pt);
	a->bits = match_bits;
	while (set) {
		uint32_t k = next_tuple(&set);
		uint32_t h = hash_match_key(&pt->tuple[k], pt_index, k, initiator, match_bits);

		a->bucket[k] = bucket_of(v, h);
		__builtin_prefetch(a->bucket[k]);
	}
}

static inline void ask_slot(const struct ptl_slot *slot)
{
	__builtin_prefetch(&slot->me);
	__builtin_prefetch(&slot->md);
}

void ptl_ahead_entries(const struct ptl_view *v, struct ptl_ahead *a)
{
	uint32_t set = a->set;

	while (set) {
		uint32_t k = next_tuple(&set), i = *a->bucket[k];

		a->me[k] = NULL;
		if (i < v->mes) {
			a->me[k] = &v->slot[i].me;
			ask_slot(&v->slot[i]);
		}
	}
}

void ptl_ahead_others(const struct ptl_view *v, const struct ptl_ahead *a)
{
	uint32_t set = a->set;

	while (set) {
		uint32_t k = next_tuple(&set);
		const struct ptl_me *me = a->me[k];

		if (me && (me->match_bits ^ a->bits) & ~me->ignore_bits && me->chain_next < v->mes)
			ask_slot(&v->slot[me->chain_next]);
	}
}

/* ---- labels (owner only) --------------------------------------------------------------------- */

static void relabel(struct ptl_view *v, const struct ptl_pt *pt)
{
	int64_t label = 0;

	for (uint32_t i = pt->head; i != PTL_NIL; i = v->slot[i].me.list_next) {
		v->slot[i].me.label = label;
		label += LABEL_GAP;
	}
}

/* There is no free label behind `prev`. Spread the labels of the next entries. Take as many
 * entries as needed until there is more room than the square of their number, or until the
 * list's end. (Dietz and Sleator, "Two algorithms for maintaining order in a list": by this
 * rule an insertion anywhere moves O(log n) labels in the long run.) */
static void make_index_room(struct ptl_view *v, uint32_t prev)
{
	int64_t from = v->slot[prev].me.label, n = 1, step;
	uint32_t last = v->slot[prev].me.list_next;

	while (last != PTL_NIL && v->slot[last].me.label - from <= n * n) {
		last = v->slot[last].me.list_next;
		n++;
	}
	step = last == PTL_NIL ? LABEL_GAP : (v->slot[last].me.label - from) / n;
	for (uint32_t i = v->slot[prev].me.list_next; i != last; i = v->slot[i].me.list_next)
		v->slot[i].me.label = from += step;
}

/* A label between those of prev and next, either of which may be PTL_NIL. */
static int64_t label_between(struct ptl_view *v, const struct ptl_pt *pt, uint32_t prev,
			     uint32_t next)
{
	if (prev == PTL_NIL && next == PTL_NIL)
		return 0;
	if ((prev != PTL_NIL && v->slot[prev].me.label > LABEL_END) ||
	    (next != PTL_NIL && v->slot[next].me.label < -LABEL_END))
		relabel(v, pt);
	if (prev == PTL_NIL)
		return v->slot[next].me.label - LABEL_GAP;
	if (next == PTL_NIL)
		return v->slot[prev].me.label + LABEL_GAP;
	if (v->slot[next].me.label - v->slot[prev].me.label < 2)
		make_index_room(v, prev);
	return v->slot[prev].me.label + (v->slot[next].me.label - v->slot[prev].me.label) / 2;
}

/* ---- chains ---------------------------------------------------------------------------------- */

/* Insert into the chain before `next`, an entry of this chain, or at its end for PTL_NIL. */
static inline void put_before(struct ptl_view *v, uint32_t i, uint32_t next, uint32_t *head)
{
	struct ptl_me *me = &v->slot[i].me, *first;
	uint32_t *prev_of_next;

	me->chain_next = next;
	if (*head == PTL_NIL) {
		*head = me->chain_prev = i;
		return;
	}
	first = &v->slot[*head].me;
	prev_of_next = next == PTL_NIL ? &first->chain_prev : &v->slot[next].me.chain_prev;
	me->chain_prev = *prev_of_next;
	*prev_of_next = i;
	if (next == *head)
		*head = i;
	else
		v->slot[me->chain_prev].me.chain_next = i;
}

/* The entry of the chain that comes after `me`, or PTL_NIL. New entries usually go to the end.
 * Entries of other portals share the bucket and have no order with this one. */
static uint32_t successor(const struct ptl_view *v, const struct ptl_me *me, uint32_t head)
{
	uint32_t next = PTL_NIL, i = head;

	if (head == PTL_NIL)
		return next;
	do {
		i = v->slot[i].me.chain_prev; /* starts with the last */
		if (v->slot[i].me.pt_index != me->pt_index)
			continue;
		if (v->slot[i].me.label < me->label)
			break;
		next = i;
	} while (i != head);
	return next;
}

/* Remove an entry from its hash bucket or from its portal's short list. */
static void leave_chain(struct ptl_engine *e, uint32_t i)
{
	struct ptl_view *v = e->v;
	const struct ptl_me *me = &v->slot[i].me;
	uint32_t *head = is_listed(me) ? &v->pt[me->pt_index].list_head : bucket_of(v, me->hash);
	uint32_t after = me->chain_next, first = *head;

	if (first >= v->mes)
		return;
	if (first == i)
		ptl_set32(e, head, after);
	else
		ptl_set32(e, &v->slot[me->chain_prev].me.chain_next, after);
	/* chain_prev of the entry after it now names the one before it; after the last comes
	 * the first */
	if (after == PTL_NIL)
		after = first;
	if (after != i)
		ptl_set32(e, &v->slot[after].me.chain_prev, me->chain_prev);
}

/* ---- linking (owner only) -------------------------------------------------------------------- */

/* Split every bucket in two. The order within a chain stays. */
static void grow_hash(struct ptl_view *v)
{
	uint32_t n = v->r->buckets, next;

	for (uint32_t b = 0; b < n; b++) {
		uint32_t half[2] = { PTL_NIL, PTL_NIL };

		for (uint32_t i = v->bucket[b]; i != PTL_NIL; i = next) {
			next = v->slot[i].me.chain_next;
			put_before(v, i, PTL_NIL, &half[(v->slot[i].me.hash & n) != 0]);
		}
		v->bucket[b] = half[0];
		v->bucket[b + n] = half[1];
	}
	v->r->buckets = 2 * n;
}

static void link_list(struct ptl_view *v, uint32_t i, uint32_t prev, uint32_t next)
{
	struct ptl_me *me = &v->slot[i].me;
	struct ptl_pt *pt = &v->pt[me->pt_index];

	me->list_prev = prev;
	me->list_next = next;
	if (prev == PTL_NIL)
		pt->head = i;
	else
		v->slot[prev].me.list_next = i;
	if (next == PTL_NIL)
		pt->tail = i;
	else
		v->slot[next].me.list_prev = i;
}

/* Insert into its bucket by label; without a search at either end. */
static void put_in_bucket(struct ptl_view *v, uint32_t i)
{
	struct ptl_me *me = &v->slot[i].me;
	uint32_t *b = bucket_of(v, me->hash), next = *b;

	if (next == PTL_NIL || v->slot[next].me.pt_index != me->pt_index ||
	    v->slot[next].me.label < me->label)
		next = successor(v, me, *b);
	put_before(v, i, next, b);
}

/* Insert into the short list. If its successor is there, perhaps a catch-all entry, without a
 * search. */
static inline void put_on_list(struct ptl_view *v, struct ptl_pt *pt, uint32_t i)
{
	struct ptl_me *me = &v->slot[i].me;
	uint32_t next = me->list_next;

	if (next != PTL_NIL && !(v->slot[next].me.state & PTL_OBJ_LISTED))
		next = successor(v, me, pt->list_head);
	me->state |= PTL_OBJ_LISTED;
	put_before(v, i, next, &pt->list_head);
}

static void link_hash(struct ptl_view *v, uint32_t i, uint32_t k)
{
	struct ptl_me *me = &v->slot[i].me;
	struct ptl_tuple *t = &v->pt[me->pt_index].tuple[k];

	me->state &= ~PTL_OBJ_LISTED;
	me->tuple = (uint16_t)k;
	me->hash = hash_match_key(t, me->pt_index, k, me->id, me->match_bits);
	t->count++;
	/* four buckets for each entry: then the first of a chain nearly always matches */
	if (++v->r->hashed > v->r->buckets / 4 &&
	    (v->r->buckets < v->nbuckets || ptl_grow_buckets(v)))
		grow_hash(v);
	put_in_bucket(v, i);
}

/* The short list is too long: move the entries of the tuple of `me` to the hash. If all tuples
 * are in use, the list grows instead. */
static void shorten(struct ptl_engine *e, struct ptl_pt *pt, const struct ptl_me *me)
{
	struct ptl_view *v = e->v;
	uint32_t k = (uint32_t)__builtin_ctz(~pt->tuples), next;
	struct ptl_tuple *t = &pt->tuple[k];

	if (k >= PTL_TUPLES)
		return;
	*t = (struct ptl_tuple){ .ignore = me->ignore_bits, .any = any_of(me->id) };
	pt->tuples |= 1u << k;
	for (uint32_t i = pt->list_head; i != PTL_NIL; i = next) {
		next = v->slot[i].me.chain_next;
		if (!entry_is_of(&v->slot[i].me, t))
			continue;
		leave_chain(e, i);
		pt->listed--;
		link_hash(v, i, k);
	}
}

/* Insert into the hash if its tuple is there, else into the short list. */
static void index_entry(struct ptl_engine *e, struct ptl_pt *pt, uint32_t i)
{
	struct ptl_me *me = &e->v->slot[i].me;
	uint32_t set = pt->tuples;

	while (set) {
		uint32_t k = next_tuple(&set);

		if (entry_is_of(me, &pt->tuple[k])) {
			link_hash(e->v, i, k);
			return;
		}
	}
	put_on_list(e->v, pt, i);
	if (++pt->listed > PTL_MATCH_SHORT)
		shorten(e, pt, me);
}

void ptl_match_link(struct ptl_engine *e, uint32_t i, uint32_t base, ptl_ins_pos_t position)
{
	struct ptl_view *v = e->v;
	struct ptl_me *me = &v->slot[i].me;
	struct ptl_pt *pt = &v->pt[me->pt_index];
	uint32_t prev, next;

	if (position == PTL_INS_BEFORE) {
		next = base == PTL_NIL ? pt->head : base;
		prev = next == PTL_NIL ? PTL_NIL : v->slot[next].me.list_prev;
	} else {
		prev = base == PTL_NIL ? pt->tail : base;
		next = prev == PTL_NIL ? PTL_NIL : v->slot[prev].me.list_next;
	}
	me->label = label_between(v, pt, prev, next);
	link_list(v, i, prev, next);
	index_entry(e, pt, i);
	if (++pt->count > pt->max)
		pt->max = pt->count;
	if (pt->count == 1 && ++v->r->stat.sr[PTL_SR_PTLS_CUR] > v->r->stat.sr[PTL_SR_PTLS_MAX])
		v->r->stat.sr[PTL_SR_PTLS_MAX] = v->r->stat.sr[PTL_SR_PTLS_CUR];
}

/* ---- unlinking ------------------------------------------------------------------------------- */

static bool bad_link(uint32_t i, uint32_t most)
{
	return i != PTL_NIL && i >= most;
}

/* Count one entry fewer in the hash. The last of a tuple frees the tuple. */
static void leave_tuple(struct ptl_engine *e, struct ptl_pt *pt, uint32_t k)
{
	struct ptl_region *r = e->v->r;

	ptl_set32(e, &r->hashed, r->hashed - 1);
	ptl_set32(e, &pt->tuple[k].count, pt->tuple[k].count - 1);
	if (pt->tuple[k].count == 0)
		ptl_set32(e, &pt->tuples, pt->tuples & ~(1u << k));
}

void ptl_match_unlink(struct ptl_engine *e, uint32_t i)
{
	struct ptl_view *v = e->v;
	struct ptl_me *me = &v->slot[i].me;
	struct ptl_pt *pt = &v->pt[me->pt_index];
	uint32_t most = v->mes, k = me->tuple;

	/* in another process's region: the indices must be within its tables, or nothing is
	 * touched */
	if (me->pt_index > (uint32_t)v->limits.max_pt_index || me->chain_prev >= most ||
	    bad_link(me->chain_next, most) || bad_link(me->list_prev, most) ||
	    bad_link(me->list_next, most) || (!is_listed(me) && k >= PTL_TUPLES))
		return;
	leave_chain(e, i);
	ptl_set32(e, me->list_prev == PTL_NIL ? &pt->head : &v->slot[me->list_prev].me.list_next,
		  me->list_next);
	ptl_set32(e, me->list_next == PTL_NIL ? &pt->tail : &v->slot[me->list_next].me.list_prev,
		  me->list_prev);
	if (is_listed(me))
		ptl_set32(e, &pt->listed, pt->listed - 1);
	else
		leave_tuple(e, pt, k);
	ptl_set32(e, &pt->count, pt->count - 1);
	if (pt->count == 0)
		ptl_set64(e, &v->r->stat.sr[PTL_SR_PTLS_CUR], v->r->stat.sr[PTL_SR_PTLS_CUR] - 1);
}
