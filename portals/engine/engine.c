/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The engine (engine.h), target side and initiator side. The life of an MD is in one place.
 * consume() counts an operation and may make the MD inactive. hold_md() and unhold() bracket an
 * operation that takes more than one step. An MD is freed when it is inactive, marked for
 * unlinking, and without operations.
 */
#include "portals/engine/engine.h"

#include "base/cpu.h"
#include "portals/engine/ni.h"

/* ---- events ---------------------------------------------------------------------------------- */

/* Fill the part of an event that comes from the MD: a snapshot at START. The threshold is that
 * of the operation. */
static void evt_md(const struct ptl_view *v, struct ptl_evt *t, uint32_t i, int32_t threshold)
{
	const struct ptl_md *md = &v->slot[i].md;

	t->md_handle = ptl_handle(PTL_KIND_MD, v->r->stat.interface, i, md->state);
	/* for an MD without a vector these are equal, and this line is in the cache already */
	t->md_start = md->options & PTL_MD_IOVEC ? v->more[i].user_start : md->start;
	t->md_length = md->options & PTL_MD_IOVEC ? v->more[i].user_length : md->length;
	t->md_max_size = md->max_size;
	t->md_user_ptr = md->user_ptr;
	t->md_threshold = threshold;
	t->md_options = md->options;
	t->md_eq = md->eq;
}

/* The record that the next event of a queue goes to. The caller fills it in place, and post_event()
 * makes it an event. */
static struct ptl_evt *next_evt(const struct ptl_view *v, uint32_t eq_index)
{
	const struct ptl_eq *eq = &v->eq[eq_index];
	uint64_t off = eq->slots + (eq->tail & eq->mask) * sizeof(struct ptl_evt);

	/* another process may have made this queue: keep its records within its arena */
	if (off < v->arena_off || off > v->arena_end - sizeof(struct ptl_evt))
		off = v->arena_off;
	return ptl_arena_at(v, off);
}

/* Make *t, which next_evt() returned, an event. A full queue loses its oldest event. `link` 0:
 * use the event's own sequence number. Returns that number. */
static uint32_t post_event(struct ptl_engine *e, uint32_t eq_index, struct ptl_evt *t,
			   uint32_t type, uint32_t link, ptl_ni_fail_t fail)
{
	struct ptl_eq *eq = &e->v->eq[eq_index];
	uint32_t sequence = (uint32_t)eq->tail + 1;

	t->type = type;
	t->sequence = sequence;
	t->link = link ? link : sequence;
	t->ni_fail_type = fail;
	ptl_set64(e, &eq->tail, eq->tail + 1);
	e->posted = true;
	return sequence;
}

static inline bool has_eq(const struct ptl_view *v, const struct ptl_md *md)
{
	return md->eq < (uint32_t)v->limits.max_eqs;
}

/* ---- objects --------------------------------------------------------------------------------- */

uint32_t ptl_next_gen(uint32_t state)
{
	return (ptl_obj_gen(state) + 1) % 255 << 8;
}

static void freed(struct ptl_engine *e, int count_freed, int count_cur)
{
	uint64_t *sr = e->v->r->stat.sr;

	ptl_set64(e, &sr[count_freed], sr[count_freed] + 1);
	ptl_set64(e, &sr[count_cur], sr[count_cur] - 1);
}

void ptl_me_release(struct ptl_engine *e, uint32_t i)
{
	struct ptl_me *me = &e->v->slot[i].me;

	ptl_match_unlink(e, i);
	ptl_set32(e, &me->state, ptl_next_gen(me->state));
	ptl_set32(e, &me->md, PTL_NIL);
	ptl_set32(e, &me->chain_next, e->v->r->me_free);
	ptl_set32(e, &e->v->r->me_free, i);
	freed(e, PTL_SR_MES_FREED, PTL_SR_MES_CUR);
}

/* Detach the MD from its ME. An ME that is unlinked with its MD is freed. P3.3 §3.9 */
static void detach_md(struct ptl_engine *e, struct ptl_md *md)
{
	uint32_t i = md->me;

	if (i >= e->v->mes)
		return;
	ptl_set32(e, &md->me, PTL_NIL);
	ptl_set32(e, &e->v->slot[i].me.md, PTL_NIL);
	if (e->v->slot[i].me.state & PTL_OBJ_UNLINK)
		ptl_me_release(e, i);
}

void ptl_md_free(struct ptl_engine *e, uint32_t i)
{
	struct ptl_view *v = e->v;
	uint32_t first = v->r->md_free;

	/* it will be found when md_low reaches it, or it is reserved for the entry of its
	 * number, which was in use once */
	if (i < v->r->md_low && i < v->r->me_high)
		return;
	ptl_set32(e, &v->slot[i].md.state, v->slot[i].md.state | PTL_OBJ_FREE);
	ptl_set32(e, &v->more[i].free_prev, PTL_NIL);
	ptl_set32(e, &v->more[i].free_next, first);
	if (first < v->mds)
		ptl_set32(e, &v->more[first].free_prev, i);
	ptl_set32(e, &v->r->md_free, i);
}

