/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The table of interfaces, the ways for calls to enter and leave one, and the objects that
 * handles name.
 */
#include "portals/engine/ni.h"

#include "nal/nal.h"

struct ptl_ni *_Atomic ptl_ni_table[PTL_MAX_INTERFACES];
atomic_bool ptl_initialized;

bool ptl_is_init(void)
{
	return atomic_load_explicit(&ptl_initialized, memory_order_acquire);
}

/* ---- entering and leaving -------------------------------------------------------------------- */

struct ptl_ni *ptl_ni_of(ptl_handle_any_t handle, enum ptl_kind kind)
{
	struct ptl_ni *ni;

	if (handle >> 30 != kind || (handle & 0xff) == 0xff)
		return NULL;
	ni = atomic_load_explicit(&ptl_ni_table[handle >> 28 & 3], memory_order_acquire);
	if (ni && kind == PTL_KIND_NI && handle != ptl_ni_handle(ni))
		return NULL;
	return ni;
}

struct ptl_ni *ptl_enter(ptl_handle_any_t handle, enum ptl_kind kind)
{
	struct ptl_ni *ni = ptl_ni_of(handle, kind);

	if (!ni)
		return NULL;
	ptl_lock(ni);
	return ni;
}

static inline void leave_ni(struct ptl_ni *ni, bool lazily)
{
	ni->nal->leave(ni, lazily);
	if (atomic_load_explicit(&ni->handlers, memory_order_relaxed))
		ni->run_handlers(ni);
}

void ptl_leave(struct ptl_ni *ni)
{
	leave_ni(ni, false);
}

void ptl_leave_lazily(struct ptl_ni *ni)
{
	leave_ni(ni, true);
}

static bool live(uint32_t state, ptl_handle_any_t handle)
{
	return state & PTL_OBJ_LIVE && ptl_obj_gen(state) == (handle & 0xff);
}

struct ptl_me *ptl_me_of(struct ptl_ni *ni, ptl_handle_me_t handle)
{
	uint32_t i = ptl_handle_index(handle);

	if (i >= ni->view.r->me_high || !live(ni->view.slot[i].me.state, handle))
		return NULL;
	return &ni->view.slot[i].me;
}

struct ptl_md *ptl_md_of(struct ptl_ni *ni, ptl_handle_md_t handle)
{
	const struct ptl_region *r = ni->view.r;
	uint32_t i = ptl_handle_index(handle);

	if (i >= ni->view.mds || (i >= r->md_high && i < r->md_low))
		return NULL;
	/* an MD being unlinked takes no more calls, but its handle is valid until its last event */
	if (!live(ni->view.slot[i].md.state, handle))
		return NULL;
	return &ni->view.slot[i].md;
}

struct ptl_eq *ptl_eq_of(struct ptl_ni *ni, ptl_handle_eq_t handle)
{
	uint32_t i = ptl_handle_index(handle);

	if (i >= ni->view.r->stat.eq_high || !live(ni->view.eq[i].state, handle))
		return NULL;
	return &ni->view.eq[i];
}

bool ptl_names_object(struct ptl_ni *ni, ptl_handle_any_t handle)
{
	switch ((enum ptl_kind)(handle >> 30)) {
	case PTL_KIND_NI:
		return handle == ptl_ni_handle(ni);
	case PTL_KIND_ME:
		return ptl_me_of(ni, handle);
	case PTL_KIND_MD:
		return ptl_md_of(ni, handle);
	case PTL_KIND_EQ:
		return ptl_eq_of(ni, handle);
	}
	return false;
}

/* ---- waiting, and not taking in -------------------------------------------------------------- */

uint64_t ptl_nets_arm(struct ptl_ni *ni)
{
	uint64_t until = UINT64_MAX;

	for (uint32_t k = 0; k < ni->nnets; k++) {
		uint64_t at = ni->net[k].nal->arm(ni);

		until = at < until ? at : until;
	}
	return until;
}

bool ptl_queues_behind(const struct ptl_ni *ni)
{
	for (uint32_t i = 0; i < ni->view.r->stat.eq_high; i++) {
		const struct ptl_eq *eq = &ni->view.eq[i];

		if (eq->state & PTL_OBJ_HANDLER && eq->tail - ni->handled[i] > eq->mask / 2)
			return true;
	}
	return false;
}
