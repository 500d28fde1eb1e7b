/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Match lists: see match.h. Linking and growing the hash are the owner's alone; finding and
 * unlinking may be done by a peer on the owner's behalf, so unlinking writes through the undo log.
 */
#include "portals/match.h"

#define LABEL_GAP ((int64_t)1 << 24)
#define LABEL_END ((int64_t)1 << 62)

static uint32_t hash_key(uint32_t pt, ptl_process_id_t id, uint64_t bits)
{
	uint64_t h = bits * 0x9e3779b97f4a7c15ull;

	h ^= ((uint64_t)id.nid << 32 | id.pid) * 0xc2b2ae3d27d4eb4full;
	h ^= (uint64_t)pt * 0x165667b19e3779f9ull;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(h >> 32);
}

/* Chain an entry is on: its hash bucket or its portal's wildcard list. */
static void chain_of(struct ptl_view *v, const struct ptl_me *me, uint32_t **head, uint32_t **tail)
{
	if (me->state & PTL_OBJ_WILD) {
		*head = &v->pt[me->pt_index].wild_head;
		*tail = &v->pt[me->pt_index].wild_tail;
	} else {
		struct ptl_bucket *b =
			&v->bucket[me->hash & (v->r->buckets - 1) & (v->nbuckets - 1)];

		*head = &b->head;
		*tail = &b->tail;
	}
}

/* ---- finding ---------------------------------------------------------------------------------- */

/* Steps b to d of the walk: may this entry's MD take the request, and where? */
static inline bool accepts(const struct ptl_view *v, const struct ptl_me *me,
			   const struct ptl_request *q, struct ptl_match *m)
{
	static const uint32_t need[] = {
		[PTL_REQ_PUT] = PTL_MD_OP_PUT,
		[PTL_REQ_GET] = PTL_MD_OP_GET,
		[PTL_REQ_GETPUT] = PTL_MD_OP_PUT | PTL_MD_OP_GET,
	};
	const struct ptl_md *md;
	uint64_t room;

	if (me->md >= (uint32_t)v->limits.max_mds)
		return false;
	md = &v->md[me->md];
	if (md->state & PTL_OBJ_INACTIVE || (md->options & need[q->kind]) != need[q->kind])
		return false;
	m->offset = md->options & PTL_MD_MANAGE_REMOTE ? q->remote_offset : md->local_offset;
	if (m->offset > md->length)
		return false;
	room = md->length - m->offset;
	if (q->rlength <= room)
		m->mlength = q->rlength;
	else if (md->options & PTL_MD_TRUNCATE)
		m->mlength = room;
	else
		return false;
	m->md = me->md;
	return true;
}

static uint32_t first_exact(const struct ptl_view *v, const struct ptl_request *q,
			    struct ptl_match *m)
{
	uint32_t h = hash_key(q->pt_index, q->initiator, q->match_bits);
	uint32_t i = v->bucket[h & (v->r->buckets - 1) & (v->nbuckets - 1)].head;

	while (i < (uint32_t)v->limits.max_mes) {
		const struct ptl_me *me = &v->me[i];

		if (me->match_bits == q->match_bits && me->id.pid == q->initiator.pid &&
		    me->id.nid == q->initiator.nid && me->pt_index == q->pt_index &&
		    accepts(v, me, q, m))
			return i;
		i = me->chain_next;
	}
	return PTL_NIL;
}

void ptl_match_prefetch(const struct ptl_view *v, uint32_t pt_index, ptl_process_id_t initiator,
			uint64_t match_bits, int step)
{
	uint32_t h = hash_key(pt_index, initiator, match_bits);
	const struct ptl_bucket *b = &v->bucket[h & (v->r->buckets - 1) & (v->nbuckets - 1)];
	const struct ptl_me *me;

	if (step == 0) {
		__builtin_prefetch(b);
		return;
	}
	if (b->head >= (uint32_t)v->limits.max_mes)
		return;
	me = &v->me[b->head];
	if (step == 1)
		__builtin_prefetch(me);
	else if (me->match_bits != match_bits && me->chain_next < (uint32_t)v->limits.max_mes)
		__builtin_prefetch(&v->me[me->chain_next]);
	else if (me->md < (uint32_t)v->limits.max_mds)
		__builtin_prefetch(&v->md[me->md], 1);
}

