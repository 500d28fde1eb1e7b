/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The memory of all blocks: a stretch of address space, reserved once, of which pages are made
 * usable as they are needed. One memory descriptor covers it, so a write needs no object of its
 * own. It knows nothing of Portals. The caller locks.
 */
#ifndef RWAPI_ARENA_H
#define RWAPI_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RW_BINS = 48 };

/* A part of the arena, free or in use. Parts lie next to each other in the order of the list. */
struct rw_part {
	uint64_t at, length; /* bytes from the arena's start */
	struct rw_part *prev, *next;
	struct rw_part *bin_prev, *bin_next; /* if free: parts of about this length */
	bool is_free;
};

struct rw_arena {
	char *base;
	uint64_t length;              /* of the address space */
	uint64_t usable;              /* bytes from the start that have been made usable */
	struct rw_part *bin[RW_BINS]; /* free parts of 2^k to 2^(k + 1) - 1 lines of 64 bytes */
	struct rw_part *spare;        /* records without a part */
	struct rw_part_slab *slabs;   /* memory of the records */
};

/* Reserve address space: `most` bytes, or less if the system refuses that. False: none. */
bool rw_arena_init(struct rw_arena *a, uint64_t most);
void rw_arena_fini(struct rw_arena *a);

/* A part of `size` bytes or more, at a multiple of 64, from a page on at one of the page's size.
 * NULL: there is no room, or no memory. */
struct rw_part *rw_arena_alloc(struct rw_arena *a, uint64_t size);
/* Long parts give their memory back to the system. */
void rw_arena_free(struct rw_arena *a, struct rw_part *part);

static inline void *rw_part_start(const struct rw_arena *a, const struct rw_part *part)
{
	return a->base + part->at;
}

#endif
