/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The allocator of the arena (arena.h). The records of parts stand outside of the arena, where
 * writes of peers cannot reach them. Free parts hang in bins by length; neighbours that are free
 * become one part at once.
 */
#include "rwapi_shim/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LINE       64u
#define PAGE       4096u
#define LEAST      ((uint64_t)16 << 20)  /* bytes of address space that are worth a try */
#define COMMIT     ((uint64_t)1 << 20)   /* made usable at a time */
#define GIVE_BACK  ((uint64_t)256 << 10) /* free parts of so many bytes need no memory */
#define SLAB_PARTS 255
#define TRIES      16 /* parts of the bin of the size itself that are looked at */

struct rw_part_slab {
	struct rw_part_slab *next;
	struct rw_part part[SLAB_PARTS];
};

/* ---- records --------------------------------------------------------------------------------- */

static bool make_part_records(struct rw_arena *a)
{
	struct rw_part_slab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return false;
	slab->next = a->slabs;
	a->slabs = slab;
	for (int i = 0; i < SLAB_PARTS; i++) {
		slab->part[i].next = a->spare;
		a->spare = &slab->part[i];
	}
	return true;
}

static void give_part_record(struct rw_arena *a, struct rw_part *part)
{
	part->next = a->spare;
	a->spare = part;
}

/* ---- bins ------------------------------------------------------------------------------------ */

static int bin_of_length(uint64_t length)
{
	int bin = 63 - __builtin_clzll(length / LINE | 1);

	return bin < RW_BINS ? bin : RW_BINS - 1;
}

static void put_part_in_bin(struct rw_arena *a, struct rw_part *part)
{
	struct rw_part **first = &a->bin[bin_of_length(part->length)];

	part->is_free = true;
	part->bin_prev = NULL;
	part->bin_next = *first;
	if (*first)
		(*first)->bin_prev = part;
	*first = part;
}

static void take_part_from_bin(struct rw_arena *a, struct rw_part *part)
{
	if (part->bin_prev)
		part->bin_prev->bin_next = part->bin_next;
	else
		a->bin[bin_of_length(part->length)] = part->bin_next;
	if (part->bin_next)
		part->bin_next->bin_prev = part->bin_prev;
	part->is_free = false;
}

/* ---- the arena ------------------------------------------------------------------------------- */

bool rw_arena_init(struct rw_arena *a, uint64_t most)
{
	struct rw_part *all;

	*a = (struct rw_arena){ 0 };
	if (!make_part_records(a))
		return false;
	for (a->length = most & ~(uint64_t)(PAGE - 1); a->length >= LEAST; a->length /= 2) {
		void *base = mmap(NULL, a->length, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (base != MAP_FAILED) {
			a->base = base;
			break;
		}
	}
	if (!a->base) {
		rw_arena_fini(a);
		return false;
	}
	a->length &= ~(uint64_t)(PAGE - 1);
	all = a->spare;
	a->spare = all->next;
	*all = (struct rw_part){ .length = a->length };
	put_part_in_bin(a, all);
	return true;
}

void rw_arena_fini(struct rw_arena *a)
{
	while (a->slabs) {
		struct rw_part_slab *next = a->slabs->next;

		free(a->slabs);
		a->slabs = next;
	}
	if (a->base)
		munmap(a->base, a->length);
	*a = (struct rw_arena){ 0 };
}

/* Make the arena usable up to `end`. */
static bool commit_arena(struct rw_arena *a, uint64_t end)
{
	uint64_t more;

	if (end <= a->usable)
		return true;
	more = (end - a->usable + COMMIT - 1) / COMMIT * COMMIT;
	if (more > a->length - a->usable)
		more = a->length - a->usable;
	if (mprotect(a->base + a->usable, more, PROT_READ | PROT_WRITE) != 0)
		return false;
	a->usable += more;
	return true;
}

/* Bytes of a part before the first place that is aligned so. */
static uint64_t gap_before(const struct rw_part *part, uint64_t align)
{
	return (align - part->at % align) % align;
}

static bool part_has_room(const struct rw_part *part, uint64_t size, uint64_t align)
{
	uint64_t gap = gap_before(part, align);

	return part->length >= gap && part->length - gap >= size;
}

/* A free part with room, the smallest bin first; it stays in its bin. */
static struct rw_part *find_room(struct rw_arena *a, uint64_t size, uint64_t align)
{
	int tries = TRIES;

	for (int bin = bin_of_length(size); bin < RW_BINS; bin++)
		for (struct rw_part *part = a->bin[bin]; part; part = part->bin_next) {
			if (part_has_room(part, size, align))
				return part;
			/* longer bins have room at once; the last one holds what is left */
			if (bin < RW_BINS - 1 && tries-- <= 0)
				break;
		}
	return NULL;
}

/* Cut `length` bytes off the part's front. They become a free part before it. */
static void cut_front(struct rw_arena *a, struct rw_part *part, uint64_t length)
{
	struct rw_part *front = a->spare;

	a->spare = front->next;
	*front = (struct rw_part){
		.at = part->at, .length = length, .prev = part->prev, .next = part
	};
	if (front->prev)
		front->prev->next = front;
	part->prev = front;
	part->at += length;
	part->length -= length;
	put_part_in_bin(a, front);
}

/* Cut the part's end off, behind `length` bytes. */
static void cut_end(struct rw_arena *a, struct rw_part *part, uint64_t length)
{
	struct rw_part *end = a->spare;

	a->spare = end->next;
	*end = (struct rw_part){ .at = part->at + length,
				 .length = part->length - length,
				 .prev = part,
				 .next = part->next };
	if (end->next)
		end->next->prev = end;
	part->next = end;
	part->length = length;
	put_part_in_bin(a, end);
}

struct rw_part *rw_arena_alloc(struct rw_arena *a, uint64_t size)
{
	uint64_t align = size >= PAGE ? PAGE : LINE, gap;
	struct rw_part *part;

	if (size > a->length)
		return NULL;
	size = size ? (size + align - 1) & ~(align - 1) : LINE;
	part = find_room(a, size, align);
	if (!part)
		return NULL;
	gap = gap_before(part, align);
	/* two records for what is cut off; none are made once it has begun */
	if ((!a->spare || !a->spare->next) && !make_part_records(a))
		return NULL;
	if (!commit_arena(a, part->at + gap + size))
		return NULL;
	take_part_from_bin(a, part);
	if (gap)
		cut_front(a, part, gap);
	if (part->length > size)
		cut_end(a, part, size);
	return part;
}

/* Join a part with the next one, which is in no bin. */
static void absorb_next(struct rw_arena *a, struct rw_part *part)
{
	struct rw_part *next = part->next;

	part->length += next->length;
	part->next = next->next;
	if (part->next)
		part->next->prev = part;
	give_part_record(a, next);
}

void rw_arena_free(struct rw_arena *a, struct rw_part *part)
{
	uint64_t from = (part->at + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	uint64_t end = (part->at + part->length) & ~(uint64_t)(PAGE - 1);

	if (end > from && end - from >= GIVE_BACK)
		madvise(a->base + from, end - from, MADV_DONTNEED);
	if (part->next && part->next->is_free) {
		take_part_from_bin(a, part->next);
		absorb_next(a, part);
	}
	if (part->prev && part->prev->is_free) {
		part = part->prev;
		take_part_from_bin(a, part);
		absorb_next(a, part);
	}
	put_part_in_bin(a, part);
}
