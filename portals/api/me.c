/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The calls on match entries and access control (3.3 sections 3.9 and 3.12).
 */
#include "portals/api/objects.h"
#include "portals/engine/debug.h"

static uint32_t me_alloc(struct ptl_ni *ni)
{
	struct ptl_region *r = ni->view.r;
	uint64_t *sr = r->stat.sr;
	uint32_t i = ptl_me_next(ni);

	if (i >= ni->view.mes &&
	    (i >= (uint32_t)ni->view.limits.max_mes || !ptl_grow_slots(&ni->view)))
		return PTL_NIL;
	if (i < r->me_high)
		r->me_free = ni->view.slot[i].me.chain_next;
	else
		ni->view.slot[r->me_high++].me.state = ni->gen;
	sr[PTL_SR_MES_ALLOC]++;
	if (++sr[PTL_SR_MES_CUR] > sr[PTL_SR_MES_MAX])
		sr[PTL_SR_MES_MAX] = sr[PTL_SR_MES_CUR];
	return i;
}

int ptl_me_make(struct ptl_ni *ni, uint32_t pt_index, uint32_t base, ptl_process_id_t match_id,
		ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		ptl_ins_pos_t position, uint32_t *index)
{
	struct ptl_me *me;
	uint32_t i;

	if (ni->view.pt[pt_index].count >= (uint32_t)ni->view.limits.max_me_list)
		return PTL_ME_LIST_TOO_LONG;
	i = me_alloc(ni);
	if (i == PTL_NIL)
		return PTL_NO_SPACE;
	me = &ni->view.slot[i].me;
	me->match_bits = match_bits;
	me->ignore_bits = ignore_bits;
	me->id = match_id;
	me->pt_index = (uint16_t)pt_index;
	me->md = PTL_NIL;
	me->state =
		(me->state & 0xff00) | PTL_OBJ_LIVE | (unlink == PTL_UNLINK ? PTL_OBJ_UNLINK : 0);
	ptl_match_link(&ni->engine, i, base, position);
	if (ptl_debugs(ni, PTL_DBG_ME))
		ptl_debug(ni, "ME %08x on portal %u, bits %016llx ignoring %016llx",
			  ptl_me_handle(ni, i), pt_index, (unsigned long long)match_bits,
			  (unsigned long long)ignore_bits);
	*index = i;
	return PTL_OK;
}

int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_process_id_t match_id,
		ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		ptl_ins_pos_t position, ptl_handle_me_t *me_handle)
{
	struct ptl_ni *ni;
	uint32_t i;
	int err;

	if (!me_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	if (pt_index > (uint32_t)ni->view.limits.max_pt_index)
		err = PTL_PT_INDEX_INVALID;
	else
		err = ptl_me_make(ni, pt_index, PTL_NIL, match_id, match_bits, ignore_bits, unlink,
				  position, &i);
	if (err == PTL_OK)
		*me_handle = ptl_me_handle(ni, i);
	ptl_leave(ni);
	return err;
}

int PtlMEAttachAny(ptl_handle_ni_t ni_handle, ptl_pt_index_t *pt_index, ptl_process_id_t match_id,
		   ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		   ptl_handle_me_t *me_handle)
{
	struct ptl_ni *ni;
	uint32_t i, pt = 0;
	int err;

	if (!me_handle || !pt_index)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	while (pt <= (uint32_t)ni->view.limits.max_pt_index && ni->view.pt[pt].count)
		pt++;
	if (pt > (uint32_t)ni->view.limits.max_pt_index)
		err = PTL_PT_FULL;
	else
		err = ptl_me_make(ni, pt, PTL_NIL, match_id, match_bits, ignore_bits, unlink,
				  PTL_INS_AFTER, &i);
	if (err == PTL_OK) {
		*pt_index = pt;
		*me_handle = ptl_me_handle(ni, i);
	}
	ptl_leave(ni);
	return err;
}

int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
		ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
		ptl_handle_me_t *me_handle)
{
	struct ptl_me *at;
	struct ptl_ni *ni;
	uint32_t i;
	int err;

	if (!me_handle)
		return PTL_SEGV;
	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(base, PTL_KIND_ME);
	if (!ni)
		return PTL_ME_INVALID;
	at = ptl_me_of(ni, base);
	if (!at)
		err = PTL_ME_INVALID;
	else
		err = ptl_me_make(ni, at->pt_index, ptl_handle_index(base), match_id, match_bits,
				  ignore_bits, unlink, position, &i);
	if (err == PTL_OK)
		*me_handle = ptl_me_handle(ni, i);
	ptl_leave(ni);
	return err;
}

int PtlMEUnlink(ptl_handle_me_t me_handle)
{
	struct ptl_me *me;
	struct ptl_ni *ni;
	int err = PTL_OK;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(me_handle, PTL_KIND_ME);
	if (!ni)
		return PTL_ME_INVALID;
	if (ptl_debugs(ni, PTL_DBG_ME | PTL_DBG_UNLINK))
		ptl_debug(ni, "ME %08x to be unlinked", me_handle);
	me = ptl_me_of(ni, me_handle);
	if (!me) {
		err = PTL_ME_INVALID;
	} else if (me->md == PTL_NIL) {
		ptl_me_release(&ni->engine, ptl_handle_index(me_handle));
	} else if (ni->view.slot[me->md].md.pending) {
		err = PTL_ME_IN_USE;
	} else {
		uint32_t md = me->md;

		me->state &= ~PTL_OBJ_UNLINK; /* freed here, not by the release of its MD */
		ptl_md_release(&ni->engine, md);
		ptl_me_release(&ni->engine, ptl_handle_index(me_handle));
	}
	ptl_leave(ni);
	return err;
}

static enum ptl_ac_only only(ptl_process_id_t id, ptl_uid_t uid, ptl_jid_t jid,
			     ptl_pt_index_t pt_index)
{
	if (id.nid != PTL_NID_ANY || id.pid != PTL_PID_ANY || pt_index != PTL_PT_INDEX_ANY ||
	    (uid == PTL_UID_ANY) == (jid == PTL_JID_ANY))
		return PTL_AC_ALL;
	return uid == PTL_UID_ANY ? PTL_AC_JID : PTL_AC_UID;
}

int PtlACEntry(ptl_handle_ni_t ni_handle, ptl_ac_index_t ac_index, ptl_process_id_t match_id,
	       ptl_uid_t user_id, ptl_jid_t job_id, ptl_pt_index_t pt_index)
{
	struct ptl_ni *ni;
	int err = PTL_OK;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	if (ac_index > (uint32_t)ni->view.limits.max_ac_index)
		err = PTL_AC_INDEX_INVALID;
	else if (pt_index != PTL_PT_INDEX_ANY && pt_index > (uint32_t)ni->view.limits.max_pt_index)
		err = PTL_PT_INDEX_INVALID;
	else
		ni->view.ac[ac_index] = (struct ptl_ac){
			.id = match_id,
			.uid = user_id,
			.jid = job_id,
			.pt_index = pt_index,
			.only = only(match_id, user_id, job_id, pt_index),
		};
	ptl_leave(ni);
	return err;
}
