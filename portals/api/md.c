/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The calls on memory descriptors: attach, bind, unlink, update (3.3 section 3.10).
 */
#include <string.h>

#include "portals/api/objects.h"
#include "portals/engine/debug.h"

/* ---- making ---------------------------------------------------------------------------------- */

/* Remove an MD from the free list. */
static void take_free_md(struct ptl_view *v, uint32_t i)
{
	const struct ptl_md_more *more = &v->more[i];

	if (more->free_prev == PTL_NIL)
		v->r->md_free = more->free_next;
	else
		v->more[more->free_prev].free_next = more->free_next;
	if (more->free_next != PTL_NIL)
		v->more[more->free_next].free_prev = more->free_prev;
}

/* Choose a free MD: `best` if it is free, else one from the table's end, whose numbers no
 * entry needs. Another number would force the next entry to take a descriptor that is not its
 * own, and so on. PTL_NIL: there is none. */
static uint32_t choose_options(struct ptl_ni *ni, uint32_t best)
{
	struct ptl_view *v = &ni->view;
	struct ptl_region *r = v->r;

	if (best < v->mds && !(v->slot[best].md.state & PTL_OBJ_LIVE))
		return best;
	if (r->md_free != PTL_NIL)
		return r->md_free;
	for (;;) {
		/* half of the table is left to entries, as long as it can grow */
		bool may_grow = v->mds < (uint32_t)v->limits.max_mds;
		uint32_t least = may_grow ? v->mds / 2 : 0;

		while (r->md_low > least)
			if (!(v->slot[--r->md_low].md.state & PTL_OBJ_LIVE))
				return r->md_low;
		if (!may_grow || !ptl_grow_slots(v))
			break;
	}
	while (r->md_low)
		if (!(v->slot[--r->md_low].md.state & PTL_OBJ_LIVE))
			return r->md_low;
	return PTL_NIL;
}

static uint32_t md_alloc(struct ptl_ni *ni, uint32_t best)
{
	struct ptl_region *r = ni->view.r;
	uint64_t *sr = r->stat.sr;
	uint32_t i = choose_options(ni, best);
	struct ptl_md *md;

	if (i == PTL_NIL)
		return i;
	md = &ni->view.slot[i].md;
	if (md->state & PTL_OBJ_FREE)
		take_free_md(&ni->view, i);
	else if (!md->state) /* never used */
		md->state = ni->gen;
	if (i >= r->md_high && i < r->md_low)
		r->md_high = i + 1;
	sr[PTL_SR_MDS_ALLOC]++;
	if (++sr[PTL_SR_MDS_CUR] > sr[PTL_SR_MDS_MAX])
		sr[PTL_SR_MDS_MAX] = sr[PTL_SR_MDS_CUR];
	return i;
}

/* Undo md_alloc(), when filling the MD failed. */
static void md_discard(struct ptl_ni *ni, uint32_t i)
{
	ni->view.slot[i].md.state &= 0xff00;
	ptl_md_free(&ni->engine, i);
	ni->view.r->stat.sr[PTL_SR_MDS_ALLOC]--;
	ni->view.r->stat.sr[PTL_SR_MDS_CUR]--;
}

/* Index of the queue that an MD names, PTL_NIL for none. P3.3 §3.10.1: of the same interface. */
static int eq_index(struct ptl_ni *ni, ptl_handle_eq_t handle, uint32_t *index)
{
	*index = PTL_NIL;
	if (handle == PTL_EQ_NONE)
		return PTL_OK;
	if (handle >> 28 != (PTL_KIND_EQ << 2 | ni->index))
		return ptl_ni_of(handle, PTL_KIND_EQ) ? PTL_MD_ILLEGAL : PTL_EQ_INVALID;
	if (!ptl_eq_of(ni, handle)) /* an impossible generation is no queue's, either */
		return PTL_EQ_INVALID;
	*index = ptl_handle_index(handle);
	return PTL_OK;
}