static inline bool wild_matches(const struct ptl_me *me, const struct ptl_request *q)
{
	return ((me->match_bits ^ q->match_bits) & ~me->ignore_bits) == 0 &&
	       (me->id.nid == PTL_NID_ANY || me->id.nid == q->initiator.nid) &&
	       (me->id.pid == PTL_PID_ANY || me->id.pid == q->initiator.pid);
}

bool ptl_match_find(const struct ptl_view *v, const struct ptl_request *q, struct ptl_match *m)
{
	uint32_t best = first_exact(v, q, m);
	uint32_t i = v->pt[q->pt_index].wild_head;
	struct ptl_match w;

	while (i < (uint32_t)v->limits.max_mes) {
		const struct ptl_me *me = &v->me[i];

		if (best != PTL_NIL && me->label > v->me[best].label)
			break;
		if (wild_matches(me, q) && accepts(v, me, q, &w)) {
			*m = w;
			best = i;
			break;
		}
		i = me->chain_next;
	}
	m->me = best;
	return best != PTL_NIL;
}

/* ---- linking (owner only) --------------------------------------------------------------------- */

/* Every bucket splits in two; order within a chain stays. */
static void grow_hash(struct ptl_view *v)
{
	uint32_t n = v->r->buckets;

	for (uint32_t b = 0; b < n; b++) {
		struct ptl_bucket half[2] = { { PTL_NIL, PTL_NIL }, { PTL_NIL, PTL_NIL } };
		uint32_t i = v->bucket[b].head;

		while (i != PTL_NIL) {
			struct ptl_me *me = &v->me[i];
			struct ptl_bucket *to = &half[(me->hash & n) != 0];
			uint32_t next = me->chain_next;

			me->chain_prev = to->tail;
			me->chain_next = PTL_NIL;
			if (to->tail == PTL_NIL)
				to->head = i;
			else
				v->me[to->tail].chain_next = i;
			to->tail = i;
			i = next;
		}
		v->bucket[b] = half[0];
		v->bucket[b + n] = half[1];
	}
	v->r->buckets = 2 * n;
}

static void relabel(struct ptl_view *v, struct ptl_pt *pt)
{
	int64_t label = 0;

	for (uint32_t i = pt->head; i != PTL_NIL; i = v->me[i].list_next) {
		v->me[i].label = label;
		label += LABEL_GAP;
	}
}

/* A label between those of prev and next, either of which may be PTL_NIL. */
static int64_t label_between(struct ptl_view *v, struct ptl_pt *pt, uint32_t prev, uint32_t next)
{
	if (prev == PTL_NIL && next == PTL_NIL)
		return 0;
	if ((prev != PTL_NIL && v->me[prev].label > LABEL_END) ||
	    (next != PTL_NIL && v->me[next].label < -LABEL_END) ||
	    (prev != PTL_NIL && next != PTL_NIL && v->me[next].label - v->me[prev].label < 2))
		relabel(v, pt);
	if (prev == PTL_NIL)
		return v->me[next].label - LABEL_GAP;
	if (next == PTL_NIL)
		return v->me[prev].label + LABEL_GAP;
	return v->me[prev].label + (v->me[next].label - v->me[prev].label) / 2;
}

static void link_list(struct ptl_view *v, uint32_t i, uint32_t prev, uint32_t next)
{
	struct ptl_me *me = &v->me[i];
	struct ptl_pt *pt = &v->pt[me->pt_index];

	me->list_prev = prev;
	me->list_next = next;
	if (prev == PTL_NIL)
		pt->head = i;
	else
		v->me[prev].list_next = i;
	if (next == PTL_NIL)
		pt->tail = i;
	else
		v->me[next].list_prev = i;
}

