/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Dumps of an interface's tables, as the reference implementation offers them (p3api/debug.h).
 */
#include <inttypes.h>

#include "portals/engine/debug.h"

static void dump_md(const struct ptl_ni *ni, uint32_t i)
{
	const struct ptl_md *md = &ni->view.slot[i].md;

	fprintf(ptl_debug_file(),
		"    MD %08" PRIx32 ": start %#" PRIx64 " length %" PRIu64 " offset %" PRIu64
		" threshold %" PRId32 " options %#" PRIx32 " pending %" PRIu32 "%s\n",
		ptl_md_handle(ni, i), ni->view.more[i].user_start, md->length, md->local_offset,
		md->threshold, md->options, md->pending,
		md->state & PTL_OBJ_INACTIVE ? " inactive" : "");
}

static void dump_me(const struct ptl_ni *ni, uint32_t i)
{
	const struct ptl_me *me = &ni->view.slot[i].me;

	fprintf(ptl_debug_file(),
		"  ME %08" PRIx32 ": portal %" PRIu32 " from nid %#" PRIx32 " pid %" PRIu32
		" bits %016" PRIx64 " ignoring %016" PRIx64 "\n",
		ptl_me_handle(ni, i), me->pt_index, me->id.nid, me->id.pid, me->match_bits,
		me->ignore_bits);
	if (me->md != PTL_NIL)
		dump_md(ni, me->md);
}

int PtlTblDump(ptl_handle_ni_t ni_handle, int pt_index)
{
	struct ptl_ni *ni;
	int err = PTL_PT_INDEX_INVALID;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	if (pt_index >= 0 && pt_index <= ni->view.limits.max_pt_index) {
		err = PTL_OK;
		fprintf(ptl_debug_file(), "portal %d: %" PRIu32 " entries\n", pt_index,
			ni->view.pt[pt_index].count);
		for (uint32_t i = ni->view.pt[pt_index].head; i != PTL_NIL;
		     i = ni->view.slot[i].me.list_next)
			dump_me(ni, i);
	}
	ptl_leave(ni);
	return err;
}

int PtlMEDump(ptl_handle_me_t me_handle)
{
	struct ptl_ni *ni;
	int err = PTL_ME_INVALID;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(me_handle, PTL_KIND_ME);
	if (!ni)
		return PTL_ME_INVALID;
	if (ptl_me_of(ni, me_handle)) {
		err = PTL_OK;
		dump_me(ni, ptl_handle_index(me_handle));
	}
	ptl_leave(ni);
	return err;
}

int PtlNIEqDump(ptl_handle_ni_t ni_handle)
{
	struct ptl_ni *ni;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	ni = ptl_enter(ni_handle, PTL_KIND_NI);
	if (!ni)
		return PTL_NI_INVALID;
	for (uint32_t i = 0; i < ni->view.r->stat.eq_high; i++) {
		const struct ptl_eq *eq = &ni->view.eq[i];

		if (eq->state & PTL_OBJ_LIVE)
			fprintf(ptl_debug_file(),
				"EQ %08" PRIx32 ": %" PRIu64 " of %" PRIu32 " events, %" PRIu32
				" owed, %" PRIu32 " MDs\n",
				ptl_handle(PTL_KIND_EQ, ni->index, i, eq->state),
				eq->tail - eq->head, eq->mask + 1, eq->owed, eq->refs);
	}
	ptl_leave(ni);
	return PTL_OK;
}