static bool bad_span(const void *start, uint64_t length)
{
	return length &&
	       (!start || length > PTL_MAX_TRANS_SZ || (uintptr_t)start + length < length);
}

/* Check the user's memory, and give its length in bytes. */
static int md_span(const struct ptl_ni *ni, const ptl_md_t *user, uint64_t *length)
{
	const ptl_md_iovec_t *iov = user->start;

	if (!(user->options & PTL_MD_IOVEC)) {
		*length = user->length;
		return bad_span(user->start, user->length) ? PTL_MD_ILLEGAL : PTL_OK;
	}
	if (user->length > (uint64_t)ni->view.limits.max_md_iovecs || (user->length && !iov))
		return PTL_MD_ILLEGAL;
	*length = 0;
	for (uint64_t i = 0; i < user->length; i++) {
		*length += iov[i].iov_len;
		if (bad_span(iov[i].iov_base, iov[i].iov_len) || *length > PTL_MAX_TRANS_SZ)
			return PTL_MD_ILLEGAL;
	}
	return PTL_OK;
}

/* Find an arena block for the user's vector. 0: there is no vector, or the slot's present
 * block is large enough. */
static inline int find_md_room(struct ptl_ni *ni, uint32_t i, const ptl_md_t *user, uint64_t *block,
			       uint64_t *size)
{
	*block = 0;
	*size = user->length * sizeof(ptl_md_iovec_t);
	if (!(user->options & PTL_MD_IOVEC) || *size <= ni->view.more[i].iov_size)
		return PTL_OK;
	*block = ptl_arena_alloc(&ni->arena, &ni->view, size);
	return *block ? PTL_OK : PTL_NO_SPACE;
}

/* Give the block of find_md_room() to the slot, which keeps it from one user to the next. */
static inline void take_room(struct ptl_ni *ni, uint32_t i, uint64_t block, uint64_t size)
{
	struct ptl_md_more *md = &ni->view.more[i];

	if (!block)
		return;
	ptl_arena_free(&ni->arena, &ni->view, md->iov_block, md->iov_size);
	md->iov_block = block;
	md->iov_size = size;
}

static void keep_vector(struct ptl_ni *ni, uint32_t i, const ptl_md_t *user)
{
	uint64_t block = ni->view.more[i].iov_block;

	if (user->length)
		memcpy(ptl_arena_at(&ni->view, block), user->start,
		       user->length * sizeof(ptl_md_iovec_t));
	ni->view.slot[i].md.start = block;
}

static void count_alignment(struct ptl_ni *ni, const void *start)
{
	unsigned int zeros = (unsigned int)__builtin_ctzll((uintptr_t)start | 128);

	if (zeros >= 3)
		ni->view.r->stat.sr[PTL_SR_MD_ALIGN_128 + 7 - zeros]++;
}

/* Call after take_room(). */
static inline void fill_md(struct ptl_ni *ni, uint32_t i, const ptl_md_t *user, uint32_t eq,
			   uint64_t length)
{
	struct ptl_md *md = &ni->view.slot[i].md;
	uint32_t flags = md->state & ~(PTL_OBJ_INACTIVE | PTL_OBJ_UNLINKING);

	if (user->options & PTL_MD_IOVEC)
		keep_vector(ni, i, user);
	else
		md->start = (uintptr_t)user->start;
	md->length = length;
	md->local_offset = 0;
	md->max_size = user->max_size;
	md->user_ptr = (uintptr_t)user->user_ptr;
	md->threshold = user->threshold >= 0                   ? user->threshold
			: user->threshold == PTL_MD_THRESH_INF ? PTL_MD_THRESH_INF
							       : 0;
	md->options = user->options;
	md->eq = eq;
	ni->view.more[i].user_start = (uintptr_t)user->start;
	ni->view.more[i].user_length = user->length;
	ni->view.more[i].filled = ++ni->view.r->md_serial;
	md->state = flags | (md->threshold == 0 ? PTL_OBJ_INACTIVE : 0);
}