/* Into its chain by label; at the ends, the usual places, without a search. */
static void link_chain(struct ptl_view *v, uint32_t i)
{
	struct ptl_me *me = &v->me[i];
	uint32_t *head, *tail, prev, next;

	chain_of(v, me, &head, &tail);
	if (*head != PTL_NIL && me->label < v->me[*head].label) {
		prev = PTL_NIL;
		next = *head;
	} else {
		prev = *tail;
		while (prev != PTL_NIL && v->me[prev].label > me->label)
			prev = v->me[prev].chain_prev;
		next = prev == PTL_NIL ? *head : v->me[prev].chain_next;
	}
	me->chain_prev = prev;
	me->chain_next = next;
	if (prev == PTL_NIL)
		*head = i;
	else
		v->me[prev].chain_next = i;
	if (next == PTL_NIL)
		*tail = i;
	else
		v->me[next].chain_prev = i;
}

void ptl_match_link(struct ptl_view *v, uint32_t i, uint32_t base, ptl_ins_pos_t position)
{
	struct ptl_me *me = &v->me[i];
	struct ptl_pt *pt = &v->pt[me->pt_index];
	uint32_t prev, next;

	if (position == PTL_INS_BEFORE) {
		next = base == PTL_NIL ? pt->head : base;
		prev = next == PTL_NIL ? PTL_NIL : v->me[next].list_prev;
	} else {
		prev = base == PTL_NIL ? pt->tail : base;
		next = prev == PTL_NIL ? PTL_NIL : v->me[prev].list_next;
	}
	me->label = label_between(v, pt, prev, next);
	link_list(v, i, prev, next);
	if (me->ignore_bits == 0 && me->id.nid != PTL_NID_ANY && me->id.pid != PTL_PID_ANY) {
		me->hash = hash_key(me->pt_index, me->id, me->match_bits);
		/* four buckets to an entry: the first of a chain is nearly always the one */
		if (++v->r->hashed > v->r->buckets / 4 && v->r->buckets < v->nbuckets)
			grow_hash(v);
	} else {
		me->state |= PTL_OBJ_WILD;
	}
	link_chain(v, i);
	if (++pt->count > pt->max)
		pt->max = pt->count;
	if (pt->count == 1 && ++v->r->stat.sr[PTL_SR_PTLS_CUR] > v->r->stat.sr[PTL_SR_PTLS_MAX])
		v->r->stat.sr[PTL_SR_PTLS_MAX] = v->r->stat.sr[PTL_SR_PTLS_CUR];
}

/* ---- unlinking -------------------------------------------------------------------------------- */

static bool bad_link(uint32_t i, uint32_t most)
{
	return i != PTL_NIL && i >= most;
}

void ptl_match_unlink(struct ptl_engine *e, uint32_t i)
{
	struct ptl_view *v = e->v;
	struct ptl_me *me = &v->me[i];
	struct ptl_pt *pt = &v->pt[me->pt_index & 0xffff];
	uint32_t *head, *tail, most = (uint32_t)v->limits.max_mes;

	/* in another's region: its indices are within its tables, or nothing is touched */
	if (me->pt_index > (uint32_t)v->limits.max_pt_index || bad_link(me->chain_prev, most) ||
	    bad_link(me->chain_next, most) || bad_link(me->list_prev, most) ||
	    bad_link(me->list_next, most))
		return;
	chain_of(v, me, &head, &tail);
	ptl_set32(e, me->chain_prev == PTL_NIL ? head : &v->me[me->chain_prev].chain_next,
		  me->chain_next);
	ptl_set32(e, me->chain_next == PTL_NIL ? tail : &v->me[me->chain_next].chain_prev,
		  me->chain_prev);
	ptl_set32(e, me->list_prev == PTL_NIL ? &pt->head : &v->me[me->list_prev].list_next,
		  me->list_next);
	ptl_set32(e, me->list_next == PTL_NIL ? &pt->tail : &v->me[me->list_next].list_prev,
		  me->list_prev);
	if (!(me->state & PTL_OBJ_WILD))
		ptl_set32(e, &v->r->hashed, v->r->hashed - 1);
	ptl_set32(e, &pt->count, pt->count - 1);
	if (pt->count == 0)
		ptl_set64(e, &v->r->stat.sr[PTL_SR_PTLS_CUR], v->r->stat.sr[PTL_SR_PTLS_CUR] - 1);
}
