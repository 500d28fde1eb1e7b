/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Temporary buffers of plans: small ones lie in the plan, a few large ones are kept for the next plan, as fresh
 * memory from the kernel costs as much as a message.
 */
#include "mpi_shim/plan_memory.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_shim/error.h"

/* ---- kept blocks ------------------------------------------------------------------------------------ */

#define KEPT       2
#define KEPT_BYTES ((MPI_Count)4 << 20)

static struct kept {
	void *memory;
	MPI_Count bytes;
	bool used;
} kept[KEPT];

static void *take(MPI_Count bytes)
{
	for (int i = 0; i < KEPT && bytes <= KEPT_BYTES; i++) {
		struct kept *k = &kept[i];

		if (k->used)
			continue;
		if (k->bytes < bytes) {
			free(k->memory);
			k->memory = malloc((size_t)bytes);
			k->bytes = k->memory ? bytes : 0;
		}
		k->used = k->memory;
		return k->memory;
	}
	return malloc((size_t)bytes);
}

static void give_back(void *memory)
{
	for (int i = 0; i < KEPT && memory; i++) {
		if (kept[i].memory == memory) {
			kept[i].used = false;
			return;
		}
	}
	free(memory);
}

void mpi_plans_fini(void)
{
	for (int i = 0; i < KEPT; i++)
		free(kept[i].memory);
	memset(kept, 0, sizeof(kept));
}

/* ---- of one plan ------------------------------------------------------------------------------------ */

void mpi_plan_memory_init(struct mpi_plan *p)
{
	p->heap = p->few_heaps;
	p->heaps = 0;
	p->heap_room = MPI_PLAN_HEAPS;
	p->small_used = 0;
}

void mpi_plan_memory_fini(struct mpi_plan *p)
{
	for (int i = 0; i < p->heaps; i++)
		give_back(p->heap[i]);
	if (p->heap != p->few_heaps)
		free(p->heap);
}

static bool make_room(struct mpi_plan *p)
{
	int room = 2 * p->heap_room;
	void **more;

	if (p->heaps < p->heap_room)
		return true;
	more = malloc((size_t)room * sizeof(*more));
	if (!more)
		return false;
	memcpy(more, p->heap, (size_t)p->heaps * sizeof(*more));
	if (p->heap != p->few_heaps)
		free(p->heap);
	p->heap = more;
	p->heap_room = room;
	return true;
}

static char *lacking(struct mpi_plan *p, int rc)
{
	if (!p->now)
		return NULL;
	mpi_plan_lose(p, rc);
	return p->small;
}

char *mpi_plan_bytes(struct mpi_plan *p, MPI_Count bytes)
{
	char *small = p->small + p->small_used;
	void *memory = NULL;

	if (bytes >= 0 && bytes <= (MPI_Count)(MPI_PLAN_SMALL - p->small_used)) {
		p->small_used += ((size_t)bytes + 63) & ~(size_t)63;
		return small;
	}
	/* what is written down lives longer than a call: it does not take the kept blocks away */
	if (bytes >= 0 && make_room(p))
		memory = p->now ? take(bytes) : malloc((size_t)bytes);
	if (!memory)
		return lacking(p, mpi_fail(MPI_ERR_NO_MEM,
					   "no memory for a temporary buffer of %lld bytes",
					   (long long)bytes));
	p->heap[p->heaps++] = memory;
	return memory;
}

char *mpi_plan_typed(struct mpi_plan *p, MPI_Count count, const struct mpi_type *type)
{
	MPI_Aint first = type->true_lb, span, steps;
	char *at;

	/* from the lowest byte of any element to the highest; extents may be negative */
	if (count == 0 || type->true_extent == 0)
		return mpi_plan_bytes(p, 0);
	if (__builtin_mul_overflow(count - 1, type->extent, &steps) ||
	    __builtin_add_overflow(steps < 0 ? -steps : steps, type->true_extent, &span))
		return lacking(p, mpi_fail(MPI_ERR_NO_MEM,
					   "no memory for a temporary copy of %lld elements",
					   (long long)count));
	if (steps < 0)
		first += steps;
	at = mpi_plan_bytes(p, span);
	/* not a pointer into the buffer any more: elements reach into it by their lower bound */
	return at ? (char *)((uintptr_t)at - (uintptr_t)first) : NULL;
}