void ptl_md_release(struct ptl_engine *e, uint32_t i)
{
	struct ptl_md *md = &e->v->slot[i].md;

	detach_md(e, md);
	if (has_eq(e->v, md))
		ptl_set32(e, &e->v->eq[md->eq].refs, e->v->eq[md->eq].refs - 1);
	ptl_set32(e, &md->state, ptl_next_gen(md->state));
	ptl_md_free(e, i);
	freed(e, PTL_SR_MDS_FREED, PTL_SR_MDS_CUR);
}

/* ---- an MD's life ---------------------------------------------------------------------------- */

static void __attribute__((noinline)) inactivate(struct ptl_engine *e, struct ptl_md *md)
{
	uint32_t state = md->state | PTL_OBJ_INACTIVE;

	if (state & PTL_OBJ_UNLINK) {
		state |= PTL_OBJ_UNLINKING;
		detach_md(e, md);
	}
	ptl_set32(e, &md->state, state);
}

/* Take one operation off the threshold. Returns the threshold that its events show. P3.3 §3.10.1 */
static int32_t consume(struct ptl_engine *e, struct ptl_md *md)
{
	int32_t before = md->threshold;

	if (before > 0) {
		ptl_set32(e, (uint32_t *)&md->threshold, (uint32_t)(before - 1));
		if (before == 1)
			inactivate(e, md);
	}
	return e->v->r->cray ? before : md->threshold;
}

static void hold_md(struct ptl_engine *e, struct ptl_md *md)
{
	ptl_set32(e, &md->pending, md->pending + 1);
	if (has_eq(e->v, md))
		ptl_set32(e, &e->v->eq[md->eq].owed, e->v->eq[md->eq].owed + 1);
}

/* Is the MD to be freed: did an operation make it inactive, and is none in progress on it? */
static inline bool unlink_due(const struct ptl_md *md)
{
	return md->state & PTL_OBJ_UNLINKING && !md->pending;
}

/* End an operation. True: the MD is to be freed. */
static bool unhold(struct ptl_engine *e, struct ptl_md *md)
{
	bool due;

	ptl_set32(e, &md->pending, md->pending - 1);
	/* load before unlink_due() reads `pending`, and apart from it: one load of both would
	 * wait for the store */
	due = __atomic_load_n(&md->state, __ATOMIC_RELAXED) & PTL_OBJ_UNLINKING;
	if (has_eq(e->v, md))
		ptl_set32(e, &e->v->eq[md->eq].owed, e->v->eq[md->eq].owed - 1);
	return due && unlink_due(md);
}

/* ---- target ---------------------------------------------------------------------------------- */

static inline bool admitted(const struct ptl_view *v, uint32_t ac_index, uint32_t pt_index,
			    ptl_process_id_t initiator, uint32_t uid, uint32_t jid)
{
	const struct ptl_ac *ac = &v->ac[ac_index];

	if (ac->only == PTL_AC_UID ? ac->uid == uid : ac->only == PTL_AC_JID && ac->jid == jid)
		return true;
	return (ac->uid == PTL_UID_ANY || ac->uid == uid) &&
	       (ac->jid == PTL_JID_ANY || ac->jid == jid) &&
	       (ac->id.nid == PTL_NID_ANY || ac->id.nid == initiator.nid) &&
	       (ac->id.pid == PTL_PID_ANY || ac->id.pid == initiator.pid) &&
	       (ac->pt_index == PTL_PT_INDEX_ANY || ac->pt_index == pt_index);
}

static int drop_message(struct ptl_engine *e, enum ptl_drop why, uint64_t length)
{
	ptl_count_drop(e, why, length);
	return (int)why + 1;
}

/* Fill an event of a target or of a reply. */
static void evt_delivery(const struct ptl_view *v, struct ptl_evt *t, const struct ptl_delivery *l)
{
	t->initiator = l->initiator;
	t->uid = l->uid;
	t->jid = l->jid;
	t->pt_index = l->pt_index;
	t->match_bits = l->match_bits;
	t->rlength = l->rlength;
	t->mlength = l->mlength;
	t->offset = l->offset;
	t->hdr_data = l->hdr_data;
	evt_md(v, t, l->md, l->threshold);
}

static const uint8_t start_event[] = {
	[PTL_REQ_PUT] = PTL_EVENT_PUT_START,
	[PTL_REQ_GET] = PTL_EVENT_GET_START,
	[PTL_REQ_GETPUT] = PTL_EVENT_GETPUT_START,
	[PTL_DELIVERY_REPLY] = PTL_EVENT_REPLY_START,
};