int ptl_md_make(struct ptl_ni *ni, uint32_t best, const ptl_md_t *user, ptl_unlink_t unlink_op,
		uint32_t *index)
{
	struct ptl_md *md;
	uint32_t eq, i;
	uint64_t length, block, size;
	int err = md_span(ni, user, &length);

	if (err == PTL_OK)
		err = eq_index(ni, user->eq_handle, &eq);
	if (err != PTL_OK)
		return err;
	i = md_alloc(ni, best);
	if (i == PTL_NIL)
		return PTL_NO_SPACE;
	md = &ni->view.slot[i].md;
	md->state = (md->state & 0xff00) | PTL_OBJ_LIVE;
	if (unlink_op == PTL_UNLINK || user->options & PTL_MD_FLAG_AUTO_UNLINK)
		md->state |= PTL_OBJ_UNLINK;
	md->me = PTL_NIL;
	md->pending = 0;
	err = find_md_room(ni, i, user, &block, &size);
	if (err != PTL_OK) {
		md_discard(ni, i);
		return err;
	}
	take_room(ni, i, block, size);
	fill_md(ni, i, user, eq, length);
	ni->view.more[i].serial = ni->view.more[i].filled;
	if (eq != PTL_NIL)
		ni->view.eq[eq].refs++;
	if (!(user->options & PTL_MD_IOVEC))
		count_alignment(ni, user->start);
	if (ptl_debugs(ni, PTL_DBG_MD | PTL_DBG_MEMORY))
		ptl_debug(ni, "MD %08x: %p, %llu bytes, options %#x, threshold %d",
			  ptl_md_handle(ni, i), user->start, (unsigned long long)length,
			  user->options, user->threshold);
	*index = i;
	return PTL_OK;
}

/* ---- attach, bind, unlink -------------------------------------------------------------------- */

int PtlMDAttach(ptl_handle_me_t me_handle, ptl_md_t md, ptl_unlink_t unlink_op,
		ptl_handle_md_t *md_handle)
{
	struct ptl_ni *ni;
	struct ptl_me *me;
	uint32_t i;
	int err;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(me_handle, PTL_KIND_ME);
	if (!ni)
		return PTL_ME_INVALID;
	me = ptl_me_of(ni, me_handle);
	if (!me)
		err = PTL_ME_INVALID;
	else if (me->md != PTL_NIL)
		err = PTL_ME_IN_USE;
	else
		err = ptl_md_make(ni, ptl_handle_index(me_handle), &md, unlink_op, &i);
	if (err == PTL_OK) {
		ni->view.slot[i].md.me = ptl_handle_index(me_handle);
		me->md = i;
		if (md_handle)
			*md_handle = ptl_md_handle(ni, i);
	}
	ptl_leave(ni);
	return err;
}

