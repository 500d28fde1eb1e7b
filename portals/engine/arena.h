/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Blocks of a region's arena, for event queues and I/O vectors. Only the owner allocates and
 * frees, so the book-keeping is in its own memory. Blocks are powers of two. Freed blocks are
 * kept by size, and a large one gives its pages back. Locked.
 */
#ifndef PTL_ARENA_H
#define PTL_ARENA_H

#include "portals/engine/region.h"

#define PTL_ARENA_CLASSES 36

struct ptl_arena {
	uint64_t top; /* offset in the region of the never-used rest */
	struct ptl_block {
		struct ptl_block *next;
		uint64_t off;
	} * free[PTL_ARENA_CLASSES];
};

void ptl_arena_init(struct ptl_arena *a, const struct ptl_view *v);
void ptl_arena_fini(struct ptl_arena *a);

/* Allocate at least `size` bytes. Returns the block's offset, with its true size in *size; 0:
 * none left. */
uint64_t ptl_arena_alloc(struct ptl_arena *a, struct ptl_view *v, uint64_t *size);
void ptl_arena_free(struct ptl_arena *a, const struct ptl_view *v, uint64_t off, uint64_t size);

#endif