/* Begin the operation of *l on its MD: activity, pending, START. */
static void begin_delivery(struct ptl_engine *e, struct ptl_delivery *l)
{
	struct ptl_md *md = &e->v->slot[l->md].md;

	if (!l->whole)
		hold_md(e, md);
	l->threshold = consume(e, md);
	l->link = 0;
	if (has_eq(e->v, md) && !(md->options & PTL_MD_EVENT_START_DISABLE)) {
		struct ptl_evt *t = next_evt(e->v, md->eq);

		evt_delivery(e->v, t, l);
		l->link = post_event(e, md->eq, t, start_event[l->kind], 0, PTL_NI_OK);
	}
}

static inline bool handle_inline(struct ptl_engine *e, const ptl_arrival_t *arrival)
{
	int said = e->inline_handler(arrival);

	if (said && e->handled != PTL_HANDLED_ENOUGH)
		e->handled = said == PTL_HANDLED_ENOUGH ? PTL_HANDLED_ENOUGH : PTL_HANDLED;
	return said;
}

/* May the inline handler see what `md` gets: does its call poll the descriptor's queue, and is
 * nothing earlier in it? */
static inline bool inline_due(const struct ptl_engine *e, const struct ptl_md *md)
{
	const struct ptl_eq *eq = &e->v->eq[md->eq];

	if (eq->head != eq->tail)
		return false;
	for (int i = 0; i < e->inline_neqs; i++)
		if (ptl_handle_index(e->inline_eqs[i]) == md->eq)
			return true;
	return false;
}

/* Offer a put to `md` to the inline handler. Not while an earlier one waits in the queue.
 * True: handled. */
static inline bool handled_inline(struct ptl_engine *e, const struct ptl_md *md, ptl_arrival_t *put)
{
	const struct ptl_view *v = e->v;

	if (!has_eq(v, md) || !inline_due(e, md))
		return false;
	put->user_ptr = (void *)(uintptr_t)md->user_ptr;
	if (!handle_inline(e, put))
		return false;
	v->r->stat.sr[PTL_SR_RECV_COUNT]++;
	v->r->stat.sr[PTL_SR_RECV_LENGTH] += put->length;
	return true;
}

/* The same for the end of an operation of ours that succeeded. Only its event is left to be
 * done. */
static bool handle_end_inline(struct ptl_engine *e, const struct ptl_md *md, ptl_event_kind_t type,
			      ptl_match_bits_t match_bits, uint64_t length, ptl_process_id_t target)
{
	ptl_arrival_t end = {
		.initiator = target,
		.match_bits = match_bits,
		.length = length,
		.user_ptr = (void *)(uintptr_t)md->user_ptr,
		.type = type,
	};

	if (!e->inline_handler || !(md->options & PTL_MD_INLINE) || !inline_due(e, md))
		return false;
	return handle_inline(e, &end);
}

enum ptl_inline ptl_engine_inline(struct ptl_engine *e, uint32_t pt_index, uint32_t ac_index,
				  uint32_t uid, uint32_t jid, uint64_t remote_offset,
				  ptl_arrival_t *put)
{
	const uint32_t can = PTL_MD_OP_PUT | PTL_MD_INLINE;
	const struct ptl_view *v = e->v;
	const struct ptl_me *me;
	const struct ptl_md *md;
	uint64_t offset;

	if (pt_index > (uint32_t)v->limits.max_pt_index ||
	    ac_index > (uint32_t)v->limits.max_ac_index ||
	    !admitted(v, ac_index, pt_index, put->initiator, uid, jid))
		return PTL_INLINE_NOT;
	me = ptl_match_first(v, pt_index, put->initiator, put->match_bits);
	if (!me || me->md >= v->mds)
		return PTL_INLINE_NOT;
	md = &v->slot[me->md].md;
	offset = md->options & PTL_MD_MANAGE_REMOTE ? remote_offset : md->local_offset;
	if (md->state & PTL_OBJ_INACTIVE || (md->options & can) != can || offset > md->length ||
	    put->length > md->length - offset)
		return PTL_INLINE_NOT;
	return handled_inline(e, md, put) ? PTL_INLINE_HANDLED : PTL_INLINE_DECLINED;
}