int PtlMDBind(ptl_handle_ni_t ni_handle, ptl_md_t md, ptl_unlink_t unlink_op,
	      ptl_handle_md_t *md_handle)
{
	struct ptl_ni *ni;
	uint32_t i;
	int err;

	if (!md_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	err = ptl_md_make(ni, PTL_NIL, &md, unlink_op, &i);
	if (err == PTL_OK)
		*md_handle = ptl_md_handle(ni, i);
	ptl_leave(ni);
	return err;
}

int PtlMDUnlink(ptl_handle_md_t md_handle)
{
	struct ptl_ni *ni;
	struct ptl_md *md;
	int err = PTL_OK;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(md_handle, PTL_KIND_MD);
	if (!ni)
		return PTL_MD_INVALID;
	if (ptl_debugs(ni, PTL_DBG_MD | PTL_DBG_UNLINK))
		ptl_debug(ni, "MD %08x to be unlinked", md_handle);
	md = ptl_md_of(ni, md_handle);
	if (!md) {
		err = PTL_MD_INVALID;
	} else if (md->pending) {
		err = PTL_MD_IN_USE;
	} else {
		ptl_engine_unlink_event(&ni->engine, ptl_handle_index(md_handle));
		ptl_md_release(&ni->engine, ptl_handle_index(md_handle));
	}
	ptl_leave(ni);
	return err;
}

/* ---- update ---------------------------------------------------------------------------------- */

/* The entries of a vector MD go to the array that old->start points to, if the caller gave one. */
static void show_md(struct ptl_ni *ni, uint32_t i, ptl_md_t *old)
{
	const struct ptl_md *md = &ni->view.slot[i].md;
	const struct ptl_md_more *more = &ni->view.more[i];

	if (md->options & PTL_MD_IOVEC && old->options & PTL_MD_IOVEC && old->start) {
		uint64_t n = old->length < more->user_length ? old->length : more->user_length;

		memcpy(old->start, ptl_arena_at(&ni->view, more->iov_block),
		       n * sizeof(ptl_md_iovec_t));
	}
	old->start = (void *)(uintptr_t)more->user_start;
	old->length = more->user_length;
	old->threshold = md->threshold;
	old->max_size = md->max_size;
	old->options = md->options;
	old->user_ptr = (void *)(uintptr_t)md->user_ptr;
	old->eq_handle = md->eq == PTL_NIL ? PTL_EQ_NONE
					   : ptl_handle(PTL_KIND_EQ, ni->index, md->eq,
							ni->view.eq[md->eq].state);
}

bool ptl_eq_idle(struct ptl_ni *ni, ptl_handle_eq_t handle, int *err)
{
	struct ptl_eq *eq;
	uint32_t i;

	*err = PTL_OK;
	if (handle == PTL_EQ_NONE)
		return true;
	if (eq_index(ni, handle, &i) != PTL_OK) {
		*err = PTL_EQ_INVALID;
		return false;
	}
	eq = &ni->view.eq[i];
	return eq->head == eq->tail && eq->owed == 0;
}

static int update(struct ptl_ni *ni, uint32_t i, ptl_md_t *old, const ptl_md_t *user)
{
	struct ptl_md *md = &ni->view.slot[i].md;
	uint64_t length, block, size;
	ptl_md_t before;
	uint32_t eq;
	int err = md_span(ni, user, &length);

	if (err == PTL_OK)
		err = eq_index(ni, user->eq_handle, &eq);
	if (err != PTL_OK)
		return err;
	if (md->pending)
		return PTL_MD_NO_UPDATE;
	err = find_md_room(ni, i, user, &block, &size);
	if (err != PTL_OK)
		return err;
	if (old) {
		before = *old;
		show_md(ni, i, &before);
	}
	take_room(ni, i, block, size);
	if (md->eq != PTL_NIL)
		ni->view.eq[md->eq].refs--;
	if (eq != PTL_NIL)
		ni->view.eq[eq].refs++;
	fill_md(ni, i, user, eq, length);
	if (old)
		*old = before;
	return PTL_OK;
}

int PtlMDUpdate(ptl_handle_md_t md_handle, ptl_md_t *old_md, ptl_md_t *new_md,
		ptl_handle_eq_t eq_handle)
{
	uint32_t i = ptl_handle_index(md_handle);
	struct ptl_ni *ni;
	int err = PTL_OK;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(md_handle, PTL_KIND_MD);
	if (!ni)
		return PTL_MD_INVALID;
	if (!ptl_md_of(ni, md_handle))
		err = PTL_MD_INVALID;
	else if (!new_md) {
		if (old_md)
			show_md(ni, i, old_md);
	} else if (ptl_eq_idle(ni, eq_handle, &err))
		err = update(ni, i, old_md, new_md);
	else if (err == PTL_OK)
		err = PTL_MD_NO_UPDATE;
	ptl_leave(ni);
	return err;
}
