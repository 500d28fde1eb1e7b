/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The reference model of matching; see model.h. model_request is the specification.
 */
#include "model.h"
#include "ptest.h"

#include <stdlib.h>
#include <string.h>

/* ---- the specification ----------------------------------------------------------------------- */

static bool is_from_us(ptl_process_id_t id)
{
	ptl_process_id_t self;

	PtlGetId(pt_ni, &self);
	return (id.nid == PTL_NID_ANY || id.nid == self.nid) &&
	       (id.pid == PTL_PID_ANY || id.pid == self.pid);
}

static unsigned int needs(enum request_kind kind)
{
	return kind == REQUEST_PUT   ? PTL_MD_OP_PUT
	       : kind == REQUEST_GET ? PTL_MD_OP_GET
				     : PTL_MD_OP_PUT | PTL_MD_OP_GET;
}

static struct verdict accept(struct m_me *me, struct m_md *md, size_t offset, size_t mlength)
{
	struct verdict v = { .me = me, .md = md, .offset = offset, .mlength = mlength };

	if (!(md->options & PTL_MD_MANAGE_REMOTE))
		md->local += mlength;
	if (md->threshold > 0)
		md->threshold--;
	if (md->threshold == 0)
		md->active = false;
	if (md->options & PTL_MD_MAX_SIZE && md->length - md->local < md->max_size)
		md->active = false;
	v.threshold = md->threshold;
	v.unlinks = !md->active && md->unlink;
	v.me_unlinks = v.unlinks && me->unlink;
	return v;
}

struct verdict model_request(struct model *m, const struct request *r)
{
	for (struct m_me *me = m->first; me; me = me->next) {
		struct m_md *md = me->md;
		ptl_size_t offset, room;

		if (me->portal != r->portal || ((me->bits ^ r->bits) & ~me->ignore) ||
		    !is_from_us(me->from))
			continue;
		if (!md || !md->active || (md->options & needs(r->kind)) != needs(r->kind))
			continue;
		offset = md->options & PTL_MD_MANAGE_REMOTE ? r->offset : md->local;
		if (offset > md->length)
			continue;
		room = md->length - offset;
		if (r->length <= room)
			return accept(me, md, offset, r->length);
		if (md->options & PTL_MD_TRUNCATE)
			return accept(me, md, offset, room);
	}
	return (struct verdict){ 0 };
}

void model_settle(struct model *m, const struct verdict *v)
{
	if (v->me_unlinks) {
		model_remove(m, v->me);
	} else if (v->unlinks) {
		model_free_md(m, v->md);
		v->me->md = NULL;
	}
}

void model_set_md(struct m_md *md, const ptl_md_t *d)
{
	md->options = d->options;
	md->length = d->length;
	md->max_size = d->max_size;
	md->threshold = d->threshold;
	md->active = d->threshold != 0;
	md->local = 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

struct model *model_new(uint64_t seed)
{
	static const uint64_t aims[] = { 3, 8, 8, 30, 30, 100, 400, 400 };
	struct model *m = calloc(1, sizeof(*m));

	m->aim = aims[seed % 8];
	m->spread = m->aim * (1 + seed / 8 % 3);
	m->masks = (enum model_masks)(seed / 24 % MASKS_KINDS);
	m->oversubscribed = seed / 72 % 4 == 0;
	return m;
}

void model_delete(struct model *m)
{
	for (struct m_md *md = m->free_mds, *next; md; md = next) {
		next = md->free_next;
		free(md);
	}
	free(m);
}

static void link_before(struct model *m, struct m_me *me, struct m_me *next)
{
	me->next = next;
	me->prev = next ? next->prev : m->last;
	*(me->prev ? &me->prev->next : &m->first) = me;
	*(next ? &next->prev : &m->last) = me;
}

struct m_me *model_insert(struct model *m, const struct m_me *new, struct m_me *base,
			  ptl_ins_pos_t where)
{
	struct m_me *me = malloc(sizeof(*me));

	*me = *new;
	me->id = m->ids++;
	m->entries++;
	if (base)
		link_before(m, me, where == PTL_INS_BEFORE ? base : base->next);
	else
		link_before(m, me, where == PTL_INS_BEFORE ? m->first : NULL);
	return me;
}

void model_remove(struct model *m, struct m_me *me)
{
	*(me->prev ? &me->prev->next : &m->first) = me->next;
	*(me->next ? &me->next->prev : &m->last) = me->prev;
	m->entries--;
	if (me->md)
		model_free_md(m, me->md);
	free(me);
}

struct m_md *model_new_md(struct model *m)
{
	struct m_md *md = m->free_mds;

	if (md)
		m->free_mds = md->free_next;
	else
		md = malloc(sizeof(*md));
	memset(md->memory, 0xcc, sizeof(md->memory));
	memset(md->shadow, 0xcc, sizeof(md->shadow));
	return md;
}

/* Kept for reuse, not freed: a late write by the library must show as a mismatch, not as a
 * crash. */
void model_free_md(struct model *m, struct m_md *md)
{
	md->free_next = m->free_mds;
	m->free_mds = md;
}

/* ---- choices --------------------------------------------------------------------------------- */

struct m_me *model_pick_me(struct model *m, uint64_t *random)
{
	uint64_t n = m->entries ? pt_random(random) % m->entries : 0;
	struct m_me *me = m->first;

	while (n--)
		me = me->next;
	return me;
}

struct m_me *model_pick_base(struct model *m, uint64_t *random, ptl_ins_pos_t *where)
{
	uint64_t w = pt_random(random);

	*where = w & 1 ? PTL_INS_BEFORE : PTL_INS_AFTER;
	if (m->oversubscribed && w % 16 > 1) {
		*where = PTL_INS_BEFORE;
		return m->last;
	}
	return (w >> 8) % 3 == 0 ? model_pick_me(m, random) : NULL;
}

/* Fields as a message passing library has them. */
#define KIND   ((ptl_match_bits_t)7 << 61)
#define SOURCE ((ptl_match_bits_t)0xffff << 32)
#define TAG    (ptl_match_bits_t)0x7fffffff

ptl_match_bits_t model_random_bits(struct model *m, uint64_t *random)
{
	ptl_match_bits_t bits = pt_random(random) % m->spread;
	uint64_t w = pt_random(random);

	/* the number is source and tag, so that exact ones are met as often */
	if (m->masks == MASKS_MPI)
		bits = (w & 3) << 61 | (bits & 3) << 32 | bits >> 2;
	return bits;
}

ptl_match_bits_t model_random_ignore(struct model *m, uint64_t *random)
{
	static const ptl_match_bits_t mpi[] = {
		KIND, KIND, KIND, KIND | SOURCE, KIND | SOURCE, KIND | TAG, KIND | SOURCE | TAG,
		~KIND
	};
	uint64_t w = pt_random(random), many = pt_random(random);

	switch (m->masks) {
	case MASKS_MPI:
		return mpi[w % 8];
	case MASKS_MANY:
		return w % 4 ? 1ull << (many & 63) | 1ull << (many >> 8 & 3) : 0;
	default:
		if (w % 10 < 7)
			return 0;
		return w % 10 < 9 ? (w >> 8) & 7 : ~(ptl_match_bits_t)0;
	}
}

const char *model_request_name(enum request_kind kind)
{
	static const char *const names[] = { "put", "get", "getput" };

	return names[kind];
}