int ptl_engine_match(struct ptl_engine *e, const struct ptl_request *q, struct ptl_delivery *l)
{
	struct ptl_view *v = e->v;
	struct ptl_match m;
	struct ptl_md *md;

	if (q->pt_index > (uint32_t)v->limits.max_pt_index)
		return drop_message(e, PTL_DROP_PT_INDEX, q->rlength);
	if (q->ac_index > (uint32_t)v->limits.max_ac_index)
		return drop_message(e, PTL_DROP_AC_INDEX, q->rlength);
	if (!admitted(v, q->ac_index, q->pt_index, q->initiator, q->uid, q->jid))
		return drop_message(e, PTL_DROP_ACCESS, q->rlength);
	if (!ptl_match_find(v, q, &m))
		return drop_message(e, PTL_DROP_NO_MATCH, q->rlength);
	md = &v->slot[m.md].md;
	if (e->inline_handler && !q->declined && q->data && q->op == PTL_NIL &&
	    md->options & PTL_MD_INLINE && m.mlength == q->rlength) {
		ptl_arrival_t put = {
			.initiator = q->initiator,
			.match_bits = q->match_bits,
			.hdr_data = q->hdr_data,
			.data = q->data,
			.length = q->rlength,
			.type = PTL_EVENT_PUT_END,
		};

		if (handled_inline(e, md, &put))
			return PTL_MATCH_HANDLED;
	}
	l->kind = q->kind;
	l->whole = q->data != NULL;
	l->ack = q->ack && !(md->options & PTL_MD_ACK_DISABLE);
	l->pt_index = (uint16_t)q->pt_index;
	l->md = m.md;
	l->peer = q->peer;
	l->op = q->op;
	l->op_gen = q->op_gen;
	l->offset = m.offset;
	l->mlength = m.mlength;
	l->rlength = q->rlength;
	l->match_bits = q->match_bits;
	l->hdr_data = q->kind == PTL_REQ_GET ? 0 : q->hdr_data;
	l->remote_offset = q->remote_offset;
	l->initiator = q->initiator;
	l->uid = q->uid;
	l->jid = q->jid;
	if (!(md->options & PTL_MD_MANAGE_REMOTE)) {
		ptl_set64(e, &md->local_offset, md->local_offset + m.mlength);
		/* P3.3 §3.10.1: too little room is left for the largest message */
		if (md->options & PTL_MD_MAX_SIZE && md->length - md->local_offset < md->max_size &&
		    !(md->state & PTL_OBJ_INACTIVE))
			inactivate(e, md);
	}
	begin_delivery(e, l);
	v->r->stat.sr[PTL_SR_RECV_COUNT]++;
	v->r->stat.sr[PTL_SR_RECV_LENGTH] += m.mlength;
	return 0;
}

/* Post UNLINK, tied to the event `link`, and free the MD. The event shows how the operation
 * ended: with END events disabled nothing else does. */
static void __attribute__((noinline))
unlink_delivery(struct ptl_engine *e, const struct ptl_delivery *l, uint32_t link,
		ptl_ni_fail_t fail)
{
	struct ptl_md *md = &e->v->slot[l->md].md;

	if (has_eq(e->v, md)) {
		struct ptl_evt *t = next_evt(e->v, md->eq);

		evt_delivery(e->v, t, l);
		post_event(e, md->eq, t, PTL_EVENT_UNLINK, link, fail);
	}
	ptl_md_release(e, l->md);
}

void ptl_engine_done(struct ptl_engine *e, const struct ptl_delivery *l, ptl_ni_fail_t fail)
{
	struct ptl_md *md = &e->v->slot[l->md].md;
	uint32_t cause = l->link;

	if (has_eq(e->v, md) && !(md->options & PTL_MD_EVENT_END_DISABLE) &&
	    !(l->kind == PTL_DELIVERY_REPLY && fail == PTL_NI_OK && l->mlength == l->rlength &&
	      handle_end_inline(e, md, PTL_EVENT_REPLY_END, l->match_bits, l->mlength,
				l->initiator))) {
		struct ptl_evt *t = next_evt(e->v, md->eq);

		evt_delivery(e->v, t, l);
		cause = post_event(e, md->eq, t, start_event[l->kind] + 1u, l->link, fail);
	}
	if (l->whole ? unlink_due(md) : unhold(e, md))
		unlink_delivery(e, l, cause, fail);
}

/* ---- delivery records -----------------------------------------------------------------------*/

static struct ptl_flow *flow_of(struct ptl_engine *e, uint32_t peer)
{
	return &e->v->r->flow[peer & (PTL_FLOWS - 1)];
}

static struct ptl_list *delivery_list(struct ptl_engine *e, const struct ptl_delivery *l)
{
	return &flow_of(e, l->peer)->delivery[l->kind == PTL_REQ_GET ? PTL_LIST_GET : PTL_LIST_PUT];
}

static void count_flowing(struct ptl_engine *e, uint32_t more)
{
	ptl_set32(e, &e->v->r->flowing, e->v->r->flowing + more);
}

