/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Temporary buffers of schedules. Small ones are inside the schedule. Some large ones are kept
 * for the next schedule, as fresh memory from the kernel costs as much as a message.
 */
#include "mpi_shim/coll/schedule_memory.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"

/* ---- kept blocks ----------------------------------------------------------------------------- */

#define KEPT       16
#define KEPT_LEAST ((size_t)32 << 10) /* malloc keeps shorter ones well enough */
#ifdef __SANITIZE_ADDRESS__
#define KEPT_BYTES ((size_t)0) /* so that it sees a use after the end */
#else
#define KEPT_BYTES ((size_t)16 << 20) /* of all of them */
#endif
#define WASTE 2 /* most times the requested length that a kept one may have */

struct block {
	size_t bytes;
	max_align_t data[];
};

/* Blocks that nobody uses now; the one returned first is at the front. */
static struct {
	struct block *block[KEPT];
	int n;
	size_t bytes;
} kept;

static struct block *remove_kept(int i)
{
	struct block *b = kept.block[i];

	kept.bytes -= b->bytes;
	kept.n--;
	memmove(&kept.block[i], &kept.block[i + 1], (size_t)(kept.n - i) * sizeof(struct block *));
	return b;
}

void mpi_schedules_fini(void)
{
	while (kept.n)
		free(remove_kept(0));
}

static void *take_kept_heap(size_t bytes)
{
	struct block *b;

	/* the one returned last is in the caches */
	for (int i = kept.n - 1; i >= 0; i--)
		if (kept.block[i]->bytes >= bytes && kept.block[i]->bytes / WASTE <= bytes)
			return remove_kept(i)->data;
	if (bytes > PTRDIFF_MAX - sizeof(*b))
		return NULL;
	b = malloc(sizeof(*b) + bytes);
	if (!b && kept.n) {
		mpi_schedules_fini();
		b = malloc(sizeof(*b) + bytes);
	}
	if (!b)
		return NULL;
	b->bytes = bytes;
	return b->data;
}

static void give_memory_back(void *memory)
{
	struct block *b = (struct block *)(void *)((char *)memory - offsetof(struct block, data));

	if (b->bytes < KEPT_LEAST || b->bytes > KEPT_BYTES) {
		free(b);
		return;
	}
	while (kept.n == KEPT || kept.bytes + b->bytes > KEPT_BYTES)
		free(remove_kept(0));
	kept.block[kept.n++] = b;
	kept.bytes += b->bytes;
}

/* ---- of one schedule ------------------------------------------------------------------------- */

void mpi_schedule_memory_init(struct mpi_schedule *p)
{
	p->heap = p->few_heaps;
	p->heaps = 0;
	p->heap_room = MPI_SCHEDULE_HEAPS;
	p->small_used = 0;
}

void mpi_schedule_memory_fini(struct mpi_schedule *p)
{
	for (int i = 0; i < p->heaps; i++)
		give_memory_back(p->heap[i]);
	if (p->heap != p->few_heaps)
		free(p->heap);
}

static bool make_room_for_heap(struct mpi_schedule *p)
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

static char *memory_ended(struct mpi_schedule *p, int rc)
{
	if (!p->now)
		return NULL;
	mpi_schedule_fail(p, rc);
	return p->small;
}

char *mpi_schedule_bytes(struct mpi_schedule *p, MPI_Count bytes)
{
	char *small = p->small + p->small_used;
	void *memory = NULL;

	if (bytes >= 0 && bytes <= (MPI_Count)(MPI_SCHEDULE_SMALL - p->small_used)) {
		p->small_used += ((size_t)bytes + 63) & ~(size_t)63;
		return small;
	}
	if (bytes >= 0 && make_room_for_heap(p))
		memory = take_kept_heap((size_t)bytes);
	if (!memory)
		return memory_ended(p, mpi_fail(MPI_ERR_NO_MEM,
						"no memory for a temporary buffer of %lld bytes",
						(long long)bytes));
	p->heap[p->heaps++] = memory;
	return memory;
}

char *mpi_schedule_typed(struct mpi_schedule *p, MPI_Count count, const struct mpi_type *type)
{
	MPI_Aint first = type->true_lb, span, steps;
	char *at;

	/* from the lowest byte of any element to the highest; extents may be negative */
	if (count == 0 || type->true_extent == 0)
		return mpi_schedule_bytes(p, 0);
	if (__builtin_mul_overflow(count - 1, type->extent, &steps) ||
	    __builtin_add_overflow(steps < 0 ? -steps : steps, type->true_extent, &span))
		return memory_ended(p, mpi_fail(MPI_ERR_NO_MEM,
						"no memory for a temporary copy of %lld elements",
						(long long)count));
	if (steps < 0)
		first += steps;
	at = mpi_schedule_bytes(p, span);
	/* not a pointer into the buffer any more: elements reach into it by their lower bound */
	return at ? (char *)((uintptr_t)at - (uintptr_t)first) : NULL;
}
