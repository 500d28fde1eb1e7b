/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The arena: see arena.h.
 */
#define _GNU_SOURCE
#include "portals/engine/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/shared.h"

#define SMALLEST  6 /* log2: a cache line */
#define GIVE_BACK (64 * 1024)

static unsigned int class_of(uint64_t size)
{
	unsigned int c = SMALLEST;

	while (c < 63 && 1ull << c < size)
		c++;
	return c - SMALLEST;
}

void ptl_arena_init(struct ptl_arena *a, const struct ptl_view *v)
{
	memset(a, 0, sizeof(*a));
	a->top = v->arena_off;
}

void ptl_arena_fini(struct ptl_arena *a)
{
	for (int c = 0; c < PTL_ARENA_CLASSES; c++)
		while (a->free[c]) {
			struct ptl_block *b = a->free[c];

			a->free[c] = b->next;
			free(b);
		}
}

uint64_t ptl_arena_alloc(struct ptl_arena *a, struct ptl_view *v, uint64_t *size)
{
	unsigned int c = class_of(*size);
	struct ptl_block *b;
	uint64_t off, bytes;

	if (c >= PTL_ARENA_CLASSES)
		return 0;
	bytes = 1ull << (c + SMALLEST);
	b = a->free[c];
	if (b) {
		a->free[c] = b->next;
		off = b->off;
		free(b);
	} else {
		if (bytes > v->arena_end - a->top && !ptl_grow_arena(v, a->top + bytes))
			return 0;
		off = a->top;
		a->top += bytes;
	}
	*size = bytes;
	return off;
}

void ptl_arena_free(struct ptl_arena *a, const struct ptl_view *v, uint64_t off, uint64_t size)
{
	unsigned int c = class_of(size);
	struct ptl_block *b;

	if (!off)
		return;
	if (size >= GIVE_BACK && !v->bounded)
		base_shared_clear(ptl_arena_at(v, off), size, false);
	b = malloc(sizeof(*b));
	if (!b)
		return; /* the block leaks, the process goes on */
	b->off = off;
	b->next = a->free[c];
	a->free[c] = b;
}