uint32_t ptl_delivery_alloc(struct ptl_engine *e, const struct ptl_delivery *from)
{
	struct ptl_region *r = e->v->r;
	struct ptl_delivery *l;
	uint32_t i = r->delivery_free, last;
	struct ptl_list *list;

	if (i < e->v->ndeliveries) {
		ptl_set32(e, &r->delivery_free, e->v->delivery[i].next);
	} else {
		i = r->deliveries_high;
		if (i >= e->v->ndeliveries && (e->undo || !ptl_grow_deliveries(e->v)))
			return PTL_NIL;
		ptl_set32(e, &r->deliveries_high, i + 1);
	}
	l = &e->v->delivery[i];
	/* not reachable before its list names it, so plain stores will do, except for the
	 * generation and links */
	memcpy((char *)l + sizeof(l->gen), (const char *)from + sizeof(l->gen),
	       offsetof(struct ptl_delivery, next) - sizeof(l->gen));
	for (int half = 0; half < 2; half++)
		atomic_store_explicit(&l->claim[half], (uint64_t)(l->gen + 1) << 32,
				      memory_order_relaxed);
	atomic_store_explicit(&l->done, 0, memory_order_relaxed);
	atomic_store_explicit(&l->failed, 0, memory_order_relaxed);
	list = delivery_list(e, l);
	last = list->last - 1;
	ptl_set32(e, &l->next, PTL_NIL);
	ptl_set32(e, &l->prev, last);
	if (last < e->v->ndeliveries)
		ptl_set32(e, &e->v->delivery[last].next, i);
	else
		ptl_set32(e, &list->first, i + 1);
	ptl_set32(e, &list->last, i + 1);
	count_flowing(e, 1);
	ptl_set32(e, &l->gen, l->gen + 1);
	return i;
}

void ptl_delivery_free(struct ptl_engine *e, uint32_t i)
{
	struct ptl_region *r = e->v->r;
	struct ptl_delivery *l = &e->v->delivery[i];
	struct ptl_list *list = delivery_list(e, l);

	ptl_set32(e, &l->gen, l->gen + 1);
	if (l->prev < e->v->ndeliveries)
		ptl_set32(e, &e->v->delivery[l->prev].next, l->next);
	else
		ptl_set32(e, &list->first, l->next + 1);
	if (l->next < e->v->ndeliveries)
		ptl_set32(e, &e->v->delivery[l->next].prev, l->prev);
	else
		ptl_set32(e, &list->last, l->prev + 1);
	count_flowing(e, UINT32_MAX);
	ptl_set32(e, &l->next, r->delivery_free);
	ptl_set32(e, &r->delivery_free, i);
}

/* ---- initiator: starting --------------------------------------------------------------------- */

/* Fill an event about an operation of ours. */
static void evt_op(const struct ptl_view *v, struct ptl_evt *t, const struct ptl_op *op,
		   uint64_t mlength, const struct ptl_answerer *who)
{
	t->initiator = who->id;
	t->uid = who->uid;
	t->jid = who->jid;
	t->pt_index = op->pt_index;
	t->match_bits = op->match_bits;
	t->rlength = op->length;
	t->mlength = mlength;
	t->offset = op->local_offset;
	t->hdr_data = op->hdr_data;
	evt_md(v, t, op->md, op->threshold);
}

/* Post UNLINK and free the MD of an operation. */
static void unlink_op(struct ptl_engine *e, const struct ptl_op *op, uint64_t mlength,
		      const struct ptl_answerer *who, uint32_t link)
{
	struct ptl_md *md = &e->v->slot[op->md].md;

	if (has_eq(e->v, md)) {
		struct ptl_evt *t = next_evt(e->v, md->eq);

		evt_op(e->v, t, op, mlength, who);
		post_event(e, md->eq, t, PTL_EVENT_UNLINK, link, PTL_NI_OK);
	}
	ptl_md_release(e, op->md);
}

static void evt_start(const struct ptl_view *v, struct ptl_evt *t, const struct ptl_start *s,
		      int32_t threshold)
{
	t->initiator = v->r->stat.id;
	t->uid = v->r->stat.uid;
	t->jid = v->r->stat.jid;
	t->pt_index = s->pt_index;
	t->match_bits = s->match_bits;
	t->rlength = t->mlength = s->length;
	t->offset = s->offset;
	t->hdr_data = s->hdr_data;
	evt_md(v, t, s->md, threshold);
}

