/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Helpers that the calls on objects share.
 */
#ifndef PTL_OBJECTS_H
#define PTL_OBJECTS_H

#include "portals/engine/ni.h"

/* Make a descriptor, in slot `best` if that is free (struct ptl_slot). ptl_eq_idle: is the
 * queue without events and operations in progress? False with *err PTL_OK: it is not. Locked. */
int ptl_md_make(struct ptl_ni *ni, uint32_t best, const ptl_md_t *user, ptl_unlink_t unlink_op,
		uint32_t *index);
bool ptl_eq_idle(struct ptl_ni *ni, ptl_handle_eq_t handle, int *err);

/* Make a match entry, for PtlMEAttach and PtlMEInsert. Locked. */
int ptl_me_make(struct ptl_ni *ni, uint32_t pt_index, uint32_t base, ptl_process_id_t match_id,
		ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink,
		ptl_ins_pos_t position, uint32_t *index);

/* The slot that the next new entry gets. */
static inline uint32_t ptl_me_next(const struct ptl_ni *ni)
{
	const struct ptl_region *r = ni->view.r;

	return r->me_free != PTL_NIL ? r->me_free : r->me_high;
}

/* See ptl_ni.run_handlers. */
void ptl_run_handlers(struct ptl_ni *ni);

#endif
