/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Dynamic windows. Each attached region has its own entry of the portal and a row in a table.
 * The other ranks read the table before they use a region, in mapped memory or through
 * Portals.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/rma.h"

static int check_flavor(const struct mpi_win *win)
{
	if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_RMA_FLAVOR, "the window was not made by MPI_Win_create_dynamic");
}

/* Change a region of the table: see struct mpi_regions. */
static void change_regions(struct mpi_regions *r, struct mpi_region *at, struct mpi_region to)
{
	atomic_fetch_add(&r->after, 1);
	*at = to;
	atomic_fetch_add(&r->before, 1);
}

int mpi_win_attach(struct mpi_win *win, void *base, MPI_Aint size)
{
	struct mpi_regions *r = &win->control->regions;
	struct mpi_region new = { .base = (uintptr_t)base, .size = (uint64_t)size },
			  *free_at = NULL;
	ptl_handle_me_t me;
	int err = check_flavor(win);

	if (err)
		return err;
	if (size < 0)
		return mpi_fail(MPI_ERR_SIZE, "the size %lld is negative", (long long)size);
	if (!base && size > 0)
		return mpi_fail(MPI_ERR_BASE, "the base is a null pointer");
	for (int i = 0; i < MPI_REGIONS_MOST; i++) {
		struct mpi_region *have = &r->region[i];

		if (!have->number) {
			free_at = free_at ? free_at : have;
			continue;
		}
		if (size == 0 ? have->base == new.base && have->size == 0
			      : new.base < have->base + have->size &&
					have->base < new.base + new.size)
			return mpi_fail(MPI_ERR_RMA_ATTACH,
					"the memory overlaps with some that is attached");
	}
	if (!free_at)
		return mpi_fail(MPI_ERR_RMA_ATTACH,
				"%d pieces of memory are attached: there can be no more",
				MPI_REGIONS_MOST);
	err = mpi_rma_expose(base, new.size, &new.number, &me);
	if (err)
		return err;
	new.me = me;
	change_regions(r, free_at, new);
	return MPI_SUCCESS;
}

int mpi_win_detach(struct mpi_win *win, const void *base)
{
	struct mpi_regions *r;
	int err = check_flavor(win);

	if (err)
		return err;
	r = &win->control->regions;
	for (int i = 0; i < MPI_REGIONS_MOST; i++) {
		struct mpi_region *have = &r->region[i];
		ptl_handle_me_t me = have->me;

		if (!have->number || have->base != (uintptr_t)base)
			continue;
		change_regions(r, have, (struct mpi_region){ 0 });
		mpi_rma_hide(me);
		return MPI_SUCCESS;
	}
	return mpi_fail(MPI_ERR_RMA_ATTACH, "no memory is attached at %p", base);
}

void mpi_win_detach_all(struct mpi_win *win)
{
	if (win->flavor != MPI_WIN_FLAVOR_DYNAMIC || !win->control)
		return;
	for (int i = 0; i < MPI_REGIONS_MOST; i++)
		if (win->control->regions.region[i].number)
			mpi_rma_hide(win->control->regions.region[i].me);
}

/* ---- where memory is ------------------------------------------------------------------------- */

static int fetch(struct mpi_win_target *t, struct mpi_rma *op, void *to, size_t bytes)
{
	op->error = mpi_rma_get(op, to, bytes, t->control_number,
				offsetof(struct mpi_win_control, regions));
	return mpi_rma_wait(op);
}

/* Find out whether the target's table has changed since t->regions was read. */
static int has_changed(struct mpi_win *win, struct mpi_win_target *t, bool *changed)
{
	struct mpi_rma *op = mpi_rma_begin(win, (int)(t - win->target));
	uint64_t before;
	int err;

	if (!op)
		return MPI_ERR_NO_MEM;
	err = fetch(t, op, op->few, sizeof(before));
	memcpy(&before, op->few, sizeof(before)); /* records are never freed */
	*changed = before != t->regions->before;
	return err;
}

/* Bring t->regions up to date. A half-changed table is read again. */
static int refresh(struct mpi_win *win, struct mpi_win_target *t)
{
	struct mpi_regions *new;
	bool changed = true;
	int err = MPI_SUCCESS;

	if (t->regions)
		err = has_changed(win, t, &changed);
	if (err || !changed)
		return err;
	/* other threads may read the old table while the new one arrives */
	new = calloc(1, sizeof(*new));
	if (!new)
		return mpi_fail_memory("the memory attached to a window");
	while (!err && changed) {
		struct mpi_rma *op = mpi_rma_begin(win, (int)(t - win->target));

		err = op ? fetch(t, op, new, sizeof(*new)) : MPI_ERR_NO_MEM;
		changed = new->before != new->after;
	}
	if (err) {
		if (err != MPI_ERR_PROC_ABORTED) /* else data may still arrive */
			free(new);
		return err;
	}
	free(t->regions);
	t->regions = new;
	return MPI_SUCCESS;
}

static bool find_region(const struct mpi_regions *r, uint64_t address, size_t element,
			size_t *bytes, uint32_t *number, uint64_t *offset)
{
	for (int i = 0; i < MPI_REGIONS_MOST; i++) {
		const struct mpi_region *have = &r->region[i];
		uint64_t at = address - have->base, there;

		if (!have->number || address < have->base || at > have->size)
			continue;
		there = have->size - at;
		if (there < *bytes && there < element)
			continue;
		if (there < *bytes)
			*bytes = there - there % element;
		*number = have->number;
		*offset = at;
		return true;
	}
	return false;
}

int mpi_win_find_region(struct mpi_win *win, struct mpi_win_target *t, uint64_t address,
			size_t element, size_t *bytes, uint32_t *number, uint64_t *offset)
{
	struct mpi_regions *r = t->control ? &t->control->regions : NULL;
	const size_t wanted = *bytes;
	uint64_t before;
	bool found;
	int err;

	if (r) {
		do {
			before = atomic_load(&r->before);
			*bytes = wanted;
			found = find_region(r, address, element, bytes, number, offset);
			atomic_thread_fence(memory_order_acquire);
		} while (atomic_load(&r->after) != before);
	} else {
		err = refresh(win, t);
		if (err)
			return err;
		found = find_region(t->regions, address, element, bytes, number, offset);
	}
	if (found)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_RMA_RANGE,
			"%llu bytes at address %#llx of rank %d are not in memory that is attached",
			(unsigned long long)wanted, (unsigned long long)address,
			(int)(t - win->target));
}