void ptl_engine_send(struct ptl_engine *e, const struct ptl_start *s, bool more, ptl_ni_fail_t fail,
		     uint32_t op)
{
	struct ptl_view *v = e->v;
	struct ptl_md *md = &v->slot[s->md].md;
	bool eq = has_eq(v, md);
	struct ptl_evt *t;
	int32_t threshold;
	uint32_t link = 0;

	if (op != PTL_NIL)
		/* the message is sent already: nobody waits for this */
		v->op[op].started_ms = base_now_ms();
	v->r->stat.sr[PTL_SR_SEND_COUNT]++;
	if (s->kind != PTL_REQ_GET)
		v->r->stat.sr[PTL_SR_SEND_LENGTH] += s->length;
	else if (!v->r->cray) /* P3.3 has no SEND events for a get; the Cray does */
		return;
	threshold = consume(e, md);
	if (eq && !(md->options & PTL_MD_EVENT_START_DISABLE)) {
		t = next_evt(v, md->eq);
		evt_start(v, t, s, threshold);
		link = post_event(e, md->eq, t, PTL_EVENT_SEND_START, 0, PTL_NI_OK);
	}
	if (more) {
		hold_md(e, md);
		v->op[op].link = link;
		v->op[op].threshold = threshold;
		return;
	}
	if (eq && !(md->options & PTL_MD_EVENT_END_DISABLE)) {
		t = next_evt(v, md->eq);
		evt_start(v, t, s, threshold);
		link = post_event(e, md->eq, t, PTL_EVENT_SEND_END, link, fail);
	}
	if (!unlink_due(md))
		return;
	if (eq) {
		t = next_evt(v, md->eq);
		evt_start(v, t, s, threshold);
		post_event(e, md->eq, t, PTL_EVENT_UNLINK, link, PTL_NI_OK);
	}
	ptl_md_release(e, s->md);
}

/* The list of an operation. NULL: its NAL has lists of its own, or there is nothing to move. */
static struct ptl_list *op_list(struct ptl_engine *e, const struct ptl_op *op)
{
	if ((op->flags & (PTL_OP_LONG | PTL_OP_UNLISTED)) != PTL_OP_LONG)
		return NULL;
	return &flow_of(e, op->peer)->op[op->kind == PTL_REQ_GET ? PTL_LIST_GET : PTL_LIST_PUT];
}

uint32_t ptl_op_next(struct ptl_view *v, uint32_t *gen)
{
	const struct ptl_region *r = v->r;
	uint32_t i = r->op_free < v->ops ? r->op_free : r->stat.op_high;

	if (i >= v->ops && !ptl_grow_ops(v))
		return PTL_NIL;
	*gen = v->op[i].gen + 1;
	return i;
}

uint32_t ptl_op_alloc(struct ptl_engine *e, const struct ptl_start *s, uint32_t peer,
		      uint32_t flags)
{
	struct ptl_region *r = e->v->r;
	uint32_t i = r->op_free;
	struct ptl_op *op;
	struct ptl_list *list;
	bool get = s->kind == PTL_REQ_GETPUT;

	if (i < e->v->ops) {
		r->op_free = e->v->op[i].next;
	} else {
		i = r->stat.op_high;
		if (i >= e->v->ops && !ptl_grow_ops(e->v))
			return PTL_NIL;
		r->stat.op_high++;
	}
	op = &e->v->op[i];
	op->flags = flags;
	op->kind = (uint16_t)s->kind;
	op->pt_index = (uint16_t)s->pt_index;
	/* the peer's engine reads these fields without our lock (shm_long.c), and checks the
	 * gen afterwards */
	__atomic_store_n(&op->md, get ? s->get_md : s->md, __ATOMIC_RELAXED);
	op->md_serial = e->v->more[op->md].serial;
	op->peer = peer;
	__atomic_store_n(&op->local_offset, get ? s->get_offset : s->offset, __ATOMIC_RELAXED);
	op->length = s->length;
	op->match_bits = s->match_bits;
	op->remote_offset = s->remote_offset;
	op->hdr_data = s->hdr_data;
	op->target = s->target;
	__atomic_store_n(&op->delivery, 0, __ATOMIC_RELAXED);
	op->next = op->prev = PTL_NIL;
	list = op_list(e, op);
	if (list) {
		op->prev = list->last - 1;
		if (op->prev == PTL_NIL)
			list->first = i + 1;
		else
			e->v->op[op->prev].next = i;
		list->last = i + 1;
		r->flowing++;
	}
	__atomic_store_n(&op->gen, op->gen + 1, __ATOMIC_RELEASE);
	r->stat.sr[PTL_SR_MSGS_ALLOC]++;
	if (++r->stat.sr[PTL_SR_MSGS_CUR] > r->stat.sr[PTL_SR_MSGS_MAX])
		r->stat.sr[PTL_SR_MSGS_MAX] = r->stat.sr[PTL_SR_MSGS_CUR];
	return i;
}

