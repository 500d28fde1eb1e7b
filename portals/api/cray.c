/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The Cray XT additions that make a match entry and its memory descriptor in one step.
 */
#include "portals/api/objects.h"

struct both {
	ptl_process_id_t match_id;
	ptl_match_bits_t match_bits, ignore_bits;
	ptl_unlink_t unlink;
	ptl_ins_pos_t position;
	const ptl_md_t *md;
	ptl_unlink_t unlink_op;
};

/* Make an ME on `pt_index` (at `base` if not PTL_NIL) and its MD: both or neither. Locked. */
static int make_both(struct ptl_ni *ni, uint32_t pt_index, uint32_t base, const struct both *b,
		     ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle)
{
	uint32_t me, md;
	int err = ptl_md_make(ni, ptl_me_next(ni), b->md, b->unlink_op, &md);

	if (err != PTL_OK)
		return err;
	err = ptl_me_make(ni, pt_index, base, b->match_id, b->match_bits, b->ignore_bits, b->unlink,
			  b->position, &me);
	if (err != PTL_OK) {
		ptl_md_release(&ni->engine, md);
		return err;
	}
	ni->view.slot[me].me.md = md;
	ni->view.slot[md].md.me = me;
	*me_handle = ptl_me_handle(ni, me);
	if (md_handle)
		*md_handle = ptl_md_handle(ni, md);
	return PTL_OK;
}

int PtlMEMDAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_process_id_t match_id,
		  ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		  ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t unlink_op,
		  ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle)
{
	struct both b = { match_id, match_bits, ignore_bits, unlink, position, &md, unlink_op };
	struct ptl_ni *ni;
	int err = PTL_PT_INDEX_INVALID;

	if (!me_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	if (pt_index <= (uint32_t)ni->view.limits.max_pt_index)
		err = make_both(ni, pt_index, PTL_NIL, &b, me_handle, md_handle);
	ptl_leave(ni);
	return err;
}

/* Insert and Post: at `base`, and only if `eq_handle` is PTL_EQ_NONE or idle. `ni` is entered;
 * this leaves it. */
static int insert(struct ptl_ni *ni, ptl_handle_me_t base, const struct both *b,
		  ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle, ptl_handle_eq_t eq_handle)
{
	struct ptl_me *at = ptl_ni_of(base, PTL_KIND_ME) == ni ? ptl_me_of(ni, base) : NULL;
	int err = PTL_ME_INVALID;

	if (at && ptl_eq_idle(ni, eq_handle, &err))
		err = make_both(ni, at->pt_index, ptl_handle_index(base), b, me_handle, md_handle);
	else if (at && err == PTL_OK)
		err = PTL_MD_NO_UPDATE;
	ptl_leave(ni);
	return err;
}

int PtlMEMDInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
		  ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
		  ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_me_t *me_handle,
		  ptl_handle_md_t *md_handle)
{
	struct both b = { match_id, match_bits, ignore_bits, unlink, position, &md, unlink_op };
	struct ptl_ni *ni;

	if (!me_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(base, PTL_KIND_ME);
	if (!ni)
		return PTL_ME_INVALID;
	return insert(ni, base, &b, me_handle, md_handle, PTL_EQ_NONE);
}

int PtlMEMDPost(ptl_handle_ni_t ni_handle, ptl_handle_me_t base, ptl_process_id_t match_id,
		ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t unlink_op,
		ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle, ptl_handle_eq_t eq_handle)
{
	struct both b = { match_id, match_bits, ignore_bits, unlink, position, &md, unlink_op };
	struct ptl_ni *ni;

	if (!me_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	return insert(ni, base, &b, me_handle, md_handle, eq_handle);
}