void ptl_op_free(struct ptl_engine *e, uint32_t i)
{
	struct ptl_region *r = e->v->r;
	struct ptl_op *op = &e->v->op[i];
	struct ptl_list *list = op_list(e, op);

	ptl_set32(e, &op->gen, op->gen + 1);
	if (list) {
		if (op->prev < e->v->ops)
			ptl_set32(e, &e->v->op[op->prev].next, op->next);
		else
			ptl_set32(e, &list->first, op->next + 1);
		if (op->next < e->v->ops)
			ptl_set32(e, &e->v->op[op->next].prev, op->prev);
		else
			ptl_set32(e, &list->last, op->prev + 1);
		count_flowing(e, UINT32_MAX);
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a view in use has a region */
	ptl_set32(e, &op->next, r->op_free);
	ptl_set32(e, &r->op_free, i);
	freed(e, PTL_SR_MSGS_FREED, PTL_SR_MSGS_CUR);
}

bool ptl_op_valid(const struct ptl_view *v, uint32_t i, uint32_t gen)
{
	return i < v->ops && __atomic_load_n(&v->op[i].gen, __ATOMIC_ACQUIRE) == gen && gen & 1;
}

/* ---- initiator: answers ---------------------------------------------------------------------- */

/* Is the operation's MD still the one it started with? */
static struct ptl_md *op_md(const struct ptl_view *v, const struct ptl_op *op)
{
	struct ptl_md *md = &v->slot[op->md].md;

	if (op->md >= v->mds)
		return NULL;
	return md->state & PTL_OBJ_LIVE && v->more[op->md].serial == op->md_serial ? md : NULL;
}

/* The bytes of a long put were fetched, or never will be. */
static void send_end(struct ptl_engine *e, struct ptl_op *op, ptl_ni_fail_t fail)
{
	struct ptl_stat *s = &e->v->r->stat;
	struct ptl_answerer self = { s->id, s->uid, s->jid };
	struct ptl_md *md = op_md(e->v, op);
	uint32_t cause = op->link;

	if (!md) /* a pending MD is never freed, so this operation is not of our making */
		return;

	if (has_eq(e->v, md) && !(md->options & PTL_MD_EVENT_END_DISABLE)) {
		struct ptl_evt *t = next_evt(e->v, md->eq);

		evt_op(e->v, t, op, op->length, &self);
		cause = post_event(e, md->eq, t, PTL_EVENT_SEND_END, op->link, fail);
	}
	if (unhold(e, md))
		unlink_op(e, op, op->length, &self, cause);
}

static void send_ack(struct ptl_engine *e, struct ptl_op *op, uint64_t mlength, ptl_ni_fail_t fail,
		     const struct ptl_answerer *who)
{
	struct ptl_md *md = op_md(e->v, op);
	struct ptl_evt *t;
	uint32_t cause = 0;

	if (!md || md->state & PTL_OBJ_INACTIVE || !has_eq(e->v, md)) {
		ptl_count_drop(e, PTL_DROP_ACK_NO_MD, 0);
		return;
	}
	op->threshold = consume(e, md);
	if (fail != PTL_NI_OK || mlength != op->length ||
	    !handle_end_inline(e, md, PTL_EVENT_ACK, op->match_bits, mlength, who->id)) {
		t = next_evt(e->v, md->eq);
		evt_op(e->v, t, op, mlength, who);
		t->hdr_data = 0;
		cause = post_event(e, md->eq, t, PTL_EVENT_ACK, 0, fail);
	}
	if (unlink_due(md))
		unlink_op(e, op, mlength, who, cause);
}

bool ptl_engine_answer(struct ptl_engine *e, uint32_t i, uint32_t gen, enum ptl_answer what,
		       uint64_t mlength, ptl_ni_fail_t fail, const struct ptl_answerer *who)
{
	struct ptl_op *op = &e->v->op[i];

	if (!ptl_op_valid(e->v, i, gen)) {
		ptl_count_drop(e, PTL_DROP_STALE, 0);
		return false;
	}
	if (op->kind == PTL_REQ_PUT) {
		/* A failed put is not acked: its SEND_END shows the failure. But the SEND_END
		 * of a short put was posted before, and the initiator that waits for the ack
		 * must hear of the failure. */
		if (op->flags & PTL_OP_LONG)
			send_end(e, op, what == PTL_ANSWER_FAILED ? fail : PTL_NI_OK);
		if (op->flags & PTL_OP_ACK && what == PTL_ANSWER_ACK)
			send_ack(e, op, mlength, PTL_NI_OK, who);
		if (op->flags & PTL_OP_ACK && what == PTL_ANSWER_FAILED &&
		    !(op->flags & PTL_OP_LONG))
			send_ack(e, op, 0, fail, who);
	} else if (what == PTL_ANSWER_FAILED) {
		struct ptl_delivery l;

		if (op->flags & PTL_OP_GRANTED) {
			ptl_engine_reply_kept(e->v, i, who, &l);
			ptl_engine_done(e, &l, fail);
		} else if (ptl_engine_reply(e, i, gen, 0, true, who, &l)) {
			ptl_engine_done(e, &l, fail);
		}
	}
	ptl_op_free(e, i);
	return true;
}

/* Fill in where the reply to an operation goes: all fields of *l for a reply, except those of
 * begin_delivery(). */
static void reply_delivery(const struct ptl_op *op, uint32_t i, uint32_t gen, uint64_t mlength,
			   const struct ptl_answerer *who, struct ptl_delivery *l)
{
	l->kind = PTL_DELIVERY_REPLY;
	l->ack = 0;
	l->pt_index = op->pt_index;
	l->md = op->md;
	l->peer = op->peer;
	l->op = i;
	l->op_gen = gen;
	l->offset = op->local_offset;
	l->mlength = mlength;
	l->rlength = op->length;
	l->match_bits = op->match_bits;
	l->hdr_data = l->remote_offset = 0;
	l->initiator = who->id;
	l->uid = who->uid;
	l->jid = who->jid;
	l->whole = 0;
}

bool ptl_engine_reply(struct ptl_engine *e, uint32_t i, uint32_t gen, uint64_t mlength, bool whole,
		      const struct ptl_answerer *who, struct ptl_delivery *l)
{
	struct ptl_op *op = &e->v->op[i];
	struct ptl_md *md;

	if (!ptl_op_valid(e->v, i, gen) || op->kind == PTL_REQ_PUT || op->flags & PTL_OP_GRANTED) {
		ptl_count_drop(e, PTL_DROP_STALE, mlength);
		return false;
	}
	md = op_md(e->v, op);
	if (!md || md->state & PTL_OBJ_INACTIVE) {
		ptl_count_drop(e, PTL_DROP_REPLY_NO_MD, mlength);
		return false;
	}
	if (mlength > op->length || op->local_offset > md->length ||
	    mlength > md->length - op->local_offset) {
		/* the MD was updated meanwhile */
		if (!(md->options & PTL_MD_TRUNCATE) || mlength > op->length ||
		    op->local_offset > md->length) {
			ptl_count_drop(e, PTL_DROP_REPLY_TOO_LONG, mlength);
			return false;
		}
		mlength = md->length - op->local_offset;
	}
	reply_delivery(op, i, gen, mlength, who, l);
	l->whole = whole;
	begin_delivery(e, l);
	return true;
}

void ptl_engine_reply_keep(struct ptl_engine *e, uint32_t i, const struct ptl_delivery *l)
{
	struct ptl_op *op = &e->v->op[i];

	op->link = l->link;
	op->threshold = l->threshold;
	op->mlength = l->mlength;
	ptl_set32(e, &op->flags, op->flags | PTL_OP_GRANTED);
}

void ptl_engine_reply_kept(const struct ptl_view *v, uint32_t i, const struct ptl_answerer *who,
			   struct ptl_delivery *l)
{
	const struct ptl_op *op = &v->op[i];

	reply_delivery(op, i, op->gen, op->mlength, who, l);
	l->link = op->link;
	l->threshold = op->threshold;
}

/* ---- a peer is gone -------------------------------------------------------------------------- */

static void fail_op_of_peer(struct ptl_engine *e, uint32_t i, ptl_ni_fail_t fail,
			    const struct ptl_answerer *who)
{
	struct ptl_op *op = &e->v->op[i];

	if (op->kind == PTL_REQ_PUT && op->flags & PTL_OP_LONG) {
		send_end(e, op, fail);
		ptl_op_free(e, i);
		return;
	}
	ptl_engine_answer(e, i, op->gen, PTL_ANSWER_FAILED, 0, fail, who);
}

void ptl_engine_peer_failed(struct ptl_engine *e, uint32_t peer, ptl_ni_fail_t fail,
			    const struct ptl_answerer *who)
{
	struct ptl_view *v = e->v;
	uint32_t i;

	for (int k = 0; peer < PTL_FLOWS && k < PTL_LISTS; k++)
		while ((i = flow_of(e, peer)->delivery[k].first - 1) < v->ndeliveries) {
			ptl_engine_done(e, &v->delivery[i], fail);
			ptl_delivery_free(e, i);
		}
	for (i = 0; i < v->r->stat.op_high; i++)
		if (v->op[i].gen & 1 && v->op[i].peer == peer)
			fail_op_of_peer(e, i, fail, who);
}

void ptl_engine_unlink_event(struct ptl_engine *e, uint32_t i)
{
	struct ptl_md *md = &e->v->slot[i].md;
	struct ptl_start nothing = { .md = i };
	struct ptl_evt *t;

	if (!(md->options & PTL_MD_EVENT_MANUAL_UNLINK_ENABLE) || !has_eq(e->v, md))
		return;
	t = next_evt(e->v, md->eq);
	evt_start(e->v, t, &nothing, md->threshold);
	post_event(e, md->eq, t, PTL_EVENT_UNLINK, 0, PTL_NI_OK);
}
